//! The test tournaments. Their bots read no clock and have enough time on any machine.

use std::fs;
use std::path::{Path, PathBuf};

/// A setting without a practical time limit.
const CLOCK: &str = "[clock]\nstartup = \"10h\"\n";

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Two games: one passes bot state between matches, the rounds of the other follow from
    /// results. A knockout of the first game.
    Small,
    /// All five games, and the knockout.
    Long,
}

/// A tournament.
pub(crate) struct TestTournament {
    pub(crate) name: &'static str,
    /// The tournament file.
    pub(crate) file: PathBuf,
    /// The bots with their names.
    pub(crate) bots: Vec<(PathBuf, String)>,
}

impl TestTournament {
    /// A tournament of the game with its name ([`Self::of`]).
    fn new(at: &Path, game: &'static str, file: &str, kinds: &[(PathBuf, usize)]) -> Self {
        Self::of(at, (game, game), file, kinds)
    }

    /// A tournament with a name and a game between bots of `kinds`, the second of each kind called
    /// `NAME-2` and so on.
    fn of(
        at: &Path,
        (name, game): (&'static str, &str),
        file: &str,
        kinds: &[(PathBuf, usize)],
    ) -> Self {
        let path = at.join(format!("{name}.toml"));
        let text =
            format!("name = \"{name}\"\ngame = \"{game}\"\nseed = \"golden\"\n{file}{CLOCK}");
        fs::write(&path, text).unwrap();
        let twins = kinds.iter().flat_map(|(bot, twins)| {
            let kind = bot.file_name().unwrap().to_str().unwrap();
            (1..=*twins).map(move |twin| (bot.clone(), format!("{kind}-{twin}")))
        });
        Self { name, file: path, bots: twins.collect() }
    }
}

/// Shipped bots, `twins` of each.
fn shipped(game: &str, kinds: &[&str], twins: usize) -> Vec<(PathBuf, usize)> {
    let bots = Path::new(env!("CARGO_MANIFEST_DIR")).join("bots").join(game);
    kinds.iter().map(|kind| (bots.join(kind), twins)).collect()
}

/// The bot that stores its matches in a file and plays according to it.
fn elephant(at: &Path) -> PathBuf {
    let directory = at.join("elephant");
    fs::create_dir(&directory).unwrap();
    let center = concat!(env!("CARGO_MANIFEST_DIR"), "/bots/gomoku/center/bot.py");
    fs::copy(center, directory.join("bot.py")).unwrap();
    fs::write(directory.join("elephant.py"), include_str!("elephant.py")).unwrap();
    let manifest = "name = \"elephant\"\nrun = [\"python3\", \"-B\", \"elephant.py\"]\n";
    fs::write(directory.join("bot.toml"), manifest).unwrap();
    directory
}

/// The tournaments. Their files and special bots are written to `at`.
pub(crate) fn all(size: Size, at: &Path) -> Vec<TestTournament> {
    let long = size == Size::Long;
    let mut gomoku = shipped("gomoku", &["shapes", "center"], 1);
    gomoku.push((elephant(at), if long { 3 } else { 2 }));
    let gomoku = TestTournament::new(
        at,
        "gomoku",
        "state = \"tournament\"\n[params]\nmove_limit = \"10h\"\n\
         [schedule]\nkind = \"round_robin\"\nsides = \"both\"\n",
        &gomoku,
    );
    let episodes = if long { 6 } else { 3 };
    let blackjack = TestTournament::new(
        at,
        "blackjack",
        &format!(
            "[params]\nmove_limit = \"10h\"\nhands = 3\n\
             [schedule]\nkind = \"episodes\"\nepisodes = {episodes}\n"
        ),
        &shipped("blackjack", &["basic", "lim17"], 3),
    );
    let knockout = TestTournament::of(
        at,
        ("knockout", "gomoku"),
        "[params]\nmove_limit = \"10h\"\n\
         [schedule]\nkind = \"knockout\"\nbest_of = 2\nthird_place = true\n",
        &shipped("gomoku", &["shapes", "center"], 3),
    );
    if !long {
        return vec![gomoku, blackjack, knockout];
    }
    let wojna = TestTournament::new(
        at,
        "wojna",
        "[params]\ndeals = 2\nclock = \"36000000/1000/36000000/100\"\n\
         [schedule]\nkind = \"foursomes\"\n",
        &shipped("wojna", &["house", "threshold", "miser", "caller"], 2),
    );
    let bitwa = TestTournament::new(
        at,
        "bitwa",
        "[params]\nbank = \"10h\"\n\
         [schedule]\nkind = \"round_robin\"\nsides = \"random\"\nboards = [\"pole\", \"drobnica\"]\n",
        &shipped("bitwa", &["house", "phalanx", "rush"], 2),
    );
    let tricks = TestTournament::new(
        at,
        "tricks",
        "[params]\nmove_limit = \"10h\"\n[schedule]\nkind = \"round_robin\"\nlegs = 2\n",
        &shipped("tricks", &["house", "counter", "lowest"], 2),
    );
    vec![gomoku, blackjack, knockout, wojna, bitwa, tricks]
}

//! The seam between built-in games and packages: each built-in game is played natively and as a
//! package whose rules are `arbiter game serve`, with the same bots and seeds. Transcripts, results
//! and the dialogue in the records must be the same, also when bots misbehave.
//!
//! The seeds of matches are chosen here, so this program plays them itself and has its own `main`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod package;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::ops::Deref as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{BotName, ClockRules, Game, Games, Params, SeatResult, Seed};
use arbiter_replay::TranscriptHash;
use arbiter_worker::bot::Bot;
use arbiter_worker::match_runner::{BotState, Entrant, Match};
use arbiter_worker::sandbox::{Host, JailConfig, Policy};
use arbiter_worker::seat::StopSignal;
use serde_json::{Map, Value};
use support::Bots;

/// The number of matches between shipped bots.
const MATCHES: u8 = 3;

/// How a bot misbehaves: a mode of the fixture, and at which of its moves.
const MODES: [(&str, u32); 5] =
    [("garbage", 1), ("exit", 1), ("silent", 1), ("flood-line", 1), ("early", 1)];

/// Long enough for every bot on slow machines.
const PATIENT: &str = "10h";

/// The seat count, the settings for shipped bots, and a clock that a silent bot exhausts soon.
type Case =
    (&'static str, usize, &'static [(&'static str, &'static str)], (&'static str, &'static str));

const CASES: [Case; 5] = [
    (
        "wojna",
        4,
        &[("deals", "2"), ("deck", "1-6*4"), ("clock", "36000000/1000/36000000/100")],
        ("clock", "1000/1000/1000/100"),
    ),
    ("bitwa", 2, &[("board", "przyklad"), ("bank", PATIENT)], ("bank", "1s")),
    ("tricks", 2, &[("tables", "4"), ("move_limit", PATIENT)], ("move_limit", "1s")),
    ("blackjack", 3, &[("move_limit", PATIENT), ("chips", "120,30,305")], ("move_limit", "1s")),
    ("gomoku", 2, &[("move_limit", PATIENT)], ("move_limit", "1s")),
];

const TRICKS_BOT: &str = r#"
import sys, time
mode, left = sys.argv[1], int(sys.argv[2])
for line in sys.stdin:
    if not line.startswith("states:"):
        continue
    reply = "move=" + " ".join(state[:2].ljust(2, "_") for state in line.split()[1:])
    left -= 1
    if left < 0 and mode == "exit":
        sys.exit(3)
    if left < 0 and mode == "silent":
        time.sleep(3600)
    if left < 0 and mode == "flood-line":
        print("x" * 70000, end="")
    if left < 0 and mode == "garbage":
        reply = "xyzzy"
    if left < 0 and mode == "early":
        reply += "\n" + reply
    print(reply, flush=True)
"#;

fn main() -> ExitCode {
    arbiter_worker::sandbox::handle_reexec();
    let host = Arc::new(Host::prepare(Policy::Auto).unwrap());
    let (stop, _handle) = StopSignal::new_pair().unwrap();
    let stop = Arc::new(stop);
    for case in CASES {
        let start = Instant::now();
        let bots = Bots::new();
        let table = Table::new(&bots, &host, &stop, case);
        table.play_shipped_bots();
        table.play_misbehaving_bots();
        if table.native.episodes.is_some() {
            table.play_episode();
        }
        println!("{}: the same natively and as a package, {:.1?}", case.0, start.elapsed());
    }
    ExitCode::SUCCESS
}

/// How often a match may be played.
const ATTEMPTS: u32 = 3;

/// What a match comes to, as far as it does not depend on the speed of the machine.
#[derive(Debug, PartialEq)]
struct Played {
    transcript: TranscriptHash,
    results: Vec<SeatResult>,
    dialogue: Vec<Value>,
}

/// A game in both forms.
struct Table<'a> {
    bots: &'a Bots,
    host: &'a Host,
    stop: &'a Arc<StopSignal>,
    case: Case,
    native: Game,
    package: Game,
}

impl<'a> Table<'a> {
    fn new(bots: &'a Bots, host: &'a Arc<Host>, stop: &'a Arc<StopSignal>, case: Case) -> Self {
        let native = Games::built_in().find(case.0).unwrap();
        let package = package::load(&native, &bots.path().join("package"), host, stop);
        Self { bots, host, stop, case, native, package }
    }

    /// Plays shipped bots that differ from seat to seat, with several seeds.
    fn play_shipped_bots(&self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("bots").join(self.case.0);
        let shipped = support::files(&root).into_iter().filter(|path| !path.ends_with("http"));
        let shipped: Vec<_> = shipped.map(|path| Arc::new(Bot::load(&path).unwrap())).collect();
        let mut transcripts = Vec::new();
        for number in 0..MATCHES {
            let mut seats = shipped.iter().cycle().skip(number.into());
            let seats: Vec<_> = seats.by_ref().take(self.case.1).map(Arc::clone).collect();
            let played = self.compare(&seats, self.case.2, Seed([number; 32]));
            assert!(played.results.iter().all(|result| result.forfeit.is_none()), "{played:?}");
            transcripts.push(played.transcript);
        }
        transcripts.dedup();
        assert!(transcripts.len() > 1, "matches differ");
    }

    /// Plays an episode, in which the bots carry the same scores to the same tables.
    fn play_episode(&self) {
        let bots: Vec<_> = (0..5)
            .map(|index| {
                // One bot answers badly, which later rounds must know.
                let mode = if index == 0 { "garbage" } else { "honest" };
                self.bots.rascal(&format!("player{index}"), mode, 2, "")
            })
            .map(|path| Arc::new(Bot::load(Path::new(&path)).unwrap()))
            .collect();
        let settings = [("move_limit", PATIENT), ("rounds", "3"), ("hands", "3"), ("chips", "40")];
        let play = |game: &Game| {
            let mut episode = params(game, &settings, 5).episode(5, Seed([7; 32])).unwrap();
            let mut matches = Vec::new();
            while let Some(table) = episode.tables().first().cloned() {
                let seats: Vec<_> = table.bots.iter().map(|bot| Arc::clone(&bots[*bot])).collect();
                let seed = Seed([u8::try_from(matches.len()).unwrap(); 32]);
                let played = self.play_with(table.params, &seats, seed, "episode.jsonl");
                episode.finish(table.table, &played.results);
                matches.push(played);
            }
            (matches, episode.bots().to_vec())
        };
        let both = || (play(&self.native), play(&self.package));
        let (native, package) = (1..ATTEMPTS)
            .map(|_| both())
            .find(|(native, package)| native == package)
            .unwrap_or_else(both);
        assert_eq!(native, package);
        let (matches, carried) = package;
        assert!(matches.len() > 3, "there are two tables of the first round: {matches:?}");
        assert!(carried[0].bad_answers > 1, "{carried:?}");
    }

    /// Plays bots that fail in every way, at each end of the table.
    fn play_misbehaving_bots(&self) {
        let load = |name: &str, mode: &str, at: u32| {
            let path = match self.case.0 {
                "tricks" => self.tricks_bot(name, mode, at),
                _ => self.bots.rascal(name, mode, at, ""),
            };
            Arc::new(Bot::load(Path::new(&path)).unwrap())
        };
        let honest: Vec<_> = match self.case.0 {
            "tricks" => vec![Arc::new(Bot::load(Path::new("bots/tricks/lowest")).unwrap())],
            _ => (0..3).map(|index| load(&format!("honest{index}"), "honest", 0)).collect(),
        };
        let patient = self.case.2;
        let mut hasty = patient.to_vec();
        hasty.retain(|(key, _)| *key != self.case.3.0);
        hasty.push(self.case.3);
        for (index, (mode, at)) in MODES.into_iter().enumerate() {
            // On a busy machine a short clock may stall an honest bot, too.
            let settings = if mode == "silent" { &hasty[..] } else { patient };
            let bad = load(mode, mode, at);
            let mut seats = honest[..self.case.1 - 1].to_vec();
            seats.insert(index % self.case.1, bad);
            let played = self.compare(&seats, settings, Seed([9; 32]));
            let result = &played.results[index % self.case.1];
            assert!(result.forfeit.is_some() || result.bad_answers > 0, "{mode}: {played:?}");
        }
    }

    /// A bot for tricks that plays its first cards, and misbehaves as the fixture of other games.
    fn tricks_bot(&self, name: &str, mode: &str, at: u32) -> String {
        let directory = self.bots.path().join(name);
        fs::create_dir(&directory).unwrap();
        let manifest =
            format!("name = \"{name}\"\nrun = [\"python3\", \"bot.py\", \"{mode}\", \"{at}\"]\n");
        fs::write(directory.join("bot.toml"), manifest).unwrap();
        fs::write(directory.join("bot.py"), TRICKS_BOT).unwrap();
        directory.to_str().unwrap().to_owned()
    }

    /// Plays a match in both forms, which must be equal, and verifies the package's record.
    fn compare(&self, bots: &[Arc<Bot>], settings: &[(&str, &str)], seed: Seed) -> Played {
        let both = || {
            let native = self.play(&self.native, bots, settings, seed, "native.jsonl");
            (native, self.play(&self.package, bots, settings, seed, "package.jsonl"))
        };
        // A busy machine may stall a bot so that it forfeits. A difference of the rules shows each
        // time.
        let (native, package) = (1..ATTEMPTS)
            .map(|_| both())
            .find(|(native, package)| native == package)
            .unwrap_or_else(both);
        let names: Vec<_> = bots.iter().map(|bot| bot.name.as_str()).collect();
        for (native, package) in native.dialogue.iter().zip(&package.dialogue) {
            assert_eq!(native, package, "{} {names:?}", self.native);
        }
        assert_eq!(native, package, "{} {names:?}", self.native);
        let games = Games::built_in().with(self.package.deref().clone());
        let record = fs::read(self.bots.path().join("package.jsonl")).unwrap();
        let verified = arbiter_replay::verify(&games, record.as_slice()).unwrap();
        assert_eq!(verified.standings, package.results);
        package
    }

    fn play(
        &self,
        game: &Game,
        bots: &[Arc<Bot>],
        settings: &[(&str, &str)],
        seed: Seed,
        record: &str,
    ) -> Played {
        self.play_with(params(game, settings, bots.len()), bots, seed, record)
    }

    fn play_with(&self, params: Params, bots: &[Arc<Bot>], seed: Seed, record: &str) -> Played {
        let path = self.bots.path().join(record);
        let seats = bots.iter().zip(1..);
        let entrants = seats.map(|(bot, seat)| Entrant {
            bot: Arc::clone(bot).into(),
            name: format!("{}-{seat}", bot.name).parse::<BotName>().unwrap(),
            state: BotState::Fresh,
        });
        let planned = Match {
            params,
            seed,
            clock: ClockRules::OFFICIAL,
            jail: JailConfig::default(),
            entrants: entrants.collect(),
            record: Some(path.clone()),
        };
        let outcome = planned.play(self.host, self.stop).unwrap();
        let record = fs::read_to_string(path).unwrap();
        let lines = record.lines().map(|line| serde_json::from_str(line).unwrap());
        Played {
            transcript: outcome.transcript,
            results: outcome.results,
            dialogue: lines.filter_map(dialogue_line).collect(),
        }
    }
}

/// The parameters with these settings, which may be numbers.
fn params(game: &Game, settings: &[(&str, &str)], seats: usize) -> Params {
    let mut values = Map::new();
    if let Some(key) = &game.seats_param {
        values.insert(key.to_string(), seats.into());
    }
    for (key, text) in settings {
        let value = text.parse::<i64>().map_or_else(|_| (*text).into(), Value::from);
        values.insert((*key).to_owned(), value);
    }
    Params::read(game, Value::Object(values)).unwrap()
}

/// A message, reply or forfeit without what depends on the machine.
fn dialogue_line(mut line: Map<String, Value>) -> Option<Value> {
    let is_dialogue = ["send", "reply", "reply_b64", "forfeit"];
    if !is_dialogue.into_iter().any(|key| line.contains_key(key)) {
        return None;
    }
    for key in ["t", "wall_us", "cpu_us"] {
        line.remove(key);
    }
    // The details of these tell how long it took, or how much was read.
    if line.get("forfeit").is_some_and(|forfeit| forfeit == "clock" || forfeit == "flood") {
        line.remove("detail");
    }
    if line.get("send").is_some_and(|text| text.as_str().unwrap().starts_with("time_left ")) {
        line.insert("send".to_owned(), "time_left".into());
    }
    Some(Value::Object(line))
}

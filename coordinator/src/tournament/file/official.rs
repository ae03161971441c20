//! What official tournaments are like: the settings of each game that a file leaves out.

use arbiter_games::bitwa::{Board, official_boards};
use arbiter_games::{ClockRules, GameName, Params};
use arbiter_proto::limits::{Bytes, Limits, Ponder};
use arbiter_proto::settings::StateScope;
use arbiter_schedule::{Episodes, Extent, RoundRobin, Schedule, Sides, Times};
use serde_json::{Map, Value, json};

use super::{Audit, Rerun, Submissions, TournamentFile, object};

/// The word for the boards of official tournaments.
pub(super) const OFFICIAL: &str = "official";

/// Rounds of an official episode of blackjack.
const ROUNDS: u32 = 5;

/// The official boards.
pub(super) fn boards() -> Vec<Board> {
    let texts = official_boards().map(|(_, text)| text.parse());
    texts.collect::<Result<_, _>>().expect("a test reads every shipped board")
}

/// How many boards a list has, as schedules count them; nothing if there are too many.
pub(super) fn count(boards: usize) -> Option<Times> {
    i64::try_from(boards).ok().and_then(|count| Times::try_from(count).ok())
}

impl TournamentFile {
    /// The official tournament of a game, without bots.
    pub fn official(name: &str, game: GameName) -> Self {
        let limits = match game {
            GameName::Blackjack => Limits { memory: Bytes::megabytes(256), ..Limits::OFFICIAL },
            _ => Limits::OFFICIAL,
        };
        let boards = if game == GameName::Bitwa { boards() } else { Vec::new() };
        Self {
            name: name.to_owned(),
            params: params(game),
            schedule: schedule(game, &boards),
            boards,
            clock: ClockRules::OFFICIAL,
            limits,
            state: state(game),
            ponder: Ponder::Freeze,
            seed: None,
            rerun: Rerun::EverySubmission,
            submissions: Submissions::OFFICIAL,
            audit: Audit::OFFICIAL,
            house: Vec::new(),
            beacon: None,
            expected: None,
        }
    }
}

/// The official parameters of a tournament. They are those of a match, but that blackjack is
/// played in episodes of several rounds.
fn params(game: GameName) -> Params {
    let Params::Blackjack(mut blackjack) = Params::official(game) else {
        return Params::official(game);
    };
    blackjack.rounds = i64::from(ROUNDS).try_into().expect("an episode may have five rounds");
    Params::Blackjack(blackjack)
}

fn schedule(game: GameName, boards: &[Board]) -> Schedule {
    let pairs =
        |sides, boards| Schedule::RoundRobin(RoundRobin { legs: Times::ONCE, sides, boards });
    match game {
        GameName::Wojna => Schedule::Foursomes(Extent::Least),
        GameName::Bitwa => {
            pairs(Sides::Random, count(boards.len()).expect("there are eight boards"))
        }
        GameName::Tricks => pairs(Sides::Balanced, Times::ONCE),
        GameName::Gomoku => pairs(Sides::Both, Times::ONCE),
        GameName::Blackjack => Schedule::Episodes(Episodes { episodes: Times::TWENTY_FIVE }),
    }
}

fn state(game: GameName) -> StateScope {
    match game {
        GameName::Gomoku => StateScope::Tournament,
        _ => StateScope::None,
    }
}

/// What a `[schedule]` of this kind is laid over, boards left out: what is official if the kind is.
pub(super) fn schedule_keys(official: &Schedule, kind: &str) -> Map<String, Value> {
    let mut keys = object(official);
    if keys.get("kind") != Some(&json!(kind)) {
        keys = Map::new();
        keys.insert("kind".to_owned(), json!(kind));
    }
    keys.shift_remove("boards");
    keys
}

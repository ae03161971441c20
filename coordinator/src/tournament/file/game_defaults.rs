//! The official tournament of each game: the defaults of tournament files.

use arbiter_games::{BoardInfo, ClockRules, Game, PairSeats, Params, ParamsError, ScheduleKind};
use arbiter_proto::limits::{Bytes, Limits, Ponder};
use arbiter_proto::settings::StateScope;
use arbiter_schedule::{
    Episodes, FoursomesConfig, Repetitions, RoundRobin, Schedule, Sides, Solo, Tables,
};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::db::tournaments::{Presentation, Replays};

use super::{Audit, House, Rerun, Submissions, TournamentFile, object};

/// The word in a tournament file that means the official boards.
pub(super) const OFFICIAL: &str = "official";

/// The official boards of a game.
pub(super) fn boards(params: &Params) -> Vec<String> {
    let boards =
        params.game().boards.iter().flat_map(|boards| {
            boards.official.iter().map(|name| board(params, boards, &json!(name)))
        });
    boards.collect::<Result<_, _>>().expect("a test reads every shipped board")
}

/// A board in the notation of its game.
pub(super) fn board(
    params: &Params,
    boards: &BoardInfo,
    value: &Value,
) -> Result<String, ParamsError> {
    let value = arbiter_games::Value::deserialize(value).map_err(ParamsError::new)?;
    let board = object(&params.with(&boards.key, value)?).shift_remove(boards.key.as_ref());
    let text = board.as_ref().and_then(Value::as_str);
    Ok(text.expect("a game that reads a board writes it").to_owned())
}

/// The number of boards for a schedule. None if there are too many.
pub(super) fn count(boards: usize) -> Option<Repetitions> {
    i64::try_from(boards).ok().and_then(|count| Repetitions::try_from(count).ok())
}

impl TournamentFile {
    /// The official tournament of a game, without bots.
    pub fn official(name: &str, game: &Game) -> Self {
        let params = params(game);
        let boards = boards(&params);
        let limits = match game.official.memory_mb {
            Some(megabytes) => Limits { memory: Bytes::megabytes(megabytes), ..Limits::OFFICIAL },
            None => Limits::OFFICIAL,
        };
        let keeps_files = game.official.keeps_files;
        Self {
            name: name.to_owned(),
            presentation: Presentation { replays: Replays::Always, ..Presentation::default() },
            schedule: schedule(game.official.schedule, boards.len()),
            params,
            package: None,
            boards,
            clock: ClockRules::OFFICIAL,
            limits,
            state: if keeps_files { StateScope::Tournament } else { StateScope::None },
            ponder: Ponder::Freeze,
            seed: None,
            rerun: Rerun::EverySubmission,
            submissions: Submissions::OFFICIAL,
            audit: Audit::OFFICIAL,
            house: House::OFFICIAL,
            beacon: None,
            expected: None,
        }
    }
}

/// The official parameters of a tournament: those of a match, with the official number of rounds
/// for episodes.
fn params(game: &Game) -> Params {
    let params = Params::official(game);
    let Some(episodes) = &game.episodes else { return params };
    let params = params.with(&episodes.rounds_param, episodes.official_rounds);
    params.expect("an episode may have as many rounds as official ones")
}

fn schedule(kind: ScheduleKind, boards: usize) -> Schedule {
    match kind {
        ScheduleKind::Foursomes => Schedule::Foursomes(FoursomesConfig::Least),
        ScheduleKind::Tables(seats) => {
            let seats = i64::try_from(seats).ok().and_then(|seats| seats.try_into().ok());
            Schedule::Tables(Tables::of(seats.expect("a game has at most 16 seats")))
        }
        ScheduleKind::Solo => Schedule::Solo(Solo::default()),
        ScheduleKind::RoundRobin(seats) => {
            let sides = match seats {
                PairSeats::Balanced => Sides::Balanced,
                PairSeats::Both => Sides::Both,
                PairSeats::Random => Sides::Random,
            };
            let boards = count(boards.max(1)).expect("there are a few official boards");
            Schedule::RoundRobin(RoundRobin { sides, boards, ..RoundRobin::default() })
        }
        ScheduleKind::Episodes(episodes) => {
            let episodes = Repetitions::try_from(i64::from(episodes));
            let episodes = episodes.expect("official tournaments have a few episodes");
            Schedule::Episodes(Episodes { episodes })
        }
    }
}

/// The defaults of a `[schedule]` of this kind, without boards: the official values if the official
/// schedule has the same kind.
pub(super) fn schedule_keys(official: &Schedule, kind: &str) -> Map<String, Value> {
    let mut keys = object(official);
    if keys.get("kind") != Some(&json!(kind)) {
        keys = Map::new();
        keys.insert("kind".to_owned(), json!(kind));
    }
    keys.shift_remove("boards");
    keys
}

//! The tournament file: what is played, by which rules, how often. TOML as organisers write it,
//! JSON as it is stored, and both mean the same.
//!
//! Only `name` and `game` must be given: what is left out is as in official tournaments of the
//! game. How it is read: either form becomes a tree with the place of each key (`source`); each
//! section is laid over what is official (`official`), and what results is read as a whole. If
//! that fails the keys are tried one by one, so that the message names the one to blame.

use arbiter_games::{ClockRules, Game, Games, Micros, Params, Seed};
use arbiter_proto::limits::{Limits, Ponder};
use arbiter_proto::settings::{Settings, StateScope};
use arbiter_schedule::Schedule;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

mod inline_boards;
mod official;
mod read;
mod source;
mod submissions;
mod validate;

pub use crate::queue::{Audit, Share};
use source::Source;
pub use submissions::{Moment, Submissions};

/// A tournament as its organiser wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct TournamentFile {
    /// Its name, which no other has.
    pub name: String,
    /// What is played.
    pub params: Params,
    /// Who plays whom how often.
    pub schedule: Schedule,
    /// The boards on which each pair meets, as the game writes them; none where all matches are
    /// played with the same parameters.
    pub boards: Vec<String>,
    /// How time is charged.
    pub clock: ClockRules,
    /// What a bot may use.
    pub limits: Limits,
    /// What happens to files that a bot leaves.
    pub state: StateScope,
    /// What a bot may do while it owes nothing.
    pub ponder: Ponder,
    /// Where all chance comes from, if that is not to be drawn.
    pub seed: Option<Seed>,
    /// The public beacon whose value the seed is keyed with once entry has closed, if there is one:
    /// where and when it is published.
    pub beacon: Option<String>,
    /// When an edition is planned.
    pub rerun: Rerun,
    /// How bots come, change and go.
    pub submissions: Submissions,
    /// How much of what workers report is looked at a second time.
    pub audit: Audit,
    /// Where the house bots are, as written: the command line submits them.
    pub house: Vec<String>,
    /// How long a match is expected to take, if the organiser knows better than we do.
    pub expected: Option<Micros>,
}

/// When an edition is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rerun {
    /// Whenever a version is submitted or a bot is withdrawn, once a first edition was started.
    #[default]
    EverySubmission,
    /// When an organiser says so.
    Manual,
}

/// What is wrong with a tournament file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{what}: {cause}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct FileError {
    /// The line, from 1; nothing if the file is not a text.
    pub line: Option<usize>,
    /// What is to blame: a key with its value, a section, or the file.
    pub what: String,
    /// Why, and what to write instead.
    pub cause: String,
}

impl TournamentFile {
    /// Reads a tournament file that plays one of these games.
    ///
    /// # Errors
    /// If it is no TOML, has keys that mean nothing, or asks for what cannot be played.
    pub fn parse(games: &Games, text: &str) -> Result<Self, FileError> {
        Self::read(games, &Source::of_toml(text)?)
    }

    /// Reads what [`TournamentFile::to_json`] gives.
    pub fn from_json(games: &Games, stored: &Value) -> Result<Self, FileError> {
        Self::read(games, &Source::of_json(stored)?)
    }

    /// Replaces the paths of boards by the boards themselves, so that the file means the same on
    /// another machine; nothing else is touched. `read` gives the contents of a path as written.
    pub fn inline(
        games: &Games,
        text: &str,
        read: impl Fn(&str) -> std::io::Result<String>,
    ) -> Result<String, FileError> {
        inline_boards::inline(games, text, read)
    }

    /// The game.
    pub fn game(&self) -> &Game {
        self.params.game()
    }

    /// The file as it is stored and shown: everything but the seed and the beacon, which the database
    /// keeps by themselves. What else is left out is as in [`Audit::OFFICIAL`].
    pub fn to_json(&self) -> Value {
        let mut schedule = object(&self.schedule);
        if matches!(self.schedule, Schedule::RoundRobin(_)) {
            schedule.shift_remove("boards");
        }
        let mut params = object(&self.params);
        if !self.boards.is_empty() {
            schedule.insert("boards".to_owned(), json!(self.boards));
            params.shift_remove(self.board_key());
        }
        let mut file = json!({
            "name": self.name,
            "game": self.game(),
            "params": params,
            "schedule": schedule,
            "clock": self.clock,
            "limits": self.limits,
            "state": self.state,
            "ponder": self.ponder,
            "rerun": self.rerun,
            "submissions": self.submissions,
            "house": { "bots": self.house },
        });
        // A coordinator of the version before refuses keys that it does not know.
        if self.audit != Audit::OFFICIAL {
            file["audit"] = json!(self.audit);
        }
        if let Some(expected) = self.expected {
            file["expected"] = json!(expected);
        }
        file
    }

    /// How many rounds an episode has; 1 where there are none.
    pub(super) fn rounds(&self) -> u32 {
        self.params.rounds().unwrap_or(1)
    }

    /// The parameter that [`TournamentFile::boards`] are values of.
    pub(super) fn board_key(&self) -> &str {
        self.game().boards.as_ref().map_or("", |boards| &boards.key)
    }

    /// What workers need to know to play any match.
    pub fn settings(&self) -> Settings {
        let Self { clock, limits, ponder, state, .. } = *self;
        Settings { params: of_match(&self.params), clock, limits, ponder, state }
    }
}

/// The parameters of a match: those of the tournament, but that a match of an episode is one round,
/// and how many an episode has is not for the table to know.
pub(super) fn of_match(params: &Params) -> Map<String, Value> {
    let mut keys = object(params);
    if let Some(episodes) = &params.game().episodes {
        keys.shift_remove(episodes.rounds_param.as_ref());
    }
    keys
}

/// Something with keys, as JSON.
fn object(thing: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(thing) {
        Ok(Value::Object(map)) => map,
        other => unreachable!("parameters and schedules are objects, not {other:?}"),
    }
}

#[cfg(test)]
mod tests;

//! The tournament file: the game, its rules and the schedule. Organisers write it as TOML, and it
//! is stored as JSON with the same meaning.
//!
//! Only `name` and `game` are required. The other keys default to the official tournament of the
//! game. TOML and JSON are parsed to a tree with the line of each key (`toml_tree`). Each section
//! is merged over the official values (`game_defaults`) and read as a whole. If that fails, the
//! keys are tried one by one, so that the error names the wrong key.

use arbiter_games::{ClockRules, Game, Games, Micros, Params, Seed};
use arbiter_proto::limits::{Limits, Ponder};
use arbiter_proto::settings::{GamePackage, Settings, StateScope};
use arbiter_schedule::Schedule;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

mod edited;
mod game_defaults;
mod inline_boards;
mod inline_package;
mod parse_keys;
mod presentation;
mod serde_words;
mod stages;
mod submissions;
mod template;
mod toml_tree;
mod validate;

use crate::db::tournaments::Presentation;
use crate::game_package;
pub use crate::queue::{Audit, Share};
pub use edited::EditedFile;
pub(crate) use presentation::markdown;
pub use submissions::{Moment, Submissions};
use toml_tree::Source;

/// The contents of a tournament file.
#[derive(Clone, Debug, PartialEq)]
pub struct TournamentFile {
    /// Its unique name.
    pub name: String,
    /// What the public sees of it besides its results.
    pub presentation: Presentation,
    /// The game with its parameters.
    pub params: Params,
    /// The game package, if the game is one.
    pub package: Option<GamePackage>,
    /// Which bots meet, and how often.
    pub schedule: Schedule,
    /// The boards on which each pair meets, in the notation of the game; empty if all matches have
    /// the same parameters.
    pub boards: Vec<String>,
    /// How time is charged.
    pub clock: ClockRules,
    /// What a bot may use.
    pub limits: Limits,
    /// To which later matches the files that a bot leaves are passed.
    pub state: StateScope,
    /// Whether a bot may compute while it is not expected to reply.
    pub ponder: Ponder,
    /// The seed of all randomness. None if a random seed must be drawn.
    pub seed: Option<Seed>,
    /// The name of the public beacon, if there is one: where and when its value is published. The
    /// seed is keyed with that value after entry has closed.
    pub beacon: Option<String>,
    /// When editions are planned.
    pub rerun: Rerun,
    /// The rules of entry.
    pub submissions: Submissions,
    /// The share of workers' reports that is checked.
    pub audit: Audit,
    /// The house bots.
    pub house: House,
    /// The expected time of a match, if the organiser sets it.
    pub expected: Option<Micros>,
}

/// The house bots of a tournament.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct House {
    /// Their paths, as in the file. The command line submits the bots.
    pub bots: Vec<String>,
    /// Whether they have ranks. Without ranks they play and are listed like all others, and the
    /// ranks of the others skip them.
    // A coordinator of the previous release refuses unknown keys.
    #[serde(default = "House::official_ranked", skip_serializing_if = "Clone::clone")]
    pub ranked: bool,
}

impl House {
    /// Those of official tournaments.
    pub const OFFICIAL: Self = Self { bots: Vec::new(), ranked: true };

    fn official_ranked() -> bool {
        Self::OFFICIAL.ranked
    }
}

/// When editions are planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rerun {
    /// After every submission and withdrawal, if the first edition has been started.
    #[default]
    EverySubmission,
    /// Only when an organiser starts one.
    Manual,
}

/// Why a tournament file is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{what}: {cause}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct FileError {
    /// The line, from 1; none for JSON.
    pub line: Option<usize>,
    /// The wrong part: a key with its value, a section, or the file.
    pub what: String,
    /// Why it is wrong, and what to write instead.
    pub cause: String,
}

/// Stored settings as people read them: with a summary of the game package, and without an empty
/// list of house bots.
pub fn readable_settings(mut settings: Map<String, Value>) -> Map<String, Value> {
    if settings.get("house") == Some(&json!({ "bots": [] })) {
        settings.shift_remove("house");
    }
    if let Some(package) = settings.get_mut("package")
        && let Ok(valid) = GamePackage::deserialize(&*package)
        && let Ok(summary) = game_package::summary(&valid)
    {
        *package = summary.into();
    }
    settings
}

impl TournamentFile {
    /// Parses a tournament file for one of these games.
    ///
    /// # Errors
    /// If it is not TOML, has unknown keys, or has values that are not allowed.
    pub fn parse(games: &Games, text: &str) -> Result<Self, FileError> {
        let source = Source::of_toml(text)?;
        let file = Self::read(games, &source)?;
        validate::new_file(&file, &source)?;
        Ok(file)
    }

    /// Reads the JSON of [`TournamentFile::to_json`]. What has separate columns has its default.
    pub fn from_json(games: &Games, stored: &Value) -> Result<Self, FileError> {
        Self::read(games, &Source::of_json(stored)?)
    }

    /// Replaces the paths of boards with the boards, so that the file has the same meaning on
    /// another machine. The rest of the file stays the same. `read` returns the contents of a path.
    pub fn inline(
        games: &Games,
        text: &str,
        read: impl Fn(&str) -> std::io::Result<String>,
    ) -> Result<String, FileError> {
        inline_boards::inline(games, text, read)
    }

    /// Replaces the path of a game package with its name, and adds the package, so that the file
    /// has the same meaning on another machine. The lines of the file keep their numbers. `load`
    /// returns the name and the package at a path; None if there is no package.
    pub fn inline_package(
        text: &str,
        load: impl FnOnce(&str) -> Option<(String, GamePackage)>,
    ) -> Result<String, FileError> {
        inline_package::inline(text, load)
    }

    /// The game.
    pub fn game(&self) -> &Game {
        self.params.game()
    }

    /// The file as it is stored and shown. The seed, the beacon and the presentation are left out,
    /// because they have separate columns. An `audit` with official values is also left out.
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
            "house": self.house,
        });
        // A coordinator of the previous release refuses unknown keys.
        if self.audit != Audit::OFFICIAL {
            file["audit"] = json!(self.audit);
        }
        if let Some(expected) = self.expected {
            file["expected"] = json!(expected);
        }
        if let Some(package) = &self.package {
            file["package"] = json!(package);
        }
        file
    }

    /// The rounds of an episode; 1 for games without episodes.
    pub(super) fn rounds(&self) -> u32 {
        self.params.rounds().unwrap_or(1)
    }

    /// The parameter whose values are [`TournamentFile::boards`].
    pub(crate) fn board_key(&self) -> &str {
        self.game().boards.as_ref().map_or("", |boards| &boards.key)
    }

    /// The settings that workers need for every match.
    pub fn settings(&self) -> Settings {
        let Self { clock, limits, ponder, state, .. } = *self;
        let package = self.package.clone();
        Settings { params: of_match(&self.params), clock, limits, ponder, state, package }
    }
}

/// The parameters of a match: those of the tournament without the number of rounds, since a match
/// of an episode is one round.
pub(super) fn of_match(params: &Params) -> Map<String, Value> {
    let mut keys = object(params);
    if let Some(episodes) = &params.game().episodes {
        keys.shift_remove(episodes.rounds_param.as_ref());
    }
    keys
}

/// The JSON object of a value.
fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        other => unreachable!("parameters and schedules are objects, not {other:?}"),
    }
}

#[cfg(test)]
mod tests;

//! Under which conditions bots play in a tournament, for their authors: parameters, clock, limits,
//! and the interpreters and compilers of the connected workers.

use arbiter_games::{ClockRules, ParamInfo, Value};
use arbiter_proto::limits::{Limits, Ponder};

use super::{Result, Service, ServiceError};
use crate::db::tournaments::Tournament;
use crate::db::worker_runtimes::{self, RuntimeCount};
use crate::tournament::TournamentFile;

/// The conditions of a tournament.
#[derive(Clone, Debug)]
pub(crate) struct PlayConditions {
    /// The parameters of matches with their values.
    pub(crate) params: Vec<(ParamInfo, String)>,
    /// How time is charged.
    pub(crate) clock: ClockRules,
    /// What a bot may use.
    pub(crate) limits: Limits,
    /// Whether a bot may compute while it is not expected to reply.
    pub(crate) ponder: Ponder,
    /// The connected workers, if they are known.
    pub(crate) workers: Option<ConnectedWorkers>,
}

/// The connected workers, as far as bots depend on them.
#[derive(Clone, Debug)]
pub(crate) struct ConnectedWorkers {
    /// Their number.
    pub(crate) count: i64,
    /// Their interpreters and compilers, by name.
    pub(crate) runtimes: Vec<RuntimeCount>,
}

impl PlayConditions {
    /// The conditions in a tournament file, without workers.
    pub(crate) fn of_file(file: &TournamentFile) -> Self {
        let values = file.params.values();
        let value_of = |param: &ParamInfo| {
            let value = match values.get(&param.key)? {
                _ if param.key == file.board_key() && !file.boards.is_empty() => boards(file),
                Value::Text(text) => text.clone(),
                value => value.to_string(),
            };
            Some((param.clone(), value))
        };
        let params = file.params.game().params.iter().filter_map(value_of).collect();
        let TournamentFile { clock, limits, ponder, .. } = *file;
        Self { params, clock, limits, ponder, workers: None }
    }
}

/// The boards of the schedule, which replace the parameter.
fn boards(file: &TournamentFile) -> String {
    match &file.boards[..] {
        [board] => board.clone(),
        boards => format!("{} (each pair meets on each)", boards.join(", ")),
    }
}

impl Service {
    /// The conditions of a tournament.
    pub(super) async fn play_conditions(&self, tournament: &Tournament) -> Result<PlayConditions> {
        let file = TournamentFile::from_json(self.games(), &tournament.settings)
            .map_err(|error| ServiceError::internal(error.to_string()))?;
        // A connected worker sends several signs of life during a lease.
        let since = self.now() - self.lease();
        let count = worker_runtimes::connected(&self.pool, since).await?;
        let runtimes = worker_runtimes::list(&self.pool, since).await?;
        let workers = Some(ConnectedWorkers { count, runtimes });
        Ok(PlayConditions { workers, ..PlayConditions::of_file(&file) })
    }
}

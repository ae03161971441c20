//! The plan of an edition whose tournament is over, from its published seed and the names of its
//! bots.

use std::io;

use arbiter_coordinator::db::matches::Match;
use arbiter_coordinator::tournament::file::TournamentFile;
use arbiter_coordinator::tournament::plan_derivation::EditionSource;
use arbiter_proto::v1::Tournament;
use arbiter_schedule::Schedule;

use super::export::fetch_source;
use crate::cli::client::{Server, malformed_response};
use crate::failure::Failure;
use crate::output::write_failure;

/// The inputs of a plan whose seed is published.
pub(super) struct PublishedPlan {
    file: TournamentFile,
    source: EditionSource,
}

impl PublishedPlan {
    /// Fetches the inputs of the plan of an edition; by default of the official one. `None` while
    /// the seed is secret, and for episodes, which have no list of matches.
    pub(super) async fn fetch(
        server: &Server,
        tournament: &Tournament,
        file: &TournamentFile,
        edition: Option<i32>,
    ) -> Result<Option<Self>, Failure> {
        if matches!(file.schedule, Schedule::Episodes(_)) {
            return Ok(None);
        }
        let source = fetch_source(server, tournament, edition).await?;
        Ok(source.map(|source| Self { file: file.clone(), source }))
    }

    /// Passes all matches to `write`, in order; only those of the first round if results decide who
    /// meets later. The seats of a match hold the numbers of bots, from 0.
    pub(super) fn list(
        &self,
        mut write: impl FnMut(&Match) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let listed = self.source.derive(&self.file, |planned| match write(&planned) {
            Ok(()) => Ok(None),
            Err(error) => Err(ListError::Write(error)),
        });
        match listed {
            Ok(_) => Ok(()),
            Err(ListError::Write(error)) => Err(write_failure(error)),
            Err(ListError::Source(cause)) => Err(malformed_response(cause)),
        }
    }
}

/// Why a plan cannot be listed.
enum ListError {
    /// The output failed.
    Write(io::Error),
    /// No plan follows from its inputs.
    Source(String),
}

impl From<String> for ListError {
    fn from(cause: String) -> Self {
        Self::Source(cause)
    }
}

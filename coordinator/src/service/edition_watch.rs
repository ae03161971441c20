//! Streams of an edition's progress.

use std::time::Duration;

use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::{Edition, WatchEditionRequest};
use tokio_stream::StreamExt as _;

use super::tournaments::without_estimate;
use super::watches::{Watched, Watches};
use super::{Caller, DefaultEdition, ResponseStream, Result, Service};
use crate::cache::Cache;
use crate::db::editions::{self, EditionState};
use crate::db::tournaments;

/// How long the edition of a name stays in memory.
const MAX_NAME_AGE: Duration = Duration::from_millis(500);
/// Maximum number of names in memory.
const MAX_NAMES: usize = 256;

/// The progress of an edition.
#[derive(Clone, Debug)]
struct Progress {
    edition: Edition,
    is_over: bool,
}

impl Watched for Progress {
    fn is_same(&self, other: &Self) -> bool {
        without_estimate(self.edition.clone()) == without_estimate(other.edition.clone())
    }

    fn is_last(&self) -> bool {
        self.is_over
    }
}

/// An edition with its tournament.
type EditionRow = (tournaments::Tournament, editions::Edition);

/// The name of a tournament and the number of an edition, as in a request.
type EditionName = (String, Option<i32>);

/// The editions that have subscribers.
#[derive(Debug)]
pub(super) struct EditionWatches {
    /// Each edition, and whether the subscribers are organisers, who may see more than others.
    editions: Watches<(EditionId, bool), Progress>,
    names: Cache<EditionName, EditionRow>,
}

impl Default for EditionWatches {
    fn default() -> Self {
        Self { editions: Watches::default(), names: Cache::new(MAX_NAMES) }
    }
}

impl EditionWatches {
    /// The edition of a name, if it was resolved a moment ago and its stream shows that it still
    /// runs. A client whose edition is over requests the edition that replaced it, so the name must
    /// be resolved again.
    fn recent_edition(&self, name: &EditionName, caller: &Caller) -> Option<EditionRow> {
        let row = self.names.get(name, Some(MAX_NAME_AGE))?;
        let newest = self.editions.newest(&(row.1.id, caller.is_organiser()))?;
        let is_running = newest.is_ok_and(|progress| !progress.is_over);
        is_running.then(|| EditionRow::clone(&row))
    }
}

impl Service {
    /// Streams the progress of an edition: its present state, then every change until it is over.
    pub(crate) async fn watch_edition(
        &self,
        caller: &Caller,
        WatchEditionRequest { tournament, edition }: WatchEditionRequest,
    ) -> Result<ResponseStream<Edition>> {
        let row = self.edition_of_name((tournament, edition), caller).await?;
        let key = (row.1.id, caller.is_organiser());
        let service = self.clone();
        let caller = caller.clone();
        let read = move || {
            let service = service.clone();
            let caller = caller.clone();
            let row = row.clone();
            async move {
                service.metrics().edition_reads.inc();
                let (edition, is_over) = service.edition_state(&row.0, &row.1, &caller).await?;
                Ok(Progress { edition, is_over })
            }
        };
        let states = self.edition_watches.editions.subscribe(&self.changes, key, read).await?;
        Ok(Box::pin(states.map(|progress| Ok(progress?.edition))))
    }

    async fn edition_of_name(&self, name: EditionName, caller: &Caller) -> Result<EditionRow> {
        if let Some(row) = self.edition_watches.recent_edition(&name, caller) {
            return Ok(row);
        }
        let tournament = self.tournament(&name.0).await?;
        let edition = self
            .edition_or_default(&self.pool, &tournament, name.1, DefaultEdition::Newest, None)
            .await?;
        let row = (tournament, edition);
        // If the edition is over, the name may mean another edition at any moment.
        if row.1.state == EditionState::Running {
            self.edition_watches.names.insert(name, row.clone());
        }
        Ok(row)
    }
}

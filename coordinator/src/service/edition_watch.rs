//! Streams of an edition's progress. Each edition is read once for all its subscribers, so that
//! thousands of subscribers cost about as much as one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::{Edition, WatchEditionRequest};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::tournaments::without_estimate;
use super::{Caller, DefaultEdition, ResponseStream, Result, Service};
use crate::db::editions::{self, EditionState};
use crate::db::tournaments;

/// How long the edition of a name stays in memory.
const MAX_NAME_AGE: Duration = Duration::from_millis(500);
/// Maximum number of names in memory.
const MAX_NAMES: usize = 256;

/// An edition, and whether the subscribers are organisers, who may see more than others.
type Key = (EditionId, bool);

/// The state of an edition and whether the edition is over. None until the first read.
type WatchState = Option<Result<(Edition, bool)>>;

/// An edition with its tournament.
type EditionRow = (tournaments::Tournament, editions::Edition);

/// The name of a tournament and the number of an edition, as in a request.
type EditionName = (String, Option<i32>);

/// The editions that have subscribers.
#[derive(Clone, Debug, Default)]
pub(super) struct EditionWatches {
    editions: Arc<Mutex<HashMap<Key, watch::Sender<WatchState>>>>,
    names: Arc<Mutex<HashMap<EditionName, (Instant, EditionRow)>>>,
}

impl EditionWatches {
    fn editions(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<WatchState>>> {
        self.editions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to an edition. The first subscriber starts its reader.
    fn subscribe(
        &self,
        service: &Service,
        row: EditionRow,
        caller: &Caller,
    ) -> watch::Receiver<WatchState> {
        let key = (row.1.id, caller.is_organiser());
        let mut editions = self.editions();
        if let Some(subscribers) = editions.get(&key) {
            return subscribers.subscribe();
        }
        let (subscribers, states) = watch::channel(None);
        editions.insert(key, subscribers.clone());
        let watches = self.clone();
        let service = service.clone();
        let caller = caller.clone();
        tokio::spawn(
            async move { watches.publish(&service, key, &row, &caller, &subscribers).await },
        );
        states
    }

    /// Publishes each state of an edition until it is over or has no subscribers.
    async fn publish(
        &self,
        service: &Service,
        key: Key,
        (tournament, edition): &EditionRow,
        caller: &Caller,
        subscribers: &watch::Sender<WatchState>,
    ) {
        let mut changes = service.changes.subscribe();
        loop {
            service.queue.metrics().edition_reads.inc();
            let state = service.edition_state(tournament, edition, caller).await;
            let is_over = !matches!(&state, Ok((_, false)));
            if is_over {
                // Later subscribers start a new reader.
                self.editions().remove(&key);
            }
            subscribers.send_if_modified(|last| {
                let is_same = match (&*last, &state) {
                    (Some(Ok((last, _))), Ok((state, _))) => {
                        without_estimate(last.clone()) == without_estimate(state.clone())
                    }
                    _ => false,
                };
                let is_changed = is_over || !is_same;
                if is_changed {
                    *last = Some(state);
                }
                is_changed
            });
            if is_over {
                return;
            }
            let has_changed = changes.changed_unless(subscribers.closed()).await;
            if !has_changed && self.remove_unused(service, key, subscribers) {
                return;
            }
        }
    }

    /// Removes an edition if it has no subscribers or the coordinator stops. Returns whether it
    /// did.
    fn remove_unused(
        &self,
        service: &Service,
        key: Key,
        subscribers: &watch::Sender<WatchState>,
    ) -> bool {
        // Because of the lock, no subscriber can be added between the check and the removal.
        let mut editions = self.editions();
        let is_unused = subscribers.receiver_count() == 0 || service.changes.is_stopped();
        if is_unused {
            editions.remove(&key);
        }
        is_unused
    }

    /// The edition of a name, if it was resolved a moment ago and its stream shows that it still
    /// runs. A client whose edition is over requests the edition that replaced it, so the name must
    /// be resolved again.
    fn recent_edition(&self, name: &EditionName, caller: &Caller) -> Option<EditionRow> {
        let entry = self.names.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let (resolved_at, row) = entry?;
        let key = (row.1.id, caller.is_organiser());
        let editions = self.editions();
        let is_running = matches!(&*editions.get(&key)?.borrow(), Some(Ok((_, false))));
        (is_running && resolved_at.elapsed() < MAX_NAME_AGE).then_some(row)
    }

    fn remember_name(&self, name: EditionName, row: &EditionRow) {
        // If the edition is over, the name may mean another edition at any moment.
        if row.1.state != EditionState::Running {
            return;
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MAX_NAMES {
            names.retain(|_, (resolved_at, _)| resolved_at.elapsed() < MAX_NAME_AGE);
        }
        if names.len() < MAX_NAMES {
            names.insert(name, (Instant::now(), row.clone()));
        }
    }
}

impl Service {
    /// Streams the progress of an edition: its present state, then every change until it is over.
    pub(crate) async fn watch_edition(
        &self,
        caller: &Caller,
        WatchEditionRequest { tournament, edition }: WatchEditionRequest,
    ) -> Result<ResponseStream<Edition>> {
        let name = (tournament, edition);
        let row = if let Some(row) = self.edition_watches.recent_edition(&name, caller) {
            row
        } else {
            let tournament = self.tournament(&name.0).await?;
            let edition =
                self.edition_or_default(&tournament, edition, DefaultEdition::Newest, None).await?;
            let row = (tournament, edition);
            self.edition_watches.remember_name(name, &row);
            row
        };
        let states = self.edition_watches.subscribe(self, row, caller);
        let (sender, responses) = mpsc::channel(1);
        tokio::spawn(forward_changes(states, sender));
        Ok(Box::pin(ReceiverStream::new(responses)))
    }
}

/// Forwards the changes of an edition to one subscriber until the subscriber leaves or the edition
/// is over.
async fn forward_changes(
    mut states: watch::Receiver<WatchState>,
    sender: mpsc::Sender<Result<Edition>>,
) {
    let mut last_sent = None;
    loop {
        let state = states.borrow_and_update().clone();
        if let Some(state) = state {
            let is_over = !matches!(&state, Ok((_, false)));
            let response = state.map(|(edition, _)| edition);
            let edition = response.as_ref().ok().cloned().map(without_estimate);
            if is_over || edition != last_sent {
                last_sent = edition;
                if sender.send(response).await.is_err() || is_over {
                    return;
                }
            }
        }
        tokio::select! {
            () = sender.closed() => return,
            result = states.changed() => if result.is_err() { return },
        }
    }
}

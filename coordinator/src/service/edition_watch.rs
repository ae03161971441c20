//! Streams of an edition's progress. Each edition is read once for all its subscribers, whether
//! they are one or ten thousand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::{Edition, WatchEditionRequest};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::tournaments::without_estimate;
use super::{Caller, ResponseStream, Result, Service, Which};
use crate::db::editions::{self, EditionState};
use crate::db::tournaments;

/// How long the edition that a request names stays resolved.
const MAX_NAME_AGE: Duration = Duration::from_millis(500);
/// Resolved names in memory.
const MAX_NAMES: usize = 256;

/// An edition, and whether organisers watch it: they may see more than others.
type Key = (EditionId, bool);

/// How an edition stands and whether it is over. None until it was read.
type WatchState = Option<Result<(Edition, bool)>>;

/// An edition with its tournament.
type EditionRow = (tournaments::Tournament, editions::Edition);

/// A tournament's name and an edition number, as requests name an edition.
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
            let now = service.edition_state(tournament, edition, caller).await;
            let is_over = !matches!(&now, Ok((_, false)));
            if is_over {
                // Later subscribers start a new reader.
                self.editions().remove(&key);
            }
            subscribers.send_if_modified(|last| {
                let same = match (&*last, &now) {
                    (Some(Ok((last, _))), Ok((now, _))) => {
                        without_estimate(last.clone()) == without_estimate(now.clone())
                    }
                    _ => false,
                };
                let changed = is_over || !same;
                if changed {
                    *last = Some(now);
                }
                changed
            });
            if is_over {
                return;
            }
            let goes_on = changes.changed_unless(subscribers.closed()).await;
            if !goes_on && self.remove_unused(service, key, subscribers) {
                return;
            }
        }
    }

    /// Removes an edition that has no subscribers or whose coordinator stops.
    fn remove_unused(
        &self,
        service: &Service,
        key: Key,
        subscribers: &watch::Sender<WatchState>,
    ) -> bool {
        // The lock keeps new subscribers out between the check and the removal.
        let mut editions = self.editions();
        let is_unused = subscribers.receiver_count() == 0 || service.changes.is_stopped();
        if is_unused {
            editions.remove(&key);
        }
        is_unused
    }

    /// The edition that a name meant a moment ago, if its stream still says that it runs. A client
    /// that was told that it is over asks for the edition that replaced it.
    fn resolved(&self, name: &EditionName, caller: &Caller) -> Option<EditionRow> {
        let found = self.names.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let (since, row) = found?;
        let key = (row.1.id, caller.is_organiser());
        let editions = self.editions();
        let runs = matches!(&*editions.get(&key)?.borrow(), Some(Ok((_, false))));
        (runs && since.elapsed() < MAX_NAME_AGE).then_some(row)
    }

    fn remember_name(&self, name: EditionName, row: &EditionRow) {
        // An edition that is over may be followed by another at any moment.
        if row.1.state != EditionState::Running {
            return;
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MAX_NAMES {
            names.retain(|_, (since, _)| since.elapsed() < MAX_NAME_AGE);
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
        let row = if let Some(row) = self.edition_watches.resolved(&name, caller) {
            row
        } else {
            let tournament = self.tournament(&name.0).await?;
            let edition = self.which(&tournament, edition, Which::Newest, None).await?;
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
    let mut last = None;
    loop {
        let state = states.borrow_and_update().clone();
        if let Some(state) = state {
            let is_over = !matches!(&state, Ok((_, false)));
            let response = state.map(|(edition, _)| edition);
            let seen = response.as_ref().ok().cloned().map(without_estimate);
            if is_over || seen != last {
                last = seen;
                if sender.send(response).await.is_err() || is_over {
                    return;
                }
            }
        }
        tokio::select! {
            () = sender.closed() => return,
            changed = states.changed() => if changed.is_err() { return },
        }
    }
}

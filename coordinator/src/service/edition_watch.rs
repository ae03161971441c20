//! How an edition goes, told to all who watch it: it is looked at once for all of them, be they one
//! or ten thousand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::{Edition, WatchEditionRequest};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::tournaments::without_forecast;
use super::{Answers, Caller, Result, Service, Which};
use crate::db::editions::{self, EditionState};
use crate::db::tournaments;

/// How long it is remembered which edition a name stands for.
const REMEMBERED: Duration = Duration::from_millis(500);
/// Names that are remembered.
const NAMES: usize = 256;

/// An edition, and whether it is seen by those who may see everything or by all others.
type Key = (EditionId, bool);

/// How an edition stands and whether it is over; nothing, until it was looked at.
type State = Option<Result<(Edition, bool)>>;

/// An edition with its tournament.
type Named = (tournaments::Tournament, editions::Edition);

/// Editions as they were asked for, by tournament and number, and when they were looked up.
type Names = HashMap<(String, Option<i32>), (Instant, Named)>;

/// The editions that are watched.
#[derive(Clone, Debug, Default)]
pub(super) struct EditionWatches {
    watched: Arc<Mutex<HashMap<Key, watch::Sender<State>>>>,
    names: Arc<Mutex<Names>>,
}

impl EditionWatches {
    fn watched(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<State>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who watch an edition, and begins to look at it for them if this is the first.
    fn join(&self, service: &Service, named: Named, caller: &Caller) -> watch::Receiver<State> {
        let key = (named.1.id, caller.organises());
        let mut watched = self.watched();
        if let Some(watchers) = watched.get(&key) {
            return watchers.subscribe();
        }
        let (watchers, joined) = watch::channel(None);
        watched.insert(key, watchers.clone());
        let (watches, service, caller) = (self.clone(), service.clone(), caller.clone());
        tokio::spawn(async move { watches.look(&service, key, &named, &caller, &watchers).await });
        joined
    }

    /// Looks at an edition for those who watch it, until none do or it is over.
    async fn look(
        &self,
        service: &Service,
        key: Key,
        (tournament, edition): &Named,
        caller: &Caller,
        watchers: &watch::Sender<State>,
    ) {
        let mut changes = service.changes.watch();
        loop {
            service.queue.metrics().edition_reads.inc();
            let now = service.state_of(tournament, edition, caller).await;
            let over = !matches!(&now, Ok((_, false)));
            if over {
                // Whoever comes later looks again.
                self.watched().remove(&key);
            }
            watchers.send_if_modified(|last| {
                let same = match (&*last, &now) {
                    (Some(Ok((last, _))), Ok((now, _))) => {
                        without_forecast(last.clone()) == without_forecast(now.clone())
                    }
                    _ => false,
                };
                let told = over || !same;
                if told {
                    *last = Some(now);
                }
                told
            });
            if over {
                return;
            }
            let goes_on = changes.next_unless(watchers.closed()).await;
            if !goes_on && self.is_left(service, key, watchers) {
                return;
            }
        }
    }

    /// Whether none watch an edition any more, or none are to.
    fn is_left(&self, service: &Service, key: Key, watchers: &watch::Sender<State>) -> bool {
        // None join while this is looked at.
        let mut watched = self.watched();
        let left = watchers.receiver_count() == 0 || service.changes.have_ended();
        if left {
            watched.remove(&key);
        }
        left
    }

    /// The edition that a name stood for a moment ago, if it is still seen to run: who was told
    /// that it is over asks for the one that took its place.
    fn named(&self, name: &(String, Option<i32>), caller: &Caller) -> Option<Named> {
        let found = self.names.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let (since, named) = found?;
        let key = (named.1.id, caller.organises());
        let watched = self.watched();
        let runs = matches!(&*watched.get(&key)?.borrow(), Some(Ok((_, false))));
        (runs && since.elapsed() < REMEMBERED).then_some(named)
    }

    fn remember(&self, name: (String, Option<i32>), named: &Named) {
        // One that is over is followed by another at any moment.
        if named.1.state != EditionState::Running {
            return;
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NAMES {
            names.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        }
        if names.len() < NAMES {
            names.insert(name, (Instant::now(), named.clone()));
        }
    }
}

impl Service {
    /// How an edition goes: at once, and then whenever that changes, until it is over.
    pub(crate) async fn watch_edition(
        &self,
        caller: &Caller,
        WatchEditionRequest { tournament, edition }: WatchEditionRequest,
    ) -> Result<Answers<Edition>> {
        let name = (tournament, edition);
        let named = if let Some(named) = self.edition_watches.named(&name, caller) {
            named
        } else {
            let tournament = self.tournament(&name.0).await?;
            let edition = self.which(&tournament, edition, Which::Newest, None).await?;
            let named = (tournament, edition);
            self.edition_watches.remember(name, &named);
            named
        };
        let states = self.edition_watches.join(self, named, caller);
        let (sender, told) = mpsc::channel(1);
        tokio::spawn(pass_on(states, sender));
        Ok(Box::pin(ReceiverStream::new(told)))
    }
}

/// Passes on how an edition stands to one who watches it, until he leaves or it is over.
async fn pass_on(mut states: watch::Receiver<State>, sender: mpsc::Sender<Result<Edition>>) {
    let mut last = None;
    loop {
        let state = states.borrow_and_update().clone();
        if let Some(state) = state {
            let over = !matches!(&state, Ok((_, false)));
            let state = state.map(|(edition, _)| edition);
            let seen = state.as_ref().ok().cloned().map(without_forecast);
            if over || seen != last {
                last = seen;
                if sender.send(state).await.is_err() || over {
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

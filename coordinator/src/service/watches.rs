//! Streams of the states of values. Each value is read once for all its subscribers, so that
//! thousands of subscribers cost about as much as one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::{ChangeNotifier, Result};

/// A state that subscribers get.
pub(super) trait Watched: Clone + Send + Sync + 'static {
    /// Whether a subscriber that has this state needs no other.
    fn is_same(&self, other: &Self) -> bool;

    /// Whether no other state follows.
    fn is_last(&self) -> bool;
}

/// The newest state, or why it cannot be read. None until the first read.
type Newest<T> = Option<Result<T>>;

/// The values that have subscribers.
#[derive(Debug)]
pub(super) struct Watches<K, T>(Arc<Mutex<HashMap<K, watch::Sender<Newest<T>>>>>);

impl<K, T> Default for Watches<K, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static, T: Watched> Watches<K, T> {
    fn values(&self) -> MutexGuard<'_, HashMap<K, watch::Sender<Newest<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest state of a value that has subscribers.
    pub(super) fn newest(&self, key: &K) -> Option<Result<T>> {
        self.values().get(key)?.borrow().clone()
    }

    /// Subscribes to a value: its present state, then every change until the last state or an
    /// error. A state that is replaced quickly may be skipped. The first subscriber starts the
    /// reader.
    ///
    /// # Errors
    /// If the present state cannot be read.
    pub(super) async fn subscribe<F>(
        &self,
        changes: &ChangeNotifier,
        key: K,
        read: impl Fn() -> F + Send + 'static,
    ) -> Result<ReceiverStream<Result<T>>>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let mut states = self.receiver(changes, key, read);
        if let Ok(Some(Err(error))) = states.wait_for(Option::is_some).await.as_deref() {
            return Err(error.clone());
        }
        let (sender, stream) = mpsc::channel(1);
        tokio::spawn(forward(states, sender));
        Ok(ReceiverStream::new(stream))
    }

    fn receiver<F>(
        &self,
        changes: &ChangeNotifier,
        key: K,
        read: impl Fn() -> F + Send + 'static,
    ) -> watch::Receiver<Newest<T>>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let mut values = self.values();
        if let Some(subscribers) = values.get(&key) {
            return subscribers.subscribe();
        }
        let (subscribers, states) = watch::channel(None);
        values.insert(key.clone(), subscribers.clone());
        let watches = Self(Arc::clone(&self.0));
        let changes = changes.clone();
        tokio::spawn(async move { watches.publish(&changes, &key, read, &subscribers).await });
        states
    }

    /// Publishes each state of a value until the last one, or until it has no subscribers.
    async fn publish<F>(
        &self,
        changes: &ChangeNotifier,
        key: &K,
        read: impl Fn() -> F,
        subscribers: &watch::Sender<Newest<T>>,
    ) where
        F: Future<Output = Result<T>>,
    {
        let mut subscription = changes.subscribe();
        loop {
            let state = read().await;
            let is_last = is_last(&state);
            if is_last {
                // Later subscribers start a new reader.
                self.values().remove(key);
            }
            subscribers.send_if_modified(|newest| {
                let is_same = match (&*newest, &state) {
                    (Some(Ok(newest)), Ok(state)) => newest.is_same(state),
                    _ => false,
                };
                let is_changed = is_last || !is_same;
                if is_changed {
                    *newest = Some(state);
                }
                is_changed
            });
            if is_last {
                return;
            }
            let has_changed = subscription.changed_unless(subscribers.closed()).await;
            if !has_changed && self.remove_unused(changes, key, subscribers) {
                return;
            }
        }
    }

    /// Removes a value if it has no subscribers or the coordinator stops. Returns whether it did.
    fn remove_unused(
        &self,
        changes: &ChangeNotifier,
        key: &K,
        subscribers: &watch::Sender<Newest<T>>,
    ) -> bool {
        // Because of the lock, no subscriber can be added between the check and the removal.
        let mut values = self.values();
        let is_unused = subscribers.receiver_count() == 0 || changes.is_stopped();
        if is_unused {
            values.remove(key);
        }
        is_unused
    }
}

fn is_last<T: Watched>(state: &Result<T>) -> bool {
    state.as_ref().map_or(true, T::is_last)
}

/// Forwards the states of a value to one subscriber until the subscriber leaves.
async fn forward<T: Watched>(
    mut states: watch::Receiver<Newest<T>>,
    sender: mpsc::Sender<Result<T>>,
) {
    let mut last_sent: Option<T> = None;
    loop {
        let state = states.borrow_and_update().clone();
        if let Some(state) = state {
            let is_last = is_last(&state);
            let is_same =
                matches!((&last_sent, &state), (Some(last), Ok(state)) if last.is_same(state));
            if is_last || !is_same {
                last_sent = state.as_ref().ok().cloned();
                if sender.send(state).await.is_err() || is_last {
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

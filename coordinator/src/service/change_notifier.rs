//! Notifies streams of changes, and ends them when the coordinator stops.

use std::time::Duration;

use tokio::sync::watch;

/// How often a stream reads again without a notification, because another coordinator may have
/// changed the data.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long open streams and calls may take to end when the coordinator stops.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Announces changes. Clones announce to the same listeners.
#[derive(Clone, Debug)]
pub struct ChangeNotifier {
    changed: watch::Sender<()>,
    stopped: watch::Sender<bool>,
}

impl Default for ChangeNotifier {
    fn default() -> Self {
        Self { changed: watch::Sender::new(()), stopped: watch::Sender::new(false) }
    }
}

impl ChangeNotifier {
    /// Announces a change.
    pub fn notify(&self) {
        self.changed.send_replace(());
    }

    /// Ends all streams, because the coordinator is stopping.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Waits until the coordinator stops.
    pub(crate) async fn stopped(&self) {
        // An error means that the last sender was dropped, so the coordinator has stopped.
        drop(self.stopped.subscribe().wait_for(|stopped| *stopped).await);
    }

    /// Whether the coordinator is stopping.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Listens for changes from now on.
    pub(super) fn subscribe(&self) -> ChangeListener {
        ChangeListener { changed: self.changed.subscribe(), notifier: self.clone() }
    }
}

/// Waits for changes on behalf of a stream.
#[derive(Debug)]
pub(super) struct ChangeListener {
    changed: watch::Receiver<()>,
    notifier: ChangeNotifier,
}

impl ChangeListener {
    /// Waits until the stream must read again. False if `closed` completes first or the coordinator
    /// stops.
    pub(super) async fn changed_unless(&mut self, closed: impl Future<Output = ()>) -> bool {
        tokio::select! {
            () = closed => false,
            () = self.notifier.stopped() => false,
            _ = self.changed.changed() => true,
            () = tokio::time::sleep(POLL_INTERVAL) => true,
        }
    }
}

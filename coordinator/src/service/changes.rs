//! Wakes those who wait for a change, and ends their waiting when the coordinator stops.

use std::time::Duration;

use tokio::sync::watch;

/// How often a waiting stream reads again without being woken: another coordinator may have changed
/// what it shows.
const LOOK: Duration = Duration::from_secs(1);

/// How long streams and calls that are open when the coordinator stops may take to end.
pub(crate) const LAST_CALLS: Duration = Duration::from_secs(5);

/// Where changes are announced.
#[derive(Clone, Debug)]
pub struct Changes {
    news: watch::Sender<()>,
    over: watch::Sender<bool>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { news: watch::Sender::new(()), over: watch::Sender::new(false) }
    }
}

impl Changes {
    /// Something changed.
    pub fn tell(&self) {
        self.news.send_replace(());
    }

    /// The coordinator stops: streams without an end of their own end now.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }

    /// Waits until the coordinator stops.
    pub(crate) async fn ended(&self) {
        // It fails if the last sender is gone, which means the same.
        drop(self.over.subscribe().wait_for(|over| *over).await);
    }

    /// Whether the coordinator stops.
    pub(super) fn have_ended(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits for changes from now on.
    pub(super) fn watch(&self) -> Watching {
        Watching { news: self.news.subscribe(), changes: self.clone() }
    }
}

/// A stream that waits for changes.
#[derive(Debug)]
pub(super) struct Watching {
    news: watch::Receiver<()>,
    changes: Changes,
}

impl Watching {
    /// Waits until it is time to read again. False if `gone` comes first, or the coordinator stops.
    pub(super) async fn next_unless(&mut self, gone: impl Future<Output = ()>) -> bool {
        tokio::select! {
            () = gone => false,
            () = self.changes.ended() => false,
            _ = self.news.changed() => true,
            () = tokio::time::sleep(LOOK) => true,
        }
    }
}

//! The signals that ask a program to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Waits to be asked to end: by Ctrl-C, by the system, by a terminal that is closed.
#[derive(Debug)]
pub(crate) struct Endings([Signal; 4]);

impl Endings {
    /// Begins to watch: from now on these signals end nothing by themselves.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let watch = |kind| {
            let failed = |error| Failure::Negative(format!("cannot watch signals: {error}"));
            signal(kind).map_err(failed)
        };
        Ok(Self([
            watch(SignalKind::interrupt())?,
            watch(SignalKind::terminate())?,
            watch(SignalKind::hangup())?,
            watch(SignalKind::quit())?,
        ]))
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate, hangup, quit] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = quit.recv() => {}
        }
    }
}

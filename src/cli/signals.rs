//! The signals that stop a service.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Waits for SIGINT, SIGTERM, SIGHUP or SIGQUIT.
#[derive(Debug)]
pub(crate) struct ShutdownSignals([Signal; 4]);

impl ShutdownSignals {
    /// Starts watching; from now on these signals no longer kill the process.
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

    /// Waits for the next signal.
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

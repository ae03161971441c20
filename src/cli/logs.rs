//! Logs of the commands that run for long: for people on a terminal, as JSON elsewhere.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// What is logged where `RUST_LOG` says nothing: what is ours, and what warns.
const USUAL: &str = "warn,arbiter=info,arbiter_coordinator=info,arbiter_worker=info";

/// What is logged beside progress bars: what should not be.
const QUIET: &str = "error";

/// Begins to log to standard error.
pub(crate) fn start() {
    begin(USUAL);
}

/// Begins to log to standard error, but for what goes as it should.
pub(crate) fn start_quietly() {
    begin(QUIET);
}

fn begin(usual: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let logs = fmt().with_env_filter(filter).with_writer(io::stderr);
    // An embedding command may have begun to log before.
    drop(if io::stderr().is_terminal() {
        logs.with_target(false).compact().try_init()
    } else {
        logs.json().flatten_event(true).try_init()
    });
}

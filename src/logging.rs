//! The log of long-running commands: on standard error, as text on a terminal, otherwise as JSON.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log with the level of `RUST_LOG`, by default `info`.
pub(crate) fn start() {
    start_at(LevelFilter::INFO);
}

/// Starts the log for a command with other output, by default with level `error`.
pub(crate) fn start_quietly() {
    start_at(LevelFilter::ERROR);
}

/// The level of the log without `RUST_LOG`.
static DEFAULT_LEVEL: OnceLock<LevelFilter> = OnceLock::new();

/// The level of the log without `RUST_LOG`, for child processes.
pub(crate) fn default_level() -> LevelFilter {
    DEFAULT_LEVEL.get().copied().unwrap_or(LevelFilter::INFO)
}

fn start_at(level: LevelFilter) {
    // Ignore a second start, as `try_init` does.
    let _first = DEFAULT_LEVEL.set(level);
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    // Hide the database's notices.
    let hide_notices = "sqlx=warn".parse().expect("the directive is valid");
    let registry = tracing_subscriber::registry().with(filter.add_directive(hide_notices));
    let result = if io::stderr().is_terminal() {
        registry.with(fmt::layer().with_writer(io::stderr).with_target(false)).try_init()
    } else {
        registry.with(fmt::layer().json().with_writer(io::stderr)).try_init()
    };
    // An embedding command may have started the log before.
    drop(result);
}

//! What long-running commands tell about themselves: on standard error, for people where it is a
//! terminal, as JSON for machines otherwise.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log, of the detail that `RUST_LOG` asks for; otherwise of what an operator wants to
/// know.
pub(crate) fn start() {
    begin(LevelFilter::INFO);
}

/// Starts the log beside something else that is shown: only of what should not happen, unless
/// `RUST_LOG` asks for more.
pub(crate) fn start_quietly() {
    begin(LevelFilter::ERROR);
}

/// How much the log tells, if `RUST_LOG` does not say.
static USUAL: OnceLock<LevelFilter> = OnceLock::new();

/// How much the log tells if `RUST_LOG` does not say: for a process that we start.
pub(crate) fn usual() -> LevelFilter {
    USUAL.get().copied().unwrap_or(LevelFilter::INFO)
}

fn begin(usual: LevelFilter) {
    // The first start counts, as for the log itself.
    let _first = USUAL.set(usual);
    let filter = EnvFilter::builder().with_default_directive(usual.into()).from_env_lossy();
    // The database's notices are not about us.
    let quiet = "sqlx=warn".parse().expect("it is well formed");
    let registry = tracing_subscriber::registry().with(filter.add_directive(quiet));
    let started = if io::stderr().is_terminal() {
        registry.with(fmt::layer().with_writer(io::stderr).with_target(false)).try_init()
    } else {
        registry.with(fmt::layer().json().with_writer(io::stderr)).try_init()
    };
    // An embedding command may have started it before.
    drop(started);
}

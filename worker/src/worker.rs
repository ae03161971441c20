//! A worker leases lots from a coordinator, plays their matches and reports the results.
//!
//! # Theory of operation
//!
//! One task, the supervisor, owns all state: the connection to the coordinator, the state of each
//! slot, and the leases. It handles one event at a time: a message, the end of a job, a timer, a
//! shutdown request. Matches run on the threads of `slot.rs`; separate tasks fetch bundles.
//!
//! ```text
//! slot:   idle ──Lot──► fetching bundles ──► playing ──report in the spool──► idle
//!                           │                   ├── failed: Fault ──► pause ──► idle
//!                           │                   ├── lease lost ──► stopped ──► idle
//!                           └── failed: Fault   └── processes still dying ──► recovering ──► idle
//! report: in the spool ──sent, and sent again after each reconnection──► status ──► deleted
//!             ▲                                                            │   └──► refused: kept
//!             └──────────────── after a delay ◄──────── postponed ◄────────┘
//! ```
//!
//! *Capacity.* The worker announces each slot that becomes idle. The coordinator drops the
//! capacity of a broken connection, so the worker announces all idle slots again on the next one.
//!
//! *Leases* outlive connections. Matches continue while the connection is down. The worker renews
//! all leases, those of slots and those of reports in the spool, when it reconnects, and then three
//! times per lease period. It stops a match whose lease is lost.
//!
//! *Reports* are on disk before they are sent, until the coordinator acknowledges them. The worker
//! deletes both "accepted" and "late" reports: only the coordinator decides whether a lease still
//! counts. It sends a report again later if the coordinator cannot store it now, and moves a
//! refused one to the spool's folder `refused`.
//!
//! *Dying processes.* If a bot's processes die slowly, their slot is blocked until they are gone,
//! for minutes if necessary. That is no fault: the match counts. If all slots are blocked, the
//! worker logs an error, stays connected, and announces capacity again as slots recover.
//!
//! *Faults* are reported, and then the slot pauses, longer after each fault. Otherwise a broken
//! machine would use up the attempts of a whole tournament.
//!
//! *Shutdown* has two steps. First the worker takes no new jobs, and running ones may finish within
//! the drain time. After that, or at the second request, it stops them and gives their leases back.

mod connection;
mod report_delivery;
mod slot_state;
mod supervisor;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_games::{Games, RULES_VERSION};
use arbiter_proto::v1::{Hello, Runtime};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tracing::info;

use crate::bot_cache::BotCache;
use crate::connect::{ConnectError, ConnectOptions};
use crate::coordinator_clients::CoordinatorClients;
pub use crate::coordinator_clients::MAX_MESSAGE_LEN;
use crate::metrics::Metrics;
use crate::runtimes;
use crate::sandbox::{Host, Policy, SandboxError, recreate_dir};
use crate::slot::{SlotContext, Slots};
use crate::spool::{Spool, SpoolError, unusable};
use connection::Connection;
use supervisor::Supervisor;

/// A worker's settings.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The games that the worker can play.
    pub games: Games,
    /// Address and credentials of the coordinator.
    pub coordinator: ConnectOptions,
    /// The worker's name, the same after a restart. `None`: the spool generates one.
    pub name: Option<String>,
    /// Number of matches played at a time.
    pub slots: usize,
    /// Directory of unacknowledged reports. Not shared with another worker.
    pub spool: PathBuf,
    /// Directory of fetched bots, emptied at each start. Not shared with another worker.
    pub cache: PathBuf,
    /// Required isolation.
    pub policy: Policy,
    /// How long running jobs may take to finish after a shutdown request.
    pub drain: Duration,
}

/// Whether and how a worker should stop. The value never decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shutdown {
    /// Continue to work.
    #[default]
    None,
    /// Take no new jobs; let running ones finish.
    Drain,
    /// Stop running jobs and give their leases back.
    Now,
}

impl Shutdown {
    /// The next step after one more request.
    #[must_use]
    pub fn escalate(self) -> Self {
        if self == Self::None { Self::Drain } else { Self::Now }
    }
}

/// Why a worker cannot start or continue.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The connection options are invalid.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The spool or cache directory is not usable.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The machine offers less isolation than required.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The threads of the slots do not start.
    #[error("cannot start {slots} slots: {error}; try fewer --slots")]
    Slots {
        /// Number of slots requested.
        slots: usize,
        /// The cause.
        error: std::io::Error,
    },
    /// The coordinator refused the worker.
    #[error("{server} refused this worker: {cause}")]
    Refused {
        /// The coordinator's address.
        server: String,
        /// The coordinator's reason, with a remedy.
        cause: String,
    },
}

/// A worker that is ready to run.
#[derive(Debug)]
pub struct Worker {
    config: WorkerConfig,
    name: String,
    host: Arc<Host>,
    spool: Arc<Spool>,
    bot_cache: Arc<BotCache>,
    scratch: PathBuf,
    metrics: Arc<Metrics>,
    /// The interpreters and compilers that bots find here.
    runtimes: Vec<Runtime>,
}

impl Worker {
    /// Runs the sandbox's self-test and opens the worker's directories. Blocks the thread for some
    /// seconds.
    pub fn prepare(config: WorkerConfig) -> Result<Self, WorkerError> {
        config.coordinator.check()?;
        let spool = Arc::new(Spool::open(&config.spool)?);
        let name = config.name.clone().map_or_else(|| spool.name(), Ok)?;
        let start_time = Instant::now();
        let host = Arc::new(Host::prepare(config.policy)?);
        let prepare_seconds = start_time.elapsed().as_secs_f64();
        let metrics = Arc::new(Metrics::new(Arc::clone(&spool), &host, prepare_seconds));
        let bot_cache = Arc::new(BotCache::open(&config.cache, Arc::clone(&host))?);
        let scratch = config.cache.join("matches");
        recreate_dir(&scratch).map_err(|error| unusable(&scratch, error))?;
        info!("{}", host.summary());
        let runtimes = runtimes::detect(&host.program_path());
        Ok(Self { config, name, host, spool, bot_cache, scratch, metrics, runtimes })
    }

    /// The name that the coordinator sees.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The worker's metrics.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Runs until shutdown. Retries an unreachable coordinator without a limit. Unacknowledged
    /// reports stay in the spool.
    pub async fn run(self, shutdown: watch::Receiver<Shutdown>) -> Result<(), WorkerError> {
        let Self { config, name, host, spool, bot_cache, scratch, metrics, runtimes } = self;
        // Do not retry an incompatible coordinator. An unreachable one may start later.
        match config.coordinator.channel().await {
            Ok(_) | Err(ConnectError::Unreachable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let clients = CoordinatorClients::new(&config.coordinator)?;
        let hello = Hello {
            name,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            sandbox: host.summary(),
            rules: RULES_VERSION.to_owned(),
            slots: u32::try_from(config.slots).unwrap_or(u32::MAX),
            runtimes,
        };
        info!(
            name = hello.name,
            slots = config.slots,
            coordinator = config.coordinator.server,
            waiting = spool.leases().len(),
            "worker"
        );
        let refused = spool.count_refused();
        if refused > 0 {
            let folder = config.spool.join("refused");
            tracing::warn!(refused, folder = %folder.display(), "the spool has refused reports");
        }
        let (event_sender, slot_events) = mpsc::unbounded_channel();
        let context = SlotContext { host, spool: Arc::clone(&spool), scratch, metrics };
        let slots = Slots::start(config.slots, &context, &event_sender)
            .map_err(|error| WorkerError::Slots { slots: config.slots, error })?;
        let connection = Connection::new(clients.clone(), hello, Arc::clone(&spool));
        let supervisor =
            Supervisor::new(&config, clients, connection, context, bot_cache, slots, slot_events);
        supervisor.run(shutdown).await
    }
}

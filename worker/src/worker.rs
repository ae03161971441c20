//! A worker: asks a coordinator for lots, has them played, and delivers what they came to.
//!
//! # Theory of operation
//!
//! One task holds everything: the line to the coordinator, what each slot does, which leases are
//! held. Whatever happens (a message, the end of a lot, the time to renew, a wish to stop) it takes
//! in one thing after the other, and waits for nothing else; matches are played by the threads of
//! `slot.rs`, bundles are fetched by tasks of their own.
//!
//! ```text
//! slot:   idle ──Lot──► fetching bundles ──► playing ──report in the spool──► idle
//!                           │                   ├── failed: Fault ──► pause ──► idle
//!                           │                   ├── lease lost ──► stopped ──► idle
//!                           └── failed: Fault   └── something still dies ──► recovering ──► idle
//! report: in the spool ──sent, and after each reconnection sent again──► Verdict ──► deleted
//!             ▲                                                            │    └──► refused: kept
//!             └──────────────── after a while ◄──────── postponed ◄────────┘
//! ```
//!
//! *Room* is offered for each slot that becomes idle. Room that was offered on a line that broke is
//! forgotten on the other side, so all idle slots are offered again on the next one.
//!
//! *Leases* outlive lines. What is being played goes on while the line is broken; all leases that
//! are held, by slots or in the spool, are renewed as soon as it is back and then three times in the
//! time that they hold. A lease that is lost all the same is not played to its end.
//!
//! *Reports* are on disk before they are sent, and until the coordinator says what became of them.
//! Whether that is "accepted" or "late" is all the same here: it knows better, since the lease is
//! what makes a result count once. A report that cannot be stored at present is sent again after a
//! while; one that can never be stored is moved to the spool's folder `refused`.
//!
//! *What dies slowly* keeps its slot from playing until it is gone, for minutes if need be, and is no
//! fault: what the match came to counts. A worker none of whose slots can play says so, keeps its
//! line, and offers room again as they recover; it never ends because of that.
//!
//! *Faults* are told, and then the slot pauses, longer from fault to fault: a machine on which
//! everything fails must not eat up the attempts of a whole tournament.
//!
//! *The end* may be asked for twice. First no more is taken, and what is under way may end within
//! the time to drain; then, or at the second request, it is stopped and given back.

mod connection;
mod report_delivery;
mod supervisor;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_games::{Games, RULES_VERSION};
use arbiter_proto::v1::Hello;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tracing::info;

use crate::bot_cache::Library;
use crate::connect::{Access, ConnectError};
use crate::coordinator_clients::Callers;
pub use crate::coordinator_clients::LONGEST_MESSAGE;
use crate::metrics::Metrics;
use crate::sandbox::{Host, Policy, SandboxError, recreate_dir};
use crate::slot::{Slots, Workshop};
use crate::spool::{Spool, SpoolError, unusable};
use connection::Line;
use supervisor::Desk;

/// What a worker is told.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The games that it plays.
    pub games: Games,
    /// The coordinator.
    pub access: Access,
    /// The worker's name, always the same for the same worker; one is made up if there is none.
    pub name: Option<String>,
    /// How many matches are played at a time.
    pub slots: usize,
    /// Where reports wait until they are acknowledged: a directory of this worker alone.
    pub spool: PathBuf,
    /// Where bots are kept: a directory of this worker alone, which begins empty each time.
    pub cache: PathBuf,
    /// How much isolation is asked for.
    pub policy: Policy,
    /// How long lots under way may take to end, once the worker is to stop.
    pub drain: Duration,
}

/// Whether a worker is to stop. It can only become more urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// It is not.
    #[default]
    NotYet,
    /// It takes no more lots; those under way may end.
    Drain,
    /// It gives back what is under way.
    Now,
}

impl Ending {
    /// What is asked for by one more request.
    #[must_use]
    pub fn sooner(self) -> Self {
        if self == Self::NotYet { Self::Drain } else { Self::Now }
    }
}

/// Why a worker cannot work.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// What it was told means nothing.
    #[error(transparent)]
    Access(#[from] ConnectError),
    /// A directory cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The machine gives less isolation than was asked for.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Its slots cannot be started.
    #[error("cannot start {slots} slots: {error}; try fewer --slots")]
    Slots {
        /// How many there were to be.
        slots: usize,
        /// Why there are not.
        error: std::io::Error,
    },
    /// The coordinator does not want it.
    #[error("{server}: refused: {cause}")]
    Refused {
        /// Who refused.
        server: String,
        /// Why.
        cause: String,
    },
}

/// A worker, ready to begin.
#[derive(Debug)]
pub struct Worker {
    config: WorkerConfig,
    name: String,
    host: Arc<Host>,
    spool: Arc<Spool>,
    library: Arc<Library>,
    scratch: PathBuf,
    metrics: Arc<Metrics>,
}

impl Worker {
    /// Finds out what this machine isolates and opens the worker's directories. That takes some
    /// seconds, and blocks the thread.
    pub fn prepare(config: WorkerConfig) -> Result<Self, WorkerError> {
        config.access.check()?;
        let spool = Arc::new(Spool::open(&config.spool)?);
        let name = config.name.clone().map_or_else(|| spool.name(), Ok)?;
        let began = Instant::now();
        let host = Arc::new(Host::prepare(config.policy)?);
        let looked = began.elapsed().as_secs_f64();
        let metrics = Arc::new(Metrics::new(Arc::clone(&spool), &host, looked));
        let library = Arc::new(Library::open(&config.cache, Arc::clone(&host))?);
        let scratch = config.cache.join("matches");
        recreate_dir(&scratch).map_err(|error| unusable(&scratch, error))?;
        info!("{}", host.summary());
        Ok(Self { config, name, host, spool, library, scratch, metrics })
    }

    /// What the coordinator knows it as.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What happens here, counted.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Works until it is asked to end; a coordinator that cannot be reached is called again and
    /// again. Reports that nobody acknowledged stay in the spool.
    pub async fn run(self, ending: watch::Receiver<Ending>) -> Result<(), WorkerError> {
        let Self { config, name, host, spool, library, scratch, metrics } = self;
        // Those who do not fit together are told so at once; who does not answer may do so later.
        match config.access.channel().await {
            Ok(_) | Err(ConnectError::Unreachable { .. }) => {}
            Err(unfit) => return Err(unfit.into()),
        }
        let callers = Callers::new(&config.access)?;
        let hello = Hello {
            name,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            sandbox: host.summary(),
            rules: RULES_VERSION.to_owned(),
            slots: u32::try_from(config.slots).unwrap_or(u32::MAX),
        };
        info!(
            name = hello.name,
            slots = config.slots,
            coordinator = config.access.server,
            waiting = spool.leases().len(),
            "worker"
        );
        let refused = spool.count_refused();
        if refused > 0 {
            let folder = config.spool.join("refused");
            tracing::warn!(refused, folder = %folder.display(), "reports were refused before");
        }
        let (said, ends) = mpsc::unbounded_channel();
        let workshop = Workshop { host, spool: Arc::clone(&spool), scratch, metrics };
        let slots = Slots::start(config.slots, &workshop, &said)
            .map_err(|error| WorkerError::Slots { slots: config.slots, error })?;
        let line = Line::new(callers.clone(), hello, Arc::clone(&spool));
        let desk = Desk::new(&config, callers, line, workshop, library, slots, ends);
        desk.run(ending).await
    }
}

//! `arbiter worker`: plays matches for a coordinator.

use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_worker::connect::{ConnectError, ConnectOptions};
use arbiter_worker::sandbox::Policy;
use arbiter_worker::worker::{Shutdown, WorkerConfig, WorkerError};
use clap::Args;
use tokio::sync::watch;

use super::client::Servers;
use super::signals::ShutdownSignals;
use super::telemetry::TelemetryArgs;
use super::time_arg::duration;
use crate::failure::Failure;
use crate::logging;
use crate::telemetry::{Sources, WorkerSource};
use crate::worker_process::ParentLine;

/// Run a worker: play matches for a coordinator until stopped.
///
/// SIGTERM or Ctrl-C waits for running matches (see --drain) and returns the others. A second
/// signal returns all matches immediately. Reports that the coordinator has not acknowledged stay
/// in the spool and are sent at the next start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter worker --coordinator http://127.0.0.1:7700
  arbiter worker --coordinator https://arbiter.example:7700 --slots 8 \\
      --sandbox strict
  ARBITER_SERVER=http://arbiter:7700 ARBITER_TOKEN=… \\
      arbiter worker --spool /data/spool")]
pub(super) struct Worker {
    /// The coordinator: http://HOST:PORT, or https://HOST:PORT for TLS. With several, separated by
    /// commas, the worker fails over to the next.
    #[arg(long, value_name = "URL", env = "ARBITER_SERVER")]
    coordinator: Servers,
    /// How many matches to play at once. By default the number of processors minus one: the
    /// referees use the remaining one. Bots run only on the processors of their slot.
    #[arg(long, value_name = "N", env = "ARBITER_SLOTS")]
    slots: Option<usize>,
    /// Where reports wait for acknowledgement; each worker needs its own directory. By default
    /// /var/lib/arbiter-worker for root, else in the user's state directory.
    #[arg(long, value_name = "DIR", env = "ARBITER_SPOOL")]
    spool: Option<PathBuf>,
    /// The worker's name; by default from the host name, and constant for a spool.
    #[arg(long, value_name = "NAME", env = "ARBITER_NAME")]
    name: Option<String>,
    /// How bots are isolated: auto, strict, namespaces, landlock or off.
    #[arg(long, value_name = "POLICY", default_value = "auto", env = "ARBITER_SANDBOX")]
    sandbox: Policy,
    /// The worker's access token.
    #[arg(long, value_name = "TOKEN", env = "ARBITER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Certificate authorities to trust for the coordinator (PEM); by default the system's.
    #[arg(long, value_name = "FILE", env = "ARBITER_CA")]
    ca: Option<PathBuf>,
    /// The worker's client certificate (PEM).
    #[arg(long, value_name = "FILE", env = "ARBITER_CERT", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[arg(long, value_name = "FILE", env = "ARBITER_KEY", requires = "cert")]
    key: Option<PathBuf>,
    /// How long running matches may take to finish when the worker stops.
    #[arg(long, value_name = "TIME", default_value = "30s", env = "ARBITER_DRAIN")]
    #[arg(value_parser = duration)]
    drain: Duration,
    /// The cache directory for bots; may be deleted between runs.
    #[arg(long, value_name = "DIR", hide = true)]
    cache: Option<PathBuf>,
    /// Run as the worker of `arbiter up`: standard input is a socket to it.
    #[arg(long, hide = true)]
    supervised: bool,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

/// Maximum number of slots of one worker.
const MAX_SLOTS: usize = 1024;

impl Worker {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let telemetry = self.telemetry.clone();
        let supervised = self.supervised;
        let config = self.config(games)?;
        logging::start();
        let (shutdown_sender, shutdown) = watch::channel(Shutdown::None);
        let parent = supervised.then(|| ParentLine::take(shutdown_sender.clone())).transpose()?;
        super::runtime()?.block_on(async {
            let mut signals = ShutdownSignals::watch()?;
            let prepared_telemetry = telemetry.begin("arbiter-worker").await?;
            let prepared = prepare(config).await;
            if let Some(parent) = &parent {
                parent.report(&prepared);
            }
            let worker = match prepared {
                // The parent process reports the error.
                Err(_) if supervised => return Err(Failure::OutputClosed),
                prepared => prepared?,
            };
            let metrics = WorkerSource::InProcess(worker.metrics());
            let telemetry =
                prepared_telemetry.serve(Sources { coordinator: None, worker: Some(metrics) });
            let running = worker.run(shutdown);
            tokio::pin!(running);
            let result = loop {
                tokio::select! {
                    result = &mut running => break result.map_err(failure),
                    // The parent process gets the same signals and sends requests.
                    () = signals.next() => if !supervised {
                        shutdown_sender.send_modify(|shutdown| *shutdown = shutdown.escalate());
                    },
                }
            };
            telemetry.stop().await;
            result
        })
    }

    fn config(self, games: &Games) -> Result<WorkerConfig, Failure> {
        let Self { coordinator, slots, spool, cache, name, sandbox, token, .. } = self;
        let Self { ca, cert, key, drain, .. } = self;
        let slots = slots.unwrap_or_else(default_slots);
        if !(1..=MAX_SLOTS).contains(&slots) {
            let cause = format!("--slots {slots}: use 1 to {MAX_SLOTS}");
            return Err(Failure::Usage(cause));
        }
        let spool = spool.map_or_else(default_spool, Ok)?;
        let token = token.filter(|token| !token.is_empty());
        Ok(WorkerConfig {
            games: games.clone(),
            coordinator: ConnectOptions { server: coordinator.0, token, ca, cert, key },
            name,
            slots,
            cache: cache.unwrap_or_else(|| spool.join("cache")),
            spool,
            policy: sandbox,
            drain,
        })
    }
}

/// Prepares a worker. This probes the isolation of the machine, which takes a while.
async fn prepare(config: WorkerConfig) -> Result<arbiter_worker::worker::Worker, Failure> {
    let prepare = || arbiter_worker::worker::Worker::prepare(config);
    match tokio::task::spawn_blocking(prepare).await {
        Ok(prepared) => prepared.map_err(failure),
        Err(panicked) => Err(Failure::Negative(format!("cannot start a worker: {panicked}"))),
    }
}

/// One slot for each usable processor except one.
pub(super) fn default_slots() -> usize {
    thread::available_parallelism().map_or(1, |processors| (processors.get() - 1).max(1))
}

/// The default spool directory.
fn default_spool() -> Result<PathBuf, Failure> {
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = || env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/arbiter-worker".into());
    }
    let directory = state().filter(|path| path.is_absolute());
    let missing = || Failure::usage("no home directory for the spool; use --spool");
    directory.map(|state| state.join("arbiter/spool")).ok_or_else(missing)
}

/// The failure of a worker that cannot continue.
fn failure(error: WorkerError) -> Failure {
    match error {
        WorkerError::Connect(ConnectError::InvalidOption { .. }) => Failure::usage(error),
        error => Failure::Refused(error.to_string()),
    }
}

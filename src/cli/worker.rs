//! `arbiter worker`: plays lots of matches for a coordinator.

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
use super::moments::duration;
use super::observe::ObserveArgs;
use super::signals::Endings;
use crate::failure::Failure;
use crate::logs;
use crate::observe::{Sources, WorkerSource};
use crate::worker_process::ParentLine;

/// Play lots of matches for a coordinator until told to stop.
///
/// SIGTERM or Ctrl-C lets the lots under way end, and gives back what does not end in time; a
/// second one gives everything back at once. Reports that the coordinator has not acknowledged
/// stay in the spool, and are sent at the next start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter worker --coordinator http://127.0.0.1:7700
  arbiter worker --coordinator https://arbiter.example:7700 --slots 8 --sandbox strict
  ARBITER_SERVER=http://arbiter:7700 ARBITER_TOKEN=… arbiter worker --spool /data/spool")]
pub(super) struct Worker {
    /// The coordinator: http://HOST:PORT, or https://HOST:PORT for TLS. Of several, with commas
    /// between them, the next one is called when one is gone.
    #[arg(long, value_name = "URL", env = "ARBITER_SERVER")]
    coordinator: Servers,
    /// Matches at a time. By default one for each processor but one, which is left to the referees;
    /// a bot thinks on the processors of its slot alone.
    #[arg(long, value_name = "N", env = "ARBITER_SLOTS")]
    slots: Option<usize>,
    /// Where reports wait until they are acknowledged; each worker of a machine has its own. By
    /// default /var/lib/arbiter-worker for root, else below the user's state directory.
    #[arg(long, value_name = "DIR", env = "ARBITER_SPOOL")]
    spool: Option<PathBuf>,
    /// What the worker is called; by default after the machine, and always the same for a spool.
    #[arg(long, value_name = "NAME", env = "ARBITER_NAME")]
    name: Option<String>,
    /// How bots are isolated: auto, strict, namespaces, landlock or off.
    #[arg(long, value_name = "POLICY", default_value = "auto", env = "ARBITER_SANDBOX")]
    sandbox: Policy,
    /// The token that lets the worker in.
    #[arg(long, value_name = "TOKEN", env = "ARBITER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Certificates of those who vouch for the coordinator, as PEM; by default the system's.
    #[arg(long, value_name = "FILE", env = "ARBITER_CA")]
    ca: Option<PathBuf>,
    /// The worker's own certificate, as PEM.
    #[arg(long, value_name = "FILE", env = "ARBITER_CERT", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of that certificate, as PEM.
    #[arg(long, value_name = "FILE", env = "ARBITER_KEY", requires = "cert")]
    key: Option<PathBuf>,
    /// How long lots under way may take to end when the worker is to stop.
    #[arg(long, value_name = "TIME", default_value = "30s", env = "ARBITER_DRAIN")]
    #[arg(value_parser = duration)]
    drain: Duration,
    /// Where bots are kept, which may be deleted between runs.
    #[arg(long, value_name = "DIR", hide = true)]
    cache: Option<PathBuf>,
    /// Be the worker of `arbiter up`, with which standard input is a socket.
    #[arg(long, hide = true)]
    supervised: bool,
    #[command(flatten)]
    observe: ObserveArgs,
}

/// The most slots of one worker.
const MOST_SLOTS: usize = 1024;

impl Worker {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let (observe, supervised) = (self.observe.clone(), self.supervised);
        let config = self.config(games)?;
        logs::start();
        let (ask, ending) = watch::channel(Shutdown::None);
        let parent = supervised.then(|| ParentLine::take(ask.clone())).transpose()?;
        super::runtime()?.block_on(async {
            let mut signals = Endings::watch()?;
            let observing = observe.begin("arbiter-worker").await?;
            let prepared = prepare(config).await;
            if let Some(parent) = &parent {
                parent.tell(&prepared);
            }
            let worker = match prepared {
                // The parent says so.
                Err(_) if supervised => return Err(Failure::Unread),
                prepared => prepared?,
            };
            let metrics = WorkerSource::Here(worker.metrics());
            let observing = observing.of(Sources { coordinator: None, worker: Some(metrics) });
            let working = worker.run(ending);
            tokio::pin!(working);
            let done = loop {
                tokio::select! {
                    done = &mut working => break done.map_err(failure),
                    // A parent gets the same signals, and says what is to be done.
                    () = signals.next() => if !supervised {
                        ask.send_modify(|ending| *ending = ending.escalate());
                    },
                }
            };
            observing.end().await;
            done
        })
    }

    fn config(self, games: &Games) -> Result<WorkerConfig, Failure> {
        let Self { coordinator, slots, spool, cache, name, sandbox, token, .. } = self;
        let Self { ca, cert, key, drain, .. } = self;
        let slots = slots.unwrap_or_else(default_slots);
        if !(1..=MOST_SLOTS).contains(&slots) {
            let cause = format!("--slots {slots}: ask for 1 to {MOST_SLOTS}");
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

/// Finds out what the machine isolates, which takes a while.
async fn prepare(config: WorkerConfig) -> Result<arbiter_worker::worker::Worker, Failure> {
    let prepare = || arbiter_worker::worker::Worker::prepare(config);
    match tokio::task::spawn_blocking(prepare).await {
        Ok(prepared) => prepared.map_err(failure),
        Err(panicked) => Err(Failure::Negative(format!("cannot start a worker: {panicked}"))),
    }
}

/// One for each processor that we may use, but for one.
pub(super) fn default_slots() -> usize {
    thread::available_parallelism().map_or(1, |processors| (processors.get() - 1).max(1))
}

/// Where reports wait if nobody says where.
fn default_spool() -> Result<PathBuf, Failure> {
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = || env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/arbiter-worker".into());
    }
    let found = state().filter(|path| path.is_absolute());
    let lost = || Failure::usage("there is no home directory to keep reports in; give a --spool");
    found.map(|state| state.join("arbiter/spool")).ok_or_else(lost)
}

/// The exit code of a worker that cannot go on.
fn failure(error: WorkerError) -> Failure {
    match error {
        WorkerError::Connect(ConnectError::InvalidOption { .. }) => Failure::usage(error),
        error => Failure::Refused(error.to_string()),
    }
}

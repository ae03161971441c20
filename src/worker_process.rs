//! Runs the worker of this machine as a supervised child process.
//!
//! A separate process protects the coordinator from the effects of bots on the worker. A worker
//! that exits is restarted after an increasing delay. The child runs the command `worker`, with a
//! socket as standard input. The parent sends requests as JSON lines on this socket: for metrics,
//! and to stop. When the parent's end of the socket closes for any reason, the worker and its bots
//! exit.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use arbiter_worker::metrics::Metrics;
use arbiter_worker::worker::{Shutdown, Worker, WorkerConfig};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{error, info};

use crate::failure::Failure;
use crate::logging;

/// The first delay before a restart; it doubles up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);
/// After this running time, the delay starts from [`FIRST_DELAY`] again.
const STABLE_TIME: Duration = Duration::from_secs(60);
/// How long a worker may take to return its matches before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a request to the worker and of its reply.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a line from a worker, in bytes.
const MAX_LINE: u64 = 16 << 20;

/// Variables of standalone workers, which a supervised worker must not inherit.
const STANDALONE_VARIABLES: [&str; 5] =
    ["ARBITER_NAME", "ARBITER_CA", "ARBITER_CERT", "ARBITER_KEY", "ARBITER_METRICS"];
/// The variable with the URL of the trace collector.
const OTLP_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A request to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// Send the metrics.
    Metrics,
    /// Finish the running matches, then exit.
    Drain,
    /// Return the running matches and exit.
    Stop,
}

/// A reply of the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// It is ready to connect to the coordinator.
    Prepared,
    /// It cannot run on this machine.
    Failed { code: u8, message: String },
    /// Its metrics.
    Metrics(WorkerMetrics),
}

/// The metrics of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerMetrics {
    /// Whether it is connected to a coordinator.
    pub(crate) connected: bool,
    /// The Prometheus text.
    pub(crate) text: String,
}

impl WorkerMetrics {
    /// The metrics of a worker in this process.
    pub(crate) fn of(metrics: &Metrics) -> Self {
        let mut text = String::new();
        metrics.encode(&mut text).expect("writing to a string does not fail");
        Self { connected: metrics.is_connected(), text }
    }
}

/// The worker's end of the socket.
#[derive(Clone, Debug)]
pub(crate) struct ParentLine {
    socket: Arc<Mutex<UnixStream>>,
    metrics: Arc<OnceLock<Arc<Metrics>>>,
}

impl ParentLine {
    /// Takes the socket from standard input, and replaces standard input by `/dev/null`. A thread
    /// then handles requests, and exits the process when the parent closes the socket.
    pub(crate) fn take(shutdown_sender: watch::Sender<Shutdown>) -> Result<Self, Failure> {
        let take = || {
            let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
            let requests = BufReader::new(socket.try_clone()?);
            socket.peer_addr()?;
            rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
            Ok((socket, requests))
        };
        let (socket, requests) = take().map_err(|error: io::Error| {
            Failure::Usage(format!("--supervised is only for `arbiter up`: no socket: {error}"))
        })?;
        let line = Self { socket: Arc::new(Mutex::new(socket)), metrics: Arc::default() };
        let handler = line.clone();
        thread::spawn(move || {
            for request in requests.lines() {
                let request = request.ok().and_then(|line| serde_json::from_str(&line).ok());
                let Some(request) = request else { break };
                handler.handle(request, &shutdown_sender);
            }
            process::exit(0);
        });
        Ok(line)
    }

    fn handle(&self, request: Request, shutdown_sender: &watch::Sender<Shutdown>) {
        let shutdown = match request {
            Request::Metrics => {
                let metrics = self.metrics.get().map(|metrics| WorkerMetrics::of(metrics));
                return self.send(&Reply::Metrics(metrics.unwrap_or_default()));
            }
            Request::Drain => Shutdown::Drain,
            Request::Stop => Shutdown::Now,
        };
        shutdown_sender.send_modify(|current| *current = shutdown.max(*current));
    }

    /// Reports the result of the preparation.
    pub(crate) fn report(&self, prepared: &Result<Worker, Failure>) {
        match prepared {
            Ok(worker) => {
                // The preparation happens once.
                drop(self.metrics.set(worker.metrics()));
                self.send(&Reply::Prepared);
            }
            Err(failure) => {
                let code = failure.code();
                let message = failure.message().to_owned();
                self.send(&Reply::Failed { code, message });
            }
        }
    }

    /// Sends a reply. Ignores errors: the request thread notices a closed socket.
    fn send(&self, reply: &Reply) {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        drop(socket.write_all(&line(reply)));
    }
}

/// Fetches the metrics of the worker process.
#[derive(Clone, Debug)]
pub(crate) struct MetricsSource(mpsc::Sender<oneshot::Sender<WorkerMetrics>>);

impl MetricsSource {
    /// Fetches the metrics; empty while no worker runs.
    pub(crate) async fn fetch(&self) -> WorkerMetrics {
        let (sender, receiver) = oneshot::channel();
        let request = timeout(REQUEST_TIMEOUT, async {
            self.0.send(sender).await.ok()?;
            receiver.await.ok()
        });
        request.await.ok().flatten().unwrap_or_default()
    }
}

/// The supervised worker process of this machine.
#[derive(Debug)]
pub(crate) struct WorkerProcess {
    pub(crate) metrics: MetricsSource,
    shutdown_sender: watch::Sender<Shutdown>,
    supervisor: JoinHandle<()>,
}

impl WorkerProcess {
    /// Starts the worker and waits until it is prepared.
    pub(crate) async fn start(config: WorkerConfig, otlp: Option<String>) -> Result<Self, Failure> {
        let (shutdown_sender, shutdown) = watch::channel(Shutdown::None);
        let (metrics, metrics_requests) = mpsc::channel(1);
        let (sender, prepared) = oneshot::channel();
        let supervisor =
            Supervisor { config, otlp, shutdown, metrics_requests, prepared: Some(sender) };
        let supervisor = tokio::spawn(supervisor.run());
        let supervisor_error =
            || Failure::Negative("cannot start a worker: its supervisor failed".to_owned());
        prepared.await.map_err(|_| supervisor_error())??;
        Ok(Self { metrics: MetricsSource(metrics), shutdown_sender, supervisor })
    }

    /// Stops the worker after its running matches; returns them early when `hurry` completes.
    pub(crate) async fn stop(self, hurry: impl Future<Output = ()>) -> Result<(), Failure> {
        let Self { shutdown_sender, mut supervisor, metrics: _ } = self;
        shutdown_sender.send_replace(Shutdown::Drain);
        let exit = tokio::select! {
            exit = &mut supervisor => exit,
            () = hurry => {
                shutdown_sender.send_replace(Shutdown::Now);
                supervisor.await
            }
        };
        exit.map_err(|error| Failure::Negative(format!("the worker's supervisor failed: {error}")))
    }
}

/// Starts the worker, and restarts it when it ends.
#[derive(Debug)]
struct Supervisor {
    config: WorkerConfig,
    /// The URL of the trace collector.
    otlp: Option<String>,
    shutdown: watch::Receiver<Shutdown>,
    metrics_requests: mpsc::Receiver<oneshot::Sender<WorkerMetrics>>,
    /// Receives the result of the first start.
    prepared: Option<oneshot::Sender<Result<(), Failure>>>,
}

impl Supervisor {
    async fn run(mut self) {
        let mut delay = FIRST_DELAY;
        loop {
            let start = Instant::now();
            let exit = match Child::start(&self.config, self.otlp.as_deref()) {
                Ok(child) => self.supervise(child).await,
                Err(error) => WorkerExit { failure: None, how: format!("cannot start: {error}") },
            };
            if *self.shutdown.borrow() != Shutdown::None {
                return;
            }
            if let Some(receiver) = self.prepared.take() {
                // Do not retry the first start: later starts would fail in the same way.
                let unknown = || Failure::Negative(format!("the worker {}", exit.how));
                drop(receiver.send(Err(exit.failure.unwrap_or_else(unknown))));
                return;
            }
            if start.elapsed() > STABLE_TIME {
                delay = FIRST_DELAY;
            }
            let seconds = delay.as_secs();
            error!("the worker {exit}; restarting in {seconds} s");
            if !self.wait(delay).await {
                return;
            }
            delay = MAX_DELAY.min(delay * 2);
        }
    }

    /// Waits before a restart. Returns false if a shutdown was requested.
    async fn wait(&mut self, delay: Duration) -> bool {
        let sleep = sleep(delay);
        tokio::pin!(sleep);
        loop {
            tokio::select! {
                () = &mut sleep => return true,
                _ = self.shutdown.changed() => return false,
                // Without a worker there are no metrics: drop the request.
                Some(_) = self.metrics_requests.recv() => {}
            }
        }
    }

    /// Exchanges messages with a worker until it has exited.
    async fn supervise(&mut self, child: Child) -> WorkerExit {
        let Child { pidfd, mut requests, mut replies, mut exit } = child;
        let mut conversation = Conversation::default();
        let mut deadline = None;
        loop {
            let last = deadline.unwrap_or_else(Instant::now);
            let request = tokio::select! {
                exit = &mut exit => {
                    // Read the remaining replies.
                    while let Ok(Some(reply)) = timeout(REQUEST_TIMEOUT, replies.recv()).await {
                        self.handle(reply, &mut conversation);
                    }
                    let failure = conversation.failure;
                    return WorkerExit { failure, how: describe(exit.ok()) };
                }
                Some(reply) = replies.recv() => {
                    self.handle(reply, &mut conversation);
                    continue;
                }
                Ok(()) = self.shutdown.changed() => match *self.shutdown.borrow_and_update() {
                    Shutdown::Now => {
                        deadline = Some(Instant::now() + STOP_TIMEOUT);
                        Request::Stop
                    }
                    _ => Request::Drain,
                },
                Some(receiver) = self.metrics_requests.recv() => {
                    conversation.metrics_receivers.push(receiver);
                    Request::Metrics
                }
                () = sleep_until(last), if deadline.is_some() => {
                    // Ignore the error: the worker may already have exited.
                    let _killed = pidfd_send_signal(&pidfd, Signal::KILL);
                    deadline = None;
                    continue;
                }
            };
            // Ignore a failed write: the worker is about to exit, and its exit is handled above.
            drop(timeout(REQUEST_TIMEOUT, requests.write_all(&line(&request))).await);
        }
    }

    fn handle(&mut self, reply: Reply, conversation: &mut Conversation) {
        match reply {
            Reply::Prepared => {
                let first = self.prepared.take();
                drop(first.map(|receiver| receiver.send(Ok(()))));
            }
            Reply::Failed { code, message } => {
                conversation.failure = Some(Failure::with_code(code, message));
            }
            Reply::Metrics(metrics) => {
                for receiver in conversation.metrics_receivers.drain(..) {
                    drop(receiver.send(metrics.clone()));
                }
            }
        }
    }
}

/// The state of the conversation with a worker.
#[derive(Debug, Default)]
struct Conversation {
    /// Why the worker cannot run.
    failure: Option<Failure>,
    /// The receivers that wait for metrics.
    metrics_receivers: Vec<oneshot::Sender<WorkerMetrics>>,
}

/// How a worker exited.
#[derive(Debug)]
struct WorkerExit {
    /// Why its preparation failed, if it reported that.
    failure: Option<Failure>,
    how: String,
}

impl fmt::Display for WorkerExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Some(failure) => write!(f, "cannot run: {}", failure.message()),
            None => f.write_str(&self.how),
        }
    }
}

fn describe(exit: Option<io::Result<ExitStatus>>) -> String {
    match exit {
        Some(Ok(status)) => format!("exited ({status})"),
        Some(Err(error)) => format!("ended in an unknown way: {error}"),
        None => "ended in an unknown way".to_owned(),
    }
}

/// A message as a JSON line.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("a message can be serialised");
    line.push(b'\n');
    line
}

/// A running worker process.
#[derive(Debug)]
struct Child {
    pidfd: OwnedFd,
    requests: OwnedWriteHalf,
    replies: mpsc::Receiver<Reply>,
    exit: oneshot::Receiver<io::Result<ExitStatus>>,
}

impl Child {
    fn start(config: &WorkerConfig, otlp: Option<&str>) -> io::Result<Self> {
        let (parent_socket, child_socket) = UnixStream::pair()?;
        parent_socket.set_nonblocking(true)?;
        let (replies_half, requests) =
            tokio::net::UnixStream::from_std(parent_socket)?.into_split();
        let mut child = command(config, otlp, child_socket).spawn()?;
        info!(process = child.id(), "started the worker");
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let (sender, exit) = oneshot::channel();
        thread::spawn(move || drop(sender.send(child.wait())));
        Ok(Self { pidfd: pidfd?, requests, replies: read_replies(replies_half), exit })
    }
}

/// The command that runs this program as a worker.
fn command(config: &WorkerConfig, otlp: Option<&str>, socket: UnixStream) -> Command {
    let WorkerConfig { coordinator, slots, spool, cache, policy, drain, .. } = config;
    #[expect(clippy::disallowed_methods, reason = "runs this program, not a bot")]
    let mut command = Command::new("/proc/self/exe");
    command.arg0("arbiter").args(["worker", "--supervised", "--coordinator", &coordinator.server]);
    command.args(["--slots", &slots.to_string(), "--sandbox", policy.as_str()]);
    command.args(["--drain", &format!("{}us", drain.as_micros())]);
    command.arg("--spool").arg(spool).arg("--cache").arg(cache);
    for name in STANDALONE_VARIABLES {
        command.env_remove(name);
    }
    command.env("ARBITER_TOKEN", coordinator.token.as_deref().unwrap_or_default());
    match otlp {
        Some(url) => command.env(OTLP_VARIABLE, url),
        None => command.env_remove(OTLP_VARIABLE),
    };
    if std::env::var_os("RUST_LOG").is_none() {
        command.env("RUST_LOG", logging::default_level().to_string());
    }
    // Ctrl-C must reach only the parent, which then sends a request to the worker.
    command.process_group(0).stdin(Stdio::from(OwnedFd::from(socket))).stdout(Stdio::null());
    command
}

/// Reads replies of a worker until one is malformed.
fn read_replies(socket: OwnedReadHalf) -> mpsc::Receiver<Reply> {
    let (sender, replies) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut reader = tokio::io::BufReader::new(socket);
        loop {
            let mut line = Vec::new();
            let count = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await;
            let reply = count.ok().and_then(|_| serde_json::from_slice(&line).ok());
            let Some(reply) = reply else { return };
            if sender.send(reply).await.is_err() {
                return;
            }
        }
    });
    replies
}

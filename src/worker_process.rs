//! The worker of this machine, as a process of its own.
//!
//! Nothing that a bot does to its worker reaches the coordinator: a worker that dies is started
//! again, after a pause that grows. It is this program's command `worker`, and a socket between the
//! two is its standard input: lines of JSON ask it for figures and tell it to end. The socket also
//! ties its life to ours: it exits when our end is gone, however we end, and its bots with it.

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
use crate::logs;

/// The pauses before a worker that ended is started again: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// A worker that ran for so long has recovered from what ended the one before.
const RECOVERED: Duration = Duration::from_secs(60);
/// How long a worker may take to give back what is under way before it is killed.
const LAST: Duration = Duration::from_secs(60);
/// How long an answer is waited for, and a request may take to be taken.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest line that is read from a worker, in bytes.
const LONGEST: u64 = 16 << 20;

/// Variables for workers that stand for themselves: this one is told everything.
const FOREIGN: [&str; 5] =
    ["ARBITER_NAME", "ARBITER_CA", "ARBITER_CERT", "ARBITER_KEY", "ARBITER_METRICS"];
/// Where traces go.
const TRACES: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// What the worker is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// For its figures.
    Figures,
    /// To end when what is under way has ended.
    Drain,
    /// To give back what is under way, and end.
    Stop,
}

/// What the worker says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// It is about to call the coordinator.
    Prepared,
    /// It cannot work here.
    Failed { code: u8, message: String },
    /// Its figures.
    Figures(Figures),
}

/// The figures of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Whether it has a coordinator.
    pub(crate) connected: bool,
    /// The text for Prometheus.
    pub(crate) text: String,
}

impl Figures {
    /// Those of a worker of this process.
    pub(crate) fn of(metrics: &Metrics) -> Self {
        let mut text = String::new();
        metrics.encode(&mut text).expect("a string takes everything");
        Self { connected: metrics.is_connected(), text }
    }
}

/// The worker's side of the socket.
#[derive(Clone, Debug)]
pub(crate) struct ParentLine {
    socket: Arc<Mutex<UnixStream>>,
    metrics: Arc<OnceLock<Arc<Metrics>>>,
}

impl ParentLine {
    /// Takes the socket from standard input, which then is empty. From now on a thread does what
    /// is asked there, and exits the process when the other end is gone.
    pub(crate) fn take(ending: watch::Sender<Shutdown>) -> Result<Self, Failure> {
        let take = || {
            let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
            let requests = BufReader::new(socket.try_clone()?);
            socket.peer_addr()?;
            rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
            Ok((socket, requests))
        };
        let (socket, requests) = take().map_err(|error: io::Error| {
            Failure::Usage(format!("--supervised is for `arbiter up` alone: no socket: {error}"))
        })?;
        let line = Self { socket: Arc::new(Mutex::new(socket)), metrics: Arc::default() };
        let answering = line.clone();
        thread::spawn(move || {
            for request in requests.lines() {
                let request = request.ok().and_then(|line| serde_json::from_str(&line).ok());
                let Some(request) = request else { break };
                answering.answer(request, &ending);
            }
            process::exit(0);
        });
        Ok(line)
    }

    fn answer(&self, request: Request, ending: &watch::Sender<Shutdown>) {
        let wanted = match request {
            Request::Figures => {
                let figures = self.metrics.get().map(|metrics| Figures::of(metrics));
                return self.say(&Reply::Figures(figures.unwrap_or_default()));
            }
            Request::Drain => Shutdown::Drain,
            Request::Stop => Shutdown::Now,
        };
        ending.send_modify(|ending| *ending = wanted.max(*ending));
    }

    /// Tells how the preparation went.
    pub(crate) fn tell(&self, prepared: &Result<Worker, Failure>) {
        match prepared {
            Ok(worker) => {
                // It is prepared once.
                drop(self.metrics.set(worker.metrics()));
                self.say(&Reply::Prepared);
            }
            Err(failure) => {
                let (code, message) = (failure.code(), failure.message().to_owned());
                self.say(&Reply::Failed { code, message });
            }
        }
    }

    /// A line that cannot be written has no reader any more: the thread notices that.
    fn say(&self, reply: &Reply) {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        drop(socket.write_all(&line(reply)));
    }
}

/// Asks the worker process for its figures.
#[derive(Clone, Debug)]
pub(crate) struct FigureSource(mpsc::Sender<oneshot::Sender<Figures>>);

impl FigureSource {
    /// Its figures; none while no worker runs.
    pub(crate) async fn figures(&self) -> Figures {
        let (tell, told) = oneshot::channel();
        let asked = timeout(PATIENCE, async {
            self.0.send(tell).await.ok()?;
            told.await.ok()
        });
        asked.await.ok().flatten().unwrap_or_default()
    }
}

/// The worker of this machine: a process, and another one whenever it ends.
#[derive(Debug)]
pub(crate) struct WorkerProcess {
    /// What can be observed of it.
    pub(crate) figures: FigureSource,
    ending: watch::Sender<Shutdown>,
    supervisor: JoinHandle<()>,
}

impl WorkerProcess {
    /// Starts it, and waits until it is prepared.
    pub(crate) async fn start(config: WorkerConfig, otlp: Option<String>) -> Result<Self, Failure> {
        let (ending, ends) = watch::channel(Shutdown::None);
        let (ask, asks) = mpsc::channel(1);
        let (tell, prepared) = oneshot::channel();
        let supervisor = Supervisor { config, otlp, ends, asks, prepared: Some(tell) };
        let supervisor = tokio::spawn(supervisor.run());
        let lost = || Failure::Negative("cannot start a worker: its start failed".to_owned());
        prepared.await.map_err(|_| lost())??;
        Ok(Self { figures: FigureSource(ask), ending, supervisor })
    }

    /// Ends it: it ends what it plays, or gives it back when `hurry` comes.
    pub(crate) async fn stop(self, hurry: impl Future<Output = ()>) -> Result<(), Failure> {
        let Self { ending, mut supervisor, figures: _ } = self;
        ending.send_replace(Shutdown::Drain);
        let ended = tokio::select! {
            ended = &mut supervisor => ended,
            () = hurry => {
                ending.send_replace(Shutdown::Now);
                supervisor.await
            }
        };
        ended.map_err(|error| Failure::Negative(format!("the worker's supervisor failed: {error}")))
    }
}

/// Starts workers, one after the other.
#[derive(Debug)]
struct Supervisor {
    /// What the worker is told.
    config: WorkerConfig,
    /// Where its traces go.
    otlp: Option<String>,
    ends: watch::Receiver<Shutdown>,
    asks: mpsc::Receiver<oneshot::Sender<Figures>>,
    /// Who waits for the first one to be prepared.
    prepared: Option<oneshot::Sender<Result<(), Failure>>>,
}

impl Supervisor {
    async fn run(mut self) {
        let (mut pause, longest) = PAUSES;
        loop {
            let began = Instant::now();
            let ended = match Child::start(&self.config, self.otlp.as_deref()) {
                Ok(child) => self.attend(child).await,
                Err(error) => End { failure: None, how: format!("cannot be started: {error}") },
            };
            if *self.ends.borrow() != Shutdown::None {
                return;
            }
            if let Some(waiting) = self.prepared.take() {
                // Its first start shows what every other would meet.
                let unknown = || Failure::Negative(format!("the worker {}", ended.how));
                drop(waiting.send(Err(ended.failure.unwrap_or_else(unknown))));
                return;
            }
            if began.elapsed() > RECOVERED {
                pause = PAUSES.0;
            }
            let seconds = pause.as_secs();
            error!("the worker {ended}; it is started again in {seconds} s");
            if !self.pause(pause).await {
                return;
            }
            pause = longest.min(pause * 2);
        }
    }

    /// Waits before the next start; whether there is to be one.
    async fn pause(&mut self, pause: Duration) -> bool {
        let over = sleep(pause);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return true,
                _ = self.ends.changed() => return false,
                // There are no figures to be had: the question is dropped.
                Some(_) = self.asks.recv() => {}
            }
        }
    }

    /// Asks and tells a worker until it has ended.
    async fn attend(&mut self, child: Child) -> End {
        let Child { pidfd, mut requests, mut replies, mut ended } = child;
        let mut heard = Heard::default();
        let mut deadline = None;
        loop {
            let last = deadline.unwrap_or_else(Instant::now);
            let request = tokio::select! {
                ended = &mut ended => {
                    // What it said before is still to be read.
                    while let Ok(Some(reply)) = timeout(PATIENCE, replies.recv()).await {
                        self.heed(reply, &mut heard);
                    }
                    return End { failure: heard.failure, how: describe(ended.ok()) };
                }
                Some(reply) = replies.recv() => {
                    self.heed(reply, &mut heard);
                    continue;
                }
                Ok(()) = self.ends.changed() => match *self.ends.borrow_and_update() {
                    Shutdown::Now => {
                        deadline = Some(Instant::now() + LAST);
                        Request::Stop
                    }
                    _ => Request::Drain,
                },
                Some(asking) = self.asks.recv() => {
                    heard.waiting.push(asking);
                    Request::Figures
                }
                () = sleep_until(last), if deadline.is_some() => {
                    // One that has ended is not there to be killed.
                    let _killed = pidfd_send_signal(&pidfd, Signal::KILL);
                    deadline = None;
                    continue;
                }
            };
            // A worker that takes no requests is told by its end.
            drop(timeout(PATIENCE, requests.write_all(&line(&request))).await);
        }
    }

    fn heed(&mut self, reply: Reply, heard: &mut Heard) {
        match reply {
            Reply::Prepared => {
                let first = self.prepared.take();
                drop(first.map(|waiting| waiting.send(Ok(()))));
            }
            Reply::Failed { code, message } => {
                heard.failure = Some(Failure::with_code(code, message));
            }
            Reply::Figures(figures) => {
                for waiting in heard.waiting.drain(..) {
                    drop(waiting.send(figures.clone()));
                }
            }
        }
    }
}

/// What a worker has said, and is yet to say.
#[derive(Debug, Default)]
struct Heard {
    /// Why it cannot work.
    failure: Option<Failure>,
    /// Who waits for its figures.
    waiting: Vec<oneshot::Sender<Figures>>,
}

/// How a worker ended.
#[derive(Debug)]
struct End {
    /// Why it could not be prepared, if it said so.
    failure: Option<Failure>,
    how: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Some(failure) => write!(f, "cannot work: {}", failure.message()),
            None => f.write_str(&self.how),
        }
    }
}

fn describe(ended: Option<io::Result<ExitStatus>>) -> String {
    match ended {
        Some(Ok(status)) => format!("ended ({status})"),
        Some(Err(error)) => format!("cannot be waited for: {error}"),
        None => "is lost".to_owned(),
    }
}

/// A message as a line.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("a message is plain data");
    line.push(b'\n');
    line
}

/// A running worker.
#[derive(Debug)]
struct Child {
    pidfd: OwnedFd,
    requests: OwnedWriteHalf,
    replies: mpsc::Receiver<Reply>,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
}

impl Child {
    fn start(config: &WorkerConfig, otlp: Option<&str>) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (read, requests) = tokio::net::UnixStream::from_std(ours)?.into_split();
        let mut child = command(config, otlp, theirs).spawn()?;
        info!(process = child.id(), "the worker is started");
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let (tell, ended) = oneshot::channel();
        thread::spawn(move || drop(tell.send(child.wait())));
        Ok(Self { pidfd: pidfd?, requests, replies: listen(read), ended })
    }
}

/// The call of this program as a worker.
fn command(config: &WorkerConfig, otlp: Option<&str>, socket: UnixStream) -> Command {
    let WorkerConfig { coordinator, slots, spool, cache, policy, drain, .. } = config;
    #[expect(clippy::disallowed_methods, reason = "this program again, not a bot")]
    let mut command = Command::new("/proc/self/exe");
    command.arg0("arbiter").args(["worker", "--supervised", "--coordinator", &coordinator.server]);
    command.args(["--slots", &slots.to_string(), "--sandbox", policy.as_str()]);
    command.args(["--drain", &format!("{}us", drain.as_micros())]);
    command.arg("--spool").arg(spool).arg("--cache").arg(cache);
    for name in FOREIGN {
        command.env_remove(name);
    }
    command.env("ARBITER_TOKEN", coordinator.token.as_deref().unwrap_or_default());
    match otlp {
        Some(url) => command.env(TRACES, url),
        None => command.env_remove(TRACES),
    };
    if std::env::var_os("RUST_LOG").is_none() {
        command.env("RUST_LOG", logs::usual().to_string());
    }
    // A signal typed at the terminal is for us: we then tell the worker.
    command.process_group(0).stdin(Stdio::from(OwnedFd::from(socket))).stdout(Stdio::null());
    command
}

/// Reads what a worker says, as long as it makes sense.
fn listen(read: OwnedReadHalf) -> mpsc::Receiver<Reply> {
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut reader = tokio::io::BufReader::new(read);
        loop {
            let mut line = Vec::new();
            let read = (&mut reader).take(LONGEST).read_until(b'\n', &mut line).await;
            let reply = read.ok().and_then(|_| serde_json::from_slice(&line).ok());
            let Some(reply) = reply else { return };
            if tell.send(reply).await.is_err() {
                return;
            }
        }
    });
    told
}

//! A private Postgres: a cluster on a Unix socket, run with the system's binaries.
//!
//! `initdb` creates the cluster the first time. Only this program can connect: there is no TCP port,
//! the directory is readable by the cluster's user and root alone, and the only role has a password
//! in a file beside the cluster (see `role.rs`). Postgres refuses to run as root. A root process
//! runs it as `postgres`, or as `nobody` if there is no such user.
//!
//! The server stops with this process, even after SIGKILL: the kernel signals it when the *thread*
//! that started it ends (`PR_SET_PDEATHSIG` in prctl(2)), so a dedicated thread starts it and waits
//! for it. After a crash it recovers from its log at the next start.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use thiserror::Error;

mod binaries;
mod cluster_dir;
mod role;

use binaries::Binaries;
use cluster_dir::{ClusterDir, Start};
use role::{Credentials, ROLE};

/// How long a start may take, including crash recovery and the stop of an earlier server.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long each kind of shutdown may take before a harder one follows.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How often a start checks whether the server is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The superuser of the cluster. It cannot log in.
const SUPERUSER: &str = "postgres";

/// Whether commits survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It does.
    Synced,
    /// It does not, but everything is faster: for tests.
    Fleeting,
}

/// Why a private Postgres does not run.
#[derive(Debug, Error)]
pub enum PostgresError {
    /// There are no binaries.
    #[error(
        "PostgreSQL is not installed: no initdb and postgres in {0}; install it (apt-get install \
        postgresql), or set PG_BIN to the directory of its programs"
    )]
    Missing(String),
    /// The data were written by a version that is not installed.
    #[error(
        "the data in {data} were written by PostgreSQL {written}, but {installed} is installed: \
        install version {written}, set PG_BIN to its programs, or use another directory"
    )]
    Version {
        /// The cluster's directory.
        data: PathBuf,
        /// The version that wrote it.
        written: String,
        /// The installed versions.
        installed: String,
    },
    /// There is no user to run it as.
    #[error("PostgreSQL refuses to run as root, and /etc/passwd has neither postgres nor nobody")]
    NoUser,
    /// The user that it runs as cannot access its data.
    #[error(
        "PostgreSQL runs as {user}, who has no access to {data} through {closed}: \
        chmod o+x {closed}, or choose another directory with --data"
    )]
    Closed {
        /// The user's name.
        user: &'static str,
        /// The directory without access.
        closed: PathBuf,
        /// The directory of the data.
        data: PathBuf,
    },
    /// A file or directory cannot be used.
    #[error("cannot {what} {path}: {cause}")]
    File {
        /// The operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// One of its programs failed.
    #[error("{program} failed ({status}): {output}")]
    Failed {
        /// The program.
        program: &'static str,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its output, and where the rest is.
        output: String,
    },
    /// It did not become ready.
    #[error("PostgreSQL was not ready within {} s; its log is {log}", START_LIMIT.as_secs())]
    Slow {
        /// The server's log.
        log: PathBuf,
    },
}

/// Adds the operation and the path to an I/O error.
fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PostgresError {
    let path = path.to_owned();
    move |cause| PostgresError::File { what, path, cause }
}

/// A command for one of the programs of PostgreSQL.
fn run(program: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a server of ours, not a bot")]
    Command::new(program)
}

/// A running cluster. Dropped, it is stopped as [`Postgres::stop`] does.
#[derive(Debug)]
pub struct Postgres {
    directory: PathBuf,
    durability: Durability,
    pid: Pid,
    ended: Mutex<Receiver<io::Result<ExitStatus>>>,
    stopped: bool,
    socket: PathBuf,
    credentials: Credentials,
    /// The directory of the socket, if the path of the data is too long for a socket.
    _short: Option<tempfile::TempDir>,
}

impl Postgres {
    /// Starts the cluster in `directory`. Creates it if there is none.
    ///
    /// # Errors
    /// If there are no binaries of the right version, or they fail.
    pub fn start(directory: &Path, durability: Durability) -> Result<Self, PostgresError> {
        let place = ClusterDir::prepare(directory)?;
        let binaries = Binaries::find(&place.cluster)?;
        if !place.cluster.exists() {
            place.create(&binaries, durability)?;
        }
        let credentials = Credentials::prepare(&place, &binaries, durability)?;
        let (socket, short) = place.socket()?;
        let (pid, ended) = launch(&place, &binaries, &socket, &credentials, durability)?;
        Ok(Self {
            directory: directory.to_owned(),
            durability,
            pid,
            ended: Mutex::new(ended),
            stopped: false,
            socket,
            credentials,
            _short: short,
        })
    }

    /// Restarts the server on the same socket, if it has ended unexpectedly. Returns whether it had.
    ///
    /// # Errors
    /// If it cannot be started. The caller may retry.
    pub fn restart_if_ended(&mut self) -> Result<bool, PostgresError> {
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if matches!(ended.try_recv(), Err(TryRecvError::Empty)) {
            return Ok(false);
        }
        let place = ClusterDir::prepare(&self.directory)?;
        let binaries = Binaries::find(&place.cluster)?;
        let launched = launch(&place, &binaries, &self.socket, &self.credentials, self.durability);
        let (pid, ended) = launched?;
        self.pid = pid;
        self.ended = Mutex::new(ended);
        Ok(true)
    }

    /// The connection options for a database of this cluster.
    pub fn options(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket)
            .username(ROLE)
            .password(self.credentials.password.text())
            .database(database)
    }

    /// The URL of a database of this cluster, with the password, for other programs.
    pub fn url(&self, database: &str) -> String {
        let password = self.credentials.password.text();
        let socket = self.socket.display();
        format!("postgres://{ROLE}:{password}@localhost/{database}?host={socket}")
    }

    /// The process id of the server.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Stops the server cleanly: connections are closed, and all commits are on disk.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        // After the server has ended, its process id may belong to another process.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.stopped || ended.try_recv().is_ok() {
            return;
        }
        self.stopped = true;
        // "Fast" and "immediate" shutdown (PostgreSQL documentation, "Shutting Down the Server").
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            if kill_process(self.pid, signal).is_err() {
                return;
            }
            if !matches!(ended.recv_timeout(STOP_LIMIT), Err(RecvTimeoutError::Timeout)) {
                return;
            }
        }
    }
}

/// Starts the server of a cluster, and waits until it is ready.
fn launch(
    place: &ClusterDir,
    binaries: &Binaries,
    socket: &Path,
    credentials: &Credentials,
    durability: Durability,
) -> Result<(Pid, Receiver<io::Result<ExitStatus>>), PostgresError> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        let (pid, ended) = place.spawn(binaries, socket, credentials, durability)?;
        match place.wait_ready(pid, &ended, deadline)? {
            Start::Ready => return Ok((pid, ended)),
            // A server that an earlier process started may need a moment to stop.
            Start::Occupied => thread::sleep(POLL_INTERVAL * 10),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.shut_down();
    }
}

//! A private Postgres: a cluster on a Unix socket, run with the system's binaries.
//!
//! `initdb` creates the cluster the first time. Only this program can connect: there is no TCP
//! port, the directory is readable by the cluster's user and root alone, and the only role has a
//! password in a file beside the cluster (see `role.rs`). Postgres refuses to run as root. A root
//! process runs it as `postgres`, or as `nobody` if there is no such user.
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
mod scram;

use binaries::Binaries;
use cluster_dir::{ClusterDir, Start};
use role::{Credentials, ROLE};

/// How long a start may take, including crash recovery and the stop of an earlier server.
const START_LIMIT: Duration = Duration::from_secs(120);
/// The time limit of each kind of shutdown. After it, a stricter kind follows.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How often a start checks whether the server is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The superuser of the cluster. It cannot log in.
const SUPERUSER: &str = "postgres";

/// Whether commits survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// They do.
    Synced,
    /// They do not, but everything is faster. Only for tests.
    Unsynced,
}

/// Why a private Postgres cannot run.
#[derive(Debug, Error)]
pub enum PostgresError {
    /// The programs of PostgreSQL were not found.
    #[error(
        "PostgreSQL is not installed: no initdb and postgres in {0}; install it (apt-get install \
        postgresql), or set PG_BIN to the directory of its programs"
    )]
    Missing(String),
    /// The version that wrote the data is not installed.
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
    /// There is no unprivileged user to run it.
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
        /// The end of its output, and the path of its log if there is one.
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
    #[expect(clippy::disallowed_methods, reason = "it starts PostgreSQL, not a bot")]
    Command::new(program)
}

/// A running cluster. Dropping it stops the server, like [`Postgres::stop`].
#[derive(Debug)]
pub struct Postgres {
    directory: PathBuf,
    durability: Durability,
    pid: Pid,
    exit_status: Mutex<Receiver<io::Result<ExitStatus>>>,
    stopped: bool,
    socket: PathBuf,
    credentials: Credentials,
    /// The directory of the socket, if the path of the data is too long for a socket.
    _socket_dir: Option<tempfile::TempDir>,
}

impl Postgres {
    /// Starts the cluster in `directory`. Creates the cluster if it does not exist.
    ///
    /// # Errors
    /// If there are no programs of the right version, or they fail.
    pub fn start(directory: &Path, durability: Durability) -> Result<Self, PostgresError> {
        let cluster_dir = ClusterDir::prepare(directory)?;
        let binaries = Binaries::find(&cluster_dir.cluster)?;
        if !cluster_dir.cluster.exists() {
            cluster_dir.create(&binaries, durability)?;
        }
        let credentials = Credentials::prepare(&cluster_dir, &binaries, durability)?;
        let (socket, socket_dir) = cluster_dir.socket()?;
        let (pid, exit_status) =
            launch(&cluster_dir, &binaries, &socket, &credentials, durability)?;
        Ok(Self {
            directory: directory.to_owned(),
            durability,
            pid,
            exit_status: Mutex::new(exit_status),
            stopped: false,
            socket,
            credentials,
            _socket_dir: socket_dir,
        })
    }

    /// Restarts the server on the same socket, if it has ended unexpectedly. Returns whether it
    /// restarted.
    ///
    /// # Errors
    /// If it cannot be started. The caller may retry.
    pub fn restart_if_ended(&mut self) -> Result<bool, PostgresError> {
        let exit_status = self.exit_status.get_mut().unwrap_or_else(PoisonError::into_inner);
        if matches!(exit_status.try_recv(), Err(TryRecvError::Empty)) {
            return Ok(false);
        }
        let cluster_dir = ClusterDir::prepare(&self.directory)?;
        let binaries = Binaries::find(&cluster_dir.cluster)?;
        let result =
            launch(&cluster_dir, &binaries, &self.socket, &self.credentials, self.durability);
        let (pid, exit_status) = result?;
        self.pid = pid;
        self.exit_status = Mutex::new(exit_status);
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
        let exit_status = self.exit_status.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.stopped || exit_status.try_recv().is_ok() {
            return;
        }
        self.stopped = true;
        // "Fast" and "immediate" shutdown (PostgreSQL documentation, "Shutting Down the Server").
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            if kill_process(self.pid, signal).is_err() {
                return;
            }
            if !matches!(exit_status.recv_timeout(STOP_LIMIT), Err(RecvTimeoutError::Timeout)) {
                return;
            }
        }
    }
}

/// Starts the server of a cluster, and waits until it is ready.
fn launch(
    cluster_dir: &ClusterDir,
    binaries: &Binaries,
    socket: &Path,
    credentials: &Credentials,
    durability: Durability,
) -> Result<(Pid, Receiver<io::Result<ExitStatus>>), PostgresError> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        let (pid, exit_status) = cluster_dir.spawn(binaries, socket, credentials, durability)?;
        match cluster_dir.wait_ready(pid, &exit_status, deadline)? {
            Start::Ready => return Ok((pid, exit_status)),
            // The server of an earlier process may still be stopping.
            Start::Occupied => thread::sleep(POLL_INTERVAL * 10),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.shut_down();
    }
}

//! A private Postgres: a cluster of our own on a Unix socket, from the system's binaries.
//!
//! `initdb` makes the cluster the first time; later it is started where it was. It serves nobody
//! but us: no TCP port, a directory that only its user (and root) can enter, and one role, with a
//! password that is kept in a file beside the cluster (see `role.rs`). Postgres refuses to run as root; there it runs as `postgres`, or as
//! `nobody` where there is no such user.
//!
//! The server dies with this process, however that ends: the kernel signals it when the *thread*
//! that started it is gone (`PR_SET_PDEATHSIG` in prctl(2)), so a thread of its own starts it and
//! waits for it. Killed in the middle, it recovers from its log at the next start.

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

/// How long a start may take: recovery after a kill included, and the end of a server that is
/// still stopping where we start again.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a stop may take before the server is told to drop everything.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How often a start looks whether the server is ready.
const LOOK: Duration = Duration::from_millis(5);
/// The superuser of the cluster, which nobody can log in as.
const SUPERUSER: &str = "postgres";

/// Whether what is committed survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It does: for everybody's data.
    Synced,
    /// It does not, but everything is faster: for tests.
    Fleeting,
}

/// Why a private Postgres does not run: what, the cause, and what to do about it.
#[derive(Debug, Error)]
pub enum PostgresError {
    /// There are no binaries.
    #[error(
        "no PostgreSQL server on this machine: looked for initdb and postgres in {0}; \
        install one (apt-get install postgresql), or name the directory of its programs in PG_BIN"
    )]
    Missing(String),
    /// The data were written by another version than the ones installed.
    #[error(
        "the data in {data} were written by PostgreSQL {written}, and this machine has {installed}: \
        install version {written} or name its programs in PG_BIN, or use another directory"
    )]
    Version {
        /// The cluster's directory.
        data: PathBuf,
        /// The version that wrote it.
        written: String,
        /// The versions there are.
        installed: String,
    },
    /// There is no user to run it as.
    #[error("PostgreSQL refuses to run as root, and /etc/passwd has neither postgres nor nobody")]
    NoUser,
    /// The user that it runs as cannot get to its data.
    #[error(
        "PostgreSQL runs as {user} here, who may not pass {closed} on the way to {data}: \
        chmod o+x {closed}, or choose another directory with --data"
    )]
    Closed {
        /// The user's name.
        user: &'static str,
        /// The directory that is closed.
        closed: PathBuf,
        /// Where the data are to be.
        data: PathBuf,
    },
    /// A file or directory cannot be used.
    #[error("cannot {what} {path}: {cause}")]
    File {
        /// What was being done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// One of its programs failed.
    #[error("{program} failed ({status}): {said}")]
    Failed {
        /// The program.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said, and where the rest is.
        said: String,
    },
    /// It did not become ready.
    #[error("PostgreSQL was not ready within {} s; its log is {log}", START_LIMIT.as_secs())]
    Slow {
        /// The server's log.
        log: PathBuf,
    },
}

/// Says what was being done with a file.
fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PostgresError {
    let path = path.to_owned();
    move |cause| PostgresError::File { what, path, cause }
}

/// Begins to run one of the programs of PostgreSQL.
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
    entrance: Credentials,
    /// The directory of the socket, where the data's path is too long for one.
    _short: Option<tempfile::TempDir>,
}

impl Postgres {
    /// Starts the cluster in `directory`, making it if there is none.
    ///
    /// # Errors
    /// If there are no binaries of the right version, or they fail.
    pub fn start(directory: &Path, durability: Durability) -> Result<Self, PostgresError> {
        let place = ClusterDir::prepare(directory)?;
        let binaries = Binaries::find(&place.cluster)?;
        if !place.cluster.exists() {
            place.create(&binaries, durability)?;
        }
        let entrance = Credentials::prepare(&place, &binaries, durability)?;
        let (socket, short) = place.socket()?;
        let (pid, ended) = launch(&place, &binaries, &socket, &entrance, durability)?;
        Ok(Self {
            directory: directory.to_owned(),
            durability,
            pid,
            ended: Mutex::new(ended),
            stopped: false,
            socket,
            entrance,
            _short: short,
        })
    }

    /// Starts the server again, on the same socket, if it has ended though nobody stopped it;
    /// whether it had.
    ///
    /// # Errors
    /// If it cannot be started; it may be tried again.
    pub fn revive(&mut self) -> Result<bool, PostgresError> {
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if matches!(ended.try_recv(), Err(TryRecvError::Empty)) {
            return Ok(false);
        }
        let place = ClusterDir::prepare(&self.directory)?;
        let binaries = Binaries::find(&place.cluster)?;
        let launched = launch(&place, &binaries, &self.socket, &self.entrance, self.durability);
        let (pid, ended) = launched?;
        self.pid = pid;
        self.ended = Mutex::new(ended);
        Ok(true)
    }

    /// How to reach a database of this cluster.
    pub fn options(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket)
            .username(ROLE)
            .password(self.entrance.password.text())
            .database(database)
    }

    /// The address of a database of this cluster, for other programs; with the password.
    pub fn url(&self, database: &str) -> String {
        let (password, socket) = (self.entrance.password.text(), self.socket.display());
        format!("postgres://{ROLE}:{password}@localhost/{database}?host={socket}")
    }

    /// The process id of the server.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Stops the server cleanly: connections are cut, what is committed is on disk.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        // A server that has ended by itself is nobody's id any more.
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
    entrance: &Credentials,
    durability: Durability,
) -> Result<(Pid, Receiver<io::Result<ExitStatus>>), PostgresError> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        let (pid, ended) = place.spawn(binaries, socket, entrance, durability)?;
        match place.wait_ready(pid, &ended, deadline)? {
            Start::Ready => return Ok((pid, ended)),
            // A server that was killed with our predecessor may take a moment to go.
            Start::Occupied => thread::sleep(LOOK * 10),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.shut_down();
    }
}

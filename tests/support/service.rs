//! Programs that run beside a test: started, stopped, killed, started again.

use std::fs::{self, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arbiter_coordinator::postgres::{Durability, Postgres};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{arbiter, models};

/// The time limit of all waits, even on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);
/// The least interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The greatest one. Some conditions hold for a while only.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Ports outside the system's ephemeral range, so that one is still free when a killed program
/// starts again.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Waits until something holds. A check that takes long, such as a command, is made less often, so
/// that the processors are left to what the test waits for.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let started = Instant::now();
        if holds() {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: not within {} s", TIMEOUT.as_secs());
        thread::sleep((2 * started.elapsed()).clamp(POLL_INTERVAL, MAX_POLL_INTERVAL));
    }
}

/// An address that nothing listens on, and that no other process ever takes: the program that the
/// test kills starts again at its former address.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(PORTS.start);
    // Each process has its own host in 127.0.0.0/8: process ids have at most 22 bits.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let host = [127, high + 1, middle, low];
    let port = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(PORTS.contains(&port), "a test program needs too many ports");
    SocketAddr::from((host, port))
}

/// A running program. Dropping it kills it.
pub(crate) struct Service {
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Service {
    /// Starts a program. Its output is appended to `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { child: command.spawn().unwrap(), log: log.to_owned(), status: None }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Its exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().unwrap();
        }
        self.status
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            kill_process(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
        }
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if self.status.is_none() {
            self.child.kill().unwrap();
            self.status = Some(self.child.wait().unwrap());
        }
    }

    /// Waits for its end, and returns its exit code; `None` if a signal ended it.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.ended() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.log());
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Stops it with SIGTERM, and returns its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Stops it with SIGTERM and waits, but ignores failures: for the end of a passed or failed
    /// test.
    pub(crate) fn leave(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        let ask = || Pid::from_raw(self.pid()).map(|pid| kill_process(pid, Signal::TERM));
        if self.status.is_none() && ask().is_some_and(|asked| asked.is_ok()) {
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Everything in its log.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Waits until its log contains a text. It must not end before.
    pub(crate) fn wait_for_log(&mut self, words: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.log().contains(words) {
            let goes_on = self.ended().is_none() && Instant::now() < deadline;
            assert!(goes_on || self.log().contains(words), "no {words:?} in: {}", self.log());
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A private Postgres.
pub(crate) struct Database {
    pub(crate) postgres: Postgres,
    _directory: TempDir,
}

impl Database {
    /// Starts one without bots and tournaments.
    pub(crate) fn start(durability: Durability) -> Self {
        let directory = tempfile::tempdir().unwrap();
        models::copy_cluster_to(directory.path());
        Self::start_in(directory, durability)
    }

    /// Starts one whose tables another version will create.
    pub(crate) fn start_empty(durability: Durability) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), durability)
    }

    fn start_in(directory: TempDir, durability: Durability) -> Self {
        let postgres = Postgres::start(directory.path(), durability).unwrap();
        Self { postgres, _directory: directory }
    }

    pub(crate) fn url(&self) -> String {
        self.postgres.url("postgres")
    }

    /// Creates a token in it.
    pub(crate) fn token(&self, role: &str) -> String {
        let url = self.url();
        let mut command = arbiter();
        command.args(["token", "create", "--role", role, "--database-url", &url]);
        let stdout = done(&command.output().unwrap());
        stdout.trim().to_owned()
    }

    /// A coordinator of this database.
    pub(crate) fn coordinator(&self, grpc: SocketAddr) -> Command {
        let mut command = arbiter();
        command.args(["coordinator", "--database-url", &self.url(), "--grpc", &grpc.to_string()]);
        command
    }
}

/// The output of a command, which must have succeeded.
pub(crate) fn done(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

//! A deployment under test: Postgres, coordinators and workers, each a separate process.

#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use arbiter_coordinator::postgres::Durability;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::database_checks::DatabaseChecks;
use crate::support::service::{Database, Service, done, free_address, wait_until};
use crate::support::{arbiter, files};
use crate::tournaments::TestTournament;

/// A complete deployment. Committed data survives the end of Postgres.
pub(crate) struct Deployment {
    pub(crate) database: Database,
    pub(crate) checks: DatabaseChecks,
    pub(crate) workers: Vec<Service>,
    pub(crate) coordinators: Vec<Service>,
    /// The gRPC addresses of the coordinators.
    addresses: Vec<SocketAddr>,
    /// The HTTP addresses of the coordinators.
    pages: Vec<SocketAddr>,
    lease: &'static str,
    /// The record store, if not the database.
    records: Option<PathBuf>,
    admin: String,
    /// The token of workers.
    pass: String,
    slots: usize,
    /// The process ids of all workers so far.
    pub(crate) pids: Vec<i32>,
    directory: TempDir,
}

/// Tokens of an administrator and of workers.
pub(crate) fn new_tokens(database: &Database) -> [String; 2] {
    ["admin", "worker"].map(|role| database.token(role))
}

impl Deployment {
    /// Opens a deployment with this many workers, slots of each, and this lease time. With several
    /// workers, records are stored outside of the database.
    pub(crate) fn open(workers: usize, slots: usize, lease: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let records = (workers > 1).then(|| directory.path().join("records"));
        let database = Database::start(Durability::Synced);
        let tokens = new_tokens(&database);
        Self::fill(directory, database, tokens, records, 1, workers, slots, lease)
    }

    /// Like [`Self::open`], with this number of coordinators, a database that may contain data, and
    /// these tokens of an administrator and of workers.
    pub(crate) fn open_in(
        database: Database,
        tokens: [String; 2],
        coordinators: usize,
        workers: usize,
        slots: usize,
        lease: &'static str,
    ) -> Self {
        Self::fill(
            tempfile::tempdir().unwrap(),
            database,
            tokens,
            None,
            coordinators,
            workers,
            slots,
            lease,
        )
    }

    /// The tokens of its administrator and its workers.
    pub(crate) fn tokens(&self) -> [String; 2] {
        [self.admin.clone(), self.pass.clone()]
    }

    #[expect(clippy::too_many_arguments, reason = "the programs of a deployment")]
    fn fill(
        directory: TempDir,
        database: Database,
        [admin, pass]: [String; 2],
        records: Option<PathBuf>,
        coordinators: usize,
        workers: usize,
        slots: usize,
        lease: &'static str,
    ) -> Self {
        let checks = DatabaseChecks::new(&database);
        let addresses = || (0..coordinators).map(|_| free_address()).collect();
        let mut deployment = Self {
            coordinators: Vec::new(),
            addresses: addresses(),
            pages: addresses(),
            database,
            checks,
            workers: Vec::new(),
            lease,
            records,
            admin,
            pass,
            slots,
            pids: Vec::new(),
            directory,
        };
        for number in 0..coordinators {
            let mut coordinator = deployment.start_coordinator(number);
            coordinator.wait_for_log("serving");
            deployment.coordinators.push(coordinator);
        }
        for number in 0..workers {
            let worker = deployment.start_worker(number);
            deployment.workers.push(worker);
        }
        deployment
    }

    /// A path for a file of a test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The spool of a worker.
    pub(crate) fn spool(&self, number: usize) -> PathBuf {
        self.path(&format!("spool-{number}"))
    }

    /// The temporary directory of a worker's programs.
    pub(crate) fn scratch(&self, number: usize) -> PathBuf {
        self.path(&format!("scratch-{number}"))
    }

    fn start_worker(&mut self, number: usize) -> Service {
        std::fs::create_dir_all(self.scratch(number)).unwrap();
        let mut command = arbiter();
        command
            .arg("worker")
            .args(["--coordinator", &self.servers(number), "--slots", &self.slots.to_string()])
            .args(["--name", &format!("worker-{number}"), "--spool"])
            .arg(self.spool(number))
            .env("ARBITER_TOKEN", &self.pass)
            .env("TMPDIR", self.scratch(number));
        let worker = Service::start(&mut command, &self.path(&format!("worker-{number}.log")));
        self.pids.push(worker.pid());
        worker
    }

    /// A coordinator that retries every match without limit.
    fn start_coordinator(&self, number: usize) -> Service {
        let mut command = self.database.coordinator(self.addresses[number]);
        command.args(["--lease", self.lease, "--faults", "1000"]);
        command.args(["--http", &self.pages[number].to_string()]);
        if let Some(directory) = &self.records {
            command.args(["--records", &format!("file://{}", directory.display())]);
        }
        let log = if number == 0 { "log".to_owned() } else { format!("log-{number}") };
        Service::start(&mut command, &self.path(&log))
    }

    /// The addresses of all coordinators for a worker: each worker starts with a different one.
    fn servers(&self, first: usize) -> String {
        let mut servers: Vec<_> = self.addresses.iter().map(|at| format!("http://{at}")).collect();
        servers.rotate_left(first % self.addresses.len());
        servers.join(",")
    }

    /// A command of the administrator.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", self.servers(0));
        command.env("ARBITER_TOKEN", &self.admin);
        command
    }

    /// The output of a command, which must succeed.
    pub(crate) fn succeed(&self, words: &str) -> String {
        done(&self.command(words).output().unwrap())
    }

    /// Creates a tournament with all its bots.
    pub(crate) fn create(&self, contest: &TestTournament) {
        let TestTournament { name, file, bots } = contest;
        done(&self.command("tournament create").arg(file).output().unwrap());
        for (path, called) in bots {
            let mut submit = self.command(&format!("submit {name} --house --name {called}"));
            done(&submit.arg(path).output().unwrap());
        }
    }

    /// Starts a tournament, and a client that watches it.
    pub(crate) fn start(&self, contest: &TestTournament) -> Service {
        let TestTournament { name, .. } = contest;
        self.succeed(&format!("tournament start {name}"));
        let log = self.path(&format!("watch-{name}"));
        let mut watcher =
            Service::start(&mut self.command(&format!("tournament watch {name}")), &log);
        watcher.wait_for_log("edition 1");
        watcher
    }

    /// Kills a worker, and starts it again.
    pub(crate) fn kill_worker(&mut self, number: usize) {
        self.workers[number].kill();
        self.workers[number] = self.start_worker(number);
    }

    /// Stops a worker with a signal, and starts it again.
    pub(crate) fn replace_worker(&mut self, number: usize) {
        assert_eq!(self.workers[number].stop(), Some(0), "{}", self.workers[number].log());
        self.workers[number] = self.start_worker(number);
    }

    /// Kills the coordinator.
    pub(crate) fn kill_coordinator(&mut self) {
        self.coordinators[0].kill();
    }

    /// Starts it again.
    pub(crate) fn restart_coordinator(&mut self) {
        self.start_ended_coordinator(0);
    }

    /// Starts a coordinator that has ended.
    pub(crate) fn start_ended_coordinator(&mut self, number: usize) {
        self.coordinators[number] = self.start_coordinator(number);
    }

    /// Stops a coordinator with a signal, starts it again, and waits until it serves.
    pub(crate) fn replace_coordinator(&mut self, number: usize) {
        let coordinator = &mut self.coordinators[number];
        assert_eq!(coordinator.stop(), Some(0), "{}", coordinator.log());
        self.start_ended_coordinator(number);
        let address = self.addresses[number];
        wait_until("the coordinator serves", || TcpStream::connect(address).is_ok());
    }

    /// Whether a coordinator says that it leads; `false` if it does not respond in time.
    pub(crate) fn leads(&self, number: usize) -> bool {
        ask(self.pages[number], "/readyz").is_ok_and(|answer| answer.ends_with("\nleader\n"))
    }

    /// Waits until it serves: earlier connections are refused.
    pub(crate) fn expect_serving(&self) {
        let address = self.addresses[0];
        wait_until("the coordinator serves", || TcpStream::connect(address).is_ok());
    }

    /// Kills the server of the database.
    pub(crate) fn kill_postgres(&mut self) {
        let pid = Pid::from_raw(self.database.postgres.pid()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }

    /// Starts it again.
    pub(crate) fn restart_postgres(&mut self) {
        wait_until("Postgres has ended", || self.database.postgres.restart_if_ended().unwrap());
    }

    /// Expects that all services run.
    pub(crate) fn expect_alive(&mut self) {
        for service in self.coordinators.iter_mut().chain(&mut self.workers) {
            if let Some(status) = service.ended() {
                panic!("a service ended by itself ({status}): {}", service.log());
            }
        }
    }

    /// Stops all services with a signal, workers first. They must exit with code 0.
    pub(crate) fn close(&mut self) {
        for worker in &self.workers {
            worker.signal(Signal::TERM);
        }
        for worker in &mut self.workers {
            assert_eq!(worker.wait(), Some(0), "{}", worker.log());
        }
        for coordinator in &mut self.coordinators {
            assert_eq!(coordinator.stop(), Some(0), "{}", coordinator.log());
        }
    }

    /// The last lines of all logs, to find the cause of a failure.
    pub(crate) fn log_tails(&self) -> String {
        let files = files(self.directory.path());
        let logs = files.iter().filter(|path| path.is_file());
        logs.map(|path| last_lines(path)).collect()
    }
}

/// The response of a page.
fn ask(pages: SocketAddr, path: &str) -> std::io::Result<String> {
    const TIMEOUT: Duration = Duration::from_secs(1);
    let mut stream = TcpStream::connect_timeout(&pages, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {pages}\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

/// The last lines of a file.
fn last_lines(path: &Path) -> String {
    const LINES: usize = 30;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
    format!("--- {}\n{last}\n", path.display())
}

//! Where tournaments are played: a Postgres, a coordinator and workers, each a process of its own.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use arbiter_coordinator::postgres::Durability;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::contests::Contest;
use crate::ledger::Ledger;
use crate::support::service::{Database, Service, done, free_address, wait_until};
use crate::support::{arbiter, files};

/// A hall with everything in it. Of Postgres what is committed survives its end.
pub(crate) struct Hall {
    pub(crate) database: Database,
    pub(crate) ledger: Ledger,
    pub(crate) workers: Vec<Service>,
    coordinator: Service,
    address: SocketAddr,
    lease: &'static str,
    admin: String,
    /// The token of workers.
    pass: String,
    slots: usize,
    /// The process ids that workers had.
    pub(crate) pids: Vec<i32>,
    directory: TempDir,
}

impl Hall {
    /// Opens a hall with so many workers of so many slots each, and leases that hold so long.
    pub(crate) fn open(workers: usize, slots: usize, lease: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::start(Durability::Synced);
        let ledger = Ledger::new(&database);
        let (admin, pass) = (database.token("admin"), database.token("worker"));
        let address = free_address();
        let mut command = coordinator(&database, address, lease);
        let mut hall = Self {
            coordinator: Service::start(&mut command, &directory.path().join("log")),
            database,
            ledger,
            workers: Vec::new(),
            address,
            lease,
            admin,
            pass,
            slots,
            pids: Vec::new(),
            directory,
        };
        hall.coordinator.hear("serving");
        for number in 0..workers {
            let worker = hall.start_worker(number);
            hall.workers.push(worker);
        }
        hall
    }

    /// A place for files of a test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where a worker keeps its reports.
    pub(crate) fn spool(&self, number: usize) -> PathBuf {
        self.path(&format!("spool-{number}"))
    }

    /// Where a worker's programs put what they need for a while.
    pub(crate) fn scratch(&self, number: usize) -> PathBuf {
        self.path(&format!("scratch-{number}"))
    }

    fn start_worker(&mut self, number: usize) -> Service {
        std::fs::create_dir_all(self.scratch(number)).unwrap();
        let mut command = arbiter();
        command
            .arg("worker")
            .args(["--coordinator", &self.server(), "--slots", &self.slots.to_string()])
            .args(["--name", &format!("worker-{number}"), "--spool"])
            .arg(self.spool(number))
            .env("ARBITER_TOKEN", &self.pass)
            .env("TMPDIR", self.scratch(number));
        let worker = Service::start(&mut command, &self.path(&format!("worker-{number}.log")));
        self.pids.push(worker.pid());
        worker
    }

    fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A command of the administrator's.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", self.server());
        command.env("ARBITER_TOKEN", &self.admin);
        command
    }

    /// What a command prints that must end well.
    pub(crate) fn tell(&self, words: &str) -> String {
        done(&self.command(words).output().unwrap())
    }

    /// Makes a tournament, with all its bots.
    pub(crate) fn create(&self, contest: &Contest) {
        let Contest { name, file, bots } = contest;
        done(&self.command("tournament create").arg(file).output().unwrap());
        for (path, called) in bots {
            let mut submit = self.command(&format!("submit {name} --house --name {called}"));
            done(&submit.arg(path).output().unwrap());
        }
    }

    /// Starts a tournament, and somebody who watches it.
    pub(crate) fn start(&self, contest: &Contest) -> Service {
        let Contest { name, .. } = contest;
        self.tell(&format!("tournament start {name}"));
        let log = self.path(&format!("watch-{name}"));
        let mut watcher =
            Service::start(&mut self.command(&format!("tournament watch {name}")), &log);
        watcher.hear("edition 1");
        watcher
    }

    /// Kills a worker, and starts it again.
    pub(crate) fn kill_worker(&mut self, number: usize) {
        self.workers[number].kill();
        self.workers[number] = self.start_worker(number);
    }

    /// Kills the coordinator.
    pub(crate) fn kill_coordinator(&mut self) {
        self.coordinator.kill();
    }

    /// Starts it again.
    pub(crate) fn restart_coordinator(&mut self) {
        let mut command = coordinator(&self.database, self.address, self.lease);
        self.coordinator = Service::start(&mut command, &self.path("log"));
    }

    /// Waits until it serves: clients that ask earlier are refused.
    pub(crate) fn expect_serving(&self) {
        wait_until("the coordinator serves", || TcpStream::connect(self.address).is_ok());
    }

    /// Kills the server of the database.
    pub(crate) fn kill_postgres(&mut self) {
        let pid = Pid::from_raw(self.database.postgres.pid()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }

    /// Starts it again.
    pub(crate) fn restart_postgres(&mut self) {
        wait_until("a killed Postgres is gone", || self.database.postgres.revive().unwrap());
    }

    /// Expects that everything runs that should.
    pub(crate) fn expect_alive(&mut self) {
        for service in [&mut self.coordinator].into_iter().chain(&mut self.workers) {
            if let Some(status) = service.ended() {
                panic!("a service ended by itself ({status}): {}", service.said());
            }
        }
    }

    /// Asks all services to end, workers first; they must end well.
    pub(crate) fn close(&mut self) {
        for worker in &self.workers {
            worker.signal(Signal::TERM);
        }
        for worker in &mut self.workers {
            assert_eq!(worker.wait(), Some(0), "{}", worker.said());
        }
        assert_eq!(self.coordinator.stop(), Some(0), "{}", self.coordinator.said());
    }

    /// The ends of all logs, for whoever looks for a cause.
    pub(crate) fn last_words(&self) -> String {
        let files = files(self.directory.path());
        let logs = files.iter().filter(|path| path.is_file());
        logs.map(|path| last_lines(path)).collect()
    }
}

/// A coordinator that never gives a match up.
fn coordinator(database: &Database, address: SocketAddr, lease: &str) -> Command {
    let mut command = database.coordinator(address);
    command.args(["--lease", lease, "--faults", "1000"]);
    command
}

/// The last lines of a file.
fn last_lines(path: &Path) -> String {
    const LINES: usize = 30;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
    format!("--- {}\n{last}\n", path.display())
}

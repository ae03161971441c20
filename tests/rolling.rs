//! Upgrades an installation while a tournament is played, without an effect on results: coordinator
//! first, workers first, and with coordinators of both versions at once.
//!
//! `scripts/upgrade-test.sh` builds the previous version and names it in `ARBITER_PREVIOUS`.
//! Without it the tests are skipped.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]
#![expect(clippy::disallowed_methods, reason = "the programs under test are started from outside")]

#[path = "support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use arbiter_coordinator::postgres::Durability;
use sqlx::{Connection as _, PgConnection};
use support::service::{Database, Service, done, free_address, wait_until};
use tempfile::TempDir;

/// A version of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Previous,
    This,
}

use Version::{Previous, This};

/// The program of the previous version. Prints a note if there is none.
fn previous() -> Option<PathBuf> {
    let path = env::var_os("ARBITER_PREVIOUS").map(PathBuf::from);
    if path.is_none() {
        println!(
            "skipped: ARBITER_PREVIOUS names no previous version; run scripts/upgrade-test.sh"
        );
    }
    path
}

/// All running programs. Each is of either version.
struct Cluster {
    previous: PathBuf,
    database: Database,
    address: SocketAddr,
    coordinator: Service,
    workers: Vec<Service>,
    admin: String,
    pass: String,
    directory: TempDir,
    started: usize,
}

impl Cluster {
    /// Starts a coordinator and two workers with one slot each, all of the previous version, and
    /// waits for the middle of two tournaments.
    fn start(previous: PathBuf) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::start_empty(Durability::Unsynced);
        let address = free_address();
        let token = |role: &str| {
            let mut command = Command::new(&previous);
            command.args(["token", "create", "--role", role, "--database-url", &database.url()]);
            done(&command.output().unwrap()).trim().to_owned()
        };
        let admin = token("admin");
        let pass = token("worker");
        let mut command = Command::new(&previous);
        let url = database.url();
        command.args(["coordinator", "--database-url", &url, "--grpc", &address.to_string()]);
        let mut coordinator = Service::start(&mut command, &directory.path().join("coordinator"));
        coordinator.wait_for_log("serving");
        let workers = Vec::new();
        let mut cluster = Self {
            previous,
            database,
            address,
            coordinator,
            workers,
            admin,
            pass,
            directory,
            started: 0,
        };
        for game in ["gomoku", "blackjack"] {
            cluster.succeed(&format!("tournament create tests/upgrade/{game}.toml"));
            let bots = if game == "gomoku" { ["shapes", "center"] } else { ["basic", "lim17"] };
            for (bot, twin) in bots.iter().flat_map(|bot| [(bot, 1), (bot, 2), (bot, 3)]) {
                let name = format!("--house --name {bot}-{twin}");
                cluster.succeed(&format!("submit {game} bots/{game}/{bot} {name}"));
            }
            cluster.succeed(&format!("tournament start {game}"));
        }
        for _ in 0..2 {
            let worker = cluster.worker(Previous, address);
            cluster.workers.push(worker);
        }
        cluster.wait(6);
        cluster
    }

    fn program(&self, version: Version) -> Command {
        let mut command = match version {
            Previous => Command::new(&self.previous),
            This => support::arbiter(),
        };
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command
    }

    /// Runs a command of this version, which must succeed, and returns its output.
    fn succeed(&self, words: &str) -> String {
        let mut command = self.program(This);
        command.args(words.split(' ')).env("ARBITER_SERVER", format!("http://{}", self.address));
        done(&command.env("ARBITER_TOKEN", &self.admin).output().unwrap())
    }

    /// Starts a worker with a new spool.
    fn worker(&mut self, version: Version, at: SocketAddr) -> Service {
        self.started += 1;
        let name = format!("{version:?}-{}", self.started);
        let mut command = self.program(version);
        command.args(["worker", "--coordinator", &format!("http://{at}"), "--slots", "1"]);
        command.args(["--name", &name, "--spool"]).arg(self.directory.path().join("s").join(&name));
        command.env("ARBITER_TOKEN", &self.pass);
        Service::start(&mut command, &self.directory.path().join(name))
    }

    fn coordinator(&self, version: Version, at: SocketAddr) -> Service {
        let mut command = self.program(version);
        let url = self.database.url();
        command.args(["coordinator", "--database-url", &url, "--grpc", &at.to_string()]);
        let log = self.directory.path().join(format!("coordinator-{version:?}-{}", at.port()));
        let mut coordinator = Service::start(&mut command, &log);
        coordinator.wait_for_log("serving");
        coordinator
    }

    /// Stops the coordinator and starts one of this version, as a rolling restart does.
    fn upgrade_coordinator(&mut self) {
        assert_eq!(self.coordinator.stop(), Some(0), "{}", self.coordinator.log());
        self.coordinator = self.coordinator(This, self.address);
    }

    /// Replaces the workers one by one. Each finishes its match first.
    fn upgrade_workers(&mut self) {
        for number in 0..self.workers.len() {
            let counted = self.number("SELECT count(*) FROM results");
            assert_eq!(self.workers[number].stop(), Some(0), "{}", self.workers[number].log());
            self.workers[number] = self.worker(This, self.address);
            self.wait(counted + 2);
        }
    }

    fn number(&self, statement: &'static str) -> i64 {
        let options = self.database.postgres.options("postgres");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let mut connection = PgConnection::connect_with(&options).await.unwrap();
            let number = sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            number
        })
    }

    /// Waits for this many results, or for the end of all editions.
    fn wait(&self, results: i64) {
        wait_until("matches are played", || {
            self.number("SELECT count(*) FROM results") >= results
                || self.number("SELECT count(*) FROM editions WHERE state = 'running'") == 0
        });
    }

    /// Waits for the end, checks that nothing failed, and returns the leaderboards.
    fn end(mut self) -> String {
        let mut boards = String::new();
        for game in ["gomoku", "blackjack"] {
            self.succeed(&format!("tournament watch {game}"));
            self.succeed(&format!("tournament check {game}"));
            boards += &self.succeed(&format!("ranking {game} --format csv"));
        }
        let again = "SELECT count(*) FROM lots WHERE attempt > 1 AND faults > 0";
        assert_eq!((self.number("SELECT count(*) FROM faults"), self.number(again)), (0, 0));
        let forfeits = "SELECT count(*) FROM results WHERE forfeits IS NOT NULL";
        assert_eq!(self.number(forfeits), 0);
        for worker in &mut self.workers {
            assert_eq!(worker.stop(), Some(0), "{}", worker.log());
        }
        assert_eq!(self.coordinator.stop(), Some(0), "{}", self.coordinator.log());
        boards
    }
}

/// The leaderboards are equal with an upgrade in either order, and without an upgrade.
#[test]
fn an_upgrade_does_not_change_the_leaderboards() {
    let Some(previous) = previous() else { return };
    let calm = Cluster::start(previous.clone()).end();
    let mut coordinator_first = Cluster::start(previous.clone());
    coordinator_first.upgrade_coordinator();
    let counted = coordinator_first.number("SELECT count(*) FROM results");
    coordinator_first.wait(counted + 3);
    coordinator_first.upgrade_workers();
    assert_eq!(coordinator_first.end(), calm);
    let mut workers_first = Cluster::start(previous);
    workers_first.upgrade_workers();
    workers_first.upgrade_coordinator();
    assert_eq!(workers_first.end(), calm);
}

/// Coordinators of both versions serve from one database, with workers of both versions: the old
/// one works with the tables of the new one.
#[test]
fn coordinators_of_two_versions_share_a_database() {
    let Some(previous) = previous() else { return };
    let mut cluster = Cluster::start(previous);
    let second = free_address();
    let mut other = cluster.coordinator(This, second);
    let worker = cluster.worker(This, second);
    cluster.workers.push(worker);
    let worker = cluster.worker(Previous, second);
    cluster.workers.push(worker);
    let counted = cluster.number("SELECT count(*) FROM results");
    cluster.wait(counted + 8);
    // A tournament that the old coordinator creates gets its partitions, too.
    let mut command = cluster.program(This);
    command.args(["tournament", "list"]).env("ARBITER_SERVER", format!("http://{second}"));
    assert!(done(&command.output().unwrap()).contains("gomoku"));
    let file = fs::read_to_string("tests/upgrade/gomoku.toml").unwrap();
    let late = cluster.directory.path().join("late.toml");
    fs::write(&late, file.replace("name = \"gomoku\"", "name = \"late\"")).unwrap();
    cluster.succeed(&format!("tournament create {}", late.display()));
    for twin in 1..=2 {
        cluster.succeed(&format!("submit late bots/gomoku/center --house --name center-{twin}"));
    }
    cluster.succeed("tournament start late");
    cluster.succeed("tournament watch late");
    let partitions = "SELECT count(*) FROM partitions s JOIN tournaments t ON t.id = s.tournament
        WHERE t.name = 'late' AND to_regclass('matches_' || t.id) IS NOT NULL";
    assert_eq!(cluster.number(partitions), 1);
    cluster.upgrade_coordinator();
    cluster.end();
    assert_eq!(other.stop(), Some(0), "{}", other.log());
}

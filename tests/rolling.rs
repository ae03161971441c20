//! An installation is upgraded while a tournament is played, and nobody notices: coordinator first
//! and workers later, the other way round, and with coordinators of both versions at once.
//!
//! `scripts/upgrade-test.sh` builds the version before and says where it is (`ARBITER_PREVIOUS`).
//! Without it the tests are left out.

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

/// The program of the version before; nothing, and a word about it, if it is not here.
fn previous() -> Option<PathBuf> {
    let path = env::var_os("ARBITER_PREVIOUS").map(PathBuf::from);
    if path.is_none() {
        println!("left out: the version before is not here; scripts/upgrade-test.sh builds it");
    }
    path
}

/// Everything that runs, each part of either version.
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
    /// Two workers with a slot each, all of it of the version before, in the middle of two tournaments.
    fn start(previous: PathBuf) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::start(Durability::Fleeting);
        let address = free_address();
        let token = |role: &str| {
            let mut command = Command::new(&previous);
            command.args(["token", "create", "--role", role, "--database-url", &database.url()]);
            done(&command.output().unwrap()).trim().to_owned()
        };
        let (admin, pass) = (token("admin"), token("worker"));
        let mut command = Command::new(&previous);
        let url = database.url();
        command.args(["coordinator", "--database-url", &url, "--grpc", &address.to_string()]);
        let mut coordinator = Service::start(&mut command, &directory.path().join("coordinator"));
        coordinator.hear("serving");
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
            cluster.tell(&format!("tournament create tests/upgrade/{game}.toml"));
            let bots = if game == "gomoku" { ["shapes", "center"] } else { ["basic", "lim17"] };
            for (bot, twin) in bots.iter().flat_map(|bot| [(bot, 1), (bot, 2), (bot, 3)]) {
                let name = format!("--house --name {bot}-{twin}");
                cluster.tell(&format!("submit {game} bots/{game}/{bot} {name}"));
            }
            cluster.tell(&format!("tournament start {game}"));
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

    /// What a command of this version prints, which must end well.
    fn tell(&self, words: &str) -> String {
        let mut command = self.program(This);
        command.args(words.split(' ')).env("ARBITER_SERVER", format!("http://{}", self.address));
        done(&command.env("ARBITER_TOKEN", &self.admin).output().unwrap())
    }

    /// A worker with a spool of its own.
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
        coordinator.hear("serving");
        coordinator
    }

    /// Replaces the coordinator, as a rolling restart does: it is asked to end, and waited for.
    fn upgrade_coordinator(&mut self) {
        assert_eq!(self.coordinator.stop(), Some(0), "{}", self.coordinator.said());
        self.coordinator = self.coordinator(This, self.address);
    }

    /// Replaces the workers one by one: each lets its match end.
    fn upgrade_workers(&mut self) {
        for number in 0..self.workers.len() {
            let counted = self.number("SELECT count(*) FROM results");
            assert_eq!(self.workers[number].stop(), Some(0), "{}", self.workers[number].said());
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

    /// Waits until so many matches have results, or all are over.
    fn wait(&self, results: i64) {
        wait_until("matches are played", || {
            self.number("SELECT count(*) FROM results") >= results
                || self.number("SELECT count(*) FROM editions WHERE state = 'running'") == 0
        });
    }

    /// Waits for the end, and gives the leaderboards. Nothing may have failed.
    fn end(mut self) -> String {
        let mut boards = String::new();
        for game in ["gomoku", "blackjack"] {
            self.tell(&format!("tournament watch {game}"));
            self.tell(&format!("tournament check {game}"));
            boards += &self.tell(&format!("ranking {game} --format csv"));
        }
        let again = "SELECT count(*) FROM lots WHERE attempt > 1 AND faults > 0";
        assert_eq!((self.number("SELECT count(*) FROM faults"), self.number(again)), (0, 0));
        let forfeits = "SELECT count(*) FROM results WHERE forfeits IS NOT NULL";
        assert_eq!(self.number(forfeits), 0);
        for worker in &mut self.workers {
            assert_eq!(worker.stop(), Some(0), "{}", worker.said());
        }
        assert_eq!(self.coordinator.stop(), Some(0), "{}", self.coordinator.said());
        boards
    }
}

/// All ways come to the same end: an installation that is upgraded in the one order or the other, or
/// not at all.
#[test]
fn an_upgrade_changes_nothing() {
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

/// Coordinators of both versions on one database: the old one goes on with the tables of the new one,
/// with workers of both versions.
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
    // What is made by the old one has its place in the tables of the new one.
    let mut command = cluster.program(This);
    command.args(["tournament", "list"]).env("ARBITER_SERVER", format!("http://{second}"));
    assert!(done(&command.output().unwrap()).contains("gomoku"));
    let file = fs::read_to_string("tests/upgrade/gomoku.toml").unwrap();
    let late = cluster.directory.path().join("late.toml");
    fs::write(&late, file.replace("name = \"gomoku\"", "name = \"late\"")).unwrap();
    cluster.tell(&format!("tournament create {}", late.display()));
    for twin in 1..=2 {
        cluster.tell(&format!("submit late bots/gomoku/center --house --name center-{twin}"));
    }
    cluster.tell("tournament start late");
    cluster.tell("tournament watch late");
    let shelves = "SELECT count(*) FROM editions e JOIN partitions s USING (tournament)
        WHERE e.id >= s.first_edition AND e.id < s.end_edition";
    assert_eq!(cluster.number(shelves), 1);
    cluster.upgrade_coordinator();
    cluster.end();
    assert_eq!(other.stop(), Some(0), "{}", other.said());
}

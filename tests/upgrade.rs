//! Tournaments that started under an earlier version finish under this one.
//!
//! For the baseline and each release with a migration, `tests/upgrade/` holds a database in the
//! middle of two tournaments, and the leaderboards with which that version finished them
//! (`scripts/upgrade-fixture.sh`). The test migrates each database, finishes, checks and deletes
//! its tournaments.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use arbiter_coordinator::postgres::Durability;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use support::service::{Database, Service, done, free_address, wait_until};
use support::{arbiter, files};

/// The names of both tournaments in the fixtures.
const TOURNAMENTS: [&str; 2] = ["gomoku", "blackjack"];

/// Direct access to the database.
struct Ledger(tokio::runtime::Runtime, sqlx::postgres::PgConnectOptions);

impl Ledger {
    fn new(database: &Database) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self(runtime.unwrap(), database.postgres.options("postgres"))
    }

    fn run(&self, script: String) {
        self.0.block_on(async {
            let mut connection = PgConnection::connect_with(&self.1).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        });
    }

    fn number(&self, statement: &'static str) -> i64 {
        self.0.block_on(async {
            let mut connection = PgConnection::connect_with(&self.1).await.unwrap();
            let number = sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            number
        })
    }
}

/// Checks that each line of a leaderboard has all fields of the earlier version, with equal values.
/// It may have more, and a game may rename its columns. Intervals went to the statistics, and the
/// means of blackjack are per episode.
fn expect_same(before: &str, now: &str) {
    let lines = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let before = lines(before);
    let now = lines(now);
    assert_eq!(before.len(), now.len());
    for (before, now) in before.iter().zip(&now) {
        let is_blackjack = before["columns"] == json!(["chips", "solvent"]);
        for (key, value) in before.as_object().unwrap() {
            let is_changed = ["columns", "interval95"].contains(&key.as_str());
            if is_changed || (is_blackjack && key == "mean") {
                continue;
            }
            assert_eq!(&now[key], value, "{key}: {before}\n{now}");
        }
    }
}

/// Migrates a database, and finishes and deletes its tournaments.
fn finish(name: &str, dump: String, boards: &str) {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::start_empty(Durability::Unsynced);
    let ledger = Ledger::new(&database);
    ledger.run(dump);
    ledger.run(fs::read_to_string("deploy/postgres/restored.sql").unwrap());
    let before = ledger.number("SELECT count(*) FROM results");
    assert!(before >= 8, "{name} is half played");
    let admin = database.token("admin");
    let pass = database.token("worker");
    let address = free_address();
    let server = format!("http://{address}");
    let log = directory.path().join("coordinator.log");
    let mut coordinator = Service::start(&mut database.coordinator(address), &log);
    coordinator.wait_for_log("serving");
    // The tournaments accept a forfeit and bot state, which the fixture has none of.
    ledger.run(
        "BEGIN;
        INSERT INTO evidence (tournament, number, seat, wall_us, cpu_us, detail)
            SELECT id, 0, 1, 0, 0, 'gone' FROM tournaments;
        INSERT INTO bot_state (tournament, number, seat, digest)
            SELECT id, 0, 1, '' FROM tournaments;
        ROLLBACK"
            .to_owned(),
    );
    let mut command = arbiter();
    command.args(["worker", "--coordinator", &server, "--slots", "1", "--spool"]);
    command.arg(directory.path().join("spool")).env("ARBITER_TOKEN", &pass);
    let mut worker = Service::start(&mut command, &directory.path().join("worker.log"));
    let ask = |words: &str| -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", &server);
        command.env("ARBITER_TOKEN", &admin);
        command
    };
    let mut now = String::new();
    for tournament in TOURNAMENTS {
        done(&ask(&format!("tournament watch {tournament}")).output().unwrap());
        done(&ask(&format!("tournament check {tournament}")).output().unwrap());
        now += &done(&ask(&format!("ranking {tournament} --format json")).output().unwrap());
        let to = directory.path().join(tournament);
        let mut export = ask(&format!("tournament export {tournament} --records --out"));
        done(&export.arg(&to).output().unwrap());
        support::succeed(&["verify", to.join("records").to_str().unwrap()]);
    }
    expect_same(boards, &now);
    assert_eq!(ledger.number("SELECT count(*) FROM faults"), 0, "no attempt failed");
    // A new edition shares the matches from before the upgrade.
    let results = ledger.number("SELECT count(*) FROM results");
    for tournament in TOURNAMENTS {
        done(&ask(&format!("tournament start {tournament}")).output().unwrap());
        done(&ask(&format!("tournament watch {tournament}")).output().unwrap());
    }
    let all = ledger.number("SELECT count(*) FROM results");
    assert_eq!(all, results, "no match was played twice");
    for tournament in TOURNAMENTS {
        done(&ask(&format!("tournament close {tournament}")).output().unwrap());
        done(&ask(&format!("tournament drop {tournament} --yes")).output().unwrap());
    }
    let remaining = "SELECT (SELECT count(*) FROM tournaments) + (SELECT count(*) FROM results)
        + (SELECT count(*) FROM lots) + (SELECT count(*) FROM snapshots)";
    wait_until("all rows are deleted", || ledger.number(remaining) == 0);
    assert_eq!(worker.stop(), Some(0), "{}", worker.log());
    assert_eq!(coordinator.stop(), Some(0), "{}", coordinator.log());
}

#[test]
fn tournaments_of_earlier_versions_are_finished() {
    let mut dumps = 0;
    for path in files(Path::new("tests/upgrade")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = name.strip_suffix(".sql.zst") else { continue };
        let dump = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
        let boards = fs::read_to_string(format!("tests/upgrade/{name}.json")).unwrap();
        finish(name, String::from_utf8(dump).unwrap(), &boards);
        dumps += 1;
    }
    assert!(dumps > 0, "there are earlier versions");
}

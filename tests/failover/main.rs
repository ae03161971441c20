//! Several coordinators of one database. While a tournament is played, the leader is killed or
//! stopped, all services are restarted one after another, or the database moves to another server.
//! The results equal those of an undisturbed tournament, byte for byte.
//!
//! The tournaments and checks are those of the golden tournament.

#![allow(dead_code, reason = "the golden tournament uses more of it")]
#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

#[path = "../golden/database_checks.rs"]
mod database_checks;
#[path = "../golden/deployment.rs"]
mod deployment;
#[path = "../golden/leftovers.rs"]
mod leftovers;
#[path = "../golden/playthrough.rs"]
mod playthrough;
#[path = "../support/mod.rs"]
mod support;
#[path = "../golden/tournaments.rs"]
mod tournaments;

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use arbiter_coordinator::postgres::Durability;
use deployment::{Deployment, new_tokens};
use playthrough::{Ending, finish, play};
use rustix::process::Signal;
use support::service::{Database, Service, done, wait_until};
use tempfile::TempDir;
use tournaments::{Size, TestTournament};

/// Matches with results so far.
const PLAYED: &str = "SELECT count(*) FROM results";
/// Sessions that hold the leader's lock, which has one key. Locks of transactions have two.
const LEADERS: &str = "
    SELECT count(*) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database =
        (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The tournaments, and their results without disturbance.
struct Calm {
    contests: Vec<TestTournament>,
    ending: Ending,
    _folder: TempDir,
}

/// Plays without disturbance, once for all tests.
fn calm() -> &'static Calm {
    static CALM: OnceLock<Calm> = OnceLock::new();
    CALM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let contests = tournaments::all(Size::Small, folder.path());
        let ending = play(&contests, &mut Deployment::open(1, 1, "10min"), None);
        Calm { contests, ending, _folder: folder }
    })
}

/// Opens a deployment with several coordinators and a durable database.
fn several(coordinators: usize, workers: usize, lease: &'static str) -> Deployment {
    let database = Database::start(Durability::Synced);
    let tokens = new_tokens(&database);
    Deployment::open_in(database, tokens, coordinators, workers, 2, lease)
}

/// Waits until this many more matches were played and others are in play.
fn wait_for_matches(deployment: &mut Deployment, more: i64) {
    let target = deployment.checks.number(PLAYED) + more;
    wait_until("more matches are played", || {
        let leased = "SELECT count(*) FROM lots WHERE state = 'leased'";
        let running = "SELECT count(*) FROM editions WHERE ended_at IS NULL";
        assert!(deployment.checks.number(running) > 0, "all editions are already over");
        deployment.checks.number(PLAYED) >= target && deployment.checks.number(leased) > 0
    });
}

/// Waits until a coordinator leads for which `may` is true.
fn wait_for_leader(deployment: &Deployment, may: impl Fn(usize) -> bool) -> usize {
    let mut leader = None;
    wait_until("a coordinator leads", || {
        assert!(deployment.checks.number(LEADERS) <= 1, "two sessions hold the leader's lock");
        leader = (0..deployment.coordinators.len())
            .find(|number| may(*number) && deployment.leads(*number));
        leader.is_some()
    });
    leader.unwrap()
}

#[test]
fn losing_the_leader_does_not_change_the_results() {
    let calm = calm();
    let mut deployment = several(3, 3, "5s");
    let mut disturb = |deployment: &mut Deployment| {
        let killed = wait_for_leader(deployment, |_| true);
        wait_for_matches(deployment, 2);
        deployment.coordinators[killed].kill();
        let stopped = wait_for_leader(deployment, |number| number != killed);
        deployment.start_ended_coordinator(killed);
        wait_for_matches(deployment, 2);
        deployment.coordinators[stopped].signal(Signal::STOP);
        wait_for_leader(deployment, |number| number != stopped);
        wait_for_matches(deployment, 2);
        deployment.coordinators[stopped].signal(Signal::CONT);
        // The stopped leader learns that it lost leadership, and the other one still leads.
        deployment.coordinators[stopped].wait_for_log("lost leadership");
        wait_for_leader(deployment, |number| number != stopped);
    };
    let ending = play(&calm.contests, &mut deployment, Some(&mut disturb));
    calm.ending.expect_same(&ending);
}

#[test]
fn a_rolling_restart_does_not_change_the_results() {
    let calm = calm();
    let mut deployment = several(2, 2, "60s");
    let mut disturb = |deployment: &mut Deployment| {
        wait_for_leader(deployment, |_| true);
        wait_for_matches(deployment, 1);
        for number in 0..2 {
            deployment.replace_coordinator(number);
            wait_for_matches(deployment, 1);
        }
        for number in 0..2 {
            deployment.replace_worker(number);
            wait_for_matches(deployment, 1);
        }
    };
    let ending = play(&calm.contests, &mut deployment, Some(&mut disturb));
    calm.ending.expect_same(&ending);
    let (_, faults) = ending.disturbances;
    assert_eq!(faults, 0, "a rolling restart causes no fault");
}

#[test]
fn a_restored_backup_gives_the_same_results() {
    let calm = calm();
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("arbiter.dump");
    let mut former = several(1, 2, "10min");
    for contest in &calm.contests {
        former.create(contest);
    }
    let _watchers: Vec<_> = calm.contests.iter().map(|contest| former.start(contest)).collect();
    wait_for_matches(&mut former, 3);
    operate("backup", &dump, &former.database);
    wait_for_matches(&mut former, 1);
    let played = former.checks.number(PLAYED);
    let tokens = former.tokens();
    former.close();

    let database = Database::start_empty(Durability::Synced);
    operate("restore", &dump, &database);
    let mut deployment = Deployment::open_in(database, tokens, 2, 2, 2, "10min");
    let restored = deployment.checks.number(PLAYED);
    assert!((3..played).contains(&restored), "{restored} of {played} matches were in the backup");
    let watch = |contest: &TestTournament| {
        let log = deployment.path(&format!("watch-{}", contest.name));
        let mut watching = deployment.command(&format!("tournament watch {}", contest.name));
        Service::start(&mut watching, &log)
    };
    let mut watchers: Vec<_> = calm.contests.iter().map(watch).collect();
    let ending = finish(&calm.contests, &mut deployment, &mut watchers);
    calm.ending.expect_same(&ending);
}

/// Runs one of the operators' scripts.
#[expect(clippy::disallowed_methods, reason = "a script is started as operators do")]
fn operate(script: &str, dump: &Path, database: &Database) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/postgres").join(script);
    let mut command = Command::new(script);
    command.arg(dump).env("ARBITER_DATABASE_URL", database.url());
    done(&command.output().unwrap());
}

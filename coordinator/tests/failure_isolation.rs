//! Failures stay local: failed work is retried and delays nothing else, and finished work is not
//! discarded while it can still be stored.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
#[path = "support/outage.rs"]
mod outage;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::coordinator::Coordinator;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db;
use arbiter_coordinator::db::bots;
use arbiter_coordinator::db::editions::{self, EditionState};
use arbiter_coordinator::db::tournaments;
use arbiter_coordinator::leader_election::{Election, Leadership};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{Dispatcher, LeasePolicy, Queue};
use arbiter_coordinator::tournament::EditionOpener;
use arbiter_coordinator::tournament::auto_edition::OpenOutcome;
use arbiter_games::gomoku;
use arbiter_proto::ids::{EditionId, Lease};
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::{RenewLeases, ReportResponse, ReportStatus};
use grpc_client::{PATIENCE, Server, Worker, report as wire_report};
use outage::Outage;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnectOptions;
use support::test_clock::{AtTime as _, set_clock};
use support::{Database, START, config, plan, report, until};
use time::{Duration, OffsetDateTime};
use tokio::task::JoinSet;

/// Coordinators that start at the same time.
const AT_A_TIME: usize = 16;

async fn run(database: &Database, script: String) {
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&database.pool).await.unwrap();
}

/// Makes every change of a table fail with this code if `condition` holds for the new row.
async fn poison(database: &Database, table: &str, code: &str, condition: &str) {
    let script = format!(
        "CREATE FUNCTION poisoned() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'poisoned by a test' USING ERRCODE = '{code}'; END $$;
         CREATE TRIGGER poisoned BEFORE INSERT OR UPDATE ON {table}
             FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION poisoned()"
    );
    run(database, script).await;
}

async fn cure(database: &Database) {
    run(database, "DROP FUNCTION poisoned CASCADE".to_owned()).await;
}

/// A running edition of a tournament of this name.
async fn running(database: &Database, name: &str) -> EditionId {
    let tournament = database.tournament(name, gomoku::game()).await;
    let versions = database.versions(tournament, 5).await;
    let edition = editions::create(&database.pool, tournament, 1, false, START).await.unwrap();
    editions::enter(&database.pool, edition, &versions).await.unwrap();
    let queue = database.queue();
    queue.plan(edition, plan(4, 1)).await.unwrap();
    assert!(queue.start(edition).await.unwrap());
    edition
}

async fn verdict(worker: &mut Worker) -> ReportResponse {
    let CoordinatorPayload::ReportResponse(verdict) = worker.receive().await else {
        panic!("a verdict is due")
    };
    verdict
}

#[tokio::test]
async fn a_report_is_deferred_while_it_might_be_stored_later() {
    let server = Server::start().await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    let lot = worker.lot().await;
    // A full disk, no memory, no connection, a timeout, a lock, a broken disk, a missing table.
    for code in ["53100", "53200", "53300", "57014", "55P03", "58030", "XX000", "42P01"] {
        poison(&server.database, "results", code, "true").await;
        worker.send(Payload::Report(wire_report(&lot))).await;
        let verdict = verdict(&mut worker).await;
        assert_eq!(verdict.status(), ReportStatus::Postponed, "{code}");
        assert!(verdict.reason.contains("poisoned by a test"), "{}", verdict.reason);
        cure(&server.database).await;
    }
    assert_eq!(server.database.number("SELECT count(*) FROM faults").await, 0);
    assert_eq!(worker.report(wire_report(&lot)).await, ReportStatus::Accepted);
    server.stop().await;
}

#[tokio::test]
async fn a_report_that_can_never_be_stored_is_refused_with_the_reason() {
    let server = Server::start().await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    for (number, code) in [(1, "22003"), (2, "23514")] {
        let lot = worker.lot().await;
        poison(&server.database, "results", code, "true").await;
        worker.send(Payload::Report(wire_report(&lot))).await;
        let verdict = verdict(&mut worker).await;
        assert_eq!(verdict.status(), ReportStatus::Refused, "{code}");
        assert!(verdict.reason.contains("poisoned by a test"), "{}", verdict.reason);
        cure(&server.database).await;
        assert_eq!(server.database.number("SELECT count(*) FROM faults").await, number);
    }
    server.stop().await;
}

#[tokio::test]
async fn renewal_waits_for_no_lock_and_renews_locked_leases() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running(3, 1).await;
    let leases: Vec<Lease> =
        queue.lease_at(edition, 2, START).await.unwrap().iter().map(|lot| lot.lease).collect();
    let mut stalled = database.pool.begin().await.unwrap();
    let lock = "SELECT FROM lots WHERE edition = $1 AND number = $2 FOR UPDATE";
    let [locked, free] = *leases else { panic!("two lots were asked for") };
    let number = locked.lot.number.0;
    sqlx::query(lock).bind(edition.0).bind(number).execute(&mut *stalled).await.unwrap();
    let mut held = queue.renew_at(None, &leases, START + Duration::seconds(30)).await.unwrap();
    held.sort_unstable();
    let mut named = leases.clone();
    named.sort_unstable();
    assert_eq!(held, named);
    // The one that was free is renewed, and the one that is locked does not expire as long as it
    // is.
    let expired = queue.expire_at(START + Duration::seconds(61)).await.unwrap();
    assert_eq!(expired.failed, []);
    stalled.rollback().await.unwrap();
    let expired = queue.expire_at(START + Duration::seconds(61)).await.unwrap();
    assert_eq!(expired.failed.iter().map(|failed| failed.lease).collect::<Vec<_>>(), [locked]);
    assert_eq!(queue.renew_at(None, &[free], START).await.unwrap(), [free]);
}

#[tokio::test]
async fn a_session_renews_while_one_of_its_reports_waits_for_a_lock() {
    let server = Server::start().await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    let [first, second] = [worker.lot().await, worker.lot().await];
    let mut stalled = server.database.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE records IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *stalled)
        .await
        .unwrap();
    worker.send(Payload::Report(wire_report(&first))).await;
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    until("the report waits", async || server.database.number(waits).await > 0).await;
    let deadlines = "
        SELECT (extract(epoch FROM max(deadline)) * 1000000)::bigint FROM lots
        WHERE state = 'leased'";
    let before = server.database.number(deadlines).await;
    let leases = vec![first.lease.unwrap(), second.lease.unwrap()];
    worker.send(Payload::RenewLeases(RenewLeases { leases })).await;
    until("the other is renewed", async || server.database.number(deadlines).await > before).await;
    // Whether the report waits on or is postponed meanwhile: it is stored when the lock is gone.
    stalled.rollback().await.unwrap();
    let mut fate = verdict(&mut worker).await.status();
    while fate == ReportStatus::Postponed {
        fate = worker.report(wire_report(&first)).await;
    }
    assert_eq!(fate, ReportStatus::Accepted);
    assert_eq!(worker.report(wire_report(&second)).await, ReportStatus::Accepted);
    assert_eq!(server.database.number("SELECT count(*) FROM faults").await, 0);
    server.stop().await;
}

#[tokio::test]
async fn no_host_clock_decides_when_a_lease_expires() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running(2, 1).await;
    set_clock(&database.pool, Duration::ZERO).await;
    let lots = queue.lease(edition, 2).await.unwrap();
    let clocks = [
        || OffsetDateTime::now_utc() + Duration::HOUR,
        || OffsetDateTime::now_utc() - Duration::HOUR,
        // It is set back behind the beginning of the edition.
        || START - Duration::DAY,
    ];
    for clock in clocks {
        let round = Maintenance::new(queue.clone(), Clock::given(clock)).round().await.unwrap();
        assert_eq!(round.expired.failed, []);
    }
    let reports: Vec<_> = lots.iter().map(|lot| report(lot, worker)).collect();
    support::report_all(&queue, &reports).await;
    let last = Maintenance::new(queue, Clock::given(clocks[2])).round().await.unwrap();
    assert_eq!(last.complete, [edition]);
}

#[tokio::test]
async fn leases_survive_a_step_of_the_database_clock() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running(2, 1).await;
    set_clock(&database.pool, Duration::ZERO).await;
    let [lot, _] = *queue.lease(edition, 2).await.unwrap() else { panic!("two lots are pending") };
    let upkeep = Maintenance::new(queue.clone(), Clock::given(OffsetDateTime::now_utc));
    let rounds = Arc::new(AtomicUsize::new(0));
    let expired = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&rounds);
    let failed = Arc::clone(&expired);
    let working = tokio::spawn(async move {
        let done = |round: Result<arbiter_coordinator::maintenance::Round, _>| {
            failed.fetch_add(round.unwrap().expired.failed.len(), Ordering::Relaxed);
            seen.fetch_add(1, Ordering::Relaxed);
        };
        // For as long as anyone knows workers could renew their leases.
        upkeep.run(tokio::time::Instant::now() - PATIENCE * 2, done).await;
    });
    until("it works", async || rounds.load(Ordering::Relaxed) > 3).await;
    set_clock(&database.pool, Duration::HOUR).await;
    let stepped = rounds.load(Ordering::Relaxed);
    until("it goes on", async || rounds.load(Ordering::Relaxed) > stepped + 9).await;
    assert_eq!(expired.load(Ordering::Relaxed), 0);
    assert_eq!(queue.renew(None, &[lot.lease]).await.unwrap(), [lot.lease]);
    working.abort();
}

#[tokio::test]
async fn an_edition_that_cannot_be_leased_delays_no_other() {
    let database = Database::new().await;
    let bad = running(&database, "bad").await;
    let good = running(&database, "good").await;
    poison(&database, "lots", "XX000", &format!("NEW.edition = {bad} AND NEW.state = 'leased'"))
        .await;
    let (dispatcher, allocator) = Dispatcher::new(database.queue());
    let failures = Arc::new(AtomicUsize::new(0));
    let failed = Arc::clone(&failures);
    let allocating = tokio::spawn(allocator.run(std::future::pending(), move |_| {
        failed.fetch_add(1, Ordering::Relaxed);
    }));
    for _ in 0..4 {
        let task = tokio::time::timeout(PATIENCE, dispatcher.next()).await.unwrap().unwrap();
        assert_eq!(task.lease().lot.edition, good);
    }
    cure(&database).await;
    let task = tokio::time::timeout(PATIENCE, dispatcher.next()).await.unwrap().unwrap();
    assert_eq!(task.lease().lot.edition, bad);
    assert!(failures.load(Ordering::Relaxed) > 0, "nothing failed");
    allocating.abort();
}

#[tokio::test]
async fn leases_that_cannot_be_dispatched_are_returned_without_a_fault() {
    let server = Server::start().await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    run(&server.database, "ALTER TABLE matches RENAME TO gone".to_owned()).await;
    worker.send(Payload::Capacity(arbiter_proto::v1::Capacity { slots: 1 })).await;
    let attempts = "SELECT coalesce(sum(attempt), 0)::bigint FROM lots";
    until("it was tried", async || server.database.number(attempts).await > 1).await;
    run(&server.database, "ALTER TABLE gone RENAME TO matches".to_owned()).await;
    let CoordinatorPayload::Lot(lot) = worker.receive().await else {
        panic!("a lot was asked for")
    };
    assert_eq!(worker.report(wire_report(&lot)).await, ReportStatus::Accepted);
    assert_eq!(server.database.number("SELECT count(*) FROM faults").await, 0);
    let leased = "SELECT count(*) FROM lots WHERE state = 'leased'";
    until("nothing stays leased", async || server.database.number(leased).await == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn an_edition_whose_maintenance_fails_delays_no_other() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let bad = running(&database, "bad").await;
    let good = running(&database, "good").await;
    for edition in [bad, good] {
        let lots = queue.lease(edition, 4).await.unwrap();
        let reports: Vec<_> = lots.iter().map(|lot| report(lot, worker)).collect();
        support::report_all(&queue, &reports).await;
    }
    poison(&database, "progress", "XX000", &format!("NEW.edition = {bad}")).await;
    let upkeep = Maintenance::new(queue, Clock::given(OffsetDateTime::now_utc));
    let working =
        tokio::spawn(async move { upkeep.run(tokio::time::Instant::now(), |_| {}).await });
    let state =
        async |edition| editions::get(&database.pool, edition).await.unwrap().unwrap().state;
    until("the other is complete", async || state(good).await == EditionState::Complete).await;
    assert_eq!(state(bad).await, EditionState::Running);
    cure(&database).await;
    until("it goes on", async || state(bad).await == EditionState::Complete).await;
    working.abort();
}

#[tokio::test]
async fn a_change_is_kept_until_an_edition_can_be_opened() {
    let server =
        Server::start_with(LeasePolicy { lease: Duration::HOUR, ..LeasePolicy::DEFAULT }).await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let database = &server.stop().await;
    let cup = tournaments::find(&database.pool, "cup").await.unwrap().unwrap();
    let one = bots::find(&database.pool, cup.id, "one").await.unwrap().unwrap();
    assert!(bots::withdraw(&database.pool, one.id, START).await.unwrap());
    tournaments::mark_changed(&mut *database.pool.acquire().await.unwrap(), cup.id, START)
        .await
        .unwrap();
    let opener = EditionOpener::new(database.queue(), Clock::given(|| START + Duration::DAY));
    for code in ["53100", "57014", "XX000"] {
        poison(database, "editions", code, "true").await;
        opener.open_all_due().await.unwrap_err();
        cure(database).await;
        assert_eq!(database.number("SELECT count(*) FROM edition_triggers").await, 1, "{code}");
        assert_eq!(
            tournaments::find(&database.pool, "cup").await.unwrap().unwrap().last_error,
            None
        );
    }
    let [OpenOutcome::Opened(edition)] = &opener.open_all_due().await.unwrap()[..] else {
        panic!("an edition is due")
    };
    assert_eq!(edition.number, 2);
    let faults = sqlx::query_scalar("SELECT count(*) FROM faults WHERE edition = $1");
    let faults: i64 = faults.bind(edition.id).fetch_one(&database.pool).await.unwrap();
    assert_eq!(faults, 0);
}

#[tokio::test]
async fn a_new_leader_cancels_openings_of_the_former_one() {
    let database = Database::new().await;
    let cup = database.tournament("cup", gomoku::game()).await;
    // It has locked the tournament, computes in the server for as long as it likes, and is stopped.
    let mut stopped = database.pool.begin().await.unwrap();
    db::begin_opening(&mut *stopped).await.unwrap();
    db::be_patient(&mut *stopped).await.unwrap();
    let lock = "SELECT FROM tournaments WHERE id = $1 FOR UPDATE";
    sqlx::query(lock).bind(cup.0).execute(&mut *stopped).await.unwrap();
    let computing = tokio::spawn(async move {
        sqlx::query("SELECT pg_sleep(600)").execute(&mut *stopped).await.unwrap_err()
    });
    let pool = db::connect(database.options(), 2).await.unwrap();
    let leadership = Leadership::default();
    let election = Election::new(pool, leadership.clone());
    let leading = tokio::spawn(election.run(|_| std::future::pending()));
    until("it leads", async || leadership.holds()).await;
    tokio::time::timeout(PATIENCE, computing).await.unwrap().unwrap();
    sqlx::query(lock).bind(cup.0).execute(&database.pool).await.unwrap();
    leading.abort();
}

/// A lot is returned at the moment at which its edition is replaced, by two transactions that do
/// not see each other.
#[tokio::test]
async fn no_lot_of_a_cancelled_edition_stays_pending() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running(2, 1).await;
    let [lot, _] = *queue.lease(edition, 2).await.unwrap() else { panic!("two lots are pending") };
    let mut replacing = database.pool.begin().await.unwrap();
    assert!(editions::cancel(&mut *replacing, edition, START).await.unwrap());
    assert_eq!(queue.return_leases(None, &[lot.lease]).await.unwrap(), [lot.lease]);
    replacing.commit().await.unwrap();
    let pending = "SELECT count(*) FROM lots WHERE state = 'pending'";
    assert_eq!(database.number(pending).await, 1);
    let upkeep = Maintenance::new(queue, Clock::given(OffsetDateTime::now_utc));
    upkeep.round().await.unwrap();
    assert_eq!(database.number(pending).await, 0);
}

#[tokio::test]
async fn a_lot_can_be_returned_more_than_32767_times() {
    let database = Database::new().await;
    let queue: Queue = database.queue();
    let edition = database.running(1, 1).await;
    run(&database, "UPDATE lots SET attempt = 32767".to_owned()).await;
    for _ in 0..2 {
        let [lot] = *queue.lease(edition, 1).await.unwrap() else { panic!("a lot is pending") };
        assert_eq!(queue.return_leases(None, &[lot.lease]).await.unwrap(), [lot.lease]);
    }
}

#[tokio::test]
async fn a_coordinator_starts_although_its_database_is_restarted_meanwhile() {
    let database = Database::new().await;
    access::create(&database.pool, Role::Admin, "first", START).await.unwrap();
    let messages = start_with_outage(usize::MAX, database.options()).await;
    assert!(messages > 10, "it did start without its database");
    // Once at each of them.
    let mut starts = JoinSet::new();
    for message in 0..messages {
        if starts.len() == AT_A_TIME {
            starts.join_next().await.unwrap().unwrap();
        }
        starts.spawn(start_with_outage(message, database.options()));
    }
    starts.join_all().await;
}

/// Starts a coordinator whose database is down for a while at this message. Returns the number of
/// messages that it sent.
async fn start_with_outage(message: usize, database: PgConnectOptions) -> usize {
    let outage = Outage::at(message, &database);
    let started = Coordinator::prepare(outage.options(database), config()).await;
    let coordinator = started.unwrap_or_else(|error| panic!("at message {message}: {error}"));
    assert!(!coordinator.has_no_tokens().await.unwrap(), "at message {message}");
    outage.messages_sent()
}

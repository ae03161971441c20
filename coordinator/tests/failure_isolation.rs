//! A failure affects only the work in which it occurs. Failed work is retried and delays no other
//! work. Results are not discarded while the database may still be able to store them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

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
use arbiter_coordinator::db::{stalled_copies, tournaments};
use arbiter_coordinator::leader_election::{Election, Leadership};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{Dispatcher, LeasePolicy, Queue};
use arbiter_coordinator::tournament::EditionOpener;
use arbiter_coordinator::tournament::auto_edition::OpenOutcome;
use arbiter_games::{RULES_VERSION, gomoku};
use arbiter_proto::ids::{EditionId, Lease};
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::{RenewLeases, ReportResponse, ReportStatus};
use grpc_client::{Server, TIMEOUT, Worker, report as wire_report};
use outage::Outage;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnectOptions;
use support::planning::Planning as _;
use support::test_clock::{AtTime as _, set_offset};
use support::{Database, START, config, duels, final_plan, lots, report, wait_until};
use time::{Duration, OffsetDateTime};
use tokio::task::JoinSet;

/// Number of coordinators that start at the same time.
const CONCURRENT_STARTS: usize = 16;

async fn execute(database: &Database, script: String) {
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&database.pool).await.unwrap();
}

/// Makes inserts and updates of a table fail with this SQL error code if `condition` is true for
/// the new row.
async fn inject_error(database: &Database, table: &str, code: &str, condition: &str) {
    let script = format!(
        "CREATE FUNCTION injected_error() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'injected by a test' USING ERRCODE = '{code}'; END $$;
         CREATE TRIGGER injected_error BEFORE INSERT OR UPDATE ON {table}
             FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION injected_error()"
    );
    execute(database, script).await;
}

/// Removes the failure of [`inject_error`].
async fn remove_error(database: &Database) {
    execute(database, "DROP FUNCTION injected_error CASCADE".to_owned()).await;
}

/// Starts an edition of a new tournament of this name.
async fn start_edition(database: &Database, name: &str) -> EditionId {
    let tournament = database.tournament(name, gomoku::game()).await;
    let versions = database.versions(tournament, 5).await;
    let edition =
        editions::create(&database.pool, tournament, 1, false, RULES_VERSION, START).await.unwrap();
    editions::enter(&database.pool, edition, &versions).await.unwrap();
    let queue = database.queue();
    let first_entrant = versions[0].0;
    let matches = duels(4).map(move |mut duel| {
        duel.seats.0.iter_mut().for_each(|entrant| entrant.0 += first_entrant - 1);
        duel
    });
    queue.plan(edition, final_plan(matches, lots(4, 1), [])).await.unwrap();
    assert!(queue.start(edition).await.unwrap());
    edition
}

/// Receives the response to a report.
async fn receive_response(worker: &mut Worker) -> ReportResponse {
    let CoordinatorPayload::ReportResponse(response) = worker.receive().await else {
        panic!("expected a report response")
    };
    response
}

#[tokio::test]
async fn a_report_is_postponed_after_a_temporary_database_error() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    let lot = worker.lot().await;
    // Full disk, out of memory, no connection, timeout, lock, broken disk, internal error, missing
    // table.
    for code in ["53100", "53200", "53300", "57014", "55P03", "58030", "XX000", "42P01"] {
        inject_error(&server.database, "results", code, "true").await;
        worker.send(Payload::Report(wire_report(&lot))).await;
        let response = receive_response(&mut worker).await;
        assert_eq!(response.status(), ReportStatus::Postponed, "{code}");
        assert!(response.reason.contains("injected by a test"), "{}", response.reason);
        remove_error(&server.database).await;
    }
    assert_eq!(server.database.number("SELECT count(*) FROM faults").await, 0);
    assert_eq!(worker.report(wire_report(&lot)).await, ReportStatus::Accepted);
    server.stop().await;
}

#[tokio::test]
async fn a_report_is_refused_with_the_reason_after_a_permanent_database_error() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    for (number, code) in [(1, "22003"), (2, "23514")] {
        let lot = worker.lot().await;
        inject_error(&server.database, "results", code, "true").await;
        worker.send(Payload::Report(wire_report(&lot))).await;
        let response = receive_response(&mut worker).await;
        assert_eq!(response.status(), ReportStatus::Refused, "{code}");
        assert!(response.reason.contains("injected by a test"), "{}", response.reason);
        remove_error(&server.database).await;
        assert_eq!(server.database.number("SELECT count(*) FROM faults").await, number);
    }
    server.stop().await;
}

#[tokio::test]
async fn renewal_waits_for_no_lock_and_renews_locked_leases() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running_edition(3, 1).await;
    let cup = database.tournament_of(edition).await;
    let leases: Vec<Lease> =
        queue.lease_at(cup, 2, START).await.unwrap().iter().map(|lot| lot.lease).collect();
    let mut lock_holder = database.pool.begin().await.unwrap();
    let lock = "SELECT FROM lots WHERE tournament = $1 AND number = $2 FOR UPDATE";
    let [locked, free] = *leases else { panic!("expected two lots") };
    let number = locked.lot.number.0;
    sqlx::query(lock).bind(cup).bind(number).execute(&mut *lock_holder).await.unwrap();
    let mut renewed = queue.renew_at(None, &leases, START + Duration::seconds(30)).await.unwrap();
    renewed.sort_unstable();
    let mut expected = leases.clone();
    expected.sort_unstable();
    assert_eq!(renewed, expected);
    // The deadline of the free lot is later now. The locked lot cannot expire before it is
    // unlocked.
    let expired = queue.expire_at(START + Duration::seconds(61)).await.unwrap();
    assert_eq!(expired.failed, []);
    lock_holder.rollback().await.unwrap();
    let expired = queue.expire_at(START + Duration::seconds(61)).await.unwrap();
    assert_eq!(expired.failed.iter().map(|failed| failed.lease).collect::<Vec<_>>(), [locked]);
    assert_eq!(queue.renew_at(None, &[free], START).await.unwrap(), [free]);
}

#[tokio::test]
async fn a_worker_can_renew_leases_while_its_report_waits_for_a_lock() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    let [first, second] = [worker.lot().await, worker.lot().await];
    let mut lock_holder = server.database.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE records IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *lock_holder)
        .await
        .unwrap();
    worker.send(Payload::Report(wire_report(&first))).await;
    let waiting_locks = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    wait_until("the report waits for a lock", async || {
        server.database.number(waiting_locks).await > 0
    })
    .await;
    let deadlines = "
        SELECT (extract(epoch FROM max(deadline)) * 1000000)::bigint FROM lots
        WHERE state = 'leased'";
    let old_deadline = server.database.number(deadlines).await;
    let leases = vec![first.lease.unwrap(), second.lease.unwrap()];
    worker.send(Payload::RenewLeases(RenewLeases { leases })).await;
    wait_until("the other lease is renewed", async || {
        server.database.number(deadlines).await > old_deadline
    })
    .await;
    // The report may be postponed while it waits. It is stored after the lock is released.
    lock_holder.rollback().await.unwrap();
    let mut status = receive_response(&mut worker).await.status();
    while status == ReportStatus::Postponed {
        status = worker.report(wire_report(&first)).await;
    }
    assert_eq!(status, ReportStatus::Accepted);
    assert_eq!(worker.report(wire_report(&second)).await, ReportStatus::Accepted);
    assert_eq!(server.database.number("SELECT count(*) FROM faults").await, 0);
    server.stop().await;
}

#[tokio::test]
async fn no_host_clock_decides_when_a_lease_expires() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running_edition(2, 1).await;
    set_offset(&database.pool, Duration::ZERO).await;
    let cup = database.tournament_of(edition).await;
    let lots = queue.lease(cup, 2).await.unwrap();
    let host_clocks = [
        || OffsetDateTime::now_utc() + Duration::HOUR,
        || OffsetDateTime::now_utc() - Duration::HOUR,
        // A clock before the start of the edition.
        || START - Duration::DAY,
    ];
    for clock in host_clocks {
        let round = Maintenance::new(queue.clone(), Clock::fixed(clock)).round().await.unwrap();
        assert_eq!(round.expired.failed, []);
    }
    let reports: Vec<_> = lots.iter().map(|lot| report(lot, worker)).collect();
    support::report_all(&queue, &reports).await;
    let last = Maintenance::new(queue, Clock::fixed(host_clocks[2])).round().await.unwrap();
    assert_eq!(last.complete, [edition]);
}

#[tokio::test]
async fn leases_survive_a_step_of_the_database_clock() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running_edition(2, 1).await;
    set_offset(&database.pool, Duration::ZERO).await;
    let cup = database.tournament_of(edition).await;
    let [lot, _] = *queue.lease(cup, 2).await.unwrap() else { panic!("expected two lots") };
    let maintenance = Maintenance::new(queue.clone(), Clock::fixed(OffsetDateTime::now_utc));
    let rounds = Arc::new(AtomicUsize::new(0));
    let expired = Arc::new(AtomicUsize::new(0));
    let round_counter = Arc::clone(&rounds);
    let expired_counter = Arc::clone(&expired);
    let task = tokio::spawn(async move {
        let count = |round: Result<arbiter_coordinator::maintenance::Round, _>| {
            expired_counter.fetch_add(round.unwrap().expired.failed.len(), Ordering::Relaxed);
            round_counter.fetch_add(1, Ordering::Relaxed);
        };
        // Workers could renew their leases for longer than one lease.
        maintenance.run(tokio::time::Instant::now() - TIMEOUT * 2, count).await;
    });
    wait_until("maintenance has run some rounds", async || rounds.load(Ordering::Relaxed) > 3)
        .await;
    set_offset(&database.pool, Duration::HOUR).await;
    let rounds_before = rounds.load(Ordering::Relaxed);
    wait_until("maintenance has run more rounds", async || {
        rounds.load(Ordering::Relaxed) > rounds_before + 9
    })
    .await;
    assert_eq!(expired.load(Ordering::Relaxed), 0);
    assert_eq!(queue.renew(None, &[lot.lease]).await.unwrap(), [lot.lease]);
    task.abort();
}

#[tokio::test]
async fn a_tournament_that_cannot_be_leased_delays_no_other() {
    let database = Database::new().await;
    let failing_edition = start_edition(&database, "failing").await;
    let healthy_edition = start_edition(&database, "healthy").await;
    let failing = database.tournament_of(failing_edition).await;
    let healthy = database.tournament_of(healthy_edition).await;
    inject_error(
        &database,
        "lots",
        "XX000",
        &format!("NEW.tournament = {failing} AND NEW.state = 'leased'"),
    )
    .await;
    let (dispatcher, allocator) = Dispatcher::new(database.queue());
    let failures = Arc::new(AtomicUsize::new(0));
    let failure_counter = Arc::clone(&failures);
    let allocator_task = tokio::spawn(allocator.run(std::future::pending(), move |_| {
        failure_counter.fetch_add(1, Ordering::Relaxed);
    }));
    for _ in 0..4 {
        let task = tokio::time::timeout(TIMEOUT, dispatcher.next()).await.unwrap().unwrap();
        assert_eq!(task.lease().lot.tournament, healthy);
    }
    remove_error(&database).await;
    let task = tokio::time::timeout(TIMEOUT, dispatcher.next()).await.unwrap().unwrap();
    assert_eq!(task.lease().lot.tournament, failing);
    assert!(failures.load(Ordering::Relaxed) > 0, "no lease failed");
    allocator_task.abort();
}

#[tokio::test]
async fn leases_that_cannot_be_dispatched_are_returned_without_a_fault() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    execute(&server.database, "ALTER TABLE matches RENAME TO renamed".to_owned()).await;
    worker.send(Payload::Capacity(arbiter_proto::v1::Capacity { slots: 1 })).await;
    let attempts = "SELECT coalesce(sum(attempt), 0)::bigint FROM lots";
    wait_until("a lot was leased twice", async || server.database.number(attempts).await > 1).await;
    execute(&server.database, "ALTER TABLE renamed RENAME TO matches".to_owned()).await;
    let CoordinatorPayload::Lot(lot) = worker.receive().await else { panic!("expected a lot") };
    assert_eq!(worker.report(wire_report(&lot)).await, ReportStatus::Accepted);
    assert_eq!(server.database.number("SELECT count(*) FROM faults").await, 0);
    let leased = "SELECT count(*) FROM lots WHERE state = 'leased'";
    wait_until("no lot is leased", async || server.database.number(leased).await == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn an_edition_whose_maintenance_fails_delays_no_other() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let failing = start_edition(&database, "failing").await;
    let healthy = start_edition(&database, "healthy").await;
    for edition in [failing, healthy] {
        let tournament = database.tournament_of(edition).await;
        let lots = queue.lease(tournament, 4).await.unwrap();
        let reports: Vec<_> = lots.iter().map(|lot| report(lot, worker)).collect();
        support::report_all(&queue, &reports).await;
    }
    inject_error(&database, "progress", "XX000", &format!("NEW.edition = {failing}")).await;
    let maintenance = Maintenance::new(queue, Clock::fixed(OffsetDateTime::now_utc));
    let task =
        tokio::spawn(async move { maintenance.run(tokio::time::Instant::now(), |_| {}).await });
    let state =
        async |edition| editions::get(&database.pool, edition).await.unwrap().unwrap().state;
    wait_until("the other edition is complete", async || {
        state(healthy).await == EditionState::Complete
    })
    .await;
    assert_eq!(state(failing).await, EditionState::Running);
    remove_error(&database).await;
    wait_until("the failed edition is complete", async || {
        state(failing).await == EditionState::Complete
    })
    .await;
    task.abort();
}

#[tokio::test]
async fn a_change_is_not_forgotten_if_its_edition_cannot_open() {
    let server =
        Server::start_with(LeasePolicy { lease: Duration::HOUR, ..LeasePolicy::DEFAULT }).await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
    let database = &server.stop().await;
    let cup = tournaments::find(&database.pool, "cup").await.unwrap().unwrap();
    let bot = bots::find(&database.pool, cup.id, "one").await.unwrap().unwrap();
    assert!(bots::withdraw(&database.pool, bot.id, START).await.unwrap());
    tournaments::mark_changed(&mut *database.pool.acquire().await.unwrap(), cup.id, START)
        .await
        .unwrap();
    let opener = EditionOpener::new(database.queue(), Clock::fixed(|| START + Duration::DAY));
    for code in ["53100", "57014", "XX000"] {
        inject_error(database, "editions", code, "true").await;
        opener.open_all_due().await.unwrap_err();
        remove_error(database).await;
        assert_eq!(database.number("SELECT count(*) FROM edition_triggers").await, 1, "{code}");
        assert_eq!(
            tournaments::find(&database.pool, "cup").await.unwrap().unwrap().last_error,
            None
        );
    }
    let [OpenOutcome::Opened(edition)] = &opener.open_all_due().await.unwrap()[..] else {
        panic!("expected one new edition")
    };
    assert_eq!(edition.number, 2);
    assert_eq!(database.number("SELECT count(*) FROM faults").await, 0);
}

#[tokio::test]
async fn a_new_leader_ends_the_transactions_of_the_former_leader() {
    let database = Database::new().await;
    let cup = database.tournament("cup", gomoku::game()).await;
    // The former leader is suspended while it opens an edition. Its transaction has locked the
    // tournament and still runs a statement.
    let mut former = database.pool.begin().await.unwrap();
    db::mark_opening(&mut *former).await.unwrap();
    db::lift_time_limits(&mut *former).await.unwrap();
    let lock = "SELECT FROM tournaments WHERE id = $1 FOR UPDATE";
    sqlx::query(lock).bind(cup.0).execute(&mut *former).await.unwrap();
    let former_statement = tokio::spawn(async move {
        sqlx::query("SELECT pg_sleep(600)").execute(&mut *former).await.unwrap_err()
    });
    let pool = db::connect(database.options(), 2).await.unwrap();
    let leadership = Leadership::default();
    let election = Election::new(pool, leadership.clone());
    let election_task = tokio::spawn(election.run(|_| std::future::pending()));
    wait_until("the new coordinator is leader", async || leadership.holds()).await;
    tokio::time::timeout(TIMEOUT, former_statement).await.unwrap().unwrap();
    sqlx::query(lock).bind(cup.0).execute(&database.pool).await.unwrap();
    election_task.abort();
}

/// A coordinator stops while it sends the rows of a report. The server waits for more rows, which
/// no time limit of its session ends.
#[tokio::test]
async fn a_coordinator_that_stops_within_copy_keeps_no_lot() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running_edition(1, 1).await;
    let cup = database.tournament_of(edition).await;
    let [lot] = *queue.lease(cup, 1).await.unwrap() else { panic!("expected one lot") };
    let mut stopped = database.pool.begin().await.unwrap();
    let lock = "SELECT FROM lots WHERE tournament = $1 FOR UPDATE";
    sqlx::query(lock).bind(cup).execute(&mut *stopped).await.unwrap();
    sqlx::query("SET LOCAL statement_timeout = '10ms'").execute(&mut *stopped).await.unwrap();
    let copy = stopped.copy_in_raw("COPY snapshots FROM STDIN").await.unwrap();
    wait_until("the server waits for rows", async || {
        let waits = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event = 'ClientRead' AND state = 'active'";
        database.number(waits).await == 1
    })
    .await;

    let pool = db::connect(database.options(), 2).await.unwrap();
    assert_eq!(stalled_copies::end(&pool, Duration::MINUTE.unsigned_abs()).await.unwrap(), 0);
    assert_eq!(stalled_copies::end(&pool, std::time::Duration::ZERO).await.unwrap(), 1);
    assert_eq!(queue.return_leases(None, &[lot.lease]).await.unwrap(), [lot.lease]);
    copy.finish().await.unwrap_err();
}

/// One transaction cancels an edition while another one returns a lot of it. Neither transaction
/// sees the change of the other.
#[tokio::test]
async fn no_lot_of_a_cancelled_edition_stays_pending() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running_edition(2, 1).await;
    let cup = database.tournament_of(edition).await;
    let [lot, _] = *queue.lease(cup, 2).await.unwrap() else { panic!("expected two lots") };
    let mut cancellation = database.pool.begin().await.unwrap();
    assert!(editions::cancel(&mut *cancellation, edition, START).await.unwrap());
    assert_eq!(queue.return_leases(None, &[lot.lease]).await.unwrap(), [lot.lease]);
    cancellation.commit().await.unwrap();
    let pending = "SELECT count(*) FROM lots WHERE state = 'pending'";
    assert_eq!(database.number(pending).await, 1);
    let maintenance = Maintenance::new(queue, Clock::fixed(OffsetDateTime::now_utc));
    maintenance.round().await.unwrap();
    assert_eq!(database.number(pending).await, 0);
}

#[tokio::test]
async fn a_lot_can_be_returned_more_than_32767_times() {
    let database = Database::new().await;
    let queue: Queue = database.queue();
    let edition = database.running_edition(1, 1).await;
    let cup = database.tournament_of(edition).await;
    execute(&database, "UPDATE lots SET attempt = 32767".to_owned()).await;
    for _ in 0..2 {
        let [lot] = *queue.lease(cup, 1).await.unwrap() else { panic!("expected one lot") };
        assert_eq!(queue.return_leases(None, &[lot.lease]).await.unwrap(), [lot.lease]);
    }
}

#[tokio::test]
async fn a_coordinator_starts_even_if_its_database_restarts_meanwhile() {
    let database = Database::new().await;
    access::create(&database.pool, Role::Admin, "first", START).await.unwrap();
    let messages = start_with_outage(usize::MAX, database.options()).await;
    assert!(messages > 10, "only {messages} messages to the database: the proxy is not used");
    // One start with an outage at each message.
    let mut starts = JoinSet::new();
    for message in 0..messages {
        if starts.len() == CONCURRENT_STARTS {
            starts.join_next().await.unwrap().unwrap();
        }
        starts.spawn(start_with_outage(message, database.options()));
    }
    starts.join_all().await;
}

/// Starts a coordinator whose database has an outage at this message. Returns the number of
/// messages to the database.
async fn start_with_outage(message: usize, database: PgConnectOptions) -> usize {
    let outage = Outage::at(message, &database);
    let result = Coordinator::prepare(outage.options(database), config()).await;
    let coordinator = result.unwrap_or_else(|error| panic!("at message {message}: {error}"));
    assert!(!coordinator.has_no_tokens().await.unwrap(), "at message {message}");
    outage.messages_sent()
}

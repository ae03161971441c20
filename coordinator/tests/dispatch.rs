//! Dispatch of lots. Each lot goes to one waiting worker; a cancelled request gets no lot.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::task::Poll;

use arbiter_coordinator::db::claimable::{self, ClaimableWork};
use arbiter_coordinator::db::lease_details::{self, LeasedWork};
use arbiter_coordinator::db::{self, editions, versions};
use arbiter_coordinator::queue::{Dispatcher, Failure, LeasePolicy, Queue};
use arbiter_games::{Games, RULES_VERSION, gomoku};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{LotNumber, MatchName, MatchNumber, TournamentId};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use support::planning::Planning as _;
use support::test_clock::AtTime as _;
use support::{Database, START, duels, final_plan, lots as some_lots, plan, report, report_all};
use time::Duration;
use tokio::task::JoinSet;

/// A dispatcher and its background task.
fn dispatcher(queue: &Queue) -> (Dispatcher, JoinSet<()>) {
    let (dispatcher, allocator) = Dispatcher::new(queue.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    (dispatcher, tasks)
}

#[tokio::test]
async fn each_lot_goes_to_one_waiting_worker() {
    let database = Database::new().await;
    let edition = database.running_edition(400, 2).await;
    let cup = database.tournament_of(edition).await;
    let queue = database.queue();
    let (dispatcher, _tasks) = dispatcher(&queue);
    let mut tasks = JoinSet::new();
    for _ in 0..200 {
        let dispatcher = dispatcher.clone();
        tasks.spawn(async move { dispatcher.next().await.unwrap().into_work().unwrap() });
    }
    let mut lots = BTreeSet::new();
    for work in tasks.join_all().await {
        let numbers: Vec<_> = work.matches.iter().map(|planned| planned.number.0).collect();
        assert_eq!(numbers, [work.lot.first_match().0, work.lot.first_match().0 + 1]);
        let first = usize::try_from(work.lot.first_match().0).unwrap();
        assert_eq!(work.matches[0], duels(400).nth(first).unwrap());
        lots.insert(work.lot.lease);
    }
    assert_eq!(lots.len(), 200);
    assert!(lots.iter().all(|lease| lease.lot.tournament == cup));
}

/// A worker requests a lot when there is none, and gets one as soon as an edition starts.
#[tokio::test]
async fn waiting_workers_get_lots_when_an_edition_starts() {
    let database = Database::new().await;
    let edition = database.edition(5).await;
    let queue = database.queue();
    let (dispatcher, _tasks) = dispatcher(&queue);
    let waiting = dispatcher.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { waiting.next().await.unwrap().into_work().unwrap().lot });
    queue.plan(edition, plan(1, 1)).await.unwrap();
    queue.start(edition).await.unwrap();
    dispatcher.news();
    let lot = tasks.join_next().await.unwrap().unwrap();
    assert_eq!((lot.first_match(), lot.lease.attempt.0), (MatchNumber(0), 1));
    // The web pages show the matches of an active lease.
    let worker = database.worker("it").await;
    let details = lease_details::of_leases(&database.pool, &[(worker, lot.lease)]).await.unwrap();
    let first = MatchName { tournament: "cup".to_owned(), number: MatchNumber(0) };
    assert_eq!(details.len(), 1);
    assert_eq!((details[0].worker, &details[0].work), (worker, &LeasedWork::Matches(first, 1)));
    queue.return_leases(None, &[lot.lease]).await.unwrap();
    assert_eq!(lease_details::of_leases(&database.pool, &[(worker, lot.lease)]).await.unwrap(), []);
}

/// A worker disconnects while it waits. Its lease goes to another worker.
#[tokio::test]
async fn cancelled_requests_get_no_lot() {
    let database = Database::new().await;
    let edition = database.edition(5).await;
    let queue = database.queue();
    let (dispatcher, _tasks) = dispatcher(&queue);
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let dispatcher = dispatcher.clone();
        tasks.spawn(async move { drop(dispatcher.next().await) });
    }
    tokio::task::yield_now().await;
    tasks.shutdown().await;
    queue.plan(edition, plan(1, 1)).await.unwrap();
    queue.start(edition).await.unwrap();
    dispatcher.news();
    let lot = dispatcher.next().await.unwrap().into_work().unwrap().lot;
    assert_eq!(lot.lease.lot.number, LotNumber(0));
    assert!(
        lot.lease.attempt.0 <= 4,
        "attempt {}: too many leases were returned",
        lot.lease.attempt.0
    );
    assert_eq!(database.number("SELECT sum(faults)::bigint FROM lots").await, 0);
}

/// A worker disconnects just before it receives its lot. The lot is leased again at once, without a
/// fault.
#[tokio::test]
async fn unclaimed_leases_are_returned() {
    let database = Database::new().await;
    let edition = database.edition(5).await;
    let queue = database.queue();
    let (dispatcher, _tasks) = dispatcher(&queue);
    let abandoned = dispatcher.clone();
    let mut request = Box::pin(async move { abandoned.next().await });
    // One poll queues the request. The test never polls it again.
    assert!(
        std::future::poll_fn(|context| Poll::Ready(request.as_mut().poll(context)))
            .await
            .is_pending()
    );
    queue.plan(edition, plan(1, 1)).await.unwrap();
    queue.start(edition).await.unwrap();
    dispatcher.news();
    while database.number("SELECT count(*) FROM lots WHERE state = 'leased'").await == 0 {
        tokio::task::yield_now().await;
    }
    drop(request);
    let lot = dispatcher.next().await.unwrap().into_work().unwrap().lot;
    assert_eq!((lot.first_match(), lot.lease.attempt.0), (MatchNumber(0), 2));
    assert_eq!(database.number("SELECT sum(faults)::bigint FROM lots").await, 0);
}

/// Two tournaments share the workers.
#[tokio::test]
async fn tournaments_get_lots_in_turn() {
    let database = Database::new().await;
    let queue = database.queue();
    let first = database.running_edition(8, 1).await;
    let league = database.tournament("league", gomoku::game()).await;
    let cup = editions::get(&database.pool, first).await.unwrap().unwrap().tournament;
    assert_eq!(versions::newest(&database.pool, cup).await.unwrap().len(), 5);
    let entrants = database.versions(league, 5).await;
    let second =
        editions::create(&database.pool, league, 1, false, RULES_VERSION, START).await.unwrap();
    editions::enter(&database.pool, second, &entrants).await.unwrap();
    let first_entrant = entrants[0].0;
    let league_duels = duels(8).map(move |mut duel| {
        duel.seats.0.iter_mut().for_each(|entrant| entrant.0 += first_entrant - 1);
        duel
    });
    queue.plan(second, final_plan(league_duels, some_lots(8, 1), [])).await.unwrap();
    queue.start(second).await.unwrap();
    let empty = database.tournament("empty", gomoku::game()).await;
    let without_lots =
        editions::create(&database.pool, empty, 1, false, RULES_VERSION, START).await.unwrap();
    queue.start(without_lots).await.unwrap();
    let (dispatcher, _tasks) = dispatcher(&queue);
    let worker = database.worker("w").await;
    let mut leased_tournaments: Vec<TournamentId> = Vec::new();
    for _ in 0..8 {
        let work = dispatcher.next().await.unwrap().into_work().unwrap();
        leased_tournaments.push(work.lot.lease.lot.tournament);
        report_all(&queue, &[report(&work.lot, worker)]).await;
    }
    assert_eq!(leased_tournaments, [cup, league].repeat(4));
}

/// Pending lots of a running edition are offered, and leased lots are not.
#[tokio::test]
async fn claimable_work_is_offered() {
    let database = Database::new().await;
    let pool = &database.pool;
    let queue = database.queue();
    let edition = database.edition(5).await;
    queue.plan(edition, plan(2, 1)).await.unwrap();
    assert_eq!(
        claimable::find(pool).await.unwrap(),
        ClaimableWork::default(),
        "the edition has not started"
    );
    queue.start(edition).await.unwrap();
    let cup = database.tournament_of(edition).await;
    let expected = ClaimableWork { trial: false, tournaments: vec![cup] };
    assert_eq!(claimable::find(pool).await.unwrap(), expected);
    let (dispatcher, _tasks) = dispatcher(&queue);
    let task = dispatcher.next().await.unwrap();
    assert_eq!(claimable::find(pool).await.unwrap(), expected, "one lot is pending");
    dispatcher.next().await.unwrap();
    assert_eq!(claimable::find(pool).await.unwrap(), ClaimableWork::default());
    queue.return_leases(None, &[task.lease()]).await.unwrap();
    assert_eq!(claimable::find(pool).await.unwrap(), expected);
}

/// Postgres caches the plan of this query. A plan from a time without pending lots must not read
/// all pending lots when there are millions.
#[tokio::test]
async fn one_lot_of_each_tournament_is_offered() {
    let database = Database::new().await;
    database.running_edition(2000, 1).await;
    let cancel_lots = "UPDATE lots SET state = 'cancelled'";
    sqlx::query(cancel_lots).execute(&database.pool).await.unwrap();
    sqlx::query("ANALYZE lots, editions").execute(&database.pool).await.unwrap();
    let options = database.pool.connect_options();
    let mut session = PgConnection::connect_with(&options).await.unwrap();
    claimable::find(&mut session).await.unwrap();
    // The query is the first prepared statement of this session.
    let statement = "SELECT name FROM pg_prepared_statements ORDER BY prepare_time LIMIT 1";
    let name: String = sqlx::query_scalar(statement).fetch_one(&mut session).await.unwrap();
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE {name} (now())");
    let plan: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(&mut session).await.unwrap();
    let scan = plan.iter().position(|line| line.contains("lots_pending")).unwrap();
    let condition = "Index Cond: (tournament = e.tournament)";
    assert!(plan[scan + 1].contains(condition), "{}", plan.join("\n"));
    assert!(plan[scan - 1].contains("Limit"), "{}", plan.join("\n"));
}

/// Ends the sessions of this database whose current or last statement contains `text`. Returns
/// their number.
async fn end_sessions(database: &Database, text: &str) -> i64 {
    let statement = "
        SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND strpos(query, $1) > 0";
    sqlx::query_scalar(statement).bind(text).fetch_one(&database.pool).await.unwrap()
}

/// A part of the statement that reads the matches of newly leased lots.
const READ_MATCHES: &str = "AS lot (number, count, place)";

/// The idle connection for leases breaks. The next request succeeds.
#[tokio::test]
async fn a_broken_connection_is_replaced() {
    let database = Database::new().await;
    database.running_edition(2, 1).await;
    let (dispatcher, _tasks) = dispatcher(&database.queue());
    let first = dispatcher.next().await.unwrap();
    assert_eq!(end_sessions(&database, READ_MATCHES).await, 1);
    let second = dispatcher.next().await.unwrap();
    assert_ne!(first.lease().lot, second.lease().lot);
}

/// The connection breaks after a lot is leased and before its matches are read. The lease is not
/// lost.
#[tokio::test]
async fn leased_lots_are_read_over_a_new_connection() {
    let database = Database::new().await;
    database.running_edition(1, 1).await;
    let mut lock_holder = database.pool.begin().await.unwrap();
    db::lift_time_limits(&mut *lock_holder).await.unwrap();
    sqlx::query("LOCK TABLE matches IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *lock_holder)
        .await
        .unwrap();
    let (dispatcher, _tasks) = dispatcher(&database.queue());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { dispatcher.next().await.unwrap() });
    while end_sessions(&database, READ_MATCHES).await == 0 {
        tokio::task::yield_now().await;
    }
    lock_holder.rollback().await.unwrap();
    let work = tasks.join_next().await.unwrap().unwrap().into_work().unwrap();
    assert_eq!((work.lot.lease.attempt.0, work.matches.len()), (1, 1));
}

/// Statements find rows with an index, even in large tables.
#[tokio::test]
async fn no_statement_of_the_queue_reads_a_whole_table() {
    let database = Database::new().await;
    let worker = database.worker("w").await;
    let edition = database.running_edition(20_000, 2).await;
    let cup = database.tournament_of(edition).await;
    let scans = async || {
        let mut connection = database.pool.acquire().await.unwrap();
        sqlx::query("SELECT pg_stat_force_next_flush()").execute(&mut *connection).await.unwrap();
        let statement = "SELECT sum(seq_scan)::bigint FROM pg_stat_user_tables
            WHERE relname IN ('lots', 'matches', 'results')";
        sqlx::query_scalar::<_, i64>(statement).fetch_one(&mut *connection).await.unwrap()
    };
    let one_session = Queue::new(
        sqlx::postgres::PgPoolOptions::new()
            .max_connections(1)
            .connect_with((*database.pool.connect_options()).clone())
            .await
            .unwrap(),
        Games::built_in(),
        LeasePolicy::DEFAULT,
    );
    let before = scans().await;
    for size in [1, 16, 256, 1024] {
        let lots = one_session.lease_at(cup, size, START).await.unwrap();
        assert_eq!(lots.len(), size);
        let leases: Vec<_> = lots.iter().map(|lot| lot.lease).collect();
        one_session.renew_at(None, &leases, START).await.unwrap();
        let reports: Vec<_> = lots.iter().map(|lot| report(lot, worker)).collect();
        report_all(&one_session, &reports).await;
        report_all(&one_session, &reports).await;
        one_session.count(cup).await.unwrap();
    }
    let lots = one_session.lease_at(cup, 16, START).await.unwrap();
    let (failed_lots, returned_lots) = lots.split_at(8);
    let failures = failed_lots.iter().map(|lot| Failure {
        lease: lot.lease,
        by: None,
        kind: FaultKind::System,
        reason: "no".to_owned(),
    });
    one_session.fail_at(&failures.collect::<Vec<_>>(), START).await.unwrap();
    let leases: Vec<_> = returned_lots.iter().map(|lot| lot.lease).collect();
    one_session.return_leases(None, &leases).await.unwrap();
    one_session.lease_at(cup, 16, START).await.unwrap();
    one_session.expire_at(START + Duration::HOUR).await.unwrap();
    let flush = "SELECT pg_stat_force_next_flush()";
    sqlx::query(flush).execute(one_session.pool()).await.unwrap();
    sqlx::query("SELECT 1").execute(one_session.pool()).await.unwrap();
    one_session.pool().close().await;
    assert_eq!(scans().await - before, 0);
}

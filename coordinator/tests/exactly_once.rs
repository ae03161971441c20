//! Each match counts exactly once, even if workers and connections fail.
//!
//! Workers lease lots and then act at random. A worker reports a lot once or twice, reports with an
//! expired lease, disconnects, returns a lot, reports a fault or renews a lease. Meanwhile the
//! clock jumps, leases expire, lots are retried and results are counted. At the end every match
//! must be counted once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::lots::{LotState, RetryPolicy};
use arbiter_coordinator::db::{editions, lots, results};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{Failure, LeasePolicy, Queue, Report, ReportStatus};
use arbiter_games::{Dice, Games, Seed};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{EditionId, MatchNumber, TournamentId, WorkerId};
use support::planning::Planning as _;
use support::test_clock::AtTime as _;
use support::{Database, START, final_plan, lots as some_lots, plan, report, result};
use time::{Duration, OffsetDateTime};
use tokio::task::JoinSet;

/// The clock of a test: seconds since [`START`].
#[derive(Clone, Debug, Default)]
struct Time(Arc<AtomicI64>);

impl Time {
    fn now(&self) -> OffsetDateTime {
        START + Duration::seconds(self.0.load(Ordering::Relaxed))
    }

    fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

/// A policy that never sets a match aside, so that all matches must be played.
const UNLIMITED_RETRIES: LeasePolicy = LeasePolicy {
    lease: Duration::MINUTE,
    retry_policy: RetryPolicy {
        faults: i16::MAX,
        delay: Duration::SECOND,
        max_delay: Duration::seconds(4),
    },
};

/// A worker that acts at random.
struct RandomWorker {
    queue: Queue,
    tournament: TournamentId,
    worker: WorkerId,
    time: Time,
    dice: Dice,
    /// Reports to send later, when their leases may have expired.
    delayed_reports: Vec<Report>,
    accepted_matches: i64,
}

impl RandomWorker {
    /// Acts until there is no lot in 100 consecutive rounds. Returns the number of accepted
    /// matches.
    async fn run(mut self) -> i64 {
        let mut idle_rounds = 0;
        while idle_rounds < 100 {
            let limit = [1, 1, 16][self.dice.index(3)];
            let holders = vec![Some(self.worker); limit];
            let leased =
                self.queue.lease_to_at(self.tournament, &holders, self.time.now()).await.unwrap();
            idle_rounds = if leased.is_empty() { idle_rounds + 1 } else { 0 };
            let mut reports = Vec::new();
            for lot in leased {
                match self.dice.below(12) {
                    // The worker drops the lot without a message.
                    0 => {}
                    1 => drop(
                        self.queue.return_leases(Some(self.worker), &[lot.lease]).await.unwrap(),
                    ),
                    2 => {
                        let failure = Failure {
                            lease: lot.lease,
                            by: Some(self.worker),
                            kind: FaultKind::System,
                            reason: "no".to_owned(),
                        };
                        self.queue.fail_at(&[failure], self.time.now()).await.unwrap();
                    }
                    3 => self.delayed_reports.push(report(&lot, self.worker)),
                    4 => {
                        reports.push(report(&lot, self.worker));
                        reports.push(report(&lot, self.worker));
                    }
                    5 => {
                        self.queue
                            .renew_at(Some(self.worker), &[lot.lease], self.time.now())
                            .await
                            .unwrap();
                        self.delayed_reports.push(report(&lot, self.worker));
                    }
                    _ => reports.push(report(&lot, self.worker)),
                }
            }
            if self.dice.below(8) == 0 {
                reports.append(&mut self.delayed_reports);
            }
            self.deliver(&reports).await;
            self.time.advance(i64::from(self.dice.below(7)));
        }
        let reports = std::mem::take(&mut self.delayed_reports);
        self.deliver(&reports).await;
        self.accepted_matches
    }

    async fn deliver(&mut self, reports: &[Report]) {
        let statuses = support::report_all(&self.queue, reports).await;
        for (report, status) in reports.iter().zip(statuses) {
            assert_ne!(status, ReportStatus::Malformed);
            if status == ReportStatus::Accepted {
                self.accepted_matches += i64::try_from(report.results.len()).unwrap();
                // The worker did not receive the response, so it reports again.
                if self.dice.below(4) == 0 {
                    let second_statuses =
                        support::report_all(&self.queue, std::slice::from_ref(report)).await;
                    assert_eq!(second_statuses, [ReportStatus::Duplicate]);
                }
            }
        }
    }
}

/// Plays an edition with random workers. Returns the number of accepted matches.
async fn play_at_random(database: &Database, edition: EditionId, workers: u64, seed: &str) -> i64 {
    let queue = Queue::new(database.pool.clone(), Games::built_in(), UNLIMITED_RETRIES);
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    let tournament = scope.tournament;
    let time = Time::default();
    let mut tasks = JoinSet::new();
    for number in 0..workers {
        let worker = RandomWorker {
            queue: queue.clone(),
            tournament,
            worker: database.worker(&format!("random-{number}")).await,
            time: time.clone(),
            dice: Seed::of_text(seed).dice(number),
            delayed_reports: Vec::new(),
            accepted_matches: 0,
        };
        tasks.spawn(worker.run());
    }
    let mut maintenance = JoinSet::new();
    for _ in 0..2 {
        let queue = queue.clone();
        let time = time.clone();
        maintenance.spawn(async move {
            loop {
                queue.expire_at(time.now()).await.unwrap();
                queue.count(tournament).await.unwrap();
                // The standings always agree with the counted results.
                assert_eq!(queue.verify_standings(scope).await.unwrap(), []);
                lots::merge_counts(queue.pool(), tournament).await.unwrap();
                let miscounted = sqlx::query_scalar::<_, i64>(MISCOUNTED);
                assert_eq!(miscounted.fetch_one(queue.pool()).await.unwrap(), 0);
                time.advance(5);
            }
        });
    }
    let accepted_matches = tasks.join_all().await.iter().sum();
    assert!(maintenance.try_join_next().is_none(), "maintenance ended by itself");
    maintenance.shutdown().await;
    accepted_matches
}

/// Counts the lot states whose stored counts are wrong.
const MISCOUNTED: &str = "
    SELECT count(*) FROM (
        SELECT tournament, state, count(*) AS lots, sum(count) AS matches FROM lots GROUP BY 1, 2
    ) AS l
    FULL JOIN (
        SELECT tournament, state, sum(lots) AS lots, sum(matches) AS matches FROM lot_counts
        GROUP BY 1, 2 HAVING sum(lots) <> 0
    ) AS c USING (tournament, state)
    WHERE (l.lots, l.matches) IS DISTINCT FROM (c.lots, c.matches)";

/// Plays the remaining matches without failures, and checks that each match counts once.
async fn finish_and_check(database: &Database, edition: EditionId, matches: i64) {
    let queue = Queue::new(database.pool.clone(), Games::built_in(), UNLIMITED_RETRIES);
    let worker = database.worker("last").await;
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    let tournament = scope.tournament;
    let mut now = START + Duration::WEEK;
    while !queue.complete(edition, now).await.unwrap() {
        queue.expire_at(now).await.unwrap();
        for lot in queue.lease_at(tournament, 1024, now).await.unwrap() {
            assert_eq!(
                support::report_all(&queue, &[report(&lot, worker)]).await,
                [ReportStatus::Accepted]
            );
        }
        for lot in queue.lease_at(tournament, 1, now).await.unwrap() {
            assert_eq!(
                support::report_all(&queue, &[report(&lot, worker)]).await,
                [ReportStatus::Accepted]
            );
        }
        while queue.count(tournament).await.unwrap() > 0 {}
        now += Duration::HOUR;
    }
    assert_eq!(database.number("SELECT count(*) FROM results").await, matches);
    assert_eq!(database.number("SELECT sum(matches)::bigint FROM standings").await, 2 * matches);
    let complete_edition = editions::get(&database.pool, edition).await.unwrap().unwrap();
    assert_eq!(complete_edition.counted, matches);
    assert_eq!(queue.verify_standings(scope).await.unwrap(), []);
    let page = results::page(&database.pool, scope, MatchNumber(-1), false).await.unwrap();
    for (number, stored) in (0..).map(MatchNumber).zip(&page) {
        assert_eq!((stored.number, &stored.scores), (number, &result(number).scores));
    }
    let census = lots::census(&database.pool, tournament).await.unwrap();
    assert!(census.iter().all(|count| count.state == LotState::Counted), "{census:?}");
    assert_eq!(database.number(MISCOUNTED).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_matches_count_once() {
    let database = Database::new().await;
    let edition = database.running_edition(1500, 1).await;
    let accepted_matches = play_at_random(&database, edition, 6, "single").await;
    finish_and_check(&database, edition, 1500).await;
    let last_matches = database
        .number(
            "SELECT count(*) FROM lots WHERE worker =
        (SELECT id FROM workers WHERE name = 'last')",
        )
        .await;
    assert_eq!(accepted_matches + last_matches, 1500, "each match was accepted once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matches_of_large_lots_count_once() {
    let database = Database::new().await;
    let edition = database.running_edition(3000, 20).await;
    let accepted_matches = play_at_random(&database, edition, 6, "great").await;
    assert!(accepted_matches > 1500, "{accepted_matches}");
    finish_and_check(&database, edition, 3000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependent_matches_count_once_and_in_order() {
    use arbiter_coordinator::queue::{NewLot, Order};
    use arbiter_proto::ids::LotNumber;

    let database = Database::new().await;
    let edition = database.edition(5).await;
    let count = 300;
    // Each lot waits for the lots whose numbers are 5 and 7 lower.
    let blockers_of =
        |after: i64| [5, 7].into_iter().map(move |gap| after - gap).filter(|before| *before >= 0);
    let lots = some_lots(count, 1).map(move |lot| NewLot {
        blockers: i16::try_from(blockers_of(lot.number.0).count()).unwrap(),
        has_dependents: lot.number.0 < count - 5,
        ..lot
    });
    let pairs =
        (0..count).flat_map(move |after| blockers_of(after).map(move |before| (before, after)));
    let order =
        pairs.map(|(before, after)| Order { before: LotNumber(before), after: LotNumber(after) });
    let queue = database.queue();
    queue.plan(edition, final_plan(plan(count, 1).matches, lots, order)).await.unwrap();
    assert!(queue.start(edition).await.unwrap());
    play_at_random(&database, edition, 5, "order").await;
    finish_and_check(&database, edition, count).await;
    // A result is stored after the results that its match waited for. Postgres numbers transactions
    // at their first write, and a lot is leased after the lots that it waits for are stored.
    let out_of_order = database
        .number(
            "
        SELECT count(*) FROM lot_order o
        JOIN results b ON b.tournament = o.tournament AND b.number = o.before
        JOIN results a ON a.tournament = o.tournament AND a.number = o.after
        WHERE a.xmin::text::bigint < b.xmin::text::bigint",
        )
        .await;
    assert_eq!(out_of_order, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_maintenance_counts_each_match_once() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running_edition(5000, 1).await;
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    let mut leased = Vec::new();
    while leased.len() < 4096 {
        leased.extend(queue.lease_at(scope.tournament, 1024, START).await.unwrap());
    }
    let reports: Vec<_> = leased.iter().map(|lot| report(lot, worker)).collect();
    support::report_all(&queue, &reports).await;
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let maintenance = Maintenance::new(queue.clone(), Clock::fixed(|| START));
        tasks.spawn(async move { maintenance.round().await.unwrap().counted });
    }
    assert_eq!(tasks.join_all().await.iter().sum::<i64>(), 4096);
    assert_eq!(queue.verify_standings(scope).await.unwrap(), []);
}

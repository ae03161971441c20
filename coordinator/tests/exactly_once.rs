//! Each match counts exactly once, even if workers and connections fail.
//!
//! Workers lease and then do everything that a worker can do: report, report twice, report under a
//! lost lease, vanish, return a lot, fail, renew. Meanwhile the clock jumps by whole leases, lots
//! expire and are retried, and results are counted. At the end every match must be counted once.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

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
use arbiter_proto::ids::{EditionId, MatchNumber, WorkerId};
use support::test_clock::AtTime as _;
use support::{Database, START, lots as some_lots, plan, report, result, whole};
use time::{Duration, OffsetDateTime};
use tokio::task::JoinSet;

/// The clock of a test, in seconds.
#[derive(Clone, Debug, Default)]
struct Time(Arc<AtomicI64>);

impl Time {
    fn now(&self) -> OffsetDateTime {
        START + Duration::seconds(self.0.load(Ordering::Relaxed))
    }

    fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

/// A policy that sets no match aside, so that all matches must be played in the end.
const PATIENT: LeasePolicy = LeasePolicy {
    lease: Duration::MINUTE,
    retry_policy: RetryPolicy {
        faults: i16::MAX,
        delay: Duration::SECOND,
        max_delay: Duration::seconds(4),
    },
};

/// A worker with random actions.
struct Chaos {
    queue: Queue,
    edition: EditionId,
    worker: WorkerId,
    time: Time,
    dice: Dice,
    /// Reports of leases that may be lost.
    kept: Vec<Report>,
    accepted: i64,
}

impl Chaos {
    async fn run(mut self) -> i64 {
        let mut idle = 0;
        while idle < 100 {
            let most = [1, 1, 16][self.dice.index(3)];
            let holders = vec![Some(self.worker); most];
            let leased =
                self.queue.lease_to_at(self.edition, &holders, self.time.now()).await.unwrap();
            idle = if leased.is_empty() { idle + 1 } else { 0 };
            let mut reports = Vec::new();
            for lot in leased {
                match self.dice.below(12) {
                    // It vanishes.
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
                    3 => self.kept.push(report(&lot, self.worker)),
                    4 => {
                        reports.push(report(&lot, self.worker));
                        reports.push(report(&lot, self.worker));
                    }
                    5 => {
                        self.queue
                            .renew_at(Some(self.worker), &[lot.lease], self.time.now())
                            .await
                            .unwrap();
                        self.kept.push(report(&lot, self.worker));
                    }
                    _ => reports.push(report(&lot, self.worker)),
                }
            }
            if self.dice.below(8) == 0 {
                reports.append(&mut self.kept);
            }
            self.deliver(&reports).await;
            self.time.pass(i64::from(self.dice.below(7)));
        }
        let kept = std::mem::take(&mut self.kept);
        self.deliver(&kept).await;
        self.accepted
    }

    async fn deliver(&mut self, reports: &[Report]) {
        let verdicts = support::report_all(&self.queue, reports).await;
        for (report, verdict) in reports.iter().zip(verdicts) {
            assert_ne!(verdict, ReportStatus::Malformed);
            if verdict == ReportStatus::Accepted {
                self.accepted += i64::try_from(report.results.len()).unwrap();
                // The acknowledgement was lost: it is said again.
                if self.dice.below(4) == 0 {
                    let again =
                        support::report_all(&self.queue, std::slice::from_ref(report)).await;
                    assert_eq!(again, [ReportStatus::Duplicate]);
                }
            }
        }
    }
}

/// Lets workers play an edition, and returns the number of accepted matches.
async fn let_loose(database: &Database, edition: EditionId, workers: u64, seed: &str) -> i64 {
    let queue = Queue::new(database.pool.clone(), Games::built_in(), PATIENT);
    let time = Time::default();
    let mut tasks = JoinSet::new();
    for number in 0..workers {
        let chaos = Chaos {
            queue: queue.clone(),
            edition,
            worker: database.worker(&format!("chaos-{number}")).await,
            time: time.clone(),
            dice: Seed::of_text(seed).dice(number),
            kept: Vec::new(),
            accepted: 0,
        };
        tasks.spawn(chaos.run());
    }
    let mut upkeep = JoinSet::new();
    for _ in 0..2 {
        let queue = queue.clone();
        let time = time.clone();
        upkeep.spawn(async move {
            loop {
                queue.expire_at(time.now()).await.unwrap();
                queue.count(edition).await.unwrap();
                // The counted standings agree with the results at every moment.
                assert_eq!(queue.verify_standings(edition).await.unwrap(), []);
                lots::merge_counts(queue.pool(), edition).await.unwrap();
                let miscounted = sqlx::query_scalar::<_, i64>(MISCOUNTED);
                assert_eq!(miscounted.fetch_one(queue.pool()).await.unwrap(), 0);
                time.pass(5);
            }
        });
    }
    let accepted = tasks.join_all().await.iter().sum();
    assert!(upkeep.try_join_next().is_none(), "upkeep goes on until it is stopped");
    upkeep.shutdown().await;
    accepted
}

/// The number of states whose lot counts are wrong.
const MISCOUNTED: &str = "
    SELECT count(*) FROM (
        SELECT edition, state, count(*) AS lots, sum(count) AS matches FROM lots GROUP BY 1, 2
    ) AS l
    FULL JOIN (
        SELECT edition, state, sum(lots) AS lots, sum(matches) AS matches FROM lot_counts
        GROUP BY 1, 2 HAVING sum(lots) <> 0
    ) AS c USING (edition, state)
    WHERE (l.lots, l.matches) IS DISTINCT FROM (c.lots, c.matches)";

/// Plays the remaining matches without failures, and checks everything.
async fn finish_and_inspect(database: &Database, edition: EditionId, matches: i64) {
    let queue = Queue::new(database.pool.clone(), Games::built_in(), PATIENT);
    let worker = database.worker("last").await;
    let mut now = START + Duration::WEEK;
    while !queue.complete(edition, now).await.unwrap() {
        queue.expire_at(now).await.unwrap();
        for lot in queue.lease_at(edition, 1024, now).await.unwrap() {
            assert_eq!(
                support::report_all(&queue, &[report(&lot, worker)]).await,
                [ReportStatus::Accepted]
            );
        }
        for lot in queue.lease_at(edition, 1, now).await.unwrap() {
            assert_eq!(
                support::report_all(&queue, &[report(&lot, worker)]).await,
                [ReportStatus::Accepted]
            );
        }
        while queue.count(edition).await.unwrap() > 0 {}
        now += Duration::HOUR;
    }
    assert_eq!(database.number("SELECT count(*) FROM results").await, matches);
    assert_eq!(database.number("SELECT sum(matches)::bigint FROM standings").await, 2 * matches);
    let edition_now = editions::get(&database.pool, edition).await.unwrap().unwrap();
    assert_eq!(edition_now.counted, matches);
    assert_eq!(queue.verify_standings(edition).await.unwrap(), []);
    let page = results::page(&database.pool, edition, MatchNumber(-1), false).await.unwrap();
    for (number, played) in (0..).map(MatchNumber).zip(&page) {
        assert_eq!((played.number, &played.scores), (number, &result(number).scores));
    }
    let census = lots::census(&database.pool, edition).await.unwrap();
    let over = |state| matches!(state, LotState::Counted | LotState::Split);
    assert!(census.iter().all(|line| over(line.state)), "{census:?}");
    assert_eq!(database.number(MISCOUNTED).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_matches_count_once() {
    let database = Database::new().await;
    let edition = database.running(1500, 1).await;
    let accepted = let_loose(&database, edition, 6, "single").await;
    finish_and_inspect(&database, edition, 1500).await;
    let late = database
        .number(
            "SELECT count(*) FROM lots WHERE worker =
        (SELECT id FROM workers WHERE name = 'last')",
        )
        .await;
    assert_eq!(accepted + late, 1500, "each was accepted from one worker, once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matches_of_large_lots_count_once() {
    let database = Database::new().await;
    let edition = database.running(3000, 20).await;
    let accepted = let_loose(&database, edition, 6, "great").await;
    assert!(accepted > 1500, "{accepted}");
    finish_and_inspect(&database, edition, 3000).await;
}

/// Every lot waits for the one before it and the seventh before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matches_in_order_count_once_and_in_order() {
    use arbiter_coordinator::queue::{NewLot, Order};
    use arbiter_proto::ids::LotNumber;

    let database = Database::new().await;
    let edition = database.edition(5).await;
    let count = 300;
    // Five chains, each lot waiting for the fifth before it, with ties between neighbours.
    let befores = |after: i64| [5, 7].into_iter().map(move |gap| after - gap).filter(|b| *b >= 0);
    let lots = some_lots(count, 1).map(move |lot| NewLot {
        blockers: i16::try_from(befores(lot.number.0).count()).unwrap(),
        has_dependents: lot.number.0 < count - 5,
        ..lot
    });
    let pairs = (0..count).flat_map(move |after| befores(after).map(move |before| (before, after)));
    let order =
        pairs.map(|(before, after)| Order { before: LotNumber(before), after: LotNumber(after) });
    let queue = database.queue();
    queue.plan(edition, whole(plan(count, 1).matches, lots, order)).await.unwrap();
    assert!(queue.start(edition).await.unwrap());
    let_loose(&database, edition, 5, "order").await;
    finish_and_inspect(&database, edition, count).await;
    // A result is never older than those it waited for: transactions are numbered as they begin to
    // write, and a lot is leased after those before it were stored.
    let disorder = database
        .number(
            "
        SELECT count(*) FROM lot_order o
        JOIN results b ON b.edition = o.edition AND b.number = o.before
        JOIN results a ON a.edition = o.edition AND a.number = o.after
        WHERE a.xmin::text::bigint < b.xmin::text::bigint",
        )
        .await;
    assert_eq!(disorder, 0);
}

/// Maintenance by two coordinators at once counts nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_coordinators_may_count_at_once() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running(5000, 1).await;
    let mut leased = Vec::new();
    while leased.len() < 4096 {
        leased.extend(queue.lease_at(edition, 1024, START).await.unwrap());
    }
    let reports: Vec<_> = leased.iter().map(|lot| report(lot, worker)).collect();
    support::report_all(&queue, &reports).await;
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let upkeep = Maintenance::new(queue.clone(), Clock::given(|| START));
        tasks.spawn(async move { upkeep.round().await.unwrap().counted });
    }
    assert_eq!(tasks.join_all().await.iter().sum::<i64>(), 4096);
    assert_eq!(queue.verify_standings(edition).await.unwrap(), []);
}

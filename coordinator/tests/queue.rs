//! The queue: leases, reports and faults. The tests set the time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::lots::{self, LotState};
use arbiter_coordinator::db::records::Record;
use arbiter_coordinator::db::{editions, faults, played_matches, records};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{
    FailedLease, Failure, LeasedLot, MAX_FILES_LEN, NewLot, Order, PlanError, Queue, Report,
    ReportSender, ReportStatus,
};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{Attempt, Lease, LotId, LotNumber, MatchId, MatchNumber, TournamentId};
use support::planning::{Plan, Planning as _};
use support::test_clock::{AtTime, set_time};
use support::{
    AnyPlan, Database, START, duels, final_plan, lots as some_lots, plan, report, report_all,
    report_one,
};
use time::Duration;
use tokio::task::JoinSet;

/// A tournament with a running edition of this many matches, at most `per_lot` in each lot.
async fn running(database: &Database, matches: i64, per_lot: i32) -> TournamentId {
    let edition = database.running_edition(matches, per_lot).await;
    database.tournament_of(edition).await
}

/// Leases one lot, this many seconds after the start.
async fn lease_one(queue: &Queue, cup: TournamentId, seconds: i64) -> Option<LeasedLot> {
    queue.lease_at(cup, 1, START + Duration::seconds(seconds)).await.unwrap().pop()
}

/// The number of lots in each state.
async fn states(database: &Database, cup: TournamentId) -> Vec<(LotState, i64)> {
    let census = lots::census(&database.pool, cup).await.unwrap();
    census.into_iter().map(|count| (count.state, count.lots)).collect()
}

#[tokio::test]
async fn the_longest_lots_come_first() {
    let database = Database::new().await;
    let queue = database.queue();
    let cup = running(&database, 40, 2).await;
    let first = queue.lease_at(cup, 16, START).await.unwrap();
    let numbers: Vec<_> = first.iter().map(|lot| lot.lease.lot.number.0).collect();
    assert_eq!(numbers, (4..20).rev().map(|lot| lot * 2).collect::<Vec<_>>());
    let next = lease_one(&queue, cup, 0).await.unwrap();
    assert_eq!(
        (next.lease.lot.number, next.first_match(), next.count),
        (LotNumber(6), MatchNumber(6), 2)
    );
}

#[tokio::test]
async fn a_duplicate_report_is_acknowledged_without_effect() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 4, 4).await;
    let lot = lease_one(&queue, cup, 0).await.unwrap();
    let mut first = report(&lot, worker);
    first.records = vec![(MatchNumber(2), b"record".to_vec())];
    assert_eq!(report_one(&queue, &first).await, ReportStatus::Accepted);
    let mut other = first.clone();
    other.results[0].scores = vec![100, 100];
    assert_eq!(report_one(&queue, &other).await, ReportStatus::Duplicate);
    assert_eq!(queue.count(cup).await.unwrap(), 4);
    assert_eq!(report_one(&queue, &first).await, ReportStatus::Duplicate);
    assert_eq!(database.number("SELECT max(scores[1]) FROM results").await, 2);
    let id = MatchId { tournament: cup, number: MatchNumber(2) };
    let stored = records::find(&database.pool, id).await.unwrap().unwrap();
    assert_eq!(stored, Record::InDatabase(b"record".to_vec()));
    let size = records::find_size(&database.pool, id).await.unwrap().unwrap();
    assert_eq!(size, Record::InDatabase(6));
    for (range, expected) in [(0..4, &b"reco"[..]), (4..8, b"rd"), (8..12, b"")] {
        let piece = records::piece(&database.pool, id, range).await.unwrap();
        assert_eq!(piece.as_deref(), Some(expected));
    }
    let id = MatchId { tournament: cup, number: MatchNumber(3) };
    assert_eq!(records::find_size(&database.pool, id).await.unwrap(), None);
    assert_eq!(records::piece(&database.pool, id, 0..4).await.unwrap(), None);
    let played_match = played_matches::find(&database.pool, id).await.unwrap().unwrap();
    assert_eq!(played_match.result.transcript, first.results[3].transcript);
}

#[tokio::test]
async fn two_reports_of_a_lot_in_one_batch_count_once() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 4, 2).await;
    let lots = [lease_one(&queue, cup, 0).await, lease_one(&queue, cup, 0).await];
    let [a, b] = lots.map(|lot| report(&lot.unwrap(), worker));
    let statuses = report_all(&queue, &[a.clone(), b, a]).await;
    assert_eq!(statuses, [ReportStatus::Accepted, ReportStatus::Accepted, ReportStatus::Duplicate]);
    assert_eq!(database.number("SELECT count(*) FROM results").await, 4);
}

/// A worker leases a lot twice, and sends both reports.
#[tokio::test]
async fn only_the_valid_lease_of_a_lot_counts_in_a_batch() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 1, 1).await;
    let old_lot = lease_one(&queue, cup, 0).await.unwrap();
    queue.return_leases(None, &[old_lot.lease]).await.unwrap();
    let new_lot = lease_one(&queue, cup, 0).await.unwrap();
    let statuses = report_all(&queue, &[report(&old_lot, worker), report(&new_lot, worker)]).await;
    assert_eq!(statuses, [ReportStatus::Late, ReportStatus::Accepted]);
}

#[tokio::test]
async fn leases_expire_at_their_deadline() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 1, 1).await;
    let first = lease_one(&queue, cup, 0).await.unwrap();
    assert_eq!(lease_one(&queue, cup, 0).await, None);
    // A lease lasts one minute.
    let at = |seconds| START + Duration::seconds(seconds);
    assert_eq!(queue.expire_at(at(60)).await.unwrap().failed, []);
    let failed = queue.expire_at(at(61)).await.unwrap().failed;
    assert_eq!(failed, [FailedLease { lease: first.lease, state: LotState::Delayed }]);
    // The lot is delayed for one second. A report of the expired lease is late.
    assert_eq!(report_one(&queue, &report(&first, worker)).await, ReportStatus::Late);
    assert_eq!(queue.expire_at(at(61)).await.unwrap().resumed, 0);
    assert_eq!(lease_one(&queue, cup, 61).await, None);
    assert_eq!(queue.expire_at(at(62)).await.unwrap().resumed, 1);
    let second = lease_one(&queue, cup, 62).await.unwrap();
    assert_eq!((first.lease.attempt, second.lease.attempt), (Attempt(1), Attempt(2)));
    assert_eq!(report_one(&queue, &report(&first, worker)).await, ReportStatus::Late);
    assert_eq!(report_one(&queue, &report(&second, worker)).await, ReportStatus::Accepted);
    assert_eq!(report_one(&queue, &report(&first, worker)).await, ReportStatus::Late);
    let lot_faults = faults::of_lot(&database.pool, first.lease.lot).await.unwrap();
    assert_eq!(
        (lot_faults.len(), lot_faults[0].attempt, lot_faults[0].at),
        (1, Attempt(1), at(61))
    );
}

#[tokio::test]
async fn an_overdue_lease_can_report_before_maintenance_expires_it() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 1, 1).await;
    let lot = lease_one(&queue, cup, 0).await.unwrap();
    // The deadline has passed, but maintenance has not expired the lease: the report counts.
    assert_eq!(report_one(&queue, &report(&lot, worker)).await, ReportStatus::Accepted);
    assert_eq!(queue.expire_at(START + Duration::HOUR).await.unwrap().failed, []);
}

#[tokio::test]
async fn renewed_leases_expire_later() {
    let database = Database::new().await;
    let queue = database.queue();
    let cup = running(&database, 3, 1).await;
    let [a, b] = [lease_one(&queue, cup, 0).await, lease_one(&queue, cup, 0).await];
    let [a, b] = [a.unwrap().lease, b.unwrap().lease];
    let old = Lease { attempt: Attempt(0), ..b };
    let at = |seconds| START + Duration::seconds(seconds);
    assert_eq!(queue.renew_at(None, &[a, old], at(50)).await.unwrap(), [a]);
    let failed = queue.expire_at(at(100)).await.unwrap().failed;
    assert_eq!(failed.iter().map(|failed| failed.lease).collect::<Vec<_>>(), [b]);
    assert_eq!(queue.renew_at(None, &[a, b], at(101)).await.unwrap(), [a]);
}

#[tokio::test]
async fn returned_leases_are_not_faults() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 1, 1).await;
    for attempt in 1..=9 {
        let lot = lease_one(&queue, cup, 0).await.unwrap();
        assert_eq!(lot.lease.attempt, Attempt(attempt));
        assert_eq!(queue.return_leases(None, &[lot.lease]).await.unwrap(), [lot.lease]);
        assert_eq!(queue.return_leases(None, &[lot.lease]).await.unwrap(), []);
        assert_eq!(report_one(&queue, &report(&lot, worker)).await, ReportStatus::Late);
    }
    assert_eq!(states(&database, cup).await, [(LotState::Pending, 1)]);
}

/// One match of a lot always fails. The other matches are played one by one, and the failing match
/// is set aside.
#[tokio::test]
async fn matches_of_a_failed_lot_are_leased_one_by_one() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running_edition(4, 4).await;
    let cup = database.tournament_of(edition).await;
    let lot = lease_one(&queue, cup, 0).await.unwrap();
    let failure = |lease| {
        [Failure {
            lease,
            by: None,
            kind: FaultKind::System,
            reason: "the sandbox did not start".to_owned(),
        }]
    };
    let failed = queue.fail_at(&failure(lot.lease), START).await.unwrap();
    assert_eq!(failed, [FailedLease { lease: lot.lease, state: LotState::Delayed }]);
    assert_eq!(states(&database, cup).await, [(LotState::Delayed, 4)]);
    assert_eq!(queue.fail_at(&failure(lot.lease), START).await.unwrap(), []);
    assert_eq!(report_one(&queue, &report(&lot, worker)).await, ReportStatus::Late);

    let failing = MatchNumber(2);
    let mut played_numbers = Vec::new();
    for hour in 1..=5 {
        let now = START + Duration::hours(hour);
        queue.expire_at(now).await.unwrap();
        while let Some(single) = lease_one(&queue, cup, hour * 3600).await {
            assert_eq!(single.count, 1);
            if single.first_match() == failing {
                queue.fail_at(&failure(single.lease), now).await.unwrap();
            } else {
                assert_eq!(
                    report_one(&queue, &report(&single, worker)).await,
                    ReportStatus::Accepted
                );
                played_numbers.push(single.first_match().0);
            }
        }
    }
    played_numbers.sort_unstable();
    assert_eq!(played_numbers, [0, 1, 3]);
    let set_aside = lots::aside(&database.pool, cup).await.unwrap();
    let failing_lot = LotId { tournament: cup, number: LotNumber(2) };
    assert_eq!(set_aside, [failing_lot]);
    let reasons = sqlx::query_scalar("SELECT reason FROM faults").fetch_all(&database.pool).await;
    let reasons: Vec<String> = reasons.unwrap();
    assert_eq!(reasons, ["the sandbox did not start"; 1 + 3].map(str::to_owned));
    // The edition is not complete without the failing match.
    assert_eq!(queue.count(cup).await.unwrap(), 3);
    assert!(!queue.complete(edition, START + Duration::DAY).await.unwrap());
    assert!(lots::requeue(&database.pool, failing_lot).await.unwrap());
    assert!(!lots::requeue(&database.pool, failing_lot).await.unwrap());
    let retried = lease_one(&queue, cup, 86_400).await.unwrap();
    assert_eq!(report_one(&queue, &report(&retried, worker)).await, ReportStatus::Accepted);
    assert_eq!(queue.count(cup).await.unwrap(), 1);
    assert!(queue.complete(edition, START + Duration::DAY).await.unwrap());
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    assert_eq!(queue.verify_standings(scope).await.unwrap(), []);
}

#[tokio::test]
async fn delays_grow_with_each_fault() {
    let database = Database::new().await;
    let queue = database.queue();
    let cup = running(&database, 1, 1).await;
    let mut now = START;
    for seconds in [1, 2] {
        let lot = queue.lease_at(cup, 1, now).await.unwrap().pop().unwrap();
        let failure = Failure {
            lease: lot.lease,
            by: None,
            kind: FaultKind::System,
            reason: "no".to_owned(),
        };
        queue.fail_at(&[failure], now).await.unwrap();
        let resume_at = now + Duration::seconds(seconds);
        assert_eq!(queue.expire_at(resume_at - Duration::MICROSECOND).await.unwrap().resumed, 0);
        assert_eq!(queue.expire_at(resume_at).await.unwrap().resumed, 1);
        now = resume_at;
    }
}

#[tokio::test]
async fn malformed_reports_are_refused_and_delay_no_other() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 40, 2).await;
    let mut lots = queue.lease_at(cup, 16, START).await.unwrap();
    lots.extend(queue.lease_at(cup, 4, START).await.unwrap());
    let valid = report(&lots[0], worker);
    let changed_report = |lot: usize, change: fn(&mut Report)| {
        let mut report = report(&lots[lot], worker);
        change(&mut report);
        report
    };
    let malformed = [
        changed_report(1, |report| drop(report.results.pop())),
        changed_report(2, |report| report.results.clear()),
        changed_report(3, |report| {
            report.results.iter_mut().for_each(|result| result.number.0 += 1);
        }),
        changed_report(4, |report| report.results[1].number.0 += 1),
        changed_report(5, |report| {
            report.results.iter_mut().for_each(|r| r.scores = vec![1, 2, 3]);
        }),
        changed_report(6, |report| report.results[0].scores = vec![1]),
        changed_report(7, |report| report.results[0].wall_ms = -1),
        changed_report(8, |report| report.results[0].bad_answers = vec![-1, 0]),
        changed_report(9, |report| report.results[0].forfeits = vec![None; 3]),
        changed_report(10, |report| report.records = vec![(MatchNumber(999), vec![1])]),
        changed_report(11, |report| report.records = vec![(report.results[0].number, Vec::new())]),
        changed_report(12, |report| {
            report.records = vec![(report.results[0].number, vec![1]); 2];
        }),
        changed_report(13, |report| report.files = vec![(report.results[0].number, 0, vec![1])]),
        changed_report(14, |report| report.files = vec![(report.results[0].number, 17, vec![1])]),
        changed_report(15, |report| report.files = vec![(report.results[0].number, 1, Vec::new())]),
        changed_report(16, |report| report.files = vec![(MatchNumber(999), 1, vec![1])]),
        changed_report(17, |report| report.files = vec![(report.results[0].number, 1, vec![1]); 2]),
        changed_report(18, |report| {
            report.files = vec![(report.results[0].number, 1, vec![1; MAX_FILES_LEN + 1])];
        }),
    ];
    let mut batch = malformed.to_vec();
    batch.insert(5, valid);
    let statuses = report_all(&queue, &batch).await;
    let mut expected = vec![ReportStatus::Malformed; malformed.len()];
    expected.insert(5, ReportStatus::Accepted);
    assert_eq!(statuses, expected);
    assert_eq!(database.number("SELECT count(*) FROM results").await, 2);
    // The leases of malformed reports are still valid.
    assert_eq!(report_one(&queue, &report(&lots[1], worker)).await, ReportStatus::Accepted);
}

#[tokio::test]
async fn reports_of_lots_that_do_not_exist_are_late() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 1, 1).await;
    let lot = lease_one(&queue, cup, 0).await.unwrap();
    let mut stray = report(&lot, worker);
    stray.lease.lot.number = LotNumber(77);
    assert_eq!(report_one(&queue, &stray).await, ReportStatus::Late);
}

#[tokio::test]
async fn lots_of_a_cancelled_edition_are_neither_leased_nor_accepted() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running_edition(5, 1).await;
    let cup = database.tournament_of(edition).await;
    let first = lease_one(&queue, cup, 0).await.unwrap();
    assert_eq!(report_one(&queue, &report(&first, worker)).await, ReportStatus::Accepted);
    let second = lease_one(&queue, cup, 0).await.unwrap();
    assert!(queue.cancel(edition, START).await.unwrap());
    assert!(!queue.cancel(edition, START).await.unwrap());
    assert_eq!(lease_one(&queue, cup, 0).await, None);
    assert_eq!(report_one(&queue, &report(&second, worker)).await, ReportStatus::Late);
    let expected = [(LotState::Reported, 1), (LotState::Cancelled, 4)];
    assert_eq!(states(&database, cup).await, expected);
    let rows = editions::needing_maintenance(&database.pool).await.unwrap();
    assert!(rows.iter().all(|due| due.running.is_none()));
}

/// Lots are leased while their edition is cancelled. At the end all lots are cancelled.
#[tokio::test]
async fn cancelling_waits_for_no_lock_and_misses_no_lot() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running_edition(2000, 1).await;
    let cup = database.tournament_of(edition).await;
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        tasks.spawn(
            async move { while !queue.lease_at(cup, 16, START).await.unwrap().is_empty() {} },
        );
    }
    queue.cancel(edition, START).await.unwrap();
    tasks.join_all().await;
    assert_eq!(states(&database, cup).await, [(LotState::Cancelled, 2000)]);
}

/// Five matches in sequence, and a sixth that waits for two of them.
fn ordered() -> AnyPlan {
    let lots = some_lots(6, 1).map(|lot| NewLot {
        blockers: [0, 1, 1, 1, 1, 2][usize::try_from(lot.number.0).unwrap()],
        has_dependents: lot.number.0 < 5,
        ..lot
    });
    let pair = |(before, after)| Order { before: LotNumber(before), after: LotNumber(after) };
    let order = [(0, 1), (1, 2), (2, 3), (3, 4), (1, 5), (4, 5)].map(pair);
    final_plan(duels(6), lots, order)
}

#[tokio::test]
async fn matches_that_depend_on_others_wait_for_them() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.edition(5).await;
    let cup = database.tournament_of(edition).await;
    queue.plan(edition, ordered()).await.unwrap();
    assert!(queue.start(edition).await.unwrap());
    for expected in 0..6 {
        let lot = lease_one(&queue, cup, 0).await.unwrap();
        assert_eq!(lot.lease.lot.number, LotNumber(expected));
        assert_eq!(lease_one(&queue, cup, 0).await, None, "{expected}");
        // After a fault, the next match still waits.
        let failure = Failure {
            lease: lot.lease,
            by: None,
            kind: FaultKind::System,
            reason: "no".to_owned(),
        };
        queue.fail_at(&[failure], START).await.unwrap();
        assert_eq!(lease_one(&queue, cup, 0).await, None, "{expected}");
        queue.expire_at(START + Duration::MINUTE).await.unwrap();
        let lot = lease_one(&queue, cup, 0).await.unwrap();
        assert_eq!(report_one(&queue, &report(&lot, worker)).await, ReportStatus::Accepted);
        assert_eq!(report_one(&queue, &report(&lot, worker)).await, ReportStatus::Duplicate);
    }
    assert_eq!(queue.count(cup).await.unwrap(), 6);
    assert!(queue.complete(edition, START).await.unwrap());
}

#[tokio::test]
async fn matches_can_be_added_until_the_plan_is_final() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.edition(5).await;
    let cup = database.tournament_of(edition).await;
    let first = Plan { open_ended: true, ..plan(2, 1) };
    queue.plan(edition, first).await.unwrap();
    queue.start(edition).await.unwrap();
    for _ in 0..2 {
        let lot = lease_one(&queue, cup, 0).await.unwrap();
        report_one(&queue, &report(&lot, worker)).await;
    }
    assert_eq!(queue.count(cup).await.unwrap(), 2);
    assert!(!queue.complete(edition, START).await.unwrap());
    let rest = Plan {
        matches: duels(4).skip(2),
        lots: some_lots(4, 1).skip(2),
        order: std::iter::empty(),
        open_ended: false,
    };
    assert_eq!(queue.plan(edition, rest).await.unwrap(), 2);
    for _ in 0..2 {
        let lot = lease_one(&queue, cup, 0).await.unwrap();
        report_one(&queue, &report(&lot, worker)).await;
    }
    let error = queue.plan(edition, plan(1, 1)).await.unwrap_err();
    assert!(matches!(error, PlanError::Database { .. }), "{error}");
    assert_eq!(queue.count(cup).await.unwrap(), 2);
    assert!(queue.complete(edition, START).await.unwrap());
    assert_eq!(editions::get(&database.pool, edition).await.unwrap().unwrap().matches, 4);
}

#[tokio::test]
async fn invalid_plans_are_refused() {
    let error_of = async |plan: AnyPlan| {
        let database = Database::new().await;
        let edition = database.edition(5).await;
        let queue = database.queue();
        queue.plan(edition, plan).await.unwrap_err().to_string()
    };
    let assert_ends_with = |error: String, end: &str| assert!(error.ends_with(end), "{error}");
    let two_each = || some_lots(6, 2);
    let with_gap = final_plan(duels(6), two_each().filter(|lot| lot.number.0 != 2), []);
    assert_ends_with(error_of(with_gap).await, "match 2 is in no lot");
    let too_short = final_plan(duels(6), two_each().take(2), []);
    assert_ends_with(error_of(too_short).await, "the lots hold 4 matches of 6");
    assert_ends_with(
        error_of(final_plan(duels(6), std::iter::empty(), [])).await,
        "the lots hold 0 matches of 6",
    );
    let overlapping = final_plan(duels(6), two_each().map(|lot| NewLot { count: 3, ..lot }), []);
    assert_ends_with(error_of(overlapping).await, "match 2 is in two lots");
    let AnyPlan { matches, lots, .. } = ordered();
    assert!(error_of(final_plan(matches, lots, [])).await.ends_with("and the order names 0"));
    let AnyPlan { matches, lots, order, .. } = ordered();
    let unmarked =
        lots.map(|lot| NewLot { has_dependents: lot.number.0 != 3 && lot.has_dependents, ..lot });
    let error = error_of(final_plan(matches, unmarked, order)).await;
    assert_ends_with(error, "lot 3 is not marked as one that others wait for");
}

#[tokio::test]
async fn a_plan_is_stored_atomically() {
    let database = Database::new().await;
    let edition = database.edition(5).await;
    let queue = database.queue();
    let with_empty_lot = |lot: NewLot| NewLot { count: i32::from(lot.number.0 != 5), ..lot };
    let invalid = final_plan(duels(6), some_lots(6, 1).map(with_empty_lot), []);
    let error = queue.plan(edition, invalid).await.unwrap_err();
    assert!(matches!(error, PlanError::Database { .. }));
    for table in ["SELECT count(*) FROM matches", "SELECT count(*) FROM lots"] {
        assert_eq!(database.number(table).await, 0);
    }
    assert_eq!(editions::get(&database.pool, edition).await.unwrap().unwrap().matches, 0);
    assert!(!queue.start(edition).await.unwrap());
}

#[tokio::test]
async fn each_report_of_a_batch_gets_a_status() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 1024, 1).await;
    let lots = queue.lease_at(cup, 1024, START).await.unwrap();
    let (sender, collector) = ReportSender::new(queue.clone());
    let mut tasks = JoinSet::new();
    for lot in &lots {
        let sender = sender.clone();
        let report = report(lot, worker);
        tasks.spawn(async move { sender.report(report).await.unwrap() });
    }
    drop(sender);
    let transactions_before =
        database.number("SELECT count(DISTINCT xmin::text) FROM results").await;
    collector.run(std::future::pending()).await;
    assert!(tasks.join_all().await.iter().all(|status| *status == ReportStatus::Accepted));
    assert_eq!(database.number("SELECT count(*) FROM results").await, 1024);
    let commits = database.number("SELECT count(DISTINCT xmin::text) FROM results").await
        - transactions_before;
    // While a batch is stored, up to 256 reports wait for the next batch.
    assert!((4..=64).contains(&commits), "{commits} commits for 1024 reports");
}

/// A report that the database cannot store fails alone.
#[tokio::test]
async fn an_unstorable_report_affects_no_other() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 16, 1).await;
    let lots = queue.lease_at(cup, 16, START).await.unwrap();
    // A result of a match that is not reported. The unique key refuses a second result.
    let add_result = "INSERT INTO results (number, tournament, level, wall_ms, scores, transcript)
        SELECT 3, max(id), 'B', 0, '{1,1}', decode(repeat('00', 32), 'hex') FROM tournaments";
    sqlx::query(add_result).execute(&database.pool).await.unwrap();
    let (sender, collector) = ReportSender::new(queue.clone());
    let mut tasks = JoinSet::new();
    for lot in &lots {
        let sender = sender.clone();
        let report = report(lot, worker);
        tasks.spawn(async move { (report.results[0].number, sender.report(report).await) });
    }
    drop(sender);
    collector.run(std::future::pending()).await;
    for (number, result) in tasks.join_all().await {
        match result {
            Ok(status) => assert_eq!(status, ReportStatus::Accepted),
            Err(error) => assert!(number == MatchNumber(3), "{number}: {error}"),
        }
    }
    let expected = [(LotState::Leased, 1), (LotState::Reported, 15)];
    assert_eq!(states(&database, cup).await, expected);
}

#[tokio::test]
async fn maintenance_completes_an_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running_edition(16, 1).await;
    let cup = database.tournament_of(edition).await;
    let lots = queue.lease_at(cup, 16, START).await.unwrap();
    let first_hour = Maintenance::new(queue.clone(), Clock::fixed(|| START + Duration::HOUR));
    set_time(&database.pool, START + Duration::HOUR).await;
    let reports: Vec<_> = lots[1..].iter().map(|lot| report(lot, worker)).collect();
    report_all(&queue, &reports).await;
    let round = first_hour.round().await.unwrap();
    assert_eq!((round.expired.failed.len(), round.counted, round.complete.len()), (1, 15, 0));
    assert_eq!(first_hour.round().await.unwrap().expired.resumed, 0);
    let second_hour = Maintenance::new(queue.clone(), Clock::fixed(|| START + Duration::HOUR * 2));
    set_time(&database.pool, START + Duration::HOUR * 2).await;
    assert_eq!(second_hour.round().await.unwrap().expired.resumed, 1);
    let last = lease_one(&queue, cup, 7200).await.unwrap();
    report_one(&queue, &report(&last, worker)).await;
    let round = second_hour.round().await.unwrap();
    assert_eq!((round.counted, round.complete), (1, vec![edition]));
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    assert_eq!(queue.verify_standings(scope).await.unwrap(), []);
}

/// A locked lot is counted later.
#[tokio::test]
async fn counting_does_not_wait_for_locked_lots() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let cup = running(&database, 4, 4).await;
    let lot = lease_one(&queue, cup, 0).await.unwrap();
    assert_eq!(report_one(&queue, &report(&lot, worker)).await, ReportStatus::Accepted);
    let mut lock_holder = database.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM lots FOR UPDATE").execute(&mut *lock_holder).await.unwrap();
    assert_eq!(queue.count(cup).await.unwrap(), 0);
    lock_holder.rollback().await.unwrap();
    assert_eq!(queue.count(cup).await.unwrap(), 4);
}

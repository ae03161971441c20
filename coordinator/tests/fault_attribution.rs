//! Faults in the matches of one bot suspend that bot and delay no edition. Faults on one worker
//! suspend no bot.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;

use arbiter_coordinator::bot_suspension::fault_attribution::attribute_faults;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::faults::MatchAttempt;
use arbiter_coordinator::db::matches::Seats;
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::db::{audit_log, bots, editions, lots, matches};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{Failure, LeasedLot, Queue, ReportStatus};
use arbiter_coordinator::tournament::{
    EditionOpener, IfRunning, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::Games;
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{EditionId, MatchNumber, WorkerId};
use arbiter_ranking::Entrant;
use support::test_clock::AtTime as _;
use support::{Database, START, report};
use time::{Duration, OffsetDateTime};

thread_local! {
    /// The current time of the test's clock.
    static NOW: Cell<OffsetDateTime> = const { Cell::new(START) };
}

fn now() -> OffsetDateTime {
    NOW.get()
}

/// A tournament with a running edition, and workers.
struct Cup {
    database: Database,
    queue: Queue,
    tournament: Tournament,
    workers: Vec<WorkerId>,
    /// The kind of its faults.
    kind: FaultKind,
}

/// The state at the end of a tournament.
#[derive(Debug, PartialEq, Eq)]
struct FinalState {
    /// Whether its last edition is complete.
    complete: bool,
    /// The number of bots in that edition.
    bots: usize,
    /// The names of the suspended bots.
    suspended: Vec<String>,
}

impl Cup {
    /// Creates a tournament with these lines in its file, and starts its first edition.
    async fn new(rules: &str, bots: i32, workers: i32) -> Self {
        let database = Database::new().await;
        let text = format!(
            "name = \"cup\"\ngame = \"gomoku\"\nseed = \"cup\"\nstate = \"none\"\n{rules}\n\
             [submissions]\npreflight = false\nwindow = \"1s\"\n"
        );
        let file = TournamentFile::parse(&Games::built_in(), &text).unwrap();
        let tournament =
            lifecycle::create(&mut database.pool.acquire().await.unwrap(), &file, START)
                .await
                .unwrap();
        database.versions(tournament.id, bots).await;
        let queue = database.queue();
        open_edition::open(&queue, OpenRequest::new(tournament.id, IfRunning::Refuse), START)
            .await
            .unwrap();
        let mut worker_ids = Vec::new();
        for worker in 0..workers {
            worker_ids.push(database.worker(&format!("worker-{worker}")).await);
        }
        let kind = FaultKind::System;
        Self { database, queue, tournament, workers: worker_ids, kind }
    }

    /// The numbers of the bots in the seats of a lot's matches.
    async fn bots(&self, edition: EditionId, lot: &LeasedLot) -> Vec<i32> {
        let entrants = editions::entrants(&self.database.pool, edition).await.unwrap();
        let tournament = lot.lease.lot.tournament;
        let matches =
            matches::range(&self.database.pool, tournament, lot.first_match(), lot.count).await;
        let seats = matches.unwrap().into_iter().flat_map(|planned| planned.seats.0);
        let bot = |entrant: Entrant| {
            entrants.iter().find(|row| row.entrant == entrant).unwrap().bot.0 - 1
        };
        seats.map(bot).collect()
    }

    /// Plays all matches. An attempt at a lot fails if `fails` returns true for the index of the
    /// worker and the bots of the lot.
    async fn play(&self, fails: impl Fn(usize, &[i32]) -> bool) -> FinalState {
        let maintenance = Maintenance::new(self.queue.clone(), Clock::fixed(now));
        let opener = EditionOpener::new(self.queue.clone(), Clock::fixed(now));
        let mut suspended = Vec::new();
        for minute in 0..60_usize {
            NOW.set(START + Duration::minutes(i64::try_from(minute).unwrap()));
            let running = editions::running(&self.database.pool, self.tournament.id).await.unwrap();
            let Some(running) = running else { break };
            for turn in 0..self.workers.len() {
                let index = (minute + turn) % self.workers.len();
                self.attempt(running.id, index, &fails).await;
            }
            let round = maintenance.round().await.unwrap();
            suspended.extend(round.suspended.into_iter().map(|bot| bot.name));
            opener.open_all_due().await.unwrap();
        }
        let editions =
            editions::of_tournament(&self.database.pool, self.tournament.id).await.unwrap();
        let newest = editions.into_iter().max_by_key(|edition| edition.number).unwrap();
        let entrants = editions::entrants(&self.database.pool, newest.id).await.unwrap();
        let complete = newest.state == editions::EditionState::Complete;
        FinalState { complete, bots: entrants.len(), suspended }
    }

    /// One worker leases two lots. It plays each lot, or reports a fault.
    async fn attempt(
        &self,
        edition: EditionId,
        index: usize,
        fails: impl Fn(usize, &[i32]) -> bool,
    ) {
        let worker = self.workers[index];
        let tournament = self.tournament.id;
        let lots = self.queue.lease_to_at(tournament, &[Some(worker); 2], now()).await.unwrap();
        for lot in lots {
            if fails(index, &self.bots(edition, &lot).await) {
                let lease = lot.lease;
                let reason = "the program is busy".to_owned();
                let failure = Failure { lease, by: Some(worker), kind: self.kind, reason };
                assert_eq!(self.queue.fail_at(&[failure], now()).await.unwrap().len(), 1);
            } else {
                let mut report = report(&lot, worker);
                report.at = now();
                let statuses = support::report_all(&self.queue, &[report]).await;
                assert_eq!(statuses, [ReportStatus::Accepted]);
            }
        }
    }
}

fn final_state(complete: bool, bots: usize, suspended: &[&str]) -> FinalState {
    FinalState { complete, bots, suspended: suspended.iter().map(ToString::to_string).collect() }
}

#[tokio::test]
async fn a_bot_with_faults_on_all_workers_delays_no_edition() {
    for (rules, bots, workers) in [("", 3, 2), ("", 4, 3), ("", 5, 1), ("rerun = \"manual\"", 4, 2)]
    {
        let cup = Cup::new(rules, bots, workers).await;
        let case = format!("{rules}, {bots} bots, {workers} workers");
        let result = cup.play(|_, bots| bots.contains(&1)).await;
        let remaining = usize::try_from(bots - 1).unwrap();
        assert_eq!(result, final_state(true, remaining, &["bot-1"]), "{case}");
        let pool = &cup.database.pool;
        let bot = bots::find(pool, cup.tournament.id, "bot-1").await.unwrap().unwrap();
        let reason: String =
            sqlx::query_scalar("SELECT stood_down_reason FROM bots WHERE name = 'bot-1'")
                .fetch_one(pool)
                .await
                .unwrap();
        assert!(reason.contains("attempts at"), "{reason}");
        assert!(reason.contains("of its matches failed, on "), "{reason}");
        let changes = audit_log::latest(pool).await.unwrap();
        assert!(
            changes
                .iter()
                .any(|change| change.action == "stand down" && change.subject == "cup bot-1")
        );
        // An organiser can reinstate the bot.
        assert!(bots::reinstate(pool, bot.id).await.unwrap());
    }
}

#[tokio::test]
async fn two_bots_with_faults_on_all_workers_delay_no_edition() {
    let cup = Cup::new("", 6, 3).await;
    let mut result = cup.play(|_, bots| bots.contains(&1) || bots.contains(&4)).await;
    result.suspended.sort_unstable();
    assert_eq!(result, final_state(true, 4, &["bot-1", "bot-4"]));
}

#[tokio::test]
async fn a_broken_worker_suspends_no_bot() {
    let cup = Cup::new("", 4, 3).await;
    assert_eq!(cup.play(|worker, _| worker == 0).await, final_state(true, 4, &[]));
    // If it is the only worker, no match is played, but the bots are still not suspended.
    let cup = Cup::new("", 4, 1).await;
    assert_eq!(cup.play(|_, _| true).await, final_state(false, 4, &[]));
    assert!(!lots::aside(&cup.database.pool, cup.tournament.id).await.unwrap().is_empty());
    // Two broken workers.
    let cup = Cup::new("", 4, 3).await;
    assert_eq!(cup.play(|worker, _| worker < 2).await.suspended, [""; 0]);
}

#[tokio::test]
async fn a_bot_that_fails_on_one_worker_only_is_not_suspended() {
    let cup = Cup::new("", 4, 4).await;
    let result = cup.play(|worker, bots| worker == 0 && bots.contains(&2)).await;
    assert_eq!(result, final_state(true, 4, &[]));
}

/// Rules must judge every reply, so that none excuses their failure.
#[tokio::test]
async fn a_bot_whose_replies_crash_the_rules_is_not_suspended() {
    let cup = Cup { kind: FaultKind::Rules, ..Cup::new("", 4, 3).await };
    assert_eq!(cup.play(|_, bots| bots.contains(&1)).await, final_state(false, 4, &[]));
    let aside = lots::aside(&cup.database.pool, cup.tournament.id).await.unwrap();
    assert_eq!(aside.len(), 6, "both matches of each pair with the bot");
}

/// Attempts at a match of each pair of bots on each worker: the failed attempts, then the
/// successful ones. An attempt fails if `fails(worker, first_bot, second_bot)` is true.
fn all_attempts(
    bots: i32,
    workers: i32,
    fails: impl Fn(i32, i32, i32) -> bool,
) -> (Vec<MatchAttempt>, Vec<MatchAttempt>) {
    let mut faults = Vec::new();
    let mut successes = Vec::new();
    let mut number = 0;
    for first in 0..bots {
        for second in first + 1..bots {
            number += 1;
            for worker in 0..workers {
                let seats = Seats(vec![Entrant(first), Entrant(second)]);
                let worker = WorkerId(worker);
                let attempt = MatchAttempt { worker, number: MatchNumber(number), seats };
                let failed = fails(worker.0, first, second);
                if failed { faults.push(attempt) } else { successes.push(attempt) }
            }
        }
    }
    (faults, successes)
}

/// The bots to which the faults of [`all_attempts`] are attributed.
fn attributed(bots: i32, workers: i32, fails: impl Fn(i32, i32, i32) -> bool) -> Vec<i32> {
    let (faults, successes) = all_attempts(bots, workers, fails);
    attribute_faults(&faults, &successes).into_iter().map(|suspect| suspect.entrant.0).collect()
}

#[test]
fn faults_on_all_workers_are_attributed_to_the_bot() {
    for workers in 2..4 {
        for bots in 3..8 {
            assert_eq!(
                attributed(bots, workers, |_, first, _| first == 0),
                [0],
                "{bots}, {workers}"
            );
        }
    }
    assert_eq!(attributed(5, 1, |_, first, _| first == 0), [0], "with one worker");
}

#[test]
fn faults_on_all_workers_are_attributed_to_two_bots() {
    for bots in 4..8 {
        assert_eq!(attributed(bots, 3, |_, first, _| first < 2), [0, 1], "{bots}");
    }
}

#[test]
fn faults_of_a_broken_worker_are_attributed_to_no_bot() {
    for workers in 1..4 {
        for broken in 1..=workers {
            assert_eq!(attributed(6, workers, |worker, _, _| worker < broken), [0; 0]);
        }
    }
    // Half of the attempts fail, whatever the bots are.
    assert_eq!(attributed(6, 2, |_, first, second| (first + second) % 2 == 0), [0; 0]);
}

#[test]
fn faults_on_few_workers_are_not_attributed_to_the_bot() {
    assert_eq!(attributed(6, 5, |worker, first, _| worker < 2 && first == 0), [0; 0]);
    assert_eq!(attributed(6, 3, |worker, first, _| worker < 2 && first == 0), [0]);
}

/// If there are only two bots, all their faults are in the same matches.
#[test]
fn faults_of_the_only_pair_are_attributed_to_no_bot() {
    assert_eq!(attributed(2, 3, |_, _, _| true), [0; 0]);
}

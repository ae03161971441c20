//! Faults that occur with one bot suspend it and delay no edition; faults that occur on one worker
//! suspend no bot.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use std::cell::Cell;

use arbiter_coordinator::bot_suspension::fault_attribution::attribute_faults;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::faults::Attempted;
use arbiter_coordinator::db::matches::Seats;
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::db::{audit_log, bots, editions, lots, matches};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{Failure, Leased, Queue, ReportStatus};
use arbiter_coordinator::tournament::{
    EditionOpener, IfRunning, OpenRequest, TournamentFile, edition, lifecycle,
};
use arbiter_games::Games;
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{EditionId, MatchNumber, WorkerId};
use arbiter_ranking::Entrant;
use support::test_clock::AtTime as _;
use support::{Database, START, report};
use time::{Duration, OffsetDateTime};

thread_local! {
    /// The time of a test's clock.
    static NOW: Cell<OffsetDateTime> = const { Cell::new(START) };
}

fn now() -> OffsetDateTime {
    NOW.get()
}

/// A running tournament.
struct Cup {
    database: Database,
    queue: Queue,
    tournament: Tournament,
    workers: Vec<WorkerId>,
}

/// The result of a tournament.
#[derive(Debug, PartialEq, Eq)]
struct End {
    /// Whether its last edition is complete.
    complete: bool,
    /// The number of bots in that edition.
    bots: usize,
    /// The suspended bots.
    stood_down: Vec<String>,
}

impl Cup {
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
        edition::open(&queue, OpenRequest::new(tournament.id, IfRunning::Refuse), START)
            .await
            .unwrap();
        let mut named = Vec::new();
        for worker in 0..workers {
            named.push(database.worker(&format!("worker-{worker}")).await);
        }
        Self { database, queue, tournament, workers: named }
    }

    /// The bots of a lot.
    async fn bots(&self, edition: EditionId, lot: &Leased) -> Vec<i32> {
        let entrants = editions::entrants(&self.database.pool, edition).await.unwrap();
        let matches =
            matches::range(&self.database.pool, edition, lot.first_match, lot.count).await;
        let seats = matches.unwrap().into_iter().flat_map(|planned| planned.seats.0);
        let bot = |entrant: Entrant| entrants[usize::try_from(entrant.0).unwrap()].bot.0 - 1;
        seats.map(bot).collect()
    }

    /// Plays all matches. An attempt fails if `fails` is true for the number of its worker and one
    /// of its bots.
    async fn play(&self, fails: impl Fn(usize, &[i32]) -> bool) -> End {
        let upkeep = Maintenance::new(self.queue.clone(), Clock::given(now));
        let opener = EditionOpener::new(self.queue.clone(), Clock::given(now));
        let mut stood_down = Vec::new();
        for minute in 0..60_usize {
            NOW.set(START + Duration::minutes(i64::try_from(minute).unwrap()));
            let running = editions::playing(&self.database.pool, self.tournament.id).await.unwrap();
            let Some(running) = running else { break };
            for turn in 0..self.workers.len() {
                let index = (minute + turn) % self.workers.len();
                self.attempt(running.id, index, &fails).await;
            }
            let round = upkeep.round().await.unwrap();
            stood_down.extend(round.suspended.into_iter().map(|bot| bot.name));
            opener.open_all_due().await.unwrap();
        }
        let last = editions::of_tournament(&self.database.pool, self.tournament.id).await.unwrap();
        let last = last.into_iter().max_by_key(|edition| edition.number).unwrap();
        let entrants = editions::entrants(&self.database.pool, last.id).await.unwrap();
        let complete = last.state == editions::EditionState::Complete;
        End { complete, bots: entrants.len(), stood_down }
    }

    /// A worker plays some lots, or fails.
    async fn attempt(
        &self,
        edition: EditionId,
        index: usize,
        fails: impl Fn(usize, &[i32]) -> bool,
    ) {
        let worker = self.workers[index];
        let lots = self.queue.lease_to_at(edition, &[Some(worker); 2], now()).await.unwrap();
        for lot in lots {
            if fails(index, &self.bots(edition, &lot).await) {
                let lease = lot.lease;
                let reason = "the program is busy".to_owned();
                let failure = Failure { lease, by: Some(worker), kind: FaultKind::System, reason };
                assert_eq!(self.queue.fail_at(&[failure], now()).await.unwrap().len(), 1);
            } else {
                let mut report = report(&lot, worker);
                report.at = now();
                let fates = support::report_all(&self.queue, &[report]).await;
                assert_eq!(fates, [ReportStatus::Accepted]);
            }
        }
    }
}

fn end(complete: bool, bots: usize, stood_down: &[&str]) -> End {
    End { complete, bots, stood_down: stood_down.iter().map(ToString::to_string).collect() }
}

#[tokio::test]
async fn a_bot_with_faults_everywhere_delays_no_edition() {
    for (rules, bots, workers) in [("", 3, 2), ("", 4, 3), ("", 5, 1), ("rerun = \"manual\"", 4, 2)]
    {
        let cup = Cup::new(rules, bots, workers).await;
        let told = format!("{rules}, {bots} bots, {workers} workers");
        let ended = cup.play(|_, bots| bots.contains(&1)).await;
        let left = usize::try_from(bots - 1).unwrap();
        assert_eq!(ended, end(true, left, &["bot-1"]), "{told}");
        let pool = &cup.database.pool;
        let bot = bots::find(pool, cup.tournament.id, "bot-1").await.unwrap().unwrap();
        let reason: String =
            sqlx::query_scalar("SELECT stood_down_reason FROM bots WHERE name = 'bot-1'")
                .fetch_one(pool)
                .await
                .unwrap();
        assert!(reason.contains("attempts at"), "{reason}");
        assert!(reason.contains("of its matches failed, on "), "{reason}");
        let noted = audit_log::latest(pool).await.unwrap();
        assert!(
            noted
                .iter()
                .any(|change| change.action == "stand down" && change.subject == "cup bot-1")
        );
        // An organiser can let it play again; it is not stood down for the same once more.
        assert!(bots::reinstate(pool, bot.id).await.unwrap());
    }
}

#[tokio::test]
async fn two_such_bots_delay_no_edition() {
    let cup = Cup::new("", 6, 3).await;
    let mut ended = cup.play(|_, bots| bots.contains(&1) || bots.contains(&4)).await;
    ended.stood_down.sort_unstable();
    assert_eq!(ended, end(true, 4, &["bot-1", "bot-4"]));
}

#[tokio::test]
async fn a_broken_worker_suspends_no_bot() {
    let cup = Cup::new("", 4, 3).await;
    assert_eq!(cup.play(|worker, _| worker == 0).await, end(true, 4, &[]));
    // Alone it plays nothing, and that is the worker's affair.
    let cup = Cup::new("", 4, 1).await;
    assert_eq!(cup.play(|_, _| true).await, end(false, 4, &[]));
    let editions = editions::of_tournament(&cup.database.pool, cup.tournament.id).await.unwrap();
    assert!(!lots::aside(&cup.database.pool, editions[0].id).await.unwrap().is_empty());
    // Two of them at once.
    let cup = Cup::new("", 4, 3).await;
    assert_eq!(cup.play(|worker, _| worker < 2).await.stood_down, [""; 0]);
}

/// A bot fails on one worker only.
#[tokio::test]
async fn workers_that_play_a_bot_well_outweigh_one_that_does_not() {
    let cup = Cup::new("", 4, 4).await;
    let ended = cup.play(|worker, bots| worker == 0 && bots.contains(&2)).await;
    assert_eq!(ended, end(true, 4, &[]));
}

/// Matches between each two of some bots on a worker: those that fail, and those that succeed.
fn everywhere(
    bots: i32,
    workers: i32,
    fails: impl Fn(i32, i32, i32) -> bool,
) -> (Vec<Attempted>, Vec<Attempted>) {
    let mut faults = Vec::new();
    let mut played = Vec::new();
    let mut number = 0;
    for one in 0..bots {
        for other in one + 1..bots {
            number += 1;
            for worker in 0..workers {
                let seats = Seats(vec![Entrant(one), Entrant(other)]);
                let worker = WorkerId(worker);
                let attempt = Attempted { worker, number: MatchNumber(number), seats };
                let failed = fails(worker.0, one, other);
                if failed { faults.push(attempt) } else { played.push(attempt) }
            }
        }
    }
    (faults, played)
}

fn blamed(bots: i32, workers: i32, fails: impl Fn(i32, i32, i32) -> bool) -> Vec<i32> {
    let (faults, played) = everywhere(bots, workers, fails);
    attribute_faults(&faults, &played).into_iter().map(|blamed| blamed.entrant.0).collect()
}

#[test]
fn faults_on_all_workers_are_attributed_to_the_bot() {
    for workers in 2..4 {
        for bots in 3..8 {
            assert_eq!(blamed(bots, workers, |_, one, _| one == 0), [0], "{bots}, {workers}");
        }
    }
    assert_eq!(blamed(5, 1, |_, one, _| one == 0), [0], "where there is one worker");
}

#[test]
fn faults_are_attributed_to_both_of_two_such_bots() {
    for bots in 4..8 {
        assert_eq!(blamed(bots, 3, |_, one, _| one < 2), [0, 1], "{bots}");
    }
}

#[test]
fn faults_of_a_broken_worker_are_attributed_to_no_bot() {
    for workers in 1..4 {
        for broken in 1..=workers {
            assert_eq!(blamed(6, workers, |worker, _, _| worker < broken), [0; 0]);
        }
    }
    // One that fails now and then, and with one of the bots by chance more often.
    assert_eq!(blamed(6, 2, |_, one, other| (one + other) % 2 == 0), [0; 0]);
}

#[test]
fn workers_that_play_a_bot_well_clear_it() {
    assert_eq!(blamed(6, 5, |worker, one, _| worker < 2 && one == 0), [0; 0]);
    assert_eq!(blamed(6, 3, |worker, one, _| worker < 2 && one == 0), [0]);
}

/// Two bots that only meet each other cannot be distinguished.
#[test]
fn faults_of_the_only_pair_are_attributed_to_no_bot() {
    assert_eq!(blamed(2, 3, |_, _, _| true), [0; 0]);
}

//! Audits of workers: only a worker whose results differ from the others' is suspended. Results of
//! replaced editions are audited, too. A shadow match goes to a worker with another token.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::match_audits::{self, AuditKind, Chosen};
use arbiter_coordinator::db::results::MatchResult;
use arbiter_coordinator::db::{editions, shadows, worker_stats, workers};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{Dispatcher, Queue, Report, ReportStatus, Task};
use arbiter_games::gomoku;
use arbiter_proto::ids::{EditionId, MatchNumber, WorkerId};
use arbiter_ranking::Entrant;
use grpc_client::{PATIENCE, Server};
use support::test_clock::set_time;
use support::{Database, START, duels, report};
use time::OffsetDateTime;
use tokio::task::JoinSet;

/// Matches of a tournament: enough to detect a worker that always lies.
const MATCHES: i64 = 900;

/// The scores that a worker reports for a match that the first bot won or lost.
type Lie = fn(bots: [Entrant; 2], first_won: bool) -> bool;

fn opposite(_: [Entrant; 2], first_won: bool) -> bool {
    !first_won
}

/// Bot 3 wins in either seat.
fn favour(bots: [Entrant; 2], first_won: bool) -> bool {
    match bots {
        [Entrant(3), _] => true,
        [_, Entrant(3)] => false,
        _ => first_won,
    }
}

/// Whether the first bot wins: pseudo-random, but more often for lower numbers.
fn first_wins(number: MatchNumber, [first, second]: [Entrant; 2]) -> bool {
    let mixed = (number.0 + 1).cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let drawn = (mixed.rotate_left(17).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % 100;
    i32::try_from(drawn).unwrap() < 50 + 12 * (second.0 - first.0)
}

fn worker_result(number: MatchNumber, lie: Option<Lie>) -> MatchResult {
    let seats = duels(number.0 + 1).last().unwrap().seats.0;
    let seats = [seats[0], seats[1]];
    let honest = first_wins(number, seats);
    let won = lie.map_or(honest, |lie| lie(seats, honest));
    MatchResult {
        number,
        wall_ms: 5,
        scores: if won { vec![2, 0] } else { vec![0, 2] },
        transcript: [7; 32],
        forfeits: Vec::new(),
        bad_answers: Vec::new(),
    }
}

/// Plays all matches by three workers in turn. The first one reports false results.
async fn play(server: &Server, lie: Lie) -> BTreeMap<&'static str, WorkerId> {
    let database = &server.database;
    let mut known = BTreeMap::new();
    for name in ["liar", "ann", "ben"] {
        known.insert(name, database.worker(name).await);
    }
    database.running(MATCHES, 2).await;
    // Nothing is recounted, and nothing played twice: the results alone speak.
    let off = r#"UPDATE tournaments
        SET settings = settings || '{"audit": {"replay": "0%", "shadow": "0%"}}'"#;
    sqlx::query(off).execute(&database.pool).await.unwrap();
    let queue = database.queue();
    let (dispatcher, allocator) = Dispatcher::new(queue.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    let turns = ["liar", "ann", "ben", "ben", "liar", "ann", "ann", "ben", "liar"];
    for name in turns.into_iter().cycle().take(usize::try_from(MATCHES / 2).unwrap()) {
        let worker = known[name];
        let (task, _) = dispatcher.next_for(Some(worker)).await.unwrap();
        let Task::Lot(work) = task else { panic!("nothing is tried") };
        let lie = (name == "liar").then_some(lie);
        let mut report = report(&work.lot, worker);
        for result in &mut report.results {
            *result = worker_result(result.number, lie);
        }
        store(&queue, report).await;
    }
    known
}

async fn store(queue: &Queue, report: Report) {
    assert_eq!(support::report_all(queue, &[report]).await, [ReportStatus::Accepted]);
}

/// Waits until a statement returns this number.
async fn until(database: &Database, statement: &'static str, number: i64) {
    let reached = async {
        while database.number(statement).await != number {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, reached).await;
    assert!(waited.is_ok(), "{statement}: {}", database.number(statement).await);
}

#[tokio::test]
async fn a_lying_worker_is_suspended_and_honest_ones_are_not() {
    for lie in [opposite as Lie, favour] {
        let server = Server::start().await;
        let known = play(&server, lie).await;
        let database = &server.database;
        until(database, "SELECT count(*) FROM residual_checks", 1).await;
        until(database, "SELECT count(*) FROM suspensions", 1).await;
        let suspended: i32 = sqlx::query_scalar("SELECT worker FROM suspensions")
            .fetch_one(&database.pool)
            .await
            .unwrap();
        assert_eq!(WorkerId(suspended), known["liar"]);
        let improbable = "
            SELECT count(*) FROM worker_residuals WHERE p < 0.001 AND NOT is_ambiguous";
        assert_eq!(database.number(improbable).await, 1);
        assert_eq!(database.number("SELECT count(*) FROM worker_residuals").await, 3);
        server.stop().await;
    }
}

/// Later editions copy the results of a replaced edition, which never counts them itself. They must
/// be audited all the same.
#[tokio::test]
async fn results_of_a_replaced_edition_are_chosen_for_audits() {
    let database = Database::new().await;
    let edition = database.running(20, 1).await;
    let queue = database.queue();
    let worker = database.worker("late").await;
    let (dispatcher, allocator) = Dispatcher::new(queue.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    let mut reports = Vec::new();
    for _ in 0..20 {
        let (task, _) = dispatcher.next_for(Some(worker)).await.unwrap();
        reports.push(report(&task.into_work().unwrap().lot, worker));
    }
    let late = reports.split_off(10);
    for report in reports {
        store(&queue, report).await;
    }
    // What is leased when an edition is replaced is played to its end.
    let replaced = "UPDATE editions SET state = 'cancelled', ended_at = $2 WHERE id = $1";
    let replaced = sqlx::query(replaced).bind(edition.0).bind(START);
    replaced.execute(&database.pool).await.unwrap();
    for report in late {
        store(&queue, report).await;
    }
    Maintenance::new(queue, Clock::given(|| START)).round().await.unwrap();
    let left = "SELECT count(*) FROM lots WHERE state = 'reported'";
    assert_eq!(database.number(left).await, 0);
    // Matches 0, 7 and 14 had a forfeit: those are always recounted.
    let recounted = "
        SELECT count(*) FROM match_audits WHERE kind = 'recount' AND number IN (0, 7, 14)";
    assert_eq!(database.number(recounted).await, 3);
}

/// Comparing all results of an edition takes processor time from matches.
#[tokio::test]
async fn workers_are_compared_when_idle_or_after_an_interval() {
    let database = Database::new().await;
    let complete = database.running(4, 1).await;
    let other = database.tournament("other", gomoku::game()).await;
    let played = editions::create(&database.pool, other, 1, false, START).await.unwrap();
    let begin = "UPDATE editions SET state = 'running' WHERE id = $1";
    sqlx::query(begin).bind(played.0).execute(&database.pool).await.unwrap();
    let end = async |edition: EditionId, state: &str| {
        let end = "UPDATE editions SET state = $2::edition_state, ended_at = $3 WHERE id = $1";
        let end = sqlx::query(end).bind(edition.0).bind(state).bind(START);
        end.execute(&database.pool).await.unwrap();
    };
    let compared = async |waited: OffsetDateTime| {
        worker_stats::unchecked(&database.pool, waited).await.unwrap()
    };
    end(complete, "complete").await;
    assert_eq!(compared(START).await, None);
    assert_eq!(compared(START + Duration::from_secs(1)).await, Some(complete));
    end(played, "cancelled").await;
    assert_eq!(compared(START).await, Some(complete));
}

async fn claimed(database: &Database, worker: WorkerId) -> usize {
    set_time(&database.pool, START).await;
    shadows::claim(&database.pool, worker, 9, time::Duration::MINUTE).await.unwrap().len()
}

#[tokio::test]
async fn an_audit_goes_to_a_worker_with_another_token_if_there_is_one() {
    let database = Database::new().await;
    let edition: EditionId = database.running(4, 1).await;
    let token = database.worker_token("eve").await;
    let mut twins = Vec::new();
    for name in ["eve", "twin"] {
        let greeted = workers::greet(&database.pool, token, name, "A", "test", START).await;
        twins.push(greeted.unwrap().unwrap());
        workers::connect(&database.pool, twins[twins.len() - 1], 1, START).await.unwrap();
    }
    let chosen = |number, worker| Chosen {
        number: MatchNumber(number),
        kind: AuditKind::Shadow,
        worker,
        reported_at: START,
    };
    let add = async |number| {
        match_audits::add(&database.pool, edition, &[chosen(number, twins[0])]).await.unwrap();
    };
    add(0).await;
    assert_eq!(claimed(&database, twins[0]).await, 0, "it played the match itself");
    assert_eq!(claimed(&database, twins[1]).await, 1, "no other token is there");
    let ann = database.worker("ann").await;
    let session = workers::connect(&database.pool, ann, 1, START).await.unwrap();
    add(1).await;
    assert_eq!(claimed(&database, twins[1]).await, 0);
    assert_eq!(claimed(&database, ann).await, 1);
    add(2).await;
    workers::disconnect(&database.pool, ann, session).await.unwrap();
    assert_eq!(claimed(&database, twins[1]).await, 1);
}

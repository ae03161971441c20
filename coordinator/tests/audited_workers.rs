//! Audits of workers. A worker is suspended only if its results differ from those of other workers.
//! Results of replaced editions are audited, too. A worker with another token plays a shadow match.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::match_audits::{self, AuditKind, SelectedMatch};
use arbiter_coordinator::db::results::MatchResult;
use arbiter_coordinator::db::{editions, shadows, worker_stats, workers};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{Dispatcher, Queue, Report, ReportStatus, Task};
use arbiter_games::{RULES_VERSION, gomoku};
use arbiter_proto::ids::{EditionId, MatchNumber, WorkerId};
use arbiter_ranking::Entrant;
use grpc_client::{Server, TIMEOUT};
use support::test_clock::set_time;
use support::{Database, START, duels, report};
use time::OffsetDateTime;
use tokio::task::JoinSet;

/// Number of matches of the tournament: enough to detect a worker that always lies.
const MATCHES: i64 = 900;

/// Returns whether a lying worker reports a win of the first bot. `first_won` is the true result.
type Lie = fn(bots: [Entrant; 2], first_won: bool) -> bool;

fn opposite(_: [Entrant; 2], first_won: bool) -> bool {
    !first_won
}

/// The fourth bot always wins.
fn favour(bots: [Entrant; 2], first_won: bool) -> bool {
    match bots {
        [Entrant(4), _] => true,
        [_, Entrant(4)] => false,
        _ => first_won,
    }
}

/// Whether the first bot wins. The result is pseudo-random; bots with lower numbers win more often.
fn first_wins(number: MatchNumber, [first, second]: [Entrant; 2]) -> bool {
    let hash = (number.0 + 1).cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let percent = (hash.rotate_left(17).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % 100;
    i32::try_from(percent).unwrap() < 50 + 12 * (second.0 - first.0)
}

fn worker_result(number: MatchNumber, lie: Option<Lie>) -> MatchResult {
    let seats = duels(number.0 + 1).last().unwrap().seats.0;
    let bots = [seats[0], seats[1]];
    let true_result = first_wins(number, bots);
    let first_won = lie.map_or(true_result, |lie| lie(bots, true_result));
    MatchResult {
        number,
        wall_ms: 5,
        scores: if first_won { vec![2, 0] } else { vec![0, 2] },
        transcript: [7; 32],
        forfeits: Vec::new(),
        bad_answers: Vec::new(),
    }
}

/// Lets three workers play all matches in turn. The worker "liar" reports false results. Returns
/// the workers by name.
async fn play(server: &Server, lie: Lie) -> BTreeMap<&'static str, WorkerId> {
    let database = &server.database;
    let mut workers = BTreeMap::new();
    for name in ["liar", "ann", "ben"] {
        workers.insert(name, database.worker(name).await);
    }
    database.running_edition(MATCHES, 2).await;
    // Without recounts and shadow matches, only the comparison of results can detect the liar.
    let statement = r#"UPDATE tournaments
        SET settings = settings || '{"audit": {"replay": "0%", "shadow": "0%"}}'"#;
    sqlx::query(statement).execute(&database.pool).await.unwrap();
    let queue = database.queue();
    let (dispatcher, allocator) = Dispatcher::new(queue.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    let turns = ["liar", "ann", "ben", "ben", "liar", "ann", "ann", "ben", "liar"];
    for name in turns.into_iter().cycle().take(usize::try_from(MATCHES / 2).unwrap()) {
        let worker = workers[name];
        let (task, _) = dispatcher.next_for(Some(worker)).await.unwrap();
        let Task::Lot(work) = task else { panic!("expected a lot") };
        let lie = (name == "liar").then_some(lie);
        let mut report = report(&work.lot, worker);
        for result in &mut report.results {
            *result = worker_result(result.number, lie);
        }
        store(&queue, report).await;
    }
    workers
}

async fn store(queue: &Queue, report: Report) {
    assert_eq!(support::report_all(queue, &[report]).await, [ReportStatus::Accepted]);
}

/// Waits until a statement returns this number.
async fn wait_for_number(database: &Database, statement: &'static str, number: i64) {
    let poll = async {
        while database.number(statement).await != number {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let result = tokio::time::timeout(TIMEOUT, poll).await;
    assert!(result.is_ok(), "timeout: {statement} returns {}", database.number(statement).await);
}

#[tokio::test]
async fn a_lying_worker_is_suspended_and_honest_ones_are_not() {
    for lie in [opposite as Lie, favour] {
        let server = Server::start().await;
        let workers = play(&server, lie).await;
        let database = &server.database;
        wait_for_number(database, "SELECT count(*) FROM residual_checks", 1).await;
        wait_for_number(database, "SELECT count(*) FROM suspensions", 1).await;
        let suspended: i32 = sqlx::query_scalar("SELECT worker FROM suspensions")
            .fetch_one(&database.pool)
            .await
            .unwrap();
        assert_eq!(WorkerId(suspended), workers["liar"]);
        let improbable = "
            SELECT count(*) FROM worker_residuals WHERE p < 0.001 AND NOT is_ambiguous";
        assert_eq!(database.number(improbable).await, 1);
        assert_eq!(database.number("SELECT count(*) FROM worker_residuals").await, 3);
        server.stop().await;
    }
}

/// A replaced edition does not count late results, but later editions may share their matches. So
/// they must be audited, too.
#[tokio::test]
async fn results_of_a_replaced_edition_are_chosen_for_audits() {
    let database = Database::new().await;
    let edition = database.running_edition(20, 1).await;
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
    let late_reports = reports.split_off(10);
    for report in reports {
        store(&queue, report).await;
    }
    // Workers still play the lots that are leased when an edition is replaced.
    let statement = "UPDATE editions SET state = 'cancelled', ended_at = $2 WHERE id = $1";
    let query = sqlx::query(statement).bind(edition.0).bind(START);
    query.execute(&database.pool).await.unwrap();
    for report in late_reports {
        store(&queue, report).await;
    }
    Maintenance::new(queue, Clock::fixed(|| START)).round().await.unwrap();
    let uncounted = "SELECT count(*) FROM lots WHERE state = 'reported'";
    assert_eq!(database.number(uncounted).await, 0);
    // Matches 0, 7 and 14 had a forfeit. Such matches are always recounted.
    let recounts = "
        SELECT count(*) FROM match_audits WHERE kind = 'recount' AND number IN (0, 7, 14)";
    assert_eq!(database.number(recounts).await, 3);
}

/// A comparison of all results of an edition takes processor time that matches could use.
#[tokio::test]
async fn workers_are_compared_when_idle_or_after_an_interval() {
    let database = Database::new().await;
    let first = database.running_edition(4, 1).await;
    let other = database.tournament("other", gomoku::game()).await;
    let second =
        editions::create(&database.pool, other, 1, false, RULES_VERSION, START).await.unwrap();
    let begin = "UPDATE editions SET state = 'running' WHERE id = $1";
    sqlx::query(begin).bind(second.0).execute(&database.pool).await.unwrap();
    let end = async |edition: EditionId, state: &str| {
        let statement =
            "UPDATE editions SET state = $2::edition_state, ended_at = $3 WHERE id = $1";
        let query = sqlx::query(statement).bind(edition.0).bind(state).bind(START);
        query.execute(&database.pool).await.unwrap();
    };
    let edition_to_compare = async |ended_before: OffsetDateTime| {
        worker_stats::unchecked(&database.pool, ended_before).await.unwrap()
    };
    end(first, "complete").await;
    assert_eq!(edition_to_compare(START).await, None);
    assert_eq!(edition_to_compare(START + Duration::from_secs(1)).await, Some(first));
    end(second, "cancelled").await;
    assert_eq!(edition_to_compare(START).await, Some(first));
}

/// Claims shadow matches for a worker. Returns their number.
async fn claim_shadows(database: &Database, worker: WorkerId) -> usize {
    set_time(&database.pool, START).await;
    shadows::claim(&database.pool, worker, 9, time::Duration::MINUTE).await.unwrap().len()
}

#[tokio::test]
async fn shadow_matches_prefer_a_worker_with_another_token() {
    let database = Database::new().await;
    let edition: EditionId = database.running_edition(4, 1).await;
    let token = database.worker_token("eve").await;
    let mut twins = Vec::new();
    for name in ["eve", "twin"] {
        let worker = workers::register(&database.pool, token, name, "A", "test", START).await;
        let worker = worker.unwrap().unwrap();
        workers::connect(&database.pool, worker, 1, START).await.unwrap();
        twins.push(worker);
    }
    let audit = |number, worker| SelectedMatch {
        number: MatchNumber(number),
        kind: AuditKind::Shadow,
        worker,
        reported_at: START,
    };
    let tournament = database.tournament_of(edition).await;
    let add = async |number| {
        match_audits::add(&database.pool, tournament, &[audit(number, twins[0])]).await.unwrap();
    };
    add(0).await;
    assert_eq!(claim_shadows(&database, twins[0]).await, 0, "the worker played the match");
    assert_eq!(
        claim_shadows(&database, twins[1]).await,
        1,
        "no worker with another token is connected"
    );
    let ann = database.worker("ann").await;
    let session = workers::connect(&database.pool, ann, 1, START).await.unwrap();
    add(1).await;
    assert_eq!(claim_shadows(&database, twins[1]).await, 0);
    assert_eq!(claim_shadows(&database, ann).await, 1);
    add(2).await;
    workers::disconnect(&database.pool, ann, session).await.unwrap();
    assert_eq!(claim_shadows(&database, twins[1]).await, 1);
}

//! Whether a hand-out and the queries of pages take longer in a large tournament: the same
//! operations with ten thousand and with ten million lots of one match, of which the first half was
//! played, and after a wholly new plan.
//!
//! `cargo bench -p arbiter-coordinator --bench large_queue -- [MATCHES]`
//!
//! Target: the ratio of the medians is at most 3.

use std::time::Instant;

use arbiter_coordinator::db::editions::{self, Edition, EditionScope};
use arbiter_coordinator::db::played_matches::{self, Cursor};
use arbiter_coordinator::db::{absences, matches};
use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_games::{Games, RULES_VERSION};
use arbiter_proto::ids::{MatchId, MatchNumber, TournamentId};
use sqlx::PgPool;

use support::measure::median;
use support::{NOW, name, play_at_once, running, settle, tournament_of};

mod support;

/// The number of bots of an edition.
const BOTS: i32 = 1000;
/// The number of matches of the small tournament.
const FEW: i64 = 10_000;
/// The number of matches of the large tournament, if no argument says otherwise.
const MANY: i64 = 10_000_000;
/// How often each operation is measured.
const TIMES: i64 = 50;
/// The number of lots of a hand-out.
const HAND_OUT: usize = 64;
/// The highest ratio. Pages of a large table are not all in memory, and its indexes have more
/// levels.
const TARGET: f64 = 3.0;

fn main() {
    let many = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(MANY);
    support::run(async |_, pool| {
        let small = measure(&pool, FEW).await;
        let large = measure(&pool, many).await;
        println!("medians with {FEW} and with {many} lots of one match:");
        for ((name, small), (_, large)) in small.into_iter().zip(large) {
            let ratio = large / small;
            let note = if ratio > TARGET { " MISSED" } else { "" };
            println!("{name:<32} {small:>7.2} ms {large:>7.2} ms, ratio {ratio:.2}{note}");
        }
    });
}

/// The median time of each operation in milliseconds, in a tournament with this many matches.
async fn measure(pool: &PgPool, count: i64) -> Vec<(&'static str, f64)> {
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    let edition = running(pool, &name(), BOTS, count, 1).await;
    play_at_once(pool, edition, count / 2).await;
    let tournament = tournament_of(pool, edition).await;
    while queue.count(tournament).await.expect("the results are counted") > 0 {}
    settle(pool).await;
    let edition = edition_of(pool, tournament).await;
    // Spread over the matches that were played.
    let numbers: Vec<_> = (0..TIMES).map(|step| MatchNumber(count / 2 / TIMES * step)).collect();
    let mut times = vec![("a hand-out of 64 lots", hand_outs(&queue, tournament).await)];
    times.extend(pages(pool, &edition, &numbers).await);
    queue.cancel(edition.id, NOW).await.expect("the edition is cancelled");
    let replaced = replace_all(pool, &edition).await;
    settle(pool).await;
    let mut milliseconds = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        let page = matches::planned(pool, replaced.scope(), MatchNumber(0), None, 100).await;
        milliseconds.push(start.elapsed().as_secs_f64() * 1000.0);
        assert_eq!(page.expect("the database answers").len(), 0);
    }
    times.push(("first page after a new plan", median(milliseconds)));
    times
}

async fn edition_of(pool: &PgPool, tournament: TournamentId) -> Edition {
    editions::of_tournament(pool, tournament).await.expect("the database answers").remove(0)
}

/// The median time of a hand-out.
async fn hand_outs(queue: &Queue, tournament: TournamentId) -> f64 {
    let mut milliseconds = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        let lots = queue.lease(tournament, HAND_OUT).await.expect("the database answers");
        milliseconds.push(start.elapsed().as_secs_f64() * 1000.0);
        assert_eq!(lots.len(), HAND_OUT);
    }
    median(milliseconds)
}

/// The median times of the queries of pages, from these matches on.
async fn pages(
    pool: &PgPool,
    edition: &Edition,
    numbers: &[MatchNumber],
) -> Vec<(&'static str, f64)> {
    let scope = edition.scope();
    let mut times = [const { Vec::new() }; 4];
    for number in numbers {
        let id = MatchId { tournament: edition.tournament, number: *number };
        for (kind, times) in times.iter_mut().enumerate() {
            let start = Instant::now();
            let rows = match kind {
                0 => matches::planned(pool, scope, *number, None, 100).await.map(|rows| rows.len()),
                1 => {
                    let cursor = Cursor::After(*number);
                    played_matches::page(pool, scope, cursor, false, played_matches::PAGE)
                        .await
                        .map(|rows| rows.len())
                }
                2 => played_matches::find(pool, id).await.map(|row| usize::from(row.is_some())),
                _ => played_matches::lot(pool, id).await.map(|row| usize::from(row.is_some())),
            };
            times.push(start.elapsed().as_secs_f64() * 1000.0);
            assert!(rows.expect("the database answers") > 0);
        }
    }
    let names = ["100 planned matches", "1000 played matches", "a match", "the lot of a match"];
    names.into_iter().zip(times.map(median)).collect()
}

/// An edition that has none of the matches of the one before.
async fn replace_all(pool: &PgPool, before: &Edition) -> Edition {
    let tournament = before.tournament;
    let id =
        editions::create(pool, tournament, 1, false, RULES_VERSION, NOW).await.expect("an edition");
    let scope = editions::scope(pool, id).await.expect("the edition exists");
    absences::begin_all(pool, scope, before.scope()).await.expect("all matches leave");
    let empty = EditionScope { from: scope.end, ..scope };
    assert!(editions::extend(pool, empty, 0, false).await.expect("it is stored"));
    edition_of(pool, tournament).await
}

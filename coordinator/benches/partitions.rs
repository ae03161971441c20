//! The cost of partitions for the queue, and the time to delete a tournament:
//! `cargo bench --bench partitions`.
//!
//! Lots are leased, reported and counted on tables without partitions, with partitions of a few
//! tournaments, and with partitions of many tournaments. The three kinds take turns, and the
//! medians of several turns are compared, because other programs use the machine.

use std::time::Instant;

use arbiter_coordinator::coordinator::Records;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::tournaments::{self, TournamentState};
use arbiter_coordinator::db::{self, deleted_tournaments, editions};
use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_coordinator::retention::Cleaner;
use arbiter_coordinator::tournament::file::TournamentFile;
use arbiter_coordinator::tournament::lifecycle;
use arbiter_games::{Games, gomoku};
use arbiter_proto::ids::WorkerId;
use sqlx::{AssertSqlSafe, PgPool};

use support::measure::{median, speed};
use support::play::play;
use support::{CONNECTIONS, NOW, name, running, tournament_of};

mod support;

/// The number of bots of an edition.
const BOTS: i32 = 100;
/// The numbers of matches in a lot and in an edition.
const EDITIONS: [(i32, i64); 2] = [(1, 20_000), (64, 200_000)];
/// The number of turns of each measurement.
const TURNS: usize = 5;

/// Replaces the partitioned tables with plain ones.
const FLAT: &str = "
    DROP TRIGGER tournaments_get_partitions ON tournaments;
    DROP TRIGGER tournaments_get_ids ON tournaments;
    DO $$ DECLARE whole text; BEGIN
        FOREACH whole IN ARRAY
            ARRAY['matches', 'absences', 'results', 'evidence', 'records', 'bot_state']
        LOOP
            EXECUTE format('CREATE TABLE flat (LIKE %I INCLUDING ALL)', whole);
            EXECUTE format('DROP TABLE %I', whole);
            EXECUTE format('ALTER TABLE flat RENAME TO %I', whole);
        END LOOP;
    END $$";

fn main() {
    support::run(async |postgres, pool| {
        let mut databases = Vec::new();
        for (kind, tournaments) in [("flat", 0), ("few", 0), ("many", 20)] {
            let statement = format!("CREATE DATABASE {kind}");
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&pool).await.expect("a database");
            let pool = db::connect(postgres.options(kind), CONNECTIONS)
                .await
                .expect("the database answers");
            db::migrate(&pool).await.expect("the migrations run");
            if kind == "flat" {
                sqlx::raw_sql(FLAT).execute(&pool).await.expect("the tables are replaced");
            }
            for _ in 0..tournaments {
                let file = TournamentFile::official(&name(), &gomoku::game());
                lifecycle::create(&mut pool.acquire().await.expect("a connection"), &file, NOW)
                    .await
                    .expect("a tournament");
            }
            let worker = support::worker(&pool).await;
            databases.push(Played { kind, pool, worker });
        }
        for (per_lot, matches) in EDITIONS {
            compare(&databases, per_lot, matches).await;
        }
        for Played { kind, pool, .. } in &databases[1..] {
            delete_newest(kind, pool).await;
        }
    });
}

/// A database with a kind of tables, and the worker that plays there.
struct Played {
    kind: &'static str,
    pool: PgPool,
    worker: WorkerId,
}

/// Plays editions in all databases in turn, and prints the cost of partitions.
async fn compare(databases: &[Played], per_lot: i32, matches: i64) {
    let mut speeds = vec![Vec::new(); databases.len()];
    for _ in 0..TURNS {
        for (database, speeds) in databases.iter().zip(&mut speeds) {
            speeds.push(turn(database, per_lot, matches).await);
        }
    }
    let flat = median(speeds[0].clone());
    for (Played { kind, .. }, speeds) in databases.iter().zip(speeds) {
        let speed = median(speeds);
        let ratio = speed / flat;
        println!("lots of {per_lot:>2}, {kind:<4} {speed:>9.0} matches/s, {ratio:.2} of flat");
    }
}

/// The speed of an edition from the first lease until all results are counted, in matches a second.
async fn turn(Played { pool, worker, .. }: &Played, per_lot: i32, matches: i64) -> f64 {
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    let edition = running(pool, &name(), BOTS, matches, per_lot).await;
    let tournament = tournament_of(pool, edition).await;
    let start = Instant::now();
    play(&queue, *worker, tournament, matches).await;
    while queue.count(tournament).await.expect("the results are counted") > 0 {}
    let speed = speed(matches, start);
    assert!(queue.complete(edition, NOW).await.expect("the database answers"));
    speed
}

/// Deletes the newest tournament, and prints how long that takes.
async fn delete_newest(kind: &str, pool: &PgPool) {
    let newest = tournaments::list(pool).await.expect("the database answers").swap_remove(0);
    let editions = editions::of_tournament(pool, newest.id).await.expect("the database answers");
    let matches: i64 = editions.iter().map(|edition| edition.matches).sum();
    tournaments::end(pool, newest.id, TournamentState::Closed, NOW)
        .await
        .expect("the tournament is closed");
    let start = Instant::now();
    let mut transaction = pool.begin().await.expect("a transaction");
    deleted_tournaments::add(&mut transaction, newest.id, NOW)
        .await
        .expect("the tournament is deleted");
    transaction.commit().await.expect("the deletion is committed");
    let delete_ms = start.elapsed().as_secs_f64() * 1000.0;
    Cleaner::new(pool.clone(), Records::default(), Clock::fixed(|| NOW))
        .round()
        .await
        .expect("the data are removed");
    let clean_up_ms = start.elapsed().as_secs_f64() * 1000.0;
    println!(
        "{kind}: a tournament of {matches} matches is deleted after {delete_ms:.1} ms, and its \
         data after {clean_up_ms:.0} ms"
    );
}

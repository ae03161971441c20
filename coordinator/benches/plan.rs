//! The speed of planning and storing editions, compared with a raw `COPY` of the same rows on the
//! same server in the same run, and the memory for planning.
//!
//! Target: at most 1.3 times the time of the raw copy, and no more memory for more matches.
//!
//! ```sh
//! cargo bench -p arbiter-coordinator --bench plan                   # all plans
//! cargo bench -p arbiter-coordinator --bench plan -- 10000          # those with this in their names
//! ```

use std::time::Instant;

use arbiter_coordinator::db::{bots, versions};
use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_coordinator::tournament::{
    IfRunning, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::Games;
use sqlx::{AssertSqlSafe, PgPool};
use tokio_stream::StreamExt as _;

use support::measure::{memory, reset_peak_memory};
use support::{NOW, settle};

mod support;

/// The size of a chunk to copy, in bytes.
const PIECE: usize = 256 * 1024;

/// A plan to measure: a name, the number of bots, and the tournament file without its name.
const EDITIONS: [(&str, i32, &str); 4] = [
    ("round robin, 1000 bots", 1000, "game = \"tricks\""),
    ("with files of bots", 1000, "game = \"tricks\"\nstate = \"tournament\""),
    ("foursomes, 4000 bots", 4000, "game = \"wojna\""),
    ("foursomes, 10000 bots", 10_000, "game = \"wojna\""),
];

fn main() {
    // Cargo adds options; other arguments choose plans.
    let chosen: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    support::run(async |_, pool| {
        // All editions are planned before the copies, so that the memory of copies does not count.
        let mut planned = Vec::new();
        for (number, (name, bots, file)) in (1..).zip(EDITIONS) {
            if !chosen.is_empty() && !chosen.iter().any(|word| name.contains(word.as_str())) {
                continue;
            }
            settle(&pool).await;
            planned.push((name, plan(&pool, number, bots, file).await));
        }
        for (name, planned) in planned {
            settle(&pool).await;
            let copy_seconds = copy_rows(&pool, planned.tournament).await;
            let Planned { matches, seconds, megabytes, .. } = planned;
            println!(
                "{name:<24} {matches:>9} matches: {seconds:>6.2} s planned, checked and started, \
                {:.2} times COPY ({copy_seconds:.2} s); {megabytes} MB of memory",
                seconds / copy_seconds,
            );
        }
    });
}

/// A planned edition.
struct Planned {
    tournament: i32,
    matches: i64,
    seconds: f64,
    /// The growth of this process's peak memory.
    megabytes: u64,
}

async fn plan(pool: &PgPool, number: i32, bots: i32, file: &str) -> Planned {
    let file = TournamentFile::parse(
        &Games::built_in(),
        &format!("name = \"cup-{number}\"\nseed = \"bench\"\n{file}"),
    );
    let file = file.expect("the file is valid");
    let tournament =
        lifecycle::create(&mut pool.acquire().await.expect("a connection"), &file, NOW)
            .await
            .expect("the tournament is created");
    versions::store_bundle(pool, &[0; 32], b"bundle").await.expect("the bundle is stored");
    let mut transaction = pool.begin().await.expect("a transaction");
    for bot in 0..bots {
        let name = format!("bot-{bot}");
        let bot = bots::create(&mut *transaction, tournament.id, None, &name, NOW).await;
        let version = versions::submit(&mut *transaction, bot.expect("a bot"), &[0; 32], NOW);
        version.await.expect("a version");
    }
    transaction.commit().await.expect("the versions are stored");
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    let before = reset_peak_memory("self");
    let start = Instant::now();
    let edition =
        open_edition::open(&queue, OpenRequest::new(tournament.id, IfRunning::Refuse), NOW).await;
    let edition = edition.expect("the edition is planned");
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = memory("self", "VmHWM:").saturating_sub(before);
    Planned { tournament: tournament.id.0, matches: edition.matches, seconds, megabytes }
}

/// Copies the rows of a tournament from memory into tables like those of plans. Returns the time in
/// seconds.
async fn copy_rows(pool: &PgPool, tournament: i32) -> f64 {
    let mut seconds = 0.0;
    for table in ["matches", "lots", "lot_order"] {
        let mut connection = pool.acquire().await.expect("a connection");
        let query = format!(
            "COPY (SELECT * FROM {table} WHERE tournament = {tournament}) TO STDOUT (FORMAT binary)"
        );
        let mut rows = Vec::new();
        let mut stream = connection.copy_out_raw(&query).await.expect("the rows are read");
        while let Some(row) = stream.next().await {
            rows.extend_from_slice(&row.expect("the rows are read"));
        }
        drop(stream);
        let create = format!("CREATE TABLE twin (LIKE {table} INCLUDING ALL)");
        sqlx::raw_sql(AssertSqlSafe(create))
            .execute(&mut *connection)
            .await
            .expect("the table is created");
        let start = Instant::now();
        let copy = connection.copy_in_raw("COPY twin FROM STDIN (FORMAT binary)").await;
        let mut copy = copy.expect("the copy begins");
        for piece in rows.chunks(PIECE) {
            copy.send(piece).await.expect("the rows are sent");
        }
        copy.finish().await.expect("the rows are copied");
        seconds += start.elapsed().as_secs_f64();
        sqlx::raw_sql("DROP TABLE twin")
            .execute(&mut *connection)
            .await
            .expect("the table is dropped");
    }
    seconds
}

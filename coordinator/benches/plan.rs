//! The speed of planning and storing editions, compared with a raw `COPY` of the same rows on the
//! same server in the same run, and the memory that it takes.
//!
//! Target: at least 0.7 of the raw copy, and no more memory for more matches.

use std::time::Instant;

use arbiter_coordinator::db::{self, bots, versions};
use arbiter_coordinator::postgres::{Durability, Postgres};
use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_coordinator::tournament::{IfRunning, OpenRequest, TournamentFile, edition, lifecycle};
use arbiter_games::Games;
use sqlx::{AssertSqlSafe, PgPool};
use time::OffsetDateTime;
use tokio_stream::StreamExt as _;

use support::measure::{forget_most_memory, memory};

mod support;

/// The size of a chunk to copy, in bytes.
const PIECE: usize = 256 * 1024;
/// The time of all events.
const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

/// A plan to measure: a name, the number of bots, and the tournament file without its name.
const EDITIONS: [(&str, i32, &str); 4] = [
    ("round robin, 1000 bots", 1000, "game = \"tricks\""),
    ("the same, files pass", 1000, "game = \"tricks\"\nstate = \"tournament\""),
    ("foursomes, 4000 bots", 4000, "game = \"wojna\""),
    ("foursomes, 10000 bots", 10_000, "game = \"wojna\""),
];

fn main() {
    let directory = tempfile::tempdir().expect("a directory for the data can be made");
    let postgres = Postgres::start(directory.path(), Durability::Synced).expect("Postgres runs");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let pool = db::connect(postgres.options("postgres"), 4).await.expect("it answers");
        db::migrate(&pool).await.expect("the tables are made");
        // All are planned before any is copied, so that what copies need is not taken for ours.
        let mut planned = Vec::new();
        for (number, (what, bots, file)) in (1..).zip(EDITIONS) {
            planned.push((what, plan(&pool, number, bots, file).await));
        }
        for (what, planned) in planned {
            let copied = raw(&pool, planned.edition).await;
            let Planned { matches, seconds, megabytes, .. } = planned;
            println!(
                "{what:<24} {matches:>9} matches: {seconds:>6.2} s planned, checked and started, \
                {:.2} of the speed of COPY ({copied:.2} s); {megabytes} MB of memory",
                copied / seconds,
            );
        }
    });
    drop(runtime);
    postgres.stop();
}

/// An edition that was planned.
struct Planned {
    edition: i32,
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
    let file = file.expect("it is a tournament file");
    let tournament =
        lifecycle::create(&mut pool.acquire().await.expect("a connection"), &file, NOW)
            .await
            .expect("it is made");
    versions::store_bundle(pool, &[0; 32], b"bundle").await.expect("it is stored");
    let mut transaction = pool.begin().await.expect("a transaction");
    for bot in 0..bots {
        let name = format!("bot-{bot}");
        let bot = bots::create(&mut *transaction, tournament.id, None, &name, NOW).await;
        let submitted = versions::submit(&mut *transaction, bot.expect("a bot"), &[0; 32], NOW);
        submitted.await.expect("a version");
    }
    transaction.commit().await.expect("they are stored");
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    let before = forget_most_memory("self");
    let begin = Instant::now();
    let edition =
        edition::open(&queue, OpenRequest::new(tournament.id, IfRunning::Refuse), NOW).await;
    let edition = edition.expect("it is planned");
    let seconds = begin.elapsed().as_secs_f64();
    let megabytes = memory("self", "VmHWM:").saturating_sub(before);
    Planned { edition: edition.id.0, matches: edition.matches, seconds, megabytes }
}

/// The seconds to copy the rows of an edition, ready in memory, into tables like those of plans.
async fn raw(pool: &PgPool, edition: i32) -> f64 {
    let mut seconds = 0.0;
    for table in ["matches", "lots", "lot_order"] {
        let mut connection = pool.acquire().await.expect("a connection");
        let rows = format!(
            "COPY (SELECT * FROM {table} WHERE edition = {edition}) TO STDOUT (FORMAT binary)"
        );
        let mut ready = Vec::new();
        let mut out = connection.copy_out_raw(&rows).await.expect("it is read");
        while let Some(row) = out.next().await {
            ready.extend_from_slice(&row.expect("it is read"));
        }
        drop(out);
        let twin = format!("CREATE TABLE twin (LIKE {table} INCLUDING ALL)");
        sqlx::raw_sql(AssertSqlSafe(twin)).execute(&mut *connection).await.expect("it is made");
        let begin = Instant::now();
        let to = connection.copy_in_raw("COPY twin FROM STDIN (FORMAT binary)").await;
        let mut to = to.expect("it begins");
        for piece in ready.chunks(PIECE) {
            to.send(piece).await.expect("it is sent");
        }
        to.finish().await.expect("they are copied");
        seconds += begin.elapsed().as_secs_f64();
        sqlx::raw_sql("DROP TABLE twin").execute(&mut *connection).await.expect("it is dropped");
    }
    seconds
}

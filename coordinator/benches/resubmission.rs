//! What a resubmission costs in a large tournament that was played to its end: the time until the
//! first match can be leased, rows and bytes written, memory, and the size of the database.
//!
//! `cargo bench -p arbiter-coordinator --bench resubmission -- [CASE] [RESUBMISSIONS]`
//! with `foursomes` (10 000 bots, 8.3 million tables), `pairs` (1000 bots, 999 000 matches) or
//! `small`, and the number of resubmissions one after another (10). Results are inserted by SQL
//! instead of being played, and counted as usual. The first resubmission is shown alone, then the
//! others together, then ten at once.
//!
//! Targets: at most 2 s until the first lease, and at most three rows for each changed match and
//! each bot.

use std::time::{Duration, Instant};

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::editions::{self, Edition};
use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_coordinator::tournament::{
    EditionOpener, IfRunning, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::Games;
use arbiter_proto::ids::TournamentId;
use sqlx::PgPool;

use support::measure::{memory, reset_peak_memory};
use support::{NOW, submit};

mod support;

/// A tournament to measure.
struct Case {
    name: &'static str,
    bots: i32,
    file: &'static str,
}

const CASES: [Case; 3] = [
    Case {
        name: "foursomes",
        bots: 10_000,
        file: "name = \"foursomes\"\ngame = \"wojna\"\nseed = \"bench\"\n\
               [submissions]\nwindow = \"0s\"",
    },
    Case {
        name: "pairs",
        bots: 1000,
        file: "name = \"pairs\"\ngame = \"tricks\"\nseed = \"bench\"\n[submissions]\n\
               window = \"0s\"\n[schedule]\nlegs = 2",
    },
    Case {
        name: "small",
        bots: 100,
        file: "name = \"small\"\ngame = \"tricks\"\nseed = \"bench\"\n\
               [submissions]\nwindow = \"0s\"",
    },
];

/// Plays all matches that are in the queue: random scores, and the lots reported.
const PLAY: [&str; 2] = [
    "INSERT INTO results (tournament, number, wall_ms, level, scores, transcript)
    SELECT m.tournament, m.number, 1000, 'A',
        ARRAY(SELECT hashint8(m.number * 64 + i) & 1023 FROM generate_series(1, l.score_len) AS i),
        sha256(int8send(m.number))
    FROM lots l JOIN matches m ON m.tournament = l.tournament
        AND m.number BETWEEN l.number AND l.number + l.count - 1
    WHERE l.tournament = $1 AND l.state IN ('pending', 'leased')",
    "UPDATE lots SET state = 'reported', attempt = greatest(attempt, 1), deadline = NULL,
        reported_at = now()
    WHERE tournament = $1 AND state IN ('pending', 'leased')",
];

/// Rows that the tables got, lost and changed.
const ROWS: &str = "
    SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables";

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let name = arguments.next().unwrap_or_else(|| "small".to_owned());
    let times = arguments.next().map_or(10, |times| times.parse().expect("a number"));
    let case = CASES.iter().find(|case| case.name == name).expect("foursomes, pairs or small");
    support::run(async |_, pool| measure(&pool, case, times).await);
}

async fn measure(pool: &PgPool, case: &Case, times: u32) {
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    let file = TournamentFile::parse(&Games::built_in(), case.file).expect("a tournament file");
    let mut connection = pool.acquire().await.expect("a connection");
    let tournament = lifecycle::create(&mut connection, &file, NOW).await.expect("a tournament").id;
    drop(connection);
    for bot in 0..case.bots {
        submit(pool, tournament, bot, 0).await;
    }
    let before = reset_peak_memory("self");
    let start = Instant::now();
    let request = OpenRequest::new(tournament, IfRunning::Refuse);
    let first = open_edition::open(&queue, request, NOW).await.expect("the edition opens");
    println!(
        "{}: {} bots, {} matches; planned in {:.1} s with {} MB",
        case.name,
        case.bots,
        first.matches,
        start.elapsed().as_secs_f64(),
        memory("self", "VmHWM:").saturating_sub(before)
    );
    play(&queue, &first).await;
    support::settle(pool).await;
    println!("played; the database has {} MB", megabytes(pool).await);
    resubmit(&queue, tournament, "one", &[case.bots / 2], 1).await;
    resubmit(&queue, tournament, "one after another", &[case.bots / 3], times).await;
    let ten: Vec<_> = (0..10).map(|number| case.bots / 20 * number + 1).collect();
    resubmit(&queue, tournament, "ten at once", &ten, 1).await;
}

/// Submits new versions of these bots, opens the edition and plays it, this many times. Prints the
/// means.
async fn resubmit(
    queue: &Queue,
    tournament: TournamentId,
    what: &str,
    changed: &[i32],
    times: u32,
) {
    let pool = queue.pool();
    let opener = EditionOpener::new(queue.clone(), Clock::fixed(|| NOW));
    let mut slowest = Duration::ZERO;
    let mut seconds = 0.0;
    let mut played = 0;
    let mut rows = 0;
    let mut wal = 0;
    let size = megabytes(pool).await;
    let mut peak = 0;
    for time in 1..=times {
        for bot in changed {
            submit(pool, tournament, *bot, time).await;
        }
        let rows_before = if times == 1 { rows_written(pool).await } else { 0 };
        let wal_before = wal_position(pool).await;
        let memory_before = reset_peak_memory("self");
        let start = Instant::now();
        let outcomes = opener.open_all_due().await.expect("the database answers");
        assert_eq!(outcomes.len(), 1, "one edition is due");
        let leased = queue.lease(tournament, 1).await.expect("the database answers");
        assert_eq!(leased.len(), 1, "a lot can be leased");
        slowest = slowest.max(start.elapsed());
        seconds += start.elapsed().as_secs_f64();
        peak = peak.max(memory("self", "VmHWM:").saturating_sub(memory_before));
        wal += wal_position(pool).await - wal_before;
        if times == 1 {
            rows = rows_written(pool).await - rows_before;
        }
        let edition = editions::of_tournament(pool, tournament).await.expect("editions").remove(0);
        played += play(queue, &edition).await;
    }
    let each = |sum: i64| sum / i64::from(times);
    println!(
        "{what}: {:.2} s until the first lease (slowest {:.2} s), {} matches to play, {} kB of WAL \
         written, {peak} MB of memory, the database has {} MB more for each",
        seconds / f64::from(times),
        slowest.as_secs_f64(),
        each(played),
        each(wal) / 1000,
        each(megabytes(pool).await - size)
    );
    if times == 1 {
        println!("{what}: {rows} rows written");
    }
}

/// Plays an edition to its end. Returns the number of matches that were played.
async fn play(queue: &Queue, edition: &Edition) -> i64 {
    let pool = queue.pool();
    let mut transaction = pool.begin().await.expect("a transaction");
    sqlx::raw_sql("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
        .execute(&mut *transaction)
        .await
        .expect("the limits are lifted");
    let mut played = 0;
    for (place, statement) in PLAY.into_iter().enumerate() {
        let query = sqlx::query(statement).bind(edition.tournament);
        let result = query.execute(&mut *transaction).await.expect("the matches are played");
        if place == 0 {
            played = result.rows_affected().cast_signed();
        }
    }
    transaction.commit().await.expect("the results are stored");
    while queue.count(edition.tournament).await.expect("the results are counted") > 0 {}
    assert!(queue.complete(edition.id, NOW).await.expect("the database answers"), "it is complete");
    played
}

/// The rows that were written until now.
async fn rows_written(pool: &PgPool) -> i64 {
    // A session reports its rows when it has been idle for ten seconds.
    tokio::time::sleep(Duration::from_secs(11)).await;
    let mut connection = pool.acquire().await.expect("a connection");
    sqlx::raw_sql("SELECT pg_stat_clear_snapshot()")
        .execute(&mut *connection)
        .await
        .expect("fresh");
    sqlx::query_scalar(ROWS).fetch_one(&mut *connection).await.expect("the rows")
}

/// The position in the WAL, in bytes.
async fn wal_position(pool: &PgPool) -> i64 {
    let statement = "SELECT (pg_current_wal_lsn() - '0/0')::bigint";
    sqlx::query_scalar(statement).fetch_one(pool).await.expect("the position")
}

async fn megabytes(pool: &PgPool) -> i64 {
    let statement = "SELECT pg_database_size(current_database()) / 1000000";
    sqlx::query_scalar(statement).fetch_one(pool).await.expect("the size")
}

//! Shared code of the coordinator's benchmarks: a new database with durable commits, editions to
//! play, simple operations to compare with, and measurements.

#![allow(dead_code, reason = "each benchmark uses a part")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::matches::{Match, Seats};
use arbiter_coordinator::db::results::{self, MatchResult};
use arbiter_coordinator::db::{self, bots, editions, tournaments, versions, workers};
use arbiter_coordinator::postgres::{Durability, Postgres};
use arbiter_coordinator::queue::{LeasePolicy, NewLot, Order, Queue};
use arbiter_coordinator::tournament::file::{Audit, Share, TournamentFile};
use arbiter_coordinator::tournament::lifecycle;
use arbiter_games::{Games, RULES_VERSION, gomoku};
use arbiter_proto::ids::{EditionId, LotNumber, MatchNumber, TournamentId, VersionId, WorkerId};
use arbiter_proto::level::Level;
use arbiter_ranking::Entrant;
use sqlx::{Connection as _, Executor as _, PgConnection, PgPool};
use time::OffsetDateTime;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

pub(crate) mod measure;
#[path = "../../tests/support/planning.rs"]
pub(crate) mod planning;
pub(crate) mod play;
pub(crate) mod server;

use measure::speed;
use planning::{Plan, Planning as _};

/// The time of all events.
pub(crate) const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
/// The number of connections to the database: the coordinator's default.
pub(crate) const CONNECTIONS: u32 = 16;
/// No audits, so that no match is played twice.
const UNAUDITED: Audit = Audit { replay: Share::percent(0), shadow: Share::percent(0) };
/// The number of WAL files to fill at the start, of 16 MiB each.
const WAL_FILES: usize = 256;
/// The number of rows of the raw copy.
const COPY_ROWS: i64 = 1_000_000;
/// The number of single-row inserts.
const INSERT_ROWS: i64 = 4_000;

/// Runs a benchmark on a new database with durable commits.
pub(crate) fn run(bench: impl AsyncFnOnce(&Postgres, PgPool)) {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let postgres = Postgres::start(directory.path(), Durability::Synced).expect("Postgres runs");
    let runtime = Runtime::new().expect("a runtime can be created");
    runtime.block_on(async {
        let options = postgres.options("postgres");
        let pool = db::connect(options, CONNECTIONS).await.expect("the database answers");
        db::migrate(&pool).await.expect("the migrations run");
        recycle_wal(&pool).await;
        bench(&postgres, pool).await;
    });
    drop(runtime);
    postgres.stop();
}

/// Brings the server into the state of a server that has run for a while, which recycles WAL files.
/// A new server sometimes pauses to fill the next file with zeros.
async fn recycle_wal(pool: &PgPool) {
    for _ in 0..WAL_FILES {
        let statement = "SELECT pg_logical_emit_message(false, 'bench', 'x'), pg_switch_wal()";
        sqlx::query(statement).execute(pool).await.expect("a WAL file ends");
    }
    settle(pool).await;
}

/// A worker with a new token.
pub(crate) async fn worker(pool: &PgPool) -> WorkerId {
    let token = access::create(pool, Role::Worker, "bench", NOW).await.expect("a token").0;
    let worker = workers::register(pool, token, "bench", "none", "bench", NOW).await;
    worker.expect("the database answers").expect("a free name")
}

/// Makes the server do the deferred work of earlier benchmarks, so that it does not slow down the
/// next one: vacuum tables, write dirty pages back and recycle WAL files.
pub(crate) async fn settle(pool: &PgPool) {
    for statement in ["VACUUM ANALYZE", "CHECKPOINT"] {
        sqlx::query(statement).execute(pool).await.expect("the server is idle");
    }
}

/// A new name for a tournament.
pub(crate) fn name() -> String {
    static NAMES: AtomicU32 = AtomicU32::new(0);
    format!("bench-{}", NAMES.fetch_add(1, Ordering::Relaxed))
}

/// A running edition of a new tournament with `bots` bots and `per_lot` matches in a lot.
pub(crate) async fn running(
    pool: &PgPool,
    name: &str,
    bots: i32,
    matches: i64,
    per_lot: i32,
) -> EditionId {
    running_audited(pool, name, UNAUDITED, bots, matches, per_lot).await
}

/// A running edition of which a share is audited.
pub(crate) async fn running_audited(
    pool: &PgPool,
    name: &str,
    audit: Audit,
    bots: i32,
    matches: i64,
    per_lot: i32,
) -> EditionId {
    let (edition, versions) = edition_audited(pool, name, audit, bots).await;
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    queue.plan(edition, plan(&versions, matches, per_lot)).await.expect("the plan is stored");
    assert!(queue.start(edition).await.expect("the plan is valid"));
    edition
}

/// Submits a version of the bot with this number, whose program has this number as well. The bot
/// enters if it is new.
pub(crate) async fn submit(pool: &PgPool, tournament: TournamentId, bot: i32, program: u32) {
    let name = format!("bot-{bot}");
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&program.to_be_bytes());
    versions::store_bundle(pool, &digest, b"bundle").await.expect("a bundle");
    let row = bots::find(pool, tournament, &name).await.expect("the database answers");
    let bot = match row {
        Some(bot) => bot.id,
        None => bots::create(pool, tournament, None, &name, NOW).await.expect("a bot"),
    };
    versions::submit(pool, bot, &digest, NOW).await.expect("a version");
    tournaments::mark_changed(pool, tournament, NOW).await.expect("the change is stored");
}

/// An edition of this many bots without a plan.
pub(crate) async fn edition(pool: &PgPool, name: &str, bots: i32) -> EditionId {
    edition_audited(pool, name, UNAUDITED, bots).await.0
}

/// The tournament of an edition.
pub(crate) async fn tournament_of(pool: &PgPool, edition: EditionId) -> TournamentId {
    editions::scope(pool, edition).await.expect("the edition exists").tournament
}

async fn edition_audited(
    pool: &PgPool,
    name: &str,
    audit: Audit,
    bots: i32,
) -> (EditionId, Vec<VersionId>) {
    let file = TournamentFile { audit, ..TournamentFile::official(name, &gomoku::game()) };
    let tournament =
        lifecycle::create(&mut pool.acquire().await.expect("a connection"), &file, NOW)
            .await
            .expect("a tournament")
            .id;
    let edition =
        editions::create(pool, tournament, 1, false, RULES_VERSION, NOW).await.expect("an edition");
    versions::store_bundle(pool, &[0; 32], b"bundle").await.expect("a bundle");
    let mut version_ids = Vec::new();
    let mut transaction = pool.begin().await.expect("a transaction");
    for bot in 0..bots {
        let name = format!("bot-{bot}");
        let bot = bots::create(&mut *transaction, tournament, None, &name, NOW).await;
        let version = versions::submit(&mut *transaction, bot.expect("a bot"), &[0; 32], NOW);
        version_ids.push(version.await.expect("a version"));
    }
    transaction.commit().await.expect("the versions are stored");
    editions::enter(pool, edition, &version_ids).await.expect("the versions enter");
    (edition, version_ids)
}

/// A plan with `per_lot` matches in a lot, in which all bots play about the same number of matches.
fn plan(
    versions: &[VersionId],
    matches: i64,
    per_lot: i32,
) -> Plan<impl Iterator<Item = Match>, impl Iterator<Item = NewLot>, impl Iterator<Item = Order>> {
    let bots = i64::try_from(versions.len()).expect("few bots");
    let seat = move |number: i64| {
        let place = usize::try_from(number % bots).expect("numbers are not negative");
        Entrant(versions[place].0)
    };
    let seats =
        move |number: i64| Seats(vec![seat(number), seat(number + 1 + number / bots % (bots - 1))]);
    let step = usize::try_from(per_lot).expect("a small number");
    Plan {
        matches: (0..matches).map(move |number| Match {
            number: MatchNumber(number),
            seed_key: number,
            board: None,
            seats: seats(number),
            carried: None,
            state_from: None,
            params: None,
        }),
        lots: (0..matches).step_by(step).map(move |first| NewLot {
            number: LotNumber(first),
            count: i32::try_from(i64::from(per_lot).min(matches - first)).expect("a small number"),
            expected_ms: 1000,
            score_len: 2,
            blockers: 0,
            has_dependents: false,
        }),
        order: std::iter::empty(),
        open_ended: false,
    }
}

/// The result of a match. It is the same from every worker.
pub(crate) fn result(number: MatchNumber) -> MatchResult {
    let wins = number.0 % 3;
    MatchResult {
        number,
        wall_ms: 1000,
        scores: vec![wins, 2 - wins],
        transcript: transcript(number),
        forfeits: Vec::new(),
        bad_answers: Vec::new(),
    }
}

/// The transcript hash of a match. It is different for each match.
pub(crate) fn transcript(number: MatchNumber) -> [u8; 32] {
    let mut transcript = [0; 32];
    for (index, word) in (0..).zip(transcript.chunks_exact_mut(8)) {
        // Multiplied by an odd constant, so that all bits differ.
        let mixed = (number.0 + index).cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&mixed.to_be_bytes());
    }
    transcript
}

/// Copies the results of the first `matches` matches of a tournament directly into the table.
pub(crate) async fn copy_results(db: &mut PgConnection, tournament: TournamentId, matches: i64) {
    /// Rows that are copied at a time.
    const PIECE: i64 = 1_000_000;
    for first in (0..matches).step_by(usize::try_from(PIECE).expect("a usize has 64 bits")) {
        let numbers = first..matches.min(first + PIECE);
        let rows: Vec<_> = numbers.map(|number| result(MatchNumber(number))).collect();
        let rows = rows.iter().map(|row| (tournament, Level::A, row));
        results::copy_in(&mut *db, rows).await.expect("the results are copied");
    }
}

/// Stores the first `results` results of an edition as if workers had reported them.
pub(crate) async fn play_at_once(pool: &PgPool, edition: EditionId, results: i64) {
    let tournament = tournament_of(pool, edition).await;
    let mut connection = pool.acquire().await.expect("a connection");
    copy_results(&mut connection, tournament, results).await;
    let statement = "UPDATE lots SET state = 'reported', attempt = 1
        WHERE tournament = $1 AND number < $2";
    let update = sqlx::query(statement).bind(tournament.0).bind(results);
    update.execute(&mut *connection).await.expect("the lots are updated");
    connection
        .execute("VACUUM ANALYZE lots, matches, results")
        .await
        .expect("the tables are vacuumed");
}

/// The speed of a raw copy of results in one transaction, in rows a second.
pub(crate) async fn raw_copy(pool: &PgPool, edition: EditionId) -> f64 {
    let tournament = tournament_of(pool, edition).await;
    let mut connection = pool.acquire().await.expect("a connection");
    let start = Instant::now();
    let mut transaction = connection.begin().await.expect("a transaction");
    copy_results(&mut transaction, tournament, COPY_ROWS).await;
    transaction.commit().await.expect("the rows are committed");
    speed(COPY_ROWS, start)
}

/// The speed of prepared inserts of one result each, in rows a second. Each insert is one commit,
/// and `sessions` sessions insert at the same time, as in `pgbench`.
pub(crate) async fn single_inserts(pool: &PgPool, edition: EditionId, sessions: i64) -> f64 {
    let tournament = tournament_of(pool, edition).await;
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for first in 0..sessions {
        let mut connection = pool.acquire().await.expect("a connection");
        tasks.spawn(async move {
            let mut number = first;
            while number < INSERT_ROWS {
                insert(&mut connection, tournament, &result(MatchNumber(number))).await;
                number += sessions;
            }
        });
    }
    tasks.join_all().await;
    speed(INSERT_ROWS, start)
}

async fn insert(db: &mut PgConnection, tournament: TournamentId, result: &MatchResult) {
    let statement = "INSERT INTO results (number, tournament, wall_ms, level, scores, transcript)
        VALUES ($1, $2, $3, 'A', $4, $5)";
    sqlx::query(statement)
        .bind(result.number.0)
        .bind(tournament.0)
        .bind(result.wall_ms)
        .bind(&result.scores)
        .bind(result.transcript.as_slice())
        .execute(db)
        .await
        .expect("the row is inserted");
}

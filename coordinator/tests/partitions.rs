//! Each tournament has separate partitions: deleting a tournament removes all its data, blocks no
//! other transaction, and touches nothing else.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use arbiter_coordinator::coordinator::Records;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::deleted_tournaments;
use arbiter_coordinator::db::tournaments::{self, TournamentState};
use arbiter_coordinator::db::{bot_state, editions, results};
use arbiter_coordinator::retention::Cleaner;
use arbiter_games::gomoku;
use arbiter_proto::ids::{EditionId, MatchNumber, TournamentId};
use sqlx::{AssertSqlSafe, PgPool};
use support::test_clock::AtTime as _;
use support::{Database, START, plan, report};

/// Plays an edition of a tournament to its end: ten matches, each with a record and bot state.
async fn played(database: &Database, tournament: TournamentId, files: &[u8]) -> EditionId {
    let pool = &database.pool;
    let queue = database.queue();
    let versions = arbiter_coordinator::db::versions::newest(pool, tournament).await.unwrap();
    let versions: Vec<_> = versions.iter().map(|version| version.id).collect();
    let edition = editions::create(pool, tournament, 1, false, START).await.unwrap();
    editions::enter(pool, edition, &versions).await.unwrap();
    queue.plan(edition, plan(10, 2)).await.unwrap();
    assert!(queue.start(edition).await.unwrap());
    let worker = database.worker("w").await;
    let leased = queue.lease_at(edition, 8, START).await.unwrap();
    assert_eq!(leased.len(), 5);
    for lot in &leased {
        let mut report = report(lot, worker);
        report.records.push((lot.first_match, b"what was said".to_vec()));
        report.files.push((lot.first_match, 1, files.to_vec()));
        support::report_all(&queue, &[report]).await;
    }
    queue.count(edition).await.unwrap();
    assert!(queue.complete(edition, START).await.unwrap());
    edition
}

/// A tournament of five bots with a complete edition.
async fn tournament(database: &Database, name: &str, files: &[u8]) -> (TournamentId, EditionId) {
    let id = database.tournament(name, gomoku::game()).await;
    database.versions(id, 5).await;
    (id, played(database, id, files).await)
}

/// Closes and deletes a tournament.
async fn drop_one(pool: &PgPool, id: TournamentId) {
    assert!(tournaments::end(pool, id, TournamentState::Closed, START).await.unwrap());
    let mut transaction = pool.begin().await.unwrap();
    deleted_tournaments::add(&mut transaction, id, START).await.unwrap();
    transaction.commit().await.unwrap();
}

/// The cleanup of deleted tournaments.
fn clearing(pool: &PgPool) -> Cleaner {
    Cleaner::new(pool.clone(), Records::default(), Clock::given(|| START))
}

/// The number of rows of an edition in each table.
async fn rows(pool: &PgPool, edition: EditionId) -> Vec<(String, i64)> {
    let statement = "
        SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
          AND NOT c.relispartition AND a.attname = 'edition' ORDER BY c.relname";
    let tables: Vec<String> = sqlx::query_scalar(statement).fetch_all(pool).await.unwrap();
    let mut found = Vec::new();
    for table in tables {
        let count = format!("SELECT count(*) FROM {table} WHERE edition = $1");
        let count = sqlx::query_scalar(AssertSqlSafe(count)).bind(edition.0);
        let count: i64 = count.fetch_one(pool).await.unwrap();
        if count > 0 {
            found.push((table, count));
        }
    }
    found
}

#[tokio::test]
async fn only_the_deleted_tournament_loses_its_data() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (old, edition) = tournament(&database, "old", b"notes").await;
    let (kept, other) = tournament(&database, "kept", b"others").await;
    let before = rows(pool, other).await;
    assert_eq!(rows(pool, edition).await, before);
    let tables = database.number("SELECT count(*) FROM pg_class WHERE relispartition").await;
    drop_one(pool, old).await;
    // It is gone at once, and its name is free.
    assert_eq!(tournaments::find(pool, "old").await.unwrap(), None);
    assert_eq!(tournaments::get(pool, old).await.unwrap(), None);
    assert!(tournaments::of_edition(pool, edition).await.is_err());
    assert_eq!(tournaments::list(pool).await.unwrap().len(), 1);
    clearing(pool).round().await.unwrap();
    assert_eq!(rows(pool, edition).await, []);
    assert_eq!(rows(pool, other).await, before);
    for table in ["deleted_tournaments", "partitions"] {
        let count = format!("SELECT count(*) FROM {table} WHERE tournament = $1");
        let count = sqlx::query_scalar(AssertSqlSafe(count)).bind(old.0);
        let count: i64 = count.fetch_one(pool).await.unwrap();
        assert_eq!(count, 0, "{table}");
    }
    let now = database.number("SELECT count(*) FROM pg_class WHERE relispartition").await;
    assert!(now < tables, "{now} tables and indexes of {tables}");
    assert_eq!(database.number("SELECT count(*) FROM snapshots").await, 1);
    assert_eq!(bot_state::left(pool, other, MatchNumber(0), 1).await.unwrap().unwrap(), b"others");
    assert_eq!(database.number("SELECT count(*) FROM bots").await, 5);
    // The bundle is that of the other tournament's versions, too.
    assert_eq!(database.number("SELECT count(*) FROM bundles").await, 1);
    // Its ids are never given out again.
    let (again, third) = tournament(&database, "old", b"notes").await;
    assert!(third > other && other > edition && again > kept);
    drop_one(pool, kept).await;
    drop_one(pool, again).await;
    clearing(pool).round().await.unwrap();
    for table in ["tournaments", "bots", "versions", "bundles", "editions", "snapshots", "lots"] {
        let count = format!("SELECT count(*) FROM {table}");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(pool).await.unwrap();
        assert_eq!(count, 0, "{table}");
    }
}

/// A long transaction delays the cleanup, and the cleanup delays no transaction.
#[tokio::test]
async fn deleting_a_tournament_blocks_no_other() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (old, edition) = tournament(&database, "old", b"notes").await;
    let (kept, other) = tournament(&database, "kept", b"notes").await;
    let mut reader = pool.begin().await.unwrap();
    let all = "SELECT count(*) FROM results";
    let count: i64 = sqlx::query_scalar(all).fetch_one(&mut *reader).await.unwrap();
    assert_eq!(count, 20);
    drop_one(pool, old).await;
    let first = clearing(pool);
    let cleared = tokio::spawn(async move { first.round().await });
    let waits = "
        SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%DETACH%' AND datname = current_database()";
    while database.number(waits).await == 0 {
        tokio::task::yield_now().await;
    }
    // Others read, plan, lease and report meanwhile.
    assert_eq!(results::page(pool, other, MatchNumber(-1), true).await.unwrap().len(), 10);
    let next = played(&database, kept, b"more").await;
    assert!(next > other);
    assert!(!cleared.is_finished());
    // A second cleanup has nothing to do: the first one is at it.
    clearing(pool).round().await.unwrap();
    reader.commit().await.unwrap();
    cleared.await.unwrap().unwrap();
    assert_eq!(rows(pool, edition).await, []);
}

/// The cleanup may be killed between any two statements.
#[tokio::test]
async fn an_interrupted_cleanup_continues() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (old, edition) = tournament(&database, "old", b"notes").await;
    drop_one(pool, old).await;
    let mut reader = pool.begin().await.unwrap();
    let all = "SELECT count(*) FROM matches";
    let _: i64 = sqlx::query_scalar(all).fetch_one(&mut *reader).await.unwrap();
    // Given up in the middle of the first table: it is half detached.
    let mut connection = pool.acquire().await.unwrap();
    sqlx::query("SET statement_timeout = '200ms'").execute(&mut *connection).await.unwrap();
    let shelf = edition.0 / 1000 * 1000;
    let taken = arbiter_coordinator::db::partitions::drop_partitions(&mut connection, shelf).await;
    assert!(taken.unwrap_err().to_string().contains("statement timeout"));
    let pending = "SELECT count(*) FROM pg_inherits WHERE inhdetachpending";
    assert_eq!(database.number(pending).await, 1);
    reader.commit().await.unwrap();
    clearing(pool).round().await.unwrap();
    assert_eq!(rows(pool, edition).await, []);
    assert_eq!(database.number(pending).await, 0);
}

/// The thirty-third tournament has no partition, and can be deleted all the same.
#[tokio::test]
async fn tournaments_without_a_partition_are_deleted_row_by_row() {
    let database = Database::new().await;
    let pool = &database.pool;
    for number in 0..32 {
        database.tournament(&format!("cup-{number}"), gomoku::game()).await;
    }
    let (late, edition) = tournament(&database, "late", b"notes").await;
    let (later, other) = tournament(&database, "later", b"notes").await;
    assert!(edition.0 >= 2_000_000_000 && other > edition);
    drop_one(pool, late).await;
    clearing(pool).round().await.unwrap();
    assert_eq!(rows(pool, edition).await, []);
    assert_eq!(results::page(pool, other, MatchNumber(-1), true).await.unwrap().len(), 10);
    // It stays there, even if a shelf becomes free.
    drop_one(pool, tournaments::find(pool, "cup-0").await.unwrap().unwrap().id).await;
    clearing(pool).round().await.unwrap();
    assert!(played(&database, later, b"notes").await > other);
    let (_, new) = tournament(&database, "new", b"notes").await;
    assert!(new.0 < 2_000_000_000);
}

/// A full partition is followed by another one.
#[tokio::test]
async fn a_tournament_may_have_several_partitions() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (id, first) = tournament(&database, "cup", b"notes").await;
    tournament(&database, "other", b"notes").await;
    let full = "UPDATE partitions SET end_edition = $1 + 1 WHERE tournament = $2";
    sqlx::query(full).bind(first.0).bind(id.0).execute(pool).await.unwrap();
    let second = played(&database, id, b"notes").await;
    assert_eq!((first.0 / 1000, second.0 / 1000), (0, 2));
    drop_one(pool, id).await;
    clearing(pool).round().await.unwrap();
    assert_eq!((rows(pool, first).await, rows(pool, second).await), (vec![], vec![]));
}

/// Each statement of the queue reads one partition only.
#[tokio::test]
async fn statements_read_one_partition() {
    let database = Database::new().await;
    let pool = &database.pool;
    for number in 0..8 {
        database.tournament(&format!("cup-{number}"), gomoku::game()).await;
    }
    let (_, edition) = tournament(&database, "cup", b"notes").await;
    for statement in [
        "SELECT number FROM matches WHERE edition = $1 AND number >= 2 AND number < 8 ORDER BY number",
        "SELECT r.number, m.seats FROM results r JOIN matches m USING (edition, number)
            WHERE edition = $1 AND number > 2 ORDER BY number LIMIT 1000",
        "SELECT r.number FROM unnest('{1,2}'::bigint[]) AS u (first_match)
            CROSS JOIN LATERAL (SELECT * FROM results WHERE edition = $1 AND number >= u.first_match
                AND number < u.first_match + 3 OFFSET 0) AS r",
        "SELECT c.bytes FROM results r JOIN records c ON c.edition = coalesce(r.source_edition, r.edition)
            AND c.number = coalesce(r.source_number, r.number)
            WHERE r.edition = $1 AND r.number = 1",
    ] {
        let mut connection = pool.acquire().await.unwrap();
        let prepare = format!("PREPARE asked (int) AS {statement}");
        sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut *connection).await.unwrap();
        let explain = format!("EXPLAIN (ANALYZE, COSTS OFF) EXECUTE asked ({edition})");
        let lines: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(&mut *connection).await.unwrap();
        let looked = |line: &&String| line.contains("Scan using") && !line.contains("never executed");
        let shelf = format!("_{}_", edition.0 / 1000 * 1000);
        let plan = lines.join("\n");
        assert!(lines.iter().filter(looked).all(|line| line.contains(&shelf)), "{plan}");
        assert!(plan.contains("Subplans Removed") || plan.contains("never executed"), "{plan}");
        sqlx::raw_sql("DEALLOCATE asked").execute(&mut *connection).await.unwrap();
    }
}

//! Each tournament has separate partitions. The deletion of a tournament removes all its data,
//! blocks no other transaction, and changes no other tournament.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use arbiter_coordinator::coordinator::Records;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::matches::{Match, Seats};
use arbiter_coordinator::db::tokens::{self, Role};
use arbiter_coordinator::db::tournaments::{self, NewTournament, Presentation, TournamentState};
use arbiter_coordinator::db::{
    absences, bot_list, bot_state, deleted_tournaments, editions, partitions, results, versions,
};
use arbiter_coordinator::queue::NewLot;
use arbiter_coordinator::retention::Cleaner;
use arbiter_games::{RULES_VERSION, Seed, gomoku};
use arbiter_proto::ids::{EditionId, LotNumber, MatchNumber, TournamentId, VersionId};
use arbiter_ranking::Entrant;
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};
use support::planning::Planning as _;
use support::test_clock::AtTime as _;
use support::{AnyPlan, Database, START, duels, final_plan, lots, report};

/// A plan of ten matches between the bots of these versions, from the match `first` on, in five
/// lots.
fn plan_from(first: i64, versions: &[VersionId]) -> AnyPlan {
    let versions = versions.to_vec();
    // The seats of duels hold the numbers from 1 on.
    let entrant = move |seat: &Entrant| Entrant(versions[usize::try_from(seat.0 - 1).unwrap()].0);
    let matches = duels(10).map(move |planned| Match {
        number: MatchNumber(first + planned.number.0),
        seats: Seats(planned.seats.0.iter().map(&entrant).collect()),
        ..planned
    });
    let lots =
        lots(10, 2).map(move |lot| NewLot { number: LotNumber(first + lot.number.0), ..lot });
    final_plan(matches, lots, [])
}

/// Plays a new edition of a tournament to its end: ten matches in five lots, each lot with a record
/// and bot state. It shares no match with the edition before.
async fn play_edition(database: &Database, tournament: TournamentId, files: &[u8]) -> EditionId {
    let pool = &database.pool;
    let queue = database.queue();
    let versions = versions::newest(pool, tournament).await.unwrap();
    let versions: Vec<_> = versions.iter().map(|version| version.id).collect();
    let edition = editions::create(pool, tournament, 1, false, RULES_VERSION, START).await.unwrap();
    editions::enter(pool, edition, &versions).await.unwrap();
    let scope = editions::scope(pool, edition).await.unwrap();
    if let Some(before) = editions::newest_before(pool, edition).await.unwrap() {
        absences::begin_all(pool, scope, before.scope()).await.unwrap();
    }
    queue.plan(edition, plan_from(scope.end, &versions)).await.unwrap();
    assert!(queue.start(edition).await.unwrap());
    let worker = database.worker("w").await;
    let leased = queue.lease_at(tournament, 8, START).await.unwrap();
    assert_eq!(leased.len(), 5);
    for lot in &leased {
        let mut report = report(lot, worker);
        report.records.push((lot.first_match(), b"a transcript".to_vec()));
        report.files.push((lot.first_match(), 1, files.to_vec()));
        support::report_all(&queue, &[report]).await;
    }
    queue.count(tournament).await.unwrap();
    assert!(queue.complete(edition, START).await.unwrap());
    edition
}

/// The number of results of an edition.
async fn result_count(pool: &PgPool, edition: EditionId) -> usize {
    let scope = editions::scope(pool, edition).await.unwrap();
    results::page(pool, scope, MatchNumber(-1), true).await.unwrap().len()
}

/// Creates a tournament of five bots, and plays one edition.
async fn complete_tournament(
    database: &Database,
    name: &str,
    files: &[u8],
) -> (TournamentId, EditionId) {
    let id = database.tournament(name, gomoku::game()).await;
    database.versions(id, 5).await;
    (id, play_edition(database, id, files).await)
}

/// The constraints and indexes of a table.
const RULES: &str = "
    SELECT pg_get_constraintdef(oid) AS rule FROM pg_constraint WHERE conrelid = to_regclass($1)
    UNION ALL
    SELECT substring(indexdef FROM 'USING .*') FROM pg_indexes WHERE tablename = $1
    ORDER BY rule";

/// The partition of a tournament is created with the rows of its first edition.
#[tokio::test]
async fn the_first_matches_obey_the_rules_of_all_matches() {
    let database = Database::new().await;
    let (id, edition) = complete_tournament(&database, "first", b"files").await;
    let rules_of = async |table: String| -> Vec<String> {
        sqlx::query_scalar(RULES).bind(table).fetch_all(&database.pool).await.unwrap()
    };
    let mut expected = rules_of("matches".to_owned()).await;
    assert!(expected.len() > 5, "{expected:?}");
    expected.push("USING btree (hash_array_extended(seats, seed_key))".to_owned());
    expected.sort();
    let mut rules = rules_of(format!("matches_{id}")).await;
    rules.sort();
    assert_eq!(rules, expected);
    assert_eq!(result_count(&database.pool, edition).await, 10);
}

/// Closes and deletes a tournament.
async fn delete_tournament(pool: &PgPool, id: TournamentId) {
    assert!(tournaments::end(pool, id, TournamentState::Closed, START).await.unwrap());
    let mut transaction = pool.begin().await.unwrap();
    deleted_tournaments::add(&mut transaction, id, START).await.unwrap();
    transaction.commit().await.unwrap();
}

/// The cleanup of deleted tournaments.
fn cleaner(pool: &PgPool) -> Cleaner {
    Cleaner::new(pool.clone(), Records::default(), Clock::fixed(|| START))
}

/// The number of rows of a tournament and an edition of it in each table that has some.
async fn row_counts(
    pool: &PgPool,
    tournament: TournamentId,
    edition: EditionId,
) -> Vec<(String, i64)> {
    let statement = "
        SELECT c.relname::text, a.attname::text
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
          AND NOT c.relispartition AND a.attname IN ('tournament', 'edition')
        ORDER BY c.relname, a.attname";
    let tables: Vec<(String, String)> = sqlx::query_as(statement).fetch_all(pool).await.unwrap();
    let mut counts = Vec::new();
    for (table, column) in tables {
        let statement = format!("SELECT count(*) FROM {table} WHERE {column} = $1");
        let id = if column == "edition" { edition.0 } else { tournament.0 };
        let query = sqlx::query_scalar(AssertSqlSafe(statement)).bind(id);
        let count: i64 = query.fetch_one(pool).await.unwrap();
        if count > 0 {
            counts.push((table, count));
        }
    }
    counts
}

#[tokio::test]
async fn only_the_deleted_tournament_loses_its_data() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (deleted, edition) = complete_tournament(&database, "old", b"notes").await;
    let (remaining, other) = complete_tournament(&database, "kept", b"others").await;
    let expected = row_counts(pool, remaining, other).await;
    assert_eq!(row_counts(pool, deleted, edition).await, expected);
    let tables_before = database.number("SELECT count(*) FROM pg_class WHERE relispartition").await;
    let owner = tokens::create(pool, &[1; 32], Role::Player, "ada", None, START).await.unwrap();
    sqlx::query("UPDATE bots SET owner = $1").bind(owner).execute(pool).await.unwrap();
    delete_tournament(pool, deleted).await;
    // The deletion is visible at once, and the name can be used again.
    let bots = bot_list::of_owner(pool, owner, 100).await.unwrap();
    assert_eq!(bots.len(), 5);
    assert!(bots.iter().all(|bot| bot.tournament == "kept"));
    assert_eq!(tournaments::find(pool, "old").await.unwrap(), None);
    assert_eq!(tournaments::get(pool, deleted).await.unwrap(), None);
    assert!(tournaments::of_edition(pool, edition).await.is_err());
    assert_eq!(tournaments::list(pool).await.unwrap().len(), 1);
    cleaner(pool).round().await.unwrap();
    assert_eq!(row_counts(pool, deleted, edition).await, []);
    assert_eq!(row_counts(pool, remaining, other).await, expected);
    for table in ["deleted_tournaments", "partitions"] {
        let statement = format!("SELECT count(*) FROM {table} WHERE tournament = $1");
        let query = sqlx::query_scalar(AssertSqlSafe(statement)).bind(deleted.0);
        let count: i64 = query.fetch_one(pool).await.unwrap();
        assert_eq!(count, 0, "{table}");
    }
    let tables_after = database.number("SELECT count(*) FROM pg_class WHERE relispartition").await;
    assert!(
        tables_after < tables_before,
        "{tables_after} tables and indexes; {tables_before} before the deletion"
    );
    assert_eq!(database.number("SELECT count(*) FROM snapshots").await, 1);
    let files = bot_state::find(pool, remaining, MatchNumber(0), 1).await.unwrap();
    assert_eq!(files.unwrap(), b"others");
    assert_eq!(database.number("SELECT count(*) FROM bots").await, 5);
    // Versions of the other tournament use the same bundle.
    assert_eq!(database.number("SELECT count(*) FROM bundles").await, 1);
    // Ids are never used again.
    let (recreated, third) = complete_tournament(&database, "old", b"notes").await;
    assert!(third > other && other > edition && recreated > remaining);
    delete_tournament(pool, remaining).await;
    delete_tournament(pool, recreated).await;
    cleaner(pool).round().await.unwrap();
    for table in ["tournaments", "bots", "versions", "bundles", "editions", "snapshots", "lots"] {
        let statement = format!("SELECT count(*) FROM {table}");
        let count: i64 =
            sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(pool).await.unwrap();
        assert_eq!(count, 0, "{table}");
    }
}

/// The cleanup waits for long transactions. No transaction waits for the cleanup.
#[tokio::test]
async fn deleting_a_tournament_blocks_no_other() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (deleted, edition) = complete_tournament(&database, "old", b"notes").await;
    let (remaining, other) = complete_tournament(&database, "kept", b"notes").await;
    let mut reader = pool.begin().await.unwrap();
    let statement = "SELECT count(*) FROM results";
    let count: i64 = sqlx::query_scalar(statement).fetch_one(&mut *reader).await.unwrap();
    assert_eq!(count, 20);
    delete_tournament(pool, deleted).await;
    let first_cleaner = cleaner(pool);
    let first_round = tokio::spawn(async move { first_cleaner.round().await });
    let waiting_detach = "
        SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%DETACH%' AND datname = current_database()";
    while database.number(waiting_detach).await == 0 {
        tokio::task::yield_now().await;
    }
    // Meanwhile other transactions read, plan, lease and report.
    assert_eq!(result_count(pool, other).await, 10);
    let next = play_edition(&database, remaining, b"more").await;
    assert!(next > other);
    assert!(!first_round.is_finished());
    // A second cleaner does nothing, because the first one is still running.
    cleaner(pool).round().await.unwrap();
    reader.commit().await.unwrap();
    first_round.await.unwrap().unwrap();
    assert_eq!(row_counts(pool, deleted, edition).await, []);
}

/// The cleanup may be killed between any two statements.
#[tokio::test]
async fn an_interrupted_cleanup_continues() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (deleted, edition) = complete_tournament(&database, "old", b"notes").await;
    delete_tournament(pool, deleted).await;
    let mut reader = pool.begin().await.unwrap();
    let statement = "SELECT count(*) FROM matches";
    let _: i64 = sqlx::query_scalar(statement).fetch_one(&mut *reader).await.unwrap();
    // Interrupt the cleanup while it detaches the partition of the first table.
    let mut connection = pool.acquire().await.unwrap();
    sqlx::query("SET statement_timeout = '200ms'").execute(&mut *connection).await.unwrap();
    let result = partitions::drop_partitions(&mut connection, deleted).await;
    assert!(result.unwrap_err().to_string().contains("statement timeout"));
    let pending = "SELECT count(*) FROM pg_inherits WHERE inhdetachpending";
    assert_eq!(database.number(pending).await, 1);
    reader.commit().await.unwrap();
    cleaner(pool).round().await.unwrap();
    assert_eq!(row_counts(pool, deleted, edition).await, []);
    assert_eq!(database.number(pending).await, 0);
}

/// At most 32 tournaments have partitions. Later ones can be deleted, too.
#[tokio::test]
async fn tournaments_without_a_partition_are_deleted_row_by_row() {
    let database = Database::new().await;
    let pool = &database.pool;
    for number in 0..32 {
        database.tournament(&format!("cup-{number}"), gomoku::game()).await;
    }
    let (deleted, edition) = complete_tournament(&database, "late", b"notes").await;
    let (remaining, other) = complete_tournament(&database, "later", b"notes").await;
    assert!(deleted.0 >= FIRST_SHARED_ID && remaining > deleted);
    assert!(!partitions::exist(pool, remaining).await.unwrap());
    delete_tournament(pool, deleted).await;
    cleaner(pool).round().await.unwrap();
    assert_eq!(row_counts(pool, deleted, edition).await, []);
    assert_eq!(result_count(pool, other).await, 10);
    // The tournament keeps its place outside the partitions, even if another partition is deleted.
    delete_tournament(pool, tournaments::find(pool, "cup-0").await.unwrap().unwrap().id).await;
    cleaner(pool).round().await.unwrap();
    assert!(play_edition(&database, remaining, b"notes").await > other);
    assert!(!partitions::exist(pool, remaining).await.unwrap());
    let (new, _) = complete_tournament(&database, "new", b"notes").await;
    assert!(new.0 < FIRST_SHARED_ID && partitions::exist(pool, new).await.unwrap());
}

/// The ids of tournaments without a partition begin here.
const FIRST_SHARED_ID: i32 = 1_000_000_000;

/// All editions of a tournament are in its partition.
#[tokio::test]
async fn editions_of_a_tournament_share_its_partition() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (id, first) = complete_tournament(&database, "cup", b"notes").await;
    complete_tournament(&database, "other", b"notes").await;
    let second = play_edition(&database, id, b"notes").await;
    for table in ["matches", "results"] {
        let statement = format!("SELECT count(*) FROM {table}_{id}");
        let count: i64 =
            sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(pool).await.unwrap();
        assert_eq!(count, 20, "{table}");
    }
    assert_eq!((result_count(pool, first).await, result_count(pool, second).await), (10, 10));
    delete_tournament(pool, id).await;
    cleaner(pool).round().await.unwrap();
    for edition in [first, second] {
        assert_eq!(row_counts(pool, id, edition).await, []);
    }
}

/// Each statement of the queue reads one partition only.
#[tokio::test]
async fn statements_read_one_partition() {
    let database = Database::new().await;
    let pool = &database.pool;
    for number in 0..8 {
        database.tournament(&format!("cup-{number}"), gomoku::game()).await;
    }
    let (tournament, _) = complete_tournament(&database, "cup", b"notes").await;
    for statement in [
        "SELECT number FROM matches WHERE tournament = $1 AND number >= 2 AND number < 8
            ORDER BY number",
        "SELECT r.number, m.seats FROM results r JOIN matches m USING (tournament, number)
            WHERE tournament = $1 AND number > 2 ORDER BY number LIMIT 1000",
        "SELECT r.number FROM unnest('{1,2}'::bigint[]) AS u (first_match)
            CROSS JOIN LATERAL (
                SELECT * FROM results WHERE tournament = $1 AND number >= u.first_match
                    AND number < u.first_match + 3 OFFSET 0) AS r",
        "SELECT bytes FROM records WHERE tournament = $1 AND number = 1",
        "SELECT c.number, m.seed_key FROM records c
            CROSS JOIN LATERAL (
                SELECT seed_key FROM matches WHERE tournament = $1 AND number = c.number OFFSET 0
            ) AS m
            WHERE c.tournament = $1 AND c.number < 9 AND NOT EXISTS (
                SELECT FROM absences a WHERE a.tournament = $1 AND a.number = c.number
                    AND a.since <= 2 AND (a.until IS NULL OR a.until > 2))
            ORDER BY c.number LIMIT 64",
    ] {
        let mut connection = pool.acquire().await.unwrap();
        let prepare = format!("PREPARE statement (int) AS {statement}");
        sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut *connection).await.unwrap();
        let explain = format!("EXPLAIN (ANALYZE, COSTS OFF) EXECUTE statement ({tournament})");
        let lines: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(&mut *connection).await.unwrap();
        let is_executed_scan =
            |line: &&String| line.contains("Scan using") && !line.contains("never executed");
        let partition = format!("_{tournament}_");
        let plan = lines.join("\n");
        assert!(
            lines.iter().filter(is_executed_scan).all(|line| line.contains(&partition)),
            "{plan}"
        );
        assert!(plan.contains("Subplans Removed") || plan.contains("never executed"), "{plan}");
        sqlx::raw_sql("DEALLOCATE statement").execute(&mut *connection).await.unwrap();
    }
}

#[tokio::test]
async fn a_rehearsal_takes_no_partitions_so_it_blocks_no_other_tournament() {
    let database = Database::new().await;
    let pool = &database.pool;
    let create = async |name: &str, rehearsal_of| {
        let new = NewTournament {
            name,
            game: "gomoku",
            settings: &json!({}),
            seed: Seed([0; 32]),
            seed_hash: [0; 32],
            beacon: None,
            presentation: &Presentation::default(),
            rehearsal_of,
        };
        let mut transaction = pool.begin().await.unwrap();
        let id = tournaments::create(&mut *transaction, &new, START).await.unwrap();
        (transaction, id)
    };
    let (cup, id) = create("cup", None).await;
    cup.commit().await.unwrap();
    assert!(partitions::exist(pool, id).await.unwrap());
    // The transaction of a rehearsal lasts as long as the planning of its edition.
    let (rehearsal, first) = create("first", Some("cup")).await;
    let (other, second) = create("other", None).await;
    other.commit().await.unwrap();
    rehearsal.commit().await.unwrap();
    assert!(!partitions::exist(pool, first).await.unwrap());
    assert!(partitions::exist(pool, second).await.unwrap());
}

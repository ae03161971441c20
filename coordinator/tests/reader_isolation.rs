//! Readers do not delay workers. No query reads a whole edition.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::db::lots::{self, LotState};
use arbiter_coordinator::db::played_matches::{self, Cursor, PAGE, page_of_entrants};
use arbiter_coordinator::db::{editions, records, results};
use arbiter_coordinator::queue::{Failure, LeasePolicy};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{MatchId, MatchNumber, TournamentId};
use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use arbiter_proto::v1::{FetchBundleRequest, GetMatchRequest, ReportStatus};
use arbiter_ranking::Entrant;
use grpc_client::{Server, Worker, report};
use sqlx::PgConnection;
use support::{Database, wait_until};
use tokio::task::JoinSet;

#[tokio::test]
async fn workers_continue_while_readers_hold_all_their_connections() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    let lot = worker.lot().await;
    let mut lock_holder = server.database.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE faults IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *lock_holder)
        .await
        .unwrap();
    let mut readers = JoinSet::new();
    for _ in 0..30 {
        let mut tournaments = server.tournaments(None);
        let request = GetMatchRequest { r#match: "cup/0".to_owned() };
        readers.spawn(async move { drop(tournaments.get_match(request).await) });
    }
    let waiting_locks = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    wait_until("readers wait for locks", async || server.database.number(waiting_locks).await >= 2)
        .await;
    assert_eq!(worker.report(report(&lot)).await, ReportStatus::Accepted);
    let second_lot = worker.lot().await;
    assert_eq!(worker.report(report(&second_lot)).await, ReportStatus::Accepted);
    assert!(
        readers.try_join_next().is_none(),
        "a reader got a response while the table was locked"
    );
    lock_holder.rollback().await.unwrap();
    readers.join_all().await;
    server.stop().await;
}

#[tokio::test]
async fn the_lot_of_a_match_is_found_by_index() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running_edition(9_000, 3).await;
    let cup = database.tournament_of(edition).await;
    // One lot fails. Its matches are then leased one by one.
    let failed = queue.lease(cup, 1).await.unwrap()[0];
    let lease = failed.lease;
    let by = None;
    let kind = FaultKind::System;
    queue.fail(&[Failure { lease, by, kind, reason: "no".to_owned() }]).await.unwrap();
    let mut session = database.pool.acquire().await.unwrap().detach();
    let statement = "
        SELECT (sum(idx_tup_fetch) + sum(seq_tup_read))::bigint FROM pg_stat_user_tables
        WHERE relname = 'lots'";
    let flush = "SELECT pg_stat_force_next_flush()";
    sqlx::query(flush).execute(&mut session).await.unwrap();
    let before: i64 = sqlx::query_scalar(statement).fetch_one(&mut session).await.unwrap();
    let numbers = [0, 1, 2, 3, 4_499, 4_500, 8_996, 8_997, 8_999];
    for number in numbers {
        let id = MatchId { tournament: cup, number: MatchNumber(number) };
        let row = played_matches::lot(&mut session, id).await.unwrap().unwrap();
        let is_alone = (failed.first_match().0..failed.first_match().0 + 3).contains(&number);
        let expected = if is_alone { number } else { number / 3 * 3 };
        assert_eq!(row.lot.0, expected, "match {number}");
    }
    let unknown = MatchId { tournament: cup, number: MatchNumber(9_000) };
    assert_eq!(played_matches::lot(&mut session, unknown).await.unwrap(), None);
    sqlx::query(flush).execute(&mut session).await.unwrap();
    sqlx::query("SELECT 1").execute(&mut session).await.unwrap();
    let after: i64 = sqlx::query_scalar(statement).fetch_one(&mut session).await.unwrap();
    let limit = i64::try_from(numbers.len() + 1).unwrap() * 32;
    assert!(after - before <= limit, "{} rows were read", after - before);
}

#[tokio::test]
async fn lot_counts_are_read_without_reading_lots() {
    let database = Database::new().await;
    let edition = database.running_edition(9_000, 1).await;
    let cup = database.tournament_of(edition).await;
    let queue = database.queue();
    for _ in 0..200 {
        let leased = queue.lease(cup, 1).await.unwrap();
        queue.return_leases(None, &[leased[0].lease]).await.unwrap();
    }
    queue.lease(cup, 4).await.unwrap();
    lots::merge_counts(&database.pool, cup).await.unwrap();
    let mut transaction = database.pool.begin().await.unwrap();
    let before = rows_read(&mut transaction, LOTS).await;
    let census = lots::census(&mut *transaction, cup).await.unwrap();
    let read_count = rows_read(&mut transaction, LOTS).await - before;
    let counts: Vec<_> = census.iter().map(|count| (count.state, count.lots)).collect();
    assert_eq!(counts, [(LotState::Pending, 8_996), (LotState::Leased, 4)]);
    assert!(read_count <= 100, "{read_count} rows were read");
}

#[tokio::test]
async fn concurrent_downloads_get_whole_bundles() {
    let server = Server::start_with(LeasePolicy::DEFAULT).await;
    server.create_tournament("cup").await;
    // A bundle of several pieces. The last piece is shorter.
    let bundle: Vec<u8> = (0..900_000_u32).map(|byte| (byte % 251) as u8).collect();
    server.submit(Role::Organiser, "cup", "large", true, &bundle).await.unwrap();
    server.start_edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    let digest = blake3::hash(&bundle).as_bytes().to_vec();
    let mut lots = Vec::new();
    while !lots.iter().any(|lot: &arbiter_proto::v1::Lot| {
        lot.matches.iter().flat_map(|planned| &planned.seats).any(|seat| seat.digest == digest)
    }) {
        lots.push(worker.lot().await);
    }
    let mut downloads = JoinSet::new();
    for _ in 0..8 {
        let mut client = WorkerServiceClient::with_interceptor(
            server.channel.clone(),
            server.bearer(Some(Role::Worker)),
        );
        let request = FetchBundleRequest { digest: digest.clone() };
        downloads.spawn(async move {
            let mut pieces = client.fetch_bundle(request).await.unwrap().into_inner();
            let mut bytes = Vec::new();
            while let Some(piece) = pieces.message().await.unwrap() {
                bytes.extend(piece.bytes);
            }
            bytes
        });
    }
    for download in downloads.join_all().await {
        assert!(download == bundle, "the download differs from the bundle");
    }
    server.stop().await;
}

/// The tables with a row for every match.
const MATCHES: &str = "^(matches|results|records)_";
/// The tables of lots.
const LOTS: &str = "^lots$|^lot_counts$";

/// The number of rows of these tables that the current transaction has read. It may include earlier
/// reads of the session.
async fn rows_read(transaction: &mut PgConnection, tables: &str) -> i64 {
    let rows = "
        SELECT (sum(coalesce(idx_tup_fetch, 0)) + sum(seq_tup_read))::bigint
        FROM pg_stat_xact_user_tables WHERE relname ~ $1";
    sqlx::query_scalar(rows).bind(tables).fetch_one(transaction).await.unwrap()
}

#[tokio::test]
async fn a_page_of_matches_reads_only_its_rows() {
    let database = Database::new().await;
    let edition = database.running_edition(30_000, 1_000).await;
    // Two bots have few of the matches, at the end.
    let add_matches = "
        INSERT INTO matches (number, seed_key, tournament, seats)
        SELECT added, added, tournament, CASE added % 2 WHEN 0 THEN '{1,2}' ELSE '{7001,7002}' END::int[]
        FROM editions, generate_series(30000, 30039) AS added;
        UPDATE editions SET end_match = 30040";
    sqlx::raw_sql(add_matches).execute(&database.pool).await.unwrap();
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    let add_results = "
        INSERT INTO results (number, tournament, wall_ms, level, scores, transcript, forfeits)
        SELECT number, tournament, 1, 'A', '{2,0}', decode(repeat('00', 32), 'hex'),
            CASE WHEN number % 7000 = 0 OR number = 30003 THEN '{0,1}'::smallint[] END FROM matches";
    sqlx::raw_sql(add_results).execute(&database.pool).await.unwrap();
    let add_records = "
        INSERT INTO records (number, tournament, bytes)
        SELECT number, tournament, 'record' FROM matches";
    sqlx::raw_sql(add_records).execute(&database.pool).await.unwrap();
    sqlx::raw_sql("ANALYZE").execute(&database.pool).await.unwrap();
    let mut transaction = database.pool.begin().await.unwrap();
    let after = MatchNumber(25_000);
    let mut before = rows_read(&mut transaction, MATCHES).await;
    let mut check = async |table: &str, transaction: &mut PgConnection, page_len: usize| {
        let total = rows_read(transaction, MATCHES).await;
        let limit = 4 * i64::try_from(page_len).unwrap();
        let read = total - before;
        assert!(read <= limit, "{table}: {read} rows were read for a page of {page_len}");
        before = total;
    };
    for (cursor, first) in [(Cursor::After(after), 25_001), (Cursor::Before(after), 24_999)] {
        let page = played_matches::page(&mut *transaction, scope, cursor, false, PAGE);
        let page = page.await.unwrap();
        assert_eq!((page.len(), page[0].result.number), (1_000, MatchNumber(first)));
        check("matches", &mut transaction, page.len()).await;
    }
    let cursor = Cursor::After(MatchNumber(10));
    let page = played_matches::page(&mut *transaction, scope, cursor, true, PAGE);
    let page = page.await.unwrap();
    let numbers: Vec<_> = page.iter().map(|played| played.result.number.0).collect();
    assert_eq!(numbers, [7_000, 14_000, 21_000, 28_000, 30_003]);
    check("forfeits", &mut transaction, page.len()).await;
    let rare_bots = [Entrant(7001), Entrant(7002)];
    for (cursor, forfeited_by, expected) in [
        (Cursor::start(false), None, (30_001..30_040).step_by(2).collect()),
        (Cursor::start(true), None, (30_001..30_040).rev().step_by(2).collect()),
        (Cursor::After(MatchNumber(30_009)), None, (30_011..30_040).step_by(2).collect()),
        (Cursor::start(false), Some(rare_bots[1]), vec![30_003]),
        (Cursor::start(false), Some(rare_bots[0]), vec![]),
    ] {
        let db = &mut *transaction;
        let page = page_of_entrants(db, scope, cursor, &rare_bots, forfeited_by).await.unwrap();
        let numbers: Vec<_> = page.iter().map(|played| played.result.number.0).collect();
        assert_eq!(numbers, expected);
        check("entrants", &mut transaction, 20).await;
    }
    let page = records::page(&mut *transaction, scope, after).await.unwrap();
    assert_eq!((page.len(), page[0].number), (64, MatchNumber(25_001)));
    check("records", &mut transaction, page.len()).await;
    let page = results::page(&mut *transaction, scope, after, true).await.unwrap();
    assert_eq!((page.len(), page[0].number), (5_039, MatchNumber(25_001)));
    check("results", &mut transaction, page.len()).await;
    check_log(&mut transaction, scope.tournament, &rare_bots).await;
}

/// A log is the same whether its matches are among the newest or an index finds them.
async fn check_log(
    transaction: &mut PgConnection,
    tournament: TournamentId,
    rare_bots: &[Entrant],
) {
    let mut log = async |entrants: &[Entrant], before: Option<i64>, window: i64| {
        let before = before.map(MatchNumber);
        let db = &mut *transaction;
        let page =
            played_matches::of_entrants(db, tournament, entrants, false, 1_000, before, window);
        let page = page.await.unwrap();
        page.iter().map(|played| played.result.number.0).collect::<Vec<_>>()
    };
    for window in [0, 10, 200_000] {
        let all: Vec<_> = (30_001..30_040).rev().step_by(2).collect();
        assert_eq!(log(rare_bots, None, window).await, all);
        let older: Vec<_> = (30_001..30_020).rev().step_by(2).collect();
        assert_eq!(log(&rare_bots[..1], Some(30_021), window).await, older);
        assert!(log(&[], None, window).await.is_empty());
    }
}

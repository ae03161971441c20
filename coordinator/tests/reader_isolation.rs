//! Readers delay no worker, and no query reads a whole edition.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::db::lots::{self, LotState};
use arbiter_coordinator::db::{played_matches, records, results};
use arbiter_coordinator::queue::{Failure, LeasePolicy};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{MatchId, MatchNumber};
use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use arbiter_proto::v1::{FetchBundleRequest, GetMatchRequest, ReportStatus};
use grpc_client::{Server, Worker, report};
use sqlx::PgConnection;
use support::{Database, until};
use tokio::task::JoinSet;

#[tokio::test]
async fn workers_continue_while_readers_hold_all_their_connections() {
    let server = Server::start().await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    let lot = worker.lot().await;
    let mut stalled = server.database.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE faults IN ACCESS EXCLUSIVE MODE").execute(&mut *stalled).await.unwrap();
    let mut readers = JoinSet::new();
    for _ in 0..30 {
        let mut tournaments = server.tournaments(None);
        let edition = lot.lease.unwrap().edition;
        let id = format!("{edition}/0");
        let request = GetMatchRequest { r#match: id };
        readers.spawn(async move { drop(tournaments.get_match(request).await) });
    }
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    until("readers wait", async || server.database.number(waiting).await >= 2).await;
    assert_eq!(worker.report(report(&lot)).await, ReportStatus::Accepted);
    let next = worker.lot().await;
    assert_eq!(worker.report(report(&next)).await, ReportStatus::Accepted);
    assert!(readers.try_join_next().is_none(), "readers are held up no more");
    stalled.rollback().await.unwrap();
    readers.join_all().await;
    server.stop().await;
}

#[tokio::test]
async fn the_lot_of_a_match_is_found_by_index() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = database.running(9_000, 3).await;
    // One lot fails, and its matches go on one by one.
    let split = queue.lease(edition, 1).await.unwrap()[0];
    let lease = split.lease;
    let by = None;
    let kind = FaultKind::System;
    queue.fail(&[Failure { lease, by, kind, reason: "no".to_owned() }]).await.unwrap();
    let session = database.pool.acquire().await.unwrap().detach();
    let mut session = session;
    let looks = "
        SELECT (sum(idx_tup_fetch) + sum(seq_tup_read))::bigint FROM pg_stat_user_tables
        WHERE relname = 'lots'";
    let flush = "SELECT pg_stat_force_next_flush()";
    sqlx::query(flush).execute(&mut session).await.unwrap();
    let before: i64 = sqlx::query_scalar(looks).fetch_one(&mut session).await.unwrap();
    let numbers = [0, 1, 2, 3, 4_499, 4_500, 8_996, 8_997, 8_999];
    for number in numbers {
        let id = MatchId { edition, number: MatchNumber(number) };
        let found = played_matches::lot(&mut session, id).await.unwrap().unwrap();
        let is_split = (split.first_match.0..split.first_match.0 + 3).contains(&number);
        let due = if is_split { -1 - number } else { number / 3 };
        assert_eq!(found.lot.0, due, "match {number}");
    }
    let none = MatchId { edition, number: MatchNumber(9_000) };
    assert_eq!(played_matches::lot(&mut session, none).await.unwrap(), None);
    sqlx::query(flush).execute(&mut session).await.unwrap();
    sqlx::query("SELECT 1").execute(&mut session).await.unwrap();
    let after: i64 = sqlx::query_scalar(looks).fetch_one(&mut session).await.unwrap();
    let most = i64::try_from(numbers.len() + 1).unwrap() * 32;
    assert!(after - before <= most, "{} rows were read", after - before);
}

#[tokio::test]
async fn counting_lots_reads_no_lot() {
    let database = Database::new().await;
    let edition = database.running(9_000, 1).await;
    let queue = database.queue();
    for _ in 0..200 {
        let leased = queue.lease(edition, 1).await.unwrap();
        queue.return_leases(None, &[leased[0].lease]).await.unwrap();
    }
    queue.lease(edition, 4).await.unwrap();
    lots::merge_counts(&database.pool, edition).await.unwrap();
    let mut transaction = database.pool.begin().await.unwrap();
    let before = rows_read(&mut transaction, LOTS).await;
    let counted = lots::census(&mut *transaction, edition).await.unwrap();
    let read = rows_read(&mut transaction, LOTS).await - before;
    let counted: Vec<_> = counted.iter().map(|count| (count.state, count.lots)).collect();
    assert_eq!(counted, [(LotState::Pending, 8_996), (LotState::Leased, 4)]);
    assert!(read <= 100, "{read} rows were read");
}

#[tokio::test]
async fn concurrent_downloads_get_whole_bundles() {
    let server = Server::start_with(LeasePolicy::DEFAULT).await;
    server.tournament("cup").await;
    // Of several pieces, and not a whole number of them.
    let bundle: Vec<u8> = (0..900_000_u32).map(|byte| (byte % 251) as u8).collect();
    server.submit(Role::Organiser, "cup", "large", true, &bundle).await.unwrap();
    server.edition("cup").await;
    let mut worker = Worker::new(&server, "w").await;
    let digest = blake3::hash(&bundle).as_bytes().to_vec();
    let mut lots = Vec::new();
    while !lots.iter().any(|lot: &arbiter_proto::v1::Lot| {
        lot.matches.iter().flat_map(|planned| &planned.seats).any(|seat| seat.digest == digest)
    }) {
        lots.push(worker.lot().await);
    }
    let mut fetching = JoinSet::new();
    for _ in 0..8 {
        let mut client = WorkerServiceClient::with_interceptor(
            server.channel.clone(),
            server.bearer(Some(Role::Worker)),
        );
        let request = FetchBundleRequest { digest: digest.clone() };
        fetching.spawn(async move {
            let mut pieces = client.fetch_bundle(request).await.unwrap().into_inner();
            let mut whole = Vec::new();
            while let Some(piece) = pieces.message().await.unwrap() {
                whole.extend(piece.bytes);
            }
            whole
        });
    }
    for fetched in fetching.join_all().await {
        assert!(fetched == bundle, "another bundle came");
    }
    server.stop().await;
}

/// The tables with a row for every match.
const MATCHES: &str = "^(matches|results|records)_";
/// The tables of lots.
const LOTS: &str = "^lots$|^lot_counts$";

/// The rows of such tables that this session has read recently. Earlier reads may be included.
async fn rows_read(transaction: &mut PgConnection, tables: &str) -> i64 {
    let rows = "
        SELECT (sum(coalesce(idx_tup_fetch, 0)) + sum(seq_tup_read))::bigint
        FROM pg_stat_xact_user_tables WHERE relname ~ $1";
    sqlx::query_scalar(rows).bind(tables).fetch_one(transaction).await.unwrap()
}

#[tokio::test]
async fn a_page_of_matches_reads_only_its_rows() {
    let database = Database::new().await;
    let edition = database.running(30_000, 1_000).await;
    let played_all = "
        INSERT INTO results (number, edition, wall_ms, level, scores, transcript)
        SELECT number, edition, 1, 'A', '{2,0}', decode(repeat('00', 32), 'hex') FROM matches";
    sqlx::raw_sql(played_all).execute(&database.pool).await.unwrap();
    let recorded = "
        INSERT INTO records (number, edition, bytes) SELECT number, edition, 'record' FROM matches";
    sqlx::raw_sql(recorded).execute(&database.pool).await.unwrap();
    sqlx::raw_sql("ANALYZE").execute(&database.pool).await.unwrap();
    let mut transaction = database.pool.begin().await.unwrap();
    let after = MatchNumber(25_000);
    let mut before = rows_read(&mut transaction, MATCHES).await;
    let mut check = async |what: &str, transaction: &mut PgConnection, shown: usize| {
        let read = rows_read(transaction, MATCHES).await;
        let most = 4 * i64::try_from(shown).unwrap();
        assert!(read - before <= most, "{what}: {} rows for {shown}", read - before);
        before = read;
    };
    let page = played_matches::page(&mut *transaction, edition, after).await.unwrap();
    assert_eq!((page.len(), page[0].result.number), (1_000, MatchNumber(25_001)));
    check("matches", &mut transaction, page.len()).await;
    let page = records::page(&mut *transaction, edition, after).await.unwrap();
    assert_eq!((page.len(), page[0].number), (64, MatchNumber(25_001)));
    check("records", &mut transaction, page.len()).await;
    let page = results::page(&mut *transaction, edition, after, true).await.unwrap();
    assert_eq!((page.len(), page[0].number), (4_999, MatchNumber(25_001)));
    check("results", &mut transaction, page.len()).await;
}

//! Records outside the database: in a directory, and on an S3 server. The test of S3 needs a
//! server; `scripts/try-store.sh` starts one and prints its address.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::{env, fs};

use arbiter_coordinator::coordinator::Records;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::records::{self, Record};
use arbiter_coordinator::db::tournaments::{self, TournamentState};
use arbiter_coordinator::db::{deleted_tournaments, editions};
use arbiter_coordinator::queue::{LeasedLot, Report, ReportError, ReportSender, ReportStatus};
use arbiter_coordinator::record_store::RecordStore;
use arbiter_coordinator::retention::Cleaner;
use arbiter_proto::ids::{MatchId, MatchNumber, TournamentId, WorkerId};
use sqlx::PgPool;
use support::test_clock::AtTime as _;
use support::{Database, START, report};
use tempfile::TempDir;
use time::Duration;

/// A report with a different record for each match.
fn report_with_records(lot: &LeasedLot, worker: WorkerId) -> Report {
    let mut report = report(lot, worker);
    let numbers = report.results.iter().map(|result| result.number);
    report.records =
        numbers.map(|number| (number, record_bytes(lot.lease.lot.tournament, number))).collect();
    report
}

/// The record of a match. Its length depends on the number of the match.
fn record_bytes(tournament: TournamentId, number: MatchNumber) -> Vec<u8> {
    let repetitions = 1 + usize::try_from(number.0 % 7).unwrap();
    format!("{tournament}/{number} ").repeat(repetitions).into_bytes()
}

/// Reports lots concurrently. Their records go to this store, or to the database if it is `None`.
async fn deliver(
    database: &Database,
    store: Option<&RecordStore>,
    lots: &[LeasedLot],
    worker: WorkerId,
) -> Vec<Result<ReportStatus, ReportError>> {
    let (sender, collector) = ReportSender::new(database.queue());
    let collector_task =
        tokio::spawn(collector.with_store(store.cloned()).run(std::future::pending()));
    let mut report_tasks = Vec::new();
    for lot in lots {
        let sender = sender.clone();
        let report = report_with_records(lot, worker);
        report_tasks.push(tokio::spawn(async move { sender.report(report).await }));
    }
    let mut results = Vec::new();
    for task in report_tasks {
        results.push(task.await.unwrap());
    }
    drop(sender);
    collector_task.await.unwrap();
    results
}

fn all_accepted(results: &[Result<ReportStatus, ReportError>]) -> bool {
    results.iter().all(|result| matches!(result, Ok(ReportStatus::Accepted)))
}

/// Reads a record. Returns its bytes and whether they were in the store.
async fn read_record(pool: &PgPool, store: &RecordStore, id: MatchId) -> (Vec<u8>, bool) {
    let row = records::find(pool, id).await.unwrap().unwrap();
    match row {
        Record::InDatabase(bytes) => (bytes, false),
        Record::InPack(slice) => {
            let start = u64::try_from(slice.start).unwrap();
            let range = start..start + u64::try_from(slice.length).unwrap();
            (store.get(id.tournament, slice.pack, range).await.unwrap(), true)
        }
    }
}

/// The cleanup, 40 days after the start of the test. Records are deleted `keep` after the end of
/// their tournament; never if it is `None`.
fn cleaner(pool: &PgPool, store: &RecordStore, keep: Option<Duration>) -> Cleaner {
    let records = Records { store: Some(store.clone()), keep };
    Cleaner::new(pool.clone(), records, Clock::fixed(|| START + Duration::days(40)))
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { paths.extend(files(&path)) } else { paths.push(path) }
    }
    paths
}

/// A new record store in a temporary directory.
fn directory_store() -> (TempDir, RecordStore) {
    let directory = tempfile::tempdir().unwrap();
    let store =
        RecordStore::open(&format!("file://{}/records", directory.path().display())).unwrap();
    (directory, store)
}

/// Tests an installation that gets a record store later. Old records stay in the database, new ones
/// go to the store, and all can be read until the tournament is deleted.
async fn test_store(store: &RecordStore) {
    let database = Database::new().await;
    let pool = &database.pool;
    let edition = database.running_edition(40, 2).await;
    let tournament = database.tournament_of(edition).await;
    let worker = database.worker("w").await;
    let queue = database.queue();
    let lots = queue.lease_at(tournament, 4, START).await.unwrap();
    assert!(all_accepted(&deliver(&database, None, &lots, worker).await));
    let later_lots = queue.lease_at(tournament, 16, START).await.unwrap();
    assert_eq!((lots.len(), later_lots.len()), (4, 16));
    assert!(all_accepted(&deliver(&database, Some(store), &later_lots, worker).await));
    let mut stored_count = 0;
    for number in (0..40).map(MatchNumber) {
        let (bytes, is_in_store) = read_record(pool, store, MatchId { tournament, number }).await;
        assert_eq!(bytes, record_bytes(tournament, number));
        stored_count += i32::from(is_in_store);
    }
    assert_eq!(stored_count, 32);
    let inconsistent = "SELECT count(*) FROM records WHERE (bytes IS NULL) <> (object IS NOT NULL)";
    assert_eq!(database.number(inconsistent).await, 0);
    assert!(
        database.number("SELECT count(*) FROM record_objects WHERE used").await < 16,
        "the store has one object for each record"
    );
    let statement = "SELECT object FROM records WHERE object IS NOT NULL LIMIT 1";
    let pack = sqlx::query_scalar(statement).fetch_one(pool).await.unwrap();
    tournaments::end(pool, tournament, TournamentState::Cancelled, START).await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    deleted_tournaments::add(&mut transaction, tournament, START).await.unwrap();
    transaction.commit().await.unwrap();
    cleaner(pool, store, None).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM record_objects").await, 0);
    assert_eq!(database.number("SELECT count(*) FROM tournaments").await, 0);
    let error = store.get(tournament, pack, 0..1).await.unwrap_err();
    assert!(error.to_string().contains("not found"), "{error}");
}

#[tokio::test]
async fn records_are_stored_in_a_directory() {
    let (directory, store) = directory_store();
    test_store(&store).await;
    assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn records_are_stored_in_an_s3_server() {
    let Ok(address) = env::var("ARBITER_TRY_S3") else {
        println!("skipped: ARBITER_TRY_S3 is not set (scripts/try-store.sh starts an S3 server)");
        return;
    };
    test_store(&RecordStore::open(&address).unwrap()).await;
    // If the bucket does not exist, the error says so, and no report is lost.
    let missing = RecordStore::open("s3://arbiter-has-no-such-bucket/records").unwrap();
    test_failing_store(&missing, "NoSuchBucket", |_| {}, &RecordStore::open(&address).unwrap())
        .await;
}

/// Tests that reports are not stored while the store fails with `reason`, and are stored when it
/// works again.
async fn test_failing_store(
    broken: &RecordStore,
    reason: &str,
    repair: impl FnOnce(&RecordStore),
    repaired: &RecordStore,
) {
    let database = Database::new().await;
    let pool = &database.pool;
    let edition = database.running_edition(8, 2).await;
    let tournament = database.tournament_of(edition).await;
    let worker = database.worker("w").await;
    let lots = database.queue().lease_at(tournament, 4, START).await.unwrap();
    for result in deliver(&database, Some(broken), &lots, worker).await {
        let error = result.unwrap_err();
        assert!(matches!(error, ReportError::Records(_)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert_eq!(database.number("SELECT count(*) FROM results").await, 0);
    repair(broken);
    assert!(all_accepted(&deliver(&database, Some(repaired), &lots, worker).await));
    assert_eq!(database.number("SELECT count(*) FROM results").await, 8);
    let number = MatchNumber(5);
    let (bytes, _) = read_record(pool, repaired, MatchId { tournament, number }).await;
    assert_eq!(bytes, record_bytes(tournament, number));
    // Cleanup deletes the rows of objects that were never stored.
    assert!(database.number("SELECT count(*) FROM record_objects WHERE NOT used").await > 0);
    cleaner(pool, repaired, None).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM record_objects WHERE NOT used").await, 0);
    assert!(database.number("SELECT count(*) FROM record_objects").await > 0);
}

#[tokio::test]
async fn reports_wait_while_the_store_fails() {
    let (directory, store) = directory_store();
    let records = directory.path().join("records");
    // A file replaces the directory, so writing fails.
    fs::remove_dir(&records).unwrap();
    fs::write(&records, "not a directory").unwrap();
    let repair = |_: &RecordStore| {
        fs::remove_file(&records).unwrap();
        fs::create_dir(&records).unwrap();
    };
    test_failing_store(&store, "the record store file://", repair, &store).await;
}

/// The records of an ended tournament are deleted after the retention time. Its other data stays.
#[tokio::test]
async fn records_are_deleted_after_their_retention_time() {
    let (directory, store) = directory_store();
    let database = Database::new().await;
    let pool = &database.pool;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running_edition(20, 2).await;
    let tournament = database.tournament_of(edition).await;
    let lots = queue.lease_at(tournament, 8, START).await.unwrap();
    assert!(all_accepted(&deliver(&database, Some(&store), &lots[..4], worker).await));
    assert!(all_accepted(&deliver(&database, None, &lots[4..], worker).await));
    let record_count = database.number("SELECT count(*) FROM records").await;
    assert_eq!(record_count, 16);
    // Records of an open tournament are not deleted. Then the tournament ends, 40 days before the
    // cleanup.
    cleaner(pool, &store, Some(Duration::days(1))).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM records").await, record_count);
    tournaments::end(pool, tournament, TournamentState::Cancelled, START).await.unwrap();
    cleaner(pool, &store, Some(Duration::days(41))).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM records").await, record_count);
    cleaner(pool, &store, Some(Duration::days(39))).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM records").await, 0);
    assert_eq!(database.number("SELECT count(*) FROM record_objects").await, 0);
    let table_size =
        "SELECT sum(pg_relation_size(relid))::bigint FROM pg_partition_tree('records')";
    assert_eq!(database.number(table_size).await, 0, "the space on disk is not free");
    assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
    assert_eq!(database.number("SELECT count(*) FROM results").await, 16);
    queue.count(tournament).await.unwrap();
    let scope = editions::scope(pool, edition).await.unwrap();
    assert_eq!(queue.verify_standings(scope).await.unwrap(), []);
}

#[test]
fn the_error_for_an_invalid_address_shows_valid_ones() {
    for address in ["records", "http://x/y", "s3://", "file://relative"] {
        let error = RecordStore::open(address).unwrap_err().to_string();
        assert!(error.contains("write s3://BUCKET/PREFIX or file:///DIRECTORY"), "{error}");
    }
}

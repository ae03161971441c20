//! Records outside the database: in a directory, and in an S3 server if there is one
//! (`scripts/try-store.sh` starts one and prints its address).

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use std::path::{Path, PathBuf};
use std::{env, fs};

use arbiter_coordinator::coordinator::Records;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::records::{self, Record};
use arbiter_coordinator::db::tournaments::{self, TournamentState};
use arbiter_coordinator::db::{deleted_tournaments, editions};
use arbiter_coordinator::queue::{Leased, Report, ReportError, ReportSender, ReportStatus};
use arbiter_coordinator::record_store::RecordStore;
use arbiter_coordinator::retention::Cleaner;
use arbiter_proto::ids::{EditionId, MatchId, MatchNumber, TournamentId, WorkerId};
use sqlx::PgPool;
use support::test_clock::AtTime as _;
use support::{Database, START, report};
use tempfile::TempDir;
use time::Duration;

/// A report with a record of each match, all of them different.
fn recorded(lot: &Leased, worker: WorkerId) -> Report {
    let mut report = report(lot, worker);
    let numbers = report.results.iter().map(|result| result.number);
    report.records =
        numbers.map(|number| (number, transcript_text(lot.lease.lot.edition, number))).collect();
    report
}

/// The transcript of a match: some are long, some short.
fn transcript_text(edition: EditionId, number: MatchNumber) -> Vec<u8> {
    format!("{edition}/{number} ").repeat(1 + usize::try_from(number.0 % 7).unwrap()).into_bytes()
}

/// Reports lots concurrently to a coordinator with this store.
async fn deliver(
    database: &Database,
    store: Option<&RecordStore>,
    lots: &[Leased],
    worker: WorkerId,
) -> Vec<Result<ReportStatus, ReportError>> {
    let (reporter, collector) = ReportSender::new(database.queue());
    let collecting = tokio::spawn(collector.with_store(store.cloned()).run(std::future::pending()));
    let mut reporting = Vec::new();
    for lot in lots {
        let reporter = reporter.clone();
        let report = recorded(lot, worker);
        reporting.push(tokio::spawn(async move { reporter.report(report).await }));
    }
    let mut verdicts = Vec::new();
    for reported in reporting {
        verdicts.push(reported.await.unwrap());
    }
    drop(reporter);
    collecting.await.unwrap();
    verdicts
}

fn all_accepted(verdicts: &[Result<ReportStatus, ReportError>]) -> bool {
    verdicts.iter().all(|verdict| matches!(verdict, Ok(ReportStatus::Accepted)))
}

/// A record, and whether it was in the store.
async fn read(pool: &PgPool, store: &RecordStore, id: MatchId) -> (Vec<u8>, bool) {
    let found = records::find(pool, id).await.unwrap().unwrap();
    match found.record {
        Record::Here(bytes) => (bytes, false),
        Record::There(slice) => {
            let start = u64::try_from(slice.start).unwrap();
            let range = start..start + u64::try_from(slice.length).unwrap();
            (store.get(found.edition, slice.pack, range).await.unwrap(), true)
        }
    }
}

/// The tournament of an edition.
async fn tournament_of(pool: &PgPool, edition: EditionId) -> TournamentId {
    editions::get(pool, edition).await.unwrap().unwrap().tournament
}

/// The cleanup, some days after the start of the test.
fn clearing(pool: &PgPool, store: &RecordStore, keep: Option<Duration>) -> Cleaner {
    let records = Records { store: Some(store.clone()), keep };
    Cleaner::new(pool.clone(), records, Clock::given(|| START + Duration::days(40)))
}

/// The files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// A store in a directory.
fn directory() -> (TempDir, RecordStore) {
    let directory = tempfile::tempdir().unwrap();
    let store =
        RecordStore::open(&format!("file://{}/records", directory.path().display())).unwrap();
    (directory, store)
}

/// A running installation gets a record store: old records stay in the database, new ones go to the
/// store, and all can be read until the tournament is deleted.
async fn goes_round(store: &RecordStore) {
    let database = Database::new().await;
    let pool = &database.pool;
    let edition = database.running(40, 2).await;
    let worker = database.worker("w").await;
    let queue = database.queue();
    let lots = queue.lease_at(edition, 4, START).await.unwrap();
    assert!(all_accepted(&deliver(&database, None, &lots, worker).await));
    let more = queue.lease_at(edition, 16, START).await.unwrap();
    assert_eq!((lots.len(), more.len()), (4, 16));
    assert!(all_accepted(&deliver(&database, Some(store), &more, worker).await));
    let mut there = 0;
    for number in (0..40).map(MatchNumber) {
        let (bytes, elsewhere) = read(pool, store, MatchId { edition, number }).await;
        assert_eq!(bytes, transcript_text(edition, number));
        there += i32::from(elsewhere);
    }
    assert_eq!(there, 32);
    let wrong = "SELECT count(*) FROM records WHERE (bytes IS NULL) <> (object IS NOT NULL)";
    assert_eq!(database.number(wrong).await, 0);
    assert!(
        database.number("SELECT count(*) FROM record_objects WHERE used").await < 16,
        "few objects"
    );
    let a_pack = "SELECT object FROM records WHERE object IS NOT NULL LIMIT 1";
    let pack = sqlx::query_scalar(a_pack).fetch_one(pool).await.unwrap();
    let id = tournament_of(pool, edition).await;
    tournaments::end(pool, id, TournamentState::Cancelled, START).await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    deleted_tournaments::add(&mut transaction, id, START).await.unwrap();
    transaction.commit().await.unwrap();
    clearing(pool, store, None).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM record_objects").await, 0);
    assert_eq!(database.number("SELECT count(*) FROM tournaments").await, 0);
    let gone = store.get(edition, pack, 0..1).await.unwrap_err();
    assert!(gone.to_string().contains("not found"), "{gone}");
}

#[tokio::test]
async fn records_are_stored_in_a_directory() {
    let (directory, store) = directory();
    goes_round(&store).await;
    assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn records_are_stored_in_an_s3_server() {
    let Ok(address) = env::var("ARBITER_TRY_S3") else {
        println!("left out: no server that speaks S3; scripts/try-store.sh starts one");
        return;
    };
    goes_round(&RecordStore::open(&address).unwrap()).await;
    // A bucket that is not there: the reason is told, and nothing is lost.
    let missing = RecordStore::open("s3://arbiter-has-no-such-bucket/records").unwrap();
    refuses(&missing, "NoSuchBucket", |_| {}, &RecordStore::open(&address).unwrap()).await;
}

/// Reports whose records the store refuses are not counted, and are repeated when it works again.
async fn refuses(
    broken: &RecordStore,
    reason: &str,
    mend: impl FnOnce(&RecordStore),
    mended: &RecordStore,
) {
    let database = Database::new().await;
    let pool = &database.pool;
    let edition = database.running(8, 2).await;
    let worker = database.worker("w").await;
    let lots = database.queue().lease_at(edition, 4, START).await.unwrap();
    for verdict in deliver(&database, Some(broken), &lots, worker).await {
        let error = verdict.unwrap_err();
        assert!(matches!(error, ReportError::Records(_)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert_eq!(database.number("SELECT count(*) FROM results").await, 0);
    mend(broken);
    assert!(all_accepted(&deliver(&database, Some(mended), &lots, worker).await));
    assert_eq!(database.number("SELECT count(*) FROM results").await, 8);
    let number = MatchNumber(5);
    let (bytes, _) = read(pool, mended, MatchId { edition, number }).await;
    assert_eq!(bytes, transcript_text(edition, number));
    // What was begun and came to nothing is forgotten.
    assert!(database.number("SELECT count(*) FROM record_objects WHERE NOT used").await > 0);
    clearing(pool, mended, None).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM record_objects WHERE NOT used").await, 0);
    assert!(database.number("SELECT count(*) FROM record_objects").await > 0);
}

#[tokio::test]
async fn reports_wait_while_the_store_fails() {
    let (directory, store) = directory();
    let records = directory.path().join("records");
    // Something else is where the directory was: nothing can be written there.
    fs::remove_dir(&records).unwrap();
    fs::write(&records, "in the way").unwrap();
    let mend = |_: &RecordStore| {
        fs::remove_file(&records).unwrap();
        fs::create_dir(&records).unwrap();
    };
    refuses(&store, "the record store file://", mend, &store).await;
}

/// Records are deleted some time after the end of their tournament; all other data stays.
#[tokio::test]
async fn records_are_deleted_after_their_retention_time() {
    let (directory, store) = directory();
    let database = Database::new().await;
    let pool = &database.pool;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running(20, 2).await;
    let lots = queue.lease_at(edition, 8, START).await.unwrap();
    assert!(all_accepted(&deliver(&database, Some(&store), &lots[..4], worker).await));
    assert!(all_accepted(&deliver(&database, None, &lots[4..], worker).await));
    let kept = database.number("SELECT count(*) FROM records").await;
    assert_eq!(kept, 16);
    // It goes on; then it ended a moment ago, 40 days before the clearing.
    clearing(pool, &store, Some(Duration::days(1))).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM records").await, kept);
    let id = tournament_of(pool, edition).await;
    tournaments::end(pool, id, TournamentState::Cancelled, START).await.unwrap();
    clearing(pool, &store, Some(Duration::days(41))).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM records").await, kept);
    clearing(pool, &store, Some(Duration::days(39))).round().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM records").await, 0);
    assert_eq!(database.number("SELECT count(*) FROM record_objects").await, 0);
    let room = "SELECT sum(pg_relation_size(relid))::bigint FROM pg_partition_tree('records')";
    assert_eq!(database.number(room).await, 0, "the file system has the room back");
    assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
    assert_eq!(database.number("SELECT count(*) FROM results").await, 16);
    queue.count(edition).await.unwrap();
    assert_eq!(queue.verify_standings(edition).await.unwrap(), []);
}

#[test]
fn an_invalid_address_is_explained() {
    for address in ["records", "http://x/y", "s3://", "file://relative"] {
        let error = RecordStore::open(address).unwrap_err().to_string();
        assert!(error.contains("write s3://BUCKET/PREFIX or file:///DIRECTORY"), "{error}");
    }
}

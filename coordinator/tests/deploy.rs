//! The SQL in `deploy/`, on the current tables.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use arbiter_coordinator::queue::ReportStatus;
use sqlx::{AssertSqlSafe, PgConnection};
use support::test_clock::AtTime as _;
use support::{Database, START, plan, report};
use time::Duration;

/// A file below `deploy/`.
fn file(name: &str) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(top.join("deploy").join(name)).unwrap()
}

/// The query of the autoscaler: the lines that are indented below their key.
fn autoscaler_query() -> String {
    let manifest = file("kubernetes/components/keda/queue.yaml");
    let mut lines = manifest.lines().skip_while(|line| !line.trim_start().starts_with("query: >-"));
    let indent = |line: &str| line.len() - line.trim_start().len();
    let depth = indent(lines.next().unwrap());
    let query: Vec<_> = lines.take_while(|line| indent(line) > depth).map(str::trim).collect();
    query.join(" ")
}

async fn execute(connection: &mut PgConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(connection).await.unwrap();
}

async fn ask(connection: &mut PgConnection, query: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn the_autoscaler_counts_pending_and_leased_lots() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let query = autoscaler_query();
    let mut watcher = database.pool.acquire().await.unwrap();
    execute(&mut watcher, &file("postgres/watcher.sql").replace(":'password'", "'secret'")).await;
    execute(&mut watcher, "GRANT arbiter_watcher TO CURRENT_USER").await;
    execute(&mut watcher, "SET ROLE arbiter_watcher").await;
    assert_eq!(ask(&mut watcher, &query).await, 0);
    let edition = database.edition(5).await;
    queue.plan(edition, plan(10, 2)).await.unwrap();
    assert_eq!(
        ask(&mut watcher, &query).await,
        0,
        "an edition that has not started needs no workers"
    );
    assert!(queue.start(edition).await.unwrap());
    assert_eq!(ask(&mut watcher, &query).await, 5);
    let lot = queue.lease_at(edition, 1, START).await.unwrap().pop().unwrap();
    assert_eq!(ask(&mut watcher, &query).await, 5, "a leased lot still needs its worker");
    assert_eq!(
        support::report_all(&queue, &[report(&lot, worker)]).await,
        [ReportStatus::Accepted]
    );
    assert_eq!(ask(&mut watcher, &query).await, 4);
    assert!(queue.cancel(edition, START).await.unwrap());
    assert_eq!(ask(&mut watcher, &query).await, 0);
    let as_owner = |statement: &str| format!("RESET ROLE; {statement}; SET ROLE arbiter_watcher");
    let tried = "INSERT INTO trials (version, queued_at) SELECT min(id), now() FROM versions";
    execute(&mut watcher, &as_owner(tried)).await;
    assert_eq!(ask(&mut watcher, &query).await, 1, "versions wait for workers too");
    let withdrawn = "UPDATE bots SET withdrawn_at = created_at";
    execute(&mut watcher, &as_owner(withdrawn)).await;
    assert_eq!(ask(&mut watcher, &query).await, 0, "a withdrawn bot gets no trial");
    let refused = sqlx::query("SELECT hash FROM tokens").fetch_all(&mut *watcher).await;
    assert!(refused.unwrap_err().to_string().contains("permission denied"));
    execute(&mut watcher, "RESET ROLE").await;
}

#[tokio::test]
async fn a_restored_database_refuses_reports_of_earlier_leases() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running(4, 4).await;
    let before = queue.lease_at(edition, 1, START).await.unwrap().pop().unwrap();
    let identity = "SELECT id::text FROM installation";
    let former: String = sqlx::query_scalar(identity).fetch_one(&database.pool).await.unwrap();
    let mut connection = database.pool.acquire().await.unwrap();
    execute(&mut connection, &file("postgres/restored.sql")).await;
    let restored: String = sqlx::query_scalar(identity).fetch_one(&database.pool).await.unwrap();
    assert_ne!(former, restored, "workers know a database by its identity");
    assert_eq!(support::report_all(&queue, &[report(&before, worker)]).await, [ReportStatus::Late]);
    let later = START + Duration::SECOND;
    let again = queue.lease_at(edition, 1, later).await.unwrap().pop().unwrap();
    assert_eq!(
        again.lease.lot, before.lease.lot,
        "the lot of a lost lease is leased again at once"
    );
    assert_eq!(
        support::report_all(&queue, &[report(&again, worker)]).await,
        [ReportStatus::Accepted]
    );
    assert_eq!(database.number("SELECT count(*) FROM faults").await, 0);
}

/// The settings that sqlx itself sends for a session; poolers know these.
const DRIVER: [&str; 5] =
    ["DateStyle", "TimeZone", "application_name", "client_encoding", "extra_float_digits"];

#[tokio::test]
async fn a_user_behind_a_pooler_has_the_settings_of_a_session() {
    let database = Database::new().await;
    let mut connection = database.pool.acquire().await.unwrap();
    let asked: Vec<String> =
        sqlx::query_scalar("SELECT name FROM pg_settings WHERE source = 'client'")
            .fetch_all(&mut *connection)
            .await
            .unwrap();
    let asked: BTreeSet<_> =
        asked.iter().map(String::as_str).filter(|name| !DRIVER.contains(name)).collect();
    let text = file("postgres/role.sql");
    let settings =
        text.lines().filter_map(|line| line.strip_prefix("ALTER ROLE CURRENT_USER SET "));
    let given: Vec<_> = settings.map(|line| line.split_once(" = ").unwrap()).collect();
    assert_eq!(given.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(), asked);
    for (name, value) in given {
        let current = format!("SELECT current_setting('{name}')");
        let current = || sqlx::query_scalar::<_, String>(AssertSqlSafe(current.clone()));
        let before = current().fetch_one(&mut *connection).await.unwrap();
        execute(&mut connection, &format!("SET {name} = {value}")).await;
        assert_eq!(current().fetch_one(&mut *connection).await.unwrap(), before, "{name}");
    }
}

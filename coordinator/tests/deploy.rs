//! The SQL in `deploy/` works with the current tables.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use arbiter_coordinator::queue::ReportStatus;
use sqlx::{AssertSqlSafe, PgConnection};
use support::planning::Planning as _;
use support::test_clock::AtTime as _;
use support::{Database, START, plan, report};
use time::Duration;

/// A file below `deploy/`.
fn read_file(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join("deploy").join(name)).unwrap()
}

/// The query of the autoscaler: the indented lines below the key `query`.
fn autoscaler_query() -> String {
    let manifest = read_file("kubernetes/components/keda/queue.yaml");
    let mut lines = manifest.lines().skip_while(|line| !line.trim_start().starts_with("query: >-"));
    let indent = |line: &str| line.len() - line.trim_start().len();
    let depth = indent(lines.next().unwrap());
    let query: Vec<_> = lines.take_while(|line| indent(line) > depth).map(str::trim).collect();
    query.join(" ")
}

async fn execute(connection: &mut PgConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(connection).await.unwrap();
}

async fn query_number(connection: &mut PgConnection, query: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn the_autoscaler_counts_pending_and_leased_lots() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let query = autoscaler_query();
    let mut watcher = database.pool.acquire().await.unwrap();
    execute(&mut watcher, &read_file("postgres/watcher.sql").replace(":'password'", "'secret'"))
        .await;
    execute(&mut watcher, "GRANT arbiter_watcher TO CURRENT_USER").await;
    execute(&mut watcher, "SET ROLE arbiter_watcher").await;
    assert_eq!(query_number(&mut watcher, &query).await, 0);
    let edition = database.edition(5).await;
    let tournament = database.tournament_of(edition).await;
    queue.plan(edition, plan(10, 2)).await.unwrap();
    assert_eq!(
        query_number(&mut watcher, &query).await,
        0,
        "an edition needs no workers before it starts"
    );
    assert!(queue.start(edition).await.unwrap());
    assert_eq!(query_number(&mut watcher, &query).await, 5);
    let lot = queue.lease_at(tournament, 1, START).await.unwrap().pop().unwrap();
    assert_eq!(query_number(&mut watcher, &query).await, 5, "a leased lot needs its worker");
    assert_eq!(
        support::report_all(&queue, &[report(&lot, worker)]).await,
        [ReportStatus::Accepted]
    );
    assert_eq!(query_number(&mut watcher, &query).await, 4);
    assert!(queue.cancel(edition, START).await.unwrap());
    assert_eq!(query_number(&mut watcher, &query).await, 0);
    let as_owner = |statement: &str| format!("RESET ROLE; {statement}; SET ROLE arbiter_watcher");
    let add_trial = "INSERT INTO trials (version, queued_at) SELECT min(id), now() FROM versions";
    execute(&mut watcher, &as_owner(add_trial)).await;
    assert_eq!(query_number(&mut watcher, &query).await, 1, "a trial needs a worker");
    let withdraw_bots = "UPDATE bots SET withdrawn_at = created_at";
    execute(&mut watcher, &as_owner(withdraw_bots)).await;
    assert_eq!(query_number(&mut watcher, &query).await, 0, "a withdrawn bot gets no trial");
    let result = sqlx::query("SELECT hash FROM tokens").fetch_all(&mut *watcher).await;
    assert!(result.unwrap_err().to_string().contains("permission denied"));
    execute(&mut watcher, "RESET ROLE").await;
}

#[tokio::test]
async fn a_restored_database_refuses_reports_of_earlier_leases() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running_edition(4, 4).await;
    let tournament = database.tournament_of(edition).await;
    let first_lot = queue.lease_at(tournament, 1, START).await.unwrap().pop().unwrap();
    let statement = "SELECT id::text FROM installation";
    let old_id: String = sqlx::query_scalar(statement).fetch_one(&database.pool).await.unwrap();
    let mut connection = database.pool.acquire().await.unwrap();
    execute(&mut connection, &read_file("postgres/restored.sql")).await;
    let new_id: String = sqlx::query_scalar(statement).fetch_one(&database.pool).await.unwrap();
    assert_ne!(
        old_id, new_id,
        "a restored database gets a new identity, so workers notice the change"
    );
    assert_eq!(
        support::report_all(&queue, &[report(&first_lot, worker)]).await,
        [ReportStatus::Late]
    );
    let later = START + Duration::SECOND;
    let second_lot = queue.lease_at(tournament, 1, later).await.unwrap().pop().unwrap();
    assert_eq!(
        second_lot.lease.lot, first_lot.lease.lot,
        "the lot of a cancelled lease can be leased again at once"
    );
    assert_eq!(
        support::report_all(&queue, &[report(&second_lot, worker)]).await,
        [ReportStatus::Accepted]
    );
    assert_eq!(database.number("SELECT count(*) FROM faults").await, 0);
}

/// The settings that sqlx itself sends at the start of a session. Poolers accept these.
const DRIVER: [&str; 5] =
    ["DateStyle", "TimeZone", "application_name", "client_encoding", "extra_float_digits"];

#[tokio::test]
async fn the_role_for_poolers_has_the_settings_of_a_direct_session() {
    let database = Database::new().await;
    let mut connection = database.pool.acquire().await.unwrap();
    let client_settings: Vec<String> =
        sqlx::query_scalar("SELECT name FROM pg_settings WHERE source = 'client'")
            .fetch_all(&mut *connection)
            .await
            .unwrap();
    let session_settings: BTreeSet<_> =
        client_settings.iter().map(String::as_str).filter(|name| !DRIVER.contains(name)).collect();
    let text = read_file("postgres/role.sql");
    let settings =
        text.lines().filter_map(|line| line.strip_prefix("ALTER ROLE CURRENT_USER SET "));
    let role_settings: Vec<_> = settings.map(|line| line.split_once(" = ").unwrap()).collect();
    assert_eq!(
        role_settings.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(),
        session_settings
    );
    for (name, value) in role_settings {
        let statement = format!("SELECT current_setting('{name}')");
        let current = || sqlx::query_scalar::<_, String>(AssertSqlSafe(statement.clone()));
        let before = current().fetch_one(&mut *connection).await.unwrap();
        execute(&mut connection, &format!("SET {name} = {value}")).await;
        assert_eq!(current().fetch_one(&mut *connection).await.unwrap(), before, "{name}");
    }
}

//! The private Postgres server: creation, restart, stop, access, and errors with a remedy.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use arbiter_coordinator::postgres::{Durability, Postgres, PostgresError};
use sqlx::{Connection as _, PgConnection};

/// Runs a statement that returns a number.
async fn query_number(postgres: &Postgres, statement: &'static str) -> i32 {
    let options = postgres.options("postgres");
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_restarted_cluster_keeps_its_data() {
    let data = tempfile::tempdir().unwrap();
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    query_number(&postgres, "WITH one AS (SELECT 1) SELECT 1 FROM one").await;
    let mut connection = PgConnection::connect(&postgres.url("postgres")).await.unwrap();
    sqlx::query("CREATE TABLE numbers AS SELECT 7 AS number")
        .execute(&mut connection)
        .await
        .unwrap();
    // The server stops even if a connection is open.
    postgres.stop();
    assert!(sqlx::query("SELECT 1").execute(&mut connection).await.is_err());
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    assert_eq!(query_number(&postgres, "SELECT number FROM numbers").await, 7);
}

/// A client of the socket needs the password. With the password it can use the database, but no
/// files and no programs. This matters because bots at sandbox level C run as the server's user.
#[tokio::test]
async fn connections_need_the_password() {
    let data = tempfile::tempdir().unwrap();
    // `Durability::Unsynced` would allow the role to create other roles; some tests need that.
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    let password_file = data.path().join("postgres.password");
    assert_eq!(fs::metadata(&password_file).unwrap().permissions().mode() & 0o777, 0o600);
    let options = postgres.options("postgres");
    for user in ["postgres", "arbiter", "root", "nobody"] {
        for password in ["", "postgres", "arbiter"] {
            let stranger = options.clone().username(user).password(password);
            assert!(PgConnection::connect_with(&stranger).await.is_err(), "{user} {password:?}");
        }
    }
    let password = fs::read_to_string(&password_file).unwrap();
    let superuser = options.clone().username("postgres").password(password.trim());
    assert!(PgConnection::connect_with(&superuser).await.is_err(), "the superuser can connect");
    for statement in [
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "COPY (SELECT 1) TO '/tmp/arbiter-copied'",
        "CREATE TABLE read (line text); COPY read FROM '/etc/passwd'",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "CREATE FUNCTION run() RETURNS int LANGUAGE c AS 'libc.so.6', 'system'",
        "ALTER SYSTEM SET archive_command = 'cat'",
        "ALTER ROLE arbiter SUPERUSER",
        "GRANT pg_execute_server_program TO arbiter",
        "SET ROLE postgres",
    ] {
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        let error = sqlx::raw_sql(statement).execute(&mut connection).await.unwrap_err();
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code).unwrap();
        assert_eq!(code, "42501", "{statement}: {error}");
    }
}

/// Clusters of earlier versions accept every client of the socket, and the superuser owns all data.
#[tokio::test]
async fn a_cluster_without_a_password_is_migrated() {
    let data = tempfile::tempdir().unwrap();
    Postgres::start(data.path(), Durability::Unsynced).unwrap().stop();
    let cluster = data.path().join("postgres");
    let password_file = data.path().join("postgres.password");
    let postgres = Postgres::start(data.path(), Durability::Unsynced).unwrap();
    let options = postgres.options("postgres");
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    let tables = "CREATE TABLE parts (id serial, at int, also int GENERATED ALWAYS AS IDENTITY)
                      PARTITION BY RANGE (at);
                  CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
                  CREATE SEQUENCE loose; CREATE VIEW seen AS SELECT at FROM parts;
                  CREATE TYPE kind AS ENUM ('a'); CREATE TYPE pair AS (a int, b int);
                  CREATE DOMAIN small AS int CHECK (VALUE < 10);
                  CREATE FUNCTION one() RETURNS int LANGUAGE sql RETURN 1;
                  INSERT INTO parts (at) VALUES (7)";
    sqlx::raw_sql(tables).execute(&mut connection).await.unwrap();
    drop(connection);
    postgres.stop();
    // Restore the state of an earlier version: the superuser owns all data and is the only role.
    let script =
        "REASSIGN OWNED BY arbiter TO postgres\nDROP OWNED BY arbiter\nDROP ROLE arbiter\n";
    execute_offline(data.path(), script);
    fs::write(cluster.join("pg_hba.conf"), "local all all trust\n").unwrap();
    fs::remove_file(&password_file).unwrap();

    let postgres = Postgres::start(data.path(), Durability::Unsynced).unwrap();
    let superuser = postgres.options("postgres").username("postgres");
    assert!(PgConnection::connect_with(&superuser).await.is_err());
    assert_eq!(query_number(&postgres, "SELECT at FROM seen").await, 7);
    let options = postgres.options("postgres");
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    let change = "ALTER TABLE parts ADD more int; ALTER TABLE parts_1 RENAME TO parts_2;
                  DROP SEQUENCE loose; DROP TYPE kind, pair; DROP DOMAIN small; DROP FUNCTION one;
                  INSERT INTO parts (at, more) VALUES (1, 1); DROP TABLE parts CASCADE";
    sqlx::raw_sql(change).execute(&mut connection).await.unwrap();
    postgres.stop();
    // The password does not change at the next start.
    let password = fs::read(&password_file).unwrap();
    Postgres::start(data.path(), Durability::Unsynced).unwrap().stop();
    assert_eq!(fs::read(&password_file).unwrap(), password);
}

/// Runs statements as the superuser of a cluster whose server is stopped.
fn execute_offline(data: &Path, statements: &str) {
    let binaries = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = fs::read_to_string(data.join("postgres/PG_VERSION")).unwrap();
    let installed = binaries.map(|entry| entry.path()).find(|path| path.ends_with(version.trim()));
    let program = std::env::var_os("PG_BIN")
        .map_or_else(|| installed.expect("PostgreSQL is installed").join("bin"), Into::into)
        .join("postgres");
    #[expect(clippy::disallowed_methods, reason = "the server's own program, not a bot")]
    let mut command = std::process::Command::new(program);
    let mut script = tempfile::tempfile().unwrap();
    script.write_all(statements.as_bytes()).unwrap();
    script.rewind().unwrap();
    command.current_dir("/").args(["--single", "-c", "exit_on_error=on", "-D"]);
    command.arg(data.join("postgres")).arg("postgres").stdin(script);
    let owner = fs::metadata(data.join("postgres")).unwrap();
    if rustix::process::geteuid().is_root() {
        command.uid(owner.uid()).gid(owner.gid());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_killed_cluster_recovers() {
    let data = tempfile::tempdir().unwrap();
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    let mut connection = PgConnection::connect(&postgres.url("postgres")).await.unwrap();
    sqlx::query("CREATE TABLE numbers AS SELECT 7 AS number")
        .execute(&mut connection)
        .await
        .unwrap();
    let pid = rustix::process::Pid::from_raw(postgres.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    drop(postgres);
    drop(connection);
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    assert_eq!(query_number(&postgres, "SELECT number FROM numbers").await, 7);
}

#[tokio::test]
async fn durability_is_as_configured() {
    for (durability, fsync) in [(Durability::Synced, 1), (Durability::Unsynced, 0)] {
        let data = tempfile::tempdir().unwrap();
        let postgres = Postgres::start(data.path(), durability).unwrap();
        let fsync_setting = "SELECT current_setting('fsync')::bool::int";
        assert_eq!(query_number(&postgres, fsync_setting).await, fsync);
        assert_eq!(
            query_number(&postgres, "SELECT (current_setting('listen_addresses') = '')::int").await,
            1
        );
    }
}

#[tokio::test]
async fn a_long_path_gets_a_short_socket() {
    let data = tempfile::tempdir().unwrap();
    let long = data.path().join("long".repeat(30));
    let postgres = Postgres::start(&long, Durability::Unsynced).unwrap();
    assert_eq!(query_number(&postgres, "SELECT 1").await, 1);
}

#[test]
fn data_of_another_version_is_refused_with_a_remedy() {
    let data = tempfile::tempdir().unwrap();
    let cluster = data.path().join("postgres");
    fs::create_dir(&cluster).unwrap();
    fs::write(cluster.join("PG_VERSION"), "9.6\n").unwrap();
    let error = Postgres::start(data.path(), Durability::Unsynced).unwrap_err();
    assert!(matches!(&error, PostgresError::Version { written, .. } if written == "9.6"));
    assert!(error.to_string().contains("install version 9.6, set PG_BIN to its programs"));
}

#[test]
fn a_failed_start_names_its_cause() {
    let data = tempfile::tempdir().unwrap();
    Postgres::start(data.path(), Durability::Unsynced).unwrap().stop();
    fs::remove_file(data.path().join("postgres/global/pg_control")).unwrap();
    let error = Postgres::start(data.path(), Durability::Unsynced).unwrap_err();
    assert!(error.to_string().contains("postgres.log"), "{error}");
}

#[test]
fn an_error_names_the_directory_that_cannot_be_created() {
    let error = Postgres::start(Path::new("/proc/arbiter"), Durability::Unsynced).unwrap_err();
    assert!(error.to_string().starts_with("cannot create the directory /proc/arbiter"), "{error}");
}

#[test]
fn an_error_names_the_directory_without_access() {
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let result = Postgres::start(&closed.path().join("data"), Durability::Unsynced);
    if rustix::process::geteuid().is_root() {
        let error = result.unwrap_err().to_string();
        let remedy = format!("chmod o+x {}", closed.path().canonicalize().unwrap().display());
        assert!(error.contains(&remedy) && error.contains("--data"), "{error}");
    } else {
        result.unwrap();
    }
}

/// The environment variable with the data directory of [`start_server_and_wait`].
const DATA_VARIABLE: &str = "ARBITER_TEST_DATA";

#[test]
#[ignore = "the next test runs it in a process that it kills"]
fn start_server_and_wait() {
    let data = std::env::var_os(DATA_VARIABLE).unwrap();
    let postgres = Postgres::start(Path::new(&data), Durability::Synced).unwrap();
    println!("server {}", postgres.pid());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// If the program is killed, its server ends, and another program can start with the same data.
#[test]
fn the_server_ends_with_the_program() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    let data = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "this program again, not a bot")]
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "start_server_and_wait", "--ignored", "--nocapture"]);
    program.env(DATA_VARIABLE, data.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pid = lines
        .map(Result::unwrap)
        .find_map(|line| line.split_once("server ").map(|(_, pid)| pid.parse::<i32>().unwrap()));
    let server = pidfd_open(Pid::from_raw(pid.unwrap()).unwrap(), PidfdFlags::empty()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    let event_count = poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(event_count, 1, "the server is still running");
    Postgres::start(data.path(), Durability::Synced).unwrap().stop();
}

//! The private Postgres: made, started again where it was, stopped, and refused with a remedy.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use arbiter_coordinator::postgres::{Durability, Postgres, PostgresError};
use sqlx::{Connection as _, PgConnection};

/// Asks the cluster's own database for one number.
async fn ask(postgres: &Postgres, statement: &'static str) -> i32 {
    let options = postgres.options("postgres");
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn it_goes_on_where_it_was() {
    let data = tempfile::tempdir().unwrap();
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    ask(&postgres, "WITH made AS (SELECT 1) SELECT 1 FROM made").await;
    let mut connection = PgConnection::connect(&postgres.url("postgres")).await.unwrap();
    sqlx::query("CREATE TABLE kept AS SELECT 7 AS number").execute(&mut connection).await.unwrap();
    // Stopping does not wait for connections that are still open.
    postgres.stop();
    assert!(sqlx::query("SELECT 1").execute(&mut connection).await.is_err());
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    assert_eq!(ask(&postgres, "SELECT number FROM kept").await, 7);
}

#[tokio::test]
async fn it_recovers_from_being_killed() {
    let data = tempfile::tempdir().unwrap();
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    let mut connection = PgConnection::connect(&postgres.url("postgres")).await.unwrap();
    sqlx::query("CREATE TABLE kept AS SELECT 7 AS number").execute(&mut connection).await.unwrap();
    let pid = rustix::process::Pid::from_raw(postgres.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    drop(postgres);
    drop(connection);
    let postgres = Postgres::start(data.path(), Durability::Synced).unwrap();
    assert_eq!(ask(&postgres, "SELECT number FROM kept").await, 7);
}

#[tokio::test]
async fn durability_is_as_asked() {
    for (durability, fsync) in [(Durability::Synced, 1), (Durability::Fleeting, 0)] {
        let data = tempfile::tempdir().unwrap();
        let postgres = Postgres::start(data.path(), durability).unwrap();
        let asked = "SELECT current_setting('fsync')::bool::int";
        assert_eq!(ask(&postgres, asked).await, fsync);
        assert_eq!(
            ask(&postgres, "SELECT (current_setting('listen_addresses') = '')::int").await,
            1
        );
    }
}

#[tokio::test]
async fn a_long_path_gets_a_short_socket() {
    let data = tempfile::tempdir().unwrap();
    let long = data.path().join("long".repeat(30));
    let postgres = Postgres::start(&long, Durability::Fleeting).unwrap();
    assert_eq!(ask(&postgres, "SELECT 1").await, 1);
}

#[test]
fn data_of_another_version_are_refused_with_a_remedy() {
    let data = tempfile::tempdir().unwrap();
    let cluster = data.path().join("postgres");
    fs::create_dir(&cluster).unwrap();
    fs::write(cluster.join("PG_VERSION"), "9.6\n").unwrap();
    let error = Postgres::start(data.path(), Durability::Fleeting).unwrap_err();
    assert!(matches!(&error, PostgresError::Version { written, .. } if written == "9.6"));
    assert!(error.to_string().contains("install version 9.6 or name its programs in PG_BIN"));
}

#[test]
fn a_cluster_that_does_not_start_says_why() {
    let data = tempfile::tempdir().unwrap();
    Postgres::start(data.path(), Durability::Fleeting).unwrap().stop();
    fs::remove_file(data.path().join("postgres/global/pg_control")).unwrap();
    let error = Postgres::start(data.path(), Durability::Fleeting).unwrap_err();
    assert!(error.to_string().contains("postgres.log"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let error = Postgres::start(Path::new("/proc/arbiter"), Durability::Fleeting).unwrap_err();
    assert!(error.to_string().starts_with("cannot make the directory /proc/arbiter"), "{error}");
}

#[test]
fn a_directory_that_its_user_cannot_reach_is_named() {
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let started = Postgres::start(&closed.path().join("data"), Durability::Fleeting);
    if rustix::process::geteuid().is_root() {
        let error = started.unwrap_err().to_string();
        let remedy = format!("chmod o+x {}", closed.path().canonicalize().unwrap().display());
        assert!(error.contains(&remedy) && error.contains("--data"), "{error}");
    } else {
        started.unwrap();
    }
}

/// Where the server of [`holds_a_server`] has its data.
const HELD: &str = "ARBITER_TEST_HELD";

#[test]
#[ignore = "run by the test below, in a process that is killed"]
fn holds_a_server() {
    let data = std::env::var_os(HELD).unwrap();
    let postgres = Postgres::start(Path::new(&data), Durability::Synced).unwrap();
    println!("server {}", postgres.pid());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// However a program ends, its server ends with it, and the next one takes the data up.
#[test]
fn the_server_dies_with_the_program() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    let data = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "this program again, not a bot")]
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "holds_a_server", "--ignored", "--nocapture"]);
    program.env(HELD, data.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pid = lines
        .map(Result::unwrap)
        .find_map(|line| line.split_once("server ").map(|(_, pid)| pid.parse::<i32>().unwrap()));
    let server = pidfd_open(Pid::from_raw(pid.unwrap()).unwrap(), PidfdFlags::empty()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ended, 1, "the server has ended");
    Postgres::start(data.path(), Durability::Synced).unwrap().stop();
}

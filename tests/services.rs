//! The services as operators start them, with valid and invalid arguments: messages, exit codes,
//! and no partial writes.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use arbiter_coordinator::postgres::Durability;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};
use support::service::{Database, Service, done, free_address, wait_until};
use support::up::Up;
use support::{Bots, arbiter};

/// Expects exit code `code` and a short message that contains all of `says`.
fn refused(output: &Output, code: i32, says: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!((1..=2).contains(&message.lines().count()), "{message}");
    for part in says {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

/// Like [`refused`], for a service that may have logged other lines before.
fn ends(command: &mut Command, code: i32, says: &[&str]) {
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let last: Vec<_> = message.lines().filter(|line| !line.starts_with('{')).collect();
    assert!((1..=2).contains(&last.len()), "{message}");
    for part in says {
        assert!(last.join("\n").contains(part), "{message:?} lacks {part:?}");
    }
    assert_eq!(output.status.code(), Some(code), "{message}");
}

/// Changes a database directly.
#[tokio::main(flavor = "current_thread")]
async fn execute(database: &Database, statement: &'static str) {
    let options = database.postgres.options("postgres");
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// A coordinator with a new database.
struct Site {
    database: Database,
    coordinator: Service,
    server: String,
    admin: String,
    directory: tempfile::TempDir,
}

impl Site {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::start(Durability::Unsynced);
        let admin = database.token("admin");
        let address = free_address();
        let mut command = database.coordinator(address);
        let mut coordinator = Service::start(&mut command, &directory.path().join("coordinator"));
        coordinator.wait_for_log("serving");
        Self { database, coordinator, server: format!("http://{address}"), admin, directory }
    }

    /// A client command with a token.
    fn command(&self, token: &str, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", &self.server);
        command.env("ARBITER_TOKEN", token);
        command
    }

    /// The output of a command of the administrator, which must succeed.
    fn succeed(&self, words: &str) -> String {
        done(&self.command(&self.admin, words).output().unwrap())
    }

    /// A worker with a token and a spool.
    fn worker(&self, token: &str, spool: &str) -> Command {
        let mut command = self.command(token, "worker --slots 1 --sandbox off --spool");
        command.arg(self.directory.path().join(spool));
        command
    }

    /// A tournament file.
    fn file(&self, text: &str) -> String {
        let path = self.directory.path().join("file.toml");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn a_coordinator_explains_errors_of_its_database() {
    let database = Database::start(Durability::Unsynced);
    let grpc = free_address();
    let at = |url: &str| {
        let mut command = arbiter();
        command.args(["coordinator", "--database-url", url, "--grpc", &grpc.to_string()]);
        command
    };
    ends(&mut at("nonsense"), 2, &["invalid database URL", "postgres://USER@HOST/NAME"]);
    let nowhere = "postgres://ada:secret@localhost/x?host=/nowhere";
    ends(&mut at(nowhere), 3, &["cannot connect to the database x at /nowhere", "is it running"]);
    let silent = at(nowhere).output().unwrap();
    assert!(!String::from_utf8_lossy(&silent.stderr).contains("secret"), "no password is shown");
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let down = format!("postgres://ada:secret@{unused}/x");
    ends(&mut at(&down), 3, &["the database x at", &unused.to_string(), "refused"]);
    let missing = database.postgres.url("missing");
    ends(&mut at(&missing), 3, &["cannot connect to the database missing", "does not exist"]);
    let mut command = at(&database.url());
    ends(command.args(["--lease", "1ms"]), 2, &["--lease 1ms", "1s to 24h"]);

    let listener = TcpListener::bind(grpc).unwrap();
    let port = grpc.port().to_string();
    ends(&mut at(&database.url()), 3, &["--grpc", &port, "choose another"]);
    drop(listener);

    // The database has a migration of a future version.
    let admin_token = database.token("admin");
    assert!(admin_token.starts_with("arb_"), "{admin_token}");
    execute(
        &database,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'to come', true, '', 0)",
    );
    // The migration is compatible with this version, so a coordinator that is restarted during an
    // upgrade serves.
    assert!(database.token("worker").starts_with("arb_"));
    execute(&database, "UPDATE compatibility SET oldest = 9999");
    ends(&mut at(&database.url()), 3, &["later version of arbiter", "9999", "install"]);
    let mut token = arbiter();
    token.args(["token", "create", "--role", "admin", "--database-url", &database.url()]);
    ends(&mut token, 3, &["later version of arbiter", "9999"]);

    // A fake server with an old version number.
    execute(
        &database,
        "CREATE SCHEMA old;
         CREATE FUNCTION old.current_setting(text) RETURNS text
             LANGUAGE sql RETURN pg_catalog.replace('130012', '', '');
         ALTER DATABASE postgres SET search_path = old, public, pg_catalog",
    );
    ends(&mut at(&database.url()), 3, &["runs PostgreSQL 13", "14 or later"]);
}

#[test]
fn a_coordinator_without_tokens_says_how_to_create_one() {
    let database = Database::start(Durability::Unsynced);
    let directory = tempfile::tempdir().unwrap();
    let address = free_address();
    let log = directory.path().join("log");
    let mut coordinator = Service::start(&mut database.coordinator(address), &log);
    coordinator.wait_for_log("arbiter token create --role admin --database-url");
    coordinator.wait_for_log("serving");
    let mut list = arbiter();
    list.args(["token", "list", "--server", &format!("http://{address}")]);
    refused(&list.output().unwrap(), 3, &["needs a token of role organiser", "ARBITER_TOKEN"]);
    let admin = database.token("admin");
    assert!(done(&list.args(["--token", &admin]).output().unwrap()).contains("admin"));
    let mut nameless = arbiter();
    nameless.args(["token", "create", "--role", "admin", "--name", "", "--database-url"]);
    refused(&nameless.arg(database.url()).output().unwrap(), 2, &["1 to 64 characters"]);
    let mut nowhere = arbiter();
    nowhere.args(["token", "create", "--role", "admin", "--database-url", "nowhere"]);
    refused(&nowhere.output().unwrap(), 2, &["postgres://USER@HOST/NAME"]);
    assert_eq!(coordinator.stop(), Some(0));
}

#[test]
fn a_worker_needs_a_worker_token() {
    let mut site = Site::open();
    let create =
        |role: &str| site.succeed(&format!("token create --role {role}")).trim().to_owned();
    let player = create("player");
    let revoked = create("worker");
    let tokens = site.succeed("token list --json");
    let last: Value = serde_json::from_str(tokens.lines().last().unwrap()).unwrap();
    site.succeed(&format!("token revoke {}", last["id"]));
    let refusals = [
        ("", "needs a token of role worker"),
        ("arb_0000", "the token is unknown, revoked"),
        (&player, "needs a token of role worker, not player"),
        (&revoked, "the token is unknown, revoked"),
    ];
    for (token, says) in refusals {
        let says = [&site.server, "refused", says, "set --token or ARBITER_TOKEN"];
        ends(&mut site.worker(token, "spool"), 3, &says);
    }
    let mut command = site.worker("a\nb", "spool");
    ends(&mut command, 2, &["the token", "it has a space or a line break in it"]);
    let mut command = site.worker(&player, "spool");
    ends(command.env("ARBITER_SERVER", "localhost"), 2, &["localhost", "http://HOST:PORT"]);
    let mut command = site.worker(&player, "spool");
    ends(command.args(["--drain", "soon"]), 2, &["--drain soon", "whole number and a unit"]);

    let mut command = site.database.coordinator(free_address());
    ends(
        command.args(["--tricks-mode", "tset"]),
        2,
        &["--tricks-mode", "tset", "official", "test"],
    );

    let pass = create("worker");
    let log = site.directory.path().join("worker");
    let mut worker = Service::start(&mut site.worker(&pass, "spool"), &log);
    worker.wait_for_log("connected");
    ends(&mut site.worker(&pass, "spool"), 3, &["spool", "another worker", "--spool"]);
    // Open connections do not delay the shutdown of the coordinator.
    assert_eq!(site.coordinator.stop(), Some(0), "{}", site.coordinator.log());
    let log = site.coordinator.log();
    assert!(!log.contains("not stored"), "no worker had reported anything: {log}");
    assert_eq!(worker.stop(), Some(0), "{}", worker.log());
}

#[test]
fn a_worker_waits_for_its_coordinator() {
    let mut site = Site::open();
    let pass = site.succeed("token create --role worker").trim().to_owned();
    let address: std::net::SocketAddr = site.server["http://".len()..].parse().unwrap();
    assert_eq!(site.coordinator.stop(), Some(0), "{}", site.coordinator.log());
    let log = site.directory.path().join("worker");
    let mut worker = Service::start(&mut site.worker(&pass, "spool"), &log);
    wait_until("the worker retries", || {
        worker.log().matches("no coordinator; retrying").count() >= 3
    });
    assert_eq!(worker.stop(), Some(0), "{}", worker.log());
    let mut worker = Service::start(&mut site.worker(&pass, "spool"), &log);
    wait_until("the worker still retries", || {
        worker.log().matches("no coordinator; retrying").count() >= 6
    });
    let mut command = site.database.coordinator(address);
    site.coordinator = Service::start(&mut command, &site.directory.path().join("coordinator"));
    worker.wait_for_log("connected");
    worker.signal(Signal::INT);
    assert_eq!(worker.wait(), Some(0), "{}", worker.log());
}

/// `up` starts a killed worker again.
#[test]
fn the_coordinator_outlives_its_worker() {
    let up = Up::start(1);
    up.create_cup("");
    let mut workers = vec![up.worker()];
    let kill = |workers: &mut Vec<Pid>| {
        kill_process(workers[workers.len() - 1], Signal::KILL).unwrap();
        wait_until("another worker is started", || !workers.contains(&up.worker()));
        workers.push(up.worker());
    };
    kill(&mut workers);
    up.succeed("tournament start cup");
    // The new worker is killed while it plays.
    wait_until("a match is played", || up.newest("cup")["counted"].as_u64() > Some(0));
    kill(&mut workers);
    up.wait_for("cup", 1);
    assert_eq!(up.json("ranking cup").len(), 3, "the leaderboard is complete");
    up.succeed("tournament check cup");
    up.close();
}

/// The response to a request whose client half-closes the connection after it.
fn answer(address: std::net::SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn tricks_is_served_in_test_mode_if_the_operator_says_so() {
    let up = Up::start_with("ARBITER_TRICKS_MODE", "test");
    let page = answer(up.http, "GET /tricks HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Test mode"), "{page}");
    let body = format!("token={}&_games=2", up.token("player --name ada"));
    let length = body.len();
    let begin = format!("POST /tricks.php HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
    let begun = answer(up.http, &begin);
    assert!(begun.contains("scores: 0:0 0:0"), "{begun}");
    up.close();
}

#[test]
fn the_worker_ends_when_up_is_killed() {
    let mut up = Up::start(1);
    let worker = pidfd_open(up.worker(), PidfdFlags::empty()).unwrap();
    up.kill();
    let soon = Timespec { tv_sec: 60, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&worker, PollFlags::IN)], Some(&soon)).unwrap();
    assert_eq!(ended, 1, "the worker has ended");
}

#[test]
fn up_ends_when_its_worker_cannot_start() {
    let data = tempfile::tempdir().unwrap();
    fs::set_permissions(data.path(), Permissions::from_mode(0o755)).unwrap();
    for name in ["lock", "spool"] {
        fs::write(data.path().join(name), "").unwrap();
    }
    let mut command = arbiter();
    command.args(["up", "--grpc", &free_address().to_string(), "--http", "127.0.0.1:0"]);
    command.args(["--slots", "1", "--sandbox", "off", "--data"]).arg(data.path());
    ends(&mut command, 3, &["spool"]);
}

/// A tournament of gomoku with house bots.
fn gomoku(name: &str, house: &[&str]) -> String {
    format!("name = \"{name}\"\ngame = \"gomoku\"\n[house]\nbots = {house:?}\n")
}

#[test]
fn mistakes_of_organisers_are_explained_and_change_nothing() {
    let site = Site::open();
    let bots = Bots::new();
    let one = bots.rascal("one", "honest", 0, "");
    let two = bots.rascal("two", "honest", 0, "");
    let create = |text: &str, code, says: &[&str]| {
        let mut command = site.command(&site.admin, "tournament create");
        refused(&command.arg(site.file(text)).output().unwrap(), code, says);
    };
    create("name = \"cup\"\ngame = gomoku\n", 2, &["file.toml", "line 2"]);
    create("name = \"cup\"\ngame = \"chess\"\n", 2, &["line 2", "game", "chess", "wojna"]);
    create(
        "name = \"cup\"\ngame = \"gomoku\"\n\n[params]\nmove_limits = \"1s\"\n",
        2,
        &["line 5", "move_limits", "move_limit"],
    );
    create("game = \"gomoku\"\n", 2, &["name", "missing"]);
    let missing = bots.path().join("missing");
    create(&gomoku("cup", &[&one, missing.to_str().unwrap()]), 2, &["missing", "No such file"]);
    create(&gomoku("cup", &[&one, &two, &one]), 2, &["two bots named one", "rename one"]);
    let broken = bots.rascal("broken", "honest", 0, "protcol = \"stdio\"\n");
    create(&gomoku("cup", &[&one, &broken]), 2, &["bot.toml", "protcol"]);
    let mut absent = site.command(&site.admin, "tournament create /nowhere.toml");
    refused(&absent.output().unwrap(), 2, &["/nowhere.toml", "No such file"]);
    assert_eq!(site.succeed("tournament list --json"), "", "no refused tournament was created");

    for words in [
        "tournament show cup",
        "tournament start cup",
        "tournament watch cup",
        "tournament cancel cup",
        "tournament check cup",
        "ranking cup",
        "bots cup",
        "match cup/2",
    ] {
        let output = site.command(&site.admin, words).output().unwrap();
        refused(&output, 2, &["there is no", words.rsplit(' ').next().unwrap()]);
    }
    let to = site.directory.path().join("export");
    let mut export = site.command(&site.admin, "tournament export cup --out");
    refused(&export.arg(&to).output().unwrap(), 2, &["there is no tournament", "cup"]);
    assert!(!to.exists());
    let mut submit = site.command(&site.admin, "submit cup");
    refused(&submit.arg(&one).output().unwrap(), 2, &["there is no tournament", "cup"]);

    let file = site.file(&gomoku("cup", &[&one]));
    let create = |words: &str| site.command(&site.admin, words).arg(&file).output().unwrap();
    done(&create("tournament create"));
    refused(&create("tournament create"), 2, &["a tournament cup exists already", "another name"]);
    let start = || site.command(&site.admin, "tournament start cup").output().unwrap();
    refused(&start(), 1, &["cannot plan cup", "too few bots", "1", "at least 2"]);
    assert_eq!(
        show(&site, "cup")["editions"],
        Value::Array(Vec::new()),
        "no partial edition exists"
    );
    done(&site.command(&site.admin, "submit cup --house").arg(&two).output().unwrap());
    done(&start());
    refused(&start(), 1, &["edition 1 of cup is still running", "wait"]);
    site.succeed("tournament cancel cup");
    refused(&start(), 1, &["cup was cancelled", "create another"]);
    let mut submit = site.command(&site.admin, "submit cup");
    refused(&submit.arg(&one).output().unwrap(), 1, &["cup is over"]);
}

#[test]
fn a_closing_time_in_the_past_gives_a_warning() {
    let site = Site::open();
    let bots = Bots::new();
    let one = bots.rascal("one", "honest", 0, "");
    let late = gomoku("late", &[&one]) + "[submissions]\ncloses = \"2020-03-01T12:00:00Z\"\n";
    let mut create = site.command(&site.admin, "tournament create");
    let stdout = done(&create.arg(site.file(&late)).output().unwrap());
    assert!(stdout.contains("warning: entry closed at 2020-03-01 12:00:00 UTC"), "{stdout}");
    assert_eq!(show(&site, "late")["state"], "open", "the tournament is created");
}

/// The JSON of a tournament.
fn show(site: &Site, name: &str) -> Value {
    serde_json::from_str(&site.succeed(&format!("tournament show {name} --json"))).unwrap()
}

#[test]
fn each_role_has_only_its_permissions() {
    let site = Site::open();
    let bots = Bots::new();
    let one = bots.rascal("one", "honest", 0, "");
    let token = |role: &str| site.succeed(&format!("token create --role {role}")).trim().to_owned();
    let organiser = token("organiser");
    let player = token("player");
    let worker = token("worker");
    let other = token("player");
    let file = "name = \"cup\"\ngame = \"gomoku\"\n\n[submissions]\npreflight = false\n";
    let file = site.file(file);
    let call = |token: &str, words: &str, rest: &[&str]| {
        site.command(token, words).args(rest).output().unwrap()
    };
    for (token, has) in [(&player, "not player"), (&worker, "not worker")] {
        let output = call(token, "tournament create", &[&file]);
        refused(&output, 3, &["needs a token of role organiser", has, "ARBITER_TOKEN"]);
    }
    refused(&call("", "tournament create", &[&file]), 3, &["needs a token of role organiser"]);
    assert_eq!(site.succeed("tournament list --json"), "");
    done(&call(&organiser, "tournament create", &[&file]));
    let create = call(&organiser, "token create --role admin", &[]);
    refused(&create, 3, &["needs a token of role admin, not organiser"]);
    let listed = done(&call(&organiser, "token list", &[]));
    assert!(listed.contains("player") && !listed.contains("worker"), "{listed}");
    for words in ["tournament start cup", "tournament cancel cup"] {
        refused(&call(&player, words, &[]), 3, &["needs a token of role organiser, not player"]);
    }
    refused(&call(&worker, "submit cup", &[&one]), 3, &["role player, not worker"]);
    refused(&call(&player, "submit cup --house", &[&one]), 3, &["house bots", "organisers"]);
    assert_eq!(site.succeed("bots cup --json"), "");
    done(&call(&player, "submit cup", &[&one]));
    refused(&call(&other, "log cup one", &[]), 3, &["one"]);
    done(&call(&player, "log cup one", &[]));
    let versions: Value = serde_json::from_str(&site.succeed("bots cup --json")).unwrap();
    assert_eq!(versions["version"], 1, "{versions}");
}

#[test]
fn up_continues_in_its_data_directory_after_a_stop() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let address = free_address();
    let up = |data: &Path| {
        let mut command = arbiter();
        command.args(["up", "--grpc", &address.to_string(), "--slots", "1", "--sandbox", "off"]);
        command.arg("--data").arg(data);
        command
    };
    let foreign = directory.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "all of it").unwrap();
    ends(&mut up(&foreign), 2, &["foreign", "not Arbiter's", "empty directory"]);
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1, "no data directory was created");
    let listener = TcpListener::bind(address).unwrap();
    ends(&mut up(&data), 3, &["--grpc", &address.to_string(), "choose another"]);
    drop(listener);

    let log = directory.path().join("log");
    let mut running = Service::start(&mut up(&data), &log);
    running.wait_for_log("serving at");
    ends(&mut up(&data), 3, &["data", &format!("process {}", running.pid()), "another directory"]);
    let command = |words: &str| {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", format!("http://{address}"));
        let token = fs::read_to_string(data.join("admin.token")).unwrap();
        command.env("ARBITER_TOKEN", token.trim());
        command
    };
    let file = directory.path().join("cup.toml");
    fs::write(&file, "name = \"cup\"\ngame = \"gomoku\"\n").unwrap();
    done(&command("tournament create").arg(&file).output().unwrap());
    assert_eq!(running.stop(), Some(0), "{}", running.log());
    let lock = data.join("postgres/postgres/postmaster.pid");
    assert!(!lock.exists(), "the database was shut down cleanly");

    let mut running = Service::start(&mut up(&data), &directory.path().join("again"));
    running.wait_for_log("serving at");
    assert!(done(&command("tournament list").output().unwrap()).contains("cup"));
    // `up` starts a killed database again.
    let server = fs::read_to_string(&lock).unwrap();
    let server = Pid::from_raw(server.lines().next().unwrap().parse().unwrap()).unwrap();
    kill_process(server, Signal::KILL).unwrap();
    running.wait_for_log("Postgres ended unexpectedly and was restarted");
    assert!(done(&command("tournament list").output().unwrap()).contains("cup"));
    running.kill();
    let mut running = Service::start(&mut up(&data), &directory.path().join("killed"));
    running.wait_for_log("serving at");
    assert!(done(&command("tournament list").output().unwrap()).contains("cup"));
    running.signal(Signal::INT);
    assert_eq!(running.wait(), Some(0), "{}", running.log());
    assert!(!lock.exists());
}

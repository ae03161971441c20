//! A lying worker plays a tournament beside two honest ones. It is detected and suspended. When its
//! matches are declared void, the leaderboard equals that of a tournament without it, byte for
//! byte.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "the tests of pages use more of it")]
#[path = "../web/browser.rs"]
mod browser;
mod proxy;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use arbiter_coordinator::postgres::Durability;
use browser::Browser;
use proxy::{Lie, Proxy};
use rustix::process::Signal;
use serde_json::Value;
use support::arbiter;
use support::presets::TRICKS_BOTS;
use support::service::{Database, Service, done, free_address, wait_until};
use tempfile::TempDir;

/// A tournament of deterministic bots with enough time on the slowest machine.
const TOURNAMENT: &str = r#"
name = "open"
game = "tricks"
seed = "a hostile worker"

[params]
tables = 4
move_limit = "60s"

[schedule]
kind = "round_robin"
legs = 10

[submissions]
preflight = false
window = "0ms"

[clock]
startup = "60s"
"#;

/// The lying worker.
const LIAR: &str = "attic";

/// A coordinator with its workers, and the organiser.
struct Site {
    database: Database,
    coordinator: Service,
    workers: Vec<Service>,
    tokens: BTreeMap<&'static str, String>,
    server: String,
    http: SocketAddr,
    metrics: SocketAddr,
    organiser: String,
    directory: TempDir,
}

impl Site {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::start(Durability::Unsynced);
        let [grpc, http, metrics] = std::array::from_fn(|_| free_address());
        let mut command = database.coordinator(grpc);
        command.args(["--http", &http.to_string(), "--lease", "15s"]);
        command.args(["--metrics", &metrics.to_string()]);
        let mut coordinator = Service::start(&mut command, &directory.path().join("coordinator"));
        coordinator.wait_for_log("serving");
        let organiser = database.token("admin");
        let server = format!("http://{grpc}");
        let workers = Vec::new();
        let tokens = BTreeMap::new();
        Self { database, coordinator, workers, tokens, server, http, metrics, organiser, directory }
    }

    /// Starts a worker that uses this address of the coordinator; each name has its token.
    fn worker(&mut self, name: &'static str, server: &str) {
        let token = self.tokens.entry(name).or_insert_with(|| self.database.token("worker"));
        let mut command = arbiter();
        command.args(["worker", "--slots", "1", "--sandbox", "off", "--name", name, "--spool"]);
        command.arg(self.directory.path().join(name));
        command.env("ARBITER_SERVER", server).env("ARBITER_TOKEN", token);
        let log = self.directory.path().join(format!("{name}.log"));
        let mut worker = Service::start(&mut command, &log);
        worker.wait_for_log("connected");
        self.workers.push(worker);
    }

    /// A command of the organiser.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = arbiter();
        command.args(words).env("ARBITER_SERVER", &self.server);
        command.env("ARBITER_TOKEN", &self.organiser);
        command
    }

    /// The output of a command of the organiser, which must succeed.
    fn succeed(&self, words: &[&str]) -> String {
        done(&self.command(words).output().unwrap())
    }

    fn json(&self, words: &[&str]) -> Vec<Value> {
        let stdout = self.succeed(&[words, &["--json"]].concat());
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Creates the tournament, with more lines in its file, and starts it.
    fn begin(&self, more: &str) {
        let file = self.directory.path().join("open.toml");
        fs::write(&file, format!("{TOURNAMENT}{more}")).unwrap();
        self.succeed(&["tournament", "create", file.to_str().unwrap()]);
        for (name, path) in TRICKS_BOTS {
            self.succeed(&["submit", "open", path, "--built", "--name", name]);
        }
        self.succeed(&["tournament", "start", "open"]);
    }

    /// Waits until the newest edition is this one, and complete.
    fn complete(&self, number: i64) {
        wait_until(&format!("edition {number} is complete"), || {
            let tournament = self.json(&["tournament", "show", "open"]);
            let edition = &tournament[0]["editions"][0];
            edition["edition"] == number && edition["state"] == "complete"
        });
        self.succeed(&["tournament", "check", "open"]);
    }

    /// The audit results of a worker.
    fn audit(&self, name: &str) -> Value {
        let workers = self.json(&["workers", "open"]);
        workers.into_iter().find(|worker| worker["worker"] == name).unwrap()
    }

    /// The published leaderboard.
    fn board(&self) -> String {
        self.succeed(&["ranking", "open", "--format", "csv"])
    }

    /// The metric of a worker's matches with a false loss on time.
    fn false_time_losses(&self, worker: &str) -> usize {
        let figures = Browser::new(self.metrics).page("/metrics");
        let series = format!("arbiter_workers_false_time_losses{{worker=\"{worker}\"}} ");
        let value = figures.lines().find_map(|line| line.strip_prefix(&series));
        value.unwrap_or_else(|| panic!("no {series}in {figures}")).parse().unwrap()
    }

    /// A page as the organiser sees it.
    fn page(&self, path: &str) -> String {
        let mut browser = Browser::new(self.http);
        browser.log_in(&self.organiser);
        browser.page(path)
    }

    fn close(mut self) {
        for mut service in self.workers.drain(..) {
            service.leave();
        }
        assert_eq!(self.coordinator.stop(), Some(0), "{}", self.coordinator.log());
    }
}

/// The leaderboard of a tournament with honest workers only.
fn honest_board() -> String {
    let mut site = Site::open();
    let server = site.server.clone();
    site.worker("cellar", &server);
    site.worker("garage", &server);
    site.begin("");
    site.complete(1);
    for name in ["cellar", "garage"] {
        let audit = site.audit(name);
        assert_eq!(audit["recounts_disagreed"], 0, "{audit}");
        assert_eq!(audit["suspended"], Value::Null, "{audit}");
    }
    let board = site.board();
    site.close();
    board
}

/// Lets a lying worker play beside two honest ones until it is suspended and its matches are
/// replayed. Returns the leaderboard and the page of the worker.
fn hostile_board(lie: Lie, audit: &str) -> (String, String) {
    let mut site = Site::open();
    let server = site.server.clone();
    let proxy = Proxy::start(&server, lie);
    site.worker(LIAR, &format!("http://{}", proxy.address));
    site.begin(audit);
    // It plays first and waits for the others, so that they play some of its matches again before
    // it plays theirs.
    wait_until("the worker changes a result", || proxy.lies() > 0);
    site.workers[0].signal(Signal::STOP);
    site.worker("cellar", &server);
    site.worker("garage", &server);
    site.workers[0].signal(Signal::CONT);
    wait_until("the lying worker is suspended", || !site.audit(LIAR)["suspended"].is_null());
    site.complete(1);
    // The suspended worker receives the refusal and exits.
    let liar = &mut site.workers[0];
    liar.wait_for_log("this worker is suspended");
    assert_eq!(liar.wait(), Some(3), "{}", liar.log());
    for name in ["cellar", "garage"] {
        let audit = site.audit(name);
        assert_eq!(audit["suspended"], Value::Null, "{audit}");
        assert_eq!(audit["recounts_disagreed"], 0, "{audit}");
    }
    if audit.contains("shadow") {
        wait_until("a match of the liar is played again", || site.false_time_losses(LIAR) > 0);
    }
    let page = site.page("/workers?t=open");
    let false_time_losses = site.false_time_losses(LIAR);
    assert_eq!(false_time_losses > 0, page.contains("and was in time the second time"), "{page}");
    assert_eq!(["cellar", "garage"].map(|honest| site.false_time_losses(honest)), [0; 2]);

    let void = ["tournament", "void", "open", "--worker", LIAR];
    let preview = site.succeed(&void);
    assert!(preview.contains("nothing changed"), "{preview}");
    let matches = site.audit(LIAR)["matches"].as_i64().unwrap();
    assert!(preview.starts_with(&format!("{matches} match")), "{preview}");
    site.succeed(&[&void[..], &["--apply", "--reason", "it lies"]].concat());
    site.complete(2);
    let board = site.board();

    let log = site.succeed(&["audit"]);
    assert!(log.contains("worker suspend") && log.contains(LIAR), "{log}");
    // An organiser may reinstate the worker. Its earlier reports do not suspend it again.
    site.succeed(&["workers", "reinstate", LIAR]);
    site.worker(LIAR, &server);
    assert_eq!(site.audit(LIAR)["suspended"], Value::Null);
    site.close();
    (board, page)
}

#[test]
fn a_lying_worker_changes_nothing_and_is_named() {
    let honest = honest_board();
    let (board, page) = hostile_board(proxy::swap_scores, "[audit]\nreplay = \"100%\"\n");
    assert_eq!(board, honest);
    assert!(page.contains("attic is suspended"), "{page}");
    assert!(page.contains("not give the result that it reported"), "{page}");

    // Without records no recount is possible, but other workers play the same matches again.
    let all = "[audit]\nreplay = \"100%\"\nshadow = \"100%\"\n";
    let (board, page) = hostile_board(proxy::invent_time_losses, all);
    assert_eq!(board, honest);
    assert!(page.contains("attic is suspended"), "{page}");
    assert!(page.contains("came to something else when 2 other workers"), "{page}");
    assert!(page.contains("lost by the clock, and was in time the second time"), "{page}");
}

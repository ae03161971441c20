//! Postgres, a coordinator, two workers and an organiser, each on a separate virtual host, play a
//! tournament twice. The second time links are cut and restored again and again. Both tournaments
//! are equal, byte for byte.
//!
//! The test needs root and `ip`. Without them it prints that it is left out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the program under test is started from outside")]

mod cluster;
#[path = "../support/mod.rs"]
mod support;
mod virtual_network;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cluster::Cluster;
use serde_json::Value;
use support::presets::TRICKS_BOTS;
use support::service::{Service, done, wait_until};
use tempfile::TempDir;
use virtual_network::{Cut, VirtualNetwork};

const HOSTS: [&str; 5] = ["db", "coordinator", "cellar", "attic", "desk"];
const WORKERS: [&str; 2] = ["cellar", "attic"];

/// The time limit for the next counted match after a link is restored.
const RECOVERY: Duration = Duration::from_secs(30);

/// A tournament of deterministic bots with enough time on the slowest machine.
const TOURNAMENT: &str = r#"
name = "open"
game = "tricks"
seed = "several hosts"

[params]
tables = 10
move_limit = "60s"

[schedule]
kind = "round_robin"
legs = 20

[submissions]
preflight = false

[clock]
startup = "60s"
"#;

/// The result of a tournament: the files of its export.
type Export = BTreeMap<String, String>;

/// A coordinator with its workers and an organiser.
struct Site<'a> {
    lab: &'a VirtualNetwork,
    directory: TempDir,
    server: String,
    admin: String,
    coordinator: Service,
    workers: Vec<Service>,
}

impl<'a> Site<'a> {
    fn start(lab: &'a VirtualNetwork, cluster: &Cluster, database: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut first = arbiter(lab, "db");
        first.args(["token", "create", "--role", "admin", "--database-url"]);
        let admin = done(&first.arg(cluster.url(database)).output().unwrap()).trim().to_owned();
        let address = format!("{}:7700", lab.address("coordinator"));
        let path = directory.path().to_owned();
        let log = |host| path.join(format!("{host}.log"));
        let mut command = arbiter(lab, "coordinator");
        command.args(["coordinator", "--grpc", &address, "--lease", "15s", "--database-url"]);
        command.arg(cluster.url(database));
        let mut coordinator = Service::start(&mut command, &log("coordinator"));
        coordinator.wait_for_log("serving");
        let server = format!("http://{address}");
        let mut site = Self { lab, directory, server, admin, coordinator, workers: Vec::new() };
        let token = site.client(&["token", "create", "--role", "worker"]);
        for host in WORKERS {
            let mut command = arbiter(lab, host);
            command.args(["worker", "--slots", "1", "--name", host, "--drain", "5s", "--spool"]);
            command.arg(path.join(host));
            command.env("ARBITER_SERVER", &site.server).env("ARBITER_TOKEN", token.trim());
            site.workers.push(Service::start(&mut command, &log(host)));
        }
        site
    }

    /// A command of the organiser.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = arbiter(self.lab, "desk");
        command.args(words).env("ARBITER_SERVER", &self.server).env("ARBITER_TOKEN", &self.admin);
        command
    }

    /// Runs a command of the organiser, which must succeed, and returns its output.
    fn client(&self, words: &[&str]) -> String {
        done(&self.command(words).output().unwrap())
    }

    /// Plays the tournament through `weather`, and exports it.
    fn play(mut self, weather: impl FnOnce(&Self)) -> Export {
        let file = self.directory.path().join("open.toml");
        fs::write(&file, TOURNAMENT).unwrap();
        self.client(&["tournament", "create", file.to_str().unwrap()]);
        for (name, path) in TRICKS_BOTS {
            self.client(&["submit", "open", path, "--built", "--name", name]);
        }
        for worker in &mut self.workers {
            worker.wait_for_log("connected");
        }
        self.client(&["tournament", "start", "open"]);
        let log = self.directory.path().join("watch.log");
        let mut watch = self.command(&["tournament", "watch", "open"]);
        let mut watch = Service::start(&mut watch, &log);
        weather(&self);
        assert_eq!(watch.wait(), Some(0), "{}", watch.log());
        self.client(&["tournament", "check", "open"]);
        let export = self.directory.path().join("export");
        self.client(&["tournament", "export", "open", "--out", export.to_str().unwrap()]);
        for mut service in self.workers.drain(..).chain([self.coordinator]) {
            assert_eq!(service.stop(), Some(0), "{}", service.log());
        }
        contents(&export)
    }

    /// The number of counted matches and of all matches; `None` while the coordinator or its
    /// database is unreachable.
    fn progress(&self) -> Option<(i64, i64)> {
        let output = self.command(&["tournament", "show", "open", "--json"]).output().unwrap();
        if output.status.code() == Some(3) {
            return None;
        }
        let tournament: Value = serde_json::from_str(&done(&output)).unwrap();
        let edition = &tournament["editions"][0];
        edition["counted"].as_i64().zip(edition["matches"].as_i64())
    }

    /// Waits until this many more matches are counted. Some must be left then.
    fn goes_on(&self, matches: i64) {
        let mut goal = None;
        wait_until(&format!("{matches} more matches"), || {
            let Some((counted, planned)) = self.progress() else { return false };
            assert!(counted < planned, "the tournament is over before all links were cut");
            counted >= *goal.get_or_insert(counted + matches)
        });
    }

    /// Restores a link, and expects that matches are counted again soon.
    fn heal(&self, host: &str) {
        self.lab.heal(host);
        let healed = Instant::now();
        self.goes_on(2);
        let recovery = healed.elapsed();
        assert!(recovery < RECOVERY, "{recovery:?} after the link of {host} was restored");
    }
}

/// The program on a host.
fn arbiter(lab: &VirtualNetwork, host: &str) -> Command {
    let mut command = lab.command(host, None, Path::new(env!("CARGO_BIN_EXE_arbiter")));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// The files in a directory.
fn contents(directory: &Path) -> Export {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let read = files.map(|file| {
        let name = file.file_name().into_string().unwrap();
        (name, fs::read_to_string(file.path()).unwrap())
    });
    read.collect()
}

/// What a process logs from now on.
struct LogTail<'a> {
    service: &'a Service,
    from: usize,
}

impl<'a> LogTail<'a> {
    fn new(service: &'a Service) -> Self {
        Self { service, from: service.log().len() }
    }

    fn wait_for_log(self, words: &str) {
        wait_until(words, || self.service.log()[self.from..].contains(words));
    }
}

/// Cuts every link, some for long enough that all services notice.
fn storm(site: &Site) {
    let Site { lab, coordinator, workers, .. } = site;
    let lost = "no coordinator";
    site.goes_on(4);

    // A worker and the database are lost, until both the worker and the coordinator know it.
    let database = LogTail::new(coordinator);
    let worker = LogTail::new(&workers[0]);
    lab.cut(WORKERS[0], Cut::Silent);
    site.goes_on(2);
    lab.cut("db", Cut::Silent);
    let cut = Instant::now();
    worker.wait_for_log(lost);
    database.wait_for_log("lost a connection to the database");
    assert!(cut.elapsed() < RECOVERY, "{:?} until the cut was noticed", cut.elapsed());
    lab.heal(WORKERS[0]);
    site.heal("db");

    // The coordinator is lost to everybody.
    let [one, two] = [0, 1].map(|worker| LogTail::new(&workers[worker]));
    lab.cut("coordinator", Cut::Unplugged);
    let Output { status, stderr, .. } = site.command(&["tournament", "list"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("is the coordinator running there?"), "{stderr}");
    one.wait_for_log(lost);
    two.wait_for_log(lost);
    site.heal("coordinator");

    // Links are cut and mended before anybody can know.
    for how in [Cut::Silent, Cut::Unplugged] {
        for host in ["db", "cellar", "attic"] {
            lab.cut(host, how);
            lab.heal(host);
        }
        site.goes_on(2);
        lab.cut("attic", how);
        site.goes_on(2);
        site.heal("attic");
    }
}

#[test]
fn broken_links_do_not_change_the_results() {
    let lab = match VirtualNetwork::build(&HOSTS) {
        Ok(lab) => lab,
        Err(reason) => {
            eprintln!("left out: {reason}");
            return;
        }
    };
    let cluster = Cluster::start(&lab, "db", &["calm", "storm"]);
    let calm = Site::start(&lab, &cluster, "calm").play(|_| {});
    assert_eq!(
        calm.keys().collect::<Vec<_>>(),
        ["matches.jsonl", "ranking.json", "tournament.json"]
    );
    let stormy = Site::start(&lab, &cluster, "storm").play(storm);
    cluster.stop();
    for (file, text) in &calm {
        assert_eq!(Some(text), stormy.get(file), "{file}");
    }
}

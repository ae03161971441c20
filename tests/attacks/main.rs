//! Attacks a running `arbiter up`: submits hostile programs, builds and archives, one after
//! another. Its worker tries them in the strictest sandbox that works here. After each attack an
//! honest match is played, nothing is left on the machine, and worker and coordinator use no more
//! memory than before.
//!
//! `ARBITER_ATTACKS=all` runs every program of `worker/tests/attacks`, which takes some minutes
//! more.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attack;
#[expect(dead_code, reason = "the tests of pages use more of it")]
#[path = "../web/browser.rs"]
mod browser;
mod census;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use attack::{Attack, Submission, Targets};
use browser::{Browser, Part, csrf, text};
use census::{Census, Memory};
use rustix::process::Pid;
use serde_json::Value;
use support::service::{Service, wait_until};
use support::up::Up;
use support::{Bots, files, run};
use tempfile::TempDir;

/// The games that attacks are submitted to, with short matches. Attacks that never end take the
/// time limits of a start and a move. The honest bots are C programs and need almost no time.
const GAMES: [(&str, &str); 3] = [
    ("gomoku", "move_limit = \"2s\""),
    ("blackjack", "hands = 2\nmove_limit = \"5s\""),
    ("tricks", "tables = 2\nmove_limit = \"2s\""),
];

/// How often an attack is made again after a fault.
const REPETITIONS: usize = 3;

/// The strictest sandbox policy that works here, and its level; none without namespaces: then an
/// attack could fill the disk of this machine.
fn strictest_sandbox() -> Option<(&'static str, String)> {
    let stdout = run(&["doctor", "--json"]).stdout;
    let row: Value = serde_json::from_slice(stdout.split(|byte| *byte == b'\n').next()?).unwrap();
    let level = row["state"].as_str().unwrap();
    match level.chars().next()? {
        'A' => Some(("strict", level.to_owned())),
        'B' => Some(("namespaces", level.to_owned())),
        _ => None,
    }
}

/// A running `arbiter up`, with a tournament of each game.
struct Site {
    up: Up,
    worker: Pid,
    /// The directories of its temporary files and its data.
    places: [PathBuf; 2],
    temporary: TempDir,
    /// The submitted bots.
    bots: Bots,
    player: String,
    browser: Browser,
    submissions: u32,
    /// The number of faults in the log that are known.
    faults: usize,
}

impl Site {
    fn open(sandbox: &str) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let up = Up::start_in(sandbox, temporary.path());
        let house = up.bots.rascal("house", "honest", 0, "");
        for (game, params) in GAMES {
            up.create(&format!(
                "name = \"{game}\"\ngame = \"{game}\"\n[params]\n{params}\n[clock]\n\
                 startup = \"2s\"\n[submissions]\nper_hour = 0\n[house]\nbots = [{house:?}]\n"
            ));
        }
        let bots = Bots::new();
        bots.rascal("honest", "honest", 0, "");
        let player = up.token("player --name eve");
        let mut browser = Browser::new(up.http);
        browser.log_in(&player);
        let places = [temporary.path().to_owned(), up.directory.path().join("data")];
        let worker = up.worker();
        Self { up, worker, places, temporary, bots, player, browser, submissions: 0, faults: 0 }
    }

    /// Submits a directory and waits for the end of its trial.
    fn submit(&self, game: &str, directory: &Path, log: &str) -> Value {
        let mut command = self.up.command(&format!("submit {game}"));
        command.arg(directory).arg("--json").env("ARBITER_TOKEN", &self.player);
        let mut submit = Service::start(&mut command, &self.bots.path().join(log));
        let code = submit.wait();
        let output = submit.log();
        let mut lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let result = lines.next_back().unwrap_or_else(|| panic!("{log}: no verdict in {output}"));
        let expected = if result["state"] == "entered" { Some(0) } else { Some(1) };
        assert_eq!(code, expected, "{log}: {result}");
        result
    }

    /// Uploads an archive and waits for the end of its trial. Returns the text of its page.
    fn upload(&self, archive: &[u8]) -> String {
        let page = "/t/gomoku/submit";
        let parts = [
            Part::text("csrf", &csrf(&self.browser.page(page))),
            Part::text("bot", "attack"),
            Part::file("bundle", "attack.zip", archive),
        ];
        let response = self.browser.upload(page, &parts, &[]);
        assert_eq!(response.status, 303, "{}", response.body);
        let address = &response.headers["location"];
        wait_until("the trial is over", || self.browser.page(address).contains("data-over"));
        text(&self.browser.page(address))
    }

    /// Makes an attack and waits for the end of its trial. Returns the result.
    fn attack(&mut self, attack: &Attack) -> String {
        self.submissions += 1;
        let log = format!("{}-{}", self.submissions, attack.name);
        let directory = self.bots.path().join(format!("attack{}", self.submissions));
        let targets = Targets {
            secret: self.up.directory.path().join("data/admin.token"),
            worker: self.worker.as_raw_nonzero().get(),
            port: self.up.grpc.port(),
        };
        match attack.submission(directory, &targets) {
            Submission::Archive(archive) => {
                let page = self.upload(&archive);
                assert!(page.contains("trial failed"), "{}: {page}", attack.name);
                "refused".to_owned()
            }
            Submission::Directory(game, directory) => {
                let result = self.submit(game, &directory, &log);
                let evidence = result["evidence"].to_string();
                let is_breach = evidence.contains("breach:") && attack.name != attack::ALONE;
                assert!(!is_breach, "{}: {evidence}", attack.name);
                result["reason"].as_str().unwrap_or("passed").to_owned()
            }
        }
    }

    /// Submits a new version of an honest bot, which must pass its trial of two matches. There is
    /// only one slot, so this shows that it is free.
    fn play_honestly(&mut self, attack: &str) {
        self.submissions += 1;
        let directory = self.bots.path().join("honest");
        fs::write(directory.join("version"), self.submissions.to_string()).unwrap();
        let log = format!("{}-honest", self.submissions);
        let result = self.submit("gomoku", &directory, &log);
        assert_eq!(result["state"], "entered", "after {attack}: {result}");
        assert_eq!(result["measurements"]["matches"], 2, "after {attack}: {result}");
        assert_eq!(self.up.worker(), self.worker, "{attack} ended the worker");
    }

    /// The first new fault in the log.
    fn fault(&mut self) -> Option<String> {
        let log = self.up.log();
        let mut faults = log.lines().filter(|line| line.contains("attempt failed"));
        let fault = faults.by_ref().nth(self.faults)?.to_owned();
        self.faults += 1 + faults.count();
        Some(fault)
    }

    /// Makes an attack, which must cause no fault. Returns the result.
    ///
    /// A machine can fail by itself, for example while it stands still: then the trial is repeated,
    /// as it must be. So the attack is made again. A fault that an attack causes rarely may not
    /// come again: then it is shown, and does not fail the test.
    fn withstand(&mut self, attack: &Attack) -> String {
        let name = &*attack.name;
        let verdict = self.attack(attack);
        self.play_honestly(name);
        if let Some(fault) = self.fault() {
            for _ in 0..REPETITIONS {
                self.attack(attack);
                self.play_honestly(name);
                if let Some(again) = self.fault() {
                    panic!("faults with {name}: {fault}; {again}");
                }
            }
            println!("seen once: a fault with {name}: {fault}");
        }
        verdict
    }

    fn memory(&self) -> Memory {
        Memory::of(self.worker, self.up.coordinator())
    }

    /// Stops it, and checks that no temporary file is left.
    fn close(self) {
        self.up.close();
        let remaining = files(self.temporary.path());
        assert!(remaining.is_empty(), "{remaining:?}");
    }
}

#[test]
fn attacks_leave_nothing_behind() {
    let Some((sandbox, level)) = strictest_sandbox() else {
        println!("left out: there are no namespaces here");
        return;
    };
    println!("sandbox: {sandbox}, level {level}");
    let started = Instant::now();
    let mut site = Site::open(sandbox);
    let (attacks, first) = attack::chosen();
    let mut memory = site.memory();
    for attack in &first {
        site.withstand(attack);
        memory = memory.max(site.memory());
    }
    let census = Census::at_rest(site.worker, &site.places);
    println!("before: {memory}, {census:#?}");
    for attack in &attacks {
        println!("{:?} {}:", started.elapsed(), attack.name);
        let verdict = site.withstand(attack);
        println!("  {verdict}");
        census.expect(&attack.name, site.worker, &site.places);
        let now = memory.expect(&attack.name, site.worker, site.up.coordinator());
        println!("  {now}");
    }
    println!("{} attacks in {:?}", attacks.len(), started.elapsed());
    site.close();
}

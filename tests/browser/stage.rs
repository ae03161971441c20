//! What is looked at: a running `arbiter up` in which small tournaments of all five games were
//! played. One serves all tests of this program that run at the same time.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;
use tempfile::TempDir;

use crate::chrome::Chrome;
use crate::support::presets::{TIME, give_time};
use crate::support::service::{Service, done, free_address, wait_until};
use crate::support::{Bots, arbiter};

/// The five games.
pub(crate) const GAMES: [&str; 5] = ["wojna", "bitwa", "tricks", "blackjack", "gomoku"];

/// Everything on one machine. Dropped, it ends.
pub(crate) struct Stage {
    running: Service,
    grpc: SocketAddr,
    /// Where the pages are, without a slash at the end.
    pub(crate) pages: String,
    data: PathBuf,
    bots: Bots,
    directory: TempDir,
}

impl Stage {
    /// Everything, and no tournament.
    pub(crate) fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let grpc = free_address();
        let mut command = arbiter();
        command.args(["up", "--grpc", &grpc.to_string(), "--http", "127.0.0.1:0"]);
        command.args(["--slots", "2", "--sandbox", "off", "--data"]).arg(&data);
        let mut running = Service::start(&mut command, &directory.path().join("log"));
        running.hear("serving at");
        let said = running.said();
        let pages = said.split("pages at ").nth(1).unwrap().split(';').next().unwrap().to_owned();
        Self { running, grpc, pages, data, bots: Bots::new(), directory }
    }

    /// Everything with all games played; the same one, as long as somebody has it.
    pub(crate) fn played() -> Arc<Self> {
        static SHARED: Mutex<Weak<Stage>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let stage = Arc::new(Self::empty());
            stage.play();
            *shared = Arc::downgrade(&stage);
            stage
        })
    }

    fn play(&self) {
        let presets = self.directory.path().join("presets");
        give_time(&presets);
        for (game, _) in TIME {
            let file = presets.join(format!("quick/{game}.toml"));
            done(&self.command("tournament create").arg(file).output().unwrap());
            self.start(&format!("{game}-quick"));
        }
        for game in GAMES {
            self.wait_for(&format!("{game}-quick"), 1);
        }
    }

    /// Makes a small tournament of gomoku, of which no edition is started.
    pub(crate) fn make_cup(&self) {
        let house = [
            self.bots.rascal("ada", "honest", 0, "stderr = true\n"),
            self.bots.rascal("bob", "honest", 0, ""),
            self.bots.rascal("eve", "exit", 2, ""),
        ];
        let text = format!(
            "name = \"cup\"\ngame = \"gomoku\"\n[schedule]\nkind = \"round_robin\"\n\
             sides = \"both\"\n[house]\nbots = {house:?}\n"
        );
        let file = self.bots.file("cup.toml", &text);
        done(&self.command("tournament create").arg(file).output().unwrap());
    }

    /// Starts an edition that plays everything.
    pub(crate) fn start(&self, tournament: &str) {
        done(&self.command(&format!("tournament start {tournament}")).output().unwrap());
    }

    /// Waits until the edition of this number is complete.
    pub(crate) fn wait_for(&self, tournament: &str, edition: u64) {
        wait_until(&format!("{tournament} is played"), || {
            let newest = self.newest(tournament);
            newest["edition"].as_u64() >= Some(edition) && newest["state"] == "complete"
        });
    }

    /// The newest edition.
    pub(crate) fn newest(&self, tournament: &str) -> Value {
        self.json(&format!("tournament show {tournament}"))[0]["editions"][0].clone()
    }

    pub(crate) fn admin(&self) -> String {
        fs::read_to_string(self.data.join("admin.token")).unwrap().trim().to_owned()
    }

    /// A command of the administrator's.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", format!("http://{}", self.grpc));
        command.env("ARBITER_TOKEN", self.admin());
        command
    }

    /// What a command prints, line by line.
    pub(crate) fn json(&self, words: &str) -> Vec<Value> {
        let printed = done(&self.command(&format!("{words} --json")).output().unwrap());
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Goes to a page.
    pub(crate) fn visit(&self, chrome: &Chrome, path: &str) {
        chrome.open(&format!("{}{path}", self.pages));
    }

    /// Logs the administrator in, on the page for it.
    pub(crate) fn log_in(&self, chrome: &Chrome) {
        self.visit(chrome, "/login");
        chrome.type_into("#token", &self.admin());
        chrome.click("main form button");
        chrome.wait("the first page is shown", "return location.pathname === '/'");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.running.said());
        }
        // Asked to end, it ends its database and its bots as well.
        self.running.stop();
    }
}

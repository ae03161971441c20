//! Everything on one machine, with a tournament that has been played, and people with tokens.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::client::{Answer, request};
use crate::support::service::{Service, done, free_address, wait_until};
use crate::support::{Bots, arbiter};

/// The house bots of the tournament, with what they do. One of their names is a formula.
const HOUSE: [(&str, &str); 4] =
    [("ada", "honest"), ("bob", "honest"), ("eve", "exit"), ("-1-1", "honest")];

/// What runs.
pub(crate) struct Home {
    running: Service,
    grpc: SocketAddr,
    pub(crate) http: SocketAddr,
    data: PathBuf,
    pub(crate) player: String,
    _bots: Bots,
    _directory: tempfile::TempDir,
}

impl Home {
    /// Starts everything with at most so many open files, and makes the tournament `cup`, which has
    /// no edition yet, with a bot of a player's.
    pub(crate) fn open(files: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let grpc = free_address();
        let mut command = Command::new("sh");
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &files.to_string()]);
        command.arg(env!("CARGO_BIN_EXE_arbiter"));
        command.args(["up", "--grpc", &grpc.to_string(), "--http", "127.0.0.1:0"]);
        command.args(["--slots", "1", "--sandbox", "off", "--data"]).arg(&data);
        let mut running = Service::start(&mut command, &directory.path().join("log"));
        running.hear("serving at");
        let said = running.said();
        let http = said.split("pages at http://").nth(1).unwrap().split(';').next().unwrap();
        let http = http.parse().unwrap();
        let bots = Bots::new();
        let house = HOUSE.map(|(name, mode)| bots.rascal(name, mode, 2, ""));
        let mine = bots.rascal("mine", "honest", 0, "stderr = true\n");
        let file = directory.path().join("cup.toml");
        let text = format!(
            "name = \"cup\"\ngame = \"gomoku\"\nrerun = \"manual\"\n[schedule]\n\
             kind = \"round_robin\"\nsides = \"both\"\n[submissions]\npreflight = false\n[house]\n\
             bots = {house:?}\n"
        );
        fs::write(&file, text).unwrap();
        let player = String::new();
        let mut home =
            Self { running, grpc, http, data, player, _bots: bots, _directory: directory };
        done(&home.command("tournament create").arg(&file).output().unwrap());
        home.player = home.token("player");
        let mut submit = home.command("submit cup");
        submit.arg(&mine).env("ARBITER_TOKEN", &home.player);
        done(&submit.output().unwrap());
        home
    }

    /// The same, with an edition that has been played.
    pub(crate) fn played() -> Self {
        let home = Self::open(1024);
        home.play();
        home
    }

    /// Plays an edition.
    pub(crate) fn play(&self) {
        done(&self.command("tournament start cup").output().unwrap());
        wait_until("the edition is complete", || {
            self.printed("tournament show cup")[0]["editions"][0]["state"] == "complete"
        });
    }

    pub(crate) fn admin(&self) -> String {
        fs::read_to_string(self.data.join("admin.token")).unwrap().trim().to_owned()
    }

    /// A new token.
    pub(crate) fn token(&self, role: &str) -> String {
        let made = done(&self.command(&format!("token create --role {role}")).output().unwrap());
        made.trim().to_owned()
    }

    /// A command of the administrator's.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", format!("http://{}", self.grpc));
        command.env("ARBITER_TOKEN", self.admin());
        command
    }

    /// What a command prints as JSON, line by line.
    pub(crate) fn printed(&self, words: &str) -> Vec<Value> {
        let printed = done(&self.command(&format!("{words} --json")).output().unwrap());
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asks with these headers.
    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Answer {
        request(self.http, "GET", path, headers, &[])
    }

    /// Asks with a token.
    pub(crate) fn get_as(&self, token: &str, path: &str) -> Answer {
        self.get(path, &[&format!("Authorization: Bearer {token}")])
    }

    /// What everybody is told.
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path, &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// Everything in a list, page by page, each so long.
    pub(crate) fn all(&self, path: &str, limit: usize) -> Vec<Value> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let mut next = Some(format!("{path}{sign}limit={limit}"));
        let mut found = Vec::new();
        while let Some(path) = next {
            let page = self.json(&path);
            let items = page["items"].as_array().unwrap();
            assert!(!items.is_empty() && items.len() <= limit, "{path}: {page}");
            found.extend(items.clone());
            next = page["next"].as_str().map(str::to_owned);
        }
        found
    }

    pub(crate) fn close(mut self) {
        assert_eq!(self.running.stop(), Some(0), "{}", self.running.said());
    }
}

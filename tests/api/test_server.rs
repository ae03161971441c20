//! A running `arbiter up` with a tournament and a player.

use serde_json::Value;

use crate::http_client::{Response, request};
use crate::support::service::done;
use crate::support::up::Up;

/// The house bots of the tournament and their behaviour. One name looks like a formula.
const HOUSE: [(&str, &str); 4] =
    [("ada", "honest"), ("bob", "honest"), ("eve", "exit"), ("-1-1", "honest")];

pub(crate) struct TestServer {
    pub(crate) up: Up,
    pub(crate) player: String,
}

impl TestServer {
    /// Starts everything with a limit on open files, and creates the tournament `cup` with house
    /// bots and a player's bot. It has no edition yet.
    pub(crate) fn open(files: u32) -> Self {
        let up = Up::start_with_files(files);
        let house = HOUSE.map(|(name, mode)| up.bots.rascal(name, mode, 2, ""));
        let mine = up.bots.rascal("mine", "honest", 0, "stderr = true\n");
        up.create(&format!(
            "name = \"cup\"\ngame = \"gomoku\"\nrerun = \"manual\"\n[schedule]\n\
             kind = \"round_robin\"\nsides = \"both\"\n[submissions]\npreflight = false\n[house]\n\
             bots = {house:?}\n"
        ));
        let player = up.token("player");
        let mut submit = up.command("submit cup");
        submit.arg(&mine).env("ARBITER_TOKEN", &player);
        done(&submit.output().unwrap());
        Self { up, player }
    }

    /// Like [`Self::open`], with a complete edition.
    pub(crate) fn played() -> Self {
        let server = Self::open(1024);
        server.up.play("cup");
        server
    }

    /// Plays `finals`, a knockout of two house bots.
    pub(crate) fn play_knockout(&self) {
        let house = ["ada", "bob"].map(|bot| self.up.bots.path().join(bot));
        self.up.create(&format!(
            "name = \"finals\"\ngame = \"gomoku\"\n[schedule]\nkind = \"knockout\"\n[house]\n\
             bots = {house:?}\n"
        ));
        self.up.play("finals");
    }

    /// A `GET` request with these header lines.
    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Response {
        request(self.up.http, "GET", path, headers, &[])
    }

    /// A `GET` request with a token.
    pub(crate) fn get_as(&self, token: &str, path: &str) -> Response {
        self.get(path, &[&format!("Authorization: Bearer {token}")])
    }

    /// The JSON of a public resource.
    pub(crate) fn json(&self, path: &str) -> Value {
        let response = self.get(path, &[]);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()
    }

    /// All items of a paginated list.
    pub(crate) fn all(&self, path: &str, limit: usize) -> Vec<Value> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let mut next = Some(format!("{path}{sign}limit={limit}"));
        let mut all_items = Vec::new();
        while let Some(path) = next {
            let page = self.json(&path);
            let items = page["items"].as_array().unwrap();
            assert!(!items.is_empty() && items.len() <= limit, "{path}: {page}");
            all_items.extend(items.clone());
            next = page["next"].as_str().map(str::to_owned);
        }
        all_items
    }
}

//! A running `arbiter up` with a tournament that has been played, and somebody who plays in it.

use serde_json::Value;

use crate::client::{Answer, request};
use crate::support::service::done;
use crate::support::up::Up;

/// The house bots of the tournament, with what they do. One of their names is a formula.
const HOUSE: [(&str, &str); 4] =
    [("ada", "honest"), ("bob", "honest"), ("eve", "exit"), ("-1-1", "honest")];

/// What runs.
pub(crate) struct Home {
    pub(crate) up: Up,
    pub(crate) player: String,
}

impl Home {
    /// Starts everything with at most so many open files, and makes the tournament `cup`, which has
    /// no edition yet, with a bot of a player's.
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

    /// The same, with an edition that has been played.
    pub(crate) fn played() -> Self {
        let home = Self::open(1024);
        home.up.play("cup");
        home
    }

    /// Asks with these headers.
    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Answer {
        request(self.up.http, "GET", path, headers, &[])
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
}

//! Knockouts and stages from their files to their verified exports, with the real program. A
//! coordinator that is killed again and again gives the same rounds, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};

use arbiter_coordinator::postgres::Durability;
use serde_json::{Value, json};
use support::service::{Database, Service, done, free_address, wait_until};
use support::{Bots, arbiter};

/// The bots and their behaviour. Those that exit lose every match.
const BOTS: [(&str, &str); 6] = [
    ("ada", "honest"),
    ("bob", "exit"),
    ("cyd", "honest"),
    ("dan", "honest"),
    ("eve", "exit"),
    ("fay", "honest"),
];

/// A schedule in rounds, and what is known about it.
struct Cup {
    schedule: &'static str,
    /// The beginning of its cost, for the bots above.
    cost: &'static str,
    /// A part of its certificate.
    certificate: &'static str,
    /// The numbers of counted matches after which the coordinator is killed.
    kills: [i64; 3],
}

/// The coordinator is killed in the first round, at its end, and in the second round.
const KNOCKOUT: Cup = Cup {
    schedule: "[schedule]\nkind = \"knockout\"\nbest_of = 2\nextra_pairs = 1\n",
    cost: "20 matches of 6 bots; knockout of 3 rounds with 2 byes, 10 to 20 matches\n20 to play",
    certificate: "results decide who meets after the first round; knockout of 3 rounds",
    kills: [1, 4, 6],
};

/// The coordinator is killed at the end of the first round, between two stages, and in the last
/// round.
const STAGES: Cup = Cup {
    schedule: "[[stage]]\nkind = \"swiss\"\nrounds = 3\nadvance = 4\n\
        [[stage]]\nkind = \"round_robin\"\nsides = \"both\"\nadvance = 2\n\
        [[stage]]\nkind = \"knockout\"\nbest_of = 4\n",
    cost: "27 matches of 6 bots; 3 stages: swiss (the best 4 advance), then round_robin (the best 2 \
        advance), then knockout, 25 to 27 matches\n27 to play",
    certificate: "results decide who meets after the first round; 3 stages: swiss",
    kills: [3, 9, 22],
};

/// A coordinator, a worker, and an organiser.
struct Site {
    database: Database,
    coordinator: Service,
    _worker: Service,
    address: SocketAddr,
    organiser: String,
    bots: Bots,
}

impl Site {
    fn open() -> Self {
        let bots = Bots::new();
        let database = Database::start(Durability::Unsynced);
        let [organiser, worker] = ["organiser", "worker"].map(|role| database.token(role));
        let address = free_address();
        let coordinator = Self::coordinator(&database, address, &bots, 0);
        let mut command = arbiter();
        command.args(["worker", "--slots", "1", "--sandbox", "off", "--name", "cellar"]);
        command.args(["--coordinator", &format!("http://{address}"), "--spool"]);
        command.arg(bots.path().join("spool")).env("ARBITER_TOKEN", worker);
        let worker = Service::start(&mut command, &bots.path().join("worker.log"));
        Self { database, coordinator, _worker: worker, address, organiser, bots }
    }

    /// Starts the coordinator after this many kills.
    fn coordinator(database: &Database, address: SocketAddr, bots: &Bots, kills: usize) -> Service {
        let log = bots.path().join(format!("coordinator-{kills}.log"));
        let mut coordinator = Service::start(&mut database.coordinator(address), &log);
        coordinator.wait_for_log("serving");
        coordinator
    }

    fn run(&self, words: &str) -> Output {
        let mut command: Command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", format!("http://{}", self.address));
        command.env("ARBITER_TOKEN", &self.organiser).output().unwrap()
    }

    fn succeed(&self, words: &str) -> String {
        done(&self.run(words))
    }

    /// The newest edition of the cup.
    fn edition(&self) -> Value {
        let shown = self.succeed("tournament show cup --json");
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["editions"][0].clone()
    }

    /// Creates the cup, and plays it while the coordinator is killed after these numbers of counted
    /// matches. Returns the directory of its export.
    fn play(&mut self, cup: &Cup, kills: &[i64]) -> PathBuf {
        let house = BOTS.map(|(name, mode)| self.bots.rascal(name, mode, 2, ""));
        let text = format!(
            "name = \"cup\"\ngame = \"gomoku\"\nseed = \"finals\"\n{}[submissions]\n\
             preflight = false\n[house]\nbots = {house:?}\n",
            cup.schedule
        );
        let file = self.bots.file("cup.toml", &text);
        self.succeed(&format!("tournament create {file}"));
        let cost = self.succeed("tournament schedule cup --cost");
        assert!(cost.starts_with(cup.cost), "{cost}");
        self.succeed("tournament start cup");
        let certificate = self.succeed("tournament schedule cup --certificate");
        assert!(certificate.contains(cup.certificate), "{certificate}");
        for (kill, counted) in (1..).zip(kills) {
            wait_until("matches are counted", || {
                self.edition()["counted"].as_i64() >= Some(*counted)
            });
            self.coordinator.kill();
            self.coordinator = Self::coordinator(&self.database, self.address, &self.bots, kill);
        }
        self.succeed("tournament watch cup");
        self.succeed("tournament close cup");
        let checked = self.succeed("tournament check cup");
        assert!(checked.contains("the stored plan agrees"), "{checked}");
        let export = self.bots.path().join("export");
        self.succeed(&format!("tournament export cup --records --out {}", export.display()));
        export
    }
}

/// Plays a cup without and with kills, and returns the equal exports.
fn play_twice(cup: &Cup) -> (Site, PathBuf) {
    let mut calm = Site::open();
    let mut stormy = Site::open();
    let calm_export = calm.play(cup, &[]);
    let stormy_export = stormy.play(cup, &cup.kills);
    for name in ["ranking.json", "matches.jsonl"] {
        let [calm, stormy] =
            [&calm_export, &stormy_export].map(|export| fs::read_to_string(export.join(name)));
        assert_eq!(calm.unwrap(), stormy.unwrap(), "{name}");
    }
    (calm, calm_export)
}

#[test]
fn a_killed_coordinator_gives_the_same_bracket() {
    let (_site, calm_export) = play_twice(&KNOCKOUT);
    let ranking = calm_export.join("ranking.json");
    let text = fs::read_to_string(&ranking).unwrap();
    let mut board: Value = serde_json::from_str(&text).unwrap();
    let rank = |place: &Value| place["rank"].as_u64().unwrap();
    let ranks: Vec<_> = board["places"].as_array().unwrap().iter().map(rank).collect();
    assert_eq!(ranks, [1, 2, 3, 3, 5, 5]);

    let verified = support::succeed(&["verify", calm_export.to_str().unwrap()]);
    assert!(verified.contains("matches follow from the published seed"), "{verified}");
    // A leaderboard with another winner does not follow from the results.
    board["places"][0]["rank"] = json!(2);
    fs::write(&ranking, board.to_string()).unwrap();
    let winner = board["places"][0]["bot"].as_str().unwrap();
    let output = support::run(&["verify", calm_export.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let expected = format!("WRONG, ranking.json: {winner} has rank 2, the results give rank 1\n");
    assert!(stdout.contains(&expected), "{stdout}");
}

#[test]
fn a_killed_coordinator_gives_the_same_stages() {
    let (_site, export) = play_twice(&STAGES);
    let text = fs::read_to_string(export.join("ranking.json")).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let ranks: Vec<_> =
        board["places"].as_array().unwrap().iter().map(|place| place["rank"].clone()).collect();
    assert_eq!(ranks[..3], [1, 2, 3].map(|rank| json!(rank)));
    // Those that lose every match are the last ones.
    let last: Vec<_> =
        board["places"].as_array().unwrap()[4..].iter().map(|place| &place["bot"]).collect();
    assert!(last.contains(&&json!("bob")) && last.contains(&&json!("eve")), "{board}");
    let verified = support::succeed(&["verify", export.to_str().unwrap()]);
    assert!(verified.contains("matches follow from the published seed"), "{verified}");
}

//! A tournament of a game package, with a real coordinator and a real worker: it is created from
//! the folder of the package, played, ranked and shown, and played again by changed rules.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use arbiter_coordinator::postgres::Durability;
use serde_json::Value;
use support::service::{Database, Service, done, free_address, wait_until};
use support::{arbiter, files, succeed};

const CONNECT4: &str = "games/packages/connect4";

/// A coordinator with pages, a worker, and a folder for files.
struct Site {
    _database: Database,
    coordinator: Service,
    worker: Service,
    server: String,
    pages: SocketAddr,
    admin: String,
    directory: tempfile::TempDir,
}

impl Site {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::start(Durability::Unsynced);
        let admin = database.token("admin");
        let pass = database.token("worker");
        let address = free_address();
        let pages = free_address();
        let mut command = database.coordinator(address);
        command.args(["--http", &pages.to_string()]);
        let mut coordinator = Service::start(&mut command, &directory.path().join("coordinator"));
        coordinator.wait_for_log("serving");
        let server = format!("http://{address}");
        let mut command = client(&server, &pass, "worker --slots 2 --name it --spool");
        command.arg(directory.path().join("spool"));
        let worker = Service::start(&mut command, &directory.path().join("worker"));
        Self { _database: database, coordinator, worker, server, pages, admin, directory }
    }

    /// The output of an administrator's command, which must succeed.
    fn run(&self, words: &str) -> String {
        done(&client(&self.server, &self.admin, words).output().unwrap())
    }

    /// The lines of JSON of an administrator's command.
    fn json(&self, words: &str) -> Vec<Value> {
        let output = self.run(&format!("{words} --json"));
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The response to a GET request of the administrator.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.pages).unwrap();
        let token = &self.admin;
        write!(stream, "GET {path} HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// A file in the folder of this site.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}\n{}", self.coordinator.log(), self.worker.log());
        }
    }
}

/// A command with this coordinator and token.
fn client(server: &str, token: &str, words: &str) -> Command {
    let mut command = arbiter();
    command.args(words.split(' ')).env("ARBITER_SERVER", server).env("ARBITER_TOKEN", token);
    command
}

/// The shipped package.
fn connect4() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(CONNECT4)
}

/// A copy of the package in `folder`, where this text of the descriptor is replaced.
fn changed(folder: &Path, from: &str, to: &str) -> PathBuf {
    let copy = folder.join("changed");
    fs::create_dir_all(&copy).unwrap();
    for name in ["game.toml", "rules.py", "drawing.py"] {
        let text = fs::read_to_string(connect4().join(name)).unwrap();
        assert!(name != "game.toml" || text.contains(from), "{from}");
        fs::write(copy.join(name), text.replace(from, to)).unwrap();
    }
    copy
}

#[test]
fn a_tournament_of_a_package_is_played_ranked_shown_and_replayed_by_new_rules() {
    let site = Site::open();
    let game = connect4();
    let file = site.file(
        "cup.toml",
        &format!(
            "name = \"cup\"\ngame = \"{}\"\n[schedule]\nlegs = 3\n[params]\ncolumns = 6\n\
             [submissions]\nwindow = \"0ms\"\n",
            game.display()
        ),
    );
    let created = site.run(&format!("tournament create {}", file.display()));
    assert!(created.contains("cup: connect4"), "{created}");
    assert!(created.contains("house bots: blocker, center"), "{created}");
    site.run("tournament start cup");
    site.run("tournament watch cup");

    let board = site.json("ranking cup");
    let bots: Vec<_> = board.iter().filter(|line| line["bot"].is_string()).collect();
    assert_eq!(bots.len(), 2, "{board:?}");
    assert_eq!(bots[0]["bot"], "blocker", "{board:?}");
    assert_eq!(bots[0]["matches"], 6, "{board:?}");

    // The record names the package, and only the package replays it.
    let folder = site.directory.path().join("export");
    site.run(&format!("tournament export cup --records --out {}", folder.display()));
    let records = folder.join("records");
    assert_eq!(files(&records).len(), 6);
    succeed(&["verify", records.to_str().unwrap(), "--game", game.to_str().unwrap()]);
    let shown = site.get("/api/v1/tournaments/cup/matches/0/steps?limit=5");
    assert!(shown.starts_with("HTTP/1.0 200") && shown.contains("svg"), "{shown}");

    // Other rules: everything is played again, and the first board stays.
    let other = changed(site.directory.path(), "version = \"1\"", "version = \"2\"");
    site.run(&format!("tournament package cup {}", other.display()));
    let official = |number: i64| {
        let tournament = site.json("tournament show cup").remove(0);
        tournament["editions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|edition| edition["edition"] == number && edition["state"] == "complete")
    };
    wait_until("the second edition is complete", || official(2));
    let header = |number: i32| {
        let record = site.run(&format!("match cup/{number} --record -"));
        serde_json::from_str::<Value>(record.lines().next().unwrap()).unwrap()
    };
    assert_ne!(header(0)["package"], header(6)["package"]);
    let points = |board: &[Value]| {
        let lines = board.iter().map(|line| (line["bot"].clone(), line["score"].clone()));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(points(&site.json("ranking cup --edition 1")), points(&board));
    site.run("tournament check cup");
}

//! Access by roles, the limit of invalid tokens, and the audit log of the organisers' actions.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output};

use arbiter_coordinator::postgres::Durability;
use serde_json::Value;
use support::service::{Database, Service, done, free_address};
use support::{Bots, arbiter};
use tempfile::TempDir;

/// A coordinator with pages.
struct Site {
    _database: Database,
    coordinator: Service,
    grpc: SocketAddr,
    http: SocketAddr,
    admin: String,
    directory: TempDir,
}

impl Site {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::start(Durability::Unsynced);
        let grpc = free_address();
        let http = free_address();
        let admin = database.token("admin");
        let mut command = database.coordinator(grpc);
        command.args(["--http", &http.to_string(), "--trust-proxy", "127.0.0.0/8"]);
        let mut coordinator = Service::start(&mut command, &directory.path().join("log"));
        coordinator.wait_for_log("serving");
        Self { _database: database, coordinator, grpc, http, admin, directory }
    }

    fn call(&self, token: &str, words: &[&str]) -> Output {
        self.command(token, words).output().unwrap()
    }

    fn command(&self, token: &str, words: &[&str]) -> Command {
        let mut command = arbiter();
        command.args(words).env("ARBITER_SERVER", format!("http://{}", self.grpc));
        command.env("ARBITER_TOKEN", token);
        command
    }

    /// The output of a command of the administrator, which must succeed.
    fn succeed(&self, words: &[&str]) -> String {
        done(&self.call(&self.admin, words))
    }

    fn json(&self, words: &[&str]) -> Vec<Value> {
        let stdout = self.succeed(&[words, &["--json"]].concat());
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Logs in through a proxy that forwards the client's address.
    fn log_in(&self, token: &str, from: &str) -> String {
        let body = format!("token={token}");
        let request = format!(
            "POST /login HTTP/1.1\r\nHost: {}\r\nX-Forwarded-For: {from}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            self.http,
            body.len()
        );
        let mut stream = TcpStream::connect(self.http).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    fn close(mut self) {
        assert_eq!(self.coordinator.stop(), Some(0), "{}", self.coordinator.log());
    }
}

/// Expects this exit code, and a message that contains this text.
fn refused(output: &Output, code: i32, says: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.contains(says), "{message:?} lacks {says:?}");
}

#[test]
fn tokens_are_rotated_and_expire() {
    let site = Site::open();
    let create = ["token", "create", "--role", "organiser", "--name", "ada", "--expires", "90d"];
    let ada = site.succeed(&create).trim().to_owned();
    let lets_in = |token: &str| {
        let output = site.call(token, &["audit"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        assert!(code == Some(0) || message.contains("unknown, revoked or expired"), "{message}");
        code == Some(0)
    };
    assert!(lets_in(&ada));
    let second = site.succeed(&["token", "rotate", "ada"]).trim().to_owned();
    assert!(second.starts_with("arb_") && second != ada);
    assert!(lets_in(&ada) && lets_in(&second), "both secrets are valid for an hour");
    let third = site.succeed(&["token", "rotate", "ada", "--overlap", "0s"]).trim().to_owned();
    assert!(!lets_in(&ada) && !lets_in(&second) && lets_in(&third));

    let listed = site.json(&["token", "list"]);
    let listed = listed.iter().find(|token| token["name"] == "ada").unwrap();
    assert!(listed["used"].is_string() && listed["expires"].is_string(), "{listed}");
    assert_eq!(listed["former_until"], Value::Null);
    let id = listed["id"].to_string();
    site.succeed(&["token", "create", "--role", "player", "--name", "ada"]);
    let both = site.call(&site.admin, &["token", "rotate", "ada"]);
    refused(
        &both,
        2,
        &format!("several tokens are named ada; use the number of one of them: {id}, "),
    );
    refused(&site.call(&site.admin, &["token", "rotate", "eve"]), 2, "no valid token `eve`");
    refused(&site.call(&third, &["token", "rotate", &id]), 3, "role admin");
    site.succeed(&["token", "rotate", &id]);
    site.succeed(&["token", "revoke", &id]);
    assert!(!lets_in(&third), "both secrets are invalid");
    refused(&site.call(&site.admin, &["token", "rotate", &id]), 2, "no valid token");
    site.close();
}

#[test]
fn too_many_invalid_tokens_are_refused() {
    let site = Site::open();
    let ada = site.succeed(&["token", "create", "--role", "player", "--name", "ada"]);
    let eve = "198.51.100.7";
    let mut responses = (0..40).map(|number| site.log_in(&format!("arb_{number}"), eve));
    let limited = responses.find(|response| response.starts_with("HTTP/1.1 429")).unwrap();
    let head = limited.to_lowercase();
    assert!(head.contains("\r\nretry-after: ") && limited.contains("wait"), "{limited}");
    let other = site.log_in("arb_1", "198.51.100.8");
    assert!(other.starts_with("HTTP/1.1 401"), "{other}");
    let good = site.log_in(ada.trim(), "198.51.100.8");
    assert!(good.starts_with("HTTP/1.1 303"), "{good}");
    let valid = site.log_in(ada.trim(), eve);
    assert!(valid.starts_with("HTTP/1.1 303"), "a recently valid token is not limited: {valid}");

    // The same limit applies to gRPC calls from this address.
    let limited = (0..60).map(|number| site.call(&format!("arb_{number}"), &["token", "list"]));
    let limited = limited.into_iter().find(|output| output.status.code() == Some(1)).unwrap();
    refused(&limited, 1, "too many invalid tokens from this address; wait");
    site.succeed(&["token", "list"]);
    site.close();
}

#[test]
fn the_audit_log_has_the_state_before_each_change() {
    let site = Site::open();
    let organiser = ["token", "create", "--role", "organiser", "--name", "ada"];
    let ada = site.succeed(&organiser).trim().to_owned();
    let bots = Bots::new();
    let house = ["one", "two"].map(|name| bots.rascal(name, "honest", 0, ""));
    let file = site.directory.path().join("cup.toml");
    let text = format!("name = \"cup\"\ngame = \"gomoku\"\n[house]\nbots = {house:?}\n");
    fs::write(&file, text).unwrap();
    let organise = |words: &[&str]| done(&site.call(&ada, words));
    organise(&["tournament", "create", file.to_str().unwrap()]);
    organise(&["tournament", "start", "cup"]);
    organise(&["bots", "cup", "--withdraw", "two"]);
    organise(&["tournament", "cancel", "cup"]);
    assert!(site.log_in(&ada, "192.0.2.1").starts_with("HTTP/1.1 303"));

    let changes = site.json(&["audit"]);
    let actions: Vec<_> = changes.iter().rev().map(|change| change["action"].clone()).collect();
    let expected = [
        "token create",
        "token create",
        "tournament create",
        "submit",
        "submit",
        "tournament start",
        "withdraw",
        "tournament cancel",
        "token login",
    ];
    assert_eq!(actions, expected);
    let of_cup = site.json(&["audit", "cup", "--who", "ada"]);
    assert_eq!(of_cup.len(), 6);
    let detail = |action: &str| {
        let change = of_cup.iter().find(|change| change["action"] == action).unwrap();
        assert_eq!(change["who"]["name"], "ada");
        change["detail"].clone()
    };
    assert_eq!(detail("tournament create")["after"]["settings"]["game"], "gomoku");
    let start = detail("tournament start");
    assert_eq!((&start["before"], &start["after"]["edition"]), (&Value::Null, &Value::from(1)));
    assert_eq!(detail("withdraw")["before"]["withdrawn"], false);
    let cancel = detail("tournament cancel");
    assert_eq!(cancel["before"]["state"], "open");
    assert_eq!(cancel["before"]["newest"]["state"], "running");
    assert_eq!(cancel["after"]["state"], "cancelled");
    let first = &changes.last().unwrap();
    assert_eq!(first["who"], Value::Null, "created by the owner of the database");
    assert_eq!(site.json(&["audit", "--limit", "2"]).len(), 2);
    assert!(site.json(&["audit", "--since", "2999-01-01T00:00:00Z"]).is_empty());
    assert_eq!(site.json(&["audit", "--since", "1h"]).len(), expected.len());
    assert!(site.succeed(&["audit", "cup"]).contains("ada (organiser "));
    let player = site.succeed(&["token", "create", "--role", "player"]);
    refused(&site.call(player.trim(), &["audit"]), 3, "role organiser, not player");
    site.close();
}

//! Access by roles, the limit of invalid tokens, and the audit log of the organisers' actions.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use arbiter_coordinator::postgres::Durability;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};
use support::service::{Database, Service, done, free_address};
use support::{Bots, arbiter};
use tempfile::TempDir;

/// A coordinator with pages.
struct Site {
    database: Database,
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
        Self { database, coordinator, grpc, http, admin, directory }
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

    /// A page that the holder of a session's cookie sees.
    fn page(&self, path: &str, cookie: &str) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n",
            self.http
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Renames a token directly in the database.
    #[tokio::main(flavor = "current_thread")]
    async fn rename(&self, from: &str, to: &str) {
        let options = self.database.postgres.options("postgres");
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        let statement = "UPDATE tokens SET name = $2 WHERE name = $1";
        let query = sqlx::query(statement).bind(from).bind(to);
        assert_eq!(query.execute(&mut connection).await.unwrap().rows_affected(), 1);
        connection.close().await.unwrap();
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
    let again = site.call(&site.admin, &["token", "create", "--role", "player", "--name", "ada"]);
    let taken = format!("token {id} of role organiser has the name ada: choose another name");
    refused(&again, 2, &taken);
    let create_upper = ["token", "create", "--role", "player", "--name", "Ada"];
    let same =
        format!("token {id} of role organiser has the name ada, which differs from Ada only");
    refused(&site.call(&site.admin, &create_upper), 2, &same);
    refused(&site.call(&site.admin, &["token", "rotate", "eve"]), 2, "no valid token `eve`");
    refused(&site.call(&third, &["token", "rotate", &id]), 3, "role admin");
    site.succeed(&["token", "rotate", &id]);
    assert!(
        site.succeed(&["token", "revoke", "ada"]).contains(&format!("token {id} of organiser"))
    );
    site.succeed(&["token", "create", "--role", "player", "--name", "ada"]);
    assert!(!lets_in(&third), "both secrets are invalid");
    refused(&site.call(&site.admin, &["token", "rotate", &id]), 2, "no valid token");
    site.close();
}

#[test]
fn tokens_from_before_the_rules_of_names_keep_working() {
    let site = Site::open();
    let ada = site.succeed(&["token", "create", "--role", "player", "--name", "ada"]);
    site.rename("ada", "ada\u{202e}lovelace");
    let login = site.log_in(ada.trim(), "192.0.2.1");
    let cookie = login.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
    let page = site.page("/me", cookie);
    assert!(page.contains("ada\u{fffd}lovelace") && !page.contains('\u{202e}'), "{page}");
    let rotated = site.call(&site.admin, &["token", "rotate", "ada\u{202e}lovelace"]);
    assert!(done(&rotated).starts_with("arb_"));
    let message = String::from_utf8_lossy(&rotated.stderr);
    assert!(message.contains("ada\u{fffd}lovelace"), "{message:?}");
    site.succeed(&["token", "revoke", "ada\u{202e}lovelace"]);
    site.close();
}

#[test]
fn pasted_tokens_may_have_spaces_around_them_but_not_in_them() {
    let site = Site::open();
    let ada = site.succeed(&["token", "create", "--role", "organiser", "--name", " ada "]);
    let ada = ada.trim();
    done(&site.call(&format!("\t{ada} \r\n"), &["audit"]));
    let (first, rest) = ada.split_at(12);
    let split = format!("{first} {rest}");
    refused(&site.call(&split, &["audit"]), 2, "it has a space or a line break in it");
    let page = site.log_in(&format!("%20{ada}%0D%0A"), "192.0.2.1");
    assert!(page.starts_with("HTTP/1.1 303"), "{page}");
    let page = site.log_in(&format!("{first}+{rest}"), "192.0.2.1");
    assert!(page.starts_with("HTTP/1.1 401"), "{page}");
    assert!(page.contains("The token has a space or a line break in it"), "{page}");
    site.close();
}

#[test]
fn organisers_manage_the_tokens_of_players_only() {
    let site = Site::open();
    let ada = site.succeed(&["token", "create", "--role", "organiser", "--name", "ada"]);
    let organise = |words: &[&str]| site.call(ada.trim(), words);
    let bob = done(&organise(&["token", "create", "--role", "player", "--name", "bob"]));
    refused(&organise(&["token", "create", "--role", "worker"]), 3, "role admin, not organiser");
    let listed = done(&organise(&["token", "list", "--json"]));
    let listed: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["name"], "bob");
    refused(&organise(&["token", "list", "--role", "admin"]), 3, "role admin");
    let rotated = done(&organise(&["token", "rotate", "bob", "--overlap", "0s"]));
    assert!(site.log_in(bob.trim(), "192.0.2.1").starts_with("HTTP/1.1 401"));
    assert!(site.log_in(rotated.trim(), "192.0.2.1").starts_with("HTTP/1.1 303"));
    refused(&organise(&["token", "rotate", "admin"]), 3, "role admin");
    refused(&organise(&["token", "revoke", "ada"]), 3, "role admin");
    done(&organise(&["token", "revoke", "bob"]));
    refused(&site.call(rotated.trim(), &["token", "list"]), 3, "unknown, revoked or expired");
    let player = site.succeed(&["token", "create", "--role", "player"]);
    refused(&site.call(player.trim(), &["token", "list"]), 3, "role organiser, not player");
    let changes = site.json(&["audit", "--who", "ada"]);
    let actions: Vec<_> = changes.iter().map(|change| change["action"].clone()).collect();
    assert_eq!(actions, ["token revoke", "token rotate", "token create"]);
    assert_eq!(site.json(&["token", "list", "ada"]).len(), 1);
    assert_eq!(site.json(&["token", "list", "--role", "player"]).len(), 2);
    site.close();
}

#[test]
fn a_list_of_players_is_invited_as_a_whole_or_not_at_all() {
    let site = Site::open();
    let path = |name: &str| site.directory.path().join(name).to_str().unwrap().to_owned();
    let ada = site.succeed(&["token", "create", "--role", "organiser", "--name", "ada"]);
    let organise = |words: &[&str]| {
        site.call(ada.trim(), &[&["token", "create", "--role", "player", "--from"], words].concat())
    };
    let tokens = || site.json(&["token", "list", "--role", "player"]).len();
    let list = path("class.csv");
    let names =
        "name,email\r\nzoe,z@b\r\n\r\nada,a@b\r\nzoe,y@b\r\na\tb,x@b\r\n,w@b\r\nadmin,v@b\r\n";
    fs::write(&list, names).unwrap();
    let refusal = organise(&[&list]);
    for problem in [
        "class.csv: no token was created: line 4: leave out ada, the name of token ",
        " (organiser); line 5: leave out zoe, which is also on line 2; line 6: \"a\\tb\" cannot be",
        "; line 7: write a name or remove the line; line 8: leave out admin, the name of token ",
    ] {
        refused(&refusal, 2, problem);
    }
    assert_eq!(tokens(), 0, "zoe has no token either");

    let class: Vec<_> = (1..=40).map(|n| format!("Student {n},s{n}@example.org")).collect();
    fs::write(&list, format!("\u{feff}name,email\n# room 7\n{}\n", class.join("\n"))).unwrap();
    let csv = path("tokens.csv");
    let cards = path("cards.html");
    let options = ["--csv", &csv, "--invitations", &cards, "--title", "Spring <cup>"];
    let words = [&[&list[..]], &options[..]].concat();
    refused(&organise(&words), 2, "--site");
    let site_option = ["--site", "https://arbiter.example/"];
    let output = organise(&[&words[..], &site_option].concat());
    assert_eq!(done(&output), "", "the secrets are in the files only");
    assert!(String::from_utf8_lossy(&output.stderr).contains("40 tokens created"));
    assert_eq!(tokens(), 40);
    let table = fs::read_to_string(&csv).unwrap();
    let lines: Vec<_> = table.lines().collect();
    assert_eq!((lines.len(), lines[0]), (41, "name,email,token,link"));
    let cells: Vec<_> = lines[7].split(',').collect();
    assert_eq!(cells[..2], ["Student 7", "s7@example.org"]);
    assert_eq!(cells[3], format!("https://arbiter.example/login#token={}", cells[2]));
    assert!(site.log_in(cells[2], "192.0.2.1").starts_with("HTTP/1.1 303"));
    let page = fs::read_to_string(&cards).unwrap();
    assert_eq!(page.matches("<section class=\"invitation\">").count(), 40);
    assert!(page.contains("Spring &lt;cup&gt;") && page.contains("Student 40"));
    for file in [&csv, &cards] {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let created = site.json(&["audit", "--who", "ada"]);
    assert_eq!(created.iter().filter(|change| change["action"] == "token create").count(), 40);

    // A file that exists is not replaced, and no token is created for it.
    fs::write(&list, "zoe\n").unwrap();
    refused(&organise(&[&list, "--csv", &csv]), 2, "tokens.csv exists");
    assert_eq!(tokens(), 40);
    let shown = done(&organise(&[&list, "--json"]));
    let zoe: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&zoe["name"], &zoe["link"]), (&Value::from("zoe"), &Value::Null));
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

//! `arbiter tournament …` but for `create` and `export`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use arbiter_proto::v1::{Aside, Bot, CheckEditionResponse, Edition};
use serde_json::json;

use crate::server::{Script, Server};
use crate::{board, call, fails, run, succeed, tournament};

#[test]
fn tournaments_are_listed_and_shown() {
    let aside = Aside { r#match: "31/5".into(), reasons: vec!["host\u{7} stalled".into()] };
    let server = Server::start(Script { aside: vec![aside], ..board() });
    let table = succeed(&server, &["tournament", "list"]);
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["finals", "gomoku", "open", "2001-09-09", "01:46:40", "UTC"]);
    let line = &crate::json(&server, &["tournament", "list", "--json"])[0];
    assert_eq!((&line["tournament"], line.get("editions")), (&json!("finals"), None));
    let told = succeed(&server, &["tournament", "show", "finals"]);
    let parts = [
        "finals: gomoku, open, made 2001-09-09 01:46:40 UTC",
        &format!("hash of the seed {}", "ab".repeat(32)),
        "schedule = {\"kind\":\"round_robin\"}",
        "12 pending, 3 leased, 1 aside",
        "complete, official",
        "1 match set aside; arbiter tournament retry MATCH",
        "31/5: host\u{fffd} stalled",
    ];
    for part in parts {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("\nseed "), "{told}");
    let object = &crate::json(&server, &["tournament", "show", "finals", "--json"])[0];
    assert_eq!(object["seed"], json!(null));
    assert_eq!(object["settings"]["schedule"]["kind"], "round_robin");
    assert_eq!(
        object["editions"][0]["lots"][1],
        json!({"state": "leased", "lots": 3,
        "matches": 30})
    );
    assert_eq!(object["aside"], json!([{"match": "31/5", "reasons": ["host\u{7} stalled"]}]));
}

#[test]
fn organisers_steer() {
    let server = Server::start(board());
    let told = succeed(&server, &["tournament", "start", "finals"]);
    assert_eq!(told, "edition 2 of finals is running: 400 matches\n");
    let edition = &crate::json(&server, &["tournament", "start", "finals", "--json"])[0];
    assert_eq!((&edition["edition"], &edition["id"]), (&json!(2), &json!(31)));
    let told = succeed(&server, &["tournament", "cancel", "finals"]);
    assert_eq!(told, "finals is cancelled\n");
    let told = succeed(&server, &["tournament", "close", "finals"]);
    assert!(told.contains(&format!("its seed was {}", "5e".repeat(32))), "{told}");
    let told = succeed(&server, &["tournament", "retry", "31/5"]);
    assert_eq!(told, "match 31/5 may be leased again\n");
    let calls = server.told.lock().unwrap().calls.clone();
    assert_eq!(calls, ["start", "start", "cancel", "close", "retry 31/5"]);
}

#[test]
fn standings_are_checked() {
    let check = |differences: Vec<String>| {
        let check = CheckEditionResponse { matches: 380, differences };
        Server::start(Script { check, ..board() })
    };
    let right = check(vec![]);
    let told = succeed(&right, &["tournament", "check", "finals"]);
    assert_eq!(told, "380 matches added up: the standings are what the reports say\n");
    let wrong = check(vec!["ada: 47 points, not 46".to_owned()]);
    let output = run(&wrong, &["tournament", "check", "finals", "--edition", "1"]);
    assert_eq!(output.stdout, b"ada: 47 points, not 46\n");
    fails(&output, 1, &["the standings of 1 bot are wrong"]);
    let output = run(&wrong, &["tournament", "check", "finals", "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object, json!({"matches": 380, "differences": ["ada: 47 points, not 46"]}));
}

/// Edition 2 with so many matches counted.
fn edition(counted: i64, state: &str) -> Edition {
    let running = tournament().editions[0].clone();
    Edition { counted, state: state.into(), official: state == "complete", ..running }
}

#[test]
fn an_edition_is_watched_across_a_restart() {
    let first = Server::start(Script { watched: vec![edition(10, "running")], ..board() });
    let mut command = call(&first.url(), &["tournament", "watch", "finals"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    let lots = "lots: 12 pending, 3 leased, 1 aside";
    assert_eq!(line(), format!("edition 2: running, 10 of 400 matches counted; {lots}"));
    assert_eq!(first.told.lock().unwrap().watched, [None]);
    let address = first.address;
    drop(first);
    let mut told = [0; 26];
    child.stderr.as_mut().unwrap().read_exact(&mut told).unwrap();
    assert_eq!(&told, b"the coordinator is gone; w");
    let watched = vec![edition(390, "running"), edition(400, "complete")];
    let second = Server::start_at(address, Script { watched, ..board() });
    assert_eq!(line(), format!("edition 2: running, 390 of 400 matches counted; {lots}"));
    assert_eq!(line(), "edition 2: complete, official, 400 of 400 matches counted");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(second.told.lock().unwrap().watched, [Some(2)], "the same edition as before");
}

#[test]
fn watching_ends_with_the_edition() {
    let watched = vec![edition(10, "running"), edition(10, "cancelled")];
    let server = Server::start(Script { watched, ..board() });
    let output = run(&server, &["tournament", "watch", "finals", "--json"]);
    fails(&output, 1, &["edition 2 of finals is cancelled"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
}

#[test]
fn the_schedule_of_a_tournament() {
    let bots: Vec<_> = (0..4)
        .map(|number| Bot { name: format!("b{number}"), withdrawn: number == 3, ..Bot::default() })
        .collect();
    let open = Script { bots, ..board() };
    let mut closed = open.clone();
    closed.tournament.seed = vec![7; 32];
    let (open, closed) = (Server::start(open), Server::start(closed));
    let schedule = ["tournament", "schedule", "finals"];
    let with = |more: &[&'static str]| [&schedule[..], more].concat();
    let shown = run(&open, &schedule);
    assert!(String::from_utf8_lossy(&shown.stderr).contains("seed of finals is not used"));
    assert_eq!(String::from_utf8(shown.stdout).unwrap().lines().count(), 6);
    let told = succeed(&open, &with(&["--cost", "--bots", "20"]));
    assert_eq!(told, "380 matches, 38 for each bot\n");
    assert!(succeed(&open, &with(&["--certificate"])).ends_with("proved: all as promised\n"));
    let shown = run(&closed, &schedule);
    assert!(shown.status.success() && shown.stderr.is_empty());
    let seeded = run(&closed, &with(&["--seed", "x", "--json"]));
    assert_eq!(seeded.stdout, run(&open, &with(&["--seed", "x", "--json"])).stdout);
    let described = with(&["--kind", "foursomes"]);
    fails(&run(&open, &described), 2, &["--kind", "--dry-run"]);
    let dry = with(&["--dry-run"]);
    fails(&run(&open, &dry), 2, &["--dry-run"]);
}

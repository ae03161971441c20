//! The requests and the output of `arbiter tournament void`.

use arbiter_proto::v1::{VoidMatchesRequest, VoidMatchesResponse, VoidStanding};
use serde_json::json;

use crate::server::{Script, Server};
use crate::{fails, json, run, succeed};

fn script() -> Script {
    let place = |bot: &str, rank, rank_without, score: &str| VoidStanding {
        bot: bot.into(),
        rank,
        rank_without,
        score: vec![score.into()],
        score_without: vec!["1".into()],
    };
    let void = VoidMatchesResponse {
        matches: 41,
        examples: vec!["3/0".into(), "3/1".into()],
        edition: 2,
        missing: 40,
        columns: vec!["points".into()],
        standings: vec![
            place("ada", 1, 2, "9"),
            place("b\u{1b}b", 2, 1, "8"),
            place("c", 3, 3, "1"),
        ],
    };
    Script { void, ..Script::default() }
}

#[test]
fn a_preview_declares_nothing_void() {
    let server = Server::start(script());
    let printed = succeed(&server, &["tournament", "void", "finals", "--worker", "cellar"]);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "41 matches selected: 3/0, 3/1, …");
    assert_eq!(lines[1], "edition 2 uses 40 of them");
    let row = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(row(lines[3]), ["1", "2", "-1", "ada", "9", "1"]);
    assert_eq!(row(lines[4]), ["2", "1", "+1", "b\u{fffd}b", "8", "1"]);
    assert_eq!(row(lines[5]), ["3", "3", "c", "1", "1"]);
    assert_eq!(lines[6], "nothing changed; declare them void with --apply");
    let asked = server.received.lock().unwrap().void.take().unwrap();
    let due = VoidMatchesRequest {
        tournament: "finals".into(),
        worker: "cellar".into(),
        ..Default::default()
    };
    assert_eq!(asked, due);
}

#[test]
fn all_filters_of_void_are_sent() {
    let server = Server::start(script());
    let arguments = ["tournament", "void", "finals", "--apply", "--reason", "a clock that ran"];
    let bounds = ["--from", "2001-09-09T01:46:40Z", "--to", "2001-09-09T03:46:41+02:00"];
    let named = ["--match", "3/0", "3/1", "--match", "3/7", "--json"];
    let printed = json(&server, &[&arguments[..], &bounds, &named].concat());
    assert_eq!((&printed[0]["applied"], &printed[0]["matches"]), (&json!(true), &json!(41)));
    let due = json!({"bot": "ada", "rank": 1, "rank_without": 2, "score": ["9"],
        "score_without": ["1"]});
    assert_eq!(printed[0]["places"][0], due);
    let asked = server.received.lock().unwrap().void.take().unwrap();
    assert_eq!(asked.from_us, Some(1_000_000_000_000_000));
    assert_eq!(asked.to_us, Some(1_000_000_001_000_000));
    assert_eq!(asked.matches, ["3/0", "3/1", "3/7"]);
    assert!(asked.apply && asked.reason == "a clock that ran" && asked.worker.is_empty());
    let printed = succeed(&server, &arguments.iter().chain(&bounds).copied().collect::<Vec<_>>());
    assert!(printed.contains("41 matches declared void"), "{printed}");
    assert!(printed.contains("arbiter tournament start finals"), "{printed}");
}

#[test]
fn void_needs_a_valid_filter() {
    let server = Server::start(script());
    let void =
        |arguments: &[&str]| run(&server, &[&["tournament", "void", "finals"], arguments].concat());
    fails(&void(&[]), 2, &["--worker", "--match"]);
    fails(&void(&["--apply"]), 2, &["--worker", "--match"]);
    fails(&void(&["--from", "noon"]), 2, &["noon", "2027-03-01T12:00:00Z"]);
    fails(&void(&["--match", "seven"]), 2, &["seven"]);
    assert!(server.received.lock().unwrap().calls.is_empty(), "nothing was asked");
}

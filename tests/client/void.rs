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
        examples: vec!["finals/0".into(), "finals/1".into()],
        edition: 2,
        missing: 40,
        columns: vec!["points".into()],
        standings: vec![
            place("ada", 1, 2, "9"),
            place("b\u{1b}b", 2, 1, "8"),
            place("c", 3, 3, "1"),
        ],
        note: "later rounds change".into(),
    };
    Script { void, ..Script::default() }
}

#[test]
fn a_preview_declares_nothing_void() {
    let server = Server::start(script());
    let stdout = succeed(&server, &["tournament", "void", "finals", "--worker", "cellar"]);
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines[0], "41 matches selected: finals/0, finals/1, …");
    assert_eq!(lines[1], "edition 2 uses 40 of them");
    let row = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(row(lines[3]), ["1", "2", "-1", "ada", "9", "1"]);
    assert_eq!(row(lines[4]), ["2", "1", "+1", "b\u{fffd}b", "8", "1"]);
    assert_eq!(row(lines[5]), ["3", "3", "c", "1", "1"]);
    assert_eq!(lines[6], "later rounds change");
    assert_eq!(lines[7], "nothing changed; declare them void with --apply");
    let request = server.received.lock().unwrap().void.take().unwrap();
    let expected = VoidMatchesRequest {
        tournament: "finals".into(),
        worker: "cellar".into(),
        ..Default::default()
    };
    assert_eq!(request, expected);
}

#[test]
fn all_filters_of_void_are_sent() {
    let server = Server::start(script());
    let arguments = ["tournament", "void", "finals", "--apply", "--reason", "a clock that ran"];
    let bounds = ["--from", "2001-09-09T01:46:40Z", "--to", "2001-09-09T03:46:41+02:00"];
    let named = ["--match", "finals/0", "finals/1", "--match", "finals/7", "--json"];
    let output = json(&server, &[&arguments[..], &bounds, &named].concat());
    assert_eq!((&output[0]["applied"], &output[0]["matches"]), (&json!(true), &json!(41)));
    let expected = json!({"bot": "ada", "rank": 1, "rank_without": 2, "score": ["9"],
        "score_without": ["1"]});
    assert_eq!(output[0]["places"][0], expected);
    let request = server.received.lock().unwrap().void.take().unwrap();
    assert_eq!(request.from_us, Some(1_000_000_000_000_000));
    assert_eq!(request.to_us, Some(1_000_000_001_000_000));
    assert_eq!(request.matches, ["finals/0", "finals/1", "finals/7"]);
    assert!(request.apply && request.reason == "a clock that ran" && request.worker.is_empty());
    let stdout = succeed(&server, &arguments.iter().chain(&bounds).copied().collect::<Vec<_>>());
    assert!(stdout.contains("41 matches declared void"), "{stdout}");
    assert!(stdout.contains("arbiter tournament start finals"), "{stdout}");
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
    assert!(server.received.lock().unwrap().calls.is_empty(), "no request was sent");
}

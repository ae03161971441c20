//! `arbiter match`, `bots` and `log`.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use arbiter_proto::v1::{Bot, Evidence, LogEntry, Version};
use serde_json::json;

use crate::server::{Script, Server};
use crate::{call, fails, played, run, succeed};

/// Why a bot forfeited.
fn evidence() -> Evidence {
    Evidence { detail: "clock: 12 ms\u{1b} over".into(), wall_us: 512_000, cpu_us: 9 }
}

/// A coordinator with one match and a long record of it.
fn one_match() -> (Script, Vec<u8>) {
    let lines: Vec<_> = (0..50_000).map(|line| format!("{{\"t\":{line}}}\n")).collect();
    let record = lines.concat();
    let mut row = played(3, 17);
    row.params = r#"{"board":"x"}"#.into();
    row.faults = vec!["worker lost\u{1b}[2J".into()];
    row.failed_leases = 1;
    row.seats[1].evidence = Some(evidence());
    let records = HashMap::from([("finals/17".to_owned(), record.clone().into_bytes())]);
    (Script { matches: vec![row], records, ..Script::default() }, record.into_bytes())
}

#[test]
fn a_match_is_shown_with_its_result() {
    let server = Server::start(one_match().0);
    let stdout = succeed(&server, &["match", "finals/17"]);
    let parts = [
        "match finals/17: counted",
        "with {\"board\":\"x\"}",
        "played by cellar-3 at level A' in 1.237 s",
        "transcript 1111",
        "fault: worker lost\u{fffd}[2J",
        "seat 2 forfeited: clock: 12 ms\u{fffd} over (took 512.000 ms, CPU 0.009 ms)",
        "clock",
    ];
    for part in parts {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert_eq!(
        crate::json(&server, &["match", "finals/17", "--json"]),
        [json!({"match": "finals/17", "tournament": "finals", "state": "counted",
            "params": {"board": "x"},
            "seats": [{"bot": "ada", "version": 2}, {"bot": "bob", "version": 2}],
            "scores": [[2], [0]], "forfeits": [null, "clock"], "bad_answers": [0, 0],
            "transcript": "11".repeat(32), "wall_ms": 1237, "worker": "cellar-3", "level": "A'",
            "failed_leases": 1, "faults": ["worker lost\u{1b}[2J"], "evidence": [null,
                {"detail": "clock: 12 ms\u{1b} over", "wall_us": 512_000, "cpu_us": 9}],
            "frozen": null})]
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let heads = words(stdout.lines().nth(2).unwrap());
    assert_eq!(heads, ["seat", "bot", "version", "points", "forfeit"], "as on the page: {stdout}");
    fails(&run(&server, &["match", "finals/18"]), 2, &["no match finals/18"]);
    let mut several = played(3, 17);
    several.columns = vec!["points".into(), "discs".into()];
    several.state = "leased".into();
    let server = Server::start(Script { matches: vec![several], ..Script::default() });
    let stdout = succeed(&server, &["match", "finals/17"]);
    assert!(stdout.contains("score (points discs)"), "{stdout}");
    assert!(stdout.starts_with("match finals/17: playing\n"), "{stdout}");
    let line = &crate::json(&server, &["match", "finals/17", "--json"])[0];
    assert_eq!(line["state"], "playing", "the same word as in the text");
}

#[test]
fn records_are_unpacked() {
    let (script, record) = one_match();
    let server = Server::start(Script { matches: vec![played(3, 17), played(3, 18)], ..script });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("match.jsonl");
    let name = path.to_str().unwrap();
    let stdout = succeed(&server, &["match", "finals/17", "--record", name]);
    assert!(stdout.starts_with("match finals/17"));
    assert!(fs::read(&path).unwrap() == record);
    assert!(run(&server, &["match", "finals/17", "--record", "-"]).stdout == record);
    fails(&run(&server, &["match", "finals/18", "--record", name]), 2, &["no record of finals/18"]);
    assert!(fs::read(&path).unwrap() == record, "a missing record overwrites no file");
    assert_eq!(crate::support::files(folder.path()), [path]);
    let nowhere = folder.path().join("nowhere/match.jsonl");
    let nowhere = nowhere.to_str().unwrap();
    fails(
        &run(&server, &["match", "finals/17", "--record", nowhere]),
        2,
        &["nowhere", "No such file"],
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let server = Server::start(one_match().0);
    let mut command = call(&server.url(), &["match", "finals/17", "--record", "-"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(&start, b"{\"t\":0}\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

/// A house bot, a withdrawn bot whose newest version failed, and a suspended bot.
fn three_bots() -> Vec<Bot> {
    let newest = |number| Version {
        number,
        digest: vec![0xcd; 32],
        submitted_at_us: 1_000_000_000_000_000,
        ..Default::default()
    };
    let house = Bot { name: "house".into(), newest: Some(newest(1)), ..Default::default() };
    let bot = Bot {
        name: "bot".into(),
        owner: "a\u{1b}da".into(),
        withdrawn: true,
        owned_by_caller: true,
        newest: Some(newest(4)),
        pending: Some(Version {
            state: "failed".into(),
            reason: "it \u{1b}forfeits".into(),
            ..newest(5)
        }),
        ..Default::default()
    };
    let failing = Bot {
        name: "failing".into(),
        owner: "eve".into(),
        suspended: true,
        suspended_reason: "it forfeited 3 of 4 matches".into(),
        newest: Some(newest(1)),
        ..Default::default()
    };
    vec![house, bot, failing]
}

#[test]
fn bots_are_listed_with_their_state() {
    let line = |number: u32, forfeit: &str| LogEntry {
        r#match: format!("finals/{number}"),
        seat: 2,
        bots: vec!["house".into(), "bot".into()],
        score: vec![0, -1],
        forfeit: forfeit.into(),
        evidence: (!forfeit.is_empty()).then(evidence),
    };
    let log = vec![line(9, ""), line(7, "gone")];
    let server = Server::start(Script {
        bots: three_bots(),
        log,
        columns: vec!["points".into(), "discs".into()],
        stood_down: "it forfeited\u{1b} too much".into(),
        ..Script::default()
    });
    let table = succeed(&server, &["bots", "finals"]);
    let row: Vec<_> = table.lines().nth(2).unwrap().split_whitespace().collect();
    let moment = ["2001-09-09", "01:46:40", "UTC"];
    assert_eq!(row[..4], ["bot", "a\u{fffd}da", "4", "cdcdcdcdcdcd"]);
    assert_eq!(&row[4..7], moment);
    assert_eq!(row[7..].join(" "), "withdrawn; version 5: trial failed: it \u{fffd}forfeits");
    assert!(table.lines().nth(3).unwrap().ends_with("suspended: it forfeited 3 of 4 matches"));
    let lines = crate::json(&server, &["bots", "finals", "--json"]);
    assert_eq!(
        lines[0],
        json!({"bot": "house", "owner": null, "house": true, "state": null, "created_at": null,
            "owned_by_caller": false, "withdrawn": false,
            "suspended": false, "reason": null, "version": 1,
            "digest": "cd".repeat(32), "submitted_at": "2001-09-09T01:46:40.000000Z",
            "pending": null})
    );
    let pending = &lines[1]["pending"];
    assert_eq!((&pending["version"], &pending["state"]), (&json!(5), &json!("trial failed")));

    let stdout = succeed(&server, &["bots", "finals", "--withdraw", "bot"]);
    assert_eq!(stdout, "bot was withdrawn from finals\n");
    let stdout = succeed(&server, &["bots", "finals", "--reinstate", "failing"]);
    assert_eq!(stdout, "failing was reinstated in finals\n");
    let table = succeed(&server, &["log", "finals", "bot"]);
    assert!(table.contains("score (points discs)"), "{table}");
    let output = run(&server, &["log", "finals", "bot"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("suspended: it forfeited\u{fffd} too much; submit"), "{stderr}");
    let row: Vec<_> = table.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(row[..7], ["finals/7", "2", "house", "bot", "0", "-1", "gone"]);
    assert!(table.contains("clock: 12 ms\u{fffd} over (took 512.000 ms"), "{table}");
    let lines = crate::json(&server, &["log", "finals", "bot", "--forfeits", "--json"]);
    assert_eq!(
        lines,
        [json!({"match": "finals/7", "seat": 2, "seats": ["house", "bot"], "score": [0, -1],
            "forfeit": "gone", "evidence": {"detail": "clock: 12 ms\u{1b} over",
                "wall_us": 512_000, "cpu_us": 9}})]
    );
}

/// A request for the matches before match 0 would return the newest again.
#[test]
fn the_download_of_all_matches_ends_with_match_0() {
    let entry = |number: u32| LogEntry {
        r#match: format!("finals/{number}"),
        seat: 1,
        bots: vec!["bot".into(), "house".into()],
        ..LogEntry::default()
    };
    let log = (0..1000).rev().map(entry).collect();
    let server = Server::start(Script { log, ..Script::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let output = run(&server, &["log", "finals", "bot", "--all", "--download", path]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = "0 records, versions, forfeits.csv; 1000 matches have no record for you now\n";
    assert!(stderr.ends_with(expected), "{stderr}");
    let calls = server.received.lock().unwrap().calls.clone();
    assert_eq!(calls.iter().filter(|call| *call == "log").count(), 1);
}

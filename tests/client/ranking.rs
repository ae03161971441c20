//! `arbiter ranking`: a leaderboard in three formats, in pages, and with live changes.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use arbiter_proto::v1::{Edition, EditionProgress, GetStandingResponse, HeadToHead};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::server::{Script, Server};
use crate::{board, call, fails, harmless, place, run, succeed};

#[test]
fn a_table_names_its_edition() {
    let server = Server::start(board());
    let table = succeed(&server, &["ranking", "finals"]);
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines[0], "edition 1, official: 380 of 380 matches counted");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let row = "1 ada 2 38 47 1.250 1 clock, 2 gone 0".split(' ').collect::<Vec<_>>();
    assert_eq!(words(lines[2]), row);
    assert_eq!(words(lines[3])[..2], ["=2", "bob"]);
    assert_eq!(words(lines[5]), "4 dan 2 38 -3 1.250 - 3".split(' ').collect::<Vec<_>>());
    assert_eq!(lines.len(), 6, "all places are shown, so there is no note about others: {table}");
    assert!(
        succeed(&server, &["ranking", "finals", "--limit", "2", "--offset", "1"])
            .ends_with("places 2 to 3 of 4\n")
    );
    let table = succeed(&server, &["ranking", "finals", "--name", "CY"]);
    assert!(table.contains("cyd") && !table.contains("bob"), "{table}");
}

#[test]
fn owners_and_house_bots_are_marked_as_on_the_page() {
    let mut script = board();
    let table = succeed(&Server::start(script.clone()), &["ranking", "finals"]);
    assert!(
        !table.contains("owner") && !table.contains("house bot"),
        "all are house bots: {table}"
    );
    script.places[0].bot = "ann/ada".to_owned();
    script.places[0].owner = "ann".to_owned();
    let server = Server::start(script);
    let table = succeed(&server, &["ranking", "finals"]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = table.lines().map(words).collect();
    assert_eq!(lines[1][..4], ["#", "bot", "owner", "version"]);
    assert_eq!(lines[2][..4], ["1", "ann/ada", "ann", "2"]);
    assert_eq!(lines[3][..5], ["=2", "bob", "house", "bot", "2"]);
    let csv = succeed(&server, &["ranking", "finals", "--format", "csv"]);
    let owners: Vec<_> = csv.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(owners, ["owner", "ann", "", "", ""]);
    let lines = crate::json(&server, &["ranking", "finals", "--json"]);
    assert_eq!((&lines[0]["owner"], &lines[1]["owner"]), (&json!("ann"), &json!(null)));
}

#[test]
fn a_running_edition_is_mentioned() {
    let mut script = board();
    script.board.running = Some(EditionProgress { edition: 2, matches: 400, counted: 120 });
    script.tournament.editions.clear();
    let table = succeed(&Server::start(script.clone()), &["ranking", "finals"]);
    let line = table.lines().nth(1).unwrap();
    let note = "edition 2 is running, 120 of 400 matches counted; show it with --edition 2";
    assert_eq!(line, note);
    // Once there is an estimate, the note has the time of completion.
    let eta_us = Some(1_000_000_000_000_000);
    let rate = Some(2.0);
    script.tournament.editions = vec![Edition { number: 2, eta_us, rate, ..Edition::default() }];
    let table = succeed(&Server::start(script), &["ranking", "finals"]);
    let line = table.lines().nth(1).unwrap();
    let done = "counted, complete about 2001-09-09 01:46:40 UTC at 2.0 matches a second; show it";
    assert!(line.contains(done), "{line}");
}

#[test]
fn json_has_one_standing_per_line() {
    let server = Server::start(board());
    let lines = crate::json(&server, &["ranking", "finals", "--format", "json"]);
    assert_eq!(
        lines[1],
        json!({"edition": 1, "official": true, "counted": 380, "planned": 380,
            "columns": ["points"], "rank": 2, "tied": true, "bot": "bob", "house": true,
            "owner": null, "version": 2, "matches": 38, "score": [40], "mean": 1.25,
            "forfeits": {"clock": 1, "illegal": 0, "gone": 2, "flood": 0}, "bad_answers": 0})
    );
    assert_eq!(lines.len(), 4);
    assert_eq!(lines, crate::json(&server, &["ranking", "finals", "--json"]));
    let mut huge = board();
    huge.places[0].score = vec!["170141183460469231731687303715884105727".to_owned()];
    let lines = crate::json(&Server::start(huge), &["ranking", "finals", "--json"]);
    assert_eq!(lines[0]["score"][0], "170141183460469231731687303715884105727");
}

#[test]
fn csv_is_quoted() {
    let mut script = board();
    script.board.columns = vec!["points, \"won\"".to_owned()];
    let server = Server::start(script);
    let output = run(&server, &["ranking", "finals", "--format", "csv"]);
    let csv = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = csv.split("\r\n").collect();
    let header = "rank,tied,bot,version,matches,\"points, \"\"won\"\"\",mean,clock,\
        illegal,gone,flood,bad_answers,owner";
    assert_eq!(lines[0], header);
    assert_eq!(lines[2], "2,true,bob,2,38,40,1.25,1,0,2,0,0,");
    assert_eq!(lines[4], "4,false,dan,2,38,-3,1.25,0,0,0,0,3,");
    assert_eq!((lines.len(), lines[5]), (6, ""));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "edition 1, official: 380 of 380 matches counted\n");
}

#[test]
fn names_cannot_control_the_terminal() {
    let mut script = board();
    script.places[0].bot = "\u{1b}[2J\u{9b}1m\u{202e}\nada".to_owned();
    let server = Server::start(script);
    for format in ["table", "json", "csv"] {
        let output = run(&server, &["ranking", "finals", "--format", format]);
        harmless(&output.stdout);
        assert!(!String::from_utf8_lossy(&output.stdout).contains('\u{202e}'), "{format}");
    }
    let lines = crate::json(&server, &["ranking", "finals", "--json"]);
    assert_eq!(lines[0]["bot"], "\u{1b}[2J\u{9b}1m\u{202e}\nada", "JSON does not change the text");
}

/// A leaderboard of more than two pages.
fn long() -> Script {
    let places = (1..=2345).map(|rank| place(rank, false, &format!("bot-{rank}"), "1"));
    Script { places: places.collect(), ..board() }
}

#[test]
fn all_pages_show_one_snapshot() {
    let all = |script| {
        let server = Server::start(script);
        let lines = crate::json(&server, &["ranking", "finals", "--json"]);
        let received = server.received.lock().unwrap();
        (lines, received.calls.len())
    };
    let (lines, calls) = all(long());
    assert_eq!((lines.len(), calls), (2345, 3));
    assert!((1..).zip(&lines).all(|(rank, line)| line["rank"] == rank));
    let (again, calls) = all(Script { restless: 1, ..long() });
    assert_eq!(
        (again.len(), calls),
        (2345, 2 + 3),
        "a page of another moment starts again from the first page"
    );
    assert!(again.iter().all(|line| line["counted"] == 381));
    let server = Server::start(Script { restless: 1000, ..long() });
    fails(&run(&server, &["ranking", "finals"]), 1, &["keeps changing", "--limit"]);
    let some = crate::json(&server, &["ranking", "finals", "--json", "--limit", "1000"]);
    assert_eq!(some.len(), 1000, "all rows of a page are from the same moment");
    let end = crate::json(&server, &["ranking", "finals", "--json", "--offset", "2344"]);
    assert_eq!(end[0]["rank"], 2345);
}

#[test]
fn a_bot_is_shown_with_its_opponents_and_history() {
    let meeting = HeadToHead { opponent: "bob".into(), matches: 2, won: 1, drawn: 0, lost: 1 };
    let former = GetStandingResponse {
        edition: 1,
        standing: Some(place(3, false, "ada", "12")),
        columns: Vec::new(),
    };
    let script = Script { meetings: vec![meeting], history: vec![former], ..board() };
    let server = Server::start(script);
    let stdout = succeed(&server, &["ranking", "finals", "--bot", "ada"]);
    for part in ["ada in edition 1", "against", "bob            2    1      0     1", "47"] {
        assert!(stdout.contains(part), "{stdout}");
    }
    let lines = crate::json(&server, &["ranking", "finals", "--bot", "ada", "--json"]);
    assert_eq!((&lines[0]["standing"]["rank"], lines.len()), (&json!(1), 3));
    let meeting = json!({"against": "bob", "matches": 2, "won": 1, "drawn": 0, "lost": 1});
    assert_eq!(lines[1], json!({ "meeting": meeting }));
    assert_eq!(lines[2]["history"]["score"], json!([12]));
    fails(&run(&server, &["ranking", "finals", "--bot", "eve"]), 2, &["no bot eve"]);
    let csv = run(&server, &["ranking", "finals", "--bot", "ada", "--format", "csv"]);
    fails(&csv, 2, &["table or json"]);
}

#[test]
fn watching_continues_until_it_is_interrupted() {
    let server = Server::start(board());
    let mut command = call(&server.url(), &["ranking", "finals", "--watch", "--format", "csv"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!((0..10).all(|_| lines.next().is_some()), "two leaderboards of five lines each");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(lines.next().is_none());
}

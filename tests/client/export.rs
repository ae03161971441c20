//! `arbiter tournament export`: equal bytes for two runs of a tournament, and never a partial
//! export.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use arbiter_proto::v1::MatchStatus;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Script, Server};
use crate::support::files;
use crate::{board, fails, played, run};

/// A run of a tournament, which had this many matches in earlier editions. In every other run the
/// matches got their numbers in the opposite order.
fn script(run: i32) -> Script {
    let mut script = board();
    script.tournament.editions[1].id = run;
    script.tournament.created_at_us += i64::from(run);
    let listed = (0..40).map(|index| MatchStatus {
        position: Some(if run % 2 == 0 { index } else { 39 - index }),
        ..played(run, i64::from(run) + index)
    });
    let matches: Vec<_> = listed.collect();
    let records = matches.iter().map(|played| {
        (played.r#match.clone(), format!("{{\"record\":\"{}\"}}\n", played.r#match).into_bytes())
    });
    let records: HashMap<_, _> = records.collect();
    Script { matches, records, ..script }
}

fn export(server: &Server, to: &Path, more: &[&str]) -> std::process::Output {
    let to = to.to_str().unwrap();
    run(server, &[&["tournament", "export", "finals", "--out", to], more].concat())
}

fn names(folder: &Path) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files(folder).into_iter().map(name).collect()
}

#[test]
fn two_exports_are_identical() {
    let folder = TempDir::new().unwrap();
    let one = folder.path().join("one");
    let two = folder.path().join("two");
    for (to, run) in [(&one, 30), (&two, 77)] {
        let output = export(&Server::start(script(run)), to, &[]);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            stdout,
            format!("exported edition 1 of finals with 40 matches to {}\n", to.display())
        );
    }
    assert_eq!(names(&one), ["matches.jsonl", "ranking.json", "tournament.json"]);
    for name in names(&one) {
        assert!(fs::read(one.join(&name)).unwrap() == fs::read(two.join(&name)).unwrap(), "{name}");
    }
    assert_eq!(names(folder.path()), ["one", "two"], "the directory has no other file");
    let matches = fs::read_to_string(one.join("matches.jsonl")).unwrap();
    let lines: Vec<Value> =
        matches.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines[17],
        json!({"match": 17,
            "seats": [{"bot": "ada", "version": 2}, {"bot": "bob", "version": 2}],
            "scores": [[2], [0]], "forfeits": [null, "clock"], "bad_answers": [0, 0],
            "transcript": "11".repeat(32)})
    );
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(one.join(name)).unwrap()).unwrap()
    };
    assert_eq!(read("ranking.json")["places"][1]["rank"], 2);
    let tournament = read("tournament.json");
    assert_eq!((&tournament["edition"], &tournament["state"]), (&json!(1), &json!("complete")));
}

#[test]
fn records_are_exported_on_request() {
    let folder = TempDir::new().unwrap();
    let mut script = script(77);
    // The match at position 3.
    script.records.remove("finals/113");
    // An existing empty directory is allowed.
    let output = export(&Server::start(script), folder.path(), &["--records"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stderr, b"1 of 40 matches have no record\n");
    let records = folder.path().join("records");
    let file_names = names(&records);
    assert_eq!(
        (file_names.len(), &file_names[3][..], &file_names[38][..]),
        (39, "000004.jsonl", "000039.jsonl")
    );
    let record = fs::read_to_string(records.join("000017.jsonl")).unwrap();
    assert_eq!(record, "{\"record\":\"finals/99\"}\n");
}

#[test]
fn existing_files_are_not_overwritten() {
    let folder = TempDir::new().unwrap();
    let full = folder.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine"), "").unwrap();
    let server = Server::start(script(30));
    fails(&export(&server, &full, &[]), 2, &["full", "not empty", "--out"]);
    fails(&export(&server, &full.join("mine"), &[]), 2, &["mine", "Not a directory"]);
    let nowhere = export(&server, &folder.path().join("no/where"), &[]);
    fails(&nowhere, 2, &["where", "No such file"]);
    let message = String::from_utf8_lossy(&nowhere.stderr);
    assert!(!message.contains(".arbiter-export-"), "no temporary name is shown: {message}");
    assert!(server.received.lock().unwrap().calls.is_empty(), "no request was sent");
    assert_eq!(names(&full), ["mine"]);
}

#[test]
fn a_failed_export_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let mut script = script(30);
    script.matches[20].r#match = "nonsense".to_owned();
    let to = folder.path().join("to");
    fails(&export(&Server::start(script), &to, &[]), 1, &["malformed response", "nonsense"]);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn the_export_of_a_running_edition_says_so() {
    let folder = TempDir::new().unwrap();
    let mut script = script(31);
    script.board.edition = 2;
    let output = export(&Server::start(script), &folder.path().join("to"), &["--edition", "2"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"edition 2 is running: the export is not final\n");
}

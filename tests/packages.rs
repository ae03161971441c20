//! `arbiter play` and `arbiter verify` with game packages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use arbiter_worker::package::Package;
use serde_json::{Value, json};
use support::{Bots, files, json, run, succeed};

const CONNECT4: &str = "games/packages/connect4";

/// How its rules begin a match.
const REQUEST: &str = r#"return tells + self.frame(f"{self.names[0]} begins") + [self.request()]"#;

/// A shipped bot of the package.
fn bot(name: &str) -> String {
    format!("{CONNECT4}/bots/{name}")
}

/// A copy of the package, with a change of its rules.
fn changed(bots: &Bots, from: &str, to: &str) -> PathBuf {
    let copy = bots.path().join("changed");
    fs::create_dir_all(&copy).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(CONNECT4);
    let mut is_changed = false;
    for name in ["game.toml", "rules.py", "drawing.py"] {
        let text = fs::read_to_string(source.join(name)).unwrap();
        is_changed |= text.contains(from);
        fs::write(copy.join(name), text.replace(from, to)).unwrap();
    }
    assert!(is_changed, "{from}");
    copy
}

#[test]
fn a_package_is_played_and_verified_like_a_built_in_game() {
    let bots = Bots::new();
    let records = bots.path().join("records");
    let records = records.to_str().unwrap();
    let blocker = bot("blocker");
    let center = bot("center");
    let call =
        ["play", CONNECT4, &blocker, &center, "--games", "4", "--seed", "four", "--clock", "cpu"];
    let lines = json(&[&call[..], &["--record", records]].concat());
    let (table, matches) = lines.split_last().unwrap();
    assert_eq!(matches.len(), 4);
    assert_eq!(table["ranking"][0]["bot"], "blocker", "{table}");
    for played in matches {
        assert_eq!(played["forfeits"], json!([null, null]), "{played}");
        let points: i64 = played["scores"]
            .as_array()
            .unwrap()
            .iter()
            .map(|score| score[0].as_i64().unwrap())
            .sum();
        assert_eq!(points, 2, "{played}");
    }
    let verified = json(&["verify", "--game", CONNECT4, records]);
    let transcripts =
        |lines: &[Value]| lines.iter().map(|line| line["transcript"].clone()).collect::<Vec<_>>();
    assert_eq!(transcripts(&verified), transcripts(matches));
    // The same seed gives the same matches.
    let again = json(&call);
    assert_eq!(transcripts(&again[..4]), transcripts(matches));
}

/// The folders in a folder, by name.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn every_shipped_package_is_played_drawn_and_verified() {
    for package in folders(Path::new("games/packages")) {
        let path = package.to_str().unwrap();
        let bots = folders(&package.join("bots"));
        assert!(bots.len() >= 2, "{path}: two bots of different strength");
        assert!(package.join("BOT.md").is_file(), "{path}");
        let seats = Package::load(&package).unwrap().descriptor.seats;
        for count in [*seats.start(), *seats.end()] {
            let scratch = Bots::new();
            let records = scratch.path().join("records");
            let records = records.to_str().unwrap();
            let seated = bots.iter().cycle().take(count).map(|bot| bot.to_str().unwrap());
            let mut call = vec!["play", path];
            call.extend(seated);
            // Other tests may use the processors, so only the bots' own time counts.
            call.extend([
                "--games", "2", "--seed", "shipped", "--clock", "cpu", "--record", records,
            ]);
            let lines = json(&call);
            for played in &lines[..2] {
                let forfeits = played["forfeits"].as_array().unwrap();
                assert!(forfeits.iter().all(Value::is_null), "{path}: {played}");
            }
            succeed(&["verify", "--game", path, records]);
            let record = fs::read_to_string(&files(Path::new(records))[0]).unwrap();
            assert!(record.contains(r#""frame":{"svg":"<svg "#), "{path}");
        }
    }
}

#[test]
fn every_shipped_package_replays_its_golden_records() {
    for package in folders(Path::new("games/packages")) {
        let path = package.to_str().unwrap();
        let output = succeed(&["game", "check", path, "--only", "golden", "--json"]);
        let report = output.lines().last().unwrap();
        let report: Value = serde_json::from_str(report).unwrap();
        // A whole match, and one that an illegal reply ends.
        assert!(report["records"].as_u64().unwrap() >= 2, "{path}: {report}");
    }
}

#[test]
fn a_record_names_the_package_that_it_needs() {
    let bots = Bots::new();
    let records = bots.path().join("records");
    let records = records.to_str().unwrap();
    let blocker = bot("blocker");
    let center = bot("center");
    succeed(&["play", CONNECT4, &blocker, &center, "--games", "2", "--record", records]);
    let without = run(&["verify", records]);
    let stdout = String::from_utf8(without.stdout).unwrap();
    let stderr = String::from_utf8(without.stderr).unwrap();
    assert_eq!(without.status.code(), Some(2), "{stdout}");
    assert_eq!(stdout.matches(": not checked\n").count(), 2, "{stdout}");
    let needed = "played with the game package connect4 version 1 of digest ";
    assert_eq!(stderr.matches(needed).count(), 1, "it is said once: {stderr}");
    assert!(
        stderr.contains("2 of 2 records are not checked: name their game packages with --game")
    );
    let reported = run(&["verify", "--json", records]);
    let line: Value =
        serde_json::from_slice(reported.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
    assert_eq!(line["ok"], Value::Null);
    assert!(line["not_checked"].as_str().unwrap().contains(needed), "{line}");
    let changed = changed(&bots, "len(squares) >= 4", "len(squares) >= 3");
    let other = run(&["verify", "--game", changed.to_str().unwrap(), records]);
    let stderr = String::from_utf8(other.stderr).unwrap();
    assert!(stderr.contains("of digest") && stderr.contains(", not "), "{stderr}");
    // A wrong record counts more than one that is not checked.
    let built_in = Path::new(records).join("wrong.jsonl");
    fs::write(&built_in, "{}\n").unwrap();
    assert_eq!(run(&["verify", records]).status.code(), Some(1));
    fs::remove_file(&built_in).unwrap();
    let edited = files(Path::new(records)).remove(0);
    let text = fs::read_to_string(&edited).unwrap();
    fs::write(&edited, text.replacen("\"reply\":\"3\"", "\"reply\":\"2\"", 1)).unwrap();
    let wrong = run(&["verify", "--game", CONNECT4, records]);
    let stdout = String::from_utf8(wrong.stdout).unwrap();
    assert!(wrong.status.code() == Some(1) && stdout.contains("WRONG, line "), "{stdout}");
}

#[test]
fn a_bot_that_fails_in_a_package_forfeits() {
    let bots = Bots::new();
    let center = bot("center");
    for (name, code, forfeit) in [
        (
            "illegal",
            "for line in sys.stdin:\n    if line == 'move\\n': print(99, flush=True)",
            "illegal",
        ),
        ("gone", "sys.stdin.readline()", "gone"),
        ("late", "for line in sys.stdin:\n    time.sleep(60)", "clock"),
        (
            "flood",
            "for line in sys.stdin:\n    if line == 'move\\n': print('x' * 100000, flush=True)",
            "flood",
        ),
    ] {
        let bad = bots.python(name, code);
        let records = bots.path().join(format!("{name}-records"));
        let records = records.to_str().unwrap();
        // The bot that is late is asked first, so its opponent needs no time.
        let clock = if name == "late" { "wall" } else { "cpu" };
        let call =
            ["play", CONNECT4, &bad, &center, "--record", records, "--no-rotate", "--clock", clock];
        let lines = json(&call);
        assert_eq!(lines[0]["scores"], json!([[0], [2]]), "{name}: {}", lines[0]);
        assert_eq!(lines[0]["forfeits"], json!([forfeit, null]), "{name}");
        succeed(&["verify", "--game", CONNECT4, records]);
    }
}

/// The rules are not trusted. What they do wrong is a fault that names them, and no bot forfeits.
#[test]
fn rules_that_fail_are_a_fault() {
    let blocker = bot("blocker");
    let center = bot("center");
    for (from, to, cause) in [
        (REQUEST, "raise SystemExit(7)", "exited with code 7"),
        (REQUEST, "return tells", "neither asks a seat nor ends"),
        (REQUEST, "return [{'ask': 3, 'text': 'x'}]", "seat 3 is not one of"),
        (REQUEST, "return [{'ask': 0, 'text': 'x'}]", "seat 0 is not one of"),
        (
            REQUEST,
            "return [{'over': [[1]]}]",
            "each of 2 seats needs 1 number in `over`: {\"over\":[[1]]}",
        ),
        (REQUEST, "return [{'over': [[1, 2], [3]]}]", "needs 1 number in"),
        (REQUEST, "return [{'over': [[10**15], [0]]}]", "is not between"),
        (REQUEST, "return [{'win': 1}]", "asked: {\"new\":"),
        (REQUEST, "return 'x' * 10**8", "without ending a reply"),
        ("print(json.dumps(answer)", "print('{'", "answered: {"),
        ("import json", "import json, nothing", "No module named"),
    ] {
        let bots = Bots::new();
        let package = changed(&bots, from, to);
        let output = run(&["play", package.to_str().unwrap(), &blocker, &center]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{to}: {stderr}");
        assert!(stderr.contains("the rules failed") && stderr.contains(cause), "{to}: {stderr}");
    }
}

/// They take no processor time from the bots of another slot. With a match on each processor, every
/// slot has one.
#[test]
fn rules_run_on_the_processors_of_their_slot() {
    let bots = Bots::new();
    let count = "return [{'over': [[len(__import__('os').sched_getaffinity(0))], [0]]}]";
    let package = changed(&bots, REQUEST, count);
    let processors = std::thread::available_parallelism().unwrap().to_string();
    let blocker = bot("blocker");
    let center = bot("center");
    let call = ["play", package.to_str().unwrap(), &blocker, &center, "--no-rotate"];
    let lines = json(&[&call[..], &["--games", "8", "--jobs", &processors]].concat());
    let scores: Vec<_> = lines[..8].iter().map(|line| line["scores"].clone()).collect();
    assert_eq!(scores, vec![json!([[1], [0]]); 8]);
}

#[test]
fn wrong_packages_are_refused_with_the_remedy() {
    let bots = Bots::new();
    let blocker = bot("blocker");
    let center = bot("center");
    let refused = |game: &str| {
        let output = run(&["play", game, &blocker, &center]);
        assert_eq!(output.status.code(), Some(2), "{game}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused("conect4").contains("or name the folder of a game package"));
    assert!(refused("docs").contains("it has no game.toml"));
    let package = changed(&bots, "seats = [2, 2]", "seats = [2, 99]");
    assert!(refused(package.to_str().unwrap()).contains("line 4 of game.toml: seats: write"));
    let package = changed(&bots, "name = \"connect4\"", "name = \"gomoku\"");
    assert!(refused(package.to_str().unwrap()).contains("a built-in game is named gomoku"));
    let settings = run(&["play", CONNECT4, &blocker, &center, "--set", "columns=3"]);
    let stderr = String::from_utf8(settings.stderr).unwrap();
    assert!(stderr.contains("columns cannot be 3: write a whole number from 4 to 20"), "{stderr}");
    let unknown = run(&["play", CONNECT4, &blocker, &center, "--set", "width=3"]);
    let stderr = String::from_utf8(unknown.stderr).unwrap();
    let keys = "its parameters are columns, rows, frames";
    assert!(stderr.contains("--set width: connect4 has no such parameter"), "{stderr}");
    assert!(stderr.contains(keys) && stderr.matches("rows").count() == 1, "{stderr}");
    let package = changed(&bots, "\"python3\"", "\"pithon3\"");
    let message = refused(package.to_str().unwrap());
    assert!(
        message.contains("`pithon3` is not on the PATH") && !message.contains("bot"),
        "{message}"
    );
}

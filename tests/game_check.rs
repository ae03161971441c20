//! The tools of authors of game packages: `arbiter game new`, `check` and `pack`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{Bots, files, json, run, succeed};

const LANGUAGES: [&str; 4] = ["python", "javascript", "rust", "c"];

/// A new package in this directory.
fn new(bots: &Bots, lang: &str) -> String {
    let parent = bots.path().join(lang);
    fs::create_dir(&parent).unwrap();
    succeed(&["game", "new", "mygame", "--lang", lang, "--in", parent.to_str().unwrap()]);
    parent.join("mygame").to_str().unwrap().to_owned()
}

/// A new package in Python with a change of one of its files.
fn changed(bots: &Bots, file: &str, from: &str, to: &str) -> String {
    let package = new(bots, "python");
    let path = Path::new(&package).join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(&path, text.replace(from, to)).unwrap();
    package
}

/// Gives the bots of a package a minute for each reply: the start of an interpreter on a busy
/// machine must not decide a match.
fn allow_slow_replies(package: &str) {
    let path = Path::new(package).join("game.toml");
    let text = fs::read_to_string(&path).unwrap();
    let limit = "move = \"500ms\"";
    assert!(text.contains(limit), "{text}");
    fs::write(&path, text.replace(limit, "move = \"60s\"")).unwrap();
}

/// Runs few matches of every check. Returns the exit code and the reports.
fn check(package: &str, options: &[&str]) -> (i32, Vec<Value>) {
    let call =
        ["game", "check", package, "--json", "--playouts", "6", "--hostile", "400", "--seed", "s"];
    let output = run(&[&call, options].concat());
    let stdout = String::from_utf8(output.stdout).unwrap();
    let reports = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), reports)
}

#[test]
fn new_packages_pass_every_check_and_are_the_same_game_in_all_languages() {
    let bots = Bots::new();
    let mut played = Vec::new();
    for lang in LANGUAGES {
        let package = new(&bots, lang);
        let (code, reports) = check(&package, &[]);
        assert_eq!(code, 0, "{lang}: {reports:#?}");
        let checks: Vec<_> = reports.iter().map(|report| report["check"].clone()).collect();
        let expected = [
            "descriptor",
            "golden",
            "playouts",
            "determinism",
            "scores",
            "frames",
            "speed",
            "hostile",
            "forfeits",
        ];
        assert_eq!(checks, expected, "{lang}");
        assert!(reports[7]["replies"].as_u64().unwrap() >= 400, "{lang}: {}", reports[7]);
        allow_slow_replies(&package);
        let house = ["careful", "greedy"].map(|name| format!("{package}/bots/{name}"));
        let call = ["play", &package, &house[0], &house[1], "--games", "6", "--seed", "s"];
        let matches = json(&call);
        let (table, matches) = matches.split_last().unwrap();
        assert_eq!(table["ranking"][0]["bot"], "careful", "{lang}");
        let transcripts: Vec<_> =
            matches.iter().map(|played| played["transcript"].clone()).collect();
        played.push(transcripts);
    }
    assert!(played.iter().all(|other| *other == played[0]), "{played:#?}");
}

/// Each defect is found by the check that is made for it, and the report shows the question.
#[test]
fn defects_of_rules_are_found() {
    let clock = "f\"move {self.heap} {__import__('time').time_ns()}\"";
    let hashes = "f\"move {self.heap} {list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})}\"";
    let address = "f\"move {self.heap} {id(self)}\"";
    let folder = "f\"move {self.heap} {__import__('os').getcwd()}\"";
    let home = "f\"move {self.heap} {__import__('os').environ['HOME']}\"";
    let request = "f\"move {self.heap}\"";
    let listed = "if reply[\"text\"] not in self.legal():";
    let over = "[[2 if seat == winner else 0] for seat in (1, 2)]";
    let legal = "answer = {\"legal\": match.legal()}";
    for (from, to, stage, cause) in [
        (request, clock, "determinism", "in another environment the rules answer"),
        (request, hashes, "determinism", "in another environment the rules answer"),
        (request, address, "determinism", "in another environment the rules answer"),
        (request, folder, "determinism", "in another environment the rules answer"),
        (request, home, "determinism", "in another environment the rules answer"),
        (
            legal,
            "answer = {\"legal\": match.legal()}; match.names[0] += \"x\"",
            "determinism",
            "`legal` changes the match",
        ),
        (listed, "if not 1 <= int(reply[\"text\"]) <= 3:", "hostile", "ValueError"),
        ("if \"forfeit\" in reply:", "if False:", "forfeits", "KeyError"),
        (over, "[2, 0]", "playouts", "must be a list with a list of whole numbers"),
        (over, "[[2], [0], [0]]", "playouts", "each of 2 seats needs 1 number"),
        ("\"ask\": self.turn", "\"ask\": 3", "playouts", "seat 3 is not one of"),
        (listed, "if reply[\"text\"] not in (\"1\", \"2\"):", "playouts", "as legal, and then"),
        ("self.heap -= int(reply[\"text\"])", "pass", "playouts", "does not end within"),
        ("svg + \"</svg>\"", "svg + \"<script/></svg>\"", "frames", "contains a script"),
        (legal, "raise SystemExit(3)", "playouts", "exited with code 3"),
    ] {
        let bots = Bots::new();
        let package = changed(&bots, "rules.py", from, to);
        let (code, reports) = check(&package, &[]);
        assert_eq!(code, 1, "{to}: {reports:#?}");
        let failed: Vec<_> = reports.iter().filter(|report| report["ok"] == json!(false)).collect();
        let first = failed.first().unwrap();
        assert_eq!(first["check"], stage, "{to}: {first}");
        assert!(first["problem"].as_str().unwrap().contains(cause), "{to}: {first}");
        let answered = first["answered"].as_str().unwrap_or_default();
        assert!(!answered.contains("<svg"), "pictures are left out: {first}");
        assert!(first["asked"].as_str().is_some_and(|asked| asked.starts_with('{')), "{first}");
        let repeat = format!("game check {package} --seed s --only {stage}");
        assert!(first["repeat"].as_str().unwrap().ends_with(&repeat), "{first}");
    }
}

#[test]
fn rules_that_never_answer_are_found() {
    let bots = Bots::new();
    let package =
        changed(&bots, "rules.py", "question = json", "while True: pass\n    question = json");
    let (code, reports) = check(&package, &["--only", "playouts"]);
    assert_eq!(code, 1);
    let problem = reports.last().unwrap()["problem"].as_str().unwrap().to_owned();
    assert!(problem.contains("no answer within 10s"), "{problem}");
}

#[test]
fn records_in_tests_must_replay_with_changed_files_that_play_the_same() {
    let bots = Bots::new();
    let package = new(&bots, "python");
    let house = ["careful", "greedy"].map(|name| format!("{package}/bots/{name}"));
    let tests = format!("{package}/tests");
    let call = ["play", &package, &house[0], &house[1], "--games", "2", "--record", &tests];
    succeed(&call);
    let golden = || {
        let (code, reports) = check(&package, &["--only", "golden", "--only", "descriptor"]);
        (code, reports[1].clone())
    };
    assert_eq!(golden().1["records"], json!(2));
    let rules = Path::new(&package).join("rules.py");
    let text = fs::read_to_string(&rules).unwrap();
    // Another digest, the same game.
    fs::write(&rules, format!("{text}# the end\n")).unwrap();
    assert_eq!(
        golden(),
        (
            0,
            json!({"check": "golden", "ok": true, "records": 2,
        "text": "2 records of tests/ replay exactly"})
        )
    );
    fs::write(&rules, text.replace("f\"start ", "f\"begin ")).unwrap();
    let (code, report) = golden();
    let problem = report["problem"].as_str().unwrap();
    assert!(code == 1 && problem.contains("line 2: expected by the rules"), "{report}");
    fs::write(&rules, text).unwrap();
    let toml = Path::new(&package).join("game.toml");
    let descriptor = fs::read_to_string(&toml).unwrap();
    fs::write(&toml, descriptor.replace("version = \"1\"", "version = \"2\"")).unwrap();
    let (code, report) = golden();
    let problem = report["problem"].as_str().unwrap();
    assert!(code == 1 && problem.contains("with version 1 of the rules; the package"), "{report}");
    fs::write(&toml, descriptor).unwrap();
    let record = files(Path::new(&tests)).remove(0);
    let edited = fs::read_to_string(&record).unwrap().replacen("\"reply\":\"", "\"reply\":\"1", 1);
    fs::write(&record, edited).unwrap();
    let (code, report) = golden();
    assert!(code == 1 && report["problem"].as_str().unwrap().contains("edited"), "{report}");
}

#[test]
fn house_bots_play_if_the_rules_list_no_legal_replies() {
    let bots = Bots::new();
    let legal = "answer = {\"legal\": match.legal()}";
    let package = changed(&bots, "rules.py", legal, "answer = {\"legal\": []}");
    let (code, reports) = check(&package, &["--sandbox", "off"]);
    assert_eq!(code, 0, "{reports:#?}");
    fs::remove_dir_all(Path::new(&package).join("bots")).unwrap();
    let (code, reports) = check(&package, &[]);
    let problem = reports.last().unwrap()["problem"].as_str().unwrap();
    assert!(code == 1 && problem.contains("there are no house bots"), "{problem}");
}

#[test]
fn a_packed_package_is_used_like_its_folder() {
    let bots = Bots::new();
    let package = new(&bots, "python");
    let pack = |out: &str| json(&["game", "pack", &package, "--out", out]).remove(0);
    let at = |name: &str| bots.path().join(name).to_str().unwrap().to_owned();
    let first = pack(&at("first"));
    let second = pack(&at("second"));
    assert_eq!(first["digest"], second["digest"]);
    assert_eq!(fs::read(at("first")).unwrap(), fs::read(at("second")).unwrap());
    let shown = |path: &str| json(&["game", "show", path]).remove(0);
    assert_eq!(shown(&at("first")), shown(&package));
    assert_eq!(shown(&package)["digest"], first["digest"]);
    let (code, reports) = check(&at("first"), &["--only", "playouts"]);
    assert_eq!(code, 0, "{reports:#?}");
    // A newer file of the same game replaces the older one, and nothing else.
    pack(&at("first"));
    let other = bots.file("other", "text");
    let refused = run(&["game", "pack", &package, "--out", &other]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not a packed file of mygame"));
    assert_eq!(fs::read_to_string(&other).unwrap(), "text");
}

#[test]
fn wrong_calls_name_the_remedy() {
    let bots = Bots::new();
    let parent = bots.path().to_str().unwrap();
    for (name, cause) in [
        ("My Game", "`My Game` cannot be the name of a game: write 1 to 32"),
        ("gomoku", "a built-in game"),
    ] {
        let output = run(&["game", "new", name, "--lang", "python", "--in", parent]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(cause), "{stderr}");
    }
    new(&bots, "python");
    let parent = bots.path().join("python");
    let again = run(&["game", "new", "mygame", "--lang", "c", "--in", parent.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists; choose another name"));
    let missing = run(&["game", "check", "nowhere"]);
    assert_eq!(missing.status.code(), Some(2));
    let bots = Bots::new();
    let package = changed(&bots, "game.toml", "seats =", "chairs =");
    let (code, reports) = check(&package, &[]);
    let problem = reports[0]["problem"].as_str().unwrap();
    assert!(
        code == 1 && problem.contains("line 5 of game.toml: unknown field `chairs`"),
        "{problem}"
    );
    let bots = Bots::new();
    let package = changed(&bots, "game.toml", "version = \"1\"", "");
    let (code, reports) = check(&package, &[]);
    let problem = reports[0]["problem"].as_str().unwrap();
    let remedy = "version is missing: add a line such as version = \"1\"";
    assert!(code == 1 && problem.contains(remedy), "{problem}");
}

#[test]
fn games_are_listed_and_shown() {
    let bots = Bots::new();
    let package = new(&bots, "javascript");
    let games = json(&["game", "list", &package]);
    let names: Vec<_> = games.iter().map(|game| game["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["wojna", "bitwa", "tricks", "blackjack", "gomoku", "mygame"]);
    let shown = json(&["game", "show", &package]).remove(0);
    assert_eq!(shown["clock"], json!({"move": "500ms", "announce": null}));
    assert_eq!(shown["params"][0]["default"], json!(21));
    assert_eq!(shown["params"][0]["trial"], json!(9));
    assert_eq!(shown["bot"]["framing"], "line");
    let text = succeed(&["game", "show", &package]);
    assert!(text.contains("heap") && text.contains("500ms for each reply"), "{text}");
    assert!(succeed(&["game", "show", "wojna"]).contains("GTP"));
}

//! `arbiter repro` sends the messages of a recorded seat to a bot again, in all five games.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::{Value, json};
use support::{Bots, arbiter, run, succeed};

/// Plays a match between two bots, and returns the path of its record.
fn record(bots: &Bots, game: &str, seats: [&str; 2], set: &str) -> String {
    let directory = bots.path().join(format!("records-{game}"));
    let out = directory.to_str().unwrap();
    let call = ["play", game, seats[0], seats[1], "--seed", "s", "--sandbox", "off"];
    succeed(&[&call[..], &["--set", set, "--record", out]].concat());
    support::files(&directory).remove(0).to_str().unwrap().to_owned()
}

fn repro(record: &str, seat: &str, bot: &str, more: &[&str]) -> Output {
    let call = ["repro", "--record", record, "--seat", seat, "--bot", bot, "--sandbox", "off"];
    run(&[&call[..], more].concat())
}

fn plies(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const GAMES: [(&str, &str); 5] = [
    ("wojna", "deals=1"),
    ("bitwa", "rounds=9"),
    ("tricks", "tables=4"),
    ("blackjack", "hands=5"),
    ("gomoku", "overline=wins"),
];

#[test]
fn the_same_bot_gives_the_same_replies() {
    let bots = Bots::new();
    let [one, two] = ["one", "two"].map(|name| bots.rascal(name, "honest", 0, ""));
    for (game, set) in GAMES {
        // The HTTP bot of tricks cannot be replayed in this way.
        let (one, two) = match game {
            "tricks" => ("bots/tricks/lowest", "bots/tricks/counter"),
            _ => (one.as_str(), two.as_str()),
        };
        let record = record(&bots, game, [one, two], set);
        let text = fs::read_to_string(&record).unwrap();
        for seat in ["1", "2"] {
            let is_reply = |line: &&str| line.contains(&format!("\"seat\":{seat},\"reply\""));
            let expected = text.lines().filter(is_reply).count();
            let bot = if seat == "1" { one } else { two };
            let output = repro(&record, seat, bot, &["--json"]);
            assert_eq!(output.status.code(), Some(0), "{game} {seat}: {output:?}");
            let plies = plies(&output);
            assert_eq!(plies.len(), expected, "{game} {seat}");
            assert!(
                expected > 0 && plies.iter().all(|ply| ply["same"] == true),
                "{game} {plies:?}"
            );
            assert!(plies.iter().all(|ply| ply["got"]["wall_us"].is_i64()), "{game}");
        }
    }
}

#[test]
fn the_submitted_source_file_gives_the_same_replies() {
    let bots = Bots::new();
    let center = fs::read_to_string("bots/gomoku/center/bot.py").unwrap();
    let file = bots.file("mybot.py", &center);
    let record = record(&bots, "gomoku", [&file, "bots/gomoku/center"], "move_limit=30s");
    let temporary = tempfile::tempdir().unwrap();
    for mode in [0o644, 0o755] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let call = ["repro", "--record", &record, "--seat", "1", "--bot", &file];
        let mut command = arbiter();
        command.args(call).args(["--sandbox", "off"]).env("TMPDIR", temporary.path());
        let output = command.output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{mode:o}: {output:?}");
        assert!(stdout.ends_with("replies, all the same\n"), "{mode:o}: {stdout}");
        assert_eq!(support::files(temporary.path()).len(), 0, "nothing is left");
    }
}

#[test]
fn a_compressed_record_gives_the_same_replies() {
    let bots = Bots::new();
    let one = bots.rascal("one", "honest", 0, "");
    let record = record(&bots, "gomoku", [&one, &one], "overline=wins");
    let packed = format!("{record}.zst");
    fs::write(&packed, zstd::encode_all(&fs::read(&record).unwrap()[..], 3).unwrap()).unwrap();
    let [plain, compressed] = [&record, &packed].map(|file| repro(file, "1", &one, &["--json"]));
    assert_eq!(compressed.status.code(), Some(0), "{compressed:?}");
    let replies = |output: &Output| {
        let plies = plies(output).into_iter();
        plies.map(|ply| ply["reply"].clone()).collect::<Vec<_>>()
    };
    assert!(!replies(&plain).is_empty());
    assert_eq!(replies(&compressed), replies(&plain));
}

#[test]
fn the_place_of_a_difference_is_shown() {
    let bots = Bots::new();
    let [one, two] = ["one", "two"].map(|name| bots.rascal(name, "honest", 0, ""));
    let record = record(&bots, "gomoku", [&one, &two], "move_limit=30s");
    let odd = bots.rascal("odd", "garbage", 2, "");
    let output = repro(&record, "1", &odd, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let plies = plies(&output);
    let same: Vec<_> = plies.iter().map(|ply| ply["same"] == true).collect();
    assert_eq!(same[..3], [true, true, false], "{plies:?}");
    assert!(plies[2]["told"].as_str().unwrap().starts_with("3 ["), "{}", plies[2]);
    assert_ne!(plies[2]["expected"]["reply"], plies[2]["got"]["reply"]);
    let output = repro(&record, "1", &odd, &["--all"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = stdout.lines().collect();
    assert!(lines[0].starts_with(" 1: ") && lines[1].starts_with(" 2: "), "{stdout}");
    assert!(lines[2].starts_with("@@ 3 @@ 3 ["), "{stdout}");
    assert!(lines[3].starts_with('-') && lines[3].contains(" ms, CPU "), "{stdout}");
    assert!(lines[4].starts_with('+') && lines[4].contains(" ms, CPU "), "{stdout}");
}

/// Time limits and forfeits are those of the match.
#[test]
fn forfeits_are_compared_like_replies() {
    let bots = Bots::new();
    let [one, two] = ["one", "two"].map(|name| bots.rascal(name, "honest", 0, ""));
    let fast = record(&bots, "gomoku", [&one, &two], "move_limit=200ms");
    let slow = bots.rascal("slow", "slow", 1, "");
    let output = repro(&fast, "2", &slow, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let last = plies(&output).pop().unwrap();
    assert_eq!((&last["ply"], &last["got"]["forfeit"]), (&json!(2), &json!("clock")));
    assert!(last["got"]["detail"].as_str().unwrap().contains("over the limit of 200 ms"), "{last}");
}

/// A bot that failed either fails again, which is exit code 1, or now replies.
#[test]
fn a_bot_that_fails_again_is_named_as_such() {
    let bots = Bots::new();
    let [one, two] = ["one", "two"].map(|name| bots.rascal(name, "honest", 0, ""));
    for (mode, forfeit) in [
        ("exit", "forfeit: gone: exited with code 3"),
        ("segv", "forfeit: gone: was killed by SIGSEGV"),
        ("silent", "forfeit: clock: "),
        ("unterminated", "forfeit: clock: "),
        ("twice", "forfeit: illegal: wrote 5 bytes more than one reply"),
        ("garbage", "forfeit: illegal: "),
        ("flood-line", "forfeit: flood: wrote more than 65536 bytes"),
    ] {
        let bot = bots.rascal(mode, mode, 1, "");
        let waits = forfeit == "forfeit: clock: ";
        let limit = if waits { "move_limit=1s" } else { "move_limit=30s" };
        let record = record(&bots, "gomoku", [&bot, &two], limit);
        let output = repro(&record, "1", &bot, &[]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{mode}: {message}");
        let says = "the bot fails again at the same place (reply 2, after `1 [";
        assert!(message.contains(says) && message.contains(forfeit), "{mode}: {message}");
        let last = plies(&repro(&record, "1", &bot, &["--json"])).pop().unwrap();
        assert_eq!(last["verdict"], "fails_again", "{mode}: {last}");

        let output = repro(&record, "1", &one, &[]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{mode}: {output:?}");
        let says = "2 replies: the bot now replies where it failed (reply 2, after `1 [";
        assert!(stdout.contains(says) && stdout.contains(forfeit), "{mode}: {stdout}");
        fs::remove_file(&record).unwrap();
    }
}

#[test]
fn the_cause_of_a_failure_is_shown() {
    let bots = Bots::new();
    let two = bots.rascal("two", "honest", 0, "");
    let crash = "sys.stdin.readline()\nprint('in move 1', file=sys.stderr)\nraise SystemExit(7)";
    let crashes = bots.python("crashes", crash);
    let record = record(&bots, "gomoku", [&crashes, &two], "move_limit=30s");
    let output = repro(&record, "1", &crashes, &[]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("last lines of its standard error:\n  in move 1\n"), "{stdout}");
    assert!(stdout.contains("hint: it exited before its first reply"), "{stdout}");
    let last = plies(&repro(&record, "1", &crashes, &["--json"])).pop().unwrap();
    assert_eq!(last["stderr"], json!(["in move 1"]), "{last}");

    // Another failure in the same place is a failure, too.
    let garbage = bots.python("garbage", "sys.stdin.readline()\nprint('what to do')");
    let output = repro(&record, "1", &garbage, &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("what to do  forfeit: illegal: "), "{message}");
    assert!(message.contains("in the record: forfeit: gone: exited with code 7"), "{message}");
    fs::remove_file(&record).unwrap();
    let illegal = self::record(&bots, "gomoku", [&garbage, &two], "move_limit=30s");
    let other = bots.python("other", "sys.stdin.readline()\nprint('(0,0)')");
    let output = repro(&illegal, "1", &other, &[]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("(0,0)  forfeit: illegal: "), "{message}");
    assert!(message.contains("in the record: what to do  forfeit: illegal: "), "{message}");
}

#[test]
fn invalid_arguments_are_explained() {
    let bots = Bots::new();
    let one = bots.rascal("one", "honest", 0, "");
    let says = |output: &Output, code: i32, says: &[&str]| {
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(says.iter().all(|part| message.contains(part)), "{message}");
    };
    says(&repro("/nowhere.jsonl", "1", &one, &[]), 2, &["/nowhere.jsonl", "No such file"]);
    let none = bots.file("none.jsonl", "{}\n");
    says(&repro(&none, "1", &one, &[]), 1, &["the record: line 1", "not that of a record"]);
    says(&repro(&none, "0", &one, &[]), 2, &["--seat", "1..=16"]);
    says(&repro(&none, "1", &one, &["finals/1207"]), 2, &["--record", "cannot be used"]);
    says(&run(&["repro", "--seat", "1", "--bot", &one]), 2, &["MATCH", "--help"]);
    let gomoku = record(&bots, "gomoku", [&one, &one], "move_limit=1s");
    let beyond = repro(&gomoku, "3", &one, &[]);
    says(&beyond, 2, &["--seat: the match has 2 seats"]);
    let message = String::from_utf8_lossy(&beyond.stderr);
    assert!(!message.contains("replaying"), "the seat is checked first: {message}");
    let text = fs::read_to_string(&gomoku).unwrap();
    let edited = bots.file("edited.jsonl", &text.replacen("\"t\":", "\"t\":9", 1));
    says(&repro(&edited, "1", &one, &[]), 1, &["the record", "line"]);
}

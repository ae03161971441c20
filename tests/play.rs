//! `arbiter play` with real bots.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::strength::StrengthGame;
use support::{Bots, arbiter, files, json, run, succeed};

/// The shipped bots of a game.
fn shipped(game: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("bots").join(game);
    files(&root).iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// A short match of each game: the bots, and settings for a short match with enough time for the
/// bots on slow machines.
fn short_matches() -> Vec<(&'static str, Vec<String>, Vec<&'static str>)> {
    let of = |game: &'static str, seats: usize, settings: &[&'static str]| {
        let bots = shipped(game).into_iter().cycle().take(seats).collect();
        let settings = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        (game, bots, settings)
    };
    vec![
        of("wojna", 4, &["deals=2", "clock=36000000/1000/36000000/100"]),
        of("bitwa", 3, &["board=przyklad", "bank=10h"]),
        of("tricks", 3, &["tables=4", "move_limit=10h"]),
        of("blackjack", 3, &["rounds=2", "move_limit=10h"]),
        of("gomoku", 3, &["move_limit=10h"]),
    ]
}

#[test]
fn five_games_are_played_and_verified() {
    let bots = Bots::new();
    for (game, entrants, settings) in short_matches() {
        let records = bots.path().join(game);
        let mut call = vec!["play", game];
        call.extend(entrants.iter().map(String::as_str));
        call.extend(["--seed", "five", "--record", records.to_str().unwrap()]);
        call.extend(settings);
        let lines = json(&call);
        let (table, matches) = lines.split_last().unwrap();
        assert_eq!(table["ranking"].as_array().unwrap().len(), entrants.len(), "{game}");
        assert_eq!(files(&records).len(), matches.len(), "{game}");
        for played in matches {
            let fair = played["forfeits"].as_array().unwrap().iter().all(Value::is_null);
            assert!(fair, "shipped bots play by the rules: {played}");
            let bad = played["bad_answers"].as_array().unwrap();
            assert!(bad.iter().all(|count| *count == 0), "{played}");
        }
        let verified = json(&["verify", records.to_str().unwrap()]);
        for (record, played) in verified.iter().zip(matches) {
            assert_eq!(record["transcript"], played["transcript"], "{game}");
            assert_eq!(record["scores"], played["scores"], "{game}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_transcripts() {
    for (game, entrants, settings) in short_matches() {
        let mut call = vec!["play", game, "--games", "2"];
        call.extend(entrants.iter().map(String::as_str));
        call.extend(settings);
        let transcripts = |seed: &str, jobs: &str| -> Vec<Value> {
            let lines = json(&[&call[..], &["--seed", seed, "--jobs", jobs]].concat());
            // Forfeits and their details explain a difference.
            let summary =
                |line: &Value| json!([line["transcript"], line["forfeits"], line["details"]]);
            lines.iter().map(summary).collect()
        };
        let first = transcripts("one", "1");
        assert_eq!(first, transcripts("one", "3"), "{game}: the same with three matches at a time");
        if game != "bitwa" {
            assert_ne!(
                first,
                transcripts("two", "1"),
                "{game}: another seed gives other transcripts"
            );
        }
    }
}

#[test]
fn seats_rotate_by_default() {
    let bots = Bots::new();
    let one = bots.rascal("one", "honest", 0, "");
    let two = bots.rascal("two", "honest", 0, "");
    let seats = |more: &[&str]| -> Vec<Value> {
        let lines = json(&[&["play", "gomoku", &one, &two, "--games", "3"], more].concat());
        lines[..3].iter().map(|line| line["seats"][0].clone()).collect()
    };
    assert_eq!(seats(&[]), ["one", "two", "one"]);
    assert_eq!(seats(&["--no-rotate"]), ["one", "one", "one"]);
}

#[test]
fn copies_of_a_bot_are_numbered_and_all_pairs_play() {
    let bots = Bots::new();
    let bot = &bots.rascal("same", "honest", 0, "");
    let lines = json(&["play", "gomoku", bot, bot, bot]);
    let seats: Vec<_> = lines[..3].iter().map(|line| &line["seats"]).collect();
    let [one, two, three] = ["same#1", "same#2", "same#3"];
    assert_eq!(seats, [&json!([one, two]), &json!([one, three]), &json!([two, three])]);
}

#[test]
fn bots_of_one_name_are_told_apart_by_their_paths() {
    let game = StrengthGame::new();
    let strong = game.bot(9);
    let weak = game.bot(3);
    let named = |path: &str| format!("bot ({path})");
    let lines = json(&["play", &game.package, &strong, &weak]);
    assert_eq!(lines[0]["seats"], json!([named(&strong), named(&weak)]));
    let rows = lines[1]["ranking"].as_array().unwrap();
    let mut shown: Vec<_> = rows.iter().map(|row| row["bot"].as_str().unwrap()).collect();
    shown.sort_unstable();
    assert_eq!(shown, [named(&weak), named(&strong)]);
    assert!(rows.iter().any(|row| row["path"] == *weak && row["name"] == "bot-2"), "{rows:?}");

    // The table and the messages name them in the same way, and copies by number as well.
    fs::write(format!("{weak}/bot.py"), "import sys\nsys.exit(3)\n").unwrap();
    let output = run(&["play", &game.package, &strong, &weak, &strong, "--stderr"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(&format!("game 1: {} forfeits, gone", named(&weak))), "{stderr}");
    for label in [format!("bot#1 ({strong})"), format!("bot#2 ({strong})"), named(&weak)] {
        assert!(stdout.contains(&label), "{label}: {stdout}");
    }
}

#[test]
fn the_table_says_how_often_each_bot_won() {
    let game = StrengthGame::new();
    let strong = game.bot(9);
    let weak = game.bot(3);
    let rows = |bots: &[&str], keys: &[&str]| -> Vec<Value> {
        let call = ["play", &game.package, "--games", "3", "--set", "luck=false"];
        let table = json(&[&call[..], bots].concat()).pop().unwrap();
        let rows = table["ranking"].as_array().unwrap().iter();
        rows.map(|row| keys.iter().map(|key| row[*key].clone()).collect()).collect()
    };
    let pair = ["won", "drawn", "lost", "first", "mean"];
    let decided = [json!([3, 0, 0, null, 2.0]), json!([0, 0, 3, null, 0.0])];
    assert_eq!(rows(&[&weak, &strong], &pair), decided);
    assert_eq!(
        rows(&[&weak, &weak], &pair),
        [json!([0, 3, 0, null, 1.0]), json!([0, 3, 0, null, 1.0])]
    );
    // Of three bots one is first, or several share the place.
    let keys = ["won", "first", "shared_first"];
    let rest = json!([null, 0, 0]);
    assert_eq!(
        rows(&[&weak, &weak, &strong], &keys),
        [json!([null, 3, 0]), rest.clone(), rest.clone()]
    );
    let shared = json!([null, 0, 3]);
    assert_eq!(rows(&[&strong, &weak, &strong], &keys), [shared.clone(), shared, rest]);

    let table = succeed(&["play", &game.package, &strong, &weak, "--games", "2"]);
    assert!(table.contains("games  won  drawn  lost  points  mean per game  forfeits"), "{table}");
    let table = succeed(&["play", &game.package, &strong, &weak, &weak]);
    assert!(table.contains("games  first  shared first  points  mean per game"), "{table}");
    assert!(!table.contains('±'), "no interval without a question: {table}");
}

#[test]
fn repeated_games_are_counted_and_named() {
    let game = StrengthGame::new();
    let strong = game.bot(9);
    let weak = game.bot(3);
    let call = ["play", &game.package, &strong, &weak, "--games", "6", "--seed", "s"];
    let same = [&call[..], &["--set", "luck=false"]].concat();
    let stdout = succeed(&same);
    let remark = "6 games, 2 distinct: the bots and the game seem to use no chance, so more games \
                  tell nothing new\n";
    assert!(stdout.ends_with(remark), "{stdout}");
    let counts = |call: &[&str]| {
        let table = json(call).pop().unwrap();
        [table["games"].clone(), table["distinct_games"].clone()]
    };
    assert_eq!(counts(&same), [6, 2]);
    assert_eq!(counts(&call), [6, 6]);
    let stdout = succeed(&call);
    assert!(!stdout.contains("distinct"), "{stdout}");
}

#[test]
fn means_of_episodes_are_named_so() {
    let bots = Bots::new();
    let bot = bots.file("stands.sh", "#!/bin/sh\necho S\n");
    fs::set_permissions(&bot, fs::Permissions::from_mode(0o755)).unwrap();
    let call = ["play", "blackjack", &bot, &bot, "--set", "rounds=2", "--set", "hands=1"];
    let stdout = succeed(&[&call[..], &["--games", "2"]].concat());
    let header = "episodes  won  drawn  lost  chips  broke  mean per episode";
    assert!(stdout.contains(header), "{stdout}");
}

/// The same command with a terminal for its output.
#[expect(clippy::disallowed_methods, reason = "the program runs in a simulated terminal")]
fn in_terminal(command: &Command) -> Command {
    let script = "import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut terminal = Command::new("python3");
    terminal.args(["-c", script]).arg(command.get_program()).args(command.get_args());
    terminal.current_dir(env!("CARGO_MANIFEST_DIR")).env("TERM", "xterm").env_remove("NO_COLOR");
    terminal
}

#[test]
fn a_terminal_shows_the_progress_and_the_time_left() {
    let game = StrengthGame::new();
    let strong = game.bot(9);
    let weak = game.bot(3);
    let mut command = arbiter();
    command.args(["play", &game.package, &strong, &weak, "--games", "30"]);
    let output = in_terminal(&command).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let bar = shown.split('\r').find(|line| line.contains("/30 [") && line.contains(" left"));
    let bar = bar.unwrap_or_else(|| panic!("no progress: {shown}"));
    let rate = bar.contains("/s, ") || bar.contains("/min, ");
    assert!(rate && bar.contains("games ") && bar.contains(" elapsed, "), "{bar}");
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("seed ") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn forfeits_are_results_with_evidence() {
    let bots = Bots::new();
    let honest = &bots.rascal("honest", "honest", 0, "");
    for (mode, forfeit, evidence) in [
        ("segv", "gone", "gone: was killed by SIGSEGV"),
        ("exit", "gone", "gone: exited with code 3"),
        ("garbage", "illegal", "illegal: "),
        ("twice", "illegal", "illegal: wrote 5 bytes more than one reply"),
        ("flood-line", "flood", "flood: wrote more than 65536 bytes"),
        ("silent", "clock", "clock: "),
    ] {
        let rascal = &bots.rascal(mode, mode, 1, "");
        let limit = if forfeit == "clock" { "move_limit=1s" } else { "move_limit=30s" };
        let lines = json(&["play", "gomoku", honest, rascal, "--set", limit]);
        assert_eq!(lines[0]["scores"].to_string(), "[[2],[0]]", "{mode}");
        assert_eq!(lines[0]["forfeits"][1], forfeit, "{mode}");
        let detail = lines[0]["details"][1].as_str().unwrap();
        assert!(detail.starts_with(evidence), "{mode}: {detail}");
        let rows = lines[1]["ranking"].as_array().unwrap();
        assert_eq!(rows[1]["forfeits"][forfeit], 1, "{mode}");
    }
}

/// An executable file with this text.
fn script(bots: &Bots, name: &str, text: &str) -> String {
    let path = bots.file(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn forfeits_come_with_the_hints_of_trials() {
    let bots = Bots::new();
    let honest = &bots.rascal("honest", "honest", 0, "");
    let unflushed = "for line in sys.stdin:\n    print('(7,7)')";
    let debug = "for line in sys.stdin:\n    print('the best square is (7,7)', flush=True)";
    let lone =
        "import time\nfor line in sys.stdin:\n    print('depth 5', flush=True); time.sleep(9)";
    let crash = "import sys; print('no such table', file=sys.stderr); sys.exit(4)";
    for (bot, hint) in [
        (bots.python("unflushed", unflushed), "after each reply (print(…, flush=True))"),
        (bots.python("debug", debug), "print debug output to standard error"),
        (bots.python("lone", lone), "print debug output to standard error"),
        (bots.python("crash", crash), "it exited before its first reply"),
        (script(&bots, "crlf.x", "#!/usr/bin/env python3\r\nprint()\r\n"), "ends with CR LF"),
        (script(&bots, "crlf.sh", "#!/bin/sh\r\necho\r\n"), "ends with CR LF"),
        (script(&bots, "lua", "#!/usr/bin/no-such-lua\n"), "the interpreter /usr/bin/no-such-lua"),
        (script(&bots, "bare", "print()\n"), "begin a script with a line such as #!"),
        (bots.rascal("open", "unterminated", 0, ""), "a reply that ends with a newline"),
        (bots.rascal("twice", "twice", 0, ""), "one reply to each request"),
    ] {
        let call = ["play", "gomoku", &bot, honest, "--set", "move_limit=200ms"];
        let output = run(&[&call[..], &["--games", "3", "--no-rotate"]].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{message}");
        let name = Path::new(&bot).file_stem().unwrap().to_str().unwrap();
        let hints: Vec<_> = message.lines().filter(|line| line.contains("hint for ")).collect();
        assert_eq!(hints.len(), 1, "once for three games: {message}");
        let start = format!("hint for {name}: ");
        assert!(hints[0].starts_with(&start) && hints[0].contains(hint), "{bot}: {message}");
        let shown = message.contains("last lines of crash's standard error:\n  no such table");
        assert_eq!(shown, name == "crash", "{message}");
        let lines = json(&call);
        assert!(lines[0]["hints"][0].as_str().unwrap().contains(hint), "{}", lines[0]);
        assert_eq!(lines[0]["hints"][1], Value::Null, "{}", lines[0]);
    }
}

#[test]
fn bad_replies_come_with_hints_too() {
    let bots = Bots::new();
    let table = ["one", "two", "three"].map(|name| bots.python(name, "print('S')"));
    for (name, code, hint) in [
        ("debug", "print('total', 12)\nprint('S')", "print debug output to standard error"),
        ("crash", "sys.exit('no such table')", "the last lines of its standard error say why"),
    ] {
        let bot = bots.python(name, code);
        let call = ["play", "blackjack", &bot, &table[0], &table[1], &table[2]];
        let message = String::from_utf8(run(&call).stderr).unwrap();
        assert!(message.contains(&format!("{name} gave a bad reply, ")), "{message}");
        let hints: Vec<_> = message.lines().filter(|line| line.contains("hint for ")).collect();
        assert_eq!(hints.len(), 1, "once for all hands: {message}");
        assert!(hints[0].contains(hint), "{message}");
        let shown = message.contains("last lines of crash's standard error:\n  no such table");
        assert_eq!(shown, name == "crash", "{message}");
        let lines = json(&call);
        assert!(lines[0]["hints"][0].as_str().unwrap().contains(hint), "{}", lines[0]);
    }
}

#[test]
fn tolerated_protocol_errors_are_warnings() {
    let bots = Bots::new();
    let honest = &bots.rascal("honest", "honest", 0, "");
    let crlf = &bots.rascal("crlf", "crlf", 0, "");
    let output = run(&["play", "gomoku", crlf, honest, "--games", "2"]);
    let message = String::from_utf8(output.stderr).unwrap();
    let warning = "warning: crlf: its lines end with CR LF: write LF only\n";
    assert_eq!(message.matches(warning).count(), 1, "{message}");
    assert!(!message.contains("warning: honest"), "{message}");
}

/// The ending tells the language, as in a submission. An executable text without a `#!` line would
/// otherwise go to a shell.
#[test]
fn a_source_file_plays_in_its_language() {
    let bots = Bots::new();
    let python = &fs::read_to_string("bots/gomoku/center/bot.py").unwrap();
    let c = &fs::read_to_string("bots/gomoku/shapes/bot.c").unwrap();
    let sources = [
        bots.file("plain.py", python),
        script(&bots, "executable.py", python),
        script(&bots, "crlf.py", &format!("#!/usr/bin/env python3\r\n{python}")),
        script(&bots, "script.py", &format!("#!/usr/bin/env python3\n{python}")),
        bots.file("compiled.c", c),
    ];
    let paths = sources.each_ref().map(String::as_str);
    let call = ["play", "gomoku", "--set", "move_limit=30s"];
    let lines = json(&[&call[..], &paths].concat());
    let (table, matches) = lines.split_last().unwrap();
    assert_eq!(matches.len(), 10);
    for played in matches {
        assert_eq!(played["forfeits"], json!([null, null]), "{played}");
    }
    let rows = table["ranking"].as_array().unwrap();
    let mut names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["compiled", "crlf", "executable", "plain", "script"]);
    assert_eq!(files(bots.path()).len(), paths.len(), "a build leaves nothing beside its source");

    let without_compiler = ["play", "gomoku", paths[4], paths[4], "--sandbox", "off"];
    let output = arbiter().args(without_compiler).env("PATH", "/nowhere").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("compiled.c: cannot build: cc -O2 "), "{message}");
    assert!(message.contains("`cc` is not on the PATH; install it"), "{message}");
}

/// A JVM tells that it has read the options of the sandbox, which no author can avoid.
#[test]
fn a_java_bot_is_quiet() {
    let bots = Bots::new();
    let bot = bots.path().join("quiet");
    fs::create_dir(&bot).unwrap();
    let code = "public class Bot { public static void main(String[] a) { System.exit(0); } }";
    fs::write(bot.join("Bot.java"), code).unwrap();
    let manifest = "name = \"quiet\"\nrun = [\"java\", \"Bot.java\"]\nstderr = true\n";
    fs::write(bot.join("bot.toml"), manifest).unwrap();
    let bot = bot.to_str().unwrap();
    let honest = &bots.rascal("honest", "honest", 0, "");
    // On a busy machine, a JVM that compiles its source has needed more than 10 s to start.
    let call = ["play", "gomoku", bot, honest, "--stderr", "--set", "move_limit=60s"];
    let output = run(&call);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("quiet forfeits, gone: exited with code 0"), "{message}");
    assert!(!message.contains("JAVA_TOOL_OPTIONS"), "{message}");
}

#[test]
fn a_koth_bot_and_a_single_program_play() {
    let bots = Bots::new();
    let built = bots.rascal("built", "honest", 0, "");
    succeed(&["play", "gomoku", &built, &built]);
    let koth = bots.path().join("koth");
    fs::create_dir(&koth).unwrap();
    fs::copy(format!("{built}/bot"), koth.join("five")).unwrap();
    fs::write(koth.join("meta"), "koth\n./five\nhonest 0\n1\n").unwrap();
    let single = bots.path().join("single.exe");
    fs::copy(format!("{built}/bot"), &single).unwrap();
    let lines = json(&["play", "gomoku", koth.to_str().unwrap(), single.to_str().unwrap()]);
    assert_eq!(lines[0]["seats"].to_string(), "[\"koth\",\"single\"]");
    assert_eq!(lines[0]["forfeits"].to_string(), "[null,null]");
}

#[test]
fn standard_error_is_shown_and_stored_on_request() {
    let bots = Bots::new();
    let quiet = &bots.rascal("quiet", "honest", 0, "");
    let loud = &bots.rascal("loud", "stderr", 0, "stderr = true\n");
    let records = bots.path().join("records");
    let out = records.to_str().unwrap();
    let output = run(&["play", "gomoku", quiet, loud, "--stderr", "--record", out]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("[1 loud] eeee"), "the end of standard error is shown");
    let record = fs::read_to_string(&files(&records)[0]).unwrap();
    let line = record.lines().rev().nth(1).unwrap();
    assert!(line.starts_with("{\"seat\":2,\"stderr\":\"eeee"), "{line}");
    assert!(line.ends_with("\",\"dropped\":983040}"));
}

#[test]
fn files_are_kept_only_on_request() {
    let bots = Bots::new();
    let counter = bots.path().join("counter");
    fs::create_dir(&counter).unwrap();
    // The bot stands in its first three executions in a directory, then hits.
    let script = "#!/bin/sh\necho x >> seen\n[ $(wc -l < seen) -gt 3 ] && echo H || echo S\n";
    fs::write(counter.join("bot.sh"), script).unwrap();
    fs::write(counter.join("meta"), "counter\nsh\nbot.sh\n0\n").unwrap();
    let bot = counter.to_str().unwrap();
    let transcripts = |more: &[&str]| -> Vec<Value> {
        let call = ["play", "blackjack", bot, "--games", "2", "--set", "hands=2", "--seed", "s"];
        let lines = json(&[&call[..], more].concat());
        lines.iter().map(|line| line["transcript"].clone()).collect()
    };
    assert_eq!(transcripts(&[]), transcripts(&[]));
    let fresh = transcripts(&[]);
    let with_files = transcripts(&["--keep-files"]);
    assert_eq!(fresh[0], with_files[0], "the first match finds no files");
    assert_ne!(fresh[1], with_files[1], "the second match finds files");
    assert!(!counter.join("seen").exists(), "the bot's own directory is never written to");
}

#[test]
fn ctrl_c_does_not_lose_finished_matches() {
    let bots = Bots::new();
    let slow = &bots.rascal("slow", "slow", 1, "");
    let records = bots.path().join("records");
    let mut child = arbiter()
        .args(["play", "gomoku", slow, slow, "--games", "1000", "--json", "--record"])
        .arg(&records)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = stdout.next().unwrap().unwrap();
    assert!(first.contains("\"match\":1"));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let rest: Vec<_> = stdout.map(Result::unwrap).collect();
    let table: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("interrupted: ") && message.contains("of 1000 games"), "{message}");
    assert_eq!(table["ranking"][0]["games"], rest.len(), "every printed match counts");
    assert_eq!(files(&records).len(), rest.len(), "only finished matches have records");
    succeed(&["verify", records.to_str().unwrap()]);
}

#[test]
fn a_second_signal_changes_nothing() {
    let bots = Bots::new();
    let slow = &bots.rascal("slow", "slow", 1, "");
    let mut child = arbiter()
        .args(["play", "gomoku", slow, slow, "--games", "1000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    stdout.next().unwrap().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let table = stdout.last().unwrap().unwrap();
    assert!(table.contains("\"ranking\""), "{table}");
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("interrupted: "));
}

#[test]
fn startup_is_not_timed_and_late_replies_forfeit() {
    let bots = Bots::new();
    let early = bots.rascal("early", "slow", 0, "");
    let late = bots.rascal("late", "slow", 1, "");
    let honest = &bots.rascal("honest", "honest", 0, "");
    let forfeits = |bot: &str, clock: &str| -> Value {
        let limit = "move_limit=100ms";
        let call = ["play", "gomoku", bot, honest, "--set", limit, "--clock", clock];
        json(&call)[0]["forfeits"][0].clone()
    };
    // Both bots wait 300 ms: one before its first reply, the other before its second.
    assert_eq!(forfeits(&early, "wall"), Value::Null, "300 ms are free at the start");
    assert_eq!(forfeits(&late, "wall"), "clock");
    assert_eq!(forfeits(&late, "cpu"), Value::Null, "waiting uses no processor time");
    let spin = &bots.rascal("spin", "spin", 1, "");
    assert_eq!(forfeits(spin, "cpu"), "clock", "spinning uses processor time");
}

#[test]
fn editing_a_bot_does_not_affect_a_running_session() {
    let bots = Bots::new();
    let one = bots.path().join("one");
    let two = bots.path().join("two");
    // The first game changes the original files of the bot. The copies must not change.
    for (bot, script) in [
        (&one, format!("echo 'echo garbage' > {}/bot.sh; echo S\n", one.display())),
        (&two, "echo S\n".to_owned()),
    ] {
        fs::create_dir(bot).unwrap();
        fs::write(bot.join("bot.sh"), script).unwrap();
        let name = bot.file_name().unwrap().to_str().unwrap();
        fs::write(bot.join("meta"), format!("{name}\nsh\nbot.sh\n0\n")).unwrap();
    }
    let one = one.to_str().unwrap();
    let two = two.to_str().unwrap();
    let lines = json(&["play", "blackjack", one, two, "--games", "3"]);
    assert_eq!(lines.len(), 4);
    for played in &lines[..3] {
        assert_eq!(played["bad_answers"].to_string(), "[0,0]", "{played}");
    }
}

#[test]
fn a_full_disk_is_reported() {
    let bots = Bots::new();
    let bot = &bots.rascal("bot", "honest", 0, "");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let status = arbiter().args(["play", "gomoku", bot, bot]).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

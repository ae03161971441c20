//! Errors for bad input: one or two lines that name the thing, the cause and the remedy, and exit
//! code 2.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use support::service::free_address;
use support::{Bots, run};

/// Runs an invalid command, and expects exit code `code` and a short message with all of `says`.
fn refuses(arguments: &[&str], code: i32, says: &[&str]) {
    let output = run(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!((1..=2).contains(&message.lines().count()), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} prints nothing else");
    for part in says {
        assert!(message.contains(part), "{arguments:?}: {message:?} lacks {part:?}");
    }
}

#[test]
fn invalid_arguments_are_explained() {
    let bots = Bots::new();
    let good = &bots.rascal("good", "honest", 0, "");
    refuses(&["play", "chess", good, good], 2, &["chess", "wojna", "gomoku"]);
    refuses(&["play", "gomoku"], 2, &["BOT", "--help"]);
    refuses(&["play"], 2, &["GAME", "--help"]);
    refuses(&["plaj"], 2, &["plaj", "--help"]);
    refuses(&["play", "gomoku", good], 2, &["takes 2 bots, not 1", "name one more bot"]);
    refuses(&["play", "wojna", good], 2, &["takes 4 bots, not 1", "seats"]);
    refuses(&["play", "wojna", good, good, good, good, good], 2, &["not 5", "four"]);
    refuses(&["play", "gomoku", good, good, "--games", "0"], 2, &["--games 0"]);
    refuses(&["play", "gomoku", good, good, "--games", "1000001"], 2, &["1000001", "1000000"]);
    refuses(&["play", "gomoku", good, good, "--games", "many"], 2, &["many", "--games"]);
    refuses(&["play", "gomoku", good, good, "--jobs", "0"], 2, &["--jobs 0"]);
    refuses(&["play", "gomoku", good, good, "--clock", "sun"], 2, &["sun", "wall or cpu"]);
    refuses(
        &["play", "gomoku", good, good, "--sandbox", "no"],
        2,
        &["no", "auto, strict, namespaces, landlock or off"],
    );
    let calls = ["play", "gomoku", good, good, "--keep-files", "--jobs", "2"];
    refuses(&calls, 2, &["--keep-files", "--jobs 1"]);
}

#[test]
fn strict_plays_where_doctor_says_so() {
    let bots = Bots::new();
    let good = &bots.rascal("good", "honest", 0, "");
    let doctor = run(&["doctor", "--json"]);
    let rows = String::from_utf8(doctor.stdout).unwrap();
    assert!(rows.lines().count() > 10, "{rows}");
    assert!(rows.lines().all(|row| serde_json::from_str::<serde_json::Value>(row).is_ok()));
    let strict = ["play", "gomoku", good, good, "--sandbox", "strict"];
    match doctor.status.code() {
        Some(0) => drop(support::succeed(&strict)),
        Some(1) => refuses(&strict, 3, &["strict"]),
        other => panic!("{other:?}"),
    }
    support::succeed(&["play", "gomoku", good, good, "--sandbox", "off"]);
}

/// Runs a command whose temporary directory does not support an overlay mount, as in a container
/// within a container: it is an overlay on an overlay.
#[expect(clippy::disallowed_methods, reason = "the program runs on a simulated machine")]
fn in_layers(bots: &Bots, words: &[&str]) -> Output {
    let layers = bots.path().join("layers");
    let script = "set -e; mkdir -p \"$0\"; cd \"$0\"; mount -t tmpfs layers .; cd \"$0\"
        mkdir low up work one over deep two
        mount -t overlay one -o lowerdir=low,upperdir=up,workdir=work one
        mount -t overlay two -o lowerdir=one,upperdir=over,workdir=deep two
        chmod 1777 two; cd /; TMPDIR=$0/two exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(layers);
    command.args(words).output().unwrap()
}

/// The level that the doctor reports.
fn level(doctor: &Output) -> String {
    let report = String::from_utf8_lossy(&doctor.stdout);
    let first = report.lines().next().and_then(|row| row.split_whitespace().last());
    first.unwrap().to_owned()
}

/// The doctor's output with TMPDIR on an overlay, or `None` if that changes nothing here.
fn doctor_in_layers(bots: &Bots, arbiter: &str) -> Option<Output> {
    let plain = level(&run(&["doctor"]));
    if ["C", "D"].contains(&&*plain) || !in_layers(bots, &["true"]).status.success() {
        eprintln!("skipped: no namespaces here, or mounts are not allowed");
        return None;
    }
    Some(in_layers(bots, &[arbiter, "doctor"]))
}

/// The error appears when a worker starts, not with the first match.
#[test]
fn doctor_finds_a_mount_that_would_stop_every_bot() {
    let bots = Bots::new();
    let good = bots.rascal("good", "honest", 0, "");
    let arbiter = support::arbiter();
    let arbiter = arbiter.get_program().to_str().unwrap();
    let Some(doctor) = doctor_in_layers(&bots, arbiter) else { return };
    let report = String::from_utf8_lossy(&doctor.stdout);
    assert_eq!(
        doctor.status.code(),
        Some(1),
        "{report}{}",
        String::from_utf8_lossy(&doctor.stderr)
    );
    assert!(report.contains("cannot mount the bot's directory over its program"), "{report}");
    assert!(report.contains("TMPDIR"), "{report}");
    // Landlock may be missing as well.
    if level(&doctor) == "C" {
        let played = in_layers(&bots, &[arbiter, "play", "gomoku", &good, &good]);
        assert_eq!(played.status.code(), Some(0), "{}", String::from_utf8_lossy(&played.stderr));
    }
}

/// The bots of `up` share a machine with its database.
#[test]
fn up_runs_bots_without_namespaces_only_on_request() {
    let bots = Bots::new();
    let arbiter = support::arbiter();
    let arbiter = arbiter.get_program().to_str().unwrap();
    let Some(doctor) = doctor_in_layers(&bots, arbiter) else { return };
    if level(&doctor) != "C" {
        eprintln!("skipped: no Landlock here");
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let data = data.path().join("data");
    let ports = ["--grpc", &free_address().to_string(), "--http", "127.0.0.1:0"];
    // A failure of this check would leave `up` running.
    let up = ["timeout", "60", arbiter, "up", "--data", data.to_str().unwrap()];
    let up = in_layers(&bots, &[&up[..], &ports].concat());
    let stderr = String::from_utf8_lossy(&up.stderr);
    assert_eq!(up.status.code(), Some(3), "{stderr}");
    for part in ["level C only", "cannot mount the bot's directory", "--sandbox landlock"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn invalid_bots_are_explained() {
    let bots = Bots::new();
    let good = &bots.rascal("good", "honest", 0, "");
    let with = |bot: &str, says: &[&str]| {
        refuses(&["play", "gomoku", good, bot], 2, &[&[bot], says].concat());
    };
    with(&format!("{}/nobody", bots.path().display()), &["No such file"]);
    with(&bots.file("plain", "no program"), &["not executable", ".py, ", "chmod +x"]);
    with(&bots.file("packed.zip", "PK"), &["unpack it if it is an archive"]);
    with(&bots.file("empty.py", ""), &["empty.py: it is empty"]);
    with(&bots.file("TIE.py", "print()"), &["its name cannot be a bot's name", "rename"]);
    let directory = |name: &str, file: &str, contents: &str| {
        let path = bots.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(file), contents).unwrap();
        path.to_str().unwrap().to_owned()
    };
    with(&directory("empty", "notes.txt", ""), &["neither a bot.toml nor a meta"]);
    let broken = directory("broken", "bot.toml", "name = \"x\"\nrun = [\"./x\"\n");
    with(&broken, &["bot.toml", "line"]);
    let dots = directory("dots", "bot.toml", "name = \"..\"\nrun = [\"./x\"]\n");
    with(&dots, &["..", "cannot be a bot's name"]);
    let outside = directory("outside", "bot.toml", "name = \"x\"\nrun = [\"../good/bot\"]\n");
    with(&outside, &["../good/bot", "outside"]);
    let linked = directory("linked", "bot.toml", "name = \"x\"\nrun = [\"sh\", \"x\"]\n");
    std::os::unix::fs::symlink("/etc/passwd", format!("{linked}/x")).unwrap();
    refuses(&["play", "gomoku", good, &linked], 2, &["linked/x", "link"]);
    with(&directory("tie", "bot.toml", "name = \"TIE\"\nrun = [\"./x\"]\n"), &["TIE", "line 1"]);
    with(&directory("none", "bot.toml", "name = \"x\"\nrun = []\n"), &["empty", "run = "]);
    with(&directory("key", "bot.toml", "name = \"x\"\nrun = [\"a\"]\nx = 1\n"), &["line 3", "`x`"]);
    let missing = directory("missing", "bot.toml", "name = \"x\"\nrun = [\"./x\"]\n");
    with(&missing, &["./x is missing", "build it"]);
    let unknown = directory("unknown", "bot.toml", "name = \"x\"\nrun = [\"no-such-tool\"]\n");
    with(&unknown, &["no-such-tool", "PATH"]);
    with(&directory("meta", "meta", "x\n./x\n"), &["meta", "four lines"]);
    let unbuilt = "name = \"x\"\nrun = [\"./x\"]\nbuild = [\"sh\", \"-c\", \"echo why; exit 3\"]\n";
    with(&directory("unbuilt", "bot.toml", unbuilt), &["cannot build", "why"]);
    let http = directory("http", "bot.toml", "name = \"x\"\nrun = [\"sh\"]\nprotocol = \"http\"\n");
    with(&http, &["http", "stdio"]);
    let locked = directory("locked", "bot", "#!/bin/sh\n");
    let manifest = "name = \"x\"\nrun = [\"./bot\"]\n";
    fs::write(format!("{locked}/bot.toml"), manifest).unwrap();
    fs::set_permissions(format!("{locked}/bot"), fs::Permissions::from_mode(0o644)).unwrap();
    with(&locked, &["not executable", "chmod +x"]);
}

#[test]
fn invalid_settings_are_explained() {
    let bots = Bots::new();
    let good = &bots.rascal("good", "honest", 0, "");
    let set = |game: &str, setting: &str, says: &[&str]| {
        refuses(&["play", game, good, good, "--set", setting], 2, says);
    };
    set("gomoku", "overline", &["KEY=VALUE"]);
    set("gomoku", "colour=red", &["colour", "overline", "move_limit"]);
    set("gomoku", "overline=maybe", &["maybe"]);
    set("gomoku", "move_limit=fast", &["fast", "500ms"]);
    set("gomoku", "first_number=2", &["2"]);
    set("tricks", "tables=3", &["3"]);
    set("bitwa", "board=nowhere.bit", &["nowhere.bit", "przyklad", "No such file"]);
    set("bitwa", &format!("board={}", bots.file("x.bit", "3 3 1 1 ### #A# ##")), &["row"]);
    set("wojna", "clock=1/2", &["1/2"]);
    set("wojna", "seats=5", &["5"]);
    set("wojna", "deck=5", &["deck cannot be 5", "cards v or ranges a-b", "as in 1-13*8"]);
    set("wojna", "deals=many", &["deals cannot be `many`", "from 1 to 10000", "as in 40"]);
    set("bitwa", "bank=180", &["bank cannot be 180", "a unit", "as in 3min"]);
    set("blackjack", "chips=-1", &["-1"]);
    let twice = ["play", "gomoku", good, good, "--set", "overline=wins", "--set", "overline=wins"];
    refuses(&twice, 2, &["overline", "twice"]);
}

#[test]
fn missing_records_are_explained() {
    let bots = Bots::new();
    refuses(&["verify"], 2, &["PATH", "--help"]);
    refuses(&["verify", "/no/such/place"], 2, &["/no/such/place", "No such file"]);
    refuses(&["verify", bots.path().to_str().unwrap()], 2, &["no records", "*.jsonl"]);
    let file = bots.file("plain", "");
    let good = &bots.rascal("good", "honest", 0, "");
    refuses(&["play", "gomoku", good, good, "--record", &file], 2, &["--record", &file]);
}

#[test]
fn help_shows_examples_and_parameters() {
    let help = support::succeed(&["play", "--help"]);
    for word in ["Examples:", "--set deals=4", "first_number", "move_limit", "board"] {
        assert!(help.contains(word), "{word}");
    }
    assert!(support::succeed(&["completions", "bash"]).contains("arbiter"));
}

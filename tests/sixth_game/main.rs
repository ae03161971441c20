//! A sixth game, defined in one file ([`nim`]) and added to `arbiter`: matches, records, replays,
//! trials, schedules, tournaments and leaderboards, as a user sees them.
//!
//! This program is the test and, if its environment says so, the program under test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod nim;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{ExitCode, Stdio};

use arbiter_games::Games;
use arbiter_replay::{LineBlocks, Reader, steps};
use serde_json::{Value, json};
use support::service::done;
use support::up::Up;
use support::{Bots, arbiter, files, json, run, succeed};

/// The variable that is set for the program under test.
const PROGRAM: &str = "ARBITER_WITH_NIM";

fn main() -> ExitCode {
    arbiter_worker::sandbox::handle_reexec();
    let games = Games::built_in().with(nim::info());
    if std::env::var_os(PROGRAM).is_some() {
        return arbiter::run(&games);
    }
    let program = std::env::current_exe().unwrap();
    support::PROGRAM.set((program, PROGRAM)).unwrap();
    descriptor();
    local_matches(&games);
    playground();
    schedule();
    tournament(&games);
    ExitCode::SUCCESS
}

/// A bot that always takes this many sticks.
fn bot(bots: &Bots, name: &str, sticks: u32) -> String {
    let script = format!(
        "#!/bin/sh\nwhile read -r word left; do\n  [ \"$word\" = heap ] || exit 0\n  \
         if [ \"$left\" -lt {sticks} ]; then echo \"$left\"; else echo {sticks}; fi\ndone\n"
    );
    let path = bots.file(name, &script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The command line names the game, its parameters and what is wrong with them.
fn descriptor() {
    let help = succeed(&["play", "--help"]);
    assert!(help.contains("blackjack, gomoku or nim"), "{help}");
    assert!(help.contains("nim        heap          how many sticks there are"), "{help}");
    let refused = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let unknown = refused(&["play", "chess", "a", "b"]);
    assert!(unknown.contains("the games are wojna, bitwa, tricks, blackjack, gomoku and nim"));
    let bots = Bots::new();
    let one = bot(&bots, "one", 1);
    let unknown = refused(&["play", "nim", &one, &one, "--set", "sticks=3"]);
    assert!(unknown.contains("its parameters are heap"), "{unknown}");
    let sole = refused(&["play", "nim", &one]);
    assert!(sole.contains("a match of nim takes 2 bots, not 1"), "{sole}");
}

/// Local matches are played, recorded, verified and replayed, and the playground works.
fn local_matches(games: &Games) {
    let bots = Bots::new();
    let one = bot(&bots, "one", 1);
    let three = bot(&bots, "three", 3);
    let records = bots.path().join("records");
    let place = records.to_str().unwrap();
    let off = ["--sandbox", "off"];
    let played = json(
        &[&["play", "nim", &one, &three, "--games", "2", "--record", place][..], &off].concat(),
    );
    let scores: Vec<_> = played[..2].iter().map(|played| &played["scores"]).collect();
    // 21 sticks: who begins takes the last one.
    assert_eq!(scores, [&json!([[1, 6], [0, 15]]), &json!([[1, 16], [0, 5]])]);
    assert_eq!(played[2]["columns"], json!(["wins", "sticks"]));
    let record = &files(&records)[0];
    let checked = succeed(&["verify", place]);
    assert_eq!(checked.lines().filter(|line| line.contains(": ok")).count(), 2, "{checked}");

    let text = fs::read_to_string(record).unwrap();
    assert!(text.starts_with(r#"{"record":1,"game":"nim","rules":"1","params":{"heap":21}"#));
    let replay =
        steps(games, LineBlocks::new(text.as_bytes()), 0..usize::MAX, Reader::default()).unwrap();
    let last = replay.drawn.last().unwrap().render(&replay.overview.names).into_string();
    assert!(last.contains("<table class=\"cards nim\">"), "{last}");
    assert!(last.contains("data-score=\"1 6\""), "{last}");
    for column in ["Wins", "Sticks"] {
        assert!(last.contains(&format!("<th class=\"number\">{column}</th>")), "{last}");
    }
    let edited = bots.file("edited.jsonl", &text.replacen("\"reply\":\"1\"", "\"reply\":\"2\"", 1));
    assert_eq!(run(&["verify", &edited]).status.code(), Some(1));

    let tried = json(&[&["preflight", "nim", &three, "--against", &one][..], &off].concat());
    assert_eq!(tried[0]["passed"], true, "{}", tried[0]);
    let hasty = bot(&bots, "hasty", 4);
    let failed = run(&["preflight", "nim", &hasty, "--sandbox", "off"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8(failed.stdout).unwrap().contains("is not 1, 2 or 3"));
}

/// A person sends lines of the protocol to a bot.
fn playground() {
    let bots = Bots::new();
    let three = bot(&bots, "three", 3);
    let mut command = arbiter();
    command.args(["try", "nim", &three, "--console", "--json", "--sandbox", "off"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut console = command.spawn().unwrap();
    console.stdin.take().unwrap().write_all(b":help\nheap 7\nover\n").unwrap();
    let stdout = done(&console.wait_with_output().unwrap());
    assert!(stdout.contains("\"3\""), "{stdout}");
    assert!(stdout.lines().count() >= 2, "{stdout}");
}

/// The schedule of pairs.
fn schedule() {
    let words = "tournament schedule --dry-run --kind round_robin --bots 5 --sides both";
    let planned = json(&words.split(' ').collect::<Vec<_>>());
    assert_eq!(planned.len(), 20);
}

/// A tournament with a database, a coordinator and a worker.
fn tournament(games: &Games) {
    let up = Up::start(2);
    let house: Vec<_> =
        (1..=3).map(|sticks| bot(&up.bots, &format!("take{sticks}"), sticks)).collect();
    up.create(&format!(
        "name = \"cup\"\ngame = \"nim\"\n[params]\nheap = 21\n[house]\nbots = {house:?}\n"
    ));
    let tournament = &up.json("tournament show cup")[0];
    assert_eq!(tournament["game"], "nim");
    assert_eq!(tournament["settings"]["schedule"]["sides"], "both");
    assert_eq!(up.json("tournament schedule cup").len(), 6);
    up.play("cup");
    up.succeed("tournament check cup");
    let places = up.succeed("ranking cup --format json");
    let places: Vec<Value> =
        places.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let wins = |place: &Value| (place["bot"].clone(), place["score"].clone());
    let rows: Vec<_> = places.iter().filter(|place| place["bot"].is_string()).map(wins).collect();
    assert_eq!(rows.len(), 3, "{places:?}");
    assert_eq!(places[0]["columns"], json!(["wins", "sticks"]));
    let sum = |column: usize| rows.iter().map(|(_, score)| score[column].as_i64().unwrap()).sum();
    let all: (i64, i64) = (sum(0), sum(1));
    assert_eq!(all, (6, 6 * 21), "each match has a winner, and takes all sticks");

    let record = up.succeed("match cup/0 --record -");
    let path = up.bots.file("match.jsonl", &record);
    assert!(succeed(&["verify", &path]).contains(": ok"));
    assert!(
        steps(games, LineBlocks::new(record.as_bytes()), 0..1, Reader::default()).unwrap().drawn[0]
            .picture
            .caption
            .contains("21")
    );
    up.close();
}

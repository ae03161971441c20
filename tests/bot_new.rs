//! `arbiter bot new`: the starter kits of all games pass a trial as they are.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use support::{Bots, files, json, run, succeed};

const BUILT_IN: [&str; 5] = ["wojna", "bitwa", "tricks", "blackjack", "gomoku"];

/// The folders of the packages that come with Arbiter.
fn packages() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("games/packages");
    files(&folder).into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// The languages that an error lists for a game.
fn languages(game: &str) -> Vec<String> {
    let output = run(&["bot", "new", game, "--lang", "cobol", "nowhere"]);
    assert_eq!(output.status.code(), Some(2), "{game}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let list = stderr.trim().split("choose one of ").nth(1).unwrap_or_else(|| panic!("{stderr}"));
    list.split(", ").map(str::to_owned).collect()
}

/// Writes a kit and runs its trial. Returns the result of the trial.
fn preflight(bots: &Bots, game: &str, lang: &str) -> serde_json::Value {
    let kit = bots.path().join(format!("my-{lang}"));
    let kit = kit.to_str().unwrap();
    let next = succeed(&["bot", "new", game, "--lang", lang, kit]);
    assert!(next.contains(&format!("arbiter preflight {game} {kit}")), "{next}");
    json(&["preflight", game, kit]).remove(0)
}

/// If set, the kits of all games in all languages are tried. There are many, and a trial compiles
/// and plays, so that by default each game and each language has its turn.
const ALL: &str = "ARBITER_NIGHTLY";

/// The languages of a game that are tried: Python, and one that was not tried yet.
fn languages_to_try(languages: &[String], tried: &BTreeSet<String>) -> Vec<String> {
    if std::env::var_os(ALL).is_some() {
        return languages.to_vec();
    }
    let (python, others) = languages.split_first().unwrap();
    let new = others.iter().find(|lang| !tried.contains(*lang));
    [python].into_iter().chain(new).cloned().collect()
}

#[test]
fn starter_kits_pass_their_trials_unchanged() {
    let mut offered = BTreeSet::new();
    let mut tried = BTreeSet::new();
    for game in BUILT_IN.map(str::to_owned).into_iter().chain(packages()) {
        let bots = Bots::new();
        let languages = languages(&game);
        assert_eq!(languages[0], "python", "{game}");
        let chosen = languages_to_try(&languages, &tried);
        offered.extend(languages);
        for lang in chosen {
            let trial = preflight(&bots, &game, &lang);
            assert_eq!(trial["passed"], true, "{game} {lang}: {trial}");
            assert_eq!(trial["warnings"], serde_json::json!([]), "{game} {lang}: {trial}");
            assert_eq!(trial["bot"], format!("my-{lang}"), "{game} {lang}");
            tried.insert(lang);
        }
    }
    assert_eq!(tried, offered, "each language is tried");
}

#[test]
fn a_new_package_has_a_starter_kit_also_packed() {
    let bots = Bots::new();
    let parent = bots.path().to_str().unwrap();
    succeed(&["game", "new", "mygame", "--lang", "python", "--in", parent]);
    let package = format!("{parent}/mygame");
    let packed = format!("{parent}/mygame.tar.zst");
    succeed(&["game", "pack", &package, "--out", &packed]);
    let kits = [&package, &packed].map(|game| {
        let kit = format!("{parent}/kit");
        succeed(&["bot", "new", game, &kit]);
        let files = files(Path::new(&kit));
        let texts: Vec<_> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        fs::remove_dir_all(kit).unwrap();
        texts
    });
    assert_eq!(kits[0].len(), 2);
    assert_eq!(kits[0], kits[1]);
    assert_eq!(preflight(&bots, &packed, "python")["passed"], true);
}

#[test]
fn folders_that_exist_are_not_changed_and_names_must_be_names_of_bots() {
    let bots = Bots::new();
    let file = bots.file("mine", "text");
    let output = run(&["bot", "new", "gomoku", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists; choose another name"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
    let space = bots.path().join("my bot");
    let output = run(&["bot", "new", "gomoku", space.to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("the folder gives the bot its name"), "{stderr}");
    assert!(!space.exists());
    let output = run(&["bot", "new", "nogame"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("there is no game `nogame`"), "{stderr}");
}

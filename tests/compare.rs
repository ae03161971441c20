//! `arbiter compare` with real bots: which of two versions is better, and how sure that is.

mod support;

use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use support::run;
use support::strength::StrengthGame;

/// Versions of several strengths.
struct Lab(StrengthGame);

impl Lab {
    fn new() -> Self {
        Self(StrengthGame::new())
    }

    fn bot(&self, strength: u32) -> String {
        self.0.bot(strength)
    }

    fn compare(&self, new: u32, old: u32, words: &[&str]) -> Output {
        let new = self.bot(new);
        let old = self.bot(old);
        let call = ["compare", &self.0.package, &new, &old, "--seed", "fixed", "--clock", "cpu"];
        run(&[&call[..], words].concat())
    }

    /// The exit code and the JSON object.
    fn json(&self, new: u32, old: u32, words: &[&str]) -> (Option<i32>, Value) {
        let output = self.compare(new, old, &[words, &["--json"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout);
        (output.status.code(), serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}")))
    }
}

#[test]
fn a_sequential_test_ends_when_it_is_decided() {
    let lab = Lab::new();
    let test = ["--sprt", "0 100", "--games", "600"];
    let (code, better) = lab.json(120, 0, &test);
    assert_eq!((code, &better["decision"]), (Some(0), &"accepted".into()), "{better}");
    assert_eq!(better["hypotheses"], json!({"elo": [0.0, 100.0]}));
    assert!(better["seeds"].as_u64().unwrap() < 200, "{better}");
    assert!(better["llr"].as_f64().unwrap() >= 2.94, "{better}");
    let (code, worse) = lab.json(0, 120, &test);
    assert_eq!((code, &worse["decision"]), (Some(1), &"rejected".into()), "{worse}");
    assert!(better["won"].as_u64() > better["lost"].as_u64(), "{better}");

    // Matches that are played at once decide the same.
    let (_, parallel) = lab.json(120, 0, &[&test[..], &["--jobs", "2"]].concat());
    for key in ["llr", "won", "drawn", "lost", "seeds", "elo95"] {
        assert_eq!(parallel[key], better[key], "{key}");
    }
    assert_eq!(parallel["new"]["games"], better["new"]["games"]);
}

#[test]
fn without_a_test_the_interval_decides() {
    let lab = Lab::new();
    let output = lab.compare(200, 0, &["--games", "60"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("games: 60, seeds: 30\n"), "{stdout}");
    assert!(stdout.contains("; Elo +"), "{stdout}");
    assert!(stdout.ends_with("the new version is better\n"), "{stdout}");
    // Both are called `bot`, so their paths are shown.
    assert!(stdout.contains("of-200)") && stdout.contains("of-0)"), "{stdout}");
    let (code, worse) = lab.json(0, 200, &["--games", "60"]);
    assert_eq!(code, Some(1), "{worse}");
    assert!(worse["probability_better"].as_f64().unwrap() < 0.01, "{worse}");

    // Equal versions: each seed gives both the same.
    let output = lab.compare(5, 5, &["--games", "20"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{stdout}");
    assert!(stdout.contains("result of the new version: 50.0 %"), "{stdout}");

    // More than any luck: no interval, but all of many different games are won.
    let (code, sweep) = lab.json(300, 0, &["--games", "20"]);
    assert_eq!((code, &sweep["decision"]), (Some(0), &"better".into()), "{sweep}");
    assert_eq!((&sweep["advantage"], &sweep["advantage95"]), (&json!(2.0), &Value::Null));
}

#[test]
fn the_same_games_again_decide_nothing() {
    let lab = Lab::new();
    let output = lab.compare(9, 3, &["--set", "luck=false", "--games", "500"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{stdout}");
    let extent = "games: 40, seeds: 20 (different pairs of games: 1)\n";
    assert!(stdout.contains(extent), "{stdout}");
    assert!(stdout.contains("no interval") && stdout.contains("use no chance"), "{stdout}");
    // At another table the seats change from seed to seed, but the games are copies as well.
    let other = lab.bot(5);
    let table = ["--set", "luck=false", "--games", "500", "--against", &other];
    for test in [&[][..], &["--margin", "0 1"]] {
        let (code, copies) = lab.json(9, 3, &[&table[..], test].concat());
        assert_eq!((code, &copies["seeds"]), (Some(4), &json!(20)), "{copies}");
    }
}

#[test]
fn a_version_that_forfeits_every_game_is_worse() {
    let lab = Lab::new();
    let broken = lab.0.bots.python("broken", "sys.exit(3)");
    let old = lab.bot(1);
    let call = ["compare", &lab.0.package, &broken, &old, "--set", "luck=false"];
    let output = run(&call);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.ends_with("the new version forfeits every game\n"), "{stdout}");
}

#[test]
fn versions_are_compared_at_the_tables_of_others() {
    let lab = Lab::new();
    let other = lab.bot(60);
    let third = lab.bot(61);
    let table = ["--against", &other, "--against", &third, "--margin", "0 1", "--games", "400"];
    let (code, better) = lab.json(200, 0, &table);
    assert_eq!((code, &better["decision"]), (Some(0), &"accepted".into()), "{better}");
    assert_eq!((&better["measure"], &better["seats"]), (&json!("points"), &json!(3)));
    assert_eq!(better["elo"], Value::Null);
    let (code, worse) = lab.json(0, 200, &table);
    assert_eq!(code, Some(1), "{worse}");
}

#[test]
fn wrong_calls_name_the_remedy() {
    let lab = Lab::new();
    let other = lab.bot(60);
    for (words, remedy) in [
        (vec!["--sprt", "5"], "write two rising numbers, as in '0 10'"),
        (vec!["--sprt", "5 0"], "write two rising numbers"),
        (vec!["--sprt", "0 7000"], "--sprt: use values from -2000 to 2000 Elo"),
        (vec!["--sprt", "0 5", "--against", &other], "with --against use --margin"),
        (vec!["--sprt", "0 5", "--margin", "0 5"], "cannot be used with"),
        (vec!["--games", "1"], "--games 1: use 2 to 1000000"),
        (vec!["--jobs", "0"], "--jobs 0: use 1 to 256"),
    ] {
        let output = lab.compare(1, 2, &words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(remedy), "{words:?}: {stderr}");
    }
    let descriptor = format!("{}/game.toml", lab.0.package);
    let text = fs::read_to_string(&descriptor).unwrap();
    fs::write(&descriptor, text.replace("seats = [2, 3]", "seats = [3, 3]")).unwrap();
    let output = lab.compare(1, 2, &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("strength is not for two bots; name the opponents"), "{stderr}");
    let output = run(&["compare", "wojna", "bots/wojna/house", "bots/wojna/caller"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("with --against, or --set seats=2"), "{stderr}");
    let blackjack = ["compare", "blackjack", "bots/blackjack/house", "bots/blackjack/house"];
    let output = run(&[&blackjack[..], &["--set", "rounds=5"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("--set rounds=1"), "{stderr}");
}

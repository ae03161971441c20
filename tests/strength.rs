//! The shipped bots have clearly different strengths: in most pairs of matches with swapped seats,
//! the stronger bot earns more.
//!
//! They think for minutes, so `scripts/nightly` runs these tests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;

use serde_json::Value;
use support::json;

/// The number of pairs in games of chance.
const PAIRS: usize = 10;

/// Of ten pairs, the number that the stronger bot must win.
const ENOUGH: usize = 7;

/// The sum of each bot's scores. Scores of copies of a bot are added.
fn earned<'a>(matches: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, Vec<i128>> {
    let mut earned: BTreeMap<String, Vec<i128>> = BTreeMap::new();
    for played in matches {
        let seats: Vec<String> = serde_json::from_value(played["seats"].clone()).unwrap();
        let scores: Vec<Vec<i64>> = serde_json::from_value(played["scores"].clone()).unwrap();
        for (name, score) in seats.iter().zip(&scores) {
            let name = name.split('#').next().unwrap();
            let sums = earned.entry(name.to_owned()).or_default();
            sums.resize(score.len(), 0);
            for (sum, part) in sums.iter_mut().zip(score) {
                *sum += i128::from(*part);
            }
        }
    }
    earned
}

/// The number of pairs in which the stronger bot earns more. In wojna each bot has two of the four
/// seats. In blackjack an episode is a match, and its last chips count.
fn won(game: &str, better: &str, weaker: &str, setting: &str, pairs: usize) -> usize {
    let path = |name: &str| format!("bots/{game}/{name}");
    let strong = path(better);
    let weak = path(weaker);
    let copies = if game == "wojna" { 2 } else { 1 };
    let games = (2 * pairs).to_string();
    let mut call = vec!["play", game, "--games", &games, "--seed", "strength", "--jobs", "2"];
    // A busy machine must not make a bot weaker.
    call.extend(["--set", setting, "--clock", "cpu"]);
    call.extend([strong.as_str()].repeat(copies));
    call.extend([weak.as_str()].repeat(copies));
    let mut lines = json(&call);
    lines.pop();
    // The last line of each game is its result. Earlier lines of an episode are its other rounds.
    let results: BTreeMap<u64, Value> =
        lines.into_iter().map(|line| (line["match"].as_u64().unwrap(), line)).collect();
    assert_eq!(results.len(), 2 * pairs);
    let results: Vec<_> = results.into_values().collect();
    results.chunks(2).map(earned).filter(|pair| pair[better] > pair[weaker]).count()
}

/// Plays pairs with one setting, and expects the stronger bot to win enough of them.
fn beats(game: &str, better: &str, weaker: &str, setting: &str) {
    let won = won(game, better, weaker, setting, PAIRS);
    assert!(won >= ENOUGH, "{game}: {better} beats {weaker} in {won} of {PAIRS} pairs");
}

/// Bitwa has no randomness, so one pair of matches on each official board is enough.
fn beats_on_boards(better: &str, weaker: &str) {
    let boards = arbiter_games::bitwa::official_boards();
    let pairs = boards.len();
    let won: usize =
        boards.map(|(board, _)| won("bitwa", better, weaker, &format!("board={board}"), 1)).sum();
    assert!(won * 10 >= pairs * ENOUGH, "bitwa: {better} beats {weaker} on {won} of {pairs}");
}

#[test]
#[ignore = "thinks for minutes"]
fn wojna() {
    beats("wojna", "house", "threshold", "deals=4");
    beats("wojna", "threshold", "caller", "deals=4");
}

#[test]
#[ignore = "thinks for minutes"]
fn bitwa() {
    beats_on_boards("house", "phalanx");
    beats_on_boards("phalanx", "rush");
}

#[test]
#[ignore = "thinks for minutes"]
fn tricks() {
    beats("tricks", "house", "counter", "tables=20");
    beats("tricks", "counter", "lowest", "tables=20");
}

#[test]
#[ignore = "thinks for minutes"]
fn blackjack() {
    beats("blackjack", "house", "basic", "rounds=5");
    beats("blackjack", "basic", "lim17", "rounds=5");
}

#[test]
#[ignore = "thinks for minutes"]
fn gomoku() {
    beats("gomoku", "house", "shapes", "overline=wins");
    beats("gomoku", "shapes", "center", "overline=wins");
}

//! The web pages in a real browser: a running `arbiter up`, and Chromium without a window.
//!
//! What is here takes a browser to see: scripts, keys, widths, colours, and what an accessibility
//! linter makes of a page. `tests/web/` tests what the server answers. Where Chromium is not
//! installed all of it is left out, and says so. Pictures of all pages are left in
//! `target/screenshots`.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod axe;
mod chrome;
mod look;
mod replays;
mod stage;
#[path = "../support/mod.rs"]
mod support;

use chrome::Chrome;
use serde_json::Value;
use stage::{GAMES, Stage};
use support::shown::{mean, shown};

#[test]
fn a_leaderboard_shows_the_numbers_of_the_command() {
    let Some(chrome) = Chrome::start() else { return };
    let stage = Stage::played();
    for game in GAMES {
        let places = stage.up.json(&format!("ranking {game}-quick"));
        stage.visit(&chrome, &format!("/t/{game}-quick/ranking"));
        let rows = chrome.rows("table.ranking");
        assert_eq!(rows.len(), places.len(), "{game}");
        for (row, place) in rows.iter().zip(&places) {
            assert_eq!(row[..due(place).len()], due(place), "{game}");
        }
        let played = stage.up.newest(&format!("{game}-quick"))["counted"].clone();
        let progress = format!("{played} of {played} matches; {} bots", places.len());
        assert!(chrome.text("main").contains(&progress), "{game}: {progress}");
        let best = shown(&places[0]["bot"]);
        chrome.type_into("#q", &best);
        chrome.press(chrome::keys::ENTER);
        chrome.wait("the search is done", "return location.search.includes('q=')");
        assert_eq!(chrome.rows("table.ranking").len(), 1, "{game}: {best}");
        chrome.click("table.ranking tbody a");
        let standing = chrome.text("dl.standing");
        assert!(standing.contains(&mean(&places[0])), "{game}: {standing}");
    }
}

/// The first cells of a place.
fn due(place: &Value) -> Vec<String> {
    let tied = if place["tied"] == true { "=" } else { "" };
    let first = [
        format!("{tied}{}", place["rank"]),
        shown(&place["bot"]),
        shown(&place["version"]),
        shown(&place["matches"]),
    ];
    let score = place["score"].as_array().unwrap().iter().map(shown);
    first.into_iter().chain(score).chain([mean(place)]).collect()
}

#[test]
fn a_board_changes_before_the_eyes_of_who_looks() {
    let Some(chrome) = Chrome::start() else { return };
    let stage = Stage::empty();
    stage.up.create_cup("");
    stage.up.tell("tournament start cup");
    stage.up.wait_for("cup", 1);
    stage.visit(&chrome, "/t/cup/ranking");
    // A page that is loaded again forgets this.
    chrome.run("window.kept = true");
    assert!(chrome.text("main").contains("official leaderboard, of edition 1"));
    stage.up.tell("tournament start cup");
    chrome.wait(
        "the new edition is shown",
        "return document.querySelector('main').innerText.includes('leaderboard, of edition 2')",
    );
    assert_eq!(chrome.run("return window.kept"), true, "without being loaded again");
    let places = stage.up.json("ranking cup");
    let rows = chrome.rows("table.ranking");
    assert_eq!(rows.len(), places.len());
    for (row, place) in rows.iter().zip(&places) {
        assert_eq!(row[..due(place).len()], due(place));
    }
}

#[test]
fn whoever_logs_in_is_shown_more_until_they_log_out() {
    let Some(chrome) = Chrome::start() else { return };
    let stage = Stage::played();
    let replay = format!("/matches/{}/0", shown(&stage.up.newest("gomoku-quick")["id"]));
    stage.visit(&chrome, &replay);
    assert!(!chrome.has("#replay"), "records are not for everybody");
    chrome.click("header a[href='/login']");
    chrome.type_into("#token", "arb_wrong");
    chrome.click("main form button");
    chrome.wait("the token is refused", "return !!document.querySelector('[role=alert]')");
    stage.log_in(&chrome);
    assert_eq!(chrome.run("return document.cookie"), "", "no script may read the cookie");
    stage.visit(&chrome, &replay);
    assert!(chrome.has("#replay"));
    chrome.click("header form button");
    chrome.wait(
        "nobody is logged in",
        "return !!document.querySelector('header a[href=\"/login\"]')",
    );
    stage.visit(&chrome, &replay);
    assert!(!chrome.has("#replay"));
}

#[test]
fn pages_work_without_scripts() {
    let Some(chrome) = Chrome::start() else { return };
    let stage = Stage::played();
    chrome.allow_scripts(false);
    stage.log_in(&chrome);
    let best = shown(&stage.up.json("ranking bitwa-quick")[0]["bot"]);
    stage.visit(&chrome, "/t/bitwa-quick/ranking");
    chrome.type_into("#q", &best);
    chrome.click("form.search button");
    chrome.wait("the search is done", "return location.search.includes('q=')");
    assert_eq!(chrome.rows("table.ranking").len(), 1);
    let id = shown(&stage.up.newest("bitwa-quick")["id"]);
    stage.visit(&chrome, &format!("/matches/{id}/0"));
    assert_eq!(
        chrome.run("return document.querySelector('[data-play]').offsetParent"),
        Value::Null
    );
    for (link, step) in [("step on", "1"), ("step on", "2"), ("step back", "1")] {
        chrome.click(&format!("a[aria-label='{link}']"));
        let there = format!("return document.querySelector('.step').dataset.step === '{step}'");
        chrome.wait(&format!("{link}: {step}"), &there);
    }
    chrome.click("a[aria-label='last step']");
    chrome.wait("the result is shown", "return !!document.querySelector('table.result')");
}

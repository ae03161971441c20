//! The web pages in a real browser: a running `arbiter up`, and Chromium without a window.
//!
//! These tests need a browser: scripts, keys, widths, colours, accessibility. `tests/web/` tests
//! the responses of the server. Without Chromium the tests print that they are skipped. If
//! `ARBITER_SCREENSHOTS` is set, screenshots of all pages are saved in `target/screenshots`.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod accessibility;
mod axe;
mod chrome;
mod countdown;
mod header;
mod invitations;
mod replays;
mod site;
mod stories;
#[path = "../support/mod.rs"]
mod support;
mod test_server;

use chrome::Chrome;
use serde_json::Value;
use support::shown::{mean, shown};
use test_server::{GAMES, TestServer};

#[test]
fn a_leaderboard_shows_the_numbers_of_the_command() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    for game in GAMES {
        let places = server.up.json(&format!("ranking {game}-quick"));
        server.visit(&chrome, &format!("/t/{game}-quick/ranking"));
        let rows = chrome.rows("table.ranking");
        assert_eq!(rows.len(), places.len(), "{game}");
        for (row, place) in rows.iter().zip(&places) {
            assert_eq!(row[..expected_cells(place).len()], expected_cells(place), "{game}");
        }
        let played = server.up.newest(&format!("{game}-quick"))["counted"].clone();
        let progress = format!("{played} of {played} matches, {} bots", places.len());
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

/// The expected first cells of a row. Pages show numbers with a true minus sign.
fn expected_cells(place: &Value) -> Vec<String> {
    let tied = if place["tied"] == true { "=" } else { "" };
    let first = [format!("{tied}{}", place["rank"]), shown(&place["bot"])];
    let score = place["score"].as_array().unwrap().iter().map(shown);
    let last = [mean(place), shown(&place["matches"])];
    let numbers = score.chain(last).map(|number| number.replace('-', "−"));
    first.into_iter().chain(numbers).collect()
}

#[test]
fn a_leaderboard_is_updated_live() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::empty();
    server.up.create_cup("");
    server.up.succeed("tournament start cup");
    server.up.wait_for("cup", 1);
    server.visit(&chrome, "/t/cup/ranking");
    // A reload would clear this variable.
    chrome.run("window.marker = true");
    assert!(chrome.text("main").contains("Official leaderboard (edition 1)"));
    server.up.succeed("tournament start cup");
    chrome.wait(
        "the new edition is shown",
        "return document.querySelector('main').innerText.includes('leaderboard (edition 2)')",
    );
    assert_eq!(chrome.run("return window.marker"), true, "updated without a reload");
    let places = server.up.json("ranking cup");
    let rows = chrome.rows("table.ranking");
    assert_eq!(rows.len(), places.len());
    for (row, place) in rows.iter().zip(&places) {
        assert_eq!(row[..expected_cells(place).len()], expected_cells(place));
    }
}

#[test]
fn logging_in_gives_access_until_logging_out() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    let page = "/t/gomoku-quick/organise";
    server.visit(&chrome, page);
    assert!(!chrome.has("section.actions"), "the page is for organisers");
    chrome.click("main a[href='/login']");
    chrome.type_into("#token", "arb_wrong");
    chrome.click("main form button");
    chrome.wait("the token is refused", "return !!document.querySelector('[role=alert]')");
    chrome.type_into("#token", &server.up.admin());
    chrome.click("main form button");
    chrome.wait(
        "the login returns to the page",
        &format!(
            "return location.pathname === '{page}' && !!document.querySelector('section.actions')"
        ),
    );
    assert_eq!(chrome.run("return document.cookie"), "", "scripts cannot read the cookie");
    chrome.click("header form button");
    chrome.wait(
        "the page shows the login link",
        "return !!document.querySelector('header a[href=\"/login\"]')",
    );
    server.visit(&chrome, page);
    assert!(!chrome.has("section.actions"));
}

#[test]
fn pages_work_without_scripts() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    chrome.allow_scripts(false);
    server.log_in(&chrome);
    let best = shown(&server.up.json("ranking bitwa-quick")[0]["bot"]);
    server.visit(&chrome, "/t/bitwa-quick/ranking");
    chrome.type_into("#q", &best);
    chrome.click("form.search button");
    chrome.wait("the search is done", "return location.search.includes('q=')");
    assert_eq!(chrome.rows("table.ranking").len(), 1);
    server.visit(&chrome, "/t/bitwa-quick/matches/0");
    assert_eq!(
        chrome.run("return document.querySelector('[data-play]').offsetParent"),
        Value::Null
    );
    for (link, step) in [("Next step", "1"), ("Next step", "2"), ("Previous step", "1")] {
        chrome.click(&format!("a[aria-label='{link}']"));
        let there = format!("return document.querySelector('.step').dataset.step === '{step}'");
        chrome.wait(&format!("{link}: {step}"), &there);
    }
    chrome.click("a[aria-label='Last step']");
    chrome.wait("the result is shown", "return !!document.querySelector('table.result')");
}

//! Deadlines count down on open pages.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::chrome::{Chrome, Scheme};
use crate::test_server::TestServer;

/// The time until entry closes: 2 h 14 min 50 s, in seconds.
const CLOSES_IN: i64 = 8090;
/// The error of the browser's clock, in milliseconds: three days.
const CLOCK_ERROR: i64 = -3 * 24 * 3600 * 1000;
/// The time that is left, on the current page.
const LEFT: &str = "document.querySelector('[data-deadline] time:last-of-type').textContent";

/// A server with a tournament whose entry closes in [`CLOSES_IN`].
fn server() -> TestServer {
    let server = TestServer::empty();
    let closes = OffsetDateTime::now_utc() + time::Duration::seconds(CLOSES_IN);
    let closes = closes.format(&Rfc3339).unwrap();
    server.up.create_cup(&format!("submissions.closes = \"{closes}\"\n"));
    server
}

#[test]
fn a_deadline_counts_down_by_the_clock_of_the_server() {
    let Some(chrome) = Chrome::start() else { return };
    let server = server();
    chrome.set_clock_error(CLOCK_ERROR);
    for path in ["/", "/t/cup"] {
        server.visit(&chrome, path);
        chrome.wait("the time that is left", &format!("return /^in 2 h 1[34] min$/.test({LEFT})"));
        assert_eq!(
            chrome.run("return document.querySelector('[data-deadline]').closest('[aria-live]')"),
            serde_json::Value::Null,
            "nothing is read aloud each second"
        );
        // Two hours pass.
        chrome.run("window.clockError += 2 * 3600 * 1000");
        chrome.wait("with seconds", &format!("return /^in 1[34] min \\d+ s$/.test({LEFT})"));
        let shown = chrome.run(&format!("return {LEFT}"));
        chrome.wait("it ticks", &format!("return {LEFT} !== '{}'", shown.as_str().unwrap()));
        assert!(chrome.text("main").contains("Entry is open until"));
        chrome.run("window.clockError += 15 * 60 * 1000");
        chrome.wait(
            "entry has closed",
            "return document.querySelector('main').innerText.includes('Entry has closed.')",
        );
        assert!(!chrome.text("main").contains("Entry is open"), "{}", chrome.text("main"));
        assert!(!chrome.has("[data-deadline]"));
    }
}

#[test]
fn a_deadline_has_no_seconds_where_motion_is_reduced_and_stays_without_scripts() {
    let Some(chrome) = Chrome::start() else { return };
    let server = server();
    chrome.prefer(Scheme::Light);
    chrome.set_clock_error(0);
    server.visit(&chrome, "/t/cup");
    chrome.run("window.clockError += 2 * 3600 * 1000");
    chrome.wait("without seconds", &format!("return /^in 1[34] min$/.test({LEFT})"));
    chrome.allow_scripts(false);
    server.visit(&chrome, "/t/cup");
    let page = chrome.text("main");
    let sentence = page.lines().find(|line| line.contains("Entry is open until 20")).unwrap();
    assert!(sentence.contains("UTC (in 2 h 1"), "{sentence}");
}

//! An exported site, opened from the disk: `arbiter tournament export --site`.

use tempfile::TempDir;

use crate::accessibility::{inspect, screenshot_folder};
use crate::axe::Axe;
use crate::chrome::{Chrome, Scheme, keys};
use crate::support::service::done;
use crate::test_server::TestServer;

#[test]
fn a_site_opens_from_the_disk_and_plays_replays() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    let axe = Axe::find();
    let screenshots = screenshot_folder();
    for tournament in ["gomoku-quick", "connect4-quick"] {
        let folder = TempDir::new().unwrap();
        let site = folder.path().join("a site");
        let mut export =
            server.up.command(&format!("tournament export {tournament} --matches 2 --site"));
        done(&export.arg(&site).output().unwrap());
        let address = |page: &str| format!("file://{}/{page}", site.display()).replace(' ', "%20");
        chrome.open(&address("index.html"));
        let places = server.up.json(&format!("ranking {tournament}"));
        assert_eq!(chrome.rows("table.ranking").len(), places.len());
        let styled = "return getComputedStyle(document.querySelector('td.number')).textAlign";
        assert_eq!(chrome.run(styled), "right", "the style sheet is found");

        let mut problems = Vec::new();
        let mut check = |page: &str| {
            let name = format!("site-{tournament}-{page}");
            let folder = screenshots.as_deref();
            problems.extend(inspect(&chrome, axe.as_ref(), folder, &name, Scheme::Dark));
        };
        for page in ["index", "bots", "statistics", "head-to-head", "how-to-play", "about", "data"]
        {
            chrome.open(&address(&format!("{page}.html")));
            check(page);
        }
        chrome.click("nav.tabs a[href$='page-1.html']");
        check("matches");
        assert!(problems.is_empty(), "{}", problems.join("\n"));

        chrome.click("table.matches a[aria-label^='Watch match']");
        let step = |number: u32| {
            format!(
                "return document.querySelector('.step-view .step')?.dataset.step === '{number}'"
            )
        };
        chrome.wait("the first step is shown", &step(0));
        chrome.press(keys::RIGHT);
        chrome.wait("the second step is shown", &step(1));
        chrome.click("[data-play]");
        let played = "return Number(document.querySelector('.step-view .step').dataset.step) > 1";
        chrome.wait("the replay is played", played);
        chrome.click("a[href$='matches/page-1.html']");
        assert!(chrome.has("table.matches"), "{}", chrome.address());
    }
}

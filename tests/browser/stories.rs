//! What people come for, told as stories: each test is one person with one browser, who uses what
//! the pages show.

use std::fs;

use serde_json::Value;

use crate::chrome::Chrome;
use crate::test_server::TestServer;

/// The pages may not need more clicks from the home page to a replay.
const MAX_CLICKS: usize = 2;

#[test]
fn a_spectator_reaches_a_replay_with_two_clicks() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.visit(&chrome, "/");
    let clicks = ["ul.cards article.tournament h2 a", "ul.newest a"];
    assert!(clicks.len() <= MAX_CLICKS);
    for link in clicks {
        let before = chrome.address();
        chrome.click(link);
        wait_for_page_after(&chrome, &before);
    }
    chrome.wait("the replay is shown", "return !!document.querySelector('#replay .step figure')");
    chrome.click("[data-play]");
    chrome.wait(
        "the replay plays",
        "return Number(document.querySelector('#replay .step').dataset.step) > 1",
    );
    // The way back.
    chrome.click("nav.breadcrumbs li:nth-child(2) a");
    chrome.wait("the leaderboard", "return !!document.querySelector('table.ranking')");
}

#[test]
fn an_author_goes_from_the_rules_to_the_first_own_replay() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::empty();
    server.up.create_cup("[submissions]\nwindow = \"0ms\"\n");
    server.up.play("cup");
    let token = server.up.token("player --name alice");

    server.visit(&chrome, "/");
    chrome.click("ul.cards article.tournament h2 a");
    chrome.click("nav.tabs a[href='/t/cup/how-to-play']");
    // The short bot of the page is copied as it stands.
    let code = chrome.text("article.guide code.language-python");
    let file = server.up.directory.path().join("firstbot.py");
    fs::write(&file, code).unwrap();

    chrome.click("nav.tabs a.submit");
    chrome.click("main a[href='/login']");
    chrome.type_into("#token", &format!("  {token} "));
    chrome.click("main form button");
    chrome.wait("the form again", "return location.pathname === '/t/cup/submit'");
    chrome.type_into("#bundle", file.to_str().unwrap());
    chrome.click("form.fields button");
    chrome.wait(
        "the trial has passed",
        "return location.pathname === '/t/cup/bots/alice/firstbot/versions/1'
            && document.querySelector('main').innerText.includes('entered')",
    );
    server.up.wait_for("cup", 2);

    chrome.click("header a[href='/me']");
    assert!(chrome.text("main").contains("Logged in as alice, player"), "{}", chrome.text("main"));
    assert_eq!(chrome.rows("table.own-bots")[0][3], "cup");
    chrome.click("table.own-matches tbody a");
    chrome.wait("the replay is shown", "return !!document.querySelector('#replay .step figure')");
    assert!(chrome.text("table.scores").contains("firstbot"));
}

#[test]
fn an_organiser_goes_from_a_file_to_forty_players_and_a_published_site() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::empty();
    server.log_in(&chrome);
    chrome.click("main a[href='/new']");
    let file = "name = \"final\"\ntitle = \"The Final\"\ngame = \"gomoku\"\n\
                [params]\nmove_limit = \"10h\"\n";
    set_value(&chrome, "textarea[name='text']", file);
    chrome.click("main form:has(textarea[name='text']) button");
    chrome.wait("the tournament's page", "return location.pathname === '/t/final'");
    assert_eq!(chrome.text("h1"), "The Final");

    chrome.click("nav.tabs a[href='/t/final/organise']");
    chrome.click("main a[href^='/invitations']");
    let names: Vec<_> = (1..=40).map(|number| format!("student-{number:02}")).collect();
    set_value(&chrome, "textarea[name='names']", &names.join("\n"));
    chrome.click("main form button");
    let cards = "return document.querySelectorAll('.invitation svg').length === 40";
    chrome.wait("a card with a code for each player", cards);
    server.visit(&chrome, "/t/final/bots");
    assert_eq!(chrome.rows("table.invited").len(), 40, "the invited players");

    for bot in ["house", "center", "shapes"] {
        let path = format!("{}/bots/gomoku/{bot}", env!("CARGO_MANIFEST_DIR"));
        server.up.succeed(&format!("submit final {path} --house"));
    }
    server.visit(&chrome, "/t/final/organise");
    chrome.click("form[action='/t/final/start'] button");
    server.up.wait_for("final", 1);
    server.visit(&chrome, "/t/final/organise");
    chrome.click("form[action='/t/final/close'] input[type='checkbox']");
    chrome.click("form[action='/t/final/close'] button");
    chrome.wait("it is closed", "return location.search === '?done=close'");

    let site = server.up.directory.path().join("site");
    server.up.succeed(&format!("tournament export final --site {}", site.display()));
    chrome.open(&format!("file://{}/index.html", site.display()));
    assert_eq!(chrome.text("h1"), "The Final");
    assert_eq!(chrome.rows("table.ranking").len(), 3);
}

/// Waits until another page is loaded than the one with this address.
fn wait_for_page_after(chrome: &Chrome, before: &str) {
    let body = "return location.href !== argument && document.readyState === 'complete'";
    crate::support::service::wait_until("the next page", || {
        chrome.call(body, &before.into()) == true
    });
}

/// Sets the text of a field at once. Typing a long text takes long.
fn set_value(chrome: &Chrome, selector: &str, text: &str) {
    let argument = Value::from(vec![selector, text]);
    chrome.call("document.querySelector(argument[0]).value = argument[1]", &argument);
}

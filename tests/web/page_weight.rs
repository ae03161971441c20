//! Pages are light: what a browser transfers for the first view of a page stays below a limit.

use std::collections::BTreeSet;

use crate::TestServer;
use crate::browser::Browser;
use crate::support::presets::{TIME, give_time};
use crate::support::service::wait_until;

/// The limit for a page with all that it loads, in bytes.
const MAX_BYTES: usize = 150_000;
/// Bots on the page of the leaderboard that is weighed: more than a page shows.
const BOTS: usize = 110;

/// The values of an attribute in a page, in the elements that a browser loads at once.
fn loaded(page: &str) -> BTreeSet<String> {
    let links = page.split("<link ").skip(1).map(|rest| (rest, "href=\""));
    let scripts = page.split("<script ").skip(1).map(|rest| (rest, "src=\""));
    let images = page.split("<img ").skip(1).map(|rest| (rest, "src=\""));
    let value = |(rest, name): (&str, &str)| {
        let element = rest.split('>').next().unwrap();
        Some(element.split(name).nth(1)?.split('"').next().unwrap().replace("&amp;", "&"))
    };
    let values = links.chain(scripts).chain(images).filter_map(value);
    let mut loaded: BTreeSet<_> = values.filter(|value| !value.starts_with("data:")).collect();
    // The script of a replay loads this chunk once a visitor plays or steps on.
    if let Some(rest) = page.split(CHUNKS).nth(1) {
        loaded.insert(format!("{}0", rest.split('"').next().unwrap().replace("&amp;", "&")));
    }
    loaded
}

/// The size of a response with its head, in bytes, as a browser requests it.
fn transferred(browser: &Browser, path: &str) -> usize {
    let response = browser.get_compressed(path);
    assert_eq!(response.status, 200, "{path}");
    let headers = response.headers.iter();
    let head: usize = headers.map(|(name, value)| name.len() + value.len() + 4).sum();
    head + response.bytes.len()
}

/// The attribute of a replay that says where its steps are.
const CHUNKS: &str = "data-chunks=\"";

/// Plays a tournament until its first match has a replay.
fn play_one_match(server: &TestServer, tournament: &str) {
    let page = format!("/t/{tournament}/matches/0");
    server.up.succeed(&format!("tournament start {tournament}"));
    wait_until(&page, || server.browser.page(&page).contains(CHUNKS));
    server.up.succeed(&format!("tournament cancel {tournament}"));
}

#[test]
fn the_first_view_of_every_page_is_light() {
    let server = TestServer::open();
    let up = &server.up;
    up.play("cup");
    let presets = up.directory.path().join("presets");
    give_time(&presets);
    for (game, _) in TIME {
        let file = std::fs::read_to_string(presets.join(format!("quick/{game}.toml"))).unwrap();
        up.create(&file);
        play_one_match(&server, &format!("{game}-quick"));
    }
    let bots: Vec<_> = (0..BOTS)
        .map(|number| up.bots.python(&format!("a-bot-with-a-long-name-{number:03}"), "sys.exit()"))
        .collect();
    up.create(&format!(
        "name = \"many\"\ngame = \"gomoku\"\n[schedule]\nkind = \"round_robin\"\nopponents = 2\n\
         [house]\nbots = {bots:?}\n"
    ));
    up.succeed("tournament start many");

    let games = TIME.map(|(game, _)| format!("/t/{game}-quick/matches/0"));
    let pages = [
        "/",
        "/login",
        "/queue",
        "/api",
        "/t/cup",
        "/t/cup/matches",
        "/t/cup/matrix",
        "/t/cup/statistics",
        "/t/cup/about",
        "/t/cup/schedule",
        "/t/cup/bots/ada",
        "/t/wojna-quick/how-to-play",
        "/t/gomoku-quick/how-to-play",
        "/t/many/bots",
        "/t/many/ranking?edition=1",
        "/t/many/matrix?edition=1",
        "/t/cup/projector",
        "/t/cup/matches/0/embed",
    ];
    let pages: Vec<_> = pages.into_iter().chain(games.iter().map(String::as_str)).collect();
    let mut organiser = server.browser.clone();
    organiser.log_in(&up.admin());
    let mut heavy = Vec::new();
    for (reader, browser) in [("anonymous", &server.browser), ("organiser", &organiser)] {
        for path in &pages {
            let page_bytes = transferred(browser, path);
            let page = browser.page(path);
            assert!(page.contains(CHUNKS) || !path.contains("/matches/"), "{path}: no replay");
            let parts = loaded(&page);
            assert!(parts.contains("/assets/arbiter.css"), "{path}: {parts:?}");
            let others: usize = parts.iter().map(|part| transferred(browser, part)).sum();
            let total = others + page_bytes;
            println!("{reader} {path}: {total} bytes, of which the page {page_bytes}");
            if total > MAX_BYTES {
                heavy.push(format!("{reader} {path}: {total}, the page {page_bytes}, {parts:?}"));
            }
        }
    }
    // Pages with secrets are not compressed: their size would tell something about them.
    for (browser, is_compressed) in [(&server.browser, true), (&organiser, false)] {
        let response = browser.get_compressed("/t/cup");
        assert_eq!(response.headers.contains_key("content-encoding"), is_compressed);
    }
    assert!(heavy.is_empty(), "more than {MAX_BYTES} bytes:\n{}", heavy.join("\n"));
    server.up.close();
}

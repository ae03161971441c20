//! Pages with results name their edition and say what its results are; lists of matches can be
//! filtered, and link the same matches as data.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::TestServer;
use crate::browser::{Browser, rows, text};
use crate::support::presets::give_time;
use crate::support::service::{done, wait_until};

/// Whether a page says what the results of edition 1 are. That of a bot says it in a list of terms.
fn names_edition(page: &str, status: &str) -> bool {
    ["edition 1", "Edition1"].iter().any(|edition| page.contains(&format!("{edition}, {status}")))
}

/// The text of a page.
fn shown(browser: &Browser, path: &str) -> String {
    text(&browser.page(path))
}

#[test]
fn pages_and_commands_say_whether_results_are_official() {
    let server = TestServer::open_with("rerun = \"manual\"\n");
    let browser = &server.browser;
    server.up.play("cup");
    let pages = ["/t/cup/matrix", "/t/cup/statistics", "/t/cup/matches", "/t/cup/bots/ada", "/"];
    for path in pages {
        let page = shown(browser, path);
        assert!(names_edition(&page, "official"), "{path}: {page}");
    }
    for path in ["/t/cup", "/t/cup/ranking", "/t/cup/projector"] {
        let page = shown(browser, path);
        assert!(page.contains("Official leaderboard (edition 1)"), "{path}: {page}");
        assert!(!page.contains("Edition 1, complete"), "the leaderboard says it: {page}");
        let has_matches = path != "/t/cup/projector";
        assert_eq!(page.contains("Newest matchesMatch "), has_matches, "{path}: {page}");
    }
    for command in ["ranking cup", "ranking cup --stats", "ranking cup --bot ada"] {
        let output = server.up.succeed(command);
        assert!(output.contains("edition 1, official"), "{command}: {output}");
    }

    server.up.play("cup");
    for path in &pages[..4] {
        let page = shown(browser, &format!("{path}?edition=1"));
        assert!(names_edition(&page, "formerly official"), "{path}: {page}");
    }
    let page = shown(browser, "/t/cup/ranking?edition=1");
    assert!(page.contains("Formerly official leaderboard (edition 1)"), "{page}");
    assert!(page.contains("Edition 2, complete: 6 of 6 matches"), "{page}");
    let output = server.up.succeed("ranking cup --edition 1");
    assert!(output.contains("edition 1, formerly official"), "{output}");

    // A match of this tournament never ends.
    let bots = ["honest", "silent"]
        .map(|mode| server.up.bots.built_rascal(&format!("x-{mode}"), mode, 1, ""));
    server.up.create(&format!(
        "name = \"endless\"\ngame = \"gomoku\"\n[params]\nmove_limit = \"10h\"\n\
         [house]\nbots = {bots:?}\n"
    ));
    server.up.succeed("tournament start endless");
    for path in ["matrix", "statistics", "matches", "bots/x-honest"] {
        let page = shown(browser, &format!("/t/endless/{path}?edition=1"));
        assert!(names_edition(&page, "provisional"), "{path}: {page}");
    }
    let page = shown(browser, "/t/endless");
    assert!(page.contains("Provisional leaderboard (edition 1)"), "{page}");
    let page = shown(browser, "/t/endless/projector");
    let matches = server.up.newest("endless")["matches"].clone();
    let progress = format!("Provisional leaderboard (edition 1): 0 of {matches} matches");
    assert!(page.contains(&progress), "{progress}: {page}");
    server.up.succeed("tournament cancel endless");
    let page = shown(browser, "/t/endless/ranking?edition=1");
    assert!(page.contains("Cancelled leaderboard (edition 1)"), "{page}");
    server.up.close();
}

#[test]
fn the_projector_shows_the_progress_of_an_edition_that_runs_beside_the_official_one() {
    let server = TestServer::open();
    let up = &server.up;
    up.create(
        "name = \"slow\"\ngame = \"gomoku\"\nrerun = \"manual\"\n[params]\nmove_limit = \"10h\"\n\
         [schedule]\nkind = \"round_robin\"\nsides = \"both\"\n",
    );
    let submit = |bot: &str| {
        let path = up.bots.path().join(bot);
        done(&up.command("submit slow --house").arg(path).output().unwrap());
    };
    submit("ada");
    submit("bob");
    up.play("slow");
    let official = "Official leaderboard (edition 1): 2 matches";
    let page = shown(&server.browser, "/t/slow/projector");
    assert!(page.contains(official) && !page.contains("is running"), "{page}");

    // The matches of this bot never end.
    up.bots.built_rascal("mute", "silent", 1, "");
    submit("mute");
    up.succeed("tournament start slow");
    wait_until("the projector shows the running edition", || {
        let newest = up.newest("slow");
        let progress = format!("{} of {} matches", newest["counted"], newest["matches"]);
        let line = format!("{official}. Edition 2 is running: {progress}.");
        shown(&server.browser, "/t/slow/projector").contains(&line)
    });
    let update = server.browser.events("/t/slow/projector/live").next().unwrap();
    assert!(text(&update).contains("Edition 2 is running: "), "{update}");
    up.succeed("tournament cancel slow");
    server.up.close();
}

#[test]
fn brackets_and_rounds_name_their_edition() {
    let server = TestServer::open();
    let bots = ["ada", "bob"].map(|bot| format!("{}/{bot}", server.up.bots.path().display()));
    server.up.create(&format!(
        "name = \"finals\"\ngame = \"gomoku\"\n[schedule]\nkind = \"knockout\"\n\
         [house]\nbots = {bots:?}\n"
    ));
    server.up.create(&format!(
        "name = \"league\"\ngame = \"gomoku\"\n[schedule]\nkind = \"swiss\"\nrounds = 1\n\
         [house]\nbots = {bots:?}\n"
    ));
    for (tournament, path) in [("finals", "bracket"), ("league", "rounds")] {
        server.up.play(tournament);
        let page = shown(&server.browser, &format!("/t/{tournament}/{path}"));
        assert!(page.contains("edition 1, official"), "{path}: {page}");
    }
    server.up.close();
}

#[test]
fn a_wrong_filter_is_explained_beside_the_filled_form() {
    let server = TestServer::open();
    server.up.play("cup");
    for (query, status, reason, field) in [
        ("bot=nothing", 404, "nothing", "name=\"bot\" value=\"nothing\""),
        ("bot=ada&opponent=nothing", 404, "nothing", "name=\"opponent\" value=\"nothing\""),
        ("opponent=ada", 400, "opponent needs bot", "name=\"opponent\" value=\"ada\""),
        ("bot=ada&version=7", 404, "Version 7 of ada", "inputmode=\"numeric\" value=\"7\""),
        ("bot=ada&version=x", 400, "Version x is not a number", "value=\"x\""),
    ] {
        let response = server.browser.get(&format!("/t/cup/matches?{query}"));
        assert_eq!(response.status, status, "{query}");
        let page = response.body;
        let form = page.split("<form class=\"search filters\"").nth(1);
        let form =
            form.unwrap_or_else(|| panic!("no form: {page}")).split("</form>").next().unwrap();
        assert!(form.contains(field), "{query}: {form}");
        assert!(form.contains("role=\"alert\"") && text(form).contains(reason), "{query}: {form}");
    }
    let page = server.browser.get("/t/none/matches?bot=ada");
    assert_eq!(page.status, 404, "a tournament that does not exist has no form");
    assert!(!page.body.contains("search filters"));
    server.up.close();
}

/// The numbers of the matches in the rows of a CSV file, in the order of the file.
fn csv_matches(text: &str) -> Vec<i64> {
    let mut lines = text.lines();
    let column = lines.next().unwrap().split(',').position(|name| name == "number").unwrap();
    let mut numbers: Vec<i64> =
        lines.map(|line| line.split(',').nth(column).unwrap().parse().unwrap()).collect();
    numbers.dedup();
    numbers
}

#[test]
fn a_filtered_list_links_the_same_matches_as_json_and_csv() {
    let server = TestServer::open();
    server.up.play("cup");
    let browser = &server.browser;
    let mut sizes = Vec::new();
    for query in [
        "",
        "?bot=ada",
        "?bot=ada&opponent=bob",
        "?bot=+ada+&opponent=bob+",
        "?forfeits=only",
        "?bot=ada&forfeits=only",
        "?bot=eve&forfeits=only&order=oldest",
        "?bot=ada&opponent=eve&version=1&order=oldest",
    ] {
        let page = browser.page(&format!("/t/cup/matches{query}"));
        let listed: Vec<i64> = if page.contains("<table class=\"matches\"") {
            rows(&page, "matches").iter().map(|row| row[0].parse().unwrap()).collect()
        } else {
            Vec::new()
        };
        let foot = page.split("<p class=\"data-links\">").nth(1).unwrap();
        let links = foot.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let links: Vec<_> = links.map(|link| link.replace("&amp;", "&")).collect();
        let json: Value = serde_json::from_str(&browser.page(&links[0])).unwrap();
        let items = json["items"].as_array().unwrap().iter();
        let number = |name: &Value| name.as_str().unwrap().rsplit('/').next().unwrap().parse();
        let items: Vec<i64> = items.map(|item| number(&item["match"]).unwrap()).collect();
        assert_eq!(items, listed, "{query}: JSON");
        let mut in_file = csv_matches(&browser.download(&links[1]).body);
        let mut ordered = listed.clone();
        ordered.sort_unstable();
        in_file.sort_unstable();
        assert_eq!(in_file, ordered, "{query}: CSV");
        sizes.push(listed.len());
    }
    assert_eq!(sizes, [6, 4, 2, 2, 4, 0, 4, 2], "the filters select");
    server.up.close();
}

#[test]
fn the_page_of_a_match_is_titled_with_its_bots() {
    let server = TestServer::open();
    server.up.play("cup");
    let page = server.browser.page("/t/cup/matches/0");
    let seats: Vec<_> = rows(&page, "scores").iter().map(|row| row[1].clone()).collect();
    let names = seats.join("\u{a0}– ");
    assert!(page.contains(&format!("<h1>{names}</h1><p class=\"subtitle\">Match 0</p>")), "{page}");
    assert!(page.contains(&format!("<title>{names}, Match 0 – cup – Arbiter</title>")));
    server.up.close();
}

#[test]
fn own_matches_name_the_components_of_scores() {
    let server = TestServer::open_with("rerun = \"manual\"\n");
    let up = &server.up;
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/games/packages/othello");
    up.create(&format!(
        "name = \"discs\"\ngame = \"{package}\"\n[submissions]\npreflight = false\n"
    ));
    let token = up.token("player --name ada");
    // The matches of a tournament are in one table, although a bot of another one is between.
    for (tournament, bot, name) in [
        ("cup", up.bots.built_rascal("other", "honest", 0, ""), "other"),
        ("discs", format!("{package}/bots/greedy"), "mine"),
        ("cup", up.bots.built_rascal("mine", "honest", 0, ""), "mine"),
    ] {
        let mut submit = up.command(&format!("submit {tournament}"));
        submit.args([bot.as_str(), "--name", name]).env("ARBITER_TOKEN", &token);
        done(&submit.output().unwrap());
        up.play(tournament);
    }
    let mut browser = server.browser.clone();
    browser.log_in(&token);
    let page = browser.page("/me");
    let tables: Vec<_> = page.split("<table class=\"own-matches\">").skip(1).collect();
    assert_eq!(tables.len(), 2, "a table for each tournament");
    for (tournament, columns) in [("/t/discs/", "PointsDiscs"), ("/t/cup/", "Points")] {
        let table = tables.iter().find(|table| table.contains(tournament)).unwrap();
        let heads = text(table.split("</thead>").next().unwrap());
        assert_eq!(heads, format!("MatchYour bot{columns}Seats"), "{tournament}");
    }
    server.up.close();
}

#[test]
fn replays_show_no_stake_between_hands_and_bars_of_time_banks_only() {
    let server = TestServer::open();
    let presets = server.up.directory.path().join("presets");
    give_time(&presets);
    for game in ["blackjack", "bitwa", "gomoku"] {
        let file = std::fs::read_to_string(presets.join(format!("quick/{game}.toml"))).unwrap();
        server.up.create(&file);
        server.up.play(&format!("{game}-quick"));
        let path = format!("/t/{game}-quick/matches/0");
        let page = server.browser.page(&path);
        let total = page.split("data-total=\"").nth(1).unwrap().split('"').next().unwrap();
        let last = total.parse::<usize>().unwrap() - 1;
        let page = server.browser.page(&format!("{path}?step={last}"));
        assert!(!page.contains("Stake 0"), "{game}: {page}");
        assert_eq!(page.contains("<meter"), game == "bitwa", "{game}: {page}");
        assert_eq!(text(&page).contains(" of at most "), game != "bitwa", "{game}: {page}");
        // A list has columns for the parameters in which its matches differ.
        let list = server.browser.page(&format!("/t/{game}-quick/matches"));
        assert_eq!(
            list.contains("<th scope=\"col\">The board</th>"),
            game == "bitwa",
            "{game}: {list}"
        );
        if game == "bitwa" {
            let rows = rows(&list, "matches");
            let boards: BTreeSet<_> = rows.iter().map(|row| &row[2][..]).collect();
            assert_eq!(boards, BTreeSet::from(["drobnica", "pole"]));
        }
    }
    server.up.close();
}

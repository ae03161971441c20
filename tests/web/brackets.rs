//! The bracket of a knockout as a page and as JSON.

use serde_json::Value;

use crate::browser::{Browser, text};
use crate::support::service::done;
use crate::support::up::Up;

/// Starts everything, and creates a knockout of five bots that `eve` cannot win.
fn open() -> (Up, Browser) {
    let up = Up::start(2);
    let house = [
        up.bots.built_rascal("ada", "honest", 0, ""),
        up.bots.built_rascal("bob", "honest", 0, ""),
        up.bots.built_rascal("eve", "exit", 2, ""),
        up.bots.built_rascal("fay", "honest", 0, ""),
        up.bots.built_rascal("gus", "honest", 0, ""),
    ];
    up.create(&format!(
        "name = \"cup\"\ngame = \"gomoku\"\n[schedule]\nkind = \"knockout\"\n\
         seeding = \"entry\"\nthird_place = true\n[house]\nbots = {house:?}\n"
    ));
    let browser = Browser::new(up.http);
    (up, browser)
}

/// The statistics have no columns that say nothing about a knockout, and the page of head-to-head
/// results explains that some bots have not met.
fn check_other_pages(browser: &Browser) {
    let statistics = text(&browser.page("/t/cup/statistics"));
    assert!(statistics.contains("The schedule of this edition determines the ranks"));
    for column in ["Possible ranks", "Best three", "Matches to be sure"] {
        assert!(!statistics.contains(column), "{column}: {statistics}");
    }
    assert!(statistics.contains("Rating: the strength on the scale of Elo"), "{statistics}");
    let matrix = text(&browser.page("/t/cup/matrix"));
    assert!(matrix.contains("Two bots with an empty cell have not met."), "{matrix}");
}

#[test]
fn a_bracket_is_a_page_and_json() {
    let (up, browser) = open();
    up.succeed("tournament start cup");
    let page = text(&browser.page("/t/cup/bracket"));
    assert!(page.contains("Round 1 of 3 is being played."), "{page}");
    assert!(page.contains("Follows from the results."), "{page}");
    up.wait_for("cup", 1);
    assert!(browser.page("/t/cup").contains("href=\"/t/cup/bracket\""));
    check_other_pages(&browser);
    let page = browser.page("/t/cup/bracket");
    let shown = text(&page);
    for heading in ["Quarter-finals", "Semi-finals", "Final", "Third place", "Winner:"] {
        assert!(shown.contains(heading), "{heading}: {shown}");
    }
    let bracket: Value =
        serde_json::from_str(&browser.page("/api/v1/tournaments/cup/bracket")).unwrap();
    assert_eq!((&bracket["edition"], &bracket["round_count"]), (&1.into(), &3.into()));
    let rounds = bracket["rounds"].as_array().unwrap();
    let meetings = |round: usize| rounds[round]["meetings"].as_array().unwrap();
    let sizes: Vec<_> = (0..rounds.len()).map(|round| meetings(round).len()).collect();
    assert_eq!(sizes, [4, 2, 2]);
    let byes: Vec<_> = meetings(0)
        .iter()
        .filter(|meeting| meeting["decided_by"].is_null())
        .map(|meeting| meeting["bots"][0]["bot"].as_str().unwrap())
        .collect();
    assert_eq!(byes, ["ada", "bob", "eve"], "numbers 1 to 3 have a bye");
    assert_eq!(
        (&meetings(2)[0]["third_place"], &meetings(2)[1]["third_place"]),
        (&false.into(), &true.into())
    );
    // The winner leads the leaderboard, and each game of the final is linked.
    let places = up.json("ranking cup");
    assert_eq!(places[0]["bot"], bracket["winner"]);
    let ranks: Vec<_> = places.iter().map(|place| place["rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [1, 2, 3, 4, 5]);
    for name in meetings(2)[0]["matches"].as_array().unwrap() {
        let path = format!("/t/{}", name.as_str().unwrap().replace('/', "/matches/"));
        assert!(page.contains(&format!("href=\"{path}\"")), "{path}");
        assert_eq!(browser.get(&path).status, 200, "{path}");
    }
    up.create(
        "name = \"halted\"\ngame = \"gomoku\"\n[schedule]\nkind = \"knockout\"\n\
         best_of = 1000\n",
    );
    for bot in ["ada", "bob"] {
        let path = up.bots.path().join(bot);
        done(&up.command("submit halted --house").arg(path).output().unwrap());
    }
    up.succeed("tournament start halted");
    up.succeed("tournament cancel halted");
    let page = text(&browser.page("/t/halted/bracket"));
    assert!(page.contains("Cancelled in round 1 of 1."), "{page}");
    let page = text(&browser.page("/t/halted/rounds"));
    assert!(page.contains("Knockout stage with 2 bots, cancelled."), "{page}");
    let rounds = browser.page("/api/v1/tournaments/halted/rounds");
    let rounds: Value = serde_json::from_str(&rounds).unwrap();
    assert_eq!(rounds["stages"][0]["state"], "cancelled");
    up.create("name = \"league\"\ngame = \"gomoku\"\n");
    for bot in ["bob", "gus"] {
        let path = up.bots.path().join(bot);
        done(&up.command("submit league --house").arg(path).output().unwrap());
    }
    up.succeed("tournament start league");
    let response = browser.get("/t/league/bracket");
    assert!(response.body.contains("league is not a knockout, so it has no bracket"));
    up.close();
}

//! Lists of matches with filters contain exactly the matches that pass them.

use std::fs;

use serde_json::{Value, json};

use crate::support::service::done;
use crate::test_server::TestServer;

/// The seat of a bot in a match.
fn seat<'a>(found: &'a Value, bot: &str) -> Option<&'a Value> {
    found["seats"].as_array().unwrap().iter().find(|seat| seat["bot"] == bot)
}

#[test]
fn filters_select_matches_by_bots_forfeits_and_order() {
    let server = TestServer::played();
    let list = "/api/v1/tournaments/cup/matches";
    let all_matches = server.all(list, 1000);
    let select = |passes: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        all_matches.iter().filter(|found| passes(found)).cloned().collect()
    };
    let met = select(&|found| seat(found, "player/mine").is_some() && seat(found, "ada").is_some());
    assert_eq!(met.len(), 2);
    assert_eq!(server.all(&format!("{list}?bot=mine&opponent=ada"), 1), met);
    let by_eve =
        select(&|found| seat(found, "eve").is_some_and(|seat| seat["forfeit"] != Value::Null));
    assert_eq!(by_eve.len(), 8, "eve forfeits all its matches");
    assert_eq!(server.all(&format!("{list}?forfeit=true"), 3), by_eve);
    assert_eq!(server.all(&format!("{list}?bot=eve&forfeit=true"), 3), by_eve);
    assert_eq!(server.json(&format!("{list}?bot=ada&forfeit=true"))["items"], json!([]));
    for filter in ["", "&bot=mine", "&bot=mine&opponent=ada", "&forfeit=true"] {
        let mut oldest_first = server.all(&format!("{list}?order=oldest{filter}"), 3);
        oldest_first.reverse();
        let newest_first = server.all(&format!("{list}?order=newest{filter}"), 3);
        assert_eq!(newest_first, oldest_first, "{filter}");
    }
    for (query, status, error) in [
        ("opponent=ada", 400, "`opponent` needs `bot`"),
        ("version=1", 400, "`version` needs `bot`"),
        ("order=latest", 400, "latest"),
        ("forfeit=perhaps", 400, "forfeit"),
        ("bot=mine&opponent=nobody", 404, "nobody"),
        ("bot=mine&version=7", 404, "version 7 of mine"),
        ("bot=mine&version=7&edition=1", 404, "with version 1, not 7"),
    ] {
        let response = server.get(&format!("{list}?{query}"), &[]);
        assert_eq!(response.status, status, "{query}: {}", response.text());
        assert!(response.json()["detail"].as_str().unwrap().contains(error), "{query}");
    }
    server.up.close();
}

#[test]
fn an_unknown_filter_is_refused_and_the_known_ones_are_named() {
    let server = TestServer::played();
    for (path, unknown, known) in [
        ("/t/cup/matches.csv?forfeits=only", "forfeits", &["forfeit", "opponent"][..]),
        ("/t/cup/matches.csv?bots=mine", "bots", &["bot", "version"][..]),
        ("/t/cup/ranking.csv?bot=mine", "bot", &["edition"][..]),
        ("/t/cup/statistics.csv?forfeit=true", "forfeit", &["edition"][..]),
        ("/api/v1/tournaments/cup/matches?forfeits=only", "forfeits", &["forfeit", "opponent"][..]),
    ] {
        let response = server.get(path, &[]);
        assert_eq!(response.status, 400, "{path}");
        let text = response.text().replace("<code>", "`").replace("</code>", "`");
        for name in [unknown].iter().chain(known) {
            assert!(text.contains(&format!("`{name}`")), "{path}: {name}: {text}");
        }
    }
    // The page knows the filter by both names, and its links to data work.
    for filter in ["forfeits=only", "forfeit=true"] {
        let page = server.get(&format!("/t/cup/matches?{filter}"), &[]).text();
        let (_, rest) = page.split_once("href=\"/t/cup/matches.csv?").unwrap();
        let query = rest.split('"').next().unwrap().replace("&amp;", "&");
        assert!(query.contains("forfeit=true"), "{filter}: {query}");
        let csv = server.get(&format!("/t/cup/matches.csv?{query}"), &[]);
        assert_eq!((csv.status, csv.text().lines().count()), (200, 1 + 2 * 8), "{filter}");
    }
    server.up.close();
}

#[test]
fn a_version_selects_the_last_edition_with_it() {
    let server = TestServer::played();
    let list = "/api/v1/tournaments/cup/matches";
    let bot = server.up.bots.path().join("mine");
    fs::write(bot.join("notes.txt"), "another version").unwrap();
    let mut submit = server.up.command("submit cup");
    done(&submit.arg(&bot).env("ARBITER_TOKEN", &server.player).output().unwrap());
    server.up.play("cup");
    for (query, version) in [("", 2), ("&version=2", 2), ("&version=1", 1), ("&edition=1", 1)] {
        let found = server.all(&format!("{list}?bot=mine{query}"), 3);
        assert_eq!(found.len(), 8);
        for found in &found {
            assert_eq!(seat(found, "player/mine").unwrap()["version"], version, "{query}");
            assert_eq!(found["edition"], version, "each edition added the matches of its version");
        }
    }
    let shared = server.all(&format!("{list}?bot=ada&opponent=bob"), 3);
    assert!(shared.iter().all(|found| found["edition"] == 1), "edition 2 shares them");
    let digest = |version: usize| {
        let versions = server.all("/api/v1/tournaments/cup/bots/mine/versions", 9);
        versions.into_iter().find(|one| one["version"] == version).unwrap()["digest"].clone()
    };
    for version in [1, 2] {
        let found = server.json(&format!("{list}?bot=mine&version={version}"));
        assert_eq!(seat(&found["items"][0], "player/mine").unwrap()["digest"], digest(version));
    }
    server.up.close();
}

#[test]
fn matches_of_rounds_have_their_stage_and_round() {
    let server = TestServer::played();
    server.play_knockout();
    let found = server.all("/api/v1/tournaments/finals/matches", 1000);
    assert!(found.iter().all(|found| (&found["stage"], &found["round"]) == (&json!(1), &json!(1))));
    let response = server.get("/t/finals/matches.csv", &[]).text();
    let header: Vec<_> = response.lines().next().unwrap().split(',').collect();
    let stage = header.iter().position(|column| *column == "stage").unwrap();
    for line in response.lines().skip(1) {
        assert_eq!(line.split(',').nth(stage), Some("1"), "{line}");
    }
    let found = server.all("/api/v1/tournaments/cup/matches", 1000);
    assert!(found.iter().all(|found| found["stage"] == Value::Null), "a round robin has no rounds");
    server.up.close();
}

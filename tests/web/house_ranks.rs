//! House bots without ranks: they play and are listed, and the ranks of the others skip them.

use std::fs;

use serde_json::{Value, json};

use crate::TestServer;
use crate::browser::{Browser, csrf, encoded, rows, text};
use crate::support::service::{done, wait_until};
use crate::support::up::Up;

/// Three house bots: `hit` exits in the middle of each match.
fn house(up: &Up) -> [String; 3] {
    [
        up.bots.built_rascal("hal", "honest", 0, ""),
        up.bots.built_rascal("hub", "honest", 0, ""),
        up.bots.built_rascal("hit", "exit", 2, ""),
    ]
}

/// Creates a tournament of gomoku with unranked house bots and this schedule. The bots of a player
/// enter at once.
fn create(up: &Up, name: &str, schedule: &str, house: &[String]) {
    up.create(&format!(
        "name = \"{name}\"\ngame = \"gomoku\"\nrerun = \"manual\"\n{schedule}\n\
         [submissions]\npreflight = false\n[house]\nbots = {house:?}\nranked = false\n"
    ));
}

/// The rank of each bot in JSON.
fn ranks(places: &[Value]) -> Vec<(Value, Value)> {
    places.iter().map(|place| (place["bot"].clone(), place["rank"].clone())).collect()
}

/// Checks that house bots have no rank, and that the others have 1 and 2.
fn check_ranks(places: &[Value], what: &str) {
    let ranks = ranks(places);
    assert_eq!(ranks.len(), 5, "{what}: {ranks:?}");
    let mut of_players = Vec::new();
    for (bot, rank) in ranks {
        if bot == "ann/ann" || bot == "ann/zed" {
            of_players.push((bot, rank));
        } else {
            assert_eq!(rank, Value::Null, "{what}: {bot}");
        }
    }
    assert_eq!(of_players, [(json!("ann/ann"), json!(1)), (json!("ann/zed"), json!(2))], "{what}");
}

/// Checks that histories say which bots are house bots.
fn check_histories(up: &Up, api: &impl Fn(&str) -> Value) {
    for (bot, is_house) in [("ann/ann", false), ("hal", true)] {
        let history = api(&format!("bots/{bot}/history"));
        assert_eq!(history["items"][0]["standing"]["house"], is_house, "{history}");
        let lines = up.json(&format!("ranking cup2 --bot {bot}"));
        let history = lines.iter().find_map(|line| line.get("history")).unwrap();
        assert_eq!(history["house"], is_house, "{history}");
    }
}

/// Checks that the scale of the drawn ranks ends with the second of the two ranked bots.
fn check_rank_bars(browser: &Browser) {
    let page = browser.page("/t/cup2/statistics");
    let bars = page.split("<line class=\"ranks\"").skip(1);
    let dots = bars.map(|bar| bar.split("<line class=\"dot\" x1=\"").nth(1).unwrap());
    let dots: Vec<_> = dots.map(|dot| dot.split('"').next().unwrap()).collect();
    assert_eq!(dots, ["2.00", "98.00"], "{page}");
}

/// The bots of the player: `zed` exits in the middle of each match.
struct Player {
    token: String,
    bots: [String; 2],
}

impl Player {
    fn new(up: &Up) -> Self {
        let token = up.token("player --name ann");
        let bots =
            [up.bots.built_rascal("ann", "honest", 0, ""), up.bots.rascal("zed", "exit", 1, "")];
        Self { token, bots }
    }

    fn enter(&self, up: &Up, tournament: &str) {
        for bot in &self.bots {
            let mut command = up.command(&format!("submit {tournament} --built"));
            done(&command.arg(bot).env("ARBITER_TOKEN", &self.token).output().unwrap());
        }
    }
}

#[test]
fn unranked_house_bots_are_listed_without_a_rank_everywhere() {
    let server = TestServer::open();
    let up = &server.up;
    let browser = &server.browser;
    create(up, "cup2", "[schedule]\nkind = \"round_robin\"\nsides = \"both\"", &house(up));
    Player::new(up).enter(up, "cup2");
    up.play("cup2");

    let places = up.json("ranking cup2");
    check_ranks(&places, "CLI");
    assert_eq!(places[4]["house"], places[4]["bot"] != "ann/zed");
    let table = up.succeed("ranking cup2");
    let house_rows = table.lines().filter(|line| line.trim_start().starts_with("house "));
    assert_eq!(house_rows.count(), 3, "{table}");
    assert_eq!(table.matches("house bot").count(), 3, "{table}");
    let csv = up.succeed("ranking cup2 --format csv");
    assert!(csv.contains("\n,false,hal,") && csv.contains("\n1,false,ann/ann,"), "{csv}");
    let api = |path: &str| -> Value {
        let path = format!("/api/v1/tournaments/cup2/{path}");
        serde_json::from_str(&browser.get(&path).body).unwrap()
    };
    check_ranks(api("ranking")["items"].as_array().unwrap(), "API");
    assert_eq!(api("bots/hal/standing")["rank"], Value::Null, "{}", api("bots/hal/standing"));
    let csv = browser.page("/t/cup2/ranking.csv");
    assert!(csv.contains("\r\n,false,hal,") || csv.contains("\n,false,hal,"), "{csv}");

    // The page marks them, and the best bot of a player leads.
    let page = browser.page("/t/cup2/ranking");
    for row in rows(&page, "ranking") {
        let is_house = !row[1].starts_with("ann") && !row[1].starts_with("zed");
        assert_eq!(row[0] == "–", is_house, "{row:?}");
        assert_eq!(row[1].ends_with("house bot"), is_house, "{row:?}");
    }
    let home = browser.page("/");
    let card = home.split("href=\"/t/cup2\"").nth(1).unwrap();
    let best = "Best ranked bot: <strong><a href=\"/t/cup2/bots/ann/ann\">ann</a>";
    assert!(card.contains(best), "{card}");
    assert!(text(&browser.page("/t/cup2/bots/hal")).contains("none (house bot)"));
    assert!(browser.page("/t/cup2/projector").contains("house bot"));
    let about = text(&browser.page("/t/cup2/about"));
    assert!(about.contains("House bots play and are listed at their places, without a rank"));

    check_histories(up, &api);

    // Possible ranks count the ranked bots alone.
    let statistics = up.json("ranking cup2 --stats");
    let bots: Vec<_> = statistics.iter().filter(|row| row["bot"].is_string()).cloned().collect();
    check_ranks(&bots, "statistics");
    for row in &bots {
        let is_house = row["rank"].is_null();
        assert!(!is_house || row["best_rank"].is_null(), "{row}");
        assert!(row["worst_rank"].is_null() || row["worst_rank"].as_i64() <= Some(2), "{row}");
    }
    check_rank_bars(browser);
    let site = up.bots.path().join("site");
    up.succeed(&format!("tournament export cup2 --site {}", site.display()));
    let index = fs::read_to_string(site.join("index.html")).unwrap();
    assert_eq!(index.matches("(house bot)").count(), 3, "{index}");
    server.up.close();
}

#[test]
fn the_home_page_names_the_best_ranked_bot_if_there_is_one() {
    let server = TestServer::open();
    let up = &server.up;
    let house = house(up);
    let card = |name: &str| {
        let home = server.browser.page("/");
        let link = format!("href=\"/t/{name}\"");
        let card = home.split("</article>").find(|card| card.contains(&link)).unwrap_or_default();
        text(card)
    };
    let schedule = "[schedule]\nkind = \"knockout\"\nbest_of = 2";
    create(up, "house", schedule, &house);
    assert!(card("house").contains("Nothing has been played yet."), "{}", card("house"));
    up.play("house");
    wait_until("the card is new", || card("house").contains("No bot is ranked."));
    assert!(!card("house").contains("Nothing has been played"), "{}", card("house"));

    create(up, "final", schedule, &house);
    let Player { token, bots } = Player::new(up);
    let mut submit = up.command("submit final --built");
    done(&submit.arg(&bots[0]).env("ARBITER_TOKEN", token).output().unwrap());
    up.play("final");
    up.succeed("tournament close final");
    let best = "Best ranked bot: ann (edition 1, official)";
    wait_until("the card is new", || card("final").contains(best));
    assert!(!card("final").contains("Winner"), "{}", card("final"));
    let home = text(&server.browser.page("/"));
    assert!(home.contains("ann is the best ranked bot of final"), "{home}");
    server.up.close();
}

/// An official leaderboard changes only with its edition.
#[test]
fn ranks_of_house_bots_change_with_the_next_edition() {
    let server = TestServer::open();
    let up = &server.up;
    create(up, "cup2", "[schedule]\nkind = \"round_robin\"\nsides = \"both\"", &house(up));
    Player::new(up).enter(up, "cup2");
    up.play("cup2");
    let before = ranks(&up.json("ranking cup2"));
    let edited = up.succeed("tournament edit cup2 --set house.ranked=true");
    assert!(edited.contains("house.ranked: false → true"), "{edited}");
    assert!(edited.contains("from the next edition on"), "{edited}");
    assert_eq!(ranks(&up.json("ranking cup2")), before, "the official leaderboard stays");
    up.play("cup2");
    let after = up.json("ranking cup2");
    assert!(after.iter().all(|place| place["rank"].is_number()), "{after:?}");
    assert_eq!(ranks(&up.json("ranking cup2 --edition 1")), before);
    let audit = up.json("audit");
    let change = audit.iter().find(|line| line["action"] == "tournament edit").unwrap();
    assert_eq!(change["detail"]["before"], json!({"house.ranked": false}));
    assert_eq!(change["detail"]["after"], json!({"house.ranked": true}));

    // A form changes it, too, and a new tournament has it in its form.
    let mut browser = server.browser.clone();
    browser.log_in(&up.admin());
    let page = browser.page("/t/cup2/edit");
    let revision = page.split("name=\"revision\" value=\"").nth(1).unwrap()[..64].to_owned();
    let form = format!("csrf={}&revision={revision}&house.ranked=false&apply=yes", csrf(&page));
    assert_eq!(browser.post("/t/cup2/edit", &form, &[]).status, 303);
    assert_eq!(up.json("tournament show cup2")[0]["settings"]["house"]["ranked"], false);
    let form = format!(
        "csrf={}&game=gomoku&name=new&unranked_house=yes&more={}",
        csrf(&browser.page("/new/game?game=gomoku")),
        encoded("title = \"New\"")
    );
    let created = browser.post("/new/game", &form, &[]);
    assert_eq!(created.status, 303, "{}", created.body);
    assert_eq!(up.json("tournament show new")[0]["settings"]["house"]["ranked"], false);
    assert!(up.json("tournament show cup")[0]["settings"]["house"]["ranked"].is_null());
    server.up.close();
}

#[test]
fn schedules_in_rounds_skip_unranked_house_bots_and_their_exports_verify() {
    let server = TestServer::open();
    let up = &server.up;
    let house = house(up);
    let player = Player::new(up);
    for (name, schedule) in [
        ("knockout", "[schedule]\nkind = \"knockout\"\nbest_of = 2"),
        ("swiss", "[schedule]\nkind = \"swiss\"\nrounds = 2"),
        ("ladder", "[schedule]\nkind = \"ladder\"\nrounds = 2"),
        (
            "stages",
            "[[stage]]\nkind = \"round_robin\"\nadvance = 2\n\
             [[stage]]\nkind = \"knockout\"\nbest_of = 2",
        ),
    ] {
        create(up, name, schedule, &house);
        player.enter(up, name);
        up.play(name);
        let places = up.json(&format!("ranking {name}"));
        let of_players: Vec<_> =
            places.iter().filter(|place| place["rank"].is_number()).cloned().collect();
        assert_eq!(of_players.len(), 2, "{name}: {places:?}");
        assert_eq!(of_players[0]["rank"], 1, "{name}: {places:?}");
        let rounds = up.json(&format!("tournament rounds {name} --stage 1"));
        let rows = rounds.iter().filter_map(|line| line.get("standing"));
        let (ranked, unranked): (Vec<_>, Vec<_>) = rows.partition(|row| row["rank"].is_number());
        assert_eq!((ranked.len(), unranked.len()), (2, 3), "{name}: {rounds:?}");
        assert!(ranked.iter().any(|row| row["rank"] == 1), "{name}: {ranked:?}");

        up.succeed(&format!("tournament close {name}"));
        let export = up.bots.path().join(format!("{name}-export"));
        up.succeed(&format!("tournament export {name} --out {}", export.display()));
        up.succeed(&format!("verify {}", export.display()));
        // A leaderboard with another rank does not follow from the results.
        let path = export.join("ranking.json");
        let ranking = fs::read_to_string(&path).unwrap();
        let wrong = ranking.replacen("\"rank\": null", "\"rank\": 1", 1);
        assert_ne!(wrong, ranking);
        fs::write(&path, wrong).unwrap();
        let output = up.command(&format!("verify {}", export.display())).output().unwrap();
        let report =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {report}");
        assert!(report.contains("has rank 1, the results give no rank"), "{name}: {report}");
    }
    server.up.close();
}

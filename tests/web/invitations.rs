//! Organisers invite players in a browser, and see who has entered. Players see their own bots.

use serde_json::Value;

use crate::TestServer;
use crate::browser::{Browser, csrf, encoded, rows, text};
use crate::support::service::done;

/// The tokens on the cards of a page.
fn tokens(page: &str) -> Vec<String> {
    let codes = page.split("<p class=\"token\"><code>").skip(1);
    codes.map(|rest| text(rest.split("</code>").next().unwrap())).collect()
}

/// Sends the form of invitations.
fn invite(browser: &Browser, names: &str) -> (u16, String) {
    let csrf = csrf(&browser.page("/invitations"));
    let names = encoded(names);
    let form = format!("csrf={csrf}&title=Spring%20cup&names={names}");
    let response = browser.post("/invitations", &form, &[]);
    (response.status, response.body)
}

#[test]
fn organisers_invite_players_and_print_their_cards() {
    let server = TestServer::open();
    let mut organiser = server.browser.clone();
    assert_eq!(organiser.get("/invitations").status, 401);
    organiser.log_in(&server.up.token("player --name ada"));
    assert_eq!(organiser.get("/invitations").status, 403);
    organiser.log_in(&server.up.token("organiser --name olga"));
    let players = || server.up.json("token list --role player").len();
    assert_eq!(players(), 1);
    let form = format!("csrf={}&names=bob", "0".repeat(64));
    assert_eq!(organiser.post("/invitations", &form, &[]).status, 403);
    let (status, page) = invite(&organiser, "bob\r\nada\r\n<b>eve\r\nbob\r\na\tb\r\n");
    assert_eq!(status, 409, "{page}");
    for problem in [
        "Line 2: leave out ada, the name of token ",
        "Line 4: leave out bob, which is also on line 1.",
        "Line 5: \"a\\tb\" cannot be the name of a token",
    ] {
        assert!(text(&page).contains(problem), "{problem}: {page}");
    }
    assert!(page.contains("bob\r\nada") || page.contains("bob\nada"), "the form keeps the names");
    assert!(page.contains("&lt;b&gt;eve") && !page.contains("<b>eve"), "{page}");
    assert_eq!(players(), 1, "all or none");

    let (status, page) = invite(&organiser, "# the class\r\nbob\r\nEve Kowalska\r\n");
    assert_eq!(status, 200, "{page}");
    assert_eq!(page.matches("<section class=\"invitation\">").count(), 2);
    let shown = text(&page);
    for part in ["Spring cup", "Eve Kowalska", "it cannot be shown again"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let address = format!("http://{}/login", server.up.http);
    assert!(page.contains(&address), "{page}");
    let tokens = tokens(&page);
    assert_eq!(tokens.len(), 2, "{page}");
    for token in &tokens {
        assert_eq!(server.browser.clone().log_in(token).status, 303, "{token}");
    }
    let change = &server.up.json("audit --who olga")[0];
    assert_eq!(change["action"], "token create");
    server.up.close();
}

#[test]
fn the_list_of_bots_shows_owners_and_states() {
    let server = TestServer::open();
    let ada = server.up.token("player --name lovelace");
    server.up.succeed("token create --role player --name zoe");
    let path = server.up.bots.built_rascal("engine", "honest", 0, "");
    let mut submit = server.up.command("submit cup");
    done(&submit.arg(path).env("ARBITER_TOKEN", &ada).output().unwrap());
    let list = |query: &str| rows(&server.browser.page(&format!("/t/cup/bots{query}")), "bots");
    let all = list("");
    assert_eq!(all.len(), 4, "three house bots");
    assert_eq!(all[0][..4], ["engine", "entered", "lovelace", "1"], "the newest is first");
    assert!(all[1..].iter().all(|row| row[2] == "house bot"), "{all:?}");
    let names = |query: &str| list(query).into_iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    assert_eq!(names("?sort=name"), ["ada", "bob", "engine", "eve"]);
    assert_eq!(names("?q=LOVE"), ["engine"], "owners are searched");
    assert_eq!(server.browser.get("/t/cup/bots?sort=luck").status, 400);
    assert!(server.browser.page("/t/cup/bots?q=nothing").contains("No bot or owner"));
    assert!(
        !server.browser.page("/t/cup/bots").contains("zoe"),
        "only organisers see who is invited"
    );
    let api = server.up.get("/api/v1/tournaments/cup/bots");
    assert!(api.contains("\"state\":\"entered\"") && api.contains("\"created_at\":\""), "{api}");

    let mut organiser = server.browser.clone();
    organiser.log_in(&server.up.admin());
    let invited = rows(&organiser.page("/t/cup/bots"), "invited");
    assert_eq!(invited.len(), 1, "{invited:?}");
    assert_eq!((&invited[0][0][..], &invited[0][2][..]), ("zoe", "never"));
    let invited = server.up.json("bots cup --invited");
    assert_eq!((&invited[0]["player"], &invited[0]["seen"]), (&Value::from("zoe"), &Value::Null));
    server.up.succeed("bots cup --withdraw engine");
    assert_eq!(list("?q=engine")[0][1], "withdrawn");
    server.up.close();
}

#[test]
fn a_player_sees_the_own_bots_and_matches() {
    let server = TestServer::open();
    assert_eq!(server.browser.get("/me").headers["location"], "/login?next=/me");
    let token = server.up.token("player --name lovelace");
    let mut player = server.browser.clone();
    player.log_in(&token);
    let page = text(&player.page("/me"));
    assert!(page.contains("Logged in as lovelace, player."), "{page}");
    assert!(page.contains("You have not submitted a bot yet."), "{page}");

    let path = server.up.bots.built_rascal("engine", "honest", 0, "");
    let mut submit = server.up.command("submit cup");
    done(&submit.arg(path).env("ARBITER_TOKEN", &token).output().unwrap());
    let page = player.page("/me");
    assert!(text(&page).contains("Your bots have not played yet."), "{page}");
    server.up.play("cup");
    let page = player.page("/me");
    let bots = rows(&page, "own-bots");
    assert_eq!(bots.len(), 1, "only the own ones");
    assert_eq!((&bots[0][0][..], &bots[0][1][..], &bots[0][3][..]), ("engine", "entered", "cup"));
    let place =
        server.up.json("ranking cup").into_iter().find(|place| place["bot"] == "lovelace/engine");
    let rank = place.unwrap()["rank"].to_string();
    let ranked = format!("{rank} (edition 1, official)");
    assert_eq!(bots[0][2].trim_start_matches('='), ranked);
    let matches = rows(&page, "own-matches");
    assert_eq!(matches.len(), 5, "{matches:?}");
    assert!(matches.iter().all(|row| row[3].contains("engine")), "{matches:?}");
    assert!(page.contains(&format!("/t/cup/matches/{}\"", matches[0][0])), "{page}");
    let mut edit = server.up.command("tournament edit cup --set");
    done(&edit.arg("title=Spring finals").output().unwrap());
    let titled = player.page("/me");
    assert_eq!(rows(&titled, "own-bots")[0][3], "Spring finals");
    assert!(titled.contains("<h3><a href=\"/t/cup\">Spring finals</a></h3>"), "{titled}");
    server.up.close();
}

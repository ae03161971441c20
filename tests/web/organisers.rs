//! Actions of organisers in a browser have the same effect as the commands, and only organisers can
//! do them.

use std::fs;

use serde_json::{Value, json};

use crate::browser::{Part, csrf, rows, text};
use crate::support::service::wait_until;
use crate::{TestServer, shown};

/// All actions refuse forms without the session's CSRF token, even from an administrator.
#[test]
fn forms_without_a_valid_csrf_token_change_nothing() {
    let server = TestServer::open();
    server.up.play("cup");
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.admin());
    let before = server.up.succeed("audit");
    let actions = [
        "/new/game",
        "/t/cup/start",
        "/t/cup/rehearse",
        "/t/cup/cancel",
        "/t/cup/close",
        "/t/cup/retry",
        "/t/cup/void",
        "/t/cup/edit",
        "/t/cup/announcements",
        "/t/cup/announcements/1/remove",
        "/t/cup/bots/ada/withdraw",
        "/t/cup/bots/ada/reinstate",
        "/t/cup/bots/ada/versions/1/retry",
        "/t/cup/matches/0/retry",
        "/logout",
    ];
    let stranger = "0".repeat(64);
    for action in actions {
        let form = format!("sure=yes&reason=none&matches=cup%2F0&csrf={stranger}");
        assert_eq!(browser.post(action, &form, &[]).status, 403, "{action}");
    }
    for action in ["/new", "/new/package", "/t/cup/package", "/t/cup/submit"] {
        let csrf = Part::text("csrf", &stranger);
        assert_eq!(browser.upload(action, &[csrf], &[]).status, 403, "{action}");
    }
    assert_eq!(server.up.succeed("audit"), before);
    server.up.close();
}

#[test]
fn matches_are_declared_void_after_a_preview_that_equals_the_commands() {
    let server = TestServer::open();
    server.up.play("cup");
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.token("player --name ada"));
    assert_eq!(browser.get("/t/cup/void").status, 403, "a player is not an organiser");
    assert_eq!(browser.get("/t/cup/organise").status, 403);
    browser.log_in(&server.up.admin());
    assert!(browser.page("/t/cup/organise").contains("href=\"/t/cup/void\""));
    assert!(!browser.page("/t/cup/void").contains("Preview</h2>"));

    let void = "tournament void cup --match cup/0 --match cup/3";
    let preview = &server.up.json(void)[0];
    let page = browser.page("/t/cup/void?worker=&from=&to=&matches=cup%2F0+cup%2F3");
    let page_text = text(&page);
    assert!(
        page_text.contains(&format!("{} matches would be declared void", preview["matches"])),
        "{page_text}"
    );
    let expected = format!("Edition {} counts {} of them", preview["edition"], preview["missing"]);
    assert!(page_text.contains(&expected), "{page_text}");
    let table = rows(&page, "void");
    let places = preview["places"].as_array().unwrap();
    assert_eq!(table.len(), places.len());
    for (row, place) in table.iter().zip(places) {
        let columns = ["rank", "rank_without"].map(|name| shown(&place[name]));
        assert_eq!(row[..2], columns);
        let score = |name: &str| shown(&place[name][0]);
        assert_eq!(row[3..], [shown(&place["bot"]), score("score"), score("score_without")]);
    }
    // A time without matches; invalid values.
    let page =
        browser.page("/t/cup/void?worker=&from=2001-09-09T01%3A46&to=2001-09-10T01%3A46&matches=");
    assert!(page.contains("No match meets these conditions."), "{page}");
    for (query, why) in
        [("matches=seven", "seven"), ("from=noon", "noon"), ("worker=nobody", "nobody")]
    {
        let refused = browser.get(&format!("/t/cup/void?{query}"));
        assert!((400..500).contains(&refused.status) && refused.body.contains(why), "{query}");
    }

    let hash = csrf(&browser.page("/"));
    let form = "matches=cup%2F0+cup%2F3&reason=a+clock&csrf=";
    assert_eq!(browser.post("/t/cup/void", &format!("{form}&sure=yes"), &[]).status, 403);
    assert_eq!(browser.post("/t/cup/void", &format!("{form}{hash}"), &[]).status, 400);
    let done = browser.post("/t/cup/void", &format!("{form}{hash}&sure=yes"), &[]);
    assert_eq!(done.status, 303, "{}", done.body);
    let page = text(&browser.page(&done.headers["location"]));
    assert!(page.contains("2 matches declared void"), "{page}");
    let preview = &server.up.json(void)[0];
    assert_eq!(preview["matches"], 0, "they are void already");
    server.up.close();
}

/// Creates a tournament of wojna for five bots, with every combination of four at one table.
fn create_tables(server: &TestServer) {
    let miser = concat!(env!("CARGO_MANIFEST_DIR"), "/bots/wojna/miser/bot.pl");
    let house = ["b1", "b2", "b3", "b4", "b5"].map(|bot| {
        let folder = server.up.bots.path().join(bot);
        fs::create_dir(&folder).unwrap();
        fs::copy(miser, folder.join("bot.pl")).unwrap();
        let manifest = format!("name = \"{bot}\"\nrun = [\"perl\", \"bot.pl\"]\n");
        fs::write(folder.join("bot.toml"), manifest).unwrap();
        folder
    });
    server.up.create(&format!(
        "name = \"tables\"\ngame = \"wojna\"\n[params]\ndeals = 1\n[schedule]\n\
         kind = \"foursomes\"\n[house]\nbots = {house:?}\n"
    ));
}

#[test]
fn a_tournament_without_an_edition_says_why() {
    let server = TestServer::open();
    server.up.create("name = \"lone\"\ngame = \"gomoku\"\n");
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.admin());
    let page = browser.page("/t/lone/organise");
    assert!(page.contains("An edition needs at least 2 bots, and none has entered yet."), "{page}");
    assert!(page.contains("<button type=\"submit\" disabled"), "{page}");
    let refused = browser.post("/t/lone/start", &format!("csrf={}", csrf(&page)), &[]);
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("role=\"alert\"") && refused.body.contains("class=\"tabs\""));
    let page = browser.page("/t/lone/collusion");
    assert!(page.contains("An organiser starts the first edition"), "{page}");
    server.up.succeed("tournament cancel lone");
    for path in ["", "/matches", "/schedule", "/collusion"] {
        let page = text(&browser.page(&format!("/t/lone{path}")));
        assert!(page.contains("This tournament was cancelled before its first edition."), "{page}");
    }
    server.up.close();
}

#[test]
fn the_collusion_page_shows_the_same_data_as_the_command() {
    let server = TestServer::open();
    create_tables(&server);
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.token("player --name ada"));
    assert_eq!(browser.get("/t/tables/collusion").status, 403, "a player is not an organiser");
    browser.log_in(&server.up.admin());
    assert_eq!(browser.get("/t/attic/collusion").status, 404);
    server.up.play("tables");
    assert!(browser.page("/t/tables/organise").contains("href=\"/t/tables/collusion\""));
    let pairs = server.up.json("tournament collusion tables");
    assert_eq!((&pairs[0]["tables"], &pairs[0]["tested"]), (&json!(5), &json!(20)));
    assert_eq!(pairs[0]["flagged"], 0, "five tables are too few for evidence");
    let page = browser.page("/t/tables/collusion");
    assert!(text(&page).contains("a reason to read its records, not a proof"), "{page}");
    let table = rows(&page, "collusion");
    assert_eq!((table.len(), pairs.len()), (20, 21));
    for (row, pair) in table.iter().zip(&pairs[1..]) {
        let expected = ["bot", "partner", "together"].map(|name| shown(&pair[name]));
        assert_eq!(row[..3], expected);
    }
    server.up.play("cup");
    let page = browser.page("/t/cup/collusion");
    assert!(page.contains("of cup have fewer than three seats"), "{page}");
    assert!(!browser.page("/t/cup/organise").contains("href=\"/t/cup/collusion\""));
    server.up.close();
}

#[test]
fn tournaments_are_created_from_a_file_with_the_same_errors() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    assert_eq!(browser.get("/new").status, 401);
    browser.log_in(&server.up.token("player --name ada"));
    assert_eq!(browser.get("/new").status, 403);
    assert!(!browser.page("/").contains("href=\"/new\""));
    browser.log_in(&server.up.admin());
    assert!(browser.page("/").contains("href=\"/new\""));
    let hash = csrf(&browser.page("/new"));
    let send = |hash: &str, text: &str, file: &str| {
        let file = Part::file("file", "cup.toml", file.as_bytes());
        browser.upload("/new", &[Part::text("csrf", hash), Part::text("text", text), file], &[])
    };
    let wrong = "name = \"<b>new</b>\"\r\ngame = \"chess\"\r\n";
    let refused = send(&hash, wrong, "");
    assert_eq!(refused.status, 400, "{}", refused.body);
    let page_text = text(&refused.body);
    assert!(page_text.contains("Line 2: game = "), "{page_text}");
    assert!(page_text.contains("game = \"chess\""), "the form keeps the text: {page_text}");
    assert!(!refused.body.contains("<b>new"), "{}", refused.body);
    let file = "name = \"new\"\ngame = \"wojna\"\n";
    assert_eq!(send("", file, "").status, 403);
    let twice = send(&hash, "", "name = \"cup\"\ngame = \"wojna\"\n");
    assert_eq!(twice.status, 409, "{}", twice.body);
    let created = send(&hash, wrong, file);
    assert_eq!((created.status, &created.headers["location"][..]), (303, "/t/new?done=created"));
    assert!(browser.page("/t/new?done=created").contains("Tournament created."));
    assert_eq!(server.up.json("tournament show new")[0]["game"], "wojna");
    server.up.close();
}

#[test]
fn organisers_start_editions_and_suspend_withdraw_and_reinstate_bots() {
    let server = TestServer::open_with(
        "rerun = \"manual\"\n[submissions]\nstand_down_percent = 50\nstand_down_after = 4\n",
    );
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.admin());
    let hash = csrf(&browser.page("/"));
    let post = |path: &str, more: &str| {
        let response = browser.post(path, &format!("csrf={hash}{more}"), &[]);
        (response.status, response.headers.get("location").cloned().unwrap_or_default())
    };
    let state = || server.up.newest("cup");
    assert_eq!(post("/t/cup/start", "&fresh=yes"), (303, "/t/cup/organise?done=fresh".to_owned()));
    // The queue page works while the edition is running.
    wait_until("the edition is complete", || {
        assert!(browser.get("/queue").status == 200);
        state()["state"] == "complete"
    });
    let machines = rows(&browser.page("/queue"), "workers");
    assert_eq!((machines.len(), &machines[0][2][..]), (1, "1"), "one slot: {machines:?}");
    assert_ne!(machines[0][1], "not connected", "idle, or what it plays");
    let page = text(&browser.page("/t/cup/bots/ada"));
    assert!(page.contains("Reply times") && page.contains("90th percentile"), "{page}");
    let eve = browser.page("/t/cup/bots/eve");
    let forfeits = rows(&eve, "forfeits");
    assert_eq!(forfeits.len(), 4, "{forfeits:?}");
    assert!(forfeits.iter().all(|row| row[2] == "gone" && !row[3].is_empty()), "{forfeits:?}");
    assert!(!server.browser.page("/t/cup/bots/eve").contains("class=\"forfeits\""));

    // The limit is half of the matches, and eve forfeited all.
    wait_until("eve is suspended", || server.up.json("bots cup")[2]["suspended"] == true);
    let page_text = text(&browser.page("/t/cup/bots/eve"));
    assert!(page_text.contains("it forfeited 4 of 4 matches in edition 1"), "{page_text}");
    let public = text(&server.browser.page("/t/cup/bots/eve"));
    assert!(public.contains("suspended") && !public.contains("it forfeited"), "{public}");
    let redirect = (303, "/t/cup/bots/eve?done=reinstate".to_owned());
    assert_eq!(post("/t/cup/bots/eve/reinstate", ""), redirect);
    assert!(browser.page(&redirect.1).contains("Bot reinstated"));
    assert_eq!(server.up.json("bots cup")[2]["suspended"], false);

    let withdraw = "/t/cup/bots/eve/withdraw";
    let redirect = (303, "/t/cup/bots/eve?done=withdraw".to_owned());
    assert_eq!(post(withdraw, "&sure=yes"), redirect);
    assert_eq!(post(withdraw, "&sure=yes").0, 409, "already withdrawn");
    assert_eq!(post("/t/cup/bots/ada/reinstate", "").0, 409, "not suspended");
    assert_eq!(post("/t/cup/bots/ada/versions/1/retry", "").0, 409, "it has no trial");
    let bots = server.up.json("bots cup");
    let withdrawn: Vec<_> = bots.iter().map(|bot| bot["withdrawn"].clone()).collect();
    assert_eq!(withdrawn, [Value::from(false), false.into(), true.into()]);
    assert_eq!(post("/t/cup/retry", ""), (303, "/t/cup/organise?done=retry&count=0".to_owned()));

    let schedule = browser.page("/t/cup/schedule?edition=1&bot=bob");
    let page_text = text(&schedule);
    assert!(page_text.contains("Verified: the schedule is as balanced as promised"), "{page_text}");
    assert_eq!(rows(&schedule, "schedule").len(), 4, "bob's matches");
    let counts = rows(&schedule, "counts");
    let expected = ["ada", "bob", "eve"].map(|bot| [bot, "4", "2", "2"]);
    assert_eq!(counts, expected, "matches, and times in each seat");
    assert_eq!(browser.get("/t/cup/schedule?edition=1&bot=nobody").status, 404);
    server.up.close();
}

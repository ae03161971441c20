//! What organisers do in a browser comes to the same as what they do by commands; and nobody else
//! can.

use std::fs;

use serde_json::{Value, json};

use crate::browser::{Part, csrf, rows, text};
use crate::support::service::wait_until;
use crate::{Home, shown};

/// Whatever changes something is refused to a form that did not come from a page of the session's,
/// whoever is logged in.
#[test]
fn forms_that_are_not_of_ones_own_pages_change_nothing() {
    let home = Home::open();
    home.up.play("cup");
    let mut browser = home.browser.clone();
    browser.log_in(&home.up.admin());
    let id = home.up.newest("cup")["id"].clone();
    let (retry, before) = (format!("/matches/{id}/0/retry"), home.up.tell("audit"));
    let actions = [
        "/t/cup/start",
        "/t/cup/cancel",
        "/t/cup/close",
        "/t/cup/retry",
        "/t/cup/void",
        "/t/cup/bots/ada/withdraw",
        "/t/cup/bots/ada/reinstate",
        "/t/cup/bots/ada/versions/1/retry",
        &retry,
        "/logout",
    ];
    let stranger = "0".repeat(64);
    for action in actions {
        let form = format!("sure=yes&reason=none&matches={id}%2F0&csrf={stranger}");
        assert_eq!(browser.post(action, &form, &[]).status, 403, "{action}");
    }
    for action in ["/new", "/t/cup/submit"] {
        let csrf = Part::text("csrf", &stranger);
        assert_eq!(browser.upload(action, &[csrf], &[]).status, 403, "{action}");
    }
    assert_eq!(home.up.tell("audit"), before);
    home.up.close();
}

#[test]
fn matches_are_void_after_a_preview_that_equals_the_commands() {
    let home = Home::open();
    home.up.play("cup");
    let mut browser = home.browser.clone();
    browser.log_in(&home.up.token("player --name ada"));
    assert_eq!(browser.get("/t/cup/void").status, 403, "a player is no organiser");
    assert!(!browser.page("/t/cup").contains("/t/cup/void"));
    browser.log_in(&home.up.admin());
    assert!(browser.page("/t/cup").contains("href=\"/t/cup/void\""));
    assert!(!browser.page("/t/cup/void").contains("What would come of it</h2>"));

    let id = home.up.newest("cup")["id"].clone();
    let (one, other) = (format!("{id}/0"), format!("{id}/3"));
    let told = &home.up.json(&format!("tournament void cup --match {one} --match {other}"))[0];
    let address = format!("/t/cup/void?worker=&from=&to=&matches={id}%2F0+{id}%2F3");
    let page = browser.page(&address);
    let read = text(&page);
    assert!(read.contains(&format!("{} matches would be void", told["matches"])), "{read}");
    let due = format!("Edition {} rests on {} of them", told["edition"], told["missing"]);
    assert!(read.contains(&due), "{read}");
    let found = rows(&page, "void");
    let places = told["places"].as_array().unwrap();
    assert_eq!(found.len(), places.len());
    for (row, place) in found.iter().zip(places) {
        let columns = ["rank", "rank_without"].map(|name| shown(&place[name]));
        assert_eq!(row[..2], columns);
        let score = |name: &str| shown(&place[name][0]);
        assert_eq!(row[3..], [shown(&place["bot"]), score("score"), score("score_without")]);
    }
    // A time that fits nothing, a name that is none.
    let page =
        browser.page("/t/cup/void?worker=&from=2001-09-09T01%3A46&to=2001-09-10T01%3A46&matches=");
    assert!(page.contains("There is nothing to declare void."), "{page}");
    for (query, why) in
        [("matches=seven", "seven"), ("from=noon", "noon"), ("worker=nobody", "nobody")]
    {
        let refused = browser.get(&format!("/t/cup/void?{query}"));
        assert!((400..500).contains(&refused.status) && refused.body.contains(why), "{query}");
    }

    let hash = csrf(&browser.page("/"));
    let form = format!("matches={id}%2F0+{id}%2F3&reason=a+clock&csrf=");
    assert_eq!(browser.post("/t/cup/void", &format!("{form}&sure=yes"), &[]).status, 403);
    assert_eq!(browser.post("/t/cup/void", &format!("{form}{hash}"), &[]).status, 400);
    let done = browser.post("/t/cup/void", &format!("{form}{hash}&sure=yes"), &[]);
    assert_eq!(done.status, 303, "{}", done.body);
    let page = text(&browser.page(&done.headers["location"]));
    assert!(page.contains("2 matches were declared void"), "{page}");
    let told = &home.up.json(&format!("tournament void cup --match {one} --match {other}"))[0];
    assert_eq!(told["matches"], 0, "they are void already");
    home.up.close();
}

/// Makes a tournament of wojna for five bots, each four of which sit at one table.
fn create_tables(home: &Home) {
    let miser = concat!(env!("CARGO_MANIFEST_DIR"), "/bots/wojna/miser/bot.pl");
    let house = ["b1", "b2", "b3", "b4", "b5"].map(|bot| {
        let folder = home.up.bots.path().join(bot);
        fs::create_dir(&folder).unwrap();
        fs::copy(miser, folder.join("bot.pl")).unwrap();
        let manifest = format!("name = \"{bot}\"\nrun = [\"perl\", \"bot.pl\"]\n");
        fs::write(folder.join("bot.toml"), manifest).unwrap();
        folder
    });
    home.up.create(&format!(
        "name = \"tables\"\ngame = \"wojna\"\n[params]\ndeals = 2\n[schedule]\n\
         kind = \"foursomes\"\n[house]\nbots = {house:?}\n"
    ));
}

#[test]
fn collusion_is_shown_to_organisers_as_the_command_prints_it() {
    let home = Home::open();
    create_tables(&home);
    let mut browser = home.browser.clone();
    browser.log_in(&home.up.token("player --name ada"));
    assert_eq!(browser.get("/t/tables/collusion").status, 403, "a player is no organiser");
    browser.log_in(&home.up.admin());
    assert_eq!(browser.get("/t/attic/collusion").status, 404);
    home.up.play("tables");
    assert!(browser.page("/t/tables").contains("href=\"/t/tables/collusion\""));
    let printed = home.up.json("tournament collusion tables");
    assert_eq!((&printed[0]["tables"], &printed[0]["tested"]), (&json!(5), &json!(20)));
    assert_eq!(printed[0]["flagged"], 0, "five tables show nothing");
    let page = browser.page("/t/tables/collusion");
    assert!(text(&page).contains("evidence for a look at the records, not proof"), "{page}");
    let found = rows(&page, "collusion");
    assert_eq!((found.len(), printed.len()), (20, 21));
    for (row, pair) in found.iter().zip(&printed[1..]) {
        let due = ["bot", "partner", "together"].map(|name| shown(&pair[name]));
        assert_eq!(row[..3], due);
    }
    home.up.play("cup");
    let page = browser.page("/t/cup/collusion");
    assert!(page.contains("cup is played by two at a table"), "{page}");
    home.up.close();
}

#[test]
fn tournaments_are_made_from_a_file_with_the_same_errors() {
    let home = Home::open();
    let mut browser = home.browser.clone();
    assert_eq!(browser.get("/new").status, 401);
    browser.log_in(&home.up.token("player --name ada"));
    assert_eq!(browser.get("/new").status, 403);
    assert!(!browser.page("/").contains("href=\"/new\""));
    browser.log_in(&home.up.admin());
    assert!(browser.page("/").contains("href=\"/new\""));
    let hash = csrf(&browser.page("/new"));
    let send = |hash: &str, text: &str, file: &str| {
        let file = Part::file("file", "cup.toml", file.as_bytes());
        browser.upload("/new", &[Part::text("csrf", hash), Part::text("text", text), file], &[])
    };
    let wrong = "name = \"<b>new</b>\"\r\ngame = \"chess\"\r\n";
    let refused = send(&hash, wrong, "");
    assert_eq!(refused.status, 400, "{}", refused.body);
    let read = text(&refused.body);
    assert!(read.contains("line 1") || read.contains("line 2"), "{read}");
    assert!(read.contains("game = \"chess\""), "nothing is lost: {read}");
    assert!(!refused.body.contains("<b>new"), "{}", refused.body);
    let file = "name = \"new\"\ngame = \"wojna\"\n";
    assert_eq!(send("", file, "").status, 403);
    let twice = send(&hash, "", "name = \"cup\"\ngame = \"wojna\"\n");
    assert_eq!(twice.status, 409, "{}", twice.body);
    let made = send(&hash, wrong, file);
    assert_eq!((made.status, &made.headers["location"][..]), (303, "/t/new?done=made"));
    assert!(browser.page("/t/new?done=made").contains("The tournament is made."));
    assert_eq!(home.up.json("tournament show new")[0]["game"], "wojna");
    home.up.close();
}

#[test]
fn editions_start_and_bots_leave_and_come_back() {
    let home = Home::open_with(
        "rerun = \"manual\"\n[submissions]\nstand_down_percent = 50\nstand_down_after = 4\n",
    );
    let mut browser = home.browser.clone();
    browser.log_in(&home.up.admin());
    let hash = csrf(&browser.page("/"));
    let post = |path: &str, more: &str| {
        let answer = browser.post(path, &format!("csrf={hash}{more}"), &[]);
        (answer.status, answer.headers.get("location").cloned().unwrap_or_default())
    };
    let state = || home.up.newest("cup");
    assert_eq!(post("/t/cup/start", "&fresh=yes"), (303, "/t/cup?done=fresh".to_owned()));
    // What is played is seen while it is played, and by whom.
    wait_until("the edition is complete", || {
        assert!(browser.get("/queue").status == 200);
        state()["state"] == "complete"
    });
    let machines = rows(&browser.page("/queue"), "workers");
    assert_eq!((machines.len(), &machines[0][1][..]), (1, "1"), "one slot: {machines:?}");
    let page = text(&browser.page("/t/cup/bots/ada"));
    assert!(page.contains("Reply times") && page.contains("90 % within"), "{page}");
    let eve = browser.page("/t/cup/bots/eve");
    let forfeits = rows(&eve, "forfeits");
    assert_eq!(forfeits.len(), 4, "{forfeits:?}");
    assert!(forfeits.iter().all(|row| row[2] == "gone" && !row[3].is_empty()), "{forfeits:?}");
    assert!(!home.browser.page("/t/cup/bots/eve").contains("class=\"forfeits\""));

    // Half of all is too much, and it forfeited all.
    wait_until("eve is stood down", || home.up.json("bots cup")[2]["stood_down"] == true);
    let told = text(&browser.page("/t/cup/bots/eve"));
    assert!(told.contains("it forfeited 4 of 4 matches in edition 1"), "{told}");
    let public = text(&home.browser.page("/t/cup/bots/eve"));
    assert!(public.contains("stood down") && !public.contains("it forfeited"), "{public}");
    let there = (303, "/t/cup/bots/eve?done=reinstate".to_owned());
    assert_eq!(post("/t/cup/bots/eve/reinstate", ""), there);
    assert!(browser.page(&there.1).contains("The bot was reinstated"));
    assert_eq!(home.up.json("bots cup")[2]["stood_down"], false);

    let withdraw = "/t/cup/bots/eve/withdraw";
    let there = (303, "/t/cup/bots/eve?done=withdraw".to_owned());
    assert_eq!(post(withdraw, "&sure=yes"), there);
    assert_eq!(post(withdraw, "&sure=yes").0, 409, "once is enough");
    assert_eq!(post("/t/cup/bots/ada/reinstate", "").0, 409, "it is not stood down");
    assert_eq!(post("/t/cup/bots/ada/versions/1/retry", "").0, 409, "it had no trial");
    let bots = home.up.json("bots cup");
    let withdrawn: Vec<_> = bots.iter().map(|bot| bot["withdrawn"].clone()).collect();
    assert_eq!(withdrawn, [Value::from(false), false.into(), true.into()]);
    assert_eq!(post("/t/cup/retry", ""), (303, "/t/cup?done=retry&count=0".to_owned()));

    let schedule = browser.page("/t/cup/schedule?edition=1&bot=bob");
    let read = text(&schedule);
    assert!(read.contains("Proved: all as promised"), "{read}");
    assert_eq!(rows(&schedule, "schedule").len(), 4, "bob's matches");
    let counts = rows(&schedule, "counts");
    let due = ["ada", "bob", "eve"].map(|bot| [bot, "4", "2", "2"]);
    assert_eq!(counts, due, "matches, and times in each seat");
    assert_eq!(browser.get("/t/cup/schedule?edition=1&bot=nobody").status, 404);
    home.up.close();
}

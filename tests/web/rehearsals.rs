//! Rehearsals of tournaments, by command and in a browser.

use serde_json::{Value, json};

use crate::TestServer;
use crate::browser::{csrf, text};
use crate::support::service::{done, wait_until};
use crate::support::up::Up;

fn shown(up: &Up, name: &str) -> Value {
    up.json(&format!("tournament show {name}")).remove(0)
}

/// Runs a command that must fail, and returns its message.
fn failure(up: &Up, words: &str) -> String {
    let output = up.command(words).output().unwrap();
    assert!(!output.status.success(), "{words}");
    String::from_utf8(output.stderr).unwrap()
}

/// The names of the bots of a tournament.
fn bots(up: &Up, name: &str) -> Vec<Value> {
    up.json(&format!("bots {name}")).into_iter().map(|bot| bot["bot"].clone()).collect()
}

#[test]
fn a_rehearsal_is_another_tournament_that_is_never_official() {
    let server = TestServer::open();
    let up = &server.up;
    let started = up.succeed("tournament start cup --rehearse");
    assert!(started.starts_with("cup-rehearsal-1 rehearses cup: 6 matches; "), "{started}");
    up.wait_for("cup-rehearsal-1", 1);
    let rehearsal = shown(up, "cup-rehearsal-1");
    assert_eq!(rehearsal["rehearsal_of"], "cup");
    assert_eq!(rehearsal["title"], "Rehearsal of cup");
    assert_eq!(rehearsal["entry"]["open"], false);
    assert_eq!(rehearsal["editions"][0]["official"], false);
    let original = shown(up, "cup");
    assert_ne!(rehearsal["seed_hash"], original["seed_hash"]);
    for part in ["params", "schedule", "clock", "limits", "state", "ponder"] {
        assert_eq!(rehearsal["settings"][part], original["settings"][part], "{part}");
    }
    let closes = rehearsal["settings"]["submissions"]["closes"].as_str().unwrap();
    assert_eq!(closes.len(), "2027-03-01T12:00:00Z".len(), "in whole seconds: {closes}");
    let preview =
        up.succeed("tournament edit cup-rehearsal-1 --set closes=2099-01-01T00:00:00Z --dry-run");
    assert!(preview.contains("no bot can enter or leave a rehearsal"), "{preview}");
    assert!(!preview.contains("opens again"), "{preview}");
    let ranking = up.succeed("ranking cup-rehearsal-1");
    assert!(ranking.starts_with("edition 1, unofficial rehearsal: 6 of 6"), "{ranking}");
    assert!(up.succeed("tournament list").contains("open, rehearsal of cup"));
    let text_of_show = up.succeed("tournament show cup-rehearsal-1");
    assert!(text_of_show.contains("rehearsal of cup: its leaderboard is never official"));
    assert!(up.succeed("tournament show cup").contains("rehearsals: cup-rehearsal-1\n"));

    // The tournament is as before, and its editions are official.
    assert_eq!(original["editions"], json!([]));
    assert_eq!(original["rehearsals"], json!(["cup-rehearsal-1"]));
    up.play("cup");
    assert_eq!(shown(up, "cup")["editions"][0]["official"], true);
    let started = up.succeed("tournament start cup --rehearse");
    assert!(started.starts_with("cup-rehearsal-2 rehearses cup"), "{started}");
    let error = failure(up, "tournament start cup-rehearsal-1 --rehearse");
    assert!(error.contains("cup-rehearsal-1 is a rehearsal; rehearse cup again"), "{error}");
    let audit = up.json("audit");
    let change = audit.iter().find(|line| line["action"] == "tournament rehearse").unwrap();
    assert_eq!(change["subject"], "cup");
    assert!(change["detail"]["after"]["rehearsal"].as_str().unwrap().starts_with("cup-rehearsal-"));

    let api = |path: &str| -> Value {
        serde_json::from_str(&server.browser.get(&format!("/api/v1/tournaments{path}")).body)
            .unwrap()
    };
    assert_eq!(api("/cup-rehearsal-1")["rehearsal_of"], "cup");
    assert_eq!(api("/cup-rehearsal-1")["official"], Value::Null);
    assert_eq!(api("/cup")["rehearsals"], json!(["cup-rehearsal-2", "cup-rehearsal-1"]));
    assert_eq!(api("/cup-rehearsal-1/ranking")["official"], false);

    // A rehearsal is dropped like any tournament, and it outlives its original.
    up.wait_for("cup-rehearsal-2", 1);
    up.succeed("tournament close cup-rehearsal-2");
    up.succeed("tournament drop cup-rehearsal-2 --yes");
    assert_eq!(shown(up, "cup")["rehearsals"], json!(["cup-rehearsal-1"]));
    up.succeed("tournament cancel cup");
    up.succeed("tournament drop cup --yes");
    assert_eq!(shown(up, "cup-rehearsal-1")["rehearsal_of"], "cup");
    let page = server.browser.page("/t/cup-rehearsal-1");
    assert!(page.contains("Rehearsal of cup</strong>"), "{page}");
    assert!(!page.contains("href=\"/t/cup\""), "its original is gone: {page}");
    server.up.close();
}

#[test]
fn a_rehearsal_plays_with_copies_and_changes_no_bot_of_its_tournament() {
    let server =
        TestServer::open_with("[submissions]\nstand_down_percent = 50\nstand_down_after = 4\n");
    let up = &server.up;
    let player = up.token("player --name ada");
    let bot = up.bots.built_rascal("tried", "honest", 0, "");
    let submit = |tournament: &str| {
        let mut command = up.command(&format!("submit {tournament}"));
        command.arg(&bot).env("ARBITER_TOKEN", &player).output().unwrap()
    };
    done(&submit("cup"));
    up.succeed("tournament start cup --rehearse");
    up.wait_for("cup-rehearsal-1", 1);

    // The copies have the owners, the versions and the trials of the bots.
    assert_eq!(bots(up, "cup-rehearsal-1"), ["ada", "bob", "eve", "ada/tried"]);
    let copy = |tournament: &str| {
        let bots = up.json(&format!("bots {tournament}"));
        let bot = bots.into_iter().find(|bot| bot["bot"] == "ada/tried").unwrap();
        (bot["owner"].clone(), bot["version"].clone(), bot["digest"].clone())
    };
    assert_eq!(copy("cup-rehearsal-1"), copy("cup"));

    // The owner's page leaves the copy out.
    let mut owner = server.browser.clone();
    owner.log_in(&player);
    let page = owner.page("/me");
    assert!(page.contains("href=\"/t/cup/bots/ada/tried\""), "{page}");
    assert!(page.contains("Names of new bots begin with <code>ada/</code>"), "{page}");
    assert!(!page.contains("cup-rehearsal-1"), "{page}");

    // A forfeit in a rehearsal suspends the copy, opens no edition, and leaves the bot alone.
    let suspended = |tournament: &str| {
        let bots = up.json(&format!("bots {tournament}"));
        bots.into_iter().find(|bot| bot["bot"] == "eve").unwrap()["suspended"].clone()
    };
    wait_until("the copy is suspended", || suspended("cup-rehearsal-1") == true);
    assert_eq!(suspended("cup"), false);
    assert_eq!(shown(up, "cup-rehearsal-1")["editions"].as_array().unwrap().len(), 1);

    // No bot can enter or leave, and the refusal says where.
    let refused = String::from_utf8(submit("cup-rehearsal-1").stderr).unwrap();
    assert!(refused.contains("cup-rehearsal-1 is a rehearsal of cup"), "{refused}");
    assert!(refused.contains("submit to cup"), "{refused}");
    let house = up.command("submit cup-rehearsal-1 --house").arg(&bot).output().unwrap();
    assert!(String::from_utf8(house.stderr).unwrap().contains("submit to cup"));
    let error = failure(up, "bots cup-rehearsal-1 --withdraw tried");
    assert!(error.contains("no bot can enter or leave it"), "{error}");
    up.succeed("tournament edit cup-rehearsal-1 --set closes= rerun=every_submission");
    assert!(String::from_utf8(submit("cup-rehearsal-1").stderr).unwrap().contains("submit to cup"));

    // Bots that would not play are not copied.
    up.succeed("bots cup --withdraw bob");
    up.play("cup");
    wait_until("eve is suspended", || suspended("cup") == true);
    up.succeed("tournament start cup --rehearse");
    assert_eq!(bots(up, "cup-rehearsal-2"), ["ada", "ada/tried"]);
    up.succeed("bots cup --withdraw tried");
    let error = failure(up, "tournament start cup --rehearse");
    assert!(
        error.contains("a rehearsal of cup needs at least 2 bots, and 1 has entered"),
        "{error}"
    );
    assert_eq!(shown(up, "cup")["rehearsals"].as_array().unwrap().len(), 2, "nothing is left over");
    server.up.close();
}

#[test]
fn the_public_sees_of_a_rehearsal_what_it_sees_of_the_tournament() {
    let server = TestServer::open_with(
        "[public]\nreplays = \"after_close\"\n[submissions]\nfreeze = \"2020-01-01T00:00:00Z\"\n",
    );
    let up = &server.up;
    let public = &server.browser;
    up.succeed("tournament start cup --rehearse");
    up.wait_for("cup-rehearsal-1", 1);
    let front = "/t/cup-rehearsal-1/ranking";
    let record = "/api/v1/tournaments/cup-rehearsal-1/matches/0/record";
    let is_hidden = || public.get(front).status == 403 && public.get(record).status == 401;
    assert!(is_hidden(), "{}", public.get(front).status);
    up.succeed("tournament close cup-rehearsal-1");
    assert!(is_hidden(), "the end of the rehearsal shows nothing");
    assert!(public.page("/t/cup-rehearsal-1").contains("Leaderboards are frozen"));
    up.succeed("tournament edit cup --set freeze=");
    assert_eq!(public.get(front).status, 200);
    assert_eq!(public.get(record).status, 401, "the tournament is still open");
    up.succeed("tournament cancel cup");
    assert_eq!(public.get(record).status, 200);
    server.up.close();
}

#[test]
fn organisers_start_a_rehearsal_on_a_page_that_shows_what_it_plays() {
    let server = TestServer::open_with("title = \"Spring Cup\"\n");
    let mut browser = server.browser.clone();
    assert_eq!(browser.get("/t/cup/rehearse").status, 401);
    browser.log_in(&server.up.token("player"));
    assert_eq!(browser.get("/t/cup/rehearse").status, 403);
    browser.log_in(&server.up.admin());
    assert!(browser.page("/t/cup/organise").contains("href=\"/t/cup/rehearse\""));
    let page = browser.page("/t/cup/rehearse");
    assert!(text(&page).contains("It would play 6 matches of 3 bots"), "{page}");
    let form = format!("csrf={}", csrf(&page));
    let started = browser.post("/t/cup/rehearse", &form, &[]);
    assert_eq!(started.status, 303, "{}", started.body);
    let address = "/t/cup-rehearsal-1?done=rehearse";
    assert_eq!(started.headers["location"], address);
    assert!(browser.page(address).contains("Rehearsal started"));
    server.up.wait_for("cup-rehearsal-1", 1);

    // Every page says what it is.
    let public = &server.browser;
    for path in ["", "/ranking", "/matches", "/bots", "/about", "/matrix"] {
        let page = public.page(&format!("/t/cup-rehearsal-1{path}"));
        assert!(page.contains("Rehearsal of <a href=\"/t/cup\">cup</a>"), "{path}: {page}");
        assert!(page.contains("its leaderboard is never official"), "{path}: {page}");
        assert!(!page.contains("Official leaderboard"), "{path}: {page}");
    }
    let front = text(&public.page("/t/cup-rehearsal-1"));
    assert!(front.contains("No bot can enter or leave it"), "{front}");
    assert!(!browser.page("/t/cup-rehearsal-1/organise").contains("/rehearse\""));
    assert!(public.page("/t/cup/about").contains("<a href=\"/t/cup-rehearsal-1\">"));
    let home = public.page("/");
    assert!(home.contains("Rehearsal of cup: its leaderboard is never official"), "{home}");
    assert!(home.contains("Leader of the rehearsal: "), "{home}");
    assert!(!home.contains("Newest results"), "a rehearsal is no result: {home}");
    let place = |name: &str| home.find(&format!("href=\"/t/{name}\"")).unwrap();
    assert!(place("cup") < place("cup-rehearsal-1"), "rehearsals are last: {home}");
    server.up.succeed("tournament close cup-rehearsal-1");
    wait_until("the rehearsal is over", || {
        !public.page("/").contains("href=\"/t/cup-rehearsal-1\"")
    });
    server.up.close();
}

/// The text of a page.
fn page(server: &TestServer, path: &str) -> String {
    text(&server.browser.page(path))
}

#[test]
fn results_of_a_rehearsal_are_called_unofficial() {
    let server = TestServer::open();
    let up = &server.up;
    up.succeed("tournament start cup --rehearse");
    up.wait_for("cup-rehearsal-1", 1);
    let status = "edition 1, unofficial rehearsal";
    let of_bot = "Edition1, unofficial rehearsal";
    for (path, words) in
        [("matrix", status), ("statistics", status), ("matches", status), ("bots/ada", of_bot)]
    {
        let page = page(&server, &format!("/t/cup-rehearsal-1/{path}"));
        assert!(page.contains(words), "{path}: {page}");
    }
    let home = page(&server, "/");
    assert!(home.contains(status), "{home}");
    for path in ["", "/ranking", "/projector"] {
        let page = page(&server, &format!("/t/cup-rehearsal-1{path}"));
        assert!(page.contains("Unofficial rehearsal leaderboard (edition 1)"), "{path}: {page}");
    }
    for option in ["", " --stats", " --bot ada"] {
        let output = up.succeed(&format!("ranking cup-rehearsal-1{option}"));
        assert!(output.contains(status), "{option}: {output}");
    }
    let about = page(&server, "/t/cup-rehearsal-1/about");
    assert!(about.contains("Those of a rehearsal are never official."), "{about}");
    server.up.close();
}

#[test]
fn a_running_rehearsal_promises_no_official_leaderboard() {
    let server = TestServer::open();
    let up = &server.up;
    // A match of this tournament never ends.
    let bots =
        ["honest", "silent"].map(|mode| up.bots.built_rascal(&format!("x-{mode}"), mode, 1, ""));
    up.create(&format!(
        "name = \"endless\"\ngame = \"gomoku\"\n[params]\nmove_limit = \"10h\"\n\
         [house]\nbots = {bots:?}\n"
    ));
    up.succeed("tournament start endless --rehearse");
    let front = page(&server, "/t/endless-rehearsal-1");
    assert!(front.contains("It is never official, because this is a rehearsal."), "{front}");
    assert!(!front.contains("becomes official"), "{front}");
    assert!(!front.contains("rovisional"), "{front}");
    let output = up.succeed("ranking endless-rehearsal-1");
    assert!(output.starts_with("edition 1, unofficial rehearsal: "), "{output}");
    up.succeed("tournament cancel endless-rehearsal-1");
    let page = page(&server, "/t/endless-rehearsal-1/ranking?edition=1");
    assert!(page.contains("Cancelled leaderboard (edition 1)"), "{page}");
    server.up.close();
}

#[test]
fn rounds_and_stages_are_rehearsed_to_their_end() {
    let server = TestServer::open();
    let up = &server.up;
    let house = ["v", "w", "x", "y"].map(|name| up.bots.built_rascal(name, "honest", 0, ""));
    up.create(&format!(
        "name = \"stages\"\ngame = \"gomoku\"\nseed = \"s\"\n\
         [[stage]]\nkind = \"round_robin\"\nadvance = 2\n\
         [[stage]]\nkind = \"knockout\"\nbest_of = 2\n[house]\nbots = {house:?}\n"
    ));
    let started = up.succeed("tournament start stages --rehearse");
    assert!(started.contains("12 matches, and more that depend on results"), "{started}");
    up.wait_for("stages-rehearsal-1", 1);
    assert_eq!(up.json("ranking stages-rehearsal-1").len(), 4);
    assert!(up.succeed("tournament check stages-rehearsal-1").contains("recounted"));
    up.play("stages");
    assert_eq!(shown(up, "stages")["editions"][0]["official"], true);
    server.up.close();
}

//! How pages and commands say that a tournament is over, that entry has closed or that leaderboards
//! are frozen, and what they still offer.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::TestServer;
use crate::browser::{rows, text};
use crate::support::service::{done, wait_until};
use crate::support::up::Up;

/// When a tournament ended: as commands say it, and as pages say it.
fn end(up: &Up, tournament: &str) -> (String, String) {
    let shown = up.json(&format!("tournament show {tournament}"));
    let ended = shown[0]["ended_at"].as_str().unwrap().replace('T', " ");
    (format!("{} UTC", &ended[..19]), format!("{} UTC", &ended[..16]))
}

#[test]
fn a_closed_tournament_says_when_it_was_closed() {
    let server = TestServer::open_with("rerun = \"manual\"\n");
    let up = &server.up;
    up.play("cup");
    assert!(up.json("tournament show cup")[0]["ended_at"].is_null(), "it is open");
    up.succeed("tournament close cup");
    let (exact, minute) = end(up, "cup");
    let page = text(&server.browser.page("/t/cup"));
    let expected = format!("The tournament is over. It was closed on {minute}.");
    assert!(page.contains(&expected), "{page}");
    assert!(page.contains("Official leaderboard (edition 1)"), "{page}");
    let shown = up.succeed("tournament show cup");
    assert!(shown.contains(&format!("cup is over: it was closed at {exact}; ")), "{shown}");
    let bot = up.bots.built_rascal("late", "honest", 0, "");
    let output = up.command("submit cup").arg(&bot).output().unwrap();
    let refused = String::from_utf8(output.stderr).unwrap();
    assert!(refused.contains(&format!("it was closed at {exact}")), "{refused}");
    let api = server.browser.page("/api/v1/tournaments/cup");
    assert!(api.contains(&format!("\"ended_at\":\"{}", exact[..19].replace(' ', "T"))), "{api}");
    server.up.close();
}

#[test]
fn every_page_and_command_of_a_cancelled_tournament_says_so() {
    let server = TestServer::open_with("rerun = \"manual\"\n");
    let up = &server.up;
    let browser = &server.browser;
    up.play("cup");
    let tabs = ["", "/ranking", "/matches", "/bots", "/matrix", "/statistics", "/how-to-play"];
    let others = ["/about", "/submit", "/bots/ada", "/matches/0"];
    let paths: Vec<_> = tabs.iter().chain(&others).map(|path| format!("/t/cup{path}")).collect();
    let notice = "This tournament was cancelled";
    for path in &paths {
        assert!(!text(&browser.get(path).body).contains(notice), "{path}: it is open");
    }
    up.succeed("tournament cancel cup");
    let (exact, minute) = end(up, "cup");
    let banner = format!("{notice} on {minute}. It has no official leaderboard.");
    for path in &paths {
        let page = text(&browser.get(path).body);
        assert!(page.contains(&banner), "{path}: {page}");
    }
    for path in ["/t/cup", "/t/cup/ranking", "/t/cup/projector"] {
        let page = text(&browser.page(path));
        assert!(page.contains("Formerly official leaderboard (edition 1)"), "{path}: {page}");
        assert!(!page.contains("Official leaderboard"), "{path}: {page}");
    }
    let board = text(&browser.page("/t/cup/projector"));
    assert!(board.contains("The tournament was cancelled at "), "{board}");
    let home = text(&browser.page("/"));
    assert!(home.contains("edition 1, formerly official"), "{home}");
    assert!(!home.contains(" leads "), "a cancelled tournament has no newest result: {home}");
    for command in ["ranking cup", "tournament watch cup"] {
        let output = up.succeed(command);
        let expected = format!("; the tournament was cancelled at {exact}");
        assert!(output.contains(&expected), "{command}: {output}");
        assert!(!output.contains(", official"), "{command}: {output}");
    }
    for command in ["ranking cup", "ranking cup --stats", "ranking cup --bot ada"] {
        let output = up.succeed(command);
        assert!(output.contains("edition 1, formerly official"), "{command}: {output}");
    }
    let shown = up.succeed("tournament show cup");
    assert!(shown.contains(&format!("cup is over: it was cancelled at {exact}; ")), "{shown}");
    assert!(!shown.contains(", official"), "{shown}");
    server.up.close();
}

/// A time that is near, as in a tournament file.
fn soon() -> String {
    let at = OffsetDateTime::now_utc() + time::Duration::seconds(5);
    at.replace_nanosecond(0).unwrap().format(&Rfc3339).unwrap()
}

/// Sets a time of `cup` to one that is near. On a slow machine it may have passed when it is sent,
/// and is refused.
fn set_soon(up: &Up, key: &str) {
    wait_until("a near time is set", || {
        let words = format!("tournament edit cup --set {key}={}", soon());
        up.command(&words).output().unwrap().status.success()
    });
}

/// Sets the end of entry of `cup` to a time that is near, and waits until entry has closed.
fn close_entry(up: &Up) {
    set_soon(up, "closes");
    let is_closed = || up.json("tournament show cup")[0]["entry"]["open"] == false;
    wait_until("entry has closed", is_closed);
}

#[test]
fn pages_offer_nothing_that_is_refused_since_entry_has_closed() {
    let server = TestServer::open_with("rerun = \"manual\"\nsubmissions.preflight = false\n");
    let up = &server.up;
    let token = up.token("player --name ada");
    let engine = up.bots.built_rascal("engine", "honest", 0, "");
    let mut submit = up.command("submit cup");
    done(&submit.arg(&engine).env("ARBITER_TOKEN", &token).output().unwrap());
    let mut owner = server.browser.clone();
    owner.log_in(&token);
    let mut organiser = server.browser.clone();
    organiser.log_in(&up.admin());
    let submitted = ["/t/cup/bots/ada/engine", "/t/cup/bots/ada/engine/versions/1"];
    for path in submitted {
        let page = owner.page(path);
        assert!(page.contains("Submit a new version") && page.contains("Withdraw bot"), "{page}");
    }

    close_entry(up);
    let list = up.succeed("tournament list");
    assert!(list.contains("open, entry closed"), "{list}");
    for path in submitted {
        let page = owner.page(path);
        assert!(!page.contains("Submit a new version") && !page.contains("Withdraw bot"), "{page}");
        assert!(page.contains("Owners can no longer enter, change or withdraw bots."), "{page}");
        let page_of_organiser = organiser.page(path);
        assert!(page_of_organiser.contains("Withdraw bot"), "organisers still can");
        assert!(!page_of_organiser.contains("Submit a new version"), "{page_of_organiser}");
    }
    let log_in = "with the token from your organiser to submit a bot";
    let file = "type=\"file\"";
    for browser in [&server.browser, &owner, &organiser] {
        let page = browser.get("/t/cup/submit").body;
        assert!(page.contains("Entry closed "), "{page}");
        for offer in ["enters the tournament at once", "An owner may submit", log_in, file] {
            assert!(!page.contains(offer), "{offer}: {page}");
        }
    }
    assert!(text(&organiser.page("/t/cup/submit")).contains("arbiter submit cup PATH --house"));

    up.succeed("tournament cancel cup");
    for path in submitted {
        assert!(!organiser.page(path).contains("Withdraw bot"), "{path}");
    }
    let over = server.browser.get("/t/cup/submit").body;
    assert!(over.contains("The tournament is over.") && !over.contains(log_in), "{over}");
    assert!(!organiser.page("/t/cup/submit").contains("--house"));
    server.up.close();
}

#[test]
fn owners_see_which_results_a_freeze_hides() {
    let server = TestServer::open_with("rerun = \"manual\"\nsubmissions.preflight = false\n");
    let up = &server.up;
    let token = up.token("player --name ada");
    let as_owner = |words: &str| {
        let output = up.command(words).env("ARBITER_TOKEN", &token).output().unwrap();
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        (done(&output), notes)
    };
    let engine = up.bots.built_rascal("engine", "honest", 0, "");
    as_owner(&format!("submit cup {engine}"));
    let mut owner = server.browser.clone();
    owner.log_in(&token);
    up.play("cup");
    let is_ranked = |page: &str, label: &str| rows(page, "own-bots")[0][2].ends_with(label);
    let page = owner.page("/me");
    assert!(is_ranked(&page, " (edition 1, official)"), "{page}");
    assert!(!text(&page).contains("frozen"), "{page}");

    set_soon(up, "freeze");
    wait_until("it is frozen", || up.json("tournament show cup")[0]["frozen"].is_string());
    let later = up.bots.built_rascal("later", "honest", 0, "");
    up.succeed(&format!("submit cup {later} --house"));
    up.play("cup");
    let frozen = "eaderboards are frozen since ";
    let page = owner.page("/me");
    assert!(is_ranked(&page, " (edition 1, official, frozen)"), "{page}");
    assert!(text(&page).contains(frozen), "{page}");
    let (log, notes) = as_owner("log cup engine");
    assert!(log.contains(" hidden ") && notes.contains(frozen), "{log}{notes}");
    let hidden = log.lines().find(|line| line.contains(" hidden ")).unwrap();
    let id = hidden.split_whitespace().next().unwrap();
    let (shown, _) = as_owner(&format!("match {id}"));
    assert!(shown.contains(" hidden ") && shown.contains(frozen), "{shown}");
    let (list, _) = as_owner("tournament list");
    assert!(list.contains("open, frozen"), "{list}");

    up.succeed("tournament close cup");
    for words in ["log cup engine".to_owned(), format!("match {id}")] {
        let (printed, notes) = as_owner(&words);
        assert!(!printed.contains("hidden") && !notes.contains("frozen"), "{printed}{notes}");
    }
    assert!(!text(&owner.page("/me")).contains("frozen"));
    server.up.close();
}

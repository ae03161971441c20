//! Who sees replays: `[public] replays` of the tournament file.

use crate::TestServer;
use crate::browser::{Browser, text};
use crate::support::up::Up;

/// The statuses of the replay's steps and of the record, for this browser.
fn statuses(browser: &Browser) -> [u16; 2] {
    ["steps", "record"].map(|part| browser.get(&format!("/t/cup/matches/0/{part}")).status)
}

#[test]
fn everyone_sees_the_replays_of_a_new_tournament() {
    let server = TestServer::open();
    server.up.play("cup");
    assert_eq!(statuses(&server.browser), [200, 200]);
    let page = server.browser.page("/t/cup/matches/0");
    assert!(page.contains("href=\"?step=1#replay\""), "{page}");
    for path in ["/t/cup/matches/0", "/t/cup/matches/0/embed"] {
        for (step, shown) in [("-1", 0), ("abc", 0), ("", 0), ("1", 1)] {
            let page = server.browser.page(&format!("{path}?step={step}"));
            let article = format!("<article class=\"step\" data-step=\"{shown}\">");
            assert!(page.contains(&article), "{step}: {page}");
        }
        let beyond = server.browser.page(&format!("{path}?step=99999999999999999999999"));
        assert!(beyond.contains("There is no step ") && beyond.contains("data-score"), "{beyond}");
    }
    let mut player = server.browser.clone();
    player.log_in(&server.up.token("player"));
    assert_eq!(statuses(&player), [200, 200], "no bot of this player is in the match");
    let mut command = server.up.command("match cup/0 --record -");
    let output = command.env_remove("ARBITER_TOKEN").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"over\":true"));
    server.up.close();
}

#[test]
fn what_an_organiser_has_seen_stays_hidden_from_others() {
    let up = Up::start(1);
    let loud = up.bots.built_rascal("loud", "stderr", 1, "stderr = true\n");
    let bots = [loud, up.bots.built_rascal("quiet", "honest", 0, "")];
    up.create(&format!(
        "name = \"cup\"\ngame = \"gomoku\"\n[params]\nmove_limit = \"10h\"\n\
         [house]\nbots = {bots:?}\n"
    ));
    up.play("cup");
    let stranger = Browser::new(up.http);
    let mut organiser = stranger.clone();
    organiser.log_in(&up.admin());
    let sees_it = |browser: &Browser| {
        text(&browser.page("/t/cup/matches/0")).contains("Standard error of loud")
    };
    assert!(sees_it(&organiser));
    assert!(!sees_it(&stranger), "the replay is cached for the organiser");
    assert!(sees_it(&organiser));
    up.close();
}

#[test]
fn replays_on_other_sites_name_the_tournament_by_its_title() {
    let server = TestServer::open_with("title = \"Spring Cup\"\n");
    let missing = text(&server.browser.get("/t/cup/matches/0/embed").body);
    assert!(missing.contains("Match 0 of Spring Cup"), "{missing}");
    server.up.play("cup");
    let frame = text(&server.browser.page("/t/cup/matches/0/embed"));
    assert!(frame.contains(": match 0 of Spring Cup"), "{frame}");
    let page = text(&server.browser.page("/t/cup/matches/0"));
    assert!(page.contains("title=\"Match 0 of Spring Cup\""), "{page}");
    let unknown = text(&server.browser.get("/t/none/matches/0/embed").body);
    assert!(unknown.contains("Match 0 of none"), "{unknown}");
    server.up.close();
}

#[test]
fn replays_after_the_close_appear_with_it() {
    let server = TestServer::open_with("rerun = \"manual\"\n[public]\nreplays = \"after_close\"\n");
    server.up.play("cup");
    assert_eq!(statuses(&server.browser), [401, 401]);
    let shown_later = "replays are shown when the tournament is over";
    let page = text(&server.browser.page("/t/cup/matches/0"));
    let to_players = format!("{shown_later}; players see those of their own bots after login.");
    assert!(page.contains(&to_players), "{page}");
    let projector = text(&server.browser.page("/t/cup/projector"));
    assert!(projector.contains("Replays are shown when the tournament is over."), "{projector}");
    let mut player = server.browser.clone();
    player.log_in(&server.up.token("player"));
    let page = text(&player.page("/t/cup/matches/0"));
    let to_player = format!("{shown_later}, and none of your bots plays in match cup/0.");
    assert!(page.contains(&to_player), "{page}");
    server.up.succeed("tournament close cup");
    assert_eq!(statuses(&server.browser), [200, 200]);
    server.up.close();
}

#[test]
fn a_tournament_that_never_shows_replays_sends_no_spectator_to_the_login() {
    let server = TestServer::open_with("rerun = \"manual\"\n[public]\nreplays = \"never\"\n");
    server.up.play("cup");
    for is_over in [false, true] {
        if is_over {
            server.up.succeed("tournament close cup");
        }
        let page = text(&server.browser.page("/t/cup/matches/0"));
        let frame = text(&server.browser.get("/t/cup/matches/0/embed").body);
        let mut command = server.up.command("match cup/0 --record -");
        let output = command.env_remove("ARBITER_TOKEN").output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        for refusal in [page, frame, printed] {
            assert!(
                refusal.contains("this tournament does not show replays; players"),
                "{refusal}"
            );
            for wrong in ["needs a token", "to see it"] {
                assert!(!refusal.contains(wrong), "{wrong}: {refusal}");
            }
        }
        let projector = text(&server.browser.page("/t/cup/projector"));
        assert!(projector.contains("This tournament does not show replays."), "{projector}");
    }
    server.up.close();
}

#[test]
fn a_freeze_hides_replays_until_it_ends() {
    let server = TestServer::open_with(
        "rerun = \"manual\"\nsubmissions.freeze = \"2020-01-01T00:00:00Z\"\n",
    );
    server.up.play("cup");
    assert_eq!(statuses(&server.browser), [403, 403]);
    let page = server.browser.page("/t/cup/matches/0");
    assert!(page.contains("the leaderboards of cup are frozen since"), "{page}");
    assert!(!page.contains("if one of the bots is yours"), "only organisers see it: {page}");
    let mut organiser = server.browser.clone();
    organiser.log_in(&server.up.admin());
    assert_eq!(statuses(&organiser), [200, 200]);
    let frozen = "frozen since 2020-01-01 00:00:00 UTC until the tournament is over";
    for command in ["ranking cup", "tournament show cup", "tournament watch cup"] {
        let printed = server.up.succeed(command);
        assert!(printed.contains(frozen), "{command}: {printed}");
    }
    server.up.succeed("tournament close cup");
    assert_eq!(statuses(&server.browser), [200, 200]);
    assert!(!server.up.succeed("tournament show cup").contains("frozen since"));
    server.up.close();
}

//! How pages and commands say that a tournament is over, and what they still offer.

use crate::TestServer;
use crate::browser::text;
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
    let bot = up.bots.rascal("late", "honest", 0, "");
    let output = up.command("submit cup").arg(&bot).output().unwrap();
    let refused = String::from_utf8(output.stderr).unwrap();
    assert!(refused.contains(&format!("it was closed at {exact}")), "{refused}");
    let api = server.browser.page("/api/v1/tournaments/cup");
    assert!(api.contains(&format!("\"ended_at\":\"{}", exact[..19].replace(' ', "T"))), "{api}");
    server.up.close();
}

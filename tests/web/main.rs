//! The web pages of a running `arbiter up`: they show the same data as the commands.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod brackets;
mod browser;
mod edits;
mod endings;
mod game_guides;
mod hidden_frames;
mod house_ranks;
mod invitations;
mod navigation;
mod organisers;
mod owner_names;
mod page_weight;
mod readers;
mod rehearsals;
mod replays;
mod results;
mod rounds;
mod score_columns;
mod submission;
#[path = "../support/mod.rs"]
mod support;
mod tournament_form;

use browser::{Browser, rows, text};
use support::shown::{mean, shown};
use support::up::Up;

/// A running `arbiter up` with a tournament of gomoku.
struct TestServer {
    up: Up,
    browser: Browser,
}

impl TestServer {
    /// Starts everything and creates a tournament without an edition.
    fn open() -> Self {
        Self::open_with("")
    }

    /// Like [`Self::open`], with more lines in the tournament file.
    fn open_with(more: &str) -> Self {
        let up = Up::start(1);
        up.create_cup(more);
        Self { browser: Browser::new(up.http), up }
    }
}

#[test]
fn pages_show_the_same_data_as_commands() {
    let server = TestServer::open();
    let browser = &server.browser;
    assert!(browser.page("/").contains("<a href=\"/t/cup\">cup</a>"));
    let front = browser.page("/t/cup");
    assert!(front.contains("No leaderboard yet") && front.contains("There are no editions yet"));
    for path in ["ranking", "matches", "schedule", "matrix", "statistics"] {
        let page = browser.page(&format!("/t/cup/{path}"));
        assert!(page.contains("An organiser starts the first edition"), "{path}: {page}");
        assert!(page.contains("class=\"tabs\""), "{path} keeps the tabs: {page}");
    }
    server.up.play("cup");

    let places = server.up.json("ranking cup");
    let page = browser.page("/t/cup/ranking");
    assert!(page.contains("Official leaderboard"), "{page}");
    let table = rows(&page, "ranking");
    assert_eq!(table.len(), 3);
    for (row, place) in table.iter().zip(&places) {
        let tied = if place["tied"] == true { "=" } else { "" };
        let expected = [
            format!("{tied}{}", place["rank"]),
            shown(&place["bot"]),
            shown(&place["score"][0]),
            mean(place),
            shown(&place["matches"]),
        ];
        assert_eq!(row[..expected.len()], expected);
        let has_gone = row.iter().any(|cell| cell.contains("gone"));
        assert!(has_gone || place["bot"] != "eve", "{row:?}");
    }
    let searched = rows(&browser.page("/t/cup/ranking?q=EV"), "ranking");
    assert_eq!(searched.len(), 1);
    assert_eq!(searched[0][1], "eve");
    let escaped = browser.page("/t/cup/ranking?q=%22%3E%3Cscript%3E");
    assert!(
        escaped.contains("&quot;&gt;&lt;script&gt;") && !escaped.contains("<script>"),
        "{escaped}"
    );
    assert!(rows(&browser.page("/t/cup/ranking?offset=3"), "ranking").is_empty());

    for place in &places {
        let bot = shown(&place["bot"]);
        let page = text(&browser.page(&format!("/t/cup/bots/{bot}")));
        assert!(page.contains(&mean(place)) && page.contains("Opponents"), "{page}");
    }
    let matrix = browser.page("/t/cup/matrix");
    assert_eq!(rows(&matrix, "matrix").len(), 3);
    assert_eq!(matrix.matches("<td class=\"none\">").count(), 3, "no bot meets itself");
    assert!(!matrix.contains("an empty cell"), "all have met: {matrix}");
    let schedule = text(&browser.page("/t/cup/schedule"));
    assert!(schedule.contains("There are 3 bots and 6 matches, 2 bots in each."), "{schedule}");
    assert!(schedule.contains("Every pair of bots meets in exactly 2 matches."), "{schedule}");
    let about = text(&browser.page("/t/cup/about"));
    let hash = server.up.json("tournament show cup")[0]["seed_hash"].clone();
    assert!(about.contains(hash.as_str().unwrap()), "{about}");
    assert!(about.contains("Every bot meets every other bot"), "{about}");
    let front = browser.page("/t/cup");
    assert!(text(&front).contains("6 of 6 matches"), "{front}");
    // Possible ranks may be computed between the two pages.
    let shown_ranks = |table: &[Vec<String>]| -> Vec<_> {
        table.iter().map(|row| (row[..5].to_vec(), row.last().cloned())).collect()
    };
    assert_eq!(shown_ranks(&rows(&front, "ranking")), shown_ranks(&table), "it leads the front");
    assert!(browser.page("/queue").contains("No edition is running."));
    server.up.close();
}

#[test]
fn replays_need_access_to_the_record_and_end_with_the_result() {
    let server = TestServer::open_with("[public]\nreplays = \"never\"\n");
    server.up.play("cup");
    let mut browser = server.browser.clone();
    let address = "/t/cup/matches/0";
    let page = browser.page(address);
    let never = "The replay is not available: this tournament does not show replays; \
        players see those of their own bots after login.";
    assert!(text(&page).contains(never), "{page}");
    assert!(page.contains("<a href=\"/login\">Log in</a> if one of the bots is yours."), "{page}");
    for part in ["steps", "record"] {
        assert_eq!(browser.get(&format!("{address}/{part}")).status, 401, "{part}");
    }

    let refused = browser.log_in("arb_0000");
    assert_eq!((refused.status, browser.cookie.take()), (401, None));
    let player = server.up.token("player");
    browser.log_in(&player);
    let page = browser.page(address);
    assert!(page.contains("does not show replays, and none of your bots plays"), "{page}");

    let response = browser.log_in(&server.up.admin());
    assert_eq!(response.status, 303);
    let cookie = &response.headers["set-cookie"];
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    for number in 0..6 {
        let name = format!("cup/{number}");
        let path = format!("/t/cup/matches/{number}");
        let result = server.up.json(&format!("match {name}"))[0]["scores"].clone();
        let page = browser.page(&path);
        let total = page.split("data-total=\"").nth(1).unwrap().split('"').next().unwrap();
        let last: usize = total.parse::<usize>().unwrap() - 1;
        let end = browser.page(&format!("{path}?step={last}"));
        let scores = end.split("data-score=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let expected = result.as_array().unwrap().iter().map(|score| shown(&score[0]));
        assert_eq!(scores.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{name}");
        let chunk = |number: usize| browser.get(&format!("{path}/steps?chunk={number}"));
        let steps: Vec<_> = (0..=last / arbiter_replay::STEPS_PER_CHUNK)
            .flat_map(|number| arbiter_replay::decode_chunk(&chunk(number).bytes).unwrap())
            .collect();
        assert_eq!(steps.len(), last + 1);
        assert!(steps.iter().all(|step| step.contains("<svg class=\"board gomoku\"")));
        assert!(end.contains(&steps[last]), "the page shows the same step");
        assert_eq!(chunk(99).status, 404);
    }
    assert!(browser.page(address).contains("href=\"?step=1#replay\""));
    let beyond = browser.page(&format!("{address}?step=999999"));
    assert!(
        beyond.contains("There is no step 999999") && beyond.contains("data-score"),
        "{beyond}"
    );

    // Forms from other sites or without the session's CSRF token are refused.
    let page = browser.page("/");
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let foreign =
        browser.post("/logout", &format!("csrf={csrf}"), &["Origin: http://evil.example"]);
    assert_eq!(foreign.status, 403);
    let cross = browser.post("/logout", &format!("csrf={csrf}"), &["Sec-Fetch-Site: cross-site"]);
    assert_eq!(cross.status, 403);
    assert_eq!(browser.post("/logout", "csrf=", &[]).status, 403);
    let out = browser.post("/logout", &format!("csrf={csrf}"), &["Sec-Fetch-Site: same-origin"]);
    assert_eq!(out.status, 303);
    assert!(out.headers["set-cookie"].contains("Max-Age=0"), "{:?}", out.headers);
    server.up.close();
}

#[test]
fn organisers_start_and_cancel_from_the_page_of_the_tournament() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    let page = "/t/cup/organise";
    assert_eq!(browser.get(page).status, 401, "not logged in");
    assert!(!browser.page("/t/cup").contains(page), "not logged in");
    assert_eq!(browser.post("/t/cup/start", "csrf=", &[]).status, 403);
    let player = server.up.token("player");
    browser.log_in(&player);
    let csrf = |page: &str| page.split("name=\"csrf\" value=\"").nth(1).unwrap()[..64].to_owned();
    assert_eq!(browser.get(page).status, 403, "a player is not an organiser");
    let front = browser.page("/t/cup");
    assert!(!front.contains(page), "a player is not an organiser");
    let form = format!("csrf={}", csrf(&front));
    assert_eq!(browser.post("/t/cup/start", &form, &[]).status, 403, "as the service says");

    browser.log_in(&server.up.admin());
    assert!(browser.page("/t/cup").contains(page));
    let form = format!("csrf={}", csrf(&browser.page(page)));
    assert_eq!(browser.post("/t/cup/start", &form, &["Origin: http://evil.example"]).status, 403);
    assert!(server.up.json("tournament show cup")[0]["editions"].as_array().unwrap().is_empty());
    assert_eq!(browser.post("/t/cup/start", &form, &[]).status, 303);
    assert_eq!(server.up.json("tournament show cup")[0]["editions"].as_array().unwrap().len(), 1);
    let unconfirmed = browser.post("/t/cup/cancel", &form, &[]);
    assert_eq!(unconfirmed.status, 400, "not confirmed");
    assert!(text(&unconfirmed.body).contains("\"Cancel tournament\" needs your confirmation"));
    let sure = format!("{form}&sure=yes");
    assert_eq!(browser.post("/t/cup/cancel", &sure, &[]).status, 303);
    assert_eq!(server.up.json("tournament show cup")[0]["state"], "cancelled");
    let page = browser.page(page);
    assert!(!page.contains("Start edition"), "{page}");
    assert_eq!(
        browser.post("/t/cup/matches/0/retry", &form, &[]).status,
        409,
        "it is not set aside"
    );
    server.up.close();
}

#[test]
fn live_pages_are_updated_without_a_reload() {
    let server = TestServer::open();
    server.up.succeed("tournament start cup");
    let mut boards = server.browser.events("/t/cup/ranking/live");
    let last = boards.find(|board| board.contains("data-counted=\"6\""));
    let expected: Vec<_> =
        server.up.json("ranking cup").iter().map(|place| shown(&place["bot"])).collect();
    let table = rows(&last.unwrap(), "ranking");
    assert_eq!(
        table.iter().map(|row| &row[1]).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    let states: Vec<_> = server.browser.events("/t/cup/live").collect();
    assert!(states.last().unwrap().contains("complete"), "{states:?}");
    // Open streams do not prevent the shutdown.
    server.up.close();
}

#[test]
fn invalid_requests_are_refused_and_pages_have_security_headers() {
    let server = TestServer::open();
    let browser = &server.browser;
    for path in ["/", "/t/cup", "/login", "/nowhere", "/assets/arbiter.css", "/healthz"] {
        let response = browser.get(path);
        let policy = &response.headers["content-security-policy"];
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.headers["x-content-type-options"], "nosniff", "{path}");
        assert!(!response.body.contains(" style=") && !response.body.contains("onclick"), "{path}");
    }
    assert_eq!(browser.page("/healthz"), "ok\n");
    assert!(browser.page("/readyz").starts_with("ok\n"));
    assert_eq!(browser.get("/metrics").status, 401, "metrics are for organisers");
    let mut organiser = browser.clone();
    organiser.log_in(&server.up.admin());
    let metrics = organiser.page("/metrics");
    assert!(metrics.contains("# TYPE arbiter_workers_known gauge\n"), "{metrics}");
    assert!(metrics.contains("arbiter_workers_known 1\n"), "{metrics}");
    let strange =
        "arbiter_http_requests_total{method=\"GET\",route=\"unknown\",status=\"404\"} 1\n";
    assert!(metrics.contains(strange) && !metrics.contains("nowhere"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    assert!(browser.page("/assets/arbiter.js").contains("EventSource"));
    let refused = [
        "/nowhere",
        "/t/none",
        "/t/none/ranking",
        "/t/none/matrix",
        "/t/none/schedule",
        "/t/none/matches",
        "/t/none/bots/x",
        "/t/cup/bots/none",
        "/t/%00/ranking",
        "/t/cup/ranking?edition=99999999999",
        "/t/cup/ranking?offset=-1",
        "/t/cup/matches?after=x",
        "/t/cup/matches/99",
        "/t/cup/matches/y",
        "/t/cup/matches/-1",
        "/t/none/matches/0",
        "/t/cup/matches/9223372036854775807",
        "/t/cup/matches/0/steps?chunk=18446744073709551616",
    ];
    for path in refused {
        let status = browser.get(path).status;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    assert_eq!(browser.post("/t/cup", "", &[]).status, 405);
    server.up.close();
}

//! Every page says where it is and who is logged in, links its data, and a login leads back to it.

use crate::TestServer;
use crate::browser::{Browser, Part, csrf, text};

/// The labels of the breadcrumbs of a page.
fn breadcrumbs(page: &str) -> Vec<String> {
    let Some((_, rest)) = page.split_once("<nav class=\"breadcrumbs\"") else { return Vec::new() };
    let list = rest.split("</nav>").next().unwrap();
    list.split("<li>").skip(1).map(text).collect()
}

#[test]
fn every_page_has_breadcrumbs_to_the_pages_above_it() {
    let server = TestServer::open();
    server.up.play("cup");
    let mut browser = server.browser.clone();
    for path in ["/login", "/nowhere", "/t/none", "/workers", "/t/cup/matches/y"] {
        assert_eq!(breadcrumbs(&browser.get(path).body), ["Tournaments"], "{path}");
    }
    browser.log_in(&server.up.admin());
    assert!(breadcrumbs(&browser.page("/")).is_empty(), "no page is above the home page");
    let pages: [(&str, &[&str]); 24] = [
        ("/api", &[]),
        ("/me", &[]),
        ("/queue", &[]),
        ("/workers", &["Queue and workers"]),
        ("/workers?t=cup", &["cup", "Organise"]),
        ("/new", &[]),
        ("/new/game?game=gomoku", &["Create a tournament"]),
        ("/invitations", &[]),
        ("/invitations?t=cup", &["cup", "Organise"]),
        ("/t/cup", &[]),
        ("/t/cup/ranking", &[]),
        ("/t/cup/about", &["cup"]),
        ("/t/cup/statistics", &["cup"]),
        ("/t/cup/matrix", &["cup"]),
        ("/t/cup/how-to-play", &["cup"]),
        ("/t/cup/organise", &["cup"]),
        ("/t/cup/edit", &["cup", "Organise"]),
        ("/t/cup/void", &["cup", "Organise"]),
        ("/t/cup/submit", &["cup"]),
        ("/t/cup/schedule", &["cup", "Matches"]),
        ("/t/cup/matches/0", &["cup", "Matches"]),
        ("/t/cup/bots", &["cup"]),
        ("/t/cup/bots/ada", &["cup", "Bots"]),
        ("/t/cup/bots/ada/versions/1", &["cup", "Bots", "ada"]),
    ];
    for (path, parents) in pages {
        let expected = [&["Tournaments"], parents].concat();
        assert_eq!(breadcrumbs(&browser.page(path)), expected, "{path}");
    }
    server.up.close();
}

/// The header of a page.
fn header(browser: &Browser, path: &str) -> String {
    let page = browser.get(path).body;
    page.split("<header>").nth(1).unwrap().split("</header>").next().unwrap().to_owned()
}

#[test]
fn the_header_names_who_is_logged_in() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    assert!(browser.page("/").contains("Programs (bots) play games against each other here."));
    let anonymous = header(&browser, "/");
    assert!(anonymous.contains("href=\"/login\""), "{anonymous}");
    assert!(!anonymous.contains("href=\"/me\"") && !anonymous.contains("Log out"), "{anonymous}");
    let token = server.up.token("player --name lovelace");
    browser.log_in(&token);
    for path in ["/", "/t/cup", "/queue", "/me", "/login"] {
        let header = header(&browser, path);
        let link = header.split("href=\"/me\">").nth(1).unwrap().split("</a>").next().unwrap();
        assert_eq!(text(link), "lovelace player", "{path}");
        assert!(header.contains("Log out") && !header.contains("Log in"), "{path}: {header}");
    }
    server.up.succeed("token revoke lovelace");
    let revoked = header(&browser, "/");
    assert!(revoked.contains("Log in") && !revoked.contains("lovelace"), "{revoked}");
    server.up.close();
}

#[test]
fn error_pages_show_who_is_logged_in() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.token("player --name lovelace"));
    for (path, statuses, titles) in [
        ("/nowhere", [404, 404], ["Not found", "Not found"]),
        ("/t/none", [404, 404], ["Not found", "Not found"]),
        ("/t/cup/matches/y", [400, 400], ["Something is missing or wrong"; 2]),
        ("/new", [403, 401], ["You have no access", "Please log in"]),
        ("/workers", [403, 401], ["You have no access", "Please log in"]),
    ] {
        // The second visitor asks for what the first one was shown.
        for (visitor, (status, title)) in
            [&browser, &server.browser].into_iter().zip(statuses.into_iter().zip(titles))
        {
            let response = visitor.get(path);
            assert_eq!(response.status, status, "{path}");
            assert!(response.body.contains(&format!("<h1>{title}</h1>")), "{path}");
            let header = header(visitor, path);
            let is_logged_in = visitor.cookie.is_some();
            assert_eq!(header.contains("lovelace"), is_logged_in, "{path}: {header}");
            assert_eq!(header.contains("Log out"), is_logged_in, "{path}: {header}");
            assert_eq!(header.contains("href=\"/login\""), !is_logged_in, "{path}: {header}");
        }
    }
    let missing = browser.get("/nowhere").body;
    assert!(missing.contains("<p>There is no page at this address.</p>"), "{missing}");
    assert!(missing.contains("<a href=\"/\">See all tournaments</a>"), "{missing}");
    let refused = text(&browser.get("/new").body);
    assert!(refused.contains("This needs a token of role organiser, not player."), "{refused}");
    let problem = browser.get("/api/v1/nothing");
    assert_eq!(problem.headers["content-type"], "application/problem+json");
    // Pages for frames are the same for all people.
    for path in ["/t/cup/matches/y/embed", "/t/cup/matches/0/embed/steps"] {
        let framed = browser.get(path);
        assert!(framed.status >= 400 && framed.body.contains("<h1>"), "{path}: {}", framed.body);
        for part in ["lovelace", "href=\"/login\""] {
            assert!(!framed.body.contains(part), "{path}: {}", framed.body);
        }
        assert_eq!(framed.body, server.browser.get(path).body, "{path}");
    }
    server.up.close();
}

/// The way back that an error page offers.
fn way_back(page: &str) -> Option<&str> {
    let labels = ["\">Go back</a>", "\">Load the page again</a>"];
    let before = labels.iter().find_map(|label| page.split_once(label))?.0;
    Some(before.rsplit("href=\"").next().unwrap())
}

#[test]
fn the_way_back_of_an_error_page_leads_to_a_page() {
    let server = TestServer::open();
    server.up.play("cup");
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.admin());
    let expect_page = |what: &str, page: &str, expected: &str| {
        let back = way_back(page).unwrap_or_else(|| panic!("{what}: {page}"));
        assert_eq!(back, expected, "{what}");
        let response = browser.get(back);
        assert_eq!((response.status, &response.headers["content-type"][..9]), (200, "text/html"));
    };
    let root = format!("Referer: http://{}", browser.address);
    for (path, page) in [
        ("/t/cup/start", "/t/cup/organise"),
        ("/t/cup/announcements/1/remove", "/t/cup/organise"),
        ("/t/cup/matches/0/retry", "/t/cup/matches/0"),
        ("/t/cup/bots/ada/withdraw", "/t/cup/bots/ada"),
        ("/t/cup/edit", "/t/cup/edit"),
        ("/workers/suspend", "/workers"),
        ("/invitations", "/invitations"),
    ] {
        let refused = browser.post(path, "csrf=&name=x&names=x", &[]);
        assert_eq!(refused.status, 403, "{path}: {}", refused.body);
        expect_page(path, &refused.body, page);
        let from =
            browser.post(path, "csrf=&name=x&names=x", &[&format!("{root}/t/cup/matches?bot=ada")]);
        expect_page(path, &from.body, "/t/cup/matches?bot=ada");
    }
    let parts = [Part::text("csrf", "")];
    for (path, page) in [
        ("/t/cup/package", "/t/cup/organise"),
        ("/new/package", "/new"),
        ("/t/cup/submit", "/t/cup/submit"),
    ] {
        let refused = browser.upload(path, &parts, &[]);
        assert_eq!(refused.status, 403, "{path}: {}", refused.body);
        expect_page(path, &refused.body, page);
    }
    // There may be no page at the address of an unknown form.
    assert_eq!(way_back(&browser.post("/t/cup/ranking.csv", "", &[]).body), None);
    assert_eq!(way_back(&browser.post("/nowhere", "", &[]).body), None);

    let get = |path: &str, from: &str| {
        let from = format!("http://{}{from}", browser.address);
        browser.get_from(path, &from).body
    };
    expect_page("another query", &get("/workers?t=none", "/workers"), "/workers");
    assert_eq!(way_back(&get("/workers?t=none", "/workers?t=none")), None, "it is the same page");
    server.up.close();
}

#[test]
fn a_refused_form_says_why_and_shows_what_was_written() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.token("organiser --name olga"));
    let page = browser.page("/t/cup/organise");
    browser.log_in(&server.up.token("organiser --name otto"));
    let form = format!("csrf={}&text=We%20play%20at%20%3Cnoon%3E", csrf(&page));
    let own = format!("Origin: http://{}", browser.address);
    let refused = browser.post("/t/cup/announcements", &form, &[&own]);
    assert_eq!(refused.status, 403);
    let shown = text(&refused.body);
    assert!(shown.contains("The form is out of date"), "{shown}");
    assert!(shown.contains("load the page again and send the form again"), "{shown}");
    assert!(!shown.contains("no access") && !shown.contains("a token that has access"), "{shown}");
    assert!(refused.body.contains("\nWe play at &lt;noon&gt;</textarea>"), "{}", refused.body);
    let foreign = browser.post("/t/cup/announcements", &form, &["Origin: http://evil.example"]);
    assert!(foreign.status == 403 && foreign.body.contains("The form is from another site"));
    assert!(!foreign.body.contains("noon"), "another site cannot choose what a page shows");
    let unknown = browser.post("/t/cup/announcements", &form, &[]);
    assert!(unknown.status == 403 && !unknown.body.contains("noon"), "it may be from another site");

    // The page filled in the hidden fields.
    for (path, hidden) in [("/new/game", "package"), ("/t/cup/void", "matches")] {
        let written = "description=Bring%20a%20laptop&reason=Bring%20a%20laptop";
        let form = format!("csrf={}&{written}&{hidden}=cup/1%20cup/2", csrf(&page));
        let refused = browser.post(path, &form, &[&own]);
        assert_eq!(refused.status, 403, "{path}");
        assert_eq!(refused.body.matches("</textarea>").count(), 1, "{path}: {}", refused.body);
        assert!(refused.body.contains("\nBring a laptop</textarea>"), "{path}: {}", refused.body);
    }

    // A form that is refused for another reason is not lost either.
    let hash = csrf(&browser.page("/t/cup/edit"));
    server.up.succeed("tournament cancel cup");
    let word = "Wiosennyturniejprogramow";
    let revision = "0".repeat(64);
    let form =
        format!("csrf={hash}&revision={revision}&title=The%20spring%20cup&description={word}");
    let refused = browser.post("/t/cup/edit", &form, &[&own]);
    assert_eq!(refused.status, 409);
    for written in ["The spring cup", word] {
        assert!(refused.body.contains(&format!("\n{written}</textarea>")), "{}", refused.body);
    }
    assert!(!refused.body.contains(&format!("{hash}</textarea>")), "it was not written");
    assert!(!refused.body.contains(&revision), "it was not written");
    assert!(refused.body.contains("<h1>This is not possible</h1>"), "{}", refused.body);
    server.up.close();
}

#[test]
fn a_login_returns_to_a_page_that_answers() {
    let server = TestServer::open();
    server.up.play("cup");
    let browser = &server.browser;
    let admin = server.up.admin();
    let root = format!("http://{}", browser.address);
    for (from, page) in [
        ("/t/cup/matches?bot=ada", "/t/cup/matches?bot=ada"),
        ("/t/cup/start", "/t/cup/organise"),
        ("/t/cup/announcements/1/remove", "/t/cup/organise"),
        ("/t/cup/matches/0/retry", "/t/cup/matches/0"),
        ("/t/cup/bots/ada/withdraw", "/t/cup/bots/ada"),
        ("/workers/suspend", "/workers"),
        ("/new/package", "/new"),
        ("/logout", "/"),
    ] {
        let form = browser.get_from("/login", &format!("{root}{from}")).body;
        let next = form.split("name=\"next\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        let mut browser = browser.clone();
        let next = crate::browser::encoded(&next.replace("&amp;", "&"));
        let response = browser.post("/login", &format!("token={admin}&next={next}"), &[]);
        assert_eq!((response.status, &response.headers["location"][..]), (303, page), "{from}");
        let cookie = response.headers["set-cookie"].split(';').next().unwrap().to_owned();
        browser.cookie = Some(cookie);
        assert_eq!(browser.get(page).status, 200, "{from}");
    }
    server.up.close();
}

/// The links to the data of a page.
fn data_links(page: &str) -> Vec<String> {
    let Some((_, rest)) = page.split_once("<p class=\"data-links\">") else { return Vec::new() };
    let foot = rest.split("</p>").next().unwrap();
    let links = foot.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    links.map(|link| link.replace("&amp;", "&")).collect()
}

#[test]
fn pages_with_data_link_it_as_json_and_csv_and_the_api() {
    let server = TestServer::open();
    server.up.play("cup");
    // The address is quoted, so that no shell expands its `?`.
    let introduction = text(&server.browser.page("/api"));
    let address = server.browser.address;
    let command = format!("curl -s \"http://{address}/api/v1/tournaments/NAME/ranking?limit=10\"");
    assert!(introduction.contains(&command), "{introduction}");
    for (path, forms) in [
        ("/", "json"),
        ("/queue", "json"),
        ("/t/cup", "json csv gzip"),
        ("/t/cup/ranking", "json csv gzip"),
        ("/t/cup/matches", "json csv"),
        ("/t/cup/matches/0", "json"),
        ("/t/cup/bots", "json"),
        ("/t/cup/bots/ada", "json csv"),
        ("/t/cup/matrix", "json csv"),
        ("/t/cup/statistics", "json csv csv"),
        ("/t/cup/schedule", "json"),
        ("/t/cup/about", "json"),
    ] {
        let links = data_links(&server.browser.page(path));
        let (api, data) = links.split_last().unwrap_or_else(|| panic!("{path} has no links"));
        assert_eq!(api, "/api", "{path}");
        assert_eq!(data.len(), forms.split(' ').count(), "{path}: {data:?}");
        for (link, form) in data.iter().zip(forms.split(' ')) {
            let response = server.browser.download(link);
            let kind = &response.headers["content-type"];
            assert!(kind.contains(form), "{path}: {link} is {kind}");
        }
    }
    server.up.close();
}

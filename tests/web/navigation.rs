//! Every page says where it is and who is logged in, links its data, and a login leads back to it.

use crate::TestServer;
use crate::browser::{Browser, text};

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
        ("/workers?t=cup", &["Queue and workers"]),
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
    let anonymous = header(&browser, "/");
    assert!(anonymous.contains("href=\"/login\""), "{anonymous}");
    assert!(!anonymous.contains("href=\"/me\"") && !anonymous.contains("Log out"), "{anonymous}");
    // A name may have characters that reorder the text around it.
    let token = server.up.token("player --name ada\u{202e}lovelace");
    browser.log_in(&token);
    for path in ["/", "/t/cup", "/queue", "/me", "/login"] {
        let header = header(&browser, path);
        let link = header.split("href=\"/me\">").nth(1).unwrap().split("</a>").next().unwrap();
        assert_eq!(text(link), "ada\u{fffd}lovelace player", "{path}");
        assert!(header.contains("Log out") && !header.contains("Log in"), "{path}: {header}");
    }
    server.up.succeed("token revoke ada\u{202e}lovelace");
    let revoked = header(&browser, "/");
    assert!(revoked.contains("Log in") && !revoked.contains("lovelace"), "{revoked}");
    server.up.close();
}

#[test]
fn error_pages_show_who_is_logged_in() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    let errors = ["/nowhere", "/t/none", "/t/cup/matches/y", "/new", "/workers", "/api/nothing"];
    for path in errors {
        assert!(!browser.get(path).body.contains("Log out"), "{path}");
    }
    browser.log_in(&server.up.token("player --name lovelace"));
    for (path, status, title) in [
        ("/nowhere", 404, "Not found"),
        ("/t/none", 404, "Not found"),
        ("/t/cup/matches/y", 400, "Something is missing or wrong"),
        ("/new", 403, "You have no access"),
        ("/workers", 403, "You have no access"),
    ] {
        let response = browser.get(path);
        assert_eq!(response.status, status, "{path}");
        let page = response.body;
        assert!(page.contains("lovelace") && page.contains("Log out"), "{path}: {page}");
        assert!(page.contains(&format!("<h1>{title}</h1>")), "{path}: {page}");
    }
    let refused = text(&browser.get("/new").body);
    assert!(refused.contains("This needs a token of role organiser, not player."), "{refused}");
    let problem = browser.get("/api/v1/nothing");
    assert_eq!(problem.headers["content-type"], "application/problem+json");
    // The page of a form that was refused leads back to the page with the form.
    let refused = browser.post("/t/cup/start", "csrf=", &[]);
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("<a href=\"/t/cup/organise\">Go back</a>"), "{}", refused.body);
    // A page for frames is the same for all people.
    let framed = browser.get("/t/cup/matches/0/embed");
    assert!(framed.status == 404 && !framed.body.contains("lovelace"), "{}", framed.body);
    let framed = browser.get("/t/cup/matches/0/embed/steps");
    assert!(framed.status >= 400 && !framed.body.contains("lovelace"), "{}", framed.body);
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

//! Requirements for every page: it fits a phone and passes the accessibility linter in light and
//! dark. The test follows links to find one page of each kind, so a new page is tested as soon as a
//! page links to it.

use std::collections::{BTreeSet, VecDeque};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::axe::{Axe, build_directory};
use crate::chrome::{Chrome, Scheme, keys};
use crate::support::shown::shown;
use crate::test_server::{GAMES, KNOCKOUT, STAGES, TestServer};

/// If set, screenshots of all pages are saved, and the linter checks each page in light and in
/// dark. Both take most of the time, so `scripts/nightly` sets it.
const SCREENSHOTS: &str = "ARBITER_SCREENSHOTS";

/// Screens, and their sizes in CSS pixels. No page may be wider than any of them.
const SCREENS: [(&str, (u32, u32)); 4] =
    [("narrow", NARROW), ("phone", PHONE), ("desktop", DESKTOP), ("wide", WIDE)];
const NARROW: (u32, u32) = (360, 740);
const DESKTOP: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (390, 844);
const WIDE: (u32, u32) = (1920, 1080);
/// The screens of which every page gets a screenshot.
const PICTURED: [&str; 2] = ["desktop", "phone"];
/// Pages whose names begin so also get a screenshot of a wide screen.
const WIDE_PAGES: [&str; 4] = ["home", "t-_", "ranking-", "replay-"];
/// The pages that the linter also checks on the other screens: those that most people see.
const MAIN_PAGES: [&str; 8] = [
    "/",
    "/t/gomoku-quick",
    "/t/gomoku-quick/matches",
    "/t/gomoku-quick/bots",
    "/t/gomoku-quick/matrix",
    "/t/gomoku-quick/statistics",
    "/t/gomoku-quick/how-to-play",
    "/t/wojna-quick/matches/0?step=20",
];
/// How the linter checks those: the first half, or all if screenshots are wanted.
const MAIN_VIEWS: [(Scheme, (u32, u32)); 4] =
    [(Scheme::Dark, NARROW), (Scheme::Light, WIDE), (Scheme::Light, NARROW), (Scheme::Dark, WIDE)];

/// How often Tab is pressed between two looks at the page.
const TABS: usize = 10;

/// Remembers the controls of a page in `left`, forgets those that get the focus, and collects in
/// `unmarked` what does not show that it has the focus. Returns the number of controls.
const WATCH_FOCUS: &str = "
    const controls = 'a[href], button, input, select, textarea, summary';
    window.left = new Set([...document.querySelectorAll(controls)]
        .filter((one) => one.checkVisibility() && one.type !== 'hidden' && !one.disabled));
    window.unmarked = [];
    document.addEventListener('focusin', ({ target }) => {
        window.left.delete(target);
        const style = getComputedStyle(target);
        if (style.outlineStyle === 'none') window.unmarked.push(target.outerHTML);
    });
    return window.left.size;";

/// The kind of a page: its path and parameter names, with names and numbers replaced by `_`.
fn page_kind(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut parts: Vec<_> = path.split('/').map(str::to_owned).collect();
    let named = match parts.get(1).map(String::as_str) {
        Some("t") => vec![2, 4],
        Some("tricks") => vec![3],
        _ => vec![],
    };
    for index in named {
        if let Some(part) = parts.get_mut(index) {
            part.replace_range(.., "_");
        }
    }
    let query: Vec<_> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    [parts.join("/"), query.join("&")].join("?")
}

/// Visits one page of each kind that is reachable from the home page, the pages of a bracket and of
/// rounds, to which only tournaments with them link, and the pages for frames and projectors. Calls
/// `check` with the kind and the path of each while it is open, and returns the number of pages.
fn visit_page_kinds(
    server: &TestServer,
    chrome: &Chrome,
    mut check: impl FnMut(&str, &str),
) -> usize {
    let bracket = format!("/t/{KNOCKOUT}/bracket");
    let rounds = format!("/t/{STAGES}/rounds");
    let frame = format!("/t/{KNOCKOUT}/matches/0/embed");
    let projector = format!("/t/{STAGES}/projector");
    let mut waiting = VecDeque::from(["/".to_owned(), bracket, rounds, frame, projector]);
    let mut kinds: BTreeSet<_> = waiting.iter().map(|path| page_kind(path)).collect();
    while let Some(path) = waiting.pop_front() {
        server.visit(chrome, &path);
        let links = chrome.run(
            "return [...document.querySelectorAll('a[href]:not([download])')]
                .filter((link) => link.origin === location.origin && !link.dataset.step)
                .map((link) => link.pathname + link.search);",
        );
        for link in links.as_array().unwrap().iter().map(shown) {
            // Skip downloads.
            let files = ["/record", ".csv", "/api"];
            let page = !files.iter().any(|file| link.contains(file));
            if page && kinds.insert(page_kind(&link)) {
                waiting.push_back(link);
            }
        }
        check(&page_kind(&path), &path);
    }
    kinds.len()
}

/// The folder for screenshots in the build directory; `None` unless screenshots are wanted.
pub(crate) fn screenshot_folder() -> Option<PathBuf> {
    env::var_os(SCREENSHOTS)?;
    let folder = build_directory().join("screenshots");
    fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

/// The problems that the linter finds on the current page, with the name of the view.
fn lint(chrome: &Chrome, axe: &Axe, view: &str) -> Vec<String> {
    axe.violations(chrome).iter().map(|line| format!("{view}: {line}")).collect()
}

/// Checks the current page on all screens, and returns the problems. The linter checks it once:
/// light on a desktop, or dark on a phone. If screenshots are wanted, it checks both.
pub(crate) fn inspect(
    chrome: &Chrome,
    axe: Option<&Axe>,
    folder: Option<&Path>,
    name: &str,
    linted: Scheme,
) -> Vec<String> {
    let mut problems = Vec::new();
    // Colours do not change widths, so one scheme is enough for them.
    let schemes = if folder.is_some() { vec![Scheme::Light, Scheme::Dark] } else { vec![linted] };
    for scheme in schemes {
        chrome.prefer(scheme);
        let linted_screen = if scheme == Scheme::Light { "desktop" } else { "phone" };
        for (screen, (width, height)) in SCREENS {
            let view = format!("{name}-{screen}-{}", scheme.as_str());
            chrome.size(width, height);
            let content = chrome.run("return document.documentElement.scrollWidth");
            if content.as_u64() > Some(width.into()) {
                problems.push(format!("{view}: {content} pixels wide"));
            }
            let is_wide = WIDE_PAGES.iter().any(|start| name.starts_with(start));
            let pictured = PICTURED.contains(&screen) || (is_wide && (width, height) == WIDE);
            if let Some(folder) = folder.filter(|_| pictured) {
                fs::write(folder.join(format!("{view}.png")), chrome.screenshot()).unwrap();
            }
            if let Some(axe) = axe.filter(|_| screen == linted_screen) {
                problems.extend(lint(chrome, axe, &view));
            }
        }
    }
    chrome.prefer(Scheme::Light);
    chrome.size(DESKTOP.0, DESKTOP.1);
    problems
}

/// Light and dark in turn, so that the linter checks one half of the pages in each.
fn schemes_in_turn() -> impl Iterator<Item = Scheme> {
    [Scheme::Light, Scheme::Dark].into_iter().cycle()
}

#[test]
fn every_page_fits_every_screen_and_passes_the_linter() {
    let Some(chrome) = Chrome::start() else { return };
    let axe = Axe::find();
    let folder = screenshot_folder();
    let server = TestServer::played();
    let mut problems = Vec::new();
    let mut schemes = schemes_in_turn();
    let mut check = |name: &str| {
        let scheme = schemes.next().expect("they never end");
        problems.extend(inspect(&chrome, axe.as_ref(), folder.as_deref(), name, scheme));
    };
    let public = [("home-logged-out", "/"), ("login", "/login"), ("not-found", "/nothing")];
    for (name, path) in public.into_iter().chain([("api", "/api")]) {
        server.visit(&chrome, path);
        check(name);
    }
    server.log_in(&chrome);
    let pages = visit_page_kinds(&server, &chrome, |kind, _| {
        let name = kind.trim_matches(['/', '?']).replace(['/', '?', '&'], "-");
        check(if name.is_empty() { "home" } else { &name });
    });
    assert!(pages > 8, "{pages}");
    for game in GAMES {
        server.visit(&chrome, &format!("/t/{game}-quick/ranking"));
        check(&format!("ranking-{game}"));
        let path = format!("/t/{game}-quick/matches/0");
        server.visit(&chrome, &path);
        let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
        let last = last.as_u64().unwrap();
        for (name, step) in [("middle", last / 2), ("ends", last)] {
            server.visit(&chrome, &format!("{path}?step={step}"));
            check(&format!("replay-{game}-{name}"));
        }
    }
    let views = if folder.is_some() { &MAIN_VIEWS[..] } else { &MAIN_VIEWS[..2] };
    for path in axe.iter().flat_map(|_| MAIN_PAGES) {
        server.visit(&chrome, path);
        for (scheme, (width, height)) in views {
            chrome.prefer(*scheme);
            chrome.size(*width, *height);
            let view = format!("{path} at {width} pixels, {}", scheme.as_str());
            problems.extend(axe.iter().flat_map(|axe| lint(&chrome, axe, &view)));
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_link_and_button_is_reachable_by_keyboard() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    visit_page_kinds(&server, &chrome, |_, path| {
        let count = chrome.run(WATCH_FOCUS).as_u64().unwrap();
        // Scrollable regions and composite fields also take the focus.
        for _ in (0..2 * count + 20).step_by(TABS) {
            chrome.press_times(&[keys::TAB], TABS);
            if chrome.run("return window.left.size") == 0 {
                break;
            }
        }
        let remaining = chrome
            .run("return [...window.left].map((one) => one.outerHTML).concat(window.unmarked)");
        assert_eq!(remaining, Value::Array(Vec::new()), "{path}");
    });
}

//! Requirements for every page: it fits a phone and passes the accessibility linter in light and
//! dark. The test follows links to find one page of each kind, so a new page is tested as soon as a
//! page links to it.

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::axe::{Axe, build_directory};
use crate::chrome::{Chrome, Scheme, keys};
use crate::support::shown::shown;
use crate::test_server::{GAMES, KNOCKOUT, STAGES, TestServer};

/// If set, screenshots of all pages are saved. They are for people, and take most of the time.
const SCREENSHOTS: &str = "ARBITER_SCREENSHOTS";

/// Screen sizes in CSS pixels.
const DESKTOP: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (390, 844);
const WIDE: (u32, u32) = (1920, 1080);
/// Other screens, on which no page may be too wide.
const OTHER_SCREENS: [(u32, u32); 2] = [(360, 740), WIDE];
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

/// One page of each kind that is reachable from the home page, by kind, the pages of a bracket and
/// of rounds, to which only tournaments with them link, and the pages for frames and projectors.
fn find_pages(server: &TestServer, chrome: &Chrome) -> BTreeMap<String, String> {
    let bracket = format!("/t/{KNOCKOUT}/bracket");
    let rounds = format!("/t/{STAGES}/rounds");
    let frame = format!("/t/{KNOCKOUT}/matches/0/embed");
    let projector = format!("/t/{STAGES}/projector");
    let mut waiting = VecDeque::from(["/".to_owned(), bracket, rounds, frame, projector]);
    let mut pages: BTreeMap<_, _> =
        waiting.iter().map(|path| (page_kind(path), path.clone())).collect();
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
            if page && !pages.contains_key(&page_kind(&link)) {
                pages.insert(page_kind(&link), link.clone());
                waiting.push_back(link);
            }
        }
    }
    pages
}

/// The folder for screenshots in the build directory; `None` unless screenshots are wanted.
pub(crate) fn screenshot_folder() -> Option<PathBuf> {
    env::var_os(SCREENSHOTS)?;
    let folder = build_directory().join("screenshots");
    fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

/// Adds a problem if the current page is wider than the screen.
fn check_width(chrome: &Chrome, width: u32, view: &str, problems: &mut Vec<String>) {
    let wide = chrome.run("return document.documentElement.scrollWidth");
    if wide.as_u64() > Some(width.into()) {
        problems.push(format!("{view}: {wide} pixels wide"));
    }
}

/// Checks a page on the other screens: light and dark, on each with the linter.
fn inspect_other_screens(chrome: &Chrome, axe: &Axe, path: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for scheme in [Scheme::Light, Scheme::Dark] {
        chrome.prefer(scheme);
        for (width, height) in OTHER_SCREENS {
            chrome.size(width, height);
            let view = format!("{path} at {width} pixels, {}", scheme.as_str());
            let violations = axe.violations(chrome);
            problems.extend(violations.iter().map(|line| format!("{view}: {line}")));
        }
    }
    chrome.size(DESKTOP.0, DESKTOP.1);
    problems
}

/// Checks the current page in light and dark on all screens, and returns the problems. The linter
/// runs twice: light on a desktop and dark on a phone.
pub(crate) fn inspect(
    chrome: &Chrome,
    axe: Option<&Axe>,
    folder: Option<&Path>,
    name: &str,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (scheme, linted) in [(Scheme::Light, "desktop"), (Scheme::Dark, "phone")] {
        chrome.prefer(scheme);
        for (screen, (width, height)) in [("desktop", DESKTOP), ("phone", PHONE)] {
            let view = format!("{name}-{screen}-{}", scheme.as_str());
            chrome.size(width, height);
            check_width(chrome, width, &view, &mut problems);
            if let Some(folder) = folder {
                fs::write(folder.join(format!("{view}.png")), chrome.screenshot()).unwrap();
            }
            if let Some(axe) = axe.filter(|_| screen == linted) {
                problems
                    .extend(axe.violations(chrome).iter().map(|line| format!("{view}: {line}")));
            }
        }
    }
    // Colours do not change widths, so one scheme is enough.
    chrome.prefer(Scheme::Light);
    for (width, height) in OTHER_SCREENS {
        chrome.size(width, height);
        check_width(chrome, width, &format!("{name} at {width} pixels"), &mut problems);
    }
    // The last of the other screens is the wide one.
    let is_wide = WIDE_PAGES.iter().any(|start| name.starts_with(start));
    if let Some(folder) = folder.filter(|_| is_wide) {
        fs::write(folder.join(format!("{name}-wide-light.png")), chrome.screenshot()).unwrap();
    }
    chrome.size(DESKTOP.0, DESKTOP.1);
    problems
}

#[test]
fn every_page_fits_every_screen_and_passes_the_linter() {
    let Some(chrome) = Chrome::start() else { return };
    let axe = Axe::find();
    let folder = screenshot_folder();
    let server = TestServer::played();
    let mut problems = Vec::new();
    let mut check = |name: &str, path: &str| {
        server.visit(&chrome, path);
        problems.extend(inspect(&chrome, axe.as_ref(), folder.as_deref(), name));
    };
    check("home-logged-out", "/");
    check("login", "/login");
    check("not-found", "/nothing");
    check("api", "/api");
    server.log_in(&chrome);
    let pages = find_pages(&server, &chrome);
    assert!(pages.len() > 8, "{pages:?}");
    for (kind, path) in &pages {
        let name = kind.trim_matches(['/', '?']).replace(['/', '?', '&'], "-");
        check(if name.is_empty() { "home" } else { &name }, path);
    }
    for game in GAMES {
        check(&format!("ranking-{game}"), &format!("/t/{game}-quick/ranking"));
        let path = format!("/t/{game}-quick/matches/0");
        server.visit(&chrome, &path);
        let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
        let last = last.as_u64().unwrap();
        for (name, step) in [("middle", last / 2), ("ends", last)] {
            check(&format!("replay-{game}-{name}"), &format!("{path}?step={step}"));
        }
    }
    if let Some(axe) = &axe {
        for path in MAIN_PAGES {
            server.visit(&chrome, path);
            problems.extend(inspect_other_screens(&chrome, axe, path));
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_link_and_button_is_reachable_by_keyboard() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    for path in find_pages(&server, &chrome).values() {
        server.visit(&chrome, path);
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
    }
}

//! What every page must pass, whatever is on it: it fits a phone, satisfies the accessibility
//! linter in light and in dark, and breaks no rule of its own policy. The pages are found by
//! following links, one for each kind of page, so that a new page is tested as soon as something
//! leads to it.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::axe::{Axe, build_directory};
use crate::chrome::{Chrome, Scheme, keys};
use crate::stage::{GAMES, Stage};
use crate::support::shown::shown;

/// A desk's screen and a phone's, in CSS pixels.
const DESK: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (360, 740);

/// Words that tell pages of one kind apart: names and numbers become `_`.
fn kind(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut parts: Vec<_> = path.split('/').map(str::to_owned).collect();
    let named = match parts.get(1).map(String::as_str) {
        Some("t") => vec![2, 4],
        Some("matches") => vec![2, 3],
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

/// One page of each kind to which links lead from the first page, by kind.
fn pages(stage: &Stage, chrome: &Chrome) -> BTreeMap<String, String> {
    let mut found = BTreeMap::from([(kind("/"), "/".to_owned())]);
    let mut waiting = VecDeque::from(["/".to_owned()]);
    while let Some(path) = waiting.pop_front() {
        stage.visit(chrome, &path);
        let links = chrome.run(
            "return [...document.querySelectorAll('a[href]:not([download])')]
                .filter((link) => link.origin === location.origin && !link.dataset.step)
                .map((link) => link.pathname + link.search);",
        );
        for link in links.as_array().unwrap().iter().map(shown) {
            // What is not a page is not looked at: the browser would keep it as a file.
            let files = ["/record", ".csv", "/api"];
            let page = !files.iter().any(|file| link.contains(file));
            if page && !found.contains_key(&kind(&link)) {
                found.insert(kind(&link), link.clone());
                waiting.push_back(link);
            }
        }
    }
    found
}

/// Where pictures are kept: below the build directory; nowhere if that is somebody else's.
fn gallery() -> Option<PathBuf> {
    let folder = build_directory().join("screenshots");
    fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder)).ok()?;
    Some(folder)
}

/// Looks at a page in every way, and says what is wrong with it. The linter looks at it twice: in
/// light on a desk and in dark on a phone.
fn inspect(chrome: &Chrome, axe: Option<&Axe>, gallery: Option<&Path>, name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (scheme, linted) in [(Scheme::Light, "desk"), (Scheme::Dark, "phone")] {
        chrome.prefer(scheme);
        for (screen, (width, height)) in [("desk", DESK), ("phone", PHONE)] {
            let look = format!("{name}-{screen}-{}", scheme.word());
            chrome.size(width, height);
            let wide = chrome.run("return document.documentElement.scrollWidth");
            if wide.as_u64() > Some(width.into()) {
                wrong.push(format!("{look}: {wide} pixels wide"));
            }
            if let Some(gallery) = gallery {
                fs::write(gallery.join(format!("{look}.png")), chrome.picture()).unwrap();
            }
            if let Some(axe) = axe.filter(|_| screen == linted) {
                wrong.extend(axe.complaints(chrome).iter().map(|line| format!("{look}: {line}")));
            }
        }
    }
    chrome.size(DESK.0, DESK.1);
    wrong
}

#[test]
fn every_page_fits_every_screen_and_satisfies_the_linter() {
    let Some(chrome) = Chrome::start() else { return };
    let (axe, gallery) = (Axe::find(), gallery());
    let stage = Stage::played();
    let mut wrong = Vec::new();
    let mut look = |name: &str, path: &str| {
        stage.visit(&chrome, path);
        wrong.extend(inspect(&chrome, axe.as_ref(), gallery.as_deref(), name));
    };
    look("first-page-of-strangers", "/");
    look("login", "/login");
    look("nothing-here", "/nothing");
    stage.log_in(&chrome);
    let found = pages(&stage, &chrome);
    assert!(found.len() > 8, "{found:?}");
    for (kind, path) in &found {
        let name = kind.trim_matches(['/', '?']).replace(['/', '?', '&'], "-");
        look(if name.is_empty() { "first-page" } else { &name }, path);
    }
    for game in GAMES {
        look(&format!("ranking-{game}"), &format!("/t/{game}-quick/ranking"));
        let id = shown(&stage.up.newest(&format!("{game}-quick"))["id"]);
        let path = format!("/matches/{id}/0");
        stage.visit(&chrome, &path);
        let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
        let last = last.as_u64().unwrap();
        for (name, step) in [("middle", last / 2), ("ends", last)] {
            look(&format!("replay-{game}-{name}"), &format!("{path}?step={step}"));
        }
    }
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_link_and_button_is_reached_by_keyboard() {
    let Some(chrome) = Chrome::start() else { return };
    let stage = Stage::played();
    stage.log_in(&chrome);
    for path in pages(&stage, &chrome).values() {
        stage.visit(&chrome, path);
        let count = chrome.run(
            "window.left = new Set([...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
                .filter((one) => one.checkVisibility() && one.type !== 'hidden' && !one.disabled));
            return window.left.size",
        );
        // Regions that scroll and fields of several parts stop the key as well.
        for _ in 0..2 * count.as_u64().unwrap() + 20 {
            chrome.press(keys::TAB);
            let left = chrome.run(
                "const focused = document.activeElement;
                window.left.delete(focused);
                const style = getComputedStyle(focused);
                if (focused !== document.body && style.outlineStyle === 'none')
                    throw new Error(`${focused.outerHTML} does not show that it is focused`);
                return window.left.size",
            );
            if left == 0 {
                break;
            }
        }
        let left = chrome.run("return [...window.left].map((one) => one.outerHTML)");
        assert_eq!(left, Value::Array(Vec::new()), "{path}");
    }
}

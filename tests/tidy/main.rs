//! The invariants of docs/architecture.md and the rules of prose that a compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod floors;
mod prose;
mod sources;
mod sql;

use std::fs;
use std::path::Path;

use crate::sources::sources;

/// The longest file of code, in lines.
const LONGEST: usize = 600;

#[test]
fn the_rules_cannot_reach_the_world() {
    let root = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/games/src/lib.rs"));
    assert!(root.unwrap().contains("#![no_std]"));
    let std = ["extern crate", "std"].join(" ");
    for (path, text) in sources() {
        assert!(!path.starts_with("games/src") || !text.contains(&std), "{}", path.display());
    }
}

#[test]
fn unsafe_code_is_the_sandboxs_alone() {
    let words = [["unsafe", "{"].join(" "), ["unsafe", "fn"].join(" ")];
    for (path, text) in sources() {
        // A server of ours is tied to our life by a system call between fork and exec.
        let server = path == Path::new("coordinator/src/postgres/cluster_dir.rs");
        let allowed = server || path.starts_with("worker/src/sandbox");
        let has_unsafe = words.iter().any(|word| text.contains(word));
        assert!(allowed || !has_unsafe, "{}", path.display());
    }
}

/// The files that write markup as it is, and how often. Each makes it, or makes it safe, right
/// there.
const UNESCAPED: [(&str, usize); 8] = [
    ("coordinator/src/web/invitations.rs", 1),
    ("coordinator/src/web/layout.rs", 2),
    ("coordinator/src/web/leaderboard.rs", 1),
    ("coordinator/src/web/markdown.rs", 1),
    ("coordinator/src/web/replay_cache.rs", 1),
    ("replay/src/draw.rs", 6),
    ("replay/src/page.rs", 5),
    ("replay/src/render.rs", 1),
];

#[test]
fn pages_escape_all_text_but_in_known_places() {
    let word = ["Pre", "Escaped"].concat();
    let found = sources().into_iter().filter_map(|(path, text)| {
        let imported = text.lines().filter(|line| line.starts_with("use ") && line.contains(&word));
        let types = text.matches(&format!("{word}<")).count() + imported.count();
        let number = text.matches(&word).count() - types;
        (number > 0).then(|| (path.to_str().unwrap().to_owned(), number))
    });
    let known = UNESCAPED.map(|(path, number)| (path.to_owned(), number));
    assert_eq!(found.collect::<Vec<_>>(), known);
}

#[test]
fn files_are_short_enough_to_read() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LONGEST, "{}: {lines} lines", path.display());
    }
}

#[test]
fn bots_depend_on_nothing_of_ours() {
    let manifest = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/bots/Cargo.toml"));
    assert!(!manifest.unwrap().contains("[dependencies]"));
    for (path, text) in sources() {
        let ours = ["arbiter_games", "arbiter_worker"].iter().any(|name| text.contains(name));
        assert!(!path.starts_with("bots") || !ours, "{}", path.display());
    }
}

#[test]
fn the_coordinator_cannot_unpack_what_is_submitted() {
    let manifest =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/coordinator/Cargo.toml"));
    let manifest = manifest.unwrap();
    let linked = manifest.split("[dev-dependencies]").next().unwrap();
    for library in ["tar.", "zip.", "flate2.", "arbiter-worker"] {
        assert!(!linked.contains(&format!("\n{library}")), "{library}");
    }
}

#[test]
fn nothing_is_left_unfinished() {
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let unfinished = ["todo!", "unimplemented!", "dbg!", "FIXME", "TODO", "XXX"];
            let marker = unfinished.iter().find(|word| line.contains(*word));
            let is_this_test = path.ends_with("tidy/main.rs");
            assert!(is_this_test || marker.is_none(), "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

/// The games of the workspace: the folders of `games/src`.
fn games() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/games/src");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.is_dir());
    folders.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// Where code may name a game, and why.
const MAY_NAME_GAMES: [(&str, &str); 9] = [
    ("bots", "they play one"),
    ("games/src/games.rs", "the list of those that come with Arbiter"),
    ("games/src/lib.rs", "their modules"),
    ("coordinator/src/tricks_http", "one game has an HTTP form with house, page and records"),
    ("coordinator/src/tricks_http.rs", "as before"),
    ("coordinator/src/web/api/administration.rs", "their list for programs"),
    ("coordinator/src/web/create_tournament.rs", "the example of a tournament file on its page"),
    ("proto/src/tricks_http.rs", "the words of the HTTP form"),
    ("worker/src/seat/tricks_http.rs", "the seat of its clients"),
];

/// Whether a line is part of the help that people read: an example of a command, or a comment.
fn is_example(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "arbiter ", "bots/", "--against ", "printf ", "A match with a person", "tricks. People"]
        .iter()
        .any(|start| line.starts_with(start))
}

#[test]
fn a_game_is_named_in_its_folder_alone() {
    let games = games();
    assert_eq!(games.len(), 5, "{games:?}");
    let named = |line: &str| {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.any(|word| games.iter().any(|game| game == word))
    };
    for (path, text) in sources() {
        let in_its_folder = games.iter().any(|game| path.starts_with(format!("games/src/{game}")));
        let allowed = MAY_NAME_GAMES.iter().any(|(place, _)| path.starts_with(place));
        let tested = path
            .iter()
            .any(|part| ["tests", "benches", "tests.rs"].iter().any(|name| part == *name));
        if in_its_folder || allowed || tested {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let found = named(line) && !is_example(line);
            assert!(!found, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

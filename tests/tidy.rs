//! The invariants of docs/architecture.md that a compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The longest file of code, in lines.
const LONGEST: usize = 600;

/// Every Rust file below the crates' folders, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if folder.is_dir() && name != "target" && !name.starts_with('.') {
            collect(&folder, &mut found);
        }
    }
    assert!(found.len() > 40, "the sources are found");
    let relative = |path: PathBuf| path.strip_prefix(root).unwrap().to_owned();
    found.into_iter().map(|(path, text)| (relative(path), text)).collect()
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

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
        let server = path == Path::new("coordinator/src/postgres/place.rs");
        let allowed = server || path.starts_with("worker/src/sandbox");
        let found = words.iter().any(|word| text.contains(word));
        assert!(allowed || !found, "{}", path.display());
    }
}

#[test]
fn sql_stands_in_the_database_module_alone() {
    for (path, text) in sources() {
        let elsewhere = path.starts_with("coordinator/src")
            && !path.starts_with("coordinator/src/db")
            && path != Path::new("coordinator/src/db.rs");
        let found = ["sqlx::query", "sqlx::raw_sql"].iter().any(|call| text.contains(call));
        assert!(!(elsewhere && found), "{}", path.display());
    }
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
            let found = unfinished.iter().find(|word| line.contains(*word));
            let told = path.ends_with("tidy.rs");
            assert!(told || found.is_none(), "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

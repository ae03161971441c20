//! The invariants of docs/architecture.md that a compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The floors of each crate, the lowest first: a module may name those on lower floors alone.
const FLOORS: [(&str, &[&str]); 5] = [
    (
        "coordinator/src",
        &[
            "backoff bucket cache connections db redact reply_times",
            "access boards clock leader parts standing_down store suspension voiding",
            "metrics postgres",
            "queue",
            "clearing tournament",
            "maintenance match_audit",
            "service",
            "rpc tricks_http web",
            "coordinator",
        ],
    ),
    (
        "worker/src",
        &[
            "backoff bounded_read connect fault lot spool",
            "callers",
            "sandbox",
            "bot seat",
            "bundle",
            "build referee",
            "record",
            "library table",
            "metrics rehearsal trial",
            "slot",
            "client",
        ],
    ),
    ("replay/src", &["draw packed transcript", "line", "verify write", "steps", "render"]),
    (
        "proto/src",
        &[
            "codec fault ids level limits metrics protocol trace trial tricks_http",
            "convert settings",
            "assignment",
        ],
    ),
    (
        "schedule/src",
        &[
            "certificate chance config episodes error lineage",
            "foursomes round_robin",
            "field plan",
        ],
    ),
];

/// The module of a crate that a file belongs to; none for its root.
fn module(path: &Path, root: &str) -> Option<String> {
    let inner = path.strip_prefix(root).ok()?;
    let first = inner.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib" && name != "main").then(|| name.to_owned())
}

/// The modules of the crate's root that a text names, as `crate::one` or `crate::{one, two}`.
fn named_modules(text: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let rest = &code[at + path.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push(name(rest));
            continue;
        };
        let (mut depth, mut begins) = (1, true);
        for (index, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' => begins = depth == 1,
                _ if begins && !c.is_whitespace() => {
                    found.push(name(&group[index..]));
                    begins = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

/// The arrows between the modules of a crate that do not run down, and the modules without a floor.
fn misplaced(root: &str, floors: &[&str], sources: &[(PathBuf, String)]) -> Vec<String> {
    let floor =
        |module: &str| floors.iter().position(|names| names.split(' ').any(|one| one == module));
    let mut wrong = Vec::new();
    for (path, text) in sources {
        let Some(own) = module(path, root) else { continue };
        let Some(above) = floor(&own) else {
            wrong.push(format!("{root}: `{own}` has no floor; add it to FLOORS in tests/tidy.rs"));
            continue;
        };
        for named in named_modules(text).into_iter().filter(|named| *named != own) {
            if floor(&named).is_some_and(|below| below >= above) {
                wrong.push(format!(
                    "{}: names `{named}`, which is not below `{own}`",
                    path.display()
                ));
            }
        }
    }
    wrong
}

#[test]
fn no_arrow_runs_up_a_floor() {
    let sources = sources();
    for (root, floors) in FLOORS {
        assert_eq!(misplaced(root, floors, &sources), [""; 0]);
    }
}

#[test]
fn an_arrow_that_runs_up_is_seen() {
    let floors = ["db", "queue", "rpc web"];
    let planted = |text: &str| {
        let file = PathBuf::from("coordinator/src/queue/report.rs");
        misplaced("coordinator/src", &floors, &[(file, text.to_owned())])
    };
    assert!(planted("use crate::db::lots;\nuse crate::queue::Kept;\n").is_empty());
    for text in ["use crate::web;", "use crate::{\n    db::lots::{self, Lot},\n    rpc::Tls,\n};"] {
        assert_eq!(planted(text).len(), 1, "{text}");
    }
    assert_eq!(planted("let status = crate::rpc::status();").len(), 1);
    assert!(planted("// crate::rpc is above\n").is_empty());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it asks cargo")]
fn plans_rules_and_rankings_need_no_runtime_and_no_database() {
    for crate_name in ["arbiter-games", "arbiter-schedule", "arbiter-ranking"] {
        let tree = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
            .args(["--package", crate_name])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let tree = String::from_utf8(tree.stdout).unwrap();
        assert!(tree.starts_with(crate_name), "{tree}");
        for library in ["tokio", "sqlx", "tonic", "hyper", "axum"] {
            let named = |line: &str| line.starts_with(&format!("{library} "));
            assert!(!tree.lines().any(named), "{crate_name} needs {library}");
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
    ("games/src/info.rs", "the list of those that come with Arbiter"),
    ("games/src/lib.rs", "their modules"),
    ("coordinator/src/tricks_http", "one game has an HTTP form with house, page and records"),
    ("coordinator/src/tricks_http.rs", "as before"),
    ("coordinator/src/web/api/operation.rs", "their list for programs"),
    ("coordinator/src/web/create.rs", "the example of a tournament file on its page"),
    ("proto/src/tricks_http.rs", "the words of the HTTP form"),
    ("worker/src/seat/http.rs", "the seat of its clients"),
];

/// Whether a line is part of the help that people read: an example of a command, or a comment.
fn is_example(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "arbiter ", "printf ", "A match with a person", "tricks. People"]
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
        let own = games.iter().any(|game| path.starts_with(format!("games/src/{game}")));
        let allowed = MAY_NAME_GAMES.iter().any(|(place, _)| path.starts_with(place));
        let tested = path
            .iter()
            .any(|part| ["tests", "benches", "tests.rs"].iter().any(|name| part == *name));
        if own || allowed || tested {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let found = named(line) && !is_example(line);
            assert!(!found, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

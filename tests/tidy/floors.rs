//! Imports run down the floors of docs/architecture.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources::{code_and_literals, sources};

/// The floors of each crate, the lowest first: a module may name those on lower floors alone.
const FLOORS: [(&str, &[&str]); 9] = [
    (
        "src",
        &[
            "failure logging",
            "listen output random_seed replay_page worker_process",
            "telemetry play",
            "playground up",
            "cli",
        ],
    ),
    (
        "coordinator/src",
        &[
            "boxed_future game_package",
            "background backoff cache connection_limit db rate_limit record_redaction reply_times",
            "access bot_suspension database_clock keyed_tasks leader_election leaderboard_cache \
             record_store worker_suspension",
            "metrics postgres",
            "queue",
            "retention tournament",
            "maintenance match_audit match_invalidation",
            "service",
            "rpc tricks_http web",
            "coordinator",
        ],
    ),
    (
        "worker/src",
        &[
            "backoff bounded_read connect fault job spool",
            "coordinator_clients",
            "sandbox",
            "bot runtimes seat",
            "bundle",
            "build bundle_download hints referee rules_process",
            "package",
            "package_cache record_writer",
            "bot_cache match_runner",
            "metrics repro trial",
            "slot",
            "worker",
        ],
    ),
    (
        "replay/src",
        &[
            "chunk compression draw piece_hasher plain_line visible_text",
            "other_package seal transcript",
            "line_blocks record_line",
            "read_ahead",
            "lines",
            "reader",
            "steps_builder",
            "recorded_steps render verify write",
            "steps viewer",
            "render_chunks",
            "page",
        ],
    ),
    (
        "proto/src",
        &[
            "v1",
            "client_calls codec edition_status fault forecast ids level limits metrics protocol state_words trace \
             trial tricks_http",
            "convert",
            "settings",
            "assignment",
        ],
    ),
    (
        "schedule/src",
        &[
            "bot repetitions seeded_mix shared_ranks",
            "certificate error roster_history seeding",
            "episodes foursomes round_robin solo",
            "tables",
            "participants planned_match",
            "matches rounds",
            "knockout ladder listed_round swiss",
            "gauntlet stages",
            "round_plan",
            "plan rounds_certificate",
            "config",
            "adjustment",
        ],
    ),
    (
        "games/src",
        &[
            "string_enum",
            "clock move_form quote seat value",
            "name parameter seed",
            "picture",
            "match_state",
            "bounds gtp protocol time_bank",
            "rules",
            "info",
            "params",
            "episode score_check",
            "bitwa blackjack gomoku tricks wojna",
            "games",
        ],
    ),
    (
        "packages/src",
        &[
            "clock files_digest params protocol rules_host view wasi",
            "answer_error archive_writer served_game wasm",
            "answer_check session",
            "episodes match_state",
            "rules",
            "descriptor",
            "game_toml",
            "package_files",
            "starter",
            "source_file",
        ],
    ),
    (
        "ranking/src",
        &[
            "elo entrant u256",
            "confidence scored_match",
            "block_outcomes head_to_head residual statistics",
            "collusion ratings sprt",
        ],
    ),
];

/// The path of the module that a file is, from the crate's root on; empty for the root.
fn module_path(path: &Path, root: &str) -> Option<Vec<String>> {
    let inner = path.strip_prefix(root).ok()?.with_extension("");
    let parts = inner.iter().map(|part| part.to_string_lossy().into_owned());
    Some(parts.filter(|part| !["lib", "main", "mod"].contains(&part.as_str())).collect())
}

/// What a tree of imports names, or a path in an expression: each name in it from `from` on.
fn names(mut text: &str, mut from: Vec<String>, found: &mut Vec<Vec<String>>) {
    loop {
        text = text.trim_start();
        if let Some(group) = text.strip_prefix('{') {
            let mut depth = 0;
            let mut begin = 0;
            for (at, c) in group.char_indices() {
                if depth == 0 && ",}".contains(c) {
                    if !group[begin..at].trim().is_empty() {
                        names(&group[begin..at], from.clone(), found);
                    }
                    begin = at + 1;
                }
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => return,
                    '}' => depth -= 1,
                    _ => {}
                }
            }
            return;
        }
        let ends = |c: char| !(c.is_alphanumeric() || "_*".contains(c));
        let (name, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
        match name {
            "crate" => from.clear(),
            "super" => drop(from.pop()),
            "self" => {}
            name => from.push(name.to_owned()),
        }
        match rest.trim_start().strip_prefix("::") {
            Some(behind) => text = behind,
            None => return found.push(from),
        }
    }
}

/// The lines of a code with the modules that are written out round them.
fn nested(code: &str) -> Vec<(&str, Vec<String>)> {
    let mut within: Vec<(usize, String)> = Vec::new();
    let mut lines = Vec::new();
    for line in code.split_inclusive('\n') {
        let text = line.trim();
        let indent = line.len() - line.trim_start().len();
        if text == "}" && within.last().is_some_and(|(opened, _)| *opened == indent) {
            within.pop();
        }
        lines.push((line, within.iter().map(|(_, name)| name.clone()).collect()));
        let opens = text.strip_suffix('{').and_then(|text| text.split_once("mod "));
        if let Some((_, name)) =
            opens.filter(|(before, _)| before.is_empty() || before.starts_with("pub"))
        {
            within.push((indent, name.trim().to_owned()));
        }
    }
    lines
}

/// What a file names of its crate, by paths from the crate's root on: through `crate::…`, or
/// `super::…`, from where the file is.
fn named_paths(own: &[String], text: &str) -> Vec<Vec<String>> {
    let (code, _) = code_and_literals(text);
    let mut paths = Vec::new();
    let mut at = 0;
    for (line, within) in nested(&code) {
        let from = [own, within.as_slice()].concat();
        for start in ["crate::", "super::"] {
            for (index, _) in line.match_indices(start) {
                let before = line[..index].chars().next_back();
                if before.is_none_or(|c| !(c.is_alphanumeric() || "_:".contains(c))) {
                    names(&code[at + index..], from.clone(), &mut paths);
                }
            }
        }
        at += line.len();
    }
    paths
}

/// Which module each name comes from that the crate's root passes on: by `use one::{Name, …};`.
fn passed_on(root: &str, sources: &[(PathBuf, String)]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (path, text) in sources {
        if module_path(path, root).is_some_and(|own| own.is_empty()) {
            let (code, _) = code_and_literals(text);
            for (at, import) in code.match_indices("use ") {
                names(&code[at + import.len()..], Vec::new(), &mut paths);
            }
        }
    }
    paths
}

/// The arrows between the modules of a crate that do not run down, and the modules without a floor.
fn misplaced(root: &str, floors: &[&str], sources: &[(PathBuf, String)]) -> Vec<String> {
    let floor =
        |module: &str| floors.iter().position(|names| names.split(' ').any(|one| one == module));
    let passed_on = passed_on(root, sources);
    // What the root passes on is named in its module.
    let home = |name: &String| {
        let path = passed_on.iter().find(|path| path.len() > 1 && path.last() == Some(name));
        path.and_then(|path| path.first()).unwrap_or(name).clone()
    };
    let mut wrong = Vec::new();
    for (path, text) in sources {
        let Some(own) = module_path(path, root).filter(|own| !own.is_empty()) else { continue };
        if own[0] == "tests" {
            continue;
        }
        let Some(above) = floor(&own[0]) else {
            let own = &own[0];
            wrong.push(format!(
                "{root}: `{own}` has no floor; add it to FLOORS in tests/tidy/floors.rs"
            ));
            continue;
        };
        let place = path.display();
        let named = named_paths(&own, text);
        let named = named.iter().map(|path| path.first().map_or("*".to_owned(), home));
        for named in named.filter(|named| *named != own[0]) {
            match floor(&named) {
                Some(below) if below < above => {}
                Some(_) => {
                    wrong
                        .push(format!("{place}: names `{named}`, which is not below `{}`", own[0]));
                }
                None => wrong.push(format!(
                    "{place}: names `{named}` of the crate's root, which is above all floors"
                )),
            }
        }
    }
    wrong
}

#[test]
fn no_arrow_runs_up_a_floor() {
    let sources = sources();
    let wrong = FLOORS.iter().flat_map(|(root, floors)| misplaced(root, floors, &sources));
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn an_arrow_that_runs_up_is_seen() {
    let floors = ["db", "queue", "rpc web"];
    let planted_at = |file: &str, text: &str| {
        let root = ("coordinator/src/lib.rs", "pub use db::Row;\npub use web::{page::Page};");
        let files = [root, (file, text)];
        let files = files.map(|(file, text)| (PathBuf::from(file), text.to_owned()));
        misplaced("coordinator/src", &floors, &files)
    };
    let planted = |text: &str| planted_at("coordinator/src/queue/report.rs", text);
    for text in [
        "use crate::db::lots;\nuse crate::queue::Kept;\n",
        "use crate::{Row, db::lots::{self, Lot}};",
        "// crate::rpc is above\n",
        "use super::{check, lease::{self, Lease}};",
        "use super::super::db;",
        "#[cfg(test)]\nmod tests {\n    use super::*;\n    use super::super::keep;\n}\n",
    ] {
        assert_eq!(planted(text), [""; 0], "{text}");
    }
    for text in [
        "use crate::web;",
        "use crate::{\n    db::lots::{self, Lot},\n    rpc::Tls,\n};",
        "let status = crate::rpc::status();",
        "use super::super::web::page;",
        "use super::super::{db, web};",
        "use super::{super::web, check};",
        "let page = super::super::web::page();",
        "use crate::Page;",
        "use crate::Config;",
        "mod tests {\n    use super::super::super::rpc;\n}\n",
    ] {
        assert_eq!(planted(text).len(), 1, "{text}");
    }
    for text in ["use super::web;", "use super::{db, web::page};", "use super::*;"] {
        assert_eq!(planted_at("coordinator/src/queue.rs", text).len(), 1, "{text}");
    }
    assert_eq!(planted_at("coordinator/src/queue/mod.rs", "use super::web;").len(), 1);
    assert_eq!(planted_at("coordinator/src/other.rs", "").len(), 1);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it asks cargo")]
fn plans_rules_and_rankings_need_no_runtime_and_workers_no_database() {
    let pure: &[&str] = &["tokio", "sqlx", "tonic", "hyper", "axum"];
    for (crate_name, libraries) in [
        ("arbiter-games", pure),
        ("arbiter-schedule", pure),
        ("arbiter-packages", pure),
        ("arbiter-ranking", pure),
        ("arbiter-replay", &["sqlx"]),
        ("arbiter-worker", &["sqlx"]),
    ] {
        let tree = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
            .args(["--package", crate_name])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&tree.stderr);
        let tree = String::from_utf8_lossy(&tree.stdout);
        assert!(
            tree.starts_with(crate_name),
            "`cargo tree` does not say what {crate_name} needs: {stderr}{tree}"
        );
        for library in libraries {
            let named = |line: &str| line.starts_with(&format!("{library} "));
            assert!(!tree.lines().any(named), "{crate_name} must not need {library}:\n{tree}");
        }
    }
}

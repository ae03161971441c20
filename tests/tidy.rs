//! The invariants of docs/architecture.md that a compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
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
        let server = path == Path::new("coordinator/src/postgres/cluster_dir.rs");
        let allowed = server || path.starts_with("worker/src/sandbox");
        let found = words.iter().any(|word| text.contains(word));
        assert!(allowed || !found, "{}", path.display());
    }
}

/// What SQL is written with.
const QUERIES: [&str; 5] = ["query_as", "query_scalar", "query_with", "raw_sql", "QueryBuilder"];

/// How a statement of SQL begins.
const STATEMENTS: [&str; 12] = [
    "SELECT",
    "INSERT INTO",
    "UPDATE",
    "DELETE FROM",
    "WITH",
    "COPY",
    "LOCK",
    "CREATE",
    "ALTER",
    "DROP",
    "TRUNCATE",
    "NOTIFY",
];

/// Where `sqlx` may be named outside of the coordinator: identities are bound and read as they are,
/// by a feature that the coordinator alone turns on.
const MAY_NAME_SQLX: &str = "proto/src/ids.rs";

/// Where else a statement may stand: the private Postgres makes its role without a connection.
const MAY_HAVE_STATEMENTS: &str = "coordinator/src/postgres/role.rs";

/// The text without its comments, and the contents of its string literals.
fn code_and_literals(text: &str) -> (String, Vec<String>) {
    let mut code = String::new();
    let mut literals = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let raw = rest.strip_prefix('r').map(|rest| rest.trim_start_matches('#'));
        let raw = raw.filter(|raw| raw.starts_with('"') && !code.ends_with(char::is_alphanumeric));
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some(quoted) = raw {
            let end = format!("\"{}", "#".repeat(rest.len() - quoted.len() - 1));
            let (literal, behind) = quoted[1..].split_once(&end).unwrap_or((&quoted[1..], ""));
            literals.push(literal.to_owned());
            rest = behind;
        } else if let Some(quote) =
            ["'\"'", "'\\\"'"].iter().find(|quote| rest.starts_with(**quote))
        {
            rest = &rest[quote.len()..];
        } else if c == '"' {
            let mut escaped = false;
            let ends = |c: char| {
                let end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                end
            };
            let end = rest[1..].find(ends).map_or(rest.len(), |end| end + 1);
            literals.push(rest[1..end].to_owned());
            rest = rest.get(end + 1..).unwrap_or_default();
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    (code, literals)
}

/// The words of a code.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Where SQL stands that belongs into `coordinator/src/db`; and where `sqlx` is named outside of the
/// coordinator.
fn foreign_sql(path: &Path, text: &str) -> Vec<String> {
    let own = path.starts_with("coordinator/src/db") || path == Path::new("coordinator/src/db.rs");
    if own || !path.iter().any(|part| part == "src") {
        return Vec::new();
    }
    let (code, literals) = code_and_literals(text);
    let sqlx = code.match_indices("sqlx").map(|(at, _)| code[at..].split(';').next());
    let sqlx: Vec<_> = sqlx.map(Option::unwrap_or_default).collect();
    let mut found = Vec::new();
    if !path.starts_with("coordinator/src") && path != Path::new(MAY_NAME_SQLX) {
        found.extend(sqlx.iter().map(|_| "it names sqlx".to_owned()));
    }
    let asks = |word: &&str| word.starts_with("query") || QUERIES.contains(word);
    let imports = sqlx.iter().filter(|rest| code.contains(&format!("use {rest};")));
    let imported = imports.filter_map(|rest| words(rest).find(asks));
    let called = sqlx.iter().filter(|rest| rest.starts_with("sqlx::query"));
    let called = called.filter_map(|rest| words(rest).nth(1));
    let named = words(&code).filter(|word| QUERIES.contains(word));
    let queries: BTreeSet<_> = imported.chain(called).chain(named).collect();
    found.extend(queries.iter().map(|query| format!("it has a query: {query}")));
    if path != Path::new(MAY_HAVE_STATEMENTS) {
        let begins = |literal: &&String| {
            let text = literal.trim_start_matches(['\\', ' ', '\n', '\t']);
            let behind = STATEMENTS.iter().filter_map(|start| text.strip_prefix(start));
            behind
                .into_iter()
                .any(|rest| rest.starts_with(|c: char| c.is_whitespace() || c == '\\'))
        };
        let statements = literals.iter().filter(begins);
        found.extend(statements.map(|literal| format!("it has a statement: \"{literal}\"")));
    }
    let place = path.display();
    found.iter().map(|what| format!("{place}: {what}; SQL stands in coordinator/src/db")).collect()
}

#[test]
fn sql_stands_in_the_database_module_alone() {
    let found = sources().into_iter().flat_map(|(path, text)| foreign_sql(&path, &text));
    assert_eq!(found.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn sql_elsewhere_is_seen() {
    let planted = |path: &str, text: &str| foreign_sql(Path::new(path), text).len();
    for text in [
        "sqlx::query(text).execute(db)",
        "sqlx::query!(\"x\")",
        "use sqlx::query;",
        "use sqlx::{\n    Error, query,\n};",
        "let found = query_as::<_, Row>(text);",
        "query_scalar(text)",
        "let made = QueryBuilder::new(text);",
        "raw_sql(text)",
        "db.execute(\"DELETE FROM lots\").await",
        "db.fetch_all(\n    \"\n     SELECT 1\")",
        "const CLEAR: &str = \"\\\n    UPDATE lots SET state = 1\";",
        "execute(r#\"WITH \"a\" AS (SELECT 1) SELECT 2\"#)",
    ] {
        assert_eq!(planted("coordinator/src/queue/report.rs", text), 1, "{text}");
        assert_eq!(planted("coordinator/src/db/lots.rs", text), 0, "{text}");
    }
    for text in [
        "use sqlx::{Error, PgConnection};",
        "// SELECT is for sqlx::query",
        "Err(\"SELECTED by nobody\")",
        "let mark = '\"'; let query = look.query();",
        "error(\"WITHOUT an end\")",
    ] {
        assert_eq!(planted("coordinator/src/queue/report.rs", text), 0, "{text}");
    }
    for path in ["worker/src/spool.rs", "src/cli/doctor.rs", "games/src/clock.rs"] {
        assert_eq!(planted(path, "use sqlx::PgPool;"), 1, "{path}");
    }
    assert_eq!(planted("tests/support/service.rs", "use sqlx::PgPool;"), 0);
    assert_eq!(planted(MAY_HAVE_STATEMENTS, "run(\"ALTER ROLE arbiter\")"), 0);
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
const FLOORS: [(&str, &[&str]); 8] = [
    (
        "src",
        &[
            "failure logging",
            "listen output seed worker_process",
            "telemetry play",
            "playground up",
            "cli",
        ],
    ),
    (
        "coordinator/src",
        &[
            "backoff cache connection_limit db rate_limit record_redaction reply_times",
            "access bot_suspension database_clock invalidation keyed_tasks leader_election \
             leaderboard_cache record_store worker_suspension",
            "metrics postgres",
            "queue",
            "retention tournament",
            "maintenance match_audit",
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
            "bot seat",
            "bundle",
            "build referee",
            "record",
            "bot_cache match_runner",
            "metrics replay_seat trial",
            "slot",
            "worker",
        ],
    ),
    (
        "replay/src",
        &["compression draw transcript", "record_line", "verify write", "steps", "render"],
    ),
    (
        "proto/src",
        &[
            "v1",
            "codec fault ids level limits metrics protocol trace trial tricks_http",
            "convert settings",
            "assignment",
        ],
    ),
    (
        "schedule/src",
        &[
            "bot repetitions seeded_mix",
            "certificate error roster_history",
            "episodes foursomes round_robin",
            "participants",
            "plan",
            "config",
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
        "ranking/src",
        &["entrant u256", "confidence scored_match", "head_to_head residual", "collusion"],
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

/// What a file names of its own crate, by paths from the crate's root on: through `crate::…`, or
/// `super::…`, from where the file is.
fn named_paths(own: &[String], text: &str) -> Vec<Vec<String>> {
    let (code, _) = code_and_literals(text);
    let mut found = Vec::new();
    let mut at = 0;
    for (line, within) in nested(&code) {
        let from = [own, within.as_slice()].concat();
        for start in ["crate::", "super::"] {
            for (index, _) in line.match_indices(start) {
                let before = line[..index].chars().next_back();
                if before.is_none_or(|c| !(c.is_alphanumeric() || "_:".contains(c))) {
                    names(&code[at + index..], from.clone(), &mut found);
                }
            }
        }
        at += line.len();
    }
    found
}

/// Which module each name comes from that the crate's root passes on: by `use one::{Name, …};`.
fn passed_on(root: &str, sources: &[(PathBuf, String)]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (path, text) in sources {
        if module_path(path, root).is_some_and(|own| own.is_empty()) {
            let (code, _) = code_and_literals(text);
            for (at, import) in code.match_indices("use ") {
                names(&code[at + import.len()..], Vec::new(), &mut found);
            }
        }
    }
    found
}

/// The arrows between the modules of a crate that do not run down, and the modules without a floor.
fn misplaced(root: &str, floors: &[&str], sources: &[(PathBuf, String)]) -> Vec<String> {
    let floor =
        |module: &str| floors.iter().position(|names| names.split(' ').any(|one| one == module));
    let passed_on = passed_on(root, sources);
    // What the root passes on is named in its module.
    let home = |name: &String| {
        let found = passed_on.iter().find(|path| path.len() > 1 && path.last() == Some(name));
        found.and_then(|path| path.first()).unwrap_or(name).clone()
    };
    let mut wrong = Vec::new();
    for (path, text) in sources {
        let Some(own) = module_path(path, root).filter(|own| !own.is_empty()) else { continue };
        if own[0] == "tests" {
            continue;
        }
        let Some(above) = floor(&own[0]) else {
            let own = &own[0];
            wrong.push(format!("{root}: `{own}` has no floor; add it to FLOORS in tests/tidy.rs"));
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
        let said = String::from_utf8_lossy(&tree.stderr);
        let tree = String::from_utf8_lossy(&tree.stdout);
        assert!(
            tree.starts_with(crate_name),
            "`cargo tree` does not say what {crate_name} needs: {said}{tree}"
        );
        for library in libraries {
            let named = |line: &str| line.starts_with(&format!("{library} "));
            assert!(!tree.lines().any(named), "{crate_name} must not need {library}:\n{tree}");
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
    ("coordinator/src/web/api/operations.rs", "their list for programs"),
    ("coordinator/src/web/create_tournament.rs", "the example of a tournament file on its page"),
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

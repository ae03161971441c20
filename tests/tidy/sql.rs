//! SQL stands in the database module alone.

use std::collections::BTreeSet;
use std::path::Path;

use crate::sources::{code_and_literals, sources, words};

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

/// Where SQL stands that belongs into `coordinator/src/db`; and where `sqlx` is named outside of
/// the coordinator.
fn foreign_sql(path: &Path, text: &str) -> Vec<String> {
    let in_db =
        path.starts_with("coordinator/src/db") || path == Path::new("coordinator/src/db.rs");
    if in_db || !path.iter().any(|part| part == "src") {
        return Vec::new();
    }
    let (code, literals) = code_and_literals(text);
    let sqlx = code.match_indices("sqlx").map(|(at, _)| code[at..].split(';').next());
    let sqlx: Vec<_> = sqlx.map(Option::unwrap_or_default).collect();
    let mut violations = Vec::new();
    if !path.starts_with("coordinator/src") && path != Path::new(MAY_NAME_SQLX) {
        violations.extend(sqlx.iter().map(|_| "it names sqlx".to_owned()));
    }
    let asks = |word: &&str| word.starts_with("query") || QUERIES.contains(word);
    let imports = sqlx.iter().filter(|rest| code.contains(&format!("use {rest};")));
    let imported = imports.filter_map(|rest| words(rest).find(asks));
    let called = sqlx.iter().filter(|rest| rest.starts_with("sqlx::query"));
    let called = called.filter_map(|rest| words(rest).nth(1));
    let named = words(&code).filter(|word| QUERIES.contains(word));
    let queries: BTreeSet<_> = imported.chain(called).chain(named).collect();
    violations.extend(queries.iter().map(|query| format!("it has a query: {query}")));
    if path != Path::new(MAY_HAVE_STATEMENTS) {
        let begins = |literal: &&String| {
            let text = literal.trim_start_matches(['\\', ' ', '\n', '\t']);
            let behind = STATEMENTS.iter().filter_map(|start| text.strip_prefix(start));
            behind
                .into_iter()
                .any(|rest| rest.starts_with(|c: char| c.is_whitespace() || c == '\\'))
        };
        let statements = literals.iter().filter(begins);
        violations.extend(statements.map(|literal| format!("it has a statement: \"{literal}\"")));
    }
    let place = path.display();
    violations
        .iter()
        .map(|what| format!("{place}: {what}; SQL stands in coordinator/src/db"))
        .collect()
}

#[test]
fn sql_stands_in_the_database_module_alone() {
    let violations = sources().into_iter().flat_map(|(path, text)| foreign_sql(&path, &text));
    assert_eq!(violations.collect::<Vec<_>>(), [""; 0]);
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

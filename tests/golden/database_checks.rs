//! Checks the database directly with SQL.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, Error, PgConnection};
use tokio::runtime::Runtime;

use crate::support::service::Database;

/// A reader of a database, whose server may be down.
pub(crate) struct DatabaseChecks {
    runtime: Runtime,
    options: PgConnectOptions,
}

/// Errors that must not occur when all tournaments are over: a description, and a statement that
/// counts the error.
const WRONG: [(&str, &str); 9] = [
    ("editions that are not complete", "SELECT count(*) FROM editions WHERE state <> 'complete'"),
    (
        "matches without a result, results without a match",
        "SELECT count(*) FROM matches m FULL JOIN results r
             ON r.edition = m.edition AND r.number = m.number
         WHERE m.edition IS NULL OR r.edition IS NULL",
    ),
    (
        "results without a record, records without a result",
        "SELECT count(*) FROM records c FULL JOIN results r
             ON r.edition = c.edition AND r.number = c.number
         WHERE c.edition IS NULL OR r.edition IS NULL",
    ),
    (
        "editions that do not count each of their matches once",
        "SELECT count(*) FROM editions e LEFT JOIN progress p ON p.edition = e.id
         WHERE p.counted IS DISTINCT FROM e.matches
             OR e.matches <> (SELECT count(*) FROM matches m WHERE m.edition = e.id)",
    ),
    (
        "matches that are not in exactly one counted lot",
        "SELECT count(*) FROM (
             SELECT FROM matches m LEFT JOIN lots l ON l.edition = m.edition
                 AND l.state = 'counted' AND m.number >= l.first_match AND m.number < l.first_match + l.count
             GROUP BY m.edition, m.number HAVING count(l.number) <> 1) AS odd",
    ),
    (
        "lots that are neither counted nor split",
        "SELECT count(*) FROM lots WHERE state NOT IN ('counted', 'split')",
    ),
    (
        "entrants in whose sums there are not just their matches",
        "SELECT count(*) FROM entrants t LEFT JOIN standings s USING (edition, entrant)
         WHERE s.matches IS DISTINCT FROM (
             SELECT nullif(count(*), 0) FROM matches m
             WHERE m.edition = t.edition AND t.entrant = ANY (m.seats))",
    ),
    ("matches with a forfeit", "SELECT count(*) FROM results WHERE forfeits IS NOT NULL"),
    ("matches with a bad answer", "SELECT count(*) FROM results WHERE bad_answers IS NOT NULL"),
];

impl DatabaseChecks {
    pub(crate) fn new(database: &Database) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { runtime: runtime.unwrap(), options: database.postgres.options("postgres") }
    }

    /// The number that a statement returns; `None` if the server is down.
    pub(crate) fn try_number(&self, statement: &'static str) -> Option<i64> {
        let query = async {
            let mut connection = PgConnection::connect_with(&self.options).await?;
            let number = sqlx::query_scalar(statement).fetch_one(&mut connection).await?;
            connection.close().await?;
            Ok::<i64, Error>(number)
        };
        self.runtime.block_on(query).ok()
    }

    pub(crate) fn number(&self, statement: &'static str) -> i64 {
        self.try_number(statement).unwrap()
    }

    /// The rows that a statement returns.
    pub(crate) fn lines(&self, statement: &'static str) -> Vec<String> {
        self.runtime.block_on(async {
            let mut connection = PgConnection::connect_with(&self.options).await.unwrap();
            sqlx::query_scalar(statement).fetch_all(&mut connection).await.unwrap()
        })
    }

    /// Expects that all editions are over and each match was counted once.
    pub(crate) fn expect_exact(&self) {
        for (what, statement) in WRONG {
            assert_eq!(self.number(statement), 0, "{what}");
        }
    }

    /// The bot state after each match.
    pub(crate) fn files(&self) -> Vec<String> {
        self.lines(
            "SELECT format('%s of %s: seat %s left %s', f.number, t.name, seat, f.digest)
             FROM bot_state f JOIN editions e ON e.id = f.edition JOIN tournaments t
                 ON t.id = e.tournament
             ORDER BY t.name, f.number, seat",
        )
    }
}

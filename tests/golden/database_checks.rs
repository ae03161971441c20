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

/// The condition that a match `m` belongs to an edition `e`.
macro_rules! belongs {
    () => {
        "m.tournament = e.tournament AND m.number < e.end_match AND NOT EXISTS (
            SELECT FROM absences a WHERE a.tournament = m.tournament AND a.number = m.number
                AND a.since <= e.number AND (a.until IS NULL OR a.until > e.number))"
    };
}

/// Errors that must not occur when all tournaments are over: a description, and a statement that
/// counts the error.
const WRONG: [(&str, &str); 9] = [
    ("editions that are not complete", "SELECT count(*) FROM editions WHERE state <> 'complete'"),
    (
        "matches without a result, results without a match",
        "SELECT count(*) FROM matches m FULL JOIN results r
             ON r.tournament = m.tournament AND r.number = m.number
         WHERE m.tournament IS NULL OR r.tournament IS NULL",
    ),
    (
        "results without a record, records without a result",
        "SELECT count(*) FROM records c FULL JOIN results r
             ON r.tournament = c.tournament AND r.number = c.number
         WHERE c.tournament IS NULL OR r.tournament IS NULL",
    ),
    (
        "editions that do not count each of their matches once",
        concat!(
            "SELECT count(*) FROM editions e LEFT JOIN progress p ON p.edition = e.id
             WHERE p.counted IS DISTINCT FROM e.matches
                 OR e.matches <> (SELECT count(*) FROM matches m WHERE ",
            belongs!(),
            ")"
        ),
    ),
    (
        "matches that are not in exactly one counted lot",
        "SELECT count(*) FROM (
             SELECT FROM matches m LEFT JOIN lots l ON l.tournament = m.tournament
                 AND l.state = 'counted' AND m.number >= l.number AND m.number < l.number + l.count
             GROUP BY m.tournament, m.number HAVING count(l.number) <> 1) AS odd",
    ),
    ("lots that are not counted", "SELECT count(*) FROM lots WHERE state <> 'counted'"),
    (
        "entrants in whose sums there are not just their matches",
        concat!(
            "SELECT count(*) FROM entrants t JOIN editions e ON e.id = t.edition
             LEFT JOIN standings s USING (edition, entrant)
             WHERE s.matches IS DISTINCT FROM (
                 SELECT nullif(count(*), 0) FROM matches m
                 WHERE t.entrant = ANY (m.seats) AND ",
            belongs!(),
            ")"
        ),
    ),
    ("matches with a forfeit", "SELECT count(*) FROM results WHERE forfeits IS NOT NULL"),
    ("matches with a bad reply", "SELECT count(*) FROM results WHERE bad_answers IS NOT NULL"),
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
             FROM bot_state f JOIN tournaments t ON t.id = f.tournament
             ORDER BY t.name, f.number, seat",
        )
    }
}

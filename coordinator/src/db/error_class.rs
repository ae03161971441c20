//! Classification of database errors.
//!
//! Failed work may be retried at once, may be retried later, or can never succeed. Reports are
//! rejected only if they can never succeed, so a full disk loses no results. The codes are
//! documented in the PostgreSQL documentation, appendix A.

use sqlx::Error;

/// The code of an error that the server reported.
fn code(error: &Error) -> Option<String> {
    error.as_database_error()?.code().map(std::borrow::Cow::into_owned)
}

fn has_code(error: &Error, classes: &[&str]) -> bool {
    code(error).is_some_and(|code| classes.iter().any(|class| code.starts_with(class)))
}

/// Whether the connection failed. Then the state of the server is unknown.
fn is_connection_error(error: &Error) -> bool {
    matches!(error, Error::Io(_) | Error::PoolTimedOut | Error::WorkerCrashed | Error::Protocol(_))
}

/// Whether retries are useless: the values are invalid (class 22) or violate a constraint (class
/// 23).
pub fn is_invalid_data(error: &Error) -> bool {
    has_code(error, &["22", "23"])
}

/// Whether an immediate retry may help: after a deadlock or conflict (class 40), after the loss of
/// the server or connection (classes 08 and 57P), or after the server ended an idle transaction
/// (25P03).
///
/// If only the response to a `COMMIT` was lost, the work is already done. All operations of the
/// queue may be repeated.
pub fn is_transient(error: &Error) -> bool {
    is_connection_error(error) || has_code(error, &["40", "08", "57P", "25P03"])
}

/// Whether the database currently accepts no changes: it is unreachable (08, 57P), lacks resources
/// (53: disk, memory, connections; 58: its files), or is read-only (25006).
pub fn is_unavailable(error: &Error) -> bool {
    is_connection_error(error) || has_code(error, &["08", "57P", "53", "58", "25006"])
}

/// Whether a statement waited too long for a lock of another transaction (55P03).
pub fn is_locked(error: &Error) -> bool {
    has_code(error, &["55P03"])
}

/// Whether a row violates a uniqueness constraint.
pub fn is_duplicate(error: &Error) -> bool {
    matches!(error, Error::Database(error) if error.is_unique_violation())
}

/// Whether a text contains a zero byte, which Postgres cannot store.
pub fn has_zero_byte(error: &Error) -> bool {
    has_code(error, &["22021"])
}

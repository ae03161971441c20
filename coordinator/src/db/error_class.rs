//! Classification of database errors.
//!
//! Work that failed may be retried at once, or later, or can never succeed. Only work that can
//! never succeed is refused: finished work is not lost because a disk was full. The codes are those
//! of the PostgreSQL documentation, appendix A.

use sqlx::Error;

/// The code of an error that the server reported.
fn code(error: &Error) -> Option<String> {
    error.as_database_error()?.code().map(std::borrow::Cow::into_owned)
}

fn has_code(error: &Error, classes: &[&str]) -> bool {
    code(error).is_some_and(|code| classes.iter().any(|class| code.starts_with(class)))
}

/// Whether the connection failed, so that the state of the server is unknown.
fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Io(_) | Error::PoolTimedOut | Error::WorkerCrashed | Error::Protocol(_))
}

/// Whether retries are useless: the values are invalid (class 22) or violate a constraint (class
/// 23).
pub fn is_refused(error: &Error) -> bool {
    has_code(error, &["22", "23"])
}

/// Whether an immediate retry may help, because nothing was done: a deadlock or conflict (class
/// 40), a lost server or connection (classes 08 and 57P), or a transaction that the server ended
/// because it was idle (25P03).
///
/// If the response to a `COMMIT` was lost, the work may be done after all; all operations of the
/// queue may be repeated.
pub fn is_passing(error: &Error) -> bool {
    is_cut(error) || has_code(error, &["40", "08", "57P", "25P03"])
}

/// Whether the database accepts no changes at present: it is unreachable (08, 57P), lacks resources
/// (53: disk, memory, connections; 58: its files), or is read-only (25006).
pub fn is_away(error: &Error) -> bool {
    is_cut(error) || has_code(error, &["08", "57P", "53", "58", "25006"])
}

/// Whether a statement timed out on a lock of another transaction (55P03).
pub fn is_held(error: &Error) -> bool {
    has_code(error, &["55P03"])
}

/// Whether a row was refused because of a uniqueness constraint.
pub fn is_duplicate(error: &Error) -> bool {
    matches!(error, Error::Database(error) if error.is_unique_violation())
}

/// Whether a text was refused because it contains a zero byte.
pub fn is_unwritable(error: &Error) -> bool {
    has_code(error, &["22021"])
}

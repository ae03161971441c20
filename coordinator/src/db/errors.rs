//! What an error of the database means for the work that met it.
//!
//! Three questions decide, each with one answer here: may it be tried again at once, may it be
//! tried again later, or can it never succeed? Only what can never succeed is refused: finished work
//! is not thrown away because a disk was full. The codes are those of the PostgreSQL documentation,
//! appendix A.

use sqlx::Error;

/// The code of an error that the server reported.
fn code(error: &Error) -> Option<String> {
    error.as_database_error()?.code().map(std::borrow::Cow::into_owned)
}

fn has_code(error: &Error, classes: &[&str]) -> bool {
    code(error).is_some_and(|code| classes.iter().any(|class| code.starts_with(class)))
}

/// Whether the connection failed, so that nothing is known of the server.
fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Io(_) | Error::PoolTimedOut | Error::WorkerCrashed | Error::Protocol(_))
}

/// Whether something can never be stored, however often it is tried: its values are none that the
/// tables take (class 22), or contradict what they hold (class 23).
pub fn is_refused(error: &Error) -> bool {
    has_code(error, &["22", "23"])
}

/// Whether trying again at once may help: the database was busy with itself (a deadlock, class 40),
/// or went away (classes 08 and 57P, or the connection broke), or ended a transaction in which we
/// had said nothing for long (25P03), and nothing was done.
///
/// Where the answer to a `COMMIT` was lost something may have been done after all; everything in
/// the queue may be said twice.
pub fn is_passing(error: &Error) -> bool {
    is_cut(error) || has_code(error, &["40", "08", "57P", "25P03"])
}

/// Whether the database takes no changes from anyone at present: it is not there (08, 57P), lacks
/// something that all need (53: disk, memory, connections; 58: its files), or only answers questions
/// (25006).
pub fn is_away(error: &Error) -> bool {
    is_cut(error) || has_code(error, &["08", "57P", "53", "58", "25006"])
}

/// Whether a statement gave way because another transaction holds what it needs (55P03).
pub fn is_held(error: &Error) -> bool {
    has_code(error, &["55P03"])
}

/// Whether something was refused because there is one like it already.
pub fn is_duplicate(error: &Error) -> bool {
    matches!(error, Error::Database(error) if error.is_unique_violation())
}

/// Whether something was refused because no text of a database can be so: it holds a zero.
pub fn is_unwritable(error: &Error) -> bool {
    has_code(error, &["22021"])
}

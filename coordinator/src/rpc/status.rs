//! What calls are told when they cannot be answered.

use std::time::Duration;

use arbiter_proto::convert::Meaningless;
use arbiter_proto::ids::{MatchId, MatchIdError};
use sqlx::Error;
use time::{OffsetDateTime, UtcOffset};
use tonic::Status;

use crate::db;

/// The database failed. What the caller can do about it is to try again or to ask the operator;
/// the cause is for the log.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
pub(crate) fn database(error: Error) -> Status {
    if db::is_duplicate(&error) {
        return Status::aborted("somebody else changed the same at this moment; try again");
    }
    if db::is_unwritable(&error) {
        return Status::invalid_argument("a name holds a character that no name can have");
    }
    if db::is_held(&error) {
        return Status::aborted(
            "the same is being changed at this moment, for instance by an edition that is opened; \
             try again in a moment",
        );
    }
    tracing::error!(%error, "the database failed");
    if db::is_passing(&error) || db::is_away(&error) {
        Status::unavailable("the database does not answer; try again in a moment")
    } else {
        Status::internal("the coordinator failed; its log says why")
    }
}

/// A moment, for people.
pub(super) fn moment(time: OffsetDateTime) -> String {
    let time = time.to_offset(UtcOffset::UTC);
    let (date, (hour, minute, second)) = (time.date(), time.to_hms());
    format!("{date} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A time as messages carry it: microseconds since 1970.
pub(super) fn time_of(micros: i64) -> Result<OffsetDateTime, Status> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000)
        .map_err(|error| Status::invalid_argument(error.to_string()))
}

/// There is no such thing.
pub(super) fn missing(what: &str, name: impl std::fmt::Display) -> Status {
    Status::not_found(format!("there is no {what} `{name}`"))
}

/// Something may be asked again later: in so long.
pub(super) fn later(why: &str, wait: Duration) -> Status {
    let seconds = wait.as_secs() + 1;
    retry_after(Status::resource_exhausted(format!("{why}; wait {seconds} s")), wait)
}

/// A refusal that tells programs after how long it may be asked again.
pub(super) fn retry_after(mut status: Status, wait: Duration) -> Status {
    status.metadata_mut().insert("retry-after", (wait.as_secs() + 1).into());
    status
}

/// A message that means nothing.
pub(super) fn meaningless(error: &Meaningless) -> Status {
    Status::invalid_argument(error.to_string())
}

/// Reads the name of a match.
pub(super) fn match_id(text: &str) -> Result<MatchId, Status> {
    text.parse().map_err(|error: MatchIdError| Status::invalid_argument(error.to_string()))
}

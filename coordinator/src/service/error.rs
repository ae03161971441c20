//! Errors of use cases, with messages for the caller.

use std::fmt::Display;
use std::time::Duration;

use arbiter_proto::convert::InvalidField;
use arbiter_proto::ids::MatchNameError;
use thiserror::Error;

use crate::access::{BadName, UnknownRole};
use crate::db;
use crate::match_invalidation::InvalidationError;
use crate::queue::PlanError;
use crate::tournament::beacon::BeaconError;
use crate::tournament::file::FileError;
use crate::tournament::lifecycle::{CreateError, LifecycleError};
use crate::tournament::open_edition::OpenError;
use crate::tournament::rehearsal::RehearsalError;
use crate::tournament::stored_plan::StoredPlanError;

/// The kind of an error: the canonical codes of gRPC that the coordinator uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A concurrent change came first. The same request may succeed now.
    Aborted,
    /// The name is taken.
    AlreadyExists,
    /// The request took too long to arrive.
    DeadlineExceeded,
    /// The present state does not allow the request.
    FailedPrecondition,
    /// The coordinator failed; its log says why.
    Internal,
    /// The request is wrong in any state.
    InvalidArgument,
    /// There is nothing with this name.
    NotFound,
    /// The caller's role does not allow the request.
    PermissionDenied,
    /// This caller, or all callers together, exceed a limit.
    ResourceExhausted,
    /// The caller sent no valid token.
    Unauthenticated,
    /// The database or the coordinator does not respond at present.
    Unavailable,
}

/// Why a use case was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ServiceError {
    kind: ErrorKind,
    message: String,
    /// How long to wait before the same request may succeed, if that is known.
    retry_after: Option<Duration>,
}

macro_rules! constructors {
    ($($name:ident => $kind:ident),+ $(,)?) => {$(
        #[doc = concat!("An error of the kind [`ErrorKind::", stringify!($kind), "`].")]
        pub(crate) fn $name(message: impl Into<String>) -> Self {
            Self::new(ErrorKind::$kind, message)
        }
    )+};
}

impl ServiceError {
    constructors! {
        aborted => Aborted,
        already_exists => AlreadyExists,
        failed_precondition => FailedPrecondition,
        internal => Internal,
        invalid_argument => InvalidArgument,
        permission_denied => PermissionDenied,
        resource_exhausted => ResourceExhausted,
        unauthenticated => Unauthenticated,
        unavailable => Unavailable,
    }

    /// An error of any kind.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// The error for a name that does not exist.
    pub(crate) fn missing(what: &str, name: impl Display) -> Self {
        Self::new(ErrorKind::NotFound, format!("there is no {what} `{name}`"))
    }

    /// The error for a number that does not exist in `owner`, such as `tournament cup`.
    pub(crate) fn missing_in(owner: impl Display, what: &str, number: impl Display) -> Self {
        Self::new(ErrorKind::NotFound, format!("{owner} has no {what} {number}"))
    }

    /// The coordinator stopped during the request.
    pub(crate) fn stopping() -> Self {
        Self::unavailable("the coordinator is stopping")
    }

    /// The token became invalid during the request.
    pub(crate) fn token_ended() -> Self {
        Self::unauthenticated("this token is no longer valid: it was revoked, replaced or expired")
    }

    /// Adds how long to wait before the same request may succeed.
    #[must_use]
    pub(crate) fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message for the caller.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How long to wait before the same request may succeed, in whole seconds, rounded up.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        self.retry_after.map(|wait| wait.as_secs() + 1)
    }
}

/// An error of the database. The cause is logged. The caller may try again or ask the operator.
impl From<sqlx::Error> for ServiceError {
    fn from(error: sqlx::Error) -> Self {
        if db::is_duplicate(&error) {
            return Self::aborted("another request changed the same data; try again");
        }
        if db::has_zero_byte(&error) {
            return Self::invalid_argument("a name contains a character that is not allowed");
        }
        if db::is_locked(&error) {
            return Self::aborted(
                "another change is in progress, for instance an edition is being opened; try again \
                 in a moment",
            );
        }
        tracing::error!(%error, "database error");
        if db::is_transient(&error) || db::is_unavailable(&error) {
            Self::unavailable("the database does not respond; try again in a moment")
        } else {
            Self::internal("the coordinator failed; its log says why")
        }
    }
}

macro_rules! invalid_arguments {
    ($($error:ty),+ $(,)?) => {$(
        impl From<$error> for ServiceError {
            fn from(error: $error) -> Self {
                Self::invalid_argument(error.to_string())
            }
        }
    )+};
}

invalid_arguments!(BadName, FileError, MatchNameError, InvalidField, UnknownRole);

impl From<CreateError> for ServiceError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Database(error) => error.into(),
            CreateError::Taken { .. } => Self::already_exists(error.to_string()),
            CreateError::BeaconIsPast { .. } => Self::failed_precondition(error.to_string()),
            CreateError::NoRandomNumbers(_) => Self::internal(error.to_string()),
        }
    }
}

impl From<LifecycleError> for ServiceError {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::Database(error) => error.into(),
            other => Self::failed_precondition(other.to_string()),
        }
    }
}

impl From<OpenError> for ServiceError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Database(error)
            | OpenError::State(LifecycleError::Database(error))
            | OpenError::Plan(PlanError::Database(error)) => error.into(),
            other => Self::failed_precondition(other.to_string()),
        }
    }
}

impl From<RehearsalError> for ServiceError {
    fn from(error: RehearsalError) -> Self {
        match error {
            RehearsalError::Database(error) => error.into(),
            RehearsalError::Create(error) => error.into(),
            RehearsalError::Open(error) => error.into(),
            RehearsalError::IsRehearsal { .. }
            | RehearsalError::TooFewBots { .. }
            | RehearsalError::NoName { .. } => Self::failed_precondition(error.to_string()),
        }
    }
}

impl From<StoredPlanError> for ServiceError {
    fn from(error: StoredPlanError) -> Self {
        match error {
            StoredPlanError::Database(error) => error.into(),
            StoredPlanError::Stopped => Self::stopping(),
            other => Self::failed_precondition(other.to_string()),
        }
    }
}

impl From<BeaconError> for ServiceError {
    fn from(error: BeaconError) -> Self {
        match error {
            BeaconError::Database(error) => error.into(),
            BeaconError::State(error) => error.into(),
            BeaconError::Open(cause) => {
                let cause = Self::from(cause);
                let error = format!("cannot open an edition with the value: {}", cause.message);
                Self::new(cause.kind, error)
            }
            BeaconError::Value(_) => Self::invalid_argument(error.to_string()),
            BeaconError::Stopped => Self::unavailable(error.to_string()),
            BeaconError::Settings { .. } => Self::internal(error.to_string()),
            BeaconError::NoBeacon { .. }
            | BeaconError::Early { .. }
            | BeaconError::HasOtherValue { .. } => Self::failed_precondition(error.to_string()),
        }
    }
}

impl From<InvalidationError> for ServiceError {
    fn from(error: InvalidationError) -> Self {
        match error {
            InvalidationError::Database(error) => error.into(),
            other => Self::invalid_argument(other.to_string()),
        }
    }
}

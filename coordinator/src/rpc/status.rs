//! Conversions between service errors and gRPC statuses.

use tonic::{Code, Status};

use crate::service::{ErrorKind, ServiceError};

/// The metadata key that says after how many seconds to try again.
const RETRY_AFTER: &str = "retry-after";

impl From<ServiceError> for Status {
    fn from(error: ServiceError) -> Self {
        let code = match error.kind() {
            ErrorKind::Aborted => Code::Aborted,
            ErrorKind::AlreadyExists => Code::AlreadyExists,
            ErrorKind::DeadlineExceeded => Code::DeadlineExceeded,
            ErrorKind::FailedPrecondition => Code::FailedPrecondition,
            ErrorKind::Internal => Code::Internal,
            ErrorKind::InvalidArgument => Code::InvalidArgument,
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::PermissionDenied => Code::PermissionDenied,
            ErrorKind::ResourceExhausted => Code::ResourceExhausted,
            ErrorKind::Unauthenticated => Code::Unauthenticated,
            ErrorKind::Unavailable => Code::Unavailable,
        };
        let mut status = Self::new(code, error.message());
        if let Some(seconds) = error.retry_after_s() {
            status.metadata_mut().insert(RETRY_AFTER, seconds.into());
        }
        status
    }
}

/// The error of a use case whose request stream failed.
pub(super) fn to_error(status: &Status) -> ServiceError {
    let kind = match status.code() {
        Code::DeadlineExceeded => ErrorKind::DeadlineExceeded,
        Code::InvalidArgument | Code::OutOfRange => ErrorKind::InvalidArgument,
        Code::ResourceExhausted => ErrorKind::ResourceExhausted,
        Code::Unavailable | Code::Cancelled => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    ServiceError::new(kind, status.message())
}

//! Refusals as gRPC says them.

use tonic::{Code, Status};

use crate::service::{ErrorKind, ServiceError};

/// Where a refusal says after how many seconds to ask again.
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

/// A message of a stream that was not taken in, as a use case that reads the stream refuses it.
pub(super) fn refused(status: &Status) -> ServiceError {
    let kind = match status.code() {
        Code::DeadlineExceeded => ErrorKind::DeadlineExceeded,
        Code::InvalidArgument | Code::OutOfRange => ErrorKind::InvalidArgument,
        Code::ResourceExhausted => ErrorKind::ResourceExhausted,
        Code::Unavailable | Code::Cancelled => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    ServiceError::new(kind, status.message())
}

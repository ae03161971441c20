//! API errors as problem documents (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::service::ServiceError;
use crate::web::error::{self, WebError};

pub(super) const MEDIA_TYPE: &str = "application/problem+json";
/// The value of `WWW-Authenticate`.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"arbiter\"");

/// An error (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::web) struct Problem {
    /// `about:blank`: the status identifies the problem.
    r#type: &'static str,
    /// The reason phrase of the status.
    title: &'static str,
    /// The HTTP status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// What is wrong with this request, and how to fix it.
    detail: String,
}

impl Problem {
    pub(in crate::web) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Problem");
        Self { r#type: "about:blank", title, status: status.as_u16(), detail: detail.into() }
    }

    /// An invalid request (400).
    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A missing object (404).
    pub(super) fn not_found(kind: &str, name: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{kind} `{name}` not found"))
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        Self::new(error::http_status(error.kind()), error.message())
    }
}

impl From<WebError> for Problem {
    fn from(error: WebError) -> Self {
        Self::new(error.status(), error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let body = serde_json::to_vec(&self).expect("a problem has only texts and a number");
        let mut response = (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, CHALLENGE);
        }
        error::mark_formatted(&mut response);
        response
    }
}

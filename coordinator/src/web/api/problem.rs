//! Why a program gets no answer, as a problem document (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::service::ServiceError;
use crate::web::error::{self, WebError};

/// The type of the document.
pub(super) const KIND: &str = "application/problem+json";
/// How somebody shows who they are.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"arbiter\"");

/// Why a request was not answered (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::web) struct Problem {
    /// `about:blank`: the status says what kind of problem it is.
    r#type: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// What is wrong with this request, and what may help.
    detail: String,
}

impl Problem {
    pub(in crate::web) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Problem");
        Self { r#type: "about:blank", title, status: status.as_u16(), detail: detail.into() }
    }

    /// A request that means nothing.
    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// There is no such thing.
    pub(super) fn missing(what: &str, name: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what} `{name}`"))
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        Self::new(error::meaning(error.kind()), error.message())
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
        let body = serde_json::to_vec(&self).expect("a problem has nothing but texts and a number");
        let mut answer = (status, [(header::CONTENT_TYPE, KIND)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, CHALLENGE);
        }
        error::mark(&mut answer);
        answer
    }
}

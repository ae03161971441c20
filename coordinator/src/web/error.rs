//! What a browser is told when there is no page: the refusal of the service, in its words.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use tonic::{Code, Status};

use super::page;

/// Why there is no page.
#[derive(Debug)]
pub(super) struct WebError {
    status: StatusCode,
    why: String,
}

impl WebError {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }

    /// An address that leads nowhere.
    pub(super) fn nothing_here() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such page")
    }
}

impl From<Status> for WebError {
    fn from(status: Status) -> Self {
        let code = match status.code() {
            Code::NotFound | Code::FailedPrecondition => StatusCode::NOT_FOUND,
            Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(code, status.message())
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("No page");
        let login = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&self.status);
        let body = html! {
            h1 { (title) }
            p { (self.why) }
            @if login { p { a href="/login" { "Log in" } " with a token that may see it." } }
        };
        (self.status, page::plain(title, &body)).into_response()
    }
}

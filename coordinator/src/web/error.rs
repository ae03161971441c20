//! Error pages: errors of the service, with its messages, and errors of the framework (axum), which
//! occur before a handler runs.

use std::fmt;

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::api::{self, Problem};
use super::layout;
use crate::service::{ErrorKind, ServiceError};

/// The value of `Retry-After`, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");
/// Maximum length of a framework error message, in bytes.
const MAX_MESSAGE_BYTES: usize = 4096;
/// Errors below this path are problem documents, not pages.
const API_PREFIX: &str = "/api/";

/// An error shown as a page.
#[derive(Clone, Debug)]
pub(super) struct WebError {
    status: StatusCode,
    message: String,
    /// The kind of the service's error, if it is one.
    kind: Option<ErrorKind>,
}

impl WebError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), kind: None }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Whether it is an error of the service of one of these kinds.
    pub(super) fn is_of(&self, kinds: &[ErrorKind]) -> bool {
        self.kind.is_some_and(|kind| kinds.contains(&kind))
    }

    /// Whether it says that the input is wrong: it is malformed, or names nothing that exists.
    pub(super) fn is_wrong_input(&self) -> bool {
        [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND].contains(&self.status)
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<ServiceError> for WebError {
    fn from(error: ServiceError) -> Self {
        let kind = error.kind();
        Self { kind: Some(kind), ..Self::new(http_status(kind), error.message()) }
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let login = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&self.status);
        let body = html! {
            p { (self.message) }
            @if login { p { a href="/login" { "Log in" } " with a token that has access." } }
        };
        let mut response = (self.status, layout::public_page(title, &body)).into_response();
        mark_formatted(&mut response);
        // Something has not happened yet, such as the first edition.
        if self.is_of(&[ErrorKind::FailedPrecondition]) {
            response.extensions_mut().insert(TooEarly(self.message));
        }
        response
    }
}

/// Turns errors of these kinds into `None`.
pub(super) fn none_if<T>(
    kinds: &[ErrorKind],
    result: Result<T, ServiceError>,
) -> Result<Option<T>, WebError> {
    match result {
        Err(error) if kinds.contains(&error.kind()) => Ok(None),
        result => Ok(Some(result?)),
    }
}

/// The HTTP status of a service error.
pub(super) fn http_status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::InvalidArgument => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorKind::FailedPrecondition | ErrorKind::AlreadyExists | ErrorKind::Aborted => {
            StatusCode::CONFLICT
        }
        ErrorKind::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::DeadlineExceeded | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Marks an error response as already formatted. Temporary errors get a `Retry-After` header.
pub(super) fn mark_formatted(response: &mut Response) {
    let temporary = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    if temporary.contains(&response.status()) {
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    response.extensions_mut().insert(Formatted);
}

/// The fallback for unknown paths.
pub(super) async fn not_found(uri: Uri) -> Response {
    if uri.path().starts_with(API_PREFIX) {
        return api::not_found().into_response();
    }
    WebError::new(StatusCode::NOT_FOUND, "page not found").into_response()
}

/// Marks an error response that is already a page or a problem document.
#[derive(Clone, Copy, Debug)]
struct Formatted;

/// Marks an error response about something that has not happened yet, with its message.
#[derive(Clone, Debug)]
struct TooEarly(String);

/// Middleware that formats the framework's errors, such as an invalid path or form, a method that
/// is not allowed, or a body that is too large. Browsers get a page and API clients a problem
/// document.
pub(super) async fn format_errors(request: Request, next: Next) -> Response {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let is_options = request.method() == Method::OPTIONS;
    let is_api = request.uri().path().starts_with(API_PREFIX);
    let response = next.run(request).await;
    let status = response.status();
    if is_options && status == StatusCode::METHOD_NOT_ALLOWED {
        return options_response(&response);
    }
    // A page that does not exist yet is not found. An action that is too early is a conflict.
    if let Some(TooEarly(message)) = response.extensions().get().filter(|_| is_read) {
        return WebError::new(StatusCode::NOT_FOUND, message).into_response();
    }
    let is_error = status.is_client_error() || status.is_server_error();
    let is_formatted = response.extensions().get::<Formatted>().is_some();
    if !is_error || is_formatted || !is_plain_text(&response) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_MESSAGE_BYTES).await.unwrap_or_default();
    let message = match String::from_utf8_lossy(&text).into_owned() {
        text if text.is_empty() => default_message(status).to_owned(),
        text => text,
    };
    let mut response = if is_api {
        Problem::new(status, message).into_response()
    } else {
        WebError::new(status, message).into_response()
    };
    if let Some(allowed) = parts.headers.get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, allowed.clone());
    }
    response
}

/// Whether a response is plain text or empty.
fn is_plain_text(response: &Response) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    content_type.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"))
}

/// The message of a framework error without a body.
fn default_message(status: StatusCode) -> &'static str {
    match status {
        StatusCode::METHOD_NOT_ALLOWED => "this address does not support that method",
        StatusCode::NOT_FOUND => "there is nothing at this address",
        _ => "the request cannot be processed",
    }
}

/// The response to `OPTIONS`: the allowed methods, from the `Allow` header of a 405 response.
fn options_response(not_allowed: &Response) -> Response {
    let methods = not_allowed.headers().get(header::ALLOW).and_then(|value| value.to_str().ok());
    let allowed = format!("{},OPTIONS", methods.unwrap_or("GET,HEAD"));
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

//! What a browser is told when there is no page: the refusal of the service, in its words; and what
//! becomes of requests that the framework refuses before anybody here has seen them.

use std::fmt;

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::api::{self, Problem};
use super::page;
use crate::service::{ErrorKind, ServiceError};

/// After how many seconds something that was refused for the moment may be tried again.
const REST: HeaderValue = HeaderValue::from_static("5");
/// The longest refusal of the framework that is told on, in bytes.
const LONGEST: usize = 4096;
/// Where the answers are for programs.
const PROGRAMS: &str = "/api/";

/// Why there is no page.
#[derive(Clone, Debug)]
pub(super) struct WebError {
    status: StatusCode,
    why: String,
    /// Whether it is for what has not happened yet, such as the first edition.
    early: bool,
}

impl WebError {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into(), early: false }
    }

    /// What stands beside a form that is shown again.
    pub(super) fn why(&self) -> &str {
        &self.why
    }

    /// What it means, for programs; with which status a form is shown again.
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<ServiceError> for WebError {
    fn from(error: ServiceError) -> Self {
        let early = error.kind() == ErrorKind::FailedPrecondition;
        Self { early, ..Self::new(meaning(error.kind()), error.message()) }
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("No page");
        let login = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&self.status);
        let body = html! {
            p { (self.why) }
            @if login { p { a href="/login" { "Log in" } " with a token that may see it." } }
        };
        let mut answer = (self.status, page::plain(title, &body)).into_response();
        mark(&mut answer);
        if self.early {
            answer.extensions_mut().insert(Early(self.why));
        }
        answer
    }
}

/// What was answered; nothing if it was refused for one of these reasons.
pub(super) fn unless<T>(
    refusals: &[ErrorKind],
    answered: Result<T, ServiceError>,
) -> Result<Option<T>, WebError> {
    match answered {
        Err(error) if refusals.contains(&error.kind()) => Ok(None),
        answered => Ok(Some(answered?)),
    }
}

/// The status of a refusal over HTTP.
pub(super) fn meaning(kind: ErrorKind) -> StatusCode {
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

/// Marks a refusal as one of ours. One that is for the moment says when to try again.
pub(super) fn mark(answer: &mut Response) {
    if [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&answer.status()) {
        answer.headers_mut().insert(header::RETRY_AFTER, REST);
    }
    answer.extensions_mut().insert(Told);
}

/// Answers for addresses that lead nowhere.
pub(super) async fn nothing_here(uri: Uri) -> Response {
    if uri.path().starts_with(PROGRAMS) {
        return api::nothing_here().into_response();
    }
    WebError::new(StatusCode::NOT_FOUND, "there is no such page").into_response()
}

/// The mark of a refusal that is in our own words already.
#[derive(Clone, Copy, Debug)]
struct Told;

/// The mark of a refusal for what has not happened yet: why.
#[derive(Clone, Debug)]
struct Early(String);

/// Lets no refusal of the framework out as it is: a path or a form that cannot be read, a method
/// that an address does not know, a body that is too large. Browsers get a page that says so,
/// programs a problem document.
pub(super) async fn dress(request: Request, next: Next) -> Response {
    let looks = [Method::GET, Method::HEAD].contains(request.method());
    let options = request.method() == Method::OPTIONS;
    let program = request.uri().path().starts_with(PROGRAMS);
    let answer = next.run(request).await;
    let status = answer.status();
    if options && status == StatusCode::METHOD_NOT_ALLOWED {
        return choices(&answer);
    }
    // A page that is not there yet is not there; what is done too early conflicts.
    if let Some(Early(why)) = answer.extensions().get().filter(|_| looks) {
        return WebError::new(StatusCode::NOT_FOUND, why).into_response();
    }
    let refused = status.is_client_error() || status.is_server_error();
    if !refused || answer.extensions().get::<Told>().is_some() || !is_plain(&answer) {
        return answer;
    }
    let (parts, body) = answer.into_parts();
    let words = to_bytes(body, LONGEST).await.unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    let why = if words.is_empty() { unsaid(status).to_owned() } else { words };
    let mut answer = if program {
        Problem::new(status, why).into_response()
    } else {
        WebError::new(status, why).into_response()
    };
    if let Some(allowed) = parts.headers.get(header::ALLOW) {
        answer.headers_mut().insert(header::ALLOW, allowed.clone());
    }
    answer
}

/// Whether an answer is plain text, or nothing at all.
fn is_plain(answer: &Response) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"))
}

/// What is said where the framework says nothing.
fn unsaid(status: StatusCode) -> &'static str {
    match status {
        StatusCode::METHOD_NOT_ALLOWED => "this address does not know that method",
        StatusCode::NOT_FOUND => "there is nothing at this address",
        _ => "the request cannot be answered",
    }
}

/// Which methods an address knows.
fn choices(refused: &Response) -> Response {
    let allowed = refused.headers().get(header::ALLOW).and_then(|allowed| allowed.to_str().ok());
    let allowed = format!("{},OPTIONS", allowed.unwrap_or("GET,HEAD"));
    let mut answer = StatusCode::NO_CONTENT.into_response();
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        answer.headers_mut().insert(header::ALLOW, allowed);
    }
    answer
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

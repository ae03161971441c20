//! Error pages: errors of the service, with its messages, and errors of the framework (axum), which
//! occur before a handler runs.
//!
//! An error does not know who is logged in. Its response carries the error, and the middleware
//! [`format_errors`] renders the page again for the session of the request ([`OpenedSession`]).

use std::fmt;

use axum::body::to_bytes;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::api::{self, Problem};
use super::return_path::ReturnPath;
use super::session::{OpenedSession, Session, cookie_token};
use super::{WebState, layout};
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

    /// The title of its page.
    fn title(&self) -> &'static str {
        // A page that does not exist yet is not found, but its address is right.
        if self.is_of(&[ErrorKind::FailedPrecondition]) {
            return "This is not possible now";
        }
        match self.status {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                "Something is missing or wrong"
            }
            StatusCode::UNAUTHORIZED => "Please log in",
            StatusCode::FORBIDDEN => "You have no access",
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::METHOD_NOT_ALLOWED => "This address does not do that",
            StatusCode::CONFLICT => "This is not possible now",
            StatusCode::PAYLOAD_TOO_LARGE => "This is too large",
            StatusCode::TOO_MANY_REQUESTS => "Too many requests",
            StatusCode::SERVICE_UNAVAILABLE => "Not available at the moment",
            status if status.is_server_error() => "The server failed",
            status => status.canonical_reason().unwrap_or("Error"),
        }
    }

    /// Its page, in the layout of the session if the visitor is logged in.
    fn page(&self, session: Option<&Session>, back: Option<&ReturnPath>) -> Markup {
        let needs_access = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&self.status);
        let body = html! {
            p { (layout::with_code(&self.sentence())) }
            @if needs_access { p { a href="/login" { "Log in" } " with a token that has access." } }
            @if let Some(back) = back { p { a href=(back.as_str()) { "Go back" } } }
        };
        match session {
            Some(session) => layout::page(self.title(), session, &body),
            None => layout::public_page(self.title(), &body),
        }
    }

    /// Its message as a sentence. A name at its beginning, such as that of a bot, stays as it is:
    /// a name is followed by "of", "is" or "has", or it has a digit or a hyphen.
    pub(super) fn sentence(&self) -> String {
        let message = layout::sentence(&self.message);
        if begins_with_name(&message) { message } else { layout::label(&message) }
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
        let mut response = (self.status, self.page(None, None)).into_response();
        mark_formatted(&mut response);
        response.extensions_mut().insert(self);
        response
    }
}

/// Whether a message begins with the name of a tournament or a bot.
fn begins_with_name(message: &str) -> bool {
    let mut words = message.split(' ');
    let first = words.next().unwrap_or_default();
    let is_word = first.trim_end_matches([':', ',', '.']).bytes().all(|b| b.is_ascii_lowercase());
    let verb = words.next().unwrap_or_default();
    let is_subject = ["it", "this", "that", "there", "he", "she"].contains(&first);
    !is_word || !is_subject && ["of", "is", "has"].contains(&verb)
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

/// Middleware that formats errors: pages in the layout of the session, and the framework's errors,
/// such as an invalid path or form, a method that is not allowed, or a body that is too large.
/// Browsers get a page and API clients a problem document.
pub(super) async fn format_errors(
    State(state): State<WebState>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_options = request.method() == Method::OPTIONS;
    let is_api = request.uri().path().starts_with(API_PREFIX);
    let visit = Visit::of(&mut request);
    let mut response = format_framework_error(is_api, is_options, next.run(request).await).await;
    let Some(error) = response.extensions_mut().remove::<WebError>() else { return response };
    let (status, page) = visit.page(state, error).await;
    // The headers of the response stay, such as the allowed methods.
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.status = status;
    Response::from_parts(parts, page.into_string().into())
}

/// What an error page must know about its request.
#[derive(Debug)]
struct Visit {
    is_read: bool,
    /// Where the visitor comes from, if it is another page of this server.
    back: Option<ReturnPath>,
    /// The session that the handler opened.
    opened: OpenedSession,
    /// The head of the request, if it has a token.
    head: Option<Parts>,
}

impl Visit {
    /// That of a request, whose handler shares its session with it.
    fn of(request: &mut Request) -> Self {
        let opened = OpenedSession::default();
        request.extensions_mut().insert(opened.clone());
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        let path = request.uri().path();
        let back = if is_read {
            ReturnPath::of_request(request.headers())
        } else {
            // An address that only accepts a form leads to the page with the form.
            ReturnPath::of_text(path)
        };
        let is_elsewhere = back != ReturnPath::default() && (!is_read || back.as_str() != path);
        let has_token = cookie_token(request.headers()).is_some();
        let head = has_token.then(|| {
            let mut head = Request::new(()).into_parts().0;
            head.headers.clone_from(request.headers());
            head.extensions.clone_from(request.extensions());
            head
        });
        Self { is_read, back: Some(back).filter(|_| is_elsewhere), opened, head }
    }

    /// The status and the page of an error.
    async fn page(self, state: WebState, error: WebError) -> (StatusCode, Markup) {
        // A page that does not exist yet is not found. An action that is too early is a conflict.
        let is_too_early = self.is_read && error.is_of(&[ErrorKind::FailedPrecondition]);
        let status = if is_too_early { StatusCode::NOT_FOUND } else { error.status };
        let session = match (self.opened.get(), self.head) {
            (Some(session), _) => session,
            // No handler asked for it, for instance because the address is unknown.
            (None, Some(mut head)) => Session::from_request_parts(&mut head, &state).await.ok(),
            (None, None) => None,
        };
        let session = session.filter(Session::is_logged_in);
        (status, error.page(session.as_ref(), self.back.as_ref()))
    }
}

/// Makes the framework's errors errors of this server.
async fn format_framework_error(is_api: bool, is_options: bool, response: Response) -> Response {
    let status = response.status();
    if is_options && status == StatusCode::METHOD_NOT_ALLOWED {
        return options_response(&response);
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

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
use super::csrf_form::WrittenTexts;
use super::return_path::ReturnPath;
use super::session::{OpenedSession, Session, cookie_token};
use super::{WebState, layout};
use crate::access::Secret;
use crate::access::token_throttle::Origin;
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
    /// Why the form was not read, if the error is about that.
    refused_form: Option<FormRefusal>,
}

/// The visitor who reads an error page.
#[derive(Clone, Copy, Debug)]
enum Visitor<'a> {
    /// The request has a token, which may be invalid. This is its session.
    LoggedIn(&'a Session),
    /// The visitor is not logged in.
    LoggedOut,
    /// The page is the same for all visitors, or the session could not be opened.
    Unknown,
}

impl Visitor<'_> {
    fn is_logged_out(self) -> bool {
        matches!(self, Self::LoggedOut)
    }
}

/// Why a form is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormRefusal {
    /// It is of another session.
    OutOfDate,
    /// It is not from a page of this server.
    OtherSite,
}

impl WebError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), kind: None, refused_form: None }
    }

    /// The error for a form that is not read.
    pub(super) fn refused_form(refusal: FormRefusal) -> Self {
        let message = match refusal {
            FormRefusal::OutOfDate => {
                "you have logged in or out since the form was loaded, so nothing was done; load \
                 the page again and send the form again"
            }
            FormRefusal::OtherSite => {
                "nothing was done, because the form is not from a page of this server; open the \
                 page here and send the form from it"
            }
        };
        Self { refused_form: Some(refusal), ..Self::new(StatusCode::FORBIDDEN, message) }
    }

    /// Whether the form is of another session.
    pub(super) fn is_out_of_date_form(&self) -> bool {
        self.refused_form == Some(FormRefusal::OutOfDate)
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
        match self.refused_form {
            Some(FormRefusal::OutOfDate) => return "The form is out of date",
            Some(FormRefusal::OtherSite) => return "The form is from another site",
            None => {}
        }
        // A page that does not exist yet is not found, but its address is right.
        if self.is_of(&[ErrorKind::FailedPrecondition]) {
            return "This is not possible";
        }
        match self.status {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                "Something is missing or wrong"
            }
            StatusCode::UNAUTHORIZED => "Please log in",
            StatusCode::FORBIDDEN => "You have no access",
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::METHOD_NOT_ALLOWED => "This request is not possible here",
            StatusCode::CONFLICT => "This is not possible",
            StatusCode::PAYLOAD_TOO_LARGE => "This is too large",
            StatusCode::TOO_MANY_REQUESTS => "Too many requests",
            StatusCode::SERVICE_UNAVAILABLE => "Not available at the moment",
            status if status.is_server_error() => "The server failed",
            status => status.canonical_reason().unwrap_or("Error"),
        }
    }

    /// Its page, in the layout of the session if the visitor is logged in. It shows the texts that
    /// the visitor wrote into the form.
    fn page(&self, visitor: Visitor<'_>, back: Option<&ReturnPath>, texts: &[String]) -> Markup {
        // A login does not change a page that is the same for all visitors.
        let needs_access = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&self.status)
            && self.refused_form.is_none()
            && !matches!(visitor, Visitor::Unknown);
        let is_out_of_date = self.is_out_of_date_form();
        let back_label = if is_out_of_date { "Load the page again" } else { "Go back" };
        let body = html! {
            p { (layout::sentence(&self.message)) }
            @if needs_access { p { a href="/login" { "Log in" } " with a token that has access." } }
            @if is_out_of_date && visitor.is_logged_out() {
                p { "You are not logged in now. " a href="/login" { "Log in" } }
            }
            @if !texts.is_empty() {
                p { "Copy what you wrote, to paste it into the form again:" }
                @for text in texts {
                    p { textarea rows="6" readonly aria-label="What you wrote" { "\n" (layout::form_value(text)) } }
                }
            }
            @if let Some(back) = back { p { a href=(back.as_str()) { (back_label) } } }
            @if self.status == StatusCode::NOT_FOUND && !matches!(visitor, Visitor::Unknown) {
                p { a href="/" { "See all tournaments" } }
            }
        };
        match visitor {
            Visitor::LoggedIn(session) => layout::page(self.title(), session, &body),
            _ => layout::public_page(self.title(), visitor.is_logged_out(), &body),
        }
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
        let page = self.page(Visitor::Unknown, None, &[]);
        let mut response = (self.status, page).into_response();
        mark_formatted(&mut response);
        response.extensions_mut().insert(self);
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
    WebError::new(StatusCode::NOT_FOUND, "there is no page at this address").into_response()
}

/// Marks an error response that is already a page or a problem document.
#[derive(Clone, Copy, Debug)]
struct Formatted;

/// Middleware that formats errors: pages in the layout of the session, and the framework's errors,
/// such as an invalid path or form, a method that is not allowed, or a body that is too large.
/// Browsers get a page and API clients a problem document.
pub(super) async fn format_errors(
    State(state): State<WebState>,
    request: Request,
    next: Next,
) -> Response {
    let is_options = request.method() == Method::OPTIONS;
    let is_api = request.uri().path().starts_with(API_PREFIX);
    let (mut head, body) = request.into_parts();
    let visit = Visit::of(&mut head, &state).await;
    let answer = next.run(Request::from_parts(head, body)).await;
    let mut response = format_framework_error(is_api, is_options, answer).await;
    let Some(error) = response.extensions_mut().remove::<WebError>() else { return response };
    let (status, page) = visit.page(state, error).await;
    // The headers of the response stay, such as the allowed methods.
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.status = status;
    Response::from_parts(parts, page.into_string().into())
}

/// What an error page must know about its request. Most requests get no error page, so this copies
/// little.
#[derive(Debug)]
struct Visit {
    is_read: bool,
    uri: Uri,
    referer: Option<HeaderValue>,
    host: Option<HeaderValue>,
    /// The session that the handler opened.
    opened: OpenedSession,
    /// The texts in the form that the handler read.
    written: WrittenTexts,
    /// What opens the session, if the request has a token.
    token: Option<(Secret, Origin)>,
}

impl Visit {
    /// That of a request, whose handler shares its session with it.
    async fn of(parts: &mut Parts, state: &WebState) -> Self {
        let opened = OpenedSession::default();
        parts.extensions.insert(opened.clone());
        let written = WrittenTexts::default();
        parts.extensions.insert(written.clone());
        let token = match cookie_token(&parts.headers) {
            Some(token) => {
                let Ok(origin) = Origin::from_request_parts(parts, state).await;
                Some((token, origin))
            }
            None => None,
        };
        Self {
            is_read: [Method::GET, Method::HEAD].contains(&parts.method),
            uri: parts.uri.clone(),
            referer: parts.headers.get(header::REFERER).cloned(),
            host: parts.headers.get(header::HOST).cloned(),
            opened,
            written,
            token,
        }
    }

    /// The page from which the visitor comes, if it is another page of this server. If the browser
    /// does not name it, the page with the form that was sent.
    fn back(&self, error: &WebError) -> Option<ReturnPath> {
        let home = ReturnPath::default();
        let mut back = ReturnPath::of_referer(self.referer.as_ref(), self.host.as_ref());
        // Other addresses may not have a page.
        let has_form =
            ![StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&error.status);
        if back == home && !self.is_read && has_form {
            back = ReturnPath::of_text(self.uri.path());
        }
        let is_here = self.is_read && back.is_of(&self.uri);
        Some(back).filter(|back| *back != home && !is_here)
    }

    /// The status and the page of an error.
    async fn page(self, state: WebState, error: WebError) -> (StatusCode, Markup) {
        // A page that does not exist yet is not found. An action that is too early is a conflict.
        let is_too_early = self.is_read && error.is_of(&[ErrorKind::FailedPrecondition]);
        let status = if is_too_early { StatusCode::NOT_FOUND } else { error.status };
        let back = self.back(&error);
        let opened = self.opened.get();
        let has_neither = opened.is_none() && self.token.is_none();
        let session = match (opened, self.token) {
            (Some(session), _) => session,
            // No handler asked for it, for instance because the address is unknown.
            (None, Some((token, origin))) => {
                Session::open(state.service, Some(token), &origin).await.ok()
            }
            (None, None) => None,
        };
        let visitor = match &session {
            Some(session) if session.is_logged_in() => Visitor::LoggedIn(session),
            Some(_) => Visitor::LoggedOut,
            None if has_neither => Visitor::LoggedOut,
            None => Visitor::Unknown,
        };
        (status, error.page(visitor, back.as_ref(), self.written.get()))
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
        StatusCode::METHOD_NOT_ALLOWED => "the address does not support the method of the request",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tournament::beacon::BeaconError;
    use crate::tournament::lifecycle::LifecycleError;
    use crate::tournament::rehearsal::RehearsalError;

    #[test]
    fn messages_about_something_with_a_name_say_what_it_is() {
        let name = || "ada".to_owned();
        let missing = ServiceError::missing("bot", "ada");
        let rehearsal = RehearsalError::IsRehearsal { name: name(), original: "cup".to_owned() };
        let few = |entered| RehearsalError::TooFewBots { name: name(), least: 2, entered };
        let early = BeaconError::Early(name(), "noon".to_owned());
        for (error, beginning) in [
            (missing, "There is no bot <code>ada</code>."),
            (BeaconError::NoBeacon(name()).into(), "The tournament ada has no beacon: "),
            (early.into(), "Entry to ada has not closed: "),
            (rehearsal.into(), "The tournament ada is a rehearsal; rehearse cup again: "),
            (few(0).into(), "A rehearsal of ada needs at least 2 bots, and none has entered yet."),
            (few(1).into(), "A rehearsal of ada needs at least 2 bots, and 1 has entered."),
            (LifecycleError::Unknown.into(), "There is no such tournament."),
        ] {
            let error = WebError::from(error);
            let page = error.page(Visitor::LoggedOut, None, &[]).into_string();
            assert!(page.contains(&format!("<p>{beginning}")), "{beginning}: {page}");
        }
    }

    #[test]
    fn pages_that_are_the_same_for_all_visitors_offer_no_login() {
        for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::FORBIDDEN] {
            let error = WebError::new(status, "the database does not answer");
            let has_link =
                |visitor| error.page(visitor, None, &[]).into_string().contains("href=\"/login\"");
            assert!(has_link(Visitor::LoggedOut), "{status}");
            assert!(!has_link(Visitor::Unknown), "{status}");
        }
    }

    #[test]
    fn a_form_of_another_session_or_site_is_not_a_lack_of_access() {
        let page = |refusal, texts: &[String]| {
            WebError::refused_form(refusal).page(Visitor::LoggedOut, None, texts).into_string()
        };
        let texts = ["<b>bold</b> plans".to_owned()];
        let stale = page(FormRefusal::OutOfDate, &texts);
        assert!(stale.contains("<h1>The form is out of date</h1>"), "{stale}");
        assert!(stale.contains("\n&lt;b&gt;bold&lt;/b&gt; plans</textarea>"), "{stale}");
        let foreign = page(FormRefusal::OtherSite, &[]);
        assert!(foreign.contains("<h1>The form is from another site</h1>"), "{foreign}");
        for page in [stale, foreign] {
            assert!(!page.contains("no access") && !page.contains("has access"), "{page}");
        }
    }
}

//! Sessions: the user's token, stored in a cookie.
//!
//! Scripts cannot read the cookie (`HttpOnly`), other sites cannot send it (`SameSite=Strict`), and
//! its permissions are checked again for every page. Each form contains a hash of the token (the
//! CSRF token), which other sites cannot know. Forms are accepted from pages of this server only.

use std::sync::{Arc, OnceLock};

use axum::Form;
use axum::extract::{FromRef, FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::actions::Button;
use super::csrf_form::CsrfForm;
use super::error::{FormRefusal, WebError};
use super::layout;
use super::return_path::ReturnPath;
use crate::access::Secret;
use crate::access::token_throttle::Origin;
use crate::service::{Caller, ErrorKind, Service, ServiceError};

const COOKIE_NAME: &str = "arbiter";
/// The key derivation context of CSRF tokens.
const CSRF_CONTEXT: &str = "arbiter web 1 forms";
/// The lifetime of the cookie, in seconds: a week.
const MAX_AGE_S: u32 = 7 * 24 * 60 * 60;
/// Longer tokens are ignored, in bytes.
const MAX_TOKEN_BYTES: usize = 200;

/// The caller of a request, determined once a request, with the service.
#[derive(Clone, Debug)]
pub(super) struct Session {
    token: Option<Secret>,
    pub(super) caller: Caller,
    pub(super) service: Service,
}

impl<S: Sync> FromRequestParts<S> for Session
where
    Service: FromRef<S>,
{
    type Rejection = WebError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, WebError> {
        let token = cookie_token(&parts.headers);
        let session = Self::of_request(parts, state, token).await;
        OpenedSession::record(parts, session.as_ref().ok());
        session
    }
}

/// The session that the handler of a request opened, for error pages: the token of a request is
/// looked up once.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenedSession(Arc<OnceLock<Option<Session>>>);

impl OpenedSession {
    /// The session. The outer `None` says that no handler has opened one, the inner one that the
    /// session could not be opened or that the page is the same for all people.
    #[expect(clippy::option_option, reason = "both levels differ in meaning")]
    pub(super) fn get(&self) -> Option<Option<Session>> {
        self.0.get().cloned()
    }

    /// Shares the session of a request.
    fn record(parts: &Parts, session: Option<&Session>) {
        if let Some(Self(slot)) = parts.extensions.get() {
            // A second session of the request is the same.
            drop(slot.set(session.cloned()));
        }
    }
}

/// The session of a page that is the same for all people: without a token, even if the request has
/// one.
#[derive(Clone, Debug)]
pub(super) struct Anonymous(pub(super) Session);

impl<S: Sync> FromRequestParts<S> for Anonymous
where
    Service: FromRef<S>,
{
    type Rejection = WebError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, WebError> {
        OpenedSession::record(parts, None);
        Session::of_request(parts, state, None).await.map(Self)
    }
}

/// The token in the cookie, if any.
pub(super) fn cookie_token(headers: &HeaderMap) -> Option<Secret> {
    let cookies =
        headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
    let (_, token) = pairs.find(|(name, _)| name.trim() == COOKIE_NAME)?;
    let token = token.trim();
    (!token.is_empty() && token.len() <= MAX_TOKEN_BYTES).then(|| Secret::from(token.to_owned()))
}

impl Session {
    /// The session of a request, with this token.
    async fn of_request<S: Sync>(
        parts: &mut Parts,
        state: &S,
        token: Option<Secret>,
    ) -> Result<Self, WebError>
    where
        Service: FromRef<S>,
    {
        let origin = match Origin::from_request_parts(parts, state).await {
            Ok(origin) => origin,
            Err(never) => match never {},
        };
        Self::open(Service::from_ref(state), token, &origin).await
    }

    /// Opens the session of a request with this token.
    pub(super) async fn open(
        service: Service,
        token: Option<Secret>,
        origin: &Origin,
    ) -> Result<Self, WebError> {
        let caller = service.caller(token.as_ref(), origin).await?;
        Ok(Self { token, caller, service })
    }

    pub(super) fn is_logged_in(&self) -> bool {
        self.token.is_some()
    }

    /// The CSRF token of this session.
    pub(super) fn csrf_token(&self) -> String {
        let token = self.token.as_ref().map_or("", Secret::text);
        blake3::Hash::from_bytes(blake3::derive_key(CSRF_CONTEXT, token.as_bytes())).to_string()
    }

    /// Refuses a form that was not sent from a page of this session.
    pub(super) fn check_csrf(&self, headers: &HeaderMap, token: &str) -> Result<(), WebError> {
        // Hashes are compared in constant time.
        let expected = blake3::Hash::from_hex(self.csrf_token()).ok();
        let actual = blake3::Hash::from_hex(token).ok();
        let is_current = expected.is_some() && expected == actual;
        match (is_same_origin(headers), is_current) {
            (true, true) => Ok(()),
            (true, false) => Err(WebError::refused_form(FormRefusal::OutOfDate)),
            (false, _) => Err(WebError::refused_form(FormRefusal::OtherSite)),
        }
    }
}

/// Whether a request comes from a page of this server, according to the browser's headers.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin" || site == "none";
    }
    match (text("origin"), text("host")) {
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, at)| at == host),
        _ => true,
    }
}

/// Whether the browser reached this server through a proxy with TLS.
pub(super) fn is_https(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https")
}

/// The login page.
pub(super) async fn form(
    session: Session,
    Query(LoginQuery { next }): Query<LoginQuery>,
    headers: HeaderMap,
) -> Markup {
    let next = match &next[..] {
        "" => ReturnPath::of_request(&headers),
        next => ReturnPath::of_text(next),
    };
    login_page(&session, &next, None)
}

/// The query string of the login page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LoginQuery {
    /// The page to which the login returns. Empty: the page with the link.
    next: String,
}

/// The login page. A successful login leads to `next`.
fn login_page(session: &Session, next: &ReturnPath, error: Option<&str>) -> Markup {
    let body = html! {
        (layout::error_message(error))
        p {
            "Leaderboards and matches are public, and replays if the tournament allows it. Log in to "
            "submit bots and to see their output. Your organiser gives you a token. It begins with "
            code { "arb_" } "."
        }
        form method="post" action="/login" {
            input type="hidden" name="next" value=(next.as_str());
            label for="token" { "Token" }
            input #token type="password" name="token" autocomplete="current-password" required
                data-from-link;
            button type="submit" { "Log in" }
        }
    };
    layout::page("Log in", session, &body)
}

/// The login form.
#[derive(Debug, Deserialize)]
pub(super) struct Login {
    token: String,
    /// The page to which the login returns.
    #[serde(default)]
    next: String,
}

pub(super) async fn login(
    session: Session,
    origin: Origin,
    headers: HeaderMap,
    Form(login): Form<Login>,
) -> Result<Response, WebError> {
    if !is_same_origin(&headers) {
        return Err(WebError::refused_form(FormRefusal::OtherSite));
    }
    let next = ReturnPath::of_text(&login.next);
    let token = match Secret::typed(&login.token) {
        Ok(token) => token,
        Err(error) => {
            return Ok(refused_login(&session, &next, &error.to_string()));
        }
    };
    let is_valid = match session.service.log_in(&token, &origin).await {
        Err(error) if error.kind() == ErrorKind::ResourceExhausted => {
            return Ok(too_many_attempts(&session, &next, &error));
        }
        result => result?,
    };
    if !is_valid {
        let error = "The token is invalid, expired or revoked. Check that it is complete, or ask your \
            organiser for a new one.";
        return Ok(refused_login(&session, &next, error));
    }
    Ok(redirect_with_cookie(token.text(), MAX_AGE_S, is_https(&headers), &next))
}

/// The login page with an error.
fn refused_login(session: &Session, next: &ReturnPath, error: &str) -> Response {
    (StatusCode::UNAUTHORIZED, login_page(session, next, Some(error))).into_response()
}

/// The response after too many invalid tokens.
fn too_many_attempts(session: &Session, next: &ReturnPath, error: &ServiceError) -> Response {
    let page = login_page(session, next, Some(error.message()));
    let mut response = (StatusCode::TOO_MANY_REQUESTS, page).into_response();
    if let Some(seconds) = error.retry_after_s() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

pub(super) async fn logout(_: CsrfForm<Button>) -> Response {
    redirect_with_cookie("", 0, false, &ReturnPath::default())
}

/// Sets the cookie and redirects to a page. A `max_age` of 0 s deletes the cookie.
fn redirect_with_cookie(token: &str, max_age: u32, secure: bool, next: &ReturnPath) -> Response {
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!(
        "{COOKIE_NAME}={token}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Strict{secure}"
    );
    let cookie = HeaderValue::from_str(&cookie).expect("a token is plain text");
    ([(header::SET_COOKIE, cookie)], Redirect::to(next.as_str())).into_response()
}

//! Who looks at a page: the token that they logged in with, in a cookie.
//!
//! The cookie is of no use to scripts (`HttpOnly`) nor to other sites (`SameSite=Strict`), and
//! what it allows is asked anew for every page. A form carries a hash of the token, which no other
//! site can know; and whatever changes something must come from a page of this server.

use axum::Form;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::actions::Button;
use super::error::WebError;
use super::page;
use super::posted::Posted;
use crate::access::Secret;
use crate::access::token_throttle::Origin;
use crate::service::{Caller, ErrorKind, Service, ServiceError};

/// The name of the cookie.
const COOKIE: &str = "arbiter";
/// What the hashes in forms are derived for.
const FORMS: &str = "arbiter web 1 forms";
/// How long somebody stays logged in, in seconds: a week.
const STAY: u32 = 7 * 24 * 60 * 60;
/// No token is as long as this, in bytes.
const LONGEST: usize = 200;

/// Who looks, found once a request, and whom they ask.
#[derive(Clone, Debug)]
pub(super) struct Session {
    token: Option<Secret>,
    pub(super) caller: Caller,
    /// What is asked.
    pub(super) service: Service,
}

impl<S: Sync> FromRequestParts<S> for Session
where
    Service: FromRef<S>,
{
    type Rejection = WebError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, WebError> {
        let origin = match Origin::from_request_parts(parts, state).await {
            Ok(origin) => origin,
            Err(never) => match never {},
        };
        let token = cookie(&parts.headers);
        Self::find(Service::from_ref(state), token, &origin).await
    }
}

/// The cookie that a browser brings.
pub(super) fn cookie(headers: &HeaderMap) -> Option<Secret> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|all| all.to_str().ok());
    let mut pairs = cookies.flat_map(|all| all.split(';')).filter_map(|one| one.split_once('='));
    let (_, token) = pairs.find(|(name, _)| name.trim() == COOKIE)?;
    let token = token.trim();
    (!token.is_empty() && token.len() <= LONGEST).then(|| Secret::from(token.to_owned()))
}

impl Session {
    /// The session of a request that shows this token.
    pub(super) async fn find(
        service: Service,
        token: Option<Secret>,
        origin: &Origin,
    ) -> Result<Self, WebError> {
        let caller = service.caller(token.as_ref(), origin).await?;
        Ok(Self { token, caller, service })
    }

    /// Whether somebody has logged in.
    pub(super) fn is_somebody(&self) -> bool {
        self.token.is_some()
    }

    /// What forms of this session carry.
    pub(super) fn csrf(&self) -> String {
        let token = self.token.as_ref().map_or("", Secret::text);
        blake3::Hash::from_bytes(blake3::derive_key(FORMS, token.as_bytes())).to_string()
    }

    /// Whether a form was filled in on a page of this session.
    pub(super) fn check(&self, headers: &HeaderMap, csrf: &str) -> Result<(), WebError> {
        // Hashes are compared in constant time.
        let own = blake3::Hash::from_hex(self.csrf()).ok();
        if is_own(headers) && own.is_some() && own == blake3::Hash::from_hex(csrf).ok() {
            return Ok(());
        }
        let why = "the form did not come from a page of yours; go back, reload, and try again";
        Err(WebError::new(StatusCode::FORBIDDEN, why))
    }
}

/// Whether a request was made by a page of this server, as far as the browser says.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin" || site == "none";
    }
    match (text("origin"), text("host")) {
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, at)| at == host),
        _ => true,
    }
}

/// The page to log in.
pub(super) async fn form(session: Session) -> Markup {
    login_page(&session, None)
}

fn login_page(session: &Session, refused: Option<&str>) -> Markup {
    let body = html! {
        (page::refused(refused))
        p {
            "Leaderboards are for everybody. Records, and what a bot wrote, are for organisers and "
            "for its owner: whoever made your token gave you a text that begins with "
            code { "arb_" } "."
        }
        form method="post" action="/login" {
            label for="token" { "Token" }
            input #token type="password" name="token" autocomplete="current-password" required;
            button type="submit" { "Log in" }
        }
    };
    page::page("Log in", session, &body)
}

/// What is typed to log in.
#[derive(Debug, Deserialize)]
pub(super) struct Login {
    token: String,
}

pub(super) async fn login(
    session: Session,
    origin: Origin,
    headers: HeaderMap,
    Form(login): Form<Login>,
) -> Result<Response, WebError> {
    if !is_own(&headers) {
        return Err(WebError::new(StatusCode::FORBIDDEN, "log in on the page for it"));
    }
    let token = Secret::from(login.token.trim().to_owned());
    let found = match session.service.log_in(&token, &origin).await {
        Err(error) if error.kind() == ErrorKind::ResourceExhausted => {
            return Ok(too_many(&session, &error));
        }
        found => found?,
    };
    let plain = token.text().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !found || !plain {
        let refused = "The token is not known here, or was revoked, or has expired.";
        let page = login_page(&session, Some(refused));
        return Ok((StatusCode::UNAUTHORIZED, page).into_response());
    }
    let secure = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    Ok(with_cookie(token.text(), STAY, secure))
}

/// What somebody is told who has tried too many wrong tokens.
fn too_many(session: &Session, error: &ServiceError) -> Response {
    let page = login_page(session, Some(error.message()));
    let mut response = (StatusCode::TOO_MANY_REQUESTS, page).into_response();
    if let Some(seconds) = error.retry_after_s() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

pub(super) async fn logout(_: Posted<Button>) -> Response {
    with_cookie("", 0, false)
}

/// Sends the browser to the first page, with a cookie that lives so many seconds.
fn with_cookie(token: &str, seconds: u32, secure: bool) -> Response {
    let secure = if secure { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let cookie = HeaderValue::from_str(&cookie).expect("a token is plain text");
    ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response()
}

//! The pages of `arbiter try`, for one browser.
//!
//! The printed address contains a secret, and all pages are below it. Other users of the machine
//! and pages of other sites do not know the secret. The server also refuses host names other than
//! `localhost` (against DNS rebinding) and forms from other origins. Pages work without scripts.

mod bot_console;
mod layout;
mod match_page;
mod new_match;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use arbiter_coordinator::web::{serve_routes, with_assets};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;

use super::Session;
use layout::WebError;

/// Maximum size of a form, in bytes: more than the longest line of any protocol.
const MAX_FORM: usize = 256 * 1024;

/// The context of all pages.
#[derive(Clone, Debug)]
struct PageContext {
    session: Arc<Session>,
    /// The prefix of every path: a slash and the secret.
    root: Arc<str>,
}

impl PageContext {
    /// The path of a page.
    fn path(&self, page: &str) -> String {
        format!("{}/{page}", self.root)
    }
}

/// Serves the pages of a session below this secret.
pub(crate) async fn serve(
    session: Arc<Session>,
    secret: &str,
    listener: TcpListener,
) -> io::Result<()> {
    let context = PageContext { session, root: format!("/{secret}").into() };
    serve_routes(listener, routes(context)).await
}

fn routes(context: PageContext) -> Router {
    let path = |page: &str| context.path(page);
    let routes = Router::new()
        .route(&path(""), get(match_page::show))
        .route(&path("live"), get(match_page::live))
        .route(&path("play"), post(match_page::play))
        .route(&path("pace"), post(match_page::pace))
        .route(&path("record"), get(match_page::record))
        .route(&path("new"), get(new_match::show).post(new_match::start))
        .route(&path("console/{bot}"), get(bot_console::show))
        .route(&path("console/{bot}/say"), post(bot_console::send))
        .route(&path("console/{bot}/end"), post(bot_console::stop))
        .route("/assets/playground.css", get(layout::style))
        .fallback(|| async {
            WebError::new(StatusCode::NOT_FOUND, "there is no page at this address")
        })
        .with_state(context.clone())
        .layer(DefaultBodyLimit::max(MAX_FORM));
    with_assets(routes).layer(middleware::from_fn_with_state(context, guard))
}

/// Refuses requests without the secret or from other origins.
async fn guard(State(context): State<PageContext>, request: Request, next: Next) -> Response {
    match check(&context, request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(
    context: &PageContext,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), WebError> {
    let refuse = |why: &str| Err(WebError::new(StatusCode::FORBIDDEN, why));
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(host) = text(header::HOST) else {
        return Err(WebError::new(StatusCode::BAD_REQUEST, "the Host header is missing"));
    };
    if !is_address(host) {
        return refuse("wrong host name; open the printed address");
    }
    let path = uri.path();
    let prefix = path.get(..=context.root.len()).and_then(|start| start.strip_suffix('/'));
    let has_secret = prefix.is_some_and(|start| constant_time_eq(start, &context.root));
    if !has_secret && !path.starts_with("/assets/") {
        return refuse("the secret is missing; open the whole printed address");
    }
    let is_foreign = |origin: &str| origin.split_once("://").is_none_or(|(_, from)| from != host);
    if method == Method::POST && text(header::ORIGIN).is_some_and(is_foreign) {
        return refuse("this form came from another site; use the pages of this server");
    }
    Ok(())
}

/// Whether a host is an IP address or `localhost`.
pub(crate) fn is_address(host: &str) -> bool {
    let port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, digits)) if port(digits) && (name.ends_with(']') || !name.contains(':')) => {
            name
        }
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

/// Compares two texts in constant time.
fn constant_time_eq(first: &str, second: &str) -> bool {
    let bytes = first.bytes().zip(second.bytes());
    first.len() == second.len()
        && bytes.fold(0, |difference, (first, second)| difference | (first ^ second)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_accepted() {
        for host in
            ["127.0.0.1:80", "127.0.0.1", "localhost:8080", "[::1]:8080", "[::1]", "LOCALHOST"]
        {
            assert!(is_address(host), "{host}");
        }
        for host in
            ["evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "", ":80"]
        {
            assert!(!is_address(host), "{host}");
        }
    }

    #[test]
    fn secrets_are_compared_whole() {
        assert!(constant_time_eq("/abc", "/abc"));
        for wrong in ["/abd", "/ab", ""] {
            assert!(!constant_time_eq(wrong, "/abc"), "{wrong}");
        }
    }
}

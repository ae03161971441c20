//! The pages of `arbiter try`, for one browser.
//!
//! The address that the program prints carries a secret, and everything that shows or changes
//! anything lies below it: another user of the machine, or a page from elsewhere that sends a
//! browser here, cannot know it. Besides, the server answers to addresses and to `localhost` alone,
//! not to names, which anybody can let point here; and a form has to come from a page of this
//! server. Pages work without scripts.

mod console;
mod page;
mod setup;
mod table;

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

use super::House;
use page::WebError;

/// The most that a form holds, in bytes: more than the longest line of any protocol.
const LONGEST_FORM: usize = 256 * 1024;

/// What pages know.
#[derive(Clone, Debug)]
struct Desk {
    house: Arc<House>,
    /// What every path begins with: a slash and the secret.
    root: Arc<str>,
}

impl Desk {
    /// The path of a page.
    fn path(&self, page: &str) -> String {
        format!("{}/{page}", self.root)
    }
}

/// Serves the pages of a house below this secret.
pub(crate) async fn serve(
    house: Arc<House>,
    secret: &str,
    listener: TcpListener,
) -> io::Result<()> {
    let desk = Desk { house, root: format!("/{secret}").into() };
    serve_routes(listener, routes(desk)).await
}

fn routes(desk: Desk) -> Router {
    let at = |page: &str| desk.path(page);
    let own = Router::new()
        .route(&at(""), get(table::show))
        .route(&at("live"), get(table::live))
        .route(&at("play"), post(table::play))
        .route(&at("pace"), post(table::pace))
        .route(&at("record"), get(table::record))
        .route(&at("new"), get(setup::show).post(setup::begin))
        .route(&at("console/{bot}"), get(console::show))
        .route(&at("console/{bot}/say"), post(console::say))
        .route(&at("console/{bot}/end"), post(console::end))
        .route("/assets/try.css", get(page::style))
        .fallback(|| async { WebError::new(StatusCode::NOT_FOUND, "there is no such page") })
        .with_state(desk.clone())
        .layer(DefaultBodyLimit::max(LONGEST_FORM));
    with_assets(own).layer(middleware::from_fn_with_state(desk, guard))
}

/// Lets in who knows the secret, and nobody from elsewhere.
async fn guard(State(desk): State<Desk>, request: Request, next: Next) -> Response {
    match check(&desk, request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn check(desk: &Desk, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), WebError> {
    let refuse = |why: &str| Err(WebError::new(StatusCode::FORBIDDEN, why));
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(host) = text(header::HOST) else {
        return Err(WebError::new(StatusCode::BAD_REQUEST, "a request names the host it is for"));
    };
    if !is_address(host) {
        return refuse("this is not the name of this server; open the address that was printed");
    }
    let path = uri.path();
    let below = path.get(..=desk.root.len()).and_then(|start| start.strip_suffix('/'));
    let known = below.is_some_and(|start| same(start, &desk.root));
    if !known && !path.starts_with("/assets/") {
        return refuse("the address lacks its secret; open the one that was printed, whole");
    }
    let foreign = |origin: &str| origin.split_once("://").is_none_or(|(_, from)| from != host);
    if method == Method::POST && text(header::ORIGIN).is_some_and(foreign) {
        return refuse("this form came from elsewhere; use the pages of this server");
    }
    Ok(())
}

/// Whether a host is told by its address, or is this machine.
fn is_address(host: &str) -> bool {
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

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(one: &str, other: &str) -> bool {
    let bytes = one.bytes().zip(other.bytes());
    one.len() == other.len() && bytes.fold(0, |found, (one, other)| found | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_addresses() {
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
        assert!(same("/abc", "/abc"));
        assert!(!same("/abc", "/abd") && !same("/ab", "/abc") && !same("", "/abc"));
    }
}

//! The web pages: everything the coordinator knows, in a browser.
//!
//! A page asks the use cases that gRPC offers, too ([`crate::service`]), for the caller who looks, and
//! shows the answer: what is on a page and what a command prints cannot differ. Pages are made on the
//! server and work without scripts; the one script brings live numbers and lets replays play.
//! A page takes nothing from anywhere but this server, and its policy tells the browser so.

mod actions;
mod api;
mod assets;
mod bot;
mod chart;
mod collusion;
mod create;
mod done;
mod error;
mod export;
mod films;
mod live;
mod matches;
mod matrix;
mod metrics;
mod multipart;
mod page;
mod posted;
mod queue;
mod ranking;
mod replay;
mod serve;
mod session;
mod submit;
mod tournament;
mod version;
mod void;
mod workers;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;

use crate::cache::Cache;
use crate::metrics::{Observer, count_request};
use crate::service::{ChangeNotifier, Service};
pub use live::stream;
pub use page::framed;

/// What the browser may do for a page: nothing but what this server itself gives it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every answer.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Leaderboards whose markup is kept for those who watch them.
const WATCHED: usize = 256;

/// What pages are made from.
#[derive(Clone, Debug)]
struct Pages {
    service: Service,
    observer: Observer,
    boards: ranking::Rendered,
}

impl FromRef<Pages> for Service {
    fn from_ref(pages: &Pages) -> Self {
        pages.service.clone()
    }
}

/// Serves pages, and tricks over HTTP, until the coordinator stops; then open answers end.
pub async fn serve(
    service: Service,
    observer: Observer,
    tricks_http: Router,
    listener: TcpListener,
) -> io::Result<()> {
    let changes = service.changes.clone();
    let pages = Pages { service, observer, boards: Cache::new(WATCHED) };
    serve::serve(listener, routes(pages, tricks_http), changes).await
}

/// Serves other pages in the same way, with the same limits, until the future is dropped.
pub async fn serve_routes(listener: TcpListener, routes: Router) -> io::Result<()> {
    serve::serve(listener, routes, ChangeNotifier::default()).await
}

/// All pages.
fn routes(pages: Pages, tricks_http: Router) -> Router {
    let metrics = Arc::clone(pages.service.metrics());
    Router::new()
        .route("/", get(tournament::list))
        .route(
            "/new",
            get(create::form)
                .post(create::create)
                .layer(DefaultBodyLimit::max(create::LARGEST_FORM)),
        )
        .route("/t/{tournament}", get(tournament::show))
        .route("/t/{tournament}/live", get(tournament::live))
        .route("/t/{tournament}/start", post(actions::start))
        .route("/t/{tournament}/cancel", post(actions::cancel))
        .route("/t/{tournament}/close", post(actions::close))
        .route("/t/{tournament}/retry", post(actions::retry_all))
        .route("/t/{tournament}/collusion", get(collusion::show))
        .route("/t/{tournament}/void", get(void::form).post(void::apply))
        .route(
            "/t/{tournament}/submit",
            get(submit::form)
                .post(submit::submit)
                .layer(DefaultBodyLimit::max(submit::LARGEST_FORM)),
        )
        .route("/t/{tournament}/ranking", get(ranking::show))
        .route("/t/{tournament}/ranking/live", get(ranking::live))
        .route("/t/{tournament}/ranking.csv", get(export::ranking))
        .route("/t/{tournament}/matrix", get(matrix::show))
        .route("/t/{tournament}/schedule", get(matches::schedule))
        .route("/t/{tournament}/matches", get(matches::list))
        .route("/t/{tournament}/matches.csv", get(export::matches))
        .route("/t/{tournament}/bots/{bot}", get(bot::show))
        .route("/t/{tournament}/bots/{bot}/withdraw", post(actions::withdraw))
        .route("/t/{tournament}/bots/{bot}/reinstate", post(actions::reinstate))
        .route("/t/{tournament}/bots/{bot}/versions/{number}", get(version::show))
        .route("/t/{tournament}/bots/{bot}/versions/{number}/live", get(version::live))
        .route("/t/{tournament}/bots/{bot}/versions/{number}/retry", post(actions::retry_trial))
        .route("/matches/{edition}/{number}", get(replay::show))
        .route("/matches/{edition}/{number}/steps", get(replay::steps))
        .route("/matches/{edition}/{number}/record", get(replay::record))
        .route("/matches/{edition}/{number}/retry", post(actions::retry))
        .route("/queue", get(queue::show))
        .route("/workers", get(workers::show))
        .route("/workers/suspend", post(workers::suspend))
        .route("/workers/reinstate", post(workers::reinstate))
        .route("/login", get(session::form).post(session::login))
        .route("/logout", post(session::logout))
        .route("/assets/arbiter.css", get(assets::style))
        .route("/assets/arbiter.js", get(assets::script))
        .route("/assets/arbiter.svg", get(assets::icon))
        .merge(api::routes())
        .fallback(error::nothing_here)
        .layer(middleware::from_fn(error::dress))
        .route("/metrics", get(metrics::show))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .with_state(pages)
        .merge(tricks_http)
        .layer(middleware::from_fn(add_headers))
        .layer(middleware::from_fn_with_state(metrics, count_request))
}

/// Pages that this program serves elsewhere: they look like these, with the same style sheet, script
/// and icon, and tell the browser the same about what it may do for them.
pub fn dressed(pages: Router) -> Router {
    pages
        .route("/assets/arbiter.css", get(assets::style))
        .route("/assets/arbiter.js", get(assets::script))
        .route("/assets/arbiter.svg", get(assets::icon))
        .layer(middleware::from_fn(add_headers))
}

async fn add_headers(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    for (name, value) in HEADERS {
        answer.headers_mut().entry(name).or_insert(value);
    }
    // Pages change, and may be for one person alone.
    let unsaid = answer.headers_mut().entry(header::CACHE_CONTROL);
    unsaid.or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// The program runs.
async fn healthy() -> &'static str {
    "ok\n"
}

/// The program runs, and its database answers; whether it leads the coordinators of that.
async fn ready(State(Pages { observer, .. }): State<Pages>) -> Response {
    if !observer.is_ready().await {
        let why = "the database does not answer\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    if observer.is_leader() { "ok\nleader\n" } else { "ok\n" }.into_response()
}

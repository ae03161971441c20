//! The web interface: HTML pages, the JSON API and the assets.
//!
//! A page calls the same use cases as gRPC ([`crate::service`]), as the logged-in caller. So a page
//! and a command always show the same data. Pages are rendered on the server and work without
//! scripts. The scripts add live updates and playback of replays.
//! Pages load resources from this server only. A content security policy enforces this.

mod about;
mod actions;
mod announcements;
mod api;
mod assets;
mod balance;
mod bare_page;
mod bot;
mod bot_address;
mod bot_download;
mod bots;
mod bracket;
mod chart;
mod collusion;
mod compression;
mod create_tournament;
mod csrf_form;
mod csv_export;
mod data_archive;
mod data_links;
mod deadline;
mod download;
mod edit;
mod embed;
mod entry_text;
mod error;
mod flash;
mod game_guide;
mod head_to_head;
mod home;
pub mod invitations;
mod layout;
mod leaderboard;
mod markdown;
mod match_invalidation;
mod match_page;
mod matches;
mod me;
mod metrics;
mod multipart;
mod organise;
mod parameter_words;
mod projector;
mod queue;
mod rehearsal;
mod replay_cache;
mod return_path;
mod rounds;
mod routing;
mod schedule;
mod server;
mod session;
mod settings_in_words;
mod sse;
pub mod static_site;
mod statistics;
mod submit;
mod tournament;
mod tournament_form;
mod tournament_links;
mod tournament_page;
mod uploaded_archive;
mod version;
mod worker_audit;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;

use crate::cache::Cache;
use crate::metrics::{Observer, count_request};
use crate::service::{ChangeNotifier, Service};
pub use assets::style;
pub use layout::document;
use routing::{get, post};
pub use sse::stream;

/// The content security policy: resources from this server only. The argument says which sites may
/// show the page in a frame.
macro_rules! content_security_policy {
    ($ancestors:literal) => {
        concat!(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
            connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors ",
            $ancestors
        )
    };
}

/// The content security policy of most pages.
const CONTENT_SECURITY_POLICY: &str = content_security_policy!("'none'");

/// The content security policy of [`Framable`] pages.
const FRAMABLE_POLICY: HeaderValue = HeaderValue::from_static(content_security_policy!("*"));

/// The headers of every response.
const RESPONSE_HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Marks the response with a page that other sites may show in a frame. It must not depend on the
/// session.
#[derive(Clone, Copy, Debug)]
struct Framable;

/// Maximum number of live leaderboard pages whose markup is cached.
const MAX_RENDERED_LEADERBOARDS: usize = 256;

/// The state that all handlers share.
#[derive(Clone, Debug)]
struct WebState {
    service: Service,
    observer: Observer,
    leaderboards: leaderboard::MarkupCache,
}

impl FromRef<WebState> for Service {
    fn from_ref(state: &WebState) -> Self {
        state.service.clone()
    }
}

/// Serves the web interface and tricks over HTTP until the coordinator stops. Then it ends open
/// responses.
pub async fn serve(
    service: Service,
    observer: Observer,
    tricks_http: Router,
    listener: TcpListener,
) -> io::Result<()> {
    let changes = service.changes.clone();
    let state = WebState { service, observer, leaderboards: Cache::new(MAX_RENDERED_LEADERBOARDS) };
    server::serve(listener, routes(state, tricks_http), changes).await
}

/// Serves other routes with the same connection limits, until the future is dropped.
pub async fn serve_routes(listener: TcpListener, routes: Router) -> io::Result<()> {
    server::serve(listener, routes, ChangeNotifier::default()).await
}

/// All routes.
fn routes(state: WebState, tricks_http: Router) -> Router {
    let metrics = Arc::clone(state.service.metrics());
    let routes = Router::new()
        .route("/", get(home::show))
        .merge(creation_routes())
        .route("/t/{tournament}", get(tournament::show))
        .route("/t/{tournament}/live", get(tournament::live))
        .route("/t/{tournament}/about", get(about::show))
        .route("/t/{tournament}/organise", get(organise::show))
        .merge(organiser_routes())
        .route(
            "/t/{tournament}/submit",
            get(submit::form)
                .merge(post(submit::submit))
                .layer(DefaultBodyLimit::max(submit::MAX_FORM_BYTES)),
        )
        .route("/t/{tournament}/how-to-play", get(game_guide::show))
        .route("/t/{tournament}/how-to-play/{language}", get(game_guide::starter))
        .route(
            "/t/{tournament}/package",
            get(game_guide::package)
                .merge(post(actions::send_package))
                .layer(DefaultBodyLimit::max(submit::MAX_FORM_BYTES)),
        )
        .route("/t/{tournament}/ranking", get(tournament::ranking))
        .route("/t/{tournament}/ranking/live", get(leaderboard::live))
        .route("/t/{tournament}/ranking.csv", get(csv_export::ranking))
        .route("/t/{tournament}/statistics", get(statistics::show))
        .route("/t/{tournament}/statistics.csv", get(csv_export::statistics))
        .route("/t/{tournament}/matrix", get(head_to_head::show))
        .route("/t/{tournament}/schedule", get(schedule::show))
        .route("/t/{tournament}/bracket", get(bracket::show))
        .route("/t/{tournament}/rounds", get(rounds::show))
        .route("/t/{tournament}/rounds.trf", get(rounds::trf))
        .route("/t/{tournament}/projector", get(projector::show))
        .route("/t/{tournament}/projector/live", get(projector::live))
        .merge(match_routes())
        .route("/t/{tournament}/data.tar.gz", get(data_archive::show))
        .merge(bot_routes())
        .route("/queue", get(queue::show))
        .route("/workers", get(worker_audit::show))
        .route("/workers/suspend", post(worker_audit::suspend))
        .route("/workers/reinstate", post(worker_audit::reinstate))
        .route(
            "/invitations",
            get(invitations::form)
                .merge(post(invitations::create))
                .layer(DefaultBodyLimit::max(invitations::MAX_FORM_BYTES)),
        )
        .route("/me", get(me::show))
        .route("/login", get(session::form).merge(post(session::login)))
        .route("/logout", post(session::logout))
        .route("/assets/arbiter.css", get(assets::style_sheet))
        .route("/assets/arbiter.js", get(assets::script))
        .route("/assets/replay.js", get(assets::replay_script))
        .route("/assets/arbiter.svg", get(assets::icon))
        .merge(api::routes())
        .fallback(error::not_found)
        .layer(middleware::from_fn_with_state(state.clone(), error::format_errors))
        .route("/metrics", get(metrics::show))
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .with_state(state)
        .merge(tricks_http)
        .layer(middleware::from_fn(compression::compress_pages))
        .layer(middleware::from_fn(add_headers))
        .layer(middleware::from_fn_with_state(metrics, count_request));
    // A layer around all routes sees an address before a route is chosen.
    Router::new().fallback_service(routes).layer(middleware::from_fn(bot_address::join_owner))
}

/// The routes of matches and their replays.
fn match_routes() -> Router<WebState> {
    Router::new()
        .route("/t/{tournament}/matches", get(matches::list))
        .route("/t/{tournament}/matches.csv", get(csv_export::matches))
        .route("/t/{tournament}/matches/{number}", get(match_page::show))
        .route("/t/{tournament}/matches/{number}/steps", get(match_page::steps))
        .route("/t/{tournament}/matches/{number}/embed", get(embed::show))
        .route("/t/{tournament}/matches/{number}/embed/steps", get(embed::steps))
        .route("/t/{tournament}/matches/{number}/record", get(match_page::record))
        .route("/t/{tournament}/matches/{number}/retry", post(actions::retry))
}

/// The routes by which organisers change a tournament.
fn organiser_routes() -> Router<WebState> {
    Router::new()
        .route("/t/{tournament}/edit", get(edit::form).merge(post(edit::submit)))
        .route("/t/{tournament}/announcements", post(announcements::post))
        .route("/t/{tournament}/announcements/{number}/remove", post(announcements::remove))
        .route("/t/{tournament}/start", post(actions::start))
        .route("/t/{tournament}/rehearse", get(rehearsal::form).merge(post(rehearsal::start)))
        .route("/t/{tournament}/cancel", post(actions::cancel))
        .route("/t/{tournament}/close", post(actions::close))
        .route("/t/{tournament}/retry", post(actions::retry_all))
        .route("/t/{tournament}/collusion", get(collusion::show))
        .route(
            "/t/{tournament}/void",
            get(match_invalidation::form).merge(post(match_invalidation::apply)),
        )
}

/// The routes of a bot and its versions.
fn bot_routes() -> Router<WebState> {
    Router::new()
        .route("/t/{tournament}/bots", get(bots::show))
        .route("/t/{tournament}/bots/{bot}", get(bot::show))
        .route("/t/{tournament}/bots/{bot}/download.zip", get(bot_download::download))
        .route("/t/{tournament}/bots/{bot}/withdraw", post(actions::withdraw))
        .route("/t/{tournament}/bots/{bot}/reinstate", post(actions::reinstate))
        .route("/t/{tournament}/bots/{bot}/versions/{number}", get(version::show))
        .route("/t/{tournament}/bots/{bot}/versions/{number}/live", get(version::live))
        .route("/t/{tournament}/bots/{bot}/versions/{number}/retry", post(actions::retry_trial))
}

/// The routes that create a tournament.
fn creation_routes() -> Router<WebState> {
    Router::new()
        .route(
            "/new",
            get(create_tournament::form)
                .merge(post(create_tournament::create))
                .layer(DefaultBodyLimit::max(create_tournament::MAX_FORM_BYTES)),
        )
        .route("/new/game", get(tournament_form::form).merge(post(tournament_form::create)))
        .route(
            "/new/package",
            post(tournament_form::open_package)
                .layer(DefaultBodyLimit::max(submit::MAX_FORM_BYTES)),
        )
}

/// Adds the style sheet, the script, the icon and the security headers of the web interface to the
/// routes of another server.
pub fn with_assets(routes: Router) -> Router {
    routes
        .route("/assets/arbiter.css", get(assets::style_sheet))
        .route("/assets/arbiter.js", get(assets::script))
        .route("/assets/arbiter.svg", get(assets::icon))
        .layer(middleware::from_fn(add_headers))
}

async fn add_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let is_framable = response.extensions_mut().remove::<Framable>().is_some();
    if is_framable {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, FRAMABLE_POLICY);
    }
    for (name, value) in RESPONSE_HEADERS {
        if is_framable && name == header::X_FRAME_OPTIONS {
            continue;
        }
        response.headers_mut().entry(name).or_insert(value);
    }
    // Pages change, and some are private.
    let cache_control = response.headers_mut().entry(header::CACHE_CONTROL);
    cache_control.or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Liveness: the process runs.
async fn health() -> &'static str {
    "ok\n"
}

/// Readiness: the database is reachable. The second line says whether this coordinator is the
/// leader.
async fn readiness(State(WebState { observer, .. }): State<WebState>) -> Response {
    if !observer.is_ready().await {
        let message = "the database is not reachable\n";
        return (StatusCode::SERVICE_UNAVAILABLE, message).into_response();
    }
    if observer.is_leader() { "ok\nleader\n" } else { "ok\n" }.into_response()
}

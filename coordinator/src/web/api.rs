//! The JSON API: read-only, under `/api/v1/`.
//!
//! # Theory of operation
//!
//! The API is a table of endpoints (`endpoints`). An endpoint is a type: its fields are the
//! parameters, its doc comments their descriptions, and its response type gives the schema. The
//! router and the OpenAPI document (at [`OPENAPI_PATH`]) are generated from this one table, so they
//! always agree.
//!
//! An endpoint calls the same services as gRPC, with the caller's token. So commands, pages and API
//! clients see the same data and have the same access.
//!
//! The version in the path changes when a field is removed or changes its meaning. Fields can be
//! added without a new version; clients ignore unknown fields.

#[macro_use]
mod resource;
#[macro_use]
mod endpoints;
mod administration;
mod bots;
mod brackets;
mod endpoint;
mod format;
mod leaderboards;
mod matches;
mod openapi;
mod pagination;
mod problem;
mod response;
mod rounds;
mod tournaments;

use std::sync::Arc;

use arbiter_proto::v1;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Serialize;

use super::invitations::site_address;
use super::routing::get;
use super::session::Session;
use super::{WebState, layout};
pub(super) use endpoint::escape;
use endpoint::{Handler, respond};
pub(super) use format::rfc3339_from_micros;
use openapi::OpenApiDocument;
pub(super) use problem::Problem;

/// A tournament in the form of the API, as indented JSON.
pub(super) fn tournament_json(message: v1::Tournament) -> Bytes {
    indented_json(&tournaments::Tournament::from(message))
}

/// A certificate in the form of the API, as indented JSON.
pub(super) fn certificate_json(message: v1::Certificate) -> Bytes {
    indented_json(&tournaments::Certificate::from(message))
}

fn indented_json(resource: &impl Serialize) -> Bytes {
    let mut text = serde_json::to_vec_pretty(resource).expect("resources have text keys");
    text.push(b'\n');
    text.into()
}

/// The path of the OpenAPI document.
const OPENAPI_PATH: &str = "/api/v1/openapi.json";
/// Caches keep the OpenAPI document for 5 minutes.
const CACHE_CONTROL: &str = "public, max-age=300";

/// Adds endpoints to the router and to the OpenAPI document.
struct EndpointRegistry {
    router: Router<WebState>,
    document: OpenApiDocument,
}

impl EndpointRegistry {
    fn with<E: Handler>(mut self) -> Self {
        self.document.add::<E>();
        self.router = self.router.route(E::PATH, get(respond::<E>));
        self
    }
}

/// All endpoints and the OpenAPI document.
pub(super) fn routes() -> Router<WebState> {
    let empty = EndpointRegistry { router: Router::new(), document: OpenApiDocument::new() };
    let registry = endpoints::register_all(empty).with::<administration::ListTricksRecords>();
    let EndpointRegistry { router, document } = registry;
    let text: Arc<str> = document.finish().to_string().into();
    let openapi = move || async move {
        let content_type = (header::CONTENT_TYPE, "application/json");
        ([content_type, (header::CACHE_CONTROL, CACHE_CONTROL)], text.to_string())
    };
    router
        .route(OPENAPI_PATH, get(openapi))
        .route("/api", get(introduction))
        .route("/api/v1", get(|| async { Redirect::permanent("/api") }))
}

/// The error for an unknown address.
pub(super) fn not_found() -> Problem {
    let detail = format!("there is nothing at this address; {OPENAPI_PATH} lists all addresses");
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// The introduction to the API, for developers.
async fn introduction(session: Session, headers: HeaderMap) -> Markup {
    let api = format!("{}/api/v1", site_address(&headers));
    let token = "-H \"Authorization: Bearer $ARBITER_TOKEN\"";
    let body = html! {
        p {
            "All data on these pages is available as JSON under " code { "/api/v1/" } ". The "
            a href=(OPENAPI_PATH) { "OpenAPI 3.1 document" }
            " describes every address, its parameters and its response. Tools can generate clients "
            "from it."
        }
        p { "The tournaments:" }
        pre { code { "curl -s \"" (api) "/tournaments\"" } }
        p { "The first ten places of the leaderboard of the tournament NAME:" }
        pre { code { "curl -s \"" (api) "/tournaments/NAME/ranking?limit=10\"" } }
        p { "The workers, for organisers:" }
        pre { code { "curl -s " (token) " \"" (api) "/workers\"" } }
        p {
            "Data that is not public requires the same token as the " code { "arbiter" }
            " commands. Responses have an " code { "ETag" } ": a request with " code { "If-None-Match" }
            " returns 304 if nothing has changed. Lists are paginated: " code { "next" }
            " is the URL of the next page. Errors are problem documents (RFC 9457)."
        }
    };
    layout::page("API", &session, &body)
}

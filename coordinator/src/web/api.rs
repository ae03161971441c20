//! Everything that may be read, for programs: JSON under `/api/v1/`.
//!
//! # Theory of operation
//!
//! What can be asked is a table of questions (`questions`). A question is a type: its fields are the
//! parameters of its address, its comments their description, and the type of its answer is the
//! schema of what comes back. The router and the description of the interface (OpenAPI 3.1, at
//! [`DESCRIPTION`]) are both made from this one list, so neither can say what the other does not.
//!
//! A question asks the services that gRPC offers, with the token of whoever asks: what a command
//! prints, a page shows and a program reads cannot differ, and nobody is told here what is kept
//! from them there.
//!
//! The version in the path changes when something is taken away or means something else. What is
//! added does not change it, so programs pass over what they do not know.

#[macro_use]
mod answer;
#[macro_use]
mod questions;
mod bots;
mod describe;
mod matches;
mod operation;
mod paging;
mod problem;
mod question;
mod ranking;
mod reply;
mod tournaments;
mod values;

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use maud::html;

use super::{Pages, page};
use describe::Interface;
pub(super) use problem::Problem;
pub(super) use question::escape;
use question::{Answer, respond};

/// Where the interface is described.
const DESCRIPTION: &str = "/api/v1/openapi.json";
/// How long a description may be kept: a new version of the program is seen within minutes.
const KEEP: &str = "public, max-age=300";

/// Adds questions to a router and to the description of the interface.
struct Listed {
    router: Router<Pages>,
    interface: Interface,
}

impl Listed {
    fn with<Q: Answer>(mut self) -> Self {
        self.interface.add::<Q>();
        self.router = self.router.route(Q::PATH, get(respond::<Q>));
        self
    }
}

/// Every question, and the description of them all.
pub(super) fn routes() -> Router<Pages> {
    let listed = Listed { router: Router::new(), interface: Interface::new() };
    let listed = questions::listed(listed).with::<operation::ListTricks>();
    let Listed { router, interface } = listed;
    let described: Arc<str> = interface.finish().to_string().into();
    let description = move || async move {
        let kind = (header::CONTENT_TYPE, "application/json");
        ([kind, (header::CACHE_CONTROL, KEEP)], described.to_string())
    };
    router
        .route(DESCRIPTION, get(description))
        .route("/api", get(introduction))
        .route("/api/v1", get(|| async { Redirect::permanent("/api") }))
}

/// An address that answers nothing.
pub(super) fn nothing_here() -> Problem {
    let why = format!("there is nothing at this address; {DESCRIPTION} lists what there is");
    Problem::new(StatusCode::NOT_FOUND, why)
}

/// A page for people who want to write such a program.
async fn introduction() -> Response {
    let body = html! {
        p {
            "Everything on these pages is to be had as JSON under " code { "/api/v1/" } ". "
            a href=(DESCRIPTION) { "The description (OpenAPI 3.1)" }
            " names each address, its parameters and what it answers; tools make clients from it."
        }
        pre { "curl -s http://HOST/api/v1/tournaments\n"
            "curl -s http://HOST/api/v1/tournaments/NAME/ranking?limit=10\n"
            "curl -s -H \"Authorization: Bearer $ARBITER_TOKEN\" http://HOST/api/v1/workers" }
        p {
            "What is not for everybody takes a token, as the commands do. Answers have an "
            code { "ETag" } ": whoever asks again with " code { "If-None-Match" }
            " is told 304 while nothing has changed. Lists come in pages, and " code { "next" }
            " is the address of the one that follows. Refusals are problem documents (RFC 9457)."
        }
    };
    page::plain("For programs", &body).into_response()
}

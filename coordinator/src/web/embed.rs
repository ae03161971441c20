//! The replay of a match for a frame on a page of another site.
//!
//! The page is the same for all people, whether they are logged in or not: it shows only replays
//! that are public. So a hostile site that shows it in a frame learns nothing about the visitor.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use super::error::WebError;
use super::match_page::{ChunkQuery, Replay, StepQuery, match_name, steps_of};
use super::session::Anonymous;
use super::{Framable, bare_page, layout};

/// The page for the frame.
pub(super) async fn show(
    Anonymous(session): Anonymous,
    Path((tournament, number)): Path<(String, i64)>,
    Query(StepQuery { step }): Query<StepQuery>,
) -> Response {
    let name = match_name(&tournament, number);
    // A tournament that cannot be read has its name as title.
    let heading = session.service.tournament_heading(&tournament).await;
    let tournament_title = heading.map_or(tournament, |heading| heading.title);
    let title = layout::match_title(&tournament_title, number);
    let opened = Replay::open(&session, &name, step).await;
    let (status, body) = match opened.map_err(WebError::from) {
        Ok(replay) => (StatusCode::OK, page(&name, &title, &replay)),
        Err(error) => (error.status(), refusal(&name, &title, &error)),
    };
    (status, axum::Extension(Framable), body).into_response()
}

fn page(name: &str, match_title: &str, replay: &Replay) -> Markup {
    let bots: Vec<_> = replay.overview().names.iter().map(ToString::to_string).collect();
    let title = format!("{}: {match_title}", bots.join(", "));
    let path = layout::match_path(name);
    let body = html! {
        h1 { a href=(path) target="_blank" rel="noopener" { (title) } }
        (replay.viewer(&path, "embed/steps", None))
    };
    bare_page::render(&title, "embed", &html! {}, &body)
}

/// The page in place of a replay that is not shown.
fn refusal(name: &str, match_title: &str, error: &WebError) -> Markup {
    let title = layout::label(match_title);
    let path = layout::match_path(name);
    let body = html! {
        h1 { a href=(path) target="_blank" rel="noopener" { (title) } }
        p { "The replay is not public: " (layout::end_of_sentence(error.message())) }
    };
    bare_page::render(&title, "embed", &html! {}, &body)
}

/// A chunk of steps for the script of the page.
pub(super) async fn steps(
    Anonymous(session): Anonymous,
    Path((tournament, number)): Path<(String, i64)>,
    Query(ChunkQuery { chunk }): Query<ChunkQuery>,
) -> Result<Response, WebError> {
    steps_of(&session, &match_name(&tournament, number), chunk).await
}

//! The common parts of all pages.

use arbiter_coordinator::web::document;
use arbiter_games::move_form::{FormFields, Grid};
use axum::Form;
use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::PageContext;
use crate::failure::Failure;
use crate::playground::move_form::Fields;

/// A page. Browsers without scripts reload it every second while it is `waiting`.
pub(super) fn page(context: &PageContext, title: &str, waiting: bool, body: &Markup) -> Markup {
    let nav = html! {
        a.home href=(context.path("")) { (context.session.options.game) }
        a href=(context.path("new")) { "New match" }
        @for (index, name) in context.session.names.iter().enumerate() {
            a href=(context.path(&format!("console/{index}"))) { "Talk to " (name) }
        }
    };
    document(title, &head(waiting), &nav, body)
}

/// The additional elements of a page's head.
fn head(waiting: bool) -> Markup {
    html! {
        link rel="stylesheet" href="/assets/playground.css";
        @if waiting { noscript { meta http-equiv="refresh" content="1"; } }
    }
}

/// An error message at the top of a page.
pub(super) fn refused(why: &str) -> Markup {
    html! { p.refused-now role="alert" { (why) } }
}

/// The style sheet of these pages, with the grid of the board's buttons.
pub(super) async fn style(State(context): State<PageContext>) -> impl IntoResponse {
    let mut style = include_str!("../playground.css").to_owned();
    if let Some(board) = board_style(&context) {
        style += &board;
    }
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], style)
}

/// CSS that places the board's buttons over its picture, which is as wide as the page's column.
fn board_style(context: &PageContext) -> Option<String> {
    let Ok(params) = context.session.params(context.session.most_seats, true) else { return None };
    let Grid { columns, rows, before, behind } = params.grid()?;
    #[expect(clippy::cast_precision_loss, reason = "a board has a few columns")]
    let side = columns as f64 + before + behind;
    let percent = |squares: f64| match 100.0 * squares / side {
        0.0 => "0".to_owned(),
        percent => format!("{percent:.4}%"),
    };
    let top = percent(before);
    let bottom = percent(behind);
    let padding = format!("{top} {bottom} {bottom} {top}");
    Some(format!(
        ".squares {{ grid-template-columns: repeat({columns}, 1fr); grid-template-rows: \
         repeat({rows}, 1fr); aspect-ratio: {columns} / {rows}; padding: {padding}; }}\n"
    ))
}

/// An error page.
#[derive(Debug)]
pub(crate) struct WebError {
    status: StatusCode,
    why: String,
}

impl WebError {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }
}

impl From<Failure> for WebError {
    fn from(failure: Failure) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, failure.message())
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("No page");
        let body = html! { h1 { (title) } p { (self.why) } };
        (self.status, document(title, &head(false), &html! {}, &body)).into_response()
    }
}

/// Reads a form or query with any fields; names may repeat.
impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = WebError;

    async fn from_request(request: Request, state: &S) -> Result<Self, WebError> {
        let Form(fields) = Form::from_request(request, state)
            .await
            .map_err(|rejection| WebError::new(rejection.status(), rejection.body_text()))?;
        Ok(Self(FormFields(fields)))
    }
}

//! What all pages have in common.

use arbiter_coordinator::web::document;
use arbiter_games::move_form::{FormFields, Grid};
use axum::Form;
use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::Desk;
use crate::failure::Failure;
use crate::trying::moves::Fields;

/// A page. One that is `waiting` for something that will be there soon is asked for again by
/// browsers without scripts.
pub(super) fn page(desk: &Desk, title: &str, waiting: bool, body: &Markup) -> Markup {
    let nav = html! {
        a.home href=(desk.path("")) { (desk.house.wish.game) }
        a href=(desk.path("new")) { "New match" }
        @for (index, name) in desk.house.names.iter().enumerate() {
            a href=(desk.path(&format!("console/{index}"))) { "Talk to " (name) }
        }
    };
    document(title, &head(waiting), &nav, body)
}

/// What the head of a page has besides what all have.
fn head(waiting: bool) -> Markup {
    html! {
        link rel="stylesheet" href="/assets/try.css";
        @if waiting { noscript { meta http-equiv="refresh" content="1"; } }
    }
}

/// Why something was not done, at the top of the page that offers to do it.
pub(super) fn refused(why: &str) -> Markup {
    html! { p.refused-now role="alert" { (why) } }
}

/// What pages look like beyond the common style sheet; how the buttons lie on the board.
pub(super) async fn style(State(desk): State<Desk>) -> impl IntoResponse {
    let mut style = include_str!("../try.css").to_owned();
    if let Some(board) = board_style(&desk) {
        style += &board;
    }
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], style)
}

/// Places the squares of the board that is played on over its picture, whose side is the width of
/// the page's column.
fn board_style(desk: &Desk) -> Option<String> {
    let Ok(params) = desk.house.params(desk.house.most_seats, true) else { return None };
    let Grid { columns, rows, before, behind } = params.grid()?;
    #[expect(clippy::cast_precision_loss, reason = "a board has a few columns")]
    let side = columns as f64 + before + behind;
    let part = |squares: f64| match 100.0 * squares / side {
        0.0 => "0".to_owned(),
        percent => format!("{percent:.4}%"),
    };
    let top = part(before);
    let bottom = part(behind);
    let padding = format!("{top} {bottom} {bottom} {top}");
    Some(format!(
        ".squares {{ grid-template-columns: repeat({columns}, 1fr); grid-template-rows: \
         repeat({rows}, 1fr); aspect-ratio: {columns} / {rows}; padding: {padding}; }}\n"
    ))
}

/// Why there is no page.
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

/// A form or a query with whatever fields it has, also several of a name.
impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = WebError;

    async fn from_request(request: Request, state: &S) -> Result<Self, WebError> {
        let Form(fields) = Form::from_request(request, state)
            .await
            .map_err(|rejected| WebError::new(rejected.status(), rejected.body_text()))?;
        Ok(Self(FormFields(fields)))
    }
}

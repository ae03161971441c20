//! The style sheet and the script.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;

/// How long a browser may keep them: a new version of the program is seen within minutes.
const KEEP: &str = "public, max-age=300";

/// The style sheet of the pages and that of the pictures.
static STYLE: LazyLock<String> =
    LazyLock::new(|| [include_str!("assets/arbiter.css"), arbiter_replay::STYLE].concat());

pub(super) async fn style() -> impl IntoResponse {
    let headers =
        [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, KEEP)];
    (headers, STYLE.as_str())
}

pub(super) async fn script() -> impl IntoResponse {
    let headers =
        [(header::CONTENT_TYPE, "text/javascript; charset=utf-8"), (header::CACHE_CONTROL, KEEP)];
    (headers, include_str!("assets/arbiter.js"))
}

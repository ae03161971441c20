//! The style sheet, the script and the icon.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;

/// How long a browser may keep them: a new version of the program is seen within minutes.
const KEEP: &str = "public, max-age=300";

/// The style sheet of the pages and that of the pictures.
static STYLE: LazyLock<String> = LazyLock::new(|| {
    let ours = [include_str!("assets/arbiter.css"), include_str!("assets/forms.css")];
    [ours[0], ours[1], arbiter_replay::STYLE].concat()
});

pub(super) async fn style() -> impl IntoResponse {
    asset("text/css; charset=utf-8", &STYLE)
}

pub(super) async fn script() -> impl IntoResponse {
    asset("text/javascript; charset=utf-8", include_str!("assets/arbiter.js"))
}

pub(super) async fn icon() -> impl IntoResponse {
    asset("image/svg+xml", include_str!("assets/arbiter.svg"))
}

fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, KEEP)], text)
}

//! The style sheet, the scripts and the icon.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;

use super::invitations;

/// Browsers cache assets for 5 minutes, so a new version is visible soon.
const CACHE_CONTROL: &str = "public, max-age=300";

/// The icon.
pub(super) const ICON: &str = include_str!("assets/arbiter.svg");

/// The style sheets of the pages, the forms, the invitations, the replays and the projector.
static STYLE_SHEET: LazyLock<String> = LazyLock::new(|| {
    let pages = include_str!("assets/arbiter.css");
    let forms = include_str!("assets/forms.css");
    let projector = include_str!("assets/projector.css");
    [pages, forms, invitations::STYLE, arbiter_replay::STYLE, projector].concat()
});

/// The style sheet of all pages. A page that contains it needs no request for it.
pub fn style() -> &'static str {
    &STYLE_SHEET
}

pub(super) async fn style_sheet() -> impl IntoResponse {
    asset("text/css; charset=utf-8", style())
}

pub(super) async fn replay_script() -> impl IntoResponse {
    asset("text/javascript; charset=utf-8", arbiter_replay::SCRIPT)
}

pub(super) async fn script() -> impl IntoResponse {
    asset("text/javascript; charset=utf-8", include_str!("assets/arbiter.js"))
}

pub(super) async fn icon() -> impl IntoResponse {
    asset("image/svg+xml", ICON)
}

fn asset(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, CACHE_CONTROL)], text)
}

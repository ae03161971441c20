//! Responses that a browser saves as files.

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

/// A file of this name, which needs no escaping, and of this content type.
pub(super) fn file(name: &str, content_type: &'static str, body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    (headers, body.into()).into_response()
}

//! Responses that a browser saves as files.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::service::HeldRecord;

/// A compressed record is sent in chunks of this size, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// A file of this name, which needs no escaping, and of this content type.
pub(super) fn file(name: &str, content_type: &'static str, body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    (headers, body.into()).into_response()
}

/// The body of a response with a compressed record. A public reader has a deadline.
pub(super) fn record(record: &HeldRecord) -> Body {
    let held = record.clone();
    let bytes = Bytes::from_owner(record.clone());
    let chunks = (0..bytes.len()).step_by(CHUNK_BYTES).map(move |begin| {
        if held.is_too_late() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        Ok(bytes.slice(begin..bytes.len().min(begin + CHUNK_BYTES)))
    });
    Body::from_stream(tokio_stream::iter(chunks))
}

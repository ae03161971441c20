//! Pages and assets are compressed by gzip for browsers that accept it.
//!
//! The size of a compressed page depends on which of its parts are equal. If a page has a secret
//! and a text that an attacker chooses, such as a search, the sizes of many pages can tell the
//! secret (the BREACH attack, <https://breachattack.com>). So only pages of requests without a
//! cookie are compressed: they have no secret.

use arbiter_packages::archive_writer::GzipBuffer;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

/// Smaller pages are not compressed, in bytes.
const MIN_BYTES: u64 = 1 << 10;
/// Larger pages are not compressed, in bytes: that would delay others too long.
const MAX_BYTES: u64 = 256 << 10;

/// Whether the sender of a request with these headers accepts this content encoding.
pub(super) fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).into_iter();
    let mut accepted =
        values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    accepted.any(|accepted| accepted.trim() == encoding)
}

/// Compresses by gzip.
pub(super) fn gzip(bytes: &[u8]) -> Bytes {
    let mut buffer = GzipBuffer::default();
    buffer.add(bytes).expect("writing to memory");
    buffer.finish().expect("writing to memory");
    buffer.take().into()
}

/// Middleware that compresses pages for readers without a session.
pub(super) async fn compress_pages(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_public = request.method() == Method::GET && !headers.contains_key(header::COOKIE);
    let is_accepted = is_public && accepts(headers, "gzip");
    let response = next.run(request).await;
    let length = response.body().size_hint().exact();
    let is_suitable = length.is_some_and(|length| (MIN_BYTES..=MAX_BYTES).contains(&length));
    if !is_accepted || !is_suitable || !is_page(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let compressed = gzip(&bytes);
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.insert(header::CONTENT_LENGTH, compressed.len().into());
    parts.headers.append(header::VARY, HeaderValue::from_static("accept-encoding, cookie"));
    Response::from_parts(parts, Body::from(compressed))
}

/// Whether a response is an HTML page that is not compressed yet.
fn is_page(response: &Response) -> bool {
    let headers = response.headers();
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|kind| kind.starts_with(b"text/html"))
        && !headers.contains_key(header::CONTENT_ENCODING)
}

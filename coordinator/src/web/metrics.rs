//! Prometheus metrics on the web port, for organisers only, because they show load and failures.
//! The separate metrics port (`--metrics`) serves them without a token.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use prometheus_client::encoding::text::encode_eof;

use super::WebState;
use super::error::WebError;
use super::session::{Session, cookie_token};
use crate::access::token_throttle::Origin;
use crate::access::{Role, Secret};
use crate::metrics::OPEN_METRICS;

pub(super) async fn show(
    State(WebState { service, observer, .. }): State<WebState>,
    origin: Origin,
    headers: HeaderMap,
) -> Result<impl IntoResponse, WebError> {
    let token = Secret::bearer(&headers).or_else(|| cookie_token(&headers));
    let session = Session::open(service, token, &origin).await?;
    session.caller.require(Role::Organiser)?;
    let mut text = String::new();
    let result = observer.encode(&mut text).await;
    result
        .and_then(|()| encode_eof(&mut text))
        .map_err(|error| WebError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text))
}

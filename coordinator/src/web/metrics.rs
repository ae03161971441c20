//! Figures for Prometheus on the port of the pages, for organisers: they tell how much is played and
//! what fails, which is nobody else's business. Where nobody else can come they are served without a
//! token (`--metrics`).

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use prometheus_client::encoding::text::encode_eof;

use super::Pages;
use super::error::WebError;
use super::session::{Session, cookie};
use crate::access::token_throttle::Origin;
use crate::access::{Role, Secret};
use crate::metrics::OPEN_METRICS;

pub(super) async fn show(
    State(Pages { service, observer, .. }): State<Pages>,
    origin: Origin,
    headers: HeaderMap,
) -> Result<impl IntoResponse, WebError> {
    let token = Secret::bearer(&headers).or_else(|| cookie(&headers));
    let session = Session::find(service, token, &origin).await?;
    session.caller.require(Role::Organiser)?;
    let mut text = String::new();
    let written = observer.encode(&mut text).await;
    written
        .and_then(|()| encode_eof(&mut text))
        .map_err(|error| WebError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text))
}

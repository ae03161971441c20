//! Figures for Prometheus on the port of the pages, for organisers: they tell how much is played and
//! what fails, which is nobody else's business. Where nobody else can come they are served without a
//! token (`--metrics`).

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use prometheus_client::encoding::text::encode_eof;
use tonic::metadata::MetadataValue;

use super::error::WebError;
use super::session::Session;
use crate::access::Role;
use crate::metrics::{OPEN_METRICS, Observer};
use crate::rpc::Shared;

pub(super) async fn show(
    State(shared): State<Shared>,
    session: Session,
    headers: HeaderMap,
) -> Result<impl IntoResponse, WebError> {
    let mut asked = session.ask(());
    let bearer = headers.get(header::AUTHORIZATION);
    if let Some(bearer) = bearer.and_then(|text| MetadataValue::try_from(text.as_bytes()).ok()) {
        asked.metadata_mut().insert("authorization", bearer);
    }
    shared.admit(&asked, Role::Organiser).await?;
    let mut text = String::new();
    let written = Observer::new(shared).figures(&mut text).await;
    written
        .and_then(|()| encode_eof(&mut text))
        .map_err(|error| WebError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text))
}

//! Figures on an address of their own, for whoever gets there.

use std::fmt;

use arbiter_coordinator::metrics::OPEN_METRICS;
use arbiter_coordinator::web::serve_routes;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode_eof;
use tokio::net::TcpListener;

use super::{Sources, process};

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, sources: Sources) {
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(sources);
    if let Err(error) = serve_routes(listener, routes).await {
        tracing::error!(%error, "figures are not served any more");
    }
}

async fn metrics(State(sources): State<Sources>) -> Response {
    match figures(&sources).await {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn figures(sources: &Sources) -> Result<String, fmt::Error> {
    let mut text = String::new();
    process::figures(&mut text)?;
    if let Some(coordinator) = &sources.coordinator {
        coordinator.encode(&mut text).await?;
    }
    if let Some(worker) = &sources.worker {
        text.push_str(&worker.figures().await.text);
    }
    encode_eof(&mut text)?;
    Ok(text)
}

/// Whether there is somebody to work for, or with.
async fn ready(State(sources): State<Sources>) -> Response {
    let unready = |why| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if let Some(coordinator) = &sources.coordinator
        && !coordinator.is_ready().await
    {
        return unready("the database does not answer\n");
    }
    if let Some(worker) = &sources.worker
        && !worker.figures().await.connected
    {
        return unready("no coordinator\n");
    }
    "ok\n".into_response()
}

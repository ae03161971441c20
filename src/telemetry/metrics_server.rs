//! Serves metrics and health checks on a separate address, without authentication.

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

use super::{Sources, process_metrics};

/// Serves until the task is aborted.
pub(super) async fn serve(listener: TcpListener, sources: Sources) {
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(sources);
    if let Err(error) = serve_routes(listener, routes).await {
        tracing::error!(%error, "the metrics server stopped");
    }
}

async fn metrics(State(sources): State<Sources>) -> Response {
    match encode(&sources).await {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn encode(sources: &Sources) -> Result<String, fmt::Error> {
    let mut text = String::new();
    process_metrics::encode(&mut text)?;
    if let Some(coordinator) = &sources.coordinator {
        coordinator.encode(&mut text).await?;
    }
    if let Some(worker) = &sources.worker {
        text.push_str(&worker.fetch().await.text);
    }
    encode_eof(&mut text)?;
    Ok(text)
}

/// Whether the database responds and the worker is connected.
async fn ready(State(sources): State<Sources>) -> Response {
    let unready = |why| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if let Some(coordinator) = &sources.coordinator
        && !coordinator.is_ready().await
    {
        return unready("the database does not respond\n");
    }
    if let Some(worker) = &sources.worker
        && !worker.fetch().await.connected
    {
        return unready("the worker is not connected to a coordinator\n");
    }
    "ok\n".into_response()
}

//! Metrics, health checks and traces of services.

mod metrics_server;
mod process_metrics;
pub(crate) mod traces;

use std::sync::Arc;

use arbiter_coordinator::metrics::Observer;
use arbiter_worker::metrics::Metrics;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::worker_process::{MetricsSource, WorkerMetrics};
use traces::Traces;

/// The sources of metrics in this process.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The coordinator, if there is one.
    pub(crate) coordinator: Option<Observer>,
    /// The worker, if there is one.
    pub(crate) worker: Option<WorkerSource>,
}

/// Where a worker's metrics come from.
#[derive(Clone, Debug)]
pub(crate) enum WorkerSource {
    /// The worker runs in this process.
    InProcess(Arc<Metrics>),
    /// The worker is a child process.
    Process(MetricsSource),
}

impl WorkerSource {
    async fn fetch(&self) -> WorkerMetrics {
        match self {
            Self::InProcess(metrics) => WorkerMetrics::of(metrics),
            Self::Process(process) => process.fetch().await,
        }
    }
}

/// Telemetry that is prepared but has no sources of metrics yet.
#[derive(Debug)]
pub(crate) struct PreparedTelemetry {
    pub(crate) listener: Option<TcpListener>,
    pub(crate) traces: Option<Traces>,
}

/// Running telemetry.
#[derive(Debug)]
pub(crate) struct Telemetry {
    server: Option<JoinHandle<()>>,
    traces: Option<Traces>,
}

impl PreparedTelemetry {
    /// Starts serving the metrics of these sources.
    pub(crate) fn serve(self, sources: Sources) -> Telemetry {
        let Self { listener, traces } = self;
        let server =
            listener.map(|listener| tokio::spawn(metrics_server::serve(listener, sources)));
        Telemetry { server, traces }
    }
}

impl Telemetry {
    /// Stops after sending the last spans.
    pub(crate) async fn stop(self) {
        if let Some(server) = self.server {
            server.abort();
        }
        if let Some(traces) = self.traces {
            traces.stop().await;
        }
    }
}

//! The telemetry options of services: metrics and traces.

use std::net::SocketAddr;

use clap::Args;

use crate::failure::Failure;
use crate::listen::listen_if;
use crate::telemetry::{PreparedTelemetry, traces};

/// Where metrics are served and traces are sent.
#[derive(Clone, Debug, Args)]
pub(super) struct TelemetryArgs {
    /// Serve Prometheus metrics (/metrics) and health checks (/healthz, /readyz) on this address,
    /// without authentication, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDR", env = "ARBITER_METRICS")]
    metrics: Option<SocketAddr>,
    /// Send traces to this OpenTelemetry collector (OTLP over gRPC), such as
    /// `http://127.0.0.1:4317`.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
}

impl TelemetryArgs {
    /// Starts the metrics server and the tracing of this service.
    pub(super) async fn begin(&self, service: &'static str) -> Result<PreparedTelemetry, Failure> {
        let listener = listen_if(self.metrics, "--metrics").await?;
        let traces = self.otlp().map(|url| traces::start(url, service)).transpose()?;
        Ok(PreparedTelemetry { listener, traces })
    }

    /// The collector's URL. An empty variable counts as unset.
    pub(super) fn otlp(&self) -> Option<&str> {
        self.otlp.as_deref().filter(|url| !url.is_empty())
    }
}

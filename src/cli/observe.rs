//! What a service shows of itself to whoever operates it: the options for that.

use std::net::SocketAddr;

use clap::Args;

use crate::failure::Failure;
use crate::listen::listen_if;
use crate::observe::{Observing, traces};

/// What is shown to whoever operates a service.
#[derive(Clone, Debug, Args)]
pub(super) struct ObserveArgs {
    /// Serve figures for Prometheus there (/metrics, and /healthz and /readyz) to whoever gets
    /// there, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDR", env = "ARBITER_METRICS")]
    metrics: Option<SocketAddr>,
    /// Send traces to this collector of OpenTelemetry, by OTLP over gRPC, such as
    /// `http://127.0.0.1:4317`.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
}

impl ObserveArgs {
    /// Begins to be observed as this service.
    pub(super) async fn begin(&self, service: &'static str) -> Result<Observing, Failure> {
        let listener = listen_if(self.metrics, "--metrics").await?;
        let traces = self.otlp().map(|url| traces::start(url, service)).transpose()?;
        Ok(Observing { listener, traces })
    }

    /// Where traces go. What the variable says in vain is as if it were not there.
    pub(super) fn otlp(&self) -> Option<&str> {
        self.otlp.as_deref().filter(|url| !url.is_empty())
    }
}

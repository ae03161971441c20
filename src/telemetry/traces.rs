//! Exports spans to an `OpenTelemetry` collector. The variables `OTEL_SERVICE_NAME`,
//! `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER` and `OTEL_BSP_*` have their standard meaning.

use std::env;
use std::time::Duration;

use arbiter_proto::trace;
use opentelemetry::global;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tonic::transport::ClientTlsConfig;

use crate::failure::Failure;

/// How long sending the last spans may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The running export of traces.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

/// Starts exporting traces. Retries while the collector is unreachable, and drops spans that cannot
/// be sent.
pub(crate) fn start(url: &str, service: &'static str) -> Result<Traces, Failure> {
    let invalid = |error: &dyn std::fmt::Display| {
        let remedy = "write http://HOST:4317, or https://HOST:4317 for TLS";
        Failure::Usage(format!("--otlp {url}: {error}; {remedy}"))
    };
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(invalid(&"not an address"));
    }
    let mut exporter = SpanExporter::builder().with_tonic().with_endpoint(url);
    if url.starts_with("https://") {
        exporter = exporter.with_tls_config(ClientTlsConfig::new().with_native_roots());
    }
    let exporter = exporter.build().map_err(|error| invalid(&error))?;
    let mut resource = Resource::builder();
    if env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(service);
    }
    let provider = SdkTracerProvider::builder()
        .with_resource(resource.build())
        .with_batch_exporter(exporter)
        .build();
    global::set_tracer_provider(provider.clone());
    trace::enable();
    Ok(Traces(provider))
}

impl Traces {
    /// Sends the last spans and stops.
    pub(crate) async fn stop(self) {
        let provider = self.0;
        let result =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT))
                .await;
        if let Ok(Err(error)) = result {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

//! Counts gRPC calls and HTTP requests, and their latencies.

use std::sync::Arc;

use arbiter_proto::{labels, metrics};
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;
use tonic::Code;

use super::{Metrics, latencies};

/// The header or trailer with the status of a gRPC call.
const STATUS: &str = "grpc-status";
/// Replaces names that clients may have invented, so that they cannot create any number of series.
const UNKNOWN: &str = "unknown";

labels! {
    /// A gRPC call that has ended.
    CallLabels { method: String, code: String }
    MethodLabels { method: String }
    /// An HTTP request with its response.
    RequestLabels { method: &'static str, route: String, status: u16 }
    RouteLabels { route: String }
}

type Latencies<L> = Family<L, Histogram, fn() -> Histogram>;

metrics! {
    /// Calls and requests.
    pub(super) struct RequestMetrics {
        calls: Family<CallLabels, Counter> => "grpc_calls",
            "gRPC calls that have ended; a stream ends with its last message";
        call_latencies: Latencies<MethodLabels> = Latencies::new_with_constructor(latencies)
            => "grpc_call_duration" in Seconds,
            "From a gRPC call until its response begins";
        requests: Family<RequestLabels, Counter> => "http_requests",
            "HTTP requests with a response";
        request_latencies: Latencies<RouteLabels> = Latencies::new_with_constructor(latencies)
            => "http_request_duration" in Seconds,
            "From an HTTP request until its response begins";
    }
}

/// A call in progress. It is counted when this is dropped, however the call ends.
struct Call {
    metrics: Arc<Metrics>,
    method: String,
    code: Code,
}

impl Call {
    /// Reads the status, if these headers have it; returns whether they do.
    fn read_status(&mut self, headers: &HeaderMap) -> bool {
        let Some(status) = headers.get(STATUS) else { return false };
        self.code = Code::from_bytes(status.as_bytes());
        true
    }

    /// The method, if it exists.
    fn method(&self) -> String {
        match self.code {
            Code::Unimplemented => UNKNOWN.to_owned(),
            _ => self.method.clone(),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let labels = CallLabels { method: self.method(), code: format!("{:?}", self.code) };
        self.metrics.requests.calls.get_or_create(&labels).inc();
    }
}

/// Counts a gRPC call. Its status is in the headers of the response or in its trailers.
pub(crate) async fn count_call(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let started_at = Instant::now();
    let method = request.uri().path().trim_start_matches('/').to_owned();
    // A client that leaves before the end has cancelled the call.
    let mut call = Call { metrics, method, code: Code::Cancelled };
    let response = next.run(request).await;
    let has_ended = call.read_status(response.headers());
    let labels = MethodLabels { method: call.method() };
    let latencies = &call.metrics.requests.call_latencies;
    latencies.get_or_create(&labels).observe(started_at.elapsed().as_secs_f64());
    if has_ended {
        return response;
    }
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            if let Some(trailers) = frame.trailers_ref() {
                call.read_status(trailers);
            }
            frame
        }))
    })
}

/// Counts an HTTP request by its route.
pub(crate) async fn count_request(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let started_at = Instant::now();
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or(UNKNOWN, MatchedPath::as_str).to_owned();
    let method = method_name(request.method());
    let response = next.run(request).await;
    let latency = started_at.elapsed().as_secs_f64();
    let labels = RouteLabels { route: route.clone() };
    metrics.requests.request_latencies.get_or_create(&labels).observe(latency);
    let status = response.status().as_u16();
    metrics.requests.requests.get_or_create(&RequestLabels { method, route, status }).inc();
    response
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => UNKNOWN,
    }
}

//! Calls and requests, counted as they pass.

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

use super::{Metrics, moments};

/// The header, or trailer, that says how a call of gRPC ended.
const STATUS: &str = "grpc-status";
/// What stands for names that nobody here gave: a caller can make up any number of them.
const UNKNOWN: &str = "unknown";

labels! {
    /// A call of gRPC that has ended.
    Called { method: String, code: String }
    /// A method of gRPC.
    Named { method: String }
    /// An answered request.
    Requested { method: &'static str, route: String, status: u16 }
    /// A route of the web server.
    Route { route: String }
}

type Times<L> = Family<L, Histogram, fn() -> Histogram>;

metrics! {
    /// Calls and requests.
    pub(super) struct RequestMetrics {
        called: Family<Called, Counter> => "grpc_calls",
            "Calls of gRPC that have ended, streams with their last message";
        call: Times<Named> = Times::new_with_constructor(moments) => "grpc_call" in Seconds,
            "From a call of gRPC to the beginning of its answer";
        requested: Family<Requested, Counter> => "http_requests",
            "Requests to the web server that were answered";
        request: Times<Route> = Times::new_with_constructor(moments) => "http_request" in Seconds,
            "From a request to the web server to the beginning of its answer";
    }
}

/// A call on its way. However it ends, it is counted when this is dropped.
struct Call {
    metrics: Arc<Metrics>,
    method: String,
    code: Code,
}

impl Call {
    /// Takes note of the status, if it is among these.
    fn note(&mut self, headers: &HeaderMap) -> bool {
        let Some(status) = headers.get(STATUS) else { return false };
        self.code = Code::from_bytes(status.as_bytes());
        true
    }

    /// A name that is one of ours.
    fn method(&self) -> String {
        match self.code {
            Code::Unimplemented => UNKNOWN.to_owned(),
            _ => self.method.clone(),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let called = Called { method: self.method(), code: format!("{:?}", self.code) };
        self.metrics.calls.called.get_or_create(&called).inc();
    }
}

/// Counts a call of gRPC: its status comes with the headers of the answer, or behind it.
pub(crate) async fn count_call(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let method = request.uri().path().trim_start_matches('/').to_owned();
    // Whoever leaves before the end has cancelled the call.
    let mut call = Call { metrics, method, code: Code::Cancelled };
    let answer = next.run(request).await;
    let told = call.note(answer.headers());
    let named = Named { method: call.method() };
    call.metrics.calls.call.get_or_create(&named).observe(began.elapsed().as_secs_f64());
    if told {
        return answer;
    }
    answer.map(|body| {
        Body::new(body.map_frame(move |frame| {
            if let Some(trailers) = frame.trailers_ref() {
                call.note(trailers);
            }
            frame
        }))
    })
}

/// Counts a request to the web server by its route.
pub(crate) async fn count_request(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or(UNKNOWN, MatchedPath::as_str).to_owned();
    let method = known(request.method());
    let answer = next.run(request).await;
    let calls = &metrics.calls;
    let took = began.elapsed().as_secs_f64();
    calls.request.get_or_create(&Route { route: route.clone() }).observe(took);
    let status = answer.status().as_u16();
    calls.requested.get_or_create(&Requested { method, route, status }).inc();
    answer
}

fn known(method: &Method) -> &'static str {
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

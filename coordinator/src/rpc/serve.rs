//! The gRPC server: all services on one port, with health and reflection.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::DESCRIPTION;
use arbiter_proto::v1::audit_service_server::AuditServiceServer;
use arbiter_proto::v1::bot_service_server::BotServiceServer;
use arbiter_proto::v1::ranking_service_server::RankingServiceServer;
use arbiter_proto::v1::token_service_server::TokenServiceServer;
use arbiter_proto::v1::tournament_service_server::TournamentServiceServer;
use arbiter_proto::v1::worker_service_server::WorkerServiceServer;
use axum::middleware::from_fn_with_state;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::server::Connected;
use tonic::transport::{Certificate, Identity, Server as TonicServer, ServerTlsConfig};

use super::admission::{Admission, ConnectionInfo, MAX_REPORT, admit_call};
use super::client_services::Clients;
use super::worker::Workers;
use crate::access::stream_revocation::OpenTokens;
use crate::connection_limit::{Connection, ConnectionLimiter, LimitedStream};
use crate::metrics::count_call;
use crate::service::{ChangeNotifier, SHUTDOWN_GRACE, WorkerService};

/// The interval and timeout of keep-alive pings, which detect a cut network; also the timeout of a
/// TLS handshake.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// These connections may use 1/4 of the file descriptors of this process.
const DESCRIPTOR_SHARE: u64 = 4;
/// How long a connection may take to make its first call.
const FIRST_CALL: Duration = Duration::from_secs(20);
/// How long a connection may be without a call after that. Clients reconnect by themselves.
const MAX_IDLE: Duration = Duration::from_secs(600);
/// Open calls on one connection.
const MAX_CALLS: u32 = 256;
/// The longest headers of a call, in bytes.
const MAX_HEADERS: u32 = 16 << 10;
/// The flow-control window of a connection and of each call, in bytes.
const WINDOW: u32 = 1 << 20;
/// Maximum number of reset calls before the connection is closed.
const MAX_RESETS: usize = 32;

/// The files for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// The authority that signs client certificates, if clients must have one.
    pub clients: Option<PathBuf>,
}

/// The error of a server that cannot run.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A TLS file cannot be read.
    #[error("cannot read {path}: {cause} (expected a PEM file readable by this user)")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause of the failure.
        cause: io::Error,
    },
    /// The certificate and the key do not match.
    #[error("cannot use TLS with {certificate} and {key}: {cause} (is it the certificate's key?)")]
    Unfit {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The error of the TLS library.
        cause: String,
    },
    /// The transport failed.
    #[error("the gRPC server failed: {0}")]
    Transport(String),
}

impl Tls {
    fn config(&self) -> Result<ServerTlsConfig, ServeError> {
        let certificate = read(&self.certificate, "CERTIFICATE")?;
        let identity = Identity::from_pem(certificate, read(&self.key, "PRIVATE KEY")?);
        let config = ServerTlsConfig::new().identity(identity).timeout(KEEPALIVE);
        Ok(match &self.clients {
            Some(path) => config.client_ca_root(Certificate::from_pem(read(path, "CERTIFICATE")?)),
            None => config,
        })
    }

    /// Adds TLS to a server.
    fn apply(&self, server: TonicServer) -> Result<TonicServer, ServeError> {
        server.tls_config(self.config()?).map_err(|error| {
            let certificate = self.certificate.clone();
            let key = self.key.clone();
            ServeError::Unfit { certificate, key, cause: causes(&error) }
        })
    }
}

/// Reads a PEM file that contains an item of this kind.
fn read(path: &Path, kind: &str) -> Result<String, ServeError> {
    let failed = |cause| ServeError::File { path: path.to_owned(), cause };
    let text = fs::read_to_string(path).map_err(failed)?;
    if text.contains(&format!("{kind}-----")) {
        return Ok(text);
    }
    Err(failed(io::Error::new(io::ErrorKind::InvalidData, format!("it contains no {kind}"))))
}

/// An error of the transport.
fn transport(error: &(dyn std::error::Error + 'static)) -> ServeError {
    ServeError::Transport(causes(error))
}

/// An error with all its causes, because the outermost one is often vague.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}

/// The gRPC services, ready to serve.
#[derive(Debug)]
pub struct Server {
    /// The use cases of workers, which include those of clients.
    pub workers: WorkerService,
    /// The tokens of open streams.
    pub open_tokens: OpenTokens,
    /// The files for TLS; none for plain connections.
    pub tls: Option<Tls>,
}

impl Server {
    /// Serves until `stop` completes. Then open calls end, including streams.
    pub async fn run(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let Self { workers, open_tokens, tls } = self;
        let mut server = transport_limits();
        if let Some(tls) = &tls {
            server = tls.apply(server)?;
        }
        let changes = workers.service.changes.clone();
        let routes = server.add_routes(routes(workers, open_tokens).await?);
        let shutdown = async {
            stop.await;
            changes.stop();
        };
        let serving = routes.serve_with_incoming_shutdown(incoming(listener), shutdown);
        tokio::select! {
            result = serving => result.map_err(|error| transport(&error)),
            () = shutdown_deadline(&changes) => Ok(()),
        }
    }
}

/// A server with the limits of connections.
fn transport_limits() -> TonicServer {
    TonicServer::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(MAX_CALLS)
        .http2_max_header_list_size(MAX_HEADERS)
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW)
        .http2_max_pending_accept_reset_streams(Some(MAX_RESETS))
        .http2_max_local_error_reset_streams(Some(MAX_RESETS))
}

/// All services, with health and reflection, behind admission.
async fn routes(workers: WorkerService, open_tokens: OpenTokens) -> Result<Routes, ServeError> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTION)
        .build_v1()
        .map_err(|error| transport(&error))?;
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<WorkerServiceServer<Workers>>().await;
    health.set_serving::<TournamentServiceServer<Clients>>().await;
    health.set_serving::<RankingServiceServer<Clients>>().await;
    health.set_serving::<BotServiceServer<Clients>>().await;
    health.set_serving::<TokenServiceServer<Clients>>().await;
    health.set_serving::<AuditServiceServer<Clients>>().await;
    let service = workers.service.clone();
    let clients = Clients(service.clone());
    let metrics = Arc::clone(service.metrics());
    let admission = Admission::new(service, open_tokens.clone());
    let worker = WorkerServiceServer::new(Workers { workers, open_tokens })
        .max_decoding_message_size(MAX_REPORT);
    let services = Routes::new(health_service)
        .add_service(reflection)
        .add_service(worker)
        .add_service(TournamentServiceServer::new(clients.clone()))
        .add_service(RankingServiceServer::new(clients.clone()))
        .add_service(BotServiceServer::new(clients.clone()))
        .add_service(TokenServiceServer::new(clients.clone()))
        .add_service(AuditServiceServer::new(clients));
    let count_layer = from_fn_with_state(metrics, count_call);
    let admission_layer = from_fn_with_state(admission, admit_call);
    Ok(services.into_axum_router().layer(admission_layer).layer(count_layer).into())
}

/// A stream of accepted connections.
fn incoming(listener: TcpListener) -> ReceiverStream<io::Result<LimitedStream>> {
    let (sender, connections) = mpsc::channel(1);
    let limiter = ConnectionLimiter::new(DESCRIPTOR_SHARE);
    tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                accepted = limiter.accept(&listener) => accepted,
                () = sender.closed() => return,
            };
            let (stream, closed) = accepted;
            let end = close_reason(Arc::clone(&stream.connection), closed);
            if sender.send(Ok(stream.until(end))).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(connections)
}

/// Waits until a connection must be closed: to make room for others, or because it is idle.
async fn close_reason(connection: Arc<Connection>, closed: oneshot::Receiver<()>) -> io::Error {
    let idle = async {
        let mut remaining = FIRST_CALL;
        while !remaining.is_zero() {
            tokio::time::sleep(remaining).await;
            remaining = match connection.idle() {
                None => MAX_IDLE,
                Some((idle, used)) => {
                    (if used { MAX_IDLE } else { FIRST_CALL }).saturating_sub(idle)
                }
            };
        }
    };
    tokio::select! {
        _ = closed => {
            let error = "closed to make room for another connection";
            io::Error::new(io::ErrorKind::ConnectionAborted, error)
        }
        () = idle => io::Error::new(io::ErrorKind::TimedOut, "closed because it was idle"),
    }
}

impl Connected for LimitedStream {
    type ConnectInfo = ConnectionInfo;

    fn connect_info(&self) -> ConnectionInfo {
        ConnectionInfo { peer: self.peer.ip(), connection: Arc::clone(&self.connection) }
    }
}

/// Completes when the grace period of open calls is over after the coordinator stopped.
async fn shutdown_deadline(changes: &ChangeNotifier) {
    changes.stopped().await;
    tokio::time::sleep(SHUTDOWN_GRACE).await;
}

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
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use super::{Changes, Shared};
use crate::metrics::count_call;

/// The largest message that a worker may send: a lot with all its records.
const LARGEST_REPORT: usize = 512 << 20;
/// How long a connection may be silent before it is asked whether anybody is there, and how long
/// the answer may take: a network that was cut is noticed. How long encryption may take to begin.
const ALIVE: Duration = Duration::from_secs(10);

/// How long calls that are open when the coordinator stops may take to end.
pub(crate) const LAST_CALLS: Duration = Duration::from_secs(5);

/// Files with which connections are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// Who signs the certificates of clients, if they must have one.
    pub clients: Option<PathBuf>,
}

/// Why the server does not run.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A file of the encryption cannot be read.
    #[error("{path}: {cause}; it is to hold PEM and be readable to this user")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The files of the encryption do not fit together.
    #[error("cannot encrypt with {certificate} and {key}: {cause}; is that the certificate's key?")]
    Unfit {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong with them.
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
        let config = ServerTlsConfig::new().identity(identity).timeout(ALIVE);
        Ok(match &self.clients {
            Some(path) => config.client_ca_root(Certificate::from_pem(read(path, "CERTIFICATE")?)),
            None => config,
        })
    }

    /// A server that encrypts with these files.
    fn encrypt(&self, server: Server) -> Result<Server, ServeError> {
        server.tls_config(self.config()?).map_err(|error| {
            let (certificate, key) = (self.certificate.clone(), self.key.clone());
            ServeError::Unfit { certificate, key, cause: causes(&error) }
        })
    }
}

/// A file in PEM that holds something of this kind.
fn read(path: &Path, kind: &str) -> Result<String, ServeError> {
    let failed = |cause| ServeError::File { path: path.to_owned(), cause };
    let text = fs::read_to_string(path).map_err(failed)?;
    if text.contains(&format!("{kind}-----")) {
        return Ok(text);
    }
    let nothing = io::Error::new(io::ErrorKind::InvalidData, format!("there is no {kind} in it"));
    Err(failed(nothing))
}

/// A failure of the transport.
fn transport(error: &(dyn std::error::Error + 'static)) -> ServeError {
    ServeError::Transport(causes(error))
}

/// An error with its causes: the outermost says little.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}

/// Serves until `stop`; then open calls end, watching ones too.
///
/// # Errors
/// If a file of the encryption cannot be used, or the port fails.
pub async fn serve(
    shared: Shared,
    listener: TcpListener,
    tls: Option<&Tls>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTION)
        .build_v1()
        .map_err(|error| transport(&error))?;
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<WorkerServiceServer<Shared>>().await;
    health.set_serving::<TournamentServiceServer<Shared>>().await;
    health.set_serving::<RankingServiceServer<Shared>>().await;
    health.set_serving::<BotServiceServer<Shared>>().await;
    health.set_serving::<TokenServiceServer<Shared>>().await;
    health.set_serving::<AuditServiceServer<Shared>>().await;
    let mut server = Server::builder()
        .http2_keepalive_interval(Some(ALIVE))
        .http2_keepalive_timeout(Some(ALIVE));
    if let Some(tls) = tls {
        server = tls.encrypt(server)?;
    }
    let worker = WorkerServiceServer::new(shared.clone()).max_decoding_message_size(LARGEST_REPORT);
    let services = Routes::new(health_service)
        .add_service(reflection)
        .add_service(worker)
        .add_service(TournamentServiceServer::new(shared.clone()))
        .add_service(RankingServiceServer::new(shared.clone()))
        .add_service(BotServiceServer::new(shared.clone()))
        .add_service(TokenServiceServer::new(shared.clone()))
        .add_service(AuditServiceServer::new(shared.clone()));
    let metrics = Arc::clone(shared.queue.metrics());
    let counted = from_fn_with_state(metrics, count_call);
    let routes = server.add_routes(services.into_axum_router().layer(counted).into());
    let changes = shared.changes.clone();
    let stopped = async {
        stop.await;
        changes.end();
    };
    // An answer of several packets would wait for the caller to acknowledge the first ones, and
    // callers take 40 ms for that.
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = routes.serve_with_incoming_shutdown(incoming, stopped);
    tokio::select! {
        served = serving => served.map_err(|error| transport(&error)),
        () = overdue(&changes) => Ok(()),
    }
}

/// Ends when the calls that are open when the coordinator stops have had their time.
async fn overdue(changes: &Changes) {
    changes.ended().await;
    tokio::time::sleep(LAST_CALLS).await;
}

//! The way to a coordinator: its address, the token that lets somebody in, certificates.
//!
//! Workers and the client commands go the same way: [`ConnectOptions::channel`] gives the connection, and
//! [`ConnectOptions::bearer`] what puts the token into every call made over it.
//!
//! ```ignore
//! let access = ConnectOptions::new("http://127.0.0.1:7001");
//! let client = RankingServiceClient::with_interceptor(access.channel().await?, access.bearer()?);
//! ```

use std::error::Error as _;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// How long a connection may take to be made, and a peer to show that it still lives.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often an idle peer is asked whether it still lives: a cut network tells nobody.
const PULSE: Duration = Duration::from_secs(5);

/// How often a peer may hang up on us before that is its last word.
const TRIES: u32 = 8;

/// The name by which we introduce ourselves.
const AGENT: &str = concat!("arbiter/", env!("CARGO_PKG_VERSION"));

/// Where a coordinator is, and what is shown to be let in.
#[derive(Clone, Default)]
pub struct ConnectOptions {
    /// `http://HOST:PORT`, or `https://…` for TLS; several with commas between them are coordinators
    /// of the same database, of which any will do.
    pub server: String,
    /// The token, if there is one.
    pub token: Option<String>,
    /// A file with the certificates of those who may vouch for the server, as PEM; the system's
    /// if there is none.
    pub ca: Option<PathBuf>,
    /// A file with our own certificate, as PEM, where the server asks for one.
    pub cert: Option<PathBuf>,
    /// The file with its key, as PEM.
    pub key: Option<PathBuf>,
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, token, ca, cert, key } = self;
        let token = token.as_ref().map(|_| "…");
        f.debug_struct("ConnectOptions")
            .field("server", server)
            .field("token", &token)
            .field("ca", ca)
            .field("cert", cert)
            .field("key", key)
            .finish()
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// What was given means nothing; no repetition helps.
    #[error("{what}: {cause}")]
    InvalidOption {
        /// What was given.
        what: String,
        /// What is wrong with it, and the remedy.
        cause: String,
    },
    /// Nobody answers.
    #[error("{server}: {cause}; is the coordinator running there?")]
    Unreachable {
        /// Who was called.
        server: String,
        /// What happened.
        cause: String,
    },
    /// Somebody answers, but one of us does not want to talk to the other.
    #[error("{server}: {cause}; {remedy}")]
    Incompatible {
        /// Who was called.
        server: String,
        /// What happened.
        cause: String,
        /// What may help.
        remedy: &'static str,
    },
}

impl ConnectError {
    fn invalid_option(what: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::InvalidOption { what: what.into(), cause: cause.into() }
    }
}

impl ConnectOptions {
    /// ConnectOptions to a server without a token, by the system's certificates.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server: server.into(), ..Self::default() }
    }

    /// The way to each of the coordinators, in the order in which they were given.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        let servers = self.server.split(',').map(str::trim);
        servers.map(|server| Self { server: server.to_owned(), ..self.clone() })
    }

    /// A connection to the first coordinator that answers, which repairs itself: what is called
    /// while it is broken fails, and what is called later finds it mended.
    pub async fn channel(&self) -> Result<Channel, ConnectError> {
        let mut failed = None;
        for one in self.each() {
            match one.channel_to_one().await {
                Ok(channel) => return Ok(channel),
                // Somebody who answers wrongly is more to the point than somebody who does not.
                Err(ConnectError::Unreachable { .. }) if failed.is_some() => {}
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| ConnectError::invalid_option(&self.server, "no address")))
    }

    async fn channel_to_one(&self) -> Result<Channel, ConnectError> {
        let channel = self.connect_lazy()?;
        let server = || self.server.clone();
        let mut cause = String::new();
        // Whoever is connected is not let in yet: a server that asks for certificates looks at them
        // afterwards, and one of another kind hangs up once it has heard us. What it says then may
        // get lost with the connection.
        for _ in 0..TRIES {
            let question = HealthCheckRequest::default();
            let status = match HealthClient::new(channel.clone()).check(question).await {
                Err(status) if status.source().is_some() => status,
                // Any answer is one.
                _ => return Ok(channel),
            };
            cause = root_cause(&status);
            if let Some(remedy) = remedy(&cause) {
                return Err(ConnectError::Incompatible { server: server(), cause, remedy });
            }
            if !was_connected(&status) {
                return Err(ConnectError::Unreachable { server: server(), cause });
            }
        }
        let server = server();
        Err(match (self.is_secret(), &self.cert) {
            // Something on the way may take connections for a coordinator that is not there.
            (false, _) => {
                ConnectError::Unreachable { server, cause: format!("{cause}; {OTHER_PROTOCOL}") }
            }
            (true, None) => ConnectError::Incompatible { server, cause, remedy: NO_CERTIFICATE },
            (true, Some(_)) => {
                ConnectError::Incompatible { server, cause, remedy: OTHER_CERTIFICATE }
            }
        })
    }

    fn is_secret(&self) -> bool {
        self.server.starts_with("https://")
    }

    /// A connection to the only coordinator, made when it is first used.
    ///
    /// # Errors
    /// [`ConnectError::InvalidOption`] alone.
    pub fn connect_lazy(&self) -> Result<Channel, ConnectError> {
        self.endpoint().map(|endpoint| endpoint.connect_lazy())
    }

    /// Whether everything that was given means something.
    ///
    /// # Errors
    /// [`ConnectError::InvalidOption`] alone.
    pub fn check(&self) -> Result<(), ConnectError> {
        self.each().try_for_each(|one| one.endpoint().map(drop))?;
        self.bearer().map(drop)
    }

    /// What puts the token into every call.
    pub fn bearer(&self) -> Result<BearerToken, ConnectError> {
        let header = |token: &String| {
            let mut value: MetadataValue<Ascii> = format!("Bearer {token}").parse().ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        let unprintable =
            || ConnectError::invalid_option("the token", "it has characters that no token has");
        let token = self.token.as_ref();
        token.map(|token| header(token).ok_or_else(unprintable)).transpose().map(BearerToken)
    }

    fn endpoint(&self) -> Result<Endpoint, ConnectError> {
        let server = &self.server;
        let remedy = "write http://HOST:PORT, or https://HOST:PORT for TLS";
        let malformed = || ConnectError::invalid_option(server, format!("no address; {remedy}"));
        let secret = self.is_secret();
        if !secret && !server.starts_with("http://") {
            return Err(malformed());
        }
        let endpoint = Endpoint::from_shared(server.clone())
            .and_then(|endpoint| endpoint.user_agent(AGENT))
            .map_err(|_| malformed())?
            .connect_timeout(PATIENCE)
            .http2_keep_alive_interval(PULSE)
            .keep_alive_timeout(PATIENCE)
            .keep_alive_while_idle(true)
            .http2_adaptive_window(true);
        if secret {
            let unfit = |error: tonic::transport::Error| {
                ConnectError::invalid_option("the certificates", root_cause(&error))
            };
            return endpoint.tls_config(self.tls()?).map_err(unfit);
        }
        if self.ca.is_some() || self.cert.is_some() || self.key.is_some() {
            let cause = "certificates are for https:// only";
            return Err(ConnectError::invalid_option(server, cause));
        }
        Ok(endpoint)
    }

    fn tls(&self) -> Result<ClientTlsConfig, ConnectError> {
        let tls = ClientTlsConfig::new().timeout(PATIENCE);
        let tls = match &self.ca {
            Some(path) => tls.ca_certificate(Certificate::from_pem(read(path, CERTIFICATE)?)),
            None => tls.with_native_roots(),
        };
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let (cert, key) = (read(cert, CERTIFICATE)?, read(key, KEY)?);
                Ok(tls.identity(Identity::from_pem(cert, key)))
            }
            (None, None) => Ok(tls),
            _ => Err(ConnectError::invalid_option(
                "a certificate and its key",
                "give both or neither",
            )),
        }
    }
}

/// What PEM calls what we read from it.
const CERTIFICATE: &str = "CERTIFICATE";
const KEY: &str = "PRIVATE KEY";

/// A file in PEM that holds something of this kind.
fn read(path: &Path, kind: &str) -> Result<String, ConnectError> {
    let unfit = |cause| ConnectError::invalid_option(path.display().to_string(), cause);
    let text = fs::read_to_string(path).map_err(|error| unfit(error.to_string()))?;
    if text.contains(&format!("{kind}-----")) {
        return Ok(text);
    }
    Err(unfit(format!("there is no {kind} in it; it is to hold PEM")))
}

/// What is at the bottom of an error: those above say no more than that there was one.
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Whether a call failed on a connection that had been made.
fn was_connected(status: &Status) -> bool {
    let causes = std::iter::successors(status.source(), |error| (*error).source());
    !causes.into_iter().any(<dyn std::error::Error>::is::<tonic::ConnectError>)
}

const OTHER_PROTOCOL: &str =
    "write https:// if it has a certificate, and name the port of its --grpc, not of its pages";
const NO_CERTIFICATE: &str = "give a certificate that it accepts with --cert and --key";
const OTHER_CERTIFICATE: &str = "it does not accept the certificate given with --cert";

/// What is said when two do not fit together, and what helps. The first that is found counts.
const MISFITS: [(&str, &str); 7] = [
    ("certificate not valid for name", "call it by a name that is in its certificate"),
    ("certificate expired", "its operator has to renew its certificate"),
    ("invalid peer certificate", "name the authority that signed its certificate with --ca"),
    ("alert: CertificateRequired", NO_CERTIFICATE),
    ("received fatal alert", OTHER_CERTIFICATE),
    ("InvalidContentType", "it does not encrypt: write http://"),
    // TLS or HTTP/1, read as HTTP/2.
    ("frame with invalid size", OTHER_PROTOCOL),
];

/// What helps where a connection failed for this reason, if it will fail again in the same way.
pub(crate) fn remedy(cause: &str) -> Option<&'static str> {
    let found = MISFITS.iter().find(|(words, _)| cause.contains(words));
    found.map(|(_, remedy)| *remedy)
}

/// Puts a token into every call, if there is one.
#[derive(Clone, Debug)]
pub struct BearerToken(Option<MetadataValue<Ascii>>);

impl Interceptor for BearerToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_is_said_at_once() {
        let said = |access: &ConnectOptions| access.endpoint().unwrap_err().to_string();
        for server in ["", "localhost:7001", "ftp://x", "http://", "https://a b"] {
            let said = said(&ConnectOptions::new(server));
            assert!(said.contains("write http://HOST:PORT"), "{said}");
        }
        let ca = Some(PathBuf::from("/nowhere/ca.pem"));
        let access = ConnectOptions { ca: ca.clone(), ..ConnectOptions::new("http://localhost:1") };
        assert!(said(&access).contains("https:// only"));
        let access = ConnectOptions { ca, ..ConnectOptions::new("https://localhost:1") };
        assert!(said(&access).starts_with("/nowhere/ca.pem: "));
        let access =
            ConnectOptions { cert: Some("c".into()), ..ConnectOptions::new("https://localhost:1") };
        assert!(said(&access).contains("both or neither"));
        let access = ConnectOptions {
            token: Some("a\nb".to_owned()),
            ..ConnectOptions::new("http://localhost:1")
        };
        assert!(access.bearer().is_err());
        let several = ConnectOptions::new("http://localhost:1, localhost:2");
        assert!(several.check().unwrap_err().to_string().contains("localhost:2: no address"));
    }

    #[test]
    fn tokens_are_not_shown() {
        let access = ConnectOptions {
            token: Some("secret".to_owned()),
            ..ConnectOptions::new("http://localhost")
        };
        let shown = format!("{access:?} {:?}", access.bearer().unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
}

//! Connections to a coordinator: address, token and certificates.
//!
//! Workers and client commands share this module. [`ConnectOptions::channel`] opens the connection,
//! and [`ConnectOptions::bearer`] adds the token to every call.
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

/// Timeout of connecting, and of a keep-alive response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Interval of keep-alive pings, which detect a broken network.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// Number of attempts before a peer that closes connections counts as incompatible.
const MAX_ATTEMPTS: u32 = 8;

/// The user agent.
const AGENT: &str = concat!("arbiter/", env!("CARGO_PKG_VERSION"));

/// Address and credentials of a coordinator.
#[derive(Clone, Default)]
pub struct ConnectOptions {
    /// `http://HOST:PORT`, or `https://…` for TLS. Several coordinators of one database are
    /// separated by commas.
    pub server: String,
    /// The token, if there is one.
    pub token: Option<String>,
    /// PEM file of trusted authorities. `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// PEM file of the client certificate, if the server requires one.
    pub cert: Option<PathBuf>,
    /// PEM file of its key.
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

/// Why a connection failed.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// An option is invalid. A retry does not help.
    #[error("{what}: {cause}")]
    InvalidOption {
        /// The option or its value.
        what: String,
        /// Cause and remedy.
        cause: String,
    },
    /// The server is not reachable.
    #[error("{server}: {cause}; is the coordinator running there?")]
    Unreachable {
        /// The address.
        server: String,
        /// The cause.
        cause: String,
    },
    /// The server is reachable, but protocol or certificates do not match.
    #[error("{server}: {cause}; {remedy}")]
    Incompatible {
        /// The address.
        server: String,
        /// The cause.
        cause: String,
        /// The remedy.
        remedy: &'static str,
    },
}

impl ConnectError {
    fn invalid_option(what: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::InvalidOption { what: what.into(), cause: cause.into() }
    }
}

impl ConnectOptions {
    /// Options for a server, without a token and with the system's authorities.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server: server.into(), ..Self::default() }
    }

    /// Options for each coordinator, in order.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        let servers = self.server.split(',').map(str::trim);
        servers.map(|server| Self { server: server.to_owned(), ..self.clone() })
    }

    /// Connects to the first reachable coordinator. The channel reconnects by itself: calls fail
    /// while it is broken, and later calls succeed again.
    pub async fn channel(&self) -> Result<Channel, ConnectError> {
        let mut best_error = None;
        for single in self.each() {
            match single.channel_to_one().await {
                Ok(channel) => return Ok(channel),
                // An incompatible server is a better explanation than an unreachable one.
                Err(ConnectError::Unreachable { .. }) if best_error.is_some() => {}
                Err(error) => best_error = Some(error),
            }
        }
        Err(best_error.unwrap_or_else(|| ConnectError::invalid_option(&self.server, "no address")))
    }

    async fn channel_to_one(&self) -> Result<Channel, ConnectError> {
        let channel = self.connect_lazy()?;
        let server = || self.server.clone();
        let mut cause = String::new();
        // An open connection is not enough: a server checks client certificates afterwards, and one
        // of another protocol closes the connection after the first data. Its error message may be
        // lost with the connection.
        for _ in 0..MAX_ATTEMPTS {
            let request = HealthCheckRequest::default();
            let status = match HealthClient::new(channel.clone()).check(request).await {
                Err(status) if status.source().is_some() => status,
                // Any response proves that the coordinator is running.
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
        Err(match (self.uses_tls(), &self.cert) {
            // A proxy may accept connections for a coordinator that is down.
            (false, _) => {
                ConnectError::Unreachable { server, cause: format!("{cause}; {OTHER_PROTOCOL}") }
            }
            (true, None) => ConnectError::Incompatible { server, cause, remedy: NO_CERTIFICATE },
            (true, Some(_)) => {
                ConnectError::Incompatible { server, cause, remedy: OTHER_CERTIFICATE }
            }
        })
    }

    fn uses_tls(&self) -> bool {
        self.server.starts_with("https://")
    }

    /// A channel to a single coordinator that connects at its first use.
    ///
    /// # Errors
    /// Only [`ConnectError::InvalidOption`].
    pub fn connect_lazy(&self) -> Result<Channel, ConnectError> {
        self.endpoint().map(|endpoint| endpoint.connect_lazy())
    }

    /// Validates all options.
    ///
    /// # Errors
    /// Only [`ConnectError::InvalidOption`].
    pub fn check(&self) -> Result<(), ConnectError> {
        self.each().try_for_each(|single| single.endpoint().map(drop))?;
        self.bearer().map(drop)
    }

    /// An interceptor that adds the token to every call. Spaces and line breaks around the token do
    /// not count, because a pasted text often has them.
    pub fn bearer(&self) -> Result<BearerToken, ConnectError> {
        let token = self.token.as_deref().map(str::trim).filter(|token| !token.is_empty());
        if token.is_some_and(|token| token.contains(char::is_whitespace)) {
            let cause = "it has a space or a line break in it: copy it again, without them";
            return Err(ConnectError::invalid_option("the token", cause));
        }
        let header = |token: &str| {
            let mut value: MetadataValue<Ascii> = format!("Bearer {token}").parse().ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        let unprintable =
            || ConnectError::invalid_option("the token", "it has characters that no token has");
        token.map(|token| header(token).ok_or_else(unprintable)).transpose().map(BearerToken)
    }

    fn endpoint(&self) -> Result<Endpoint, ConnectError> {
        let server = &self.server;
        let remedy = "write http://HOST:PORT, or https://HOST:PORT for TLS";
        let no_address = || ConnectError::invalid_option(server, format!("no address; {remedy}"));
        let uses_tls = self.uses_tls();
        if !uses_tls && !server.starts_with("http://") {
            return Err(no_address());
        }
        let endpoint = Endpoint::from_shared(server.clone())
            .and_then(|endpoint| endpoint.user_agent(AGENT))
            .map_err(|_| no_address())?
            .connect_timeout(TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(TIMEOUT)
            .keep_alive_while_idle(true)
            .http2_adaptive_window(true);
        if uses_tls {
            let invalid = |error: tonic::transport::Error| {
                ConnectError::invalid_option("the certificates", root_cause(&error))
            };
            return endpoint.tls_config(self.tls()?).map_err(invalid);
        }
        if self.ca.is_some() || self.cert.is_some() || self.key.is_some() {
            let cause = "certificates are for https:// only";
            return Err(ConnectError::invalid_option(server, cause));
        }
        Ok(endpoint)
    }

    fn tls(&self) -> Result<ClientTlsConfig, ConnectError> {
        let tls = ClientTlsConfig::new().timeout(TIMEOUT);
        let tls = match &self.ca {
            Some(path) => tls.ca_certificate(Certificate::from_pem(read(path, CERTIFICATE)?)),
            None => tls.with_native_roots(),
        };
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let cert = read(cert, CERTIFICATE)?;
                let key = read(key, KEY)?;
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

/// Labels of PEM blocks.
const CERTIFICATE: &str = "CERTIFICATE";
const KEY: &str = "PRIVATE KEY";

/// Reads a PEM file that contains a block of this kind.
fn read(path: &Path, kind: &str) -> Result<String, ConnectError> {
    let invalid = |cause| ConnectError::invalid_option(path.display().to_string(), cause);
    let text = fs::read_to_string(path).map_err(|error| invalid(error.to_string()))?;
    if text.contains(&format!("{kind}-----")) {
        return Ok(text);
    }
    Err(invalid(format!("no {kind} found; expected a PEM file")))
}

/// The innermost source of an error. The outer errors only add that there was an error.
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Whether a call failed after its connection was established.
fn was_connected(status: &Status) -> bool {
    let causes = std::iter::successors(status.source(), |error| (*error).source());
    !causes.into_iter().any(<dyn std::error::Error>::is::<tonic::ConnectError>)
}

const OTHER_PROTOCOL: &str =
    "write https:// if it has a certificate, and use the port of --grpc, not of the web interface";
const NO_CERTIFICATE: &str = "give a certificate that it accepts with --cert and --key";
const OTHER_CERTIFICATE: &str = "it does not accept the certificate given with --cert";

/// Fragments of error messages with their remedies. The first match counts.
const REMEDIES: [(&str, &str); 7] = [
    ("certificate not valid for name", "use a name that is in its certificate"),
    ("certificate expired", "its operator must renew its certificate"),
    ("invalid peer certificate", "set --ca to the authority that signed its certificate"),
    ("alert: CertificateRequired", NO_CERTIFICATE),
    ("received fatal alert", OTHER_CERTIFICATE),
    ("InvalidContentType", "it does not use TLS: write http://"),
    // TLS or HTTP/1, read as HTTP/2.
    ("frame with invalid size", OTHER_PROTOCOL),
];

/// The remedy for a cause that a retry does not fix.
pub(crate) fn remedy(cause: &str) -> Option<&'static str> {
    let entry = REMEDIES.iter().find(|(text, _)| cause.contains(text));
    entry.map(|(_, remedy)| *remedy)
}

/// Adds a token to every call, if there is one.
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
    fn invalid_options_are_refused() {
        let message = |access: &ConnectOptions| access.endpoint().unwrap_err().to_string();
        for server in ["", "localhost:7001", "ftp://x", "http://", "https://a b"] {
            let message = message(&ConnectOptions::new(server));
            assert!(message.contains("write http://HOST:PORT"), "{message}");
        }
        let ca = Some(PathBuf::from("/nowhere/ca.pem"));
        let access = ConnectOptions { ca: ca.clone(), ..ConnectOptions::new("http://localhost:1") };
        assert!(message(&access).contains("https:// only"));
        let access = ConnectOptions { ca, ..ConnectOptions::new("https://localhost:1") };
        assert!(message(&access).starts_with("/nowhere/ca.pem: "));
        let access =
            ConnectOptions { cert: Some("c".into()), ..ConnectOptions::new("https://localhost:1") };
        assert!(message(&access).contains("both or neither"));
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
        let output = format!("{access:?} {:?}", access.bearer().unwrap());
        assert!(!output.contains("secret"), "{output}");
    }
}

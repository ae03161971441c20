//! Shared by all commands that call a coordinator: the options for its address and the caller's
//! credentials, the calls, and the conversion of a gRPC status to an exit code.

use std::error::Error as _;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use arbiter_proto::v1::audit_service_client::AuditServiceClient;
use arbiter_proto::v1::bot_service_client::BotServiceClient;
use arbiter_proto::v1::ranking_service_client::RankingServiceClient;
use arbiter_proto::v1::token_service_client::TokenServiceClient;
use arbiter_proto::v1::tournament_service_client::TournamentServiceClient;
use arbiter_proto::{client_calls, v1};
use arbiter_worker::connect::{BearerToken, ConnectError, ConnectOptions, root_cause};
use clap::Args;
use serde_json::Value;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::failure::Failure;
use crate::output::{Output, print, printable};

/// Maximum size of a response in bytes. A page of a ranking or a log is far smaller.
const MAX_RESPONSE: usize = 64 << 20;

/// The coordinator's address and the caller's credentials.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Coordinator")]
pub(super) struct Client {
    /// The coordinator's URL. Separate several by commas; the first that responds is used.
    #[arg(long, value_name = "URL", env = "ARBITER_SERVER")]
    #[arg(default_value = "http://127.0.0.1:7700")]
    server: Servers,
    /// Your access token. Prefer the environment: other users can see the command line.
    #[arg(long, value_name = "TOKEN", env = "ARBITER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Certificate authorities to trust for an https:// server (PEM); by default the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Your client certificate, if the server requires one (PEM).
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of your client certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

/// A channel that sends the caller's token.
type AuthorizedChannel = InterceptedService<Channel, BearerToken>;

/// A connected coordinator.
#[derive(Clone, Debug)]
pub(super) struct Server {
    channel: Channel,
    bearer: BearerToken,
}

impl Server {
    /// Connects to a coordinator.
    pub(super) async fn connect(options: &ConnectOptions) -> Result<Self, Failure> {
        let bearer = options.bearer()?;
        let channel = options.channel().await?;
        Ok(Self { channel, bearer })
    }

    /// Sends a request and returns its response.
    pub(super) async fn send<R: Request>(&self, request: R) -> Result<R::Response, Failure> {
        Ok(request.send(self).await?)
    }
}

/// A request of a unary call.
pub(super) trait Request {
    type Response;

    async fn send(self, server: &Server) -> Result<Self::Response, Status>;
}

/// Defines the client of a service and its unary calls.
macro_rules! define_client {
    (
        $service:ident { $($call:ident($request:ident) -> $response:ident;)+ }
        as $name:ident: $client:ident
    ) => {
        impl Server {
            pub(super) fn $name(&self) -> $client<AuthorizedChannel> {
                $client::with_interceptor(self.channel.clone(), self.bearer.clone())
                    .max_decoding_message_size(MAX_RESPONSE)
            }
        }

        $(impl Request for v1::$request {
            type Response = v1::$response;

            async fn send(self, server: &Server) -> Result<v1::$response, Status> {
                Ok(server.$name().$call(self).await?.into_inner())
            }
        })+
    };
}

client_calls! { define_client TournamentService; as tournaments: TournamentServiceClient }
client_calls! { define_client RankingService; as rankings: RankingServiceClient }
client_calls! { define_client BotService; as bots: BotServiceClient }
client_calls! { define_client TokenService; as tokens: TokenServiceClient }
client_calls! { define_client AuditService; as audit: AuditServiceClient }

impl Client {
    /// The same coordinator, without the caller's token.
    pub(super) fn anonymous(&self) -> Self {
        Self { token: None, ..self.clone() }
    }

    /// Connects to the coordinator and runs `work` with it.
    pub(super) fn run<T>(
        &self,
        work: impl AsyncFnOnce(Server) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        super::runtime()?
            .block_on(async { work(Server::connect(&self.connect_options()).await?).await })
    }

    /// Connects to the coordinator, sends a request and returns its response.
    pub(super) fn send<R: Request>(&self, request: R) -> Result<R::Response, Failure> {
        self.run(async |server| server.send(request).await)
    }

    fn connect_options(&self) -> ConnectOptions {
        let Self { server, token, ca, cert, key } = self.clone();
        let token = token.filter(|token| !token.is_empty());
        ConnectOptions { server: server.0, token, ca, cert, key }
    }
}

/// The output format and the coordinator of a command.
#[derive(Clone, Debug, Args)]
pub(super) struct ResponseArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) client: Client,
}

impl ResponseArgs {
    /// Prints a response as JSON or as text.
    pub(super) fn print(
        &self,
        object: impl FnOnce() -> Value,
        show: impl FnOnce(&mut Output) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        print(|out| if self.json { out.json(&object()) } else { show(out) })
    }
}

/// The tournament, the output format and the coordinator of a command.
#[derive(Clone, Debug, Args)]
pub(super) struct TournamentArgs {
    /// The tournament.
    #[arg(value_name = "T")]
    pub(super) tournament: String,
    #[command(flatten)]
    pub(super) response: ResponseArgs,
}

/// The URLs of the coordinators of one database, separated by commas.
#[derive(Clone, Debug)]
pub(super) struct Servers(pub(super) String);

impl FromStr for Servers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let to_message = |error: ConnectError| {
            let message = error.to_string();
            message.strip_prefix(&format!("{text}: ")).unwrap_or(&message).to_owned()
        };
        ConnectOptions::new(text).check().map(|()| Self(text.to_owned())).map_err(to_message)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::InvalidOption { .. } => Self::usage(error),
            ConnectError::Unreachable { .. } => {
                Self::Refused(format!("{error} name it with --server or ARBITER_SERVER"))
            }
            ConnectError::Incompatible { .. } => Self::Refused(error.to_string()),
        }
    }
}

/// Runs `work` until it finishes or the user interrupts it. Dropping it removes temporary files.
pub(super) async fn unless_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        () = interrupt() => Err(Failure::Negative("interrupted".to_owned())),
    }
}

/// The failure for a response that cannot be parsed.
pub(super) fn malformed_response(error: impl fmt::Display) -> Failure {
    let cause = printable(&error.to_string());
    Failure::Negative(format!("the coordinator sent a malformed response: {cause}"))
}

/// Completes on SIGINT or SIGTERM.
pub(super) async fn interrupt() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        }
        // If no handler can be installed, the signals end the process.
        _ => std::future::pending().await,
    }
}

/// Whether the connection failed (as opposed to a refusal by the coordinator).
pub(super) fn is_lost(status: &Status) -> bool {
    status.code() == Code::Unavailable || status.source().is_some()
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let printed = printable(status.message());
        let message = printed.trim();
        match status.code() {
            _ if is_lost(&status) => Self::Refused(format!(
                "lost the connection to the coordinator: {} (is it running? set its URL with \
                 --server or ARBITER_SERVER)",
                status.source().map_or(message.to_owned(), |cause| printable(&root_cause(cause)))
            )),
            Code::Unauthenticated => {
                Self::Refused(format!("{message}; set --token or ARBITER_TOKEN to a valid token"))
            }
            Code::PermissionDenied => Self::Refused(format!(
                "{message}; set --token or ARBITER_TOKEN to a token that allows it"
            )),
            Code::NotFound | Code::InvalidArgument | Code::AlreadyExists | Code::OutOfRange => {
                Self::Usage(message.to_owned())
            }
            Code::FailedPrecondition | Code::Aborted => Self::Negative(message.to_owned()),
            Code::ResourceExhausted => Self::Negative(format!("{message}; try again later")),
            Code::Unimplemented => Self::Negative(
                "the coordinator does not support this command; use the same version of arbiter"
                    .to_owned(),
            ),
            code => Self::Negative(format!("the coordinator failed: {message} ({code:?})")),
        }
    }
}

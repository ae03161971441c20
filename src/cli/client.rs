//! What all commands that talk to a coordinator have in common: where it is, who asks, and what its
//! answers mean for the exit code.

use std::error::Error as _;
use std::path::PathBuf;

use arbiter_proto::v1::audit_service_client::AuditServiceClient;
use arbiter_proto::v1::bot_service_client::BotServiceClient;
use arbiter_proto::v1::ranking_service_client::RankingServiceClient;
use arbiter_proto::v1::token_service_client::TokenServiceClient;
use arbiter_proto::v1::tournament_service_client::TournamentServiceClient;
use arbiter_worker::connect::{Access, Bearer, ConnectError, innermost};
use clap::Args;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::failure::Failure;
use crate::output::printable;

/// The largest answer that is read, in bytes: a page of a ranking or a log is far smaller.
const LARGEST: usize = 64 << 20;

/// Where the coordinator is, and who asks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Coordinator")]
pub(super) struct Client {
    /// Where the coordinator listens; of several, with commas between them, the first that answers
    /// is asked.
    #[arg(long, value_name = "URL", env = "ARBITER_SERVER")]
    #[arg(default_value = "http://127.0.0.1:7700")]
    server: String,
    /// What lets you in; in the environment other users of the machine do not see it.
    #[arg(long, value_name = "TOKEN", env = "ARBITER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Whom to trust instead of the system's authorities, for an https:// server (PEM).
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A certificate of your own, for a server that asks for one (PEM).
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key to it (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

/// A service's client behind a connection that says who asks.
type Link = InterceptedService<Channel, Bearer>;

/// A coordinator that is connected.
#[derive(Clone, Debug)]
pub(super) struct Server {
    channel: Channel,
    bearer: Bearer,
}

/// Makes the client of a service.
macro_rules! service {
    ($(#[$doc:meta])* $name:ident, $client:ident) => {
        $(#[$doc])*
        pub(super) fn $name(&self) -> $client<Link> {
            $client::with_interceptor(self.channel.clone(), self.bearer.clone())
                .max_decoding_message_size(LARGEST)
        }
    };
}

impl Server {
    /// Connects to a coordinator.
    pub(super) async fn reach(access: &Access) -> Result<Self, Failure> {
        let bearer = access.bearer().map_err(unconnected)?;
        let channel = access.channel().await.map_err(unconnected)?;
        Ok(Self { channel, bearer })
    }

    service!(
        /// Tournaments, editions and matches.
        tournaments, TournamentServiceClient
    );
    service!(
        /// Leaderboards.
        rankings, RankingServiceClient
    );
    service!(
        /// Bots and their versions.
        bots, BotServiceClient
    );
    service!(
        /// The audit log.
        audit, AuditServiceClient
    );
    service!(
        /// Tokens.
        tokens, TokenServiceClient
    );
}

impl Client {
    /// Connects to the coordinator and does `work` with it.
    pub(super) fn run<T>(
        &self,
        work: impl AsyncFnOnce(Server) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let failed = |error| Failure::Negative(format!("cannot wait: {error}"));
        let work = async { work(Server::reach(&self.access()).await?).await };
        runtime.map_err(failed)?.block_on(work)
    }

    fn access(&self) -> Access {
        let Self { server, token, ca, cert, key } = self.clone();
        let token = token.filter(|token| !token.is_empty());
        Access { server, token, ca, cert, key }
    }
}

fn unconnected(error: ConnectError) -> Failure {
    match error {
        ConnectError::Malformed { .. } => Failure::usage(error),
        ConnectError::Unreachable { .. } => {
            Failure::Refused(format!("{error} name it with --server or ARBITER_SERVER"))
        }
        ConnectError::Unfit { .. } => Failure::Refused(error.to_string()),
    }
}

/// Does `work` until it is done or the user asks for the end, so that what it has half made is
/// removed.
pub(super) async fn unless_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        () = interrupt() => Err(Failure::Negative("interrupted".to_owned())),
    }
}

/// Ends when the user asks for the end.
pub(super) async fn interrupt() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        }
        // Then the signals end the process by themselves.
        _ => std::future::pending().await,
    }
}

/// Whether the connection broke, rather than that the coordinator refused.
pub(super) fn is_lost(status: &Status) -> bool {
    status.code() == Code::Unavailable || status.source().is_some()
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let told = printable(status.message());
        let told = told.trim();
        match status.code() {
            _ if is_lost(&status) => Self::Refused(format!(
                "the coordinator cannot be reached any more: {}; is it running? name it with \
                 --server or ARBITER_SERVER",
                status.source().map_or(told.to_owned(), |cause| printable(&innermost(cause)))
            )),
            Code::Unauthenticated => Self::Refused(format!(
                "{told}; set --token or ARBITER_TOKEN to a token that is valid"
            )),
            Code::PermissionDenied => {
                Self::Refused(format!("{told}; set --token or ARBITER_TOKEN to one that allows it"))
            }
            Code::NotFound | Code::InvalidArgument | Code::AlreadyExists | Code::OutOfRange => {
                Self::Usage(told.to_owned())
            }
            Code::FailedPrecondition | Code::Aborted => Self::Negative(told.to_owned()),
            Code::ResourceExhausted => Self::Negative(format!("{told}; try again later")),
            Code::Unimplemented => Self::Negative(
                "the coordinator does not know this command; it and this program should have the \
                 same version"
                    .to_owned(),
            ),
            code => Self::Negative(format!("the coordinator failed: {told} ({code:?})")),
        }
    }
}

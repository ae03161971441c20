//! What all commands that talk to a coordinator have in common: where it is, who asks, and what its
//! answers mean for the exit code.

use std::error::Error as _;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use arbiter_proto::v1;
use arbiter_proto::v1::audit_service_client::AuditServiceClient;
use arbiter_proto::v1::bot_service_client::BotServiceClient;
use arbiter_proto::v1::ranking_service_client::RankingServiceClient;
use arbiter_proto::v1::token_service_client::TokenServiceClient;
use arbiter_proto::v1::tournament_service_client::TournamentServiceClient;
use arbiter_worker::connect::{BearerToken, ConnectError, ConnectOptions, root_cause};
use clap::Args;
use serde_json::Value;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::failure::Failure;
use crate::output::{Output, print, printable};

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
    server: Servers,
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
type Link = InterceptedService<Channel, BearerToken>;

/// A coordinator that is connected.
#[derive(Clone, Debug)]
pub(super) struct Server {
    channel: Channel,
    bearer: BearerToken,
}

impl Server {
    /// Connects to a coordinator.
    pub(super) async fn reach(access: &ConnectOptions) -> Result<Self, Failure> {
        let bearer = access.bearer()?;
        let channel = access.channel().await?;
        Ok(Self { channel, bearer })
    }

    /// Asks what one message answers.
    pub(super) async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, Failure> {
        Ok(question.ask(self).await?)
    }
}

/// A message that one other message answers.
pub(super) trait Question {
    type Answer;

    async fn ask(self, server: &Server) -> Result<Self::Answer, Status>;
}

/// The clients of services, and their calls that have one answer.
macro_rules! calls {
    ($(
        $service:ident: $client:ident {
            $($call:ident($request:ident) -> $answer:ident;)+
        }
    )+) => {
        impl Server {
            $(pub(super) fn $service(&self) -> $client<Link> {
                $client::with_interceptor(self.channel.clone(), self.bearer.clone())
                    .max_decoding_message_size(LARGEST)
            })+
        }

        $($(impl Question for v1::$request {
            type Answer = v1::$answer;

            async fn ask(self, server: &Server) -> Result<v1::$answer, Status> {
                Ok(server.$service().$call(self).await?.into_inner())
            }
        })+)+
    };
}

calls! {
    tournaments: TournamentServiceClient {
        create_tournament(CreateTournamentRequest) -> Tournament;
        list_tournaments(ListTournamentsRequest) -> ListTournamentsResponse;
        get_tournament(GetTournamentRequest) -> Tournament;
        start_edition(StartEditionRequest) -> Edition;
        estimate_edition(EstimateEditionRequest) -> EditionEstimate;
        certify_edition(CertifyEditionRequest) -> Certificate;
        cancel_tournament(CancelTournamentRequest) -> Tournament;
        close_tournament(CloseTournamentRequest) -> Tournament;
        set_beacon(SetBeaconRequest) -> Tournament;
        delete_tournament(DeleteTournamentRequest) -> DeleteTournamentResponse;
        check_edition(CheckEditionRequest) -> CheckEditionResponse;
        get_edition_source(GetEditionSourceRequest) -> EditionSource;
        list_quarantined(ListQuarantinedRequest) -> ListQuarantinedResponse;
        retry_quarantined(RetryQuarantinedRequest) -> RetryQuarantinedResponse;
        void_matches(VoidMatchesRequest) -> VoidMatchesResponse;
        find_collusion(FindCollusionRequest) -> FindCollusionResponse;
        get_match(GetMatchRequest) -> MatchStatus;
    }
    rankings: RankingServiceClient {
        get_ranking(GetRankingRequest) -> GetRankingResponse;
        get_standing(GetStandingRequest) -> GetStandingResponse;
        get_head_to_head(GetHeadToHeadRequest) -> GetHeadToHeadResponse;
        get_history(GetHistoryRequest) -> GetHistoryResponse;
    }
    bots: BotServiceClient {
        list_bots(ListBotsRequest) -> ListBotsResponse;
        get_trial(GetTrialRequest) -> TrialStatus;
        retry_trial(RetryTrialRequest) -> TrialStatus;
        get_bot_log(GetBotLogRequest) -> GetBotLogResponse;
        withdraw_bot(WithdrawBotRequest) -> WithdrawBotResponse;
        reinstate_bot(ReinstateBotRequest) -> ReinstateBotResponse;
    }
    tokens: TokenServiceClient {
        create_token(CreateTokenRequest) -> CreateTokenResponse;
        rotate_token(RotateTokenRequest) -> RotateTokenResponse;
        revoke_token(RevokeTokenRequest) -> RevokeTokenResponse;
        list_tokens(ListTokensRequest) -> ListTokensResponse;
    }
    audit: AuditServiceClient {
        list_audit_entries(ListAuditEntriesRequest) -> ListAuditEntriesResponse;
        list_workers(ListWorkersRequest) -> ListWorkersResponse;
        suspend_worker(SuspendWorkerRequest) -> SuspendWorkerResponse;
        reinstate_worker(ReinstateWorkerRequest) -> ReinstateWorkerResponse;
    }
}

impl Client {
    /// Connects to the coordinator and does `work` with it.
    pub(super) fn run<T>(
        &self,
        work: impl AsyncFnOnce(Server) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        super::runtime()?.block_on(async { work(Server::reach(&self.access()).await?).await })
    }

    /// Connects to the coordinator and asks it what one message answers.
    pub(super) fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, Failure> {
        self.run(async |server| server.ask(question).await)
    }

    fn access(&self) -> ConnectOptions {
        let Self { server, token, ca, cert, key } = self.clone();
        let token = token.filter(|token| !token.is_empty());
        ConnectOptions { server: server.0, token, ca, cert, key }
    }
}

/// How an answer is printed, and who is asked for it.
#[derive(Clone, Debug, Args)]
pub(super) struct AnswerArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) client: Client,
}

impl AnswerArgs {
    /// Prints an answer as JSON, or for people.
    pub(super) fn print(
        &self,
        object: impl FnOnce() -> Value,
        show: impl FnOnce(&mut Output) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        print(|out| if self.json { out.json(&object()) } else { show(out) })
    }
}

/// Which tournament an answer is of.
#[derive(Clone, Debug, Args)]
pub(super) struct TournamentArgs {
    /// The tournament.
    #[arg(value_name = "T")]
    pub(super) tournament: String,
    #[command(flatten)]
    pub(super) answer: AnswerArgs,
}

/// The addresses of coordinators of one database, with commas between them.
#[derive(Clone, Debug)]
pub(super) struct Servers(pub(super) String);

impl FromStr for Servers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unfit = |error: ConnectError| {
            let told = error.to_string();
            told.strip_prefix(&format!("{text}: ")).unwrap_or(&told).to_owned()
        };
        ConnectOptions::new(text).check().map(|()| Self(text.to_owned())).map_err(unfit)
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

/// An answer that cannot be understood.
pub(super) fn senseless(error: impl fmt::Display) -> Failure {
    let told = printable(&error.to_string());
    Failure::Negative(format!("the coordinator's answer makes no sense: {told}"))
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
                status.source().map_or(told.to_owned(), |cause| printable(&root_cause(cause)))
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

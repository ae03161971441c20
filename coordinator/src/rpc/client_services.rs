//! The calls of clients. Each is one use case of [`Service`].

use std::pin::Pin;

use arbiter_proto::v1;
use arbiter_proto::v1::audit_service_server::AuditService;
use arbiter_proto::v1::bot_service_server::BotService;
use arbiter_proto::v1::ranking_service_server::RankingService;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::token_service_server::TokenService;
use arbiter_proto::v1::tournament_service_server::TournamentService;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};

use super::status::to_error;
use crate::service::{Caller, Service, ServiceError};

/// The gRPC services of clients.
#[derive(Clone, Debug)]
pub(super) struct Clients(pub(super) Service);

/// A stream of responses.
pub(super) type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send + 'static>>;

/// Splits a request into the caller, identified by admission, and the message.
pub(super) fn split_request<T>(request: Request<T>) -> (Caller, T) {
    let (_, mut extensions, message) = request.into_parts();
    (extensions.remove().unwrap_or_default(), message)
}

/// Implements a gRPC service by the use cases of the same names: first those with one response,
/// then those with a stream of responses, then handwritten methods.
macro_rules! serve {
    (
        $service:ident {
            $($call:ident($request:ident) -> $response:ident;)*
        }
        streams { $($stream:ident = $streaming:ident($query:ident) -> $item:ident;)* }
        $($rest:tt)*
    ) => {
        #[tonic::async_trait]
        impl $service for Clients {
            $(
                async fn $call(
                    &self,
                    request: Request<v1::$request>,
                ) -> Result<Response<v1::$response>, Status> {
                    let (caller, message) = split_request(request);
                    Ok(Response::new(self.0.$call(&caller, message).await?))
                }
            )*
            $(
                type $stream = ResponseStream<v1::$item>;

                async fn $streaming(
                    &self,
                    request: Request<v1::$query>,
                ) -> Result<Response<Self::$stream>, Status> {
                    let (caller, message) = split_request(request);
                    let responses = self.0.$streaming(&caller, message).await?;
                    Ok(Response::new(Box::pin(responses.map(|response| Ok(response?)))))
                }
            )*
            $($rest)*
        }
    };
}

serve! {
    TournamentService {
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
        list_set_aside(ListSetAsideRequest) -> ListSetAsideResponse;
        retry_set_aside(RetrySetAsideRequest) -> RetrySetAsideResponse;
        void_matches(VoidMatchesRequest) -> VoidMatchesResponse;
        find_collusion(FindCollusionRequest) -> FindCollusionResponse;
        get_match(GetMatchRequest) -> MatchStatus;
    }
    streams {
        WatchEditionStream = watch_edition(WatchEditionRequest) -> Edition;
        ListMatchesStream = list_matches(ListMatchesRequest) -> MatchStatus;
        GetRecordStream = get_record(GetRecordRequest) -> RecordPiece;
    }
}

serve! {
    RankingService {
        get_ranking(GetRankingRequest) -> GetRankingResponse;
        get_standing(GetStandingRequest) -> GetStandingResponse;
        get_head_to_head(GetHeadToHeadRequest) -> GetHeadToHeadResponse;
        get_history(GetHistoryRequest) -> GetHistoryResponse;
        get_reply_times(GetReplyTimesRequest) -> GetReplyTimesResponse;
    }
    streams {
        WatchRankingStream = watch_ranking(GetRankingRequest) -> GetRankingResponse;
    }
}

serve! {
    BotService {
        list_bots(ListBotsRequest) -> ListBotsResponse;
        get_bot(GetBotRequest) -> GetBotResponse;
        get_trial(GetTrialRequest) -> TrialStatus;
        retry_trial(RetryTrialRequest) -> TrialStatus;
        get_bot_log(GetBotLogRequest) -> GetBotLogResponse;
        withdraw_bot(WithdrawBotRequest) -> WithdrawBotResponse;
        reinstate_bot(ReinstateBotRequest) -> ReinstateBotResponse;
    }
    streams {}

    async fn submit_version(
        &self,
        request: Request<Streaming<v1::SubmitVersionRequest>>,
    ) -> Result<Response<v1::Version>, Status> {
        let (caller, mut parts) = split_request(request);
        let first = parts.message().await?.and_then(|message| message.part);
        let Some(Part::Submission(submission)) = first else {
            return Err(Status::invalid_argument("the first part of a submission is its header"));
        };
        let pieces = parts.map(|message| match message.map_err(|status| to_error(&status))?.part {
            Some(Part::Bundle(piece)) => Ok(piece),
            _ => Err(ServiceError::invalid_argument(
                "after its header a submission has only pieces of its bundle",
            )),
        });
        Ok(Response::new(self.0.submit_version(&caller, &submission, pieces).await?))
    }
}

serve! {
    TokenService {
        create_token(CreateTokenRequest) -> CreateTokenResponse;
        rotate_token(RotateTokenRequest) -> RotateTokenResponse;
        revoke_token(RevokeTokenRequest) -> RevokeTokenResponse;
        list_tokens(ListTokensRequest) -> ListTokensResponse;
    }
    streams {}
}

serve! {
    AuditService {
        list_audit_entries(ListAuditEntriesRequest) -> ListAuditEntriesResponse;
        list_workers(ListWorkersRequest) -> ListWorkersResponse;
        suspend_worker(SuspendWorkerRequest) -> SuspendWorkerResponse;
        reinstate_worker(ReinstateWorkerRequest) -> ReinstateWorkerResponse;
    }
    streams {}
}

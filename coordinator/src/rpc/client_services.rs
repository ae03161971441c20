//! The calls of clients. Each is one use case of [`Service`].

use std::pin::Pin;

use arbiter_proto::v1::audit_service_server::AuditService;
use arbiter_proto::v1::bot_service_server::BotService;
use arbiter_proto::v1::ranking_service_server::RankingService;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::token_service_server::TokenService;
use arbiter_proto::v1::tournament_service_server::TournamentService;
use arbiter_proto::{client_calls, v1};
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
/// then those with a stream of responses, then handwritten methods. [`client_calls`] adds the
/// first.
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

client_calls! {
    serve TournamentService;
    streams {
        WatchEditionStream = watch_edition(WatchEditionRequest) -> Edition;
        ListMatchesStream = list_matches(ListMatchesRequest) -> MatchStatus;
        GetRecordStream = get_record(GetRecordRequest) -> RecordPiece;
        GetPackageStream = get_package(GetPackageRequest) -> BundlePiece;
    }

    async fn set_package(
        &self,
        request: Request<Streaming<v1::SetPackageRequest>>,
    ) -> Result<Response<v1::Tournament>, Status> {
        use v1::set_package_request::Part;

        let (caller, mut parts) = split_request(request);
        let first = parts.message().await?.and_then(|message| message.part);
        let Some(Part::Upload(upload)) = first else {
            return Err(Status::invalid_argument("the first part of a package describes it"));
        };
        let pieces = parts.map(|message| match message.map_err(|status| to_error(&status))?.part {
            Some(Part::Bundle(piece)) => Ok(piece),
            _ => Err(ServiceError::invalid_argument(
                "after its description a package has only pieces of its files",
            )),
        });
        Ok(Response::new(self.0.set_package(&caller, &upload, pieces).await?))
    }
}

client_calls! {
    serve RankingService;
    streams {
        WatchRankingStream = watch_ranking(GetRankingRequest) -> GetRankingResponse;
    }
}

client_calls! {
    serve BotService;
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

client_calls! {
    serve TokenService;
    streams {}
}

client_calls! {
    serve AuditService;
    streams {}
}

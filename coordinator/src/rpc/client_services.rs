//! The calls of clients. Each is one use case of [`Service`].

use std::pin::Pin;

use arbiter_proto::v1::audit_service_server::AuditService;
use arbiter_proto::v1::bot_service_server::BotService;
use arbiter_proto::v1::ranking_service_server::RankingService;
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

/// A part of an uploaded bundle.
enum UploadPart<H> {
    /// The first part, which says what the bundle is.
    Header(H),
    /// The next bytes of the bundle.
    Piece(Vec<u8>),
}

/// Splits the parts of an upload into its header and the pieces of its bundle.
async fn split_upload<M, H>(
    mut parts: Streaming<M>,
    part: impl Fn(M) -> Option<UploadPart<H>>,
) -> Result<(H, impl Stream<Item = Result<Vec<u8>, ServiceError>>), Status> {
    let Some(UploadPart::Header(header)) = parts.message().await?.and_then(&part) else {
        return Err(Status::invalid_argument("the first part of an upload is its header"));
    };
    let pieces =
        parts.map(move |message| match part(message.map_err(|status| to_error(&status))?) {
            Some(UploadPart::Piece(piece)) => Ok(piece),
            _ => Err(ServiceError::invalid_argument(
                "after its header an upload has only pieces of its bundle",
            )),
        });
    Ok((header, pieces))
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

        let (caller, parts) = split_request(request);
        let (upload, pieces) = split_upload(parts, |message| match message.part? {
            Part::Upload(upload) => Some(UploadPart::Header(upload)),
            Part::Bundle(piece) => Some(UploadPart::Piece(piece)),
        })
        .await?;
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
        use v1::submit_version_request::Part;

        let (caller, parts) = split_request(request);
        let (submission, pieces) = split_upload(parts, |message| match message.part? {
            Part::Submission(submission) => Some(UploadPart::Header(submission)),
            Part::Bundle(piece) => Some(UploadPart::Piece(piece)),
        })
        .await?;
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

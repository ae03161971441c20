//! Long responses end when the caller's token is revoked or expires, or its secret is replaced.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame};
use tonic::Status;

use crate::access::stream_revocation::OpenToken;
use crate::boxed_future::BoxedFuture;
use crate::service::ServiceError;

/// The body of a response, which ends with the caller's token.
pub(super) struct RevocableBody {
    body: Body,
    token_ends: Option<BoxedFuture<()>>,
}

impl RevocableBody {
    pub(super) fn new(body: Body, token: OpenToken) -> Self {
        Self { body, token_ends: Some(Box::pin(async move { token.ended().await })) }
    }
}

impl HttpBody for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(token_ends) = &mut self.token_ends else { return Poll::Ready(None) };
        if token_ends.as_mut().poll(context).is_pending() {
            return Pin::new(&mut self.body).poll_frame(context);
        }
        self.token_ends = None;
        self.body = Body::empty();
        let head = Status::from(ServiceError::token_ended()).into_http::<Body>().into_parts().0;
        Poll::Ready(Some(Ok(Frame::trailers(head.headers))))
    }
}

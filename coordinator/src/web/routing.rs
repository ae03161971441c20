//! Routes of handlers whose types are erased.
//!
//! axum puts some thirty generic types around a handler. With a hundred handlers they took a
//! quarter of the time that the compiler needs for this crate: it looked at all of a handler's
//! future each time. Here they are made once, around a pointer.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{self, MethodRouter};

use crate::boxed_future::BoxedFuture;

/// A handler of any type.
struct ErasedHandler<S>(Arc<dyn Fn(Request, S) -> BoxedFuture<Response> + Send + Sync>);

impl<S: 'static> ErasedHandler<S> {
    fn new<T: 'static>(handler: impl Handler<T, S>) -> Self {
        Self(Arc::new(move |request, state| Box::pin(handler.clone().call(request, state))))
    }
}

impl<S> Clone for ErasedHandler<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Send + Sync + 'static> Handler<(), S> for ErasedHandler<S> {
    type Future = BoxedFuture<Response>;

    fn call(self, request: Request, state: S) -> BoxedFuture<Response> {
        (self.0)(request, state)
    }
}

/// Routes `GET` and `HEAD` requests to this handler.
pub(super) fn get<T: 'static, S: Clone + Send + Sync + 'static>(
    handler: impl Handler<T, S>,
) -> MethodRouter<S> {
    routing::get(ErasedHandler::new(handler))
}

/// Routes `POST` requests to this handler.
pub(super) fn post<T: 'static, S: Clone + Send + Sync + 'static>(
    handler: impl Handler<T, S>,
) -> MethodRouter<S> {
    routing::post(ErasedHandler::new(handler))
}

//! A form that was filled in on a page of the session's: a handler that takes one has no other way to
//! it than through the check.

use axum::Form;
use axum::extract::{FromRef, FromRequest, FromRequestParts as _, Request};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::session::Session;
use crate::service::Service;

/// A form, and whose it is.
#[derive(Debug)]
pub(super) struct Posted<F> {
    pub(super) session: Session,
    pub(super) form: F,
}

/// What stands in it: the session's hash, and what it is for.
#[derive(Debug, Deserialize)]
struct Fields<F> {
    csrf: String,
    #[serde(flatten)]
    form: F,
}

impl<F: DeserializeOwned, S: Send + Sync> FromRequest<S> for Posted<F>
where
    Service: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let session = Session::from_request_parts(&mut parts, state).await;
        let session = session.map_err(IntoResponse::into_response)?;
        let headers = parts.headers.clone();
        let read = Form::from_request(Request::from_parts(parts, body), state).await;
        let Form(Fields { csrf, form }) = read.map_err(IntoResponse::into_response)?;
        session.check(&headers, &csrf).map_err(IntoResponse::into_response)?;
        Ok(Self { session, form })
    }
}

//! Forms protected against cross-site request forgery. A handler can read such a form only after
//! its CSRF token was checked.

use axum::Form;
use axum::extract::{FromRef, FromRequest, FromRequestParts as _, Request};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::session::Session;
use crate::service::Service;

/// A form whose CSRF token is valid, and its session.
#[derive(Debug)]
pub(super) struct CsrfForm<F> {
    pub(super) session: Session,
    pub(super) form: F,
}

/// The fields of the form, with the CSRF token.
#[derive(Debug, Deserialize)]
struct Fields<F> {
    csrf: String,
    #[serde(flatten)]
    form: F,
}

impl<F: DeserializeOwned, S: Send + Sync> FromRequest<S> for CsrfForm<F>
where
    Service: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let session = Session::from_request_parts(&mut parts, state).await;
        let session = session.map_err(IntoResponse::into_response)?;
        let headers = parts.headers.clone();
        let result = Form::from_request(Request::from_parts(parts, body), state).await;
        let Form(Fields { csrf, form }) = result.map_err(IntoResponse::into_response)?;
        session.check_csrf(&headers, &csrf).map_err(IntoResponse::into_response)?;
        Ok(Self { session, form })
    }
}

//! Forms protected against cross-site request forgery. A handler can read such a form only after
//! its CSRF token was checked.
//!
//! If the form is out of date or its handler fails, the error page shows the texts that the visitor
//! wrote ([`WrittenTexts`]), so that they are not lost.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use axum::Form;
use axum::body::{Body, Bytes};
use axum::extract::rejection::FormRejection;
use axum::extract::{FromRef, FromRequest, FromRequestParts as _, Request};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::WebError;
use super::session::Session;
use crate::service::Service;

/// Maximum length of a word that is quickly written again, in characters.
const MAX_SHORT: usize = 20;

/// A form whose error page shows what the visitor wrote.
pub(super) trait WrittenForm {
    /// Whether people write a text into the field of this name. Hidden fields and boxes have
    /// no such text. All parameters count, although some are choices.
    fn is_written(_field: &str) -> bool {
        false
    }
}

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

impl<F, S> FromRequest<S> for CsrfForm<F>
where
    F: WrittenForm + DeserializeOwned + Send,
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let session = Session::from_request_parts(&mut parts, state).await;
        let session = session.map_err(IntoResponse::into_response)?;
        let request = Request::from_parts(parts.clone(), body);
        let body =
            Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        let Fields { csrf, form } =
            read(&parts, &body, state).await.map_err(IntoResponse::into_response)?;
        let checked = session.check_csrf(&parts.headers, &csrf);
        // Another site must not choose what this server shows. The check passes if a client does
        // not say where a form is from.
        let says_origin =
            ["sec-fetch-site", "origin"].iter().any(|name| parts.headers.contains_key(*name));
        let is_own =
            says_origin && checked.as_ref().err().is_none_or(WebError::is_out_of_date_form);
        if is_own && let Some(written) = parts.extensions.get::<WrittenTexts>() {
            let fields = read::<BTreeMap<String, String>, S>(&parts, &body, state).await;
            let is_kept = |(name, value): &(String, String)| F::is_written(name) && is_long(value);
            let texts = fields.unwrap_or_default().into_iter().filter(is_kept);
            written.record(texts.map(|(_, value)| value).collect());
        }
        checked.map_err(IntoResponse::into_response)?;
        Ok(Self { session, form })
    }
}

/// The texts in the form of a request, for its error page.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenTexts(Arc<OnceLock<Vec<String>>>);

impl WrittenTexts {
    /// The texts. None if the form was not read.
    pub(super) fn get(&self) -> &[String] {
        self.0.get().map(Vec::as_slice).unwrap_or_default()
    }

    fn record(&self, texts: Vec<String>) {
        // A request has one form.
        drop(self.0.set(texts));
    }
}

/// Reads the fields of a form from the body of a request.
async fn read<F, S>(parts: &Parts, body: &Bytes, state: &S) -> Result<F, FormRejection>
where
    F: DeserializeOwned,
    S: Send + Sync,
{
    let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
    Form::from_request(request, state).await.map(|Form(fields)| fields)
}

/// Whether a text takes time to write again: it has several words, or one long one.
fn is_long(text: &str) -> bool {
    let text = text.trim();
    text.contains(char::is_whitespace) || text.chars().count() > MAX_SHORT
}

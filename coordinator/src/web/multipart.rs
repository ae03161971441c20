//! Multipart forms (file uploads), read field by field in the order of the page.
//!
//! The first field is the CSRF token. It is checked before the rest of the form is read, so that a
//! forged form costs little.

use axum::extract::Multipart;
use axum::extract::multipart::{Field, MultipartError};
use axum::http::{HeaderMap, StatusCode};
use tokio_stream::{Stream, StreamExt as _};

use super::error::WebError;
use super::session::Session;
use crate::service::ServiceError;

/// Maximum length of short fields (CSRF token, names), in bytes.
const MAX_SHORT_FIELD_BYTES: usize = 256;

/// A multipart form whose CSRF token is valid.
pub(super) struct Upload(Multipart);

impl Upload {
    /// Reads the first field, and refuses the form if its CSRF token is invalid.
    pub(super) async fn checked(
        multipart: Multipart,
        session: &Session,
        headers: &HeaderMap,
    ) -> Result<Self, WebError> {
        let mut upload = Self(multipart);
        let csrf = upload.text("csrf", MAX_SHORT_FIELD_BYTES).await?;
        session.check_csrf(headers, &csrf)?;
        Ok(upload)
    }

    /// Reads the next field, which must have this name.
    pub(super) async fn field(&mut self, name: &str) -> Result<Field<'_>, WebError> {
        let field = self.0.next_field().await.map_err(|error| read_error(&error))?;
        field.filter(|field| field.name() == Some(name)).ok_or_else(|| {
            let message = format!("the form field `{name}` is missing or out of order");
            WebError::new(StatusCode::BAD_REQUEST, message)
        })
    }

    /// Reads the text of the next field, which must have this name. `max` is in bytes.
    pub(super) async fn text(&mut self, name: &str, max: usize) -> Result<String, WebError> {
        let mut field = self.field(name).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = field.chunk().await.map_err(|error| read_error(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > max {
                let message = format!("`{name}` is longer than {max} bytes");
                return Err(WebError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
            }
        }
        String::from_utf8(bytes).map_err(|_| {
            WebError::new(StatusCode::BAD_REQUEST, format!("`{name}` is not valid UTF-8"))
        })
    }

    /// The pieces of the next field, which must have this name, for the service.
    pub(super) async fn pieces(
        &mut self,
        name: &str,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, ServiceError>>, WebError> {
        Ok(self.file(name).await?.1)
    }

    /// The file name of the next field, which must have this name, and its pieces for the service.
    /// The file name is empty if the client sent none.
    pub(super) async fn file(
        &mut self,
        name: &str,
    ) -> Result<(String, impl Stream<Item = Result<Vec<u8>, ServiceError>>), WebError> {
        let field = self.field(name).await?;
        let file_name = field.file_name().unwrap_or_default().to_owned();
        let pieces = field.map(|chunk| match chunk {
            Ok(chunk) => Ok(chunk.to_vec()),
            Err(error) => Err(ServiceError::invalid_argument(format!(
                "the upload is incomplete: {}",
                error.body_text()
            ))),
        });
        Ok((file_name, pieces))
    }

    /// Reads a name, without surrounding white space.
    pub(super) async fn name(&mut self, name: &str) -> Result<String, WebError> {
        Ok(self.text(name, MAX_SHORT_FIELD_BYTES).await?.trim().to_owned())
    }
}

/// The error for a form that cannot be read.
fn read_error(error: &MultipartError) -> WebError {
    // axum reports an incomplete form as a server error; it is the client's.
    let status = match error.status() {
        status if status.is_server_error() => StatusCode::BAD_REQUEST,
        status => status,
    };
    WebError::new(status, format!("the form cannot be read: {}", error.body_text()))
}

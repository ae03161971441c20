//! Forms that carry a file: read field by field, in the order in which the page has them.
//!
//! The first field is the session's hash. It is checked before anything else of the form is read,
//! so that a stranger's form costs nothing.

use axum::extract::Multipart;
use axum::extract::multipart::{Field, MultipartError};
use axum::http::{HeaderMap, StatusCode};

use super::error::WebError;
use super::session::Session;

/// No hash and no name is as long as this, in bytes.
const SHORT: usize = 256;

/// A form that came from a page of the session's.
pub(super) struct Upload(Multipart);

impl Upload {
    /// Reads the first field, and refuses a form that did not come from a page of the session's.
    pub(super) async fn checked(
        multipart: Multipart,
        session: &Session,
        headers: &HeaderMap,
    ) -> Result<Self, WebError> {
        let mut upload = Self(multipart);
        let csrf = upload.text("csrf", SHORT).await?;
        session.check(headers, &csrf)?;
        Ok(upload)
    }

    /// The next field, which must have this name.
    pub(super) async fn field(&mut self, name: &str) -> Result<Field<'_>, WebError> {
        let field = self.0.next_field().await.map_err(|error| broken(&error))?;
        field.filter(|field| field.name() == Some(name)).ok_or_else(|| {
            let why = format!("the form has no field `{name}` where it should be");
            WebError::new(StatusCode::BAD_REQUEST, why)
        })
    }

    /// The text of the next field, which must have this name and be no longer than this, in bytes.
    pub(super) async fn text(&mut self, name: &str, most: usize) -> Result<String, WebError> {
        let mut field = self.field(name).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = field.chunk().await.map_err(|error| broken(&error))? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > most {
                let why = format!("`{name}` is longer than {most} bytes");
                return Err(WebError::new(StatusCode::PAYLOAD_TOO_LARGE, why));
            }
        }
        String::from_utf8(bytes).map_err(|_| {
            WebError::new(StatusCode::BAD_REQUEST, format!("`{name}` is no text (UTF-8)"))
        })
    }

    /// A name.
    pub(super) async fn name(&mut self, name: &str) -> Result<String, WebError> {
        Ok(self.text(name, SHORT).await?.trim().to_owned())
    }
}

/// What is said of a form that cannot be read.
fn broken(error: &MultipartError) -> WebError {
    // That it did not arrive is no failure of ours.
    let status = error.status();
    let status = if status.is_server_error() { StatusCode::BAD_REQUEST } else { status };
    WebError::new(status, format!("the form cannot be read: {}", error.body_text()))
}

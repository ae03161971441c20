//! Creating a tournament in a browser: the user pastes or uploads the file. The service parses it
//! as it does for the command line.

use arbiter_proto::v1::CreateTournamentRequest;
use axum::extract::Multipart;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use super::error::WebError;
use super::multipart::Upload;
use super::session::Session;
use super::{flash, layout};
use crate::access::Role;

/// Maximum size of a tournament file, in bytes. It may contain boards.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Maximum size of the form: a pasted file and an uploaded file.
pub(super) const MAX_FORM_BYTES: usize = 2 * MAX_FILE_BYTES + (1 << 16);

/// The initial text of the form.
const EXAMPLE: &str = "\
name = \"cup\"
game = \"gomoku\"

[schedule]
kind = \"round_robin\"
sides = \"both\"
";

/// The form that creates a tournament.
pub(super) async fn form(session: Session) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    Ok(render(&session, EXAMPLE, None))
}

/// Creates a tournament.
pub(super) async fn create(
    session: Session,
    headers: HeaderMap,
    multipart: Multipart,
) -> Result<Response, WebError> {
    let mut upload = Upload::checked(multipart, &session, &headers).await?;
    session.caller.require(Role::Organiser)?;
    let pasted = upload.text("text", MAX_FILE_BYTES).await?;
    let uploaded = upload.text("file", MAX_FILE_BYTES).await?;
    let file = if uploaded.is_empty() { pasted } else { uploaded };
    // Browsers send CRLF line ends.
    let file = file.replace("\r\n", "\n");
    let request = CreateTournamentRequest { file: file.clone() };
    match session.service.create_tournament(&session.caller, request).await {
        Ok(tournament) => {
            Ok(flash::redirect(&format!("/t/{}", tournament.name), "created").into_response())
        }
        Err(error) => {
            let error = WebError::from(error);
            Ok((error.status(), render(&session, &file, Some(error.message()))).into_response())
        }
    }
}

/// Renders the form with the submitted text and the error, if any.
fn render(session: &Session, text: &str, error: Option<&str>) -> Markup {
    let title = "Create a tournament";
    let body = html! {
        p {
            "A tournament file sets the game, the schedule, the clock and the limits. Omitted settings "
            "default to those of the game's official tournament. Board names refer to the boards that "
            "come with Arbiter. This page does not submit house bots: "
            code { "arbiter tournament create FILE" } " creates the tournament and submits them."
        }
        (layout::error_message(error))
        form.fields method="post" enctype="multipart/form-data" action="/new" {
            (layout::csrf_field(session))
            p {
                label for="text" { "Tournament file (TOML)" }
                textarea #text name="text" rows="24" spellcheck="false" {
                    // Browsers drop the first line break in a textarea.
                    "\n" (text)
                }
            }
            p {
                label for="file" { "Or upload a file" }
                input #file type="file" name="file" accept=".toml,text/plain"
                    aria-describedby="file-help";
                small #file-help { "The uploaded file replaces the text above." }
            }
            p { button type="submit" { "Create tournament" } }
        }
    };
    layout::page(title, session, &body)
}

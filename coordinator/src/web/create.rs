//! Tournaments made from a browser: the file is pasted or uploaded, and read by the service as it is
//! read for the command line.

use arbiter_proto::v1::CreateTournamentRequest;
use axum::extract::Multipart;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use super::error::WebError;
use super::multipart::Upload;
use super::session::Session;
use super::{done, page};
use crate::access::Role;

/// The longest file, in bytes: its boards may be in it.
const LONGEST: usize = 1 << 20;
/// The largest form: the file as it was pasted, and one that was uploaded.
pub(super) const LARGEST_FORM: usize = 2 * LONGEST + (1 << 16);

/// What stands in the form at first.
const EXAMPLE: &str = "\
name = \"cup\"
game = \"gomoku\"

[schedule]
kind = \"round_robin\"
sides = \"both\"
";

/// The page to make a tournament.
pub(super) async fn form(session: Session) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    Ok(shown(&session, EXAMPLE, None))
}

/// Makes a tournament.
pub(super) async fn create(
    session: Session,
    headers: HeaderMap,
    multipart: Multipart,
) -> Result<Response, WebError> {
    let mut upload = Upload::checked(multipart, &session, &headers).await?;
    session.caller.require(Role::Organiser)?;
    let pasted = upload.text("text", LONGEST).await?;
    let uploaded = upload.text("file", LONGEST).await?;
    let file = if uploaded.is_empty() { pasted } else { uploaded };
    // A browser ends lines in its own way.
    let file = file.replace("\r\n", "\n");
    let request = CreateTournamentRequest { file: file.clone() };
    match session.service.create_tournament(&session.caller, request).await {
        Ok(made) => Ok(done::to(&format!("/t/{}", made.name), "made").into_response()),
        Err(status) => {
            let error = WebError::from(status);
            Ok((error.status(), shown(&session, &file, Some(error.why()))).into_response())
        }
    }
}

/// The form, with what was sent and why it was refused.
fn shown(session: &Session, text: &str, refused: Option<&str>) -> Markup {
    let title = "Make a tournament";
    let body = html! {
        p {
            "A tournament file says the game, the schedule, clock and limits; what it leaves out is as "
            "in the official tournament of the game. Boards by name are those that are shipped; the "
            "house bots that it names are submitted by the command line: "
            code { "arbiter tournament create FILE" } " does all of it at once."
        }
        (page::refused(refused))
        form.fields method="post" enctype="multipart/form-data" action="/new" {
            (page::csrf(session))
            p {
                label for="text" { "The tournament file (TOML)" }
                textarea #text name="text" rows="24" spellcheck="false" {
                    // The first line break of the contents is not read as one of them.
                    "\n" (text)
                }
            }
            p {
                label for="file" { "Or upload it instead" }
                input #file type="file" name="file" accept=".toml,text/plain"
                    aria-describedby="file-help";
                small #file-help { "It is taken in place of the text above." }
            }
            p { button type="submit" { "Make it" } }
        }
    };
    page::page(title, session, &body)
}

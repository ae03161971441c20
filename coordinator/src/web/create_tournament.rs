//! Creating a tournament in a browser: the user chooses a game and fills in a form
//! ([`tournament_form`]), or pastes or uploads the file. The service parses it as it does for the
//! command line.

use arbiter_proto::v1::CreateTournamentRequest;
use axum::extract::Multipart;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

use super::error::WebError;
use super::multipart::Upload;
use super::session::Session;
use super::{flash, layout, tournament_form};
use crate::access::Role;

/// Maximum size of a tournament file, in bytes. It may contain boards.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Maximum size of the form: a pasted file and an uploaded file.
pub(super) const MAX_FORM_BYTES: usize = 2 * MAX_FILE_BYTES + (1 << 16);

/// The title of the page.
pub(super) const TITLE: &str = "Create a tournament";

/// The initial text of the form.
pub(super) const EXAMPLE: &str = "\
name = \"cup\"
game = \"gomoku\"

[schedule]
kind = \"round_robin\"
sides = \"both\"
";

/// The form that creates a tournament.
pub(super) async fn form(session: Session) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    render(&session, None).await
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
    match create_from(&session, file.clone()).await {
        Ok(created) => Ok(created.into_response()),
        Err(error) => {
            let page = render_file(&session, &file, Some(error.message()));
            Ok((error.status(), page).into_response())
        }
    }
}

/// Creates the tournament of a file.
pub(super) async fn create_from(session: &Session, file: String) -> Result<Redirect, WebError> {
    let done = if names_house_bots(&file) { "created-with-house" } else { "created" };
    let request = CreateTournamentRequest { file };
    let tournament = session.service.create_tournament(&session.caller, request).await?;
    Ok(flash::redirect(&format!("/t/{}", tournament.name), done))
}

/// Whether a tournament file names house bots. A page cannot submit them.
fn names_house_bots(file: &str) -> bool {
    let file: toml::Table = file.parse().unwrap_or_default();
    let bots = file.get("house").and_then(|house| house.get("bots")?.as_array());
    bots.is_some_and(|bots| !bots.is_empty())
}

/// The field for a packed game package. `help` says what happens with it.
pub(super) fn package_field(help: &str) -> Markup {
    html! {
        p {
            label for="package" { "Packed game package" }
            input #package type="file" name="package" required accept=".zst"
                aria-describedby="package-help";
            small #package-help {
                "The file that " code { "arbiter game pack DIR" } " writes. " (help)
            }
        }
    }
}

/// Renders the page with all ways to create a tournament and the error, if any.
pub(super) async fn render(session: &Session, error: Option<&str>) -> Result<Markup, WebError> {
    let body = html! {
        (layout::error_message(error))
        h2 { "Choose a game" }
        ul {
            @for choice in tournament_form::choices(session).await? {
                li { a href=(choice.address) { (choice.title) } }
            }
        }
        h2 { "Upload a game package" }
        form.fields method="post" enctype="multipart/form-data" action="/new/package" {
            (layout::csrf_field(session))
            (package_field("Its parameters become the fields of a form."))
            p { button type="submit" { "Continue" } }
        }
        h2 { "Write a tournament file" }
        (file_form(session, EXAMPLE))
    };
    Ok(layout::page(TITLE, session, &body))
}

/// Renders the page with the text of a tournament file and the error, if any.
pub(super) fn render_file(session: &Session, text: &str, error: Option<&str>) -> Markup {
    let body = html! {
        p { a href="/new" { "Choose a game instead" } }
        (layout::error_message(error))
        (file_form(session, text))
    };
    let parents = [(TITLE, "/new".to_owned())];
    layout::page_below(&parents, "Tournament file", session, &body)
}

/// The form for a tournament file.
fn file_form(session: &Session, text: &str) -> Markup {
    html! {
        p {
            "A tournament file sets the game, the schedule, the clock and the limits. Omitted settings "
            "default to those of the game's official tournament. In Bitwa, the names in " code { "boards" }
            " are those of boards that come with Arbiter. This page does not submit house bots (the "
            "organiser's own bots): "
            code { "arbiter tournament create FILE" } " creates the tournament and submits them."
        }
        form.fields method="post" enctype="multipart/form-data" action="/new" {
            (layout::csrf_field(session))
            p {
                label for="text" { "Tournament file (TOML)" }
                textarea #text name="text" rows="24" spellcheck="false" {
                    // Browsers drop the first line break in a textarea.
                    "\n" (layout::form_value(text))
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
    }
}

//! Submitting a version in a browser: an archive, as `arbiter submit` sends it, or one source file,
//! which is packed here with the manifest that it lacks. No archive is unpacked here.

use std::fmt::Write as _;

use arbiter_games::{EntrantName, split_owner};
use arbiter_packages::{MAX_SOURCE_FILE, SourceFile};
use arbiter_proto::v1::{
    Bot, GetTournamentRequest, ListBotsRequest, Submission, Tournament, Version,
};
use axum::extract::{Multipart, Path, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_stream::StreamExt as _;

use super::entry_text::{entry_of, entry_text, new_bot_outlook};
use super::error::{WebError, http_status, mark_formatted};
use super::multipart::Upload;
use super::session::Session;
use super::tournament_page::{Tab, TournamentPage};
use super::uploaded_archive::{
    BundlePieces, HEAD_BYTES, NamedArchive, UploadedFile, not_an_archive,
};
use super::{flash, layout, uploaded_archive};
use crate::access::Role;
use crate::service::{MAX_BUNDLE, ServiceError};

/// Maximum size of the form: a bundle and 1 MiB for the other fields.
pub(super) const MAX_FORM_BYTES: usize = MAX_BUNDLE + (1 << 20);
/// Single files that are in memory at the same time, at most [`MAX_SOURCE_FILE`] bytes each.
static SINGLE_FILES: Semaphore = Semaphore::const_new(8);

/// The query string of the form: the bot to preselect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SubmitQuery {
    bot: String,
}

/// The form.
pub(super) async fn form(
    session: Session,
    Path(tournament): Path<String>,
    Query(SubmitQuery { bot }): Query<SubmitQuery>,
) -> Result<Response, WebError> {
    let status = match session.caller.require(Role::Player) {
        Ok(_) => StatusCode::OK,
        // The page says whether bots can enter, and how to log in.
        Err(error) => http_status(error.kind()),
    };
    let page = render(&session, &tournament, &bot, None).await?;
    let mut response = (status, page).into_response();
    mark_formatted(&mut response);
    Ok(response)
}

/// Submits a version.
pub(super) async fn submit(
    session: Session,
    headers: HeaderMap,
    Path(tournament): Path<String>,
    multipart: Multipart,
) -> Result<Response, WebError> {
    let mut upload = Upload::checked(multipart, &session, &headers).await?;
    // Before anything of the file is read.
    session.caller.require(Role::Player)?;
    let bot = upload.name("bot").await?;
    match forward_upload(&session, &tournament, &bot, upload).await {
        Ok(Version { bot, number, .. }) => {
            let path = format!("/t/{tournament}/bots/{bot}/versions/{number}");
            Ok(flash::redirect(&path, "submit").into_response())
        }
        Err(error) => {
            let page = render(&session, &tournament, &bot, Some(&error)).await?;
            Ok((error.status(), page).into_response())
        }
    }
}

/// Passes the upload to the service: an archive as it arrives, a single file packed.
async fn forward_upload(
    session: &Session,
    tournament: &str,
    bot: &str,
    mut upload: Upload,
) -> Result<Version, WebError> {
    let (file, pieces) = upload.file("bundle").await?;
    let mut pieces = Box::pin(pieces);
    let mut head = Vec::new();
    while head.len() < HEAD_BYTES
        && let Some(piece) = pieces.next().await.transpose()?
    {
        head.extend(piece);
    }
    let submit = async |bot: &str, pieces: BundlePieces<'_>| {
        let submission =
            Submission { tournament: tournament.to_owned(), bot: bot.to_owned(), house: false };
        Ok(session.service.submit_version(&session.caller, &submission, pieces).await?)
    };
    // An empty upload is no archive, but is refused like one.
    let uploaded = UploadedFile::detect(&file, &head);
    if uploaded != UploadedFile::Other || head.is_empty() {
        if bot.is_empty() {
            return Err(bad_request("enter the name of the bot: an archive does not give it"));
        }
        if uploaded == UploadedFile::Misnamed && !head.is_empty() {
            return Err(not_an_archive(&file).into());
        }
        let all: BundlePieces<'_> = Box::pin(tokio_stream::once(Ok(head)).chain(pieces));
        return match uploaded {
            UploadedFile::NamedArchive => submit(bot, Box::pin(NamedArchive::new(all))).await,
            _ => submit(bot, all).await,
        };
    }
    let _permit = SINGLE_FILES.acquire().await.expect("the semaphore is never closed");
    let mut contents = head;
    while let Some(piece) = pieces.next().await.transpose()? {
        contents.extend(piece);
        if contents.len() > MAX_SOURCE_FILE {
            // The rest is not needed to refuse the file.
            break;
        }
    }
    let source = SourceFile::new(&file, contents).map_err(bad_request)?;
    let name: EntrantName = match bot {
        "" => source.name.ok_or_else(|| bad_request("enter a name for the bot"))?.into(),
        name => name.parse().map_err(bad_request)?,
    };
    let short = split_owner(name.as_str()).1.to_owned();
    let packed = tokio::task::spawn_blocking(move || source.bot.tar_gz(&short)).await;
    let packed = packed.map_err(|_| WebError::from(ServiceError::stopping()))?;
    let archive = packed.map_err(bad_request)?;
    submit(name.as_str(), Box::pin(tokio_stream::once(Ok(archive)))).await
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn bad_request(message: impl ToString) -> WebError {
    WebError::new(StatusCode::BAD_REQUEST, message.to_string())
}

/// Renders the form with the submitted name and the error, if any.
async fn render(
    session: &Session,
    tournament: &str,
    bot: &str,
    error: Option<&WebError>,
) -> Result<Markup, WebError> {
    let request = GetTournamentRequest { tournament: tournament.to_owned(), edition: None };
    let details = session.service.get_tournament(&session.caller, request).await?;
    let request = ListBotsRequest { tournament: tournament.to_owned() };
    let bots = session.service.list_bots(&session.caller, request).await?.bots;
    let own_bots: Vec<_> = bots.into_iter().filter(|bot| bot.owned_by_caller).collect();
    // The form submits no house bots. After entry has closed, the command still does.
    let takes_house_bots =
        details.state == "open" && details.rehearsal_of.is_empty() && details.beacon.is_none();
    let body = html! {
        (layout::error_message(error.map(WebError::message)))
        p { (entry_text(entry_of(&details), session.service.now())) }
        @if details.entry_open {
            (instructions(&details))
            @if session.caller.require(Role::Player).is_err() {
                p { a href="/login" { "Log in" } " with the token from your organiser to submit a bot." }
            } @else { (fields(session, tournament, bot, &own_bots)) }
        } @else if takes_house_bots && session.caller.is_organiser() {
            p { "Organisers can still submit house bots: " code { "arbiter submit " (tournament) " PATH --house" } "." }
        }
    };
    let page = TournamentPage::new(tournament, Tab::Submit);
    Ok(page.render(session, &body).await)
}

fn fields(session: &Session, tournament: &str, bot: &str, own_bots: &[Bot]) -> Markup {
    let endings: Vec<_> = SourceFile::endings().collect();
    let archives = uploaded_archive::ENDINGS.map(str::to_owned);
    let file_types = [&archives[..], &endings].concat().join(",");
    html! {
        form.fields method="post" enctype="multipart/form-data"
            action={ "/t/" (tournament) "/submit" } {
            (layout::csrf_field(session))
            p {
                label for="bot" { "Bot name" }
                input #bot name="bot" value=(layout::form_value(bot)) maxlength="64"
                    pattern="([a-z0-9\\-]+/)?[A-Za-z0-9._\\-]+" list="own" autocomplete="off"
                    aria-describedby="bot-help";
                datalist #own { @for bot in own_bots { option value=(layout::form_value(&bot.name)) {} } }
                small #bot-help {
                    "To update a bot, enter its name. A new name creates a new bot. Names have "
                    "letters (A–Z, a–z), digits, dots, underscores and hyphens. A player's name is put "
                    "before it, as in " code { "ada/mybot" } "; together they have at most 64 "
                    "characters. If you leave this empty, a single source file names the bot: "
                    code { "mybot.py" } " becomes " code { "mybot" } "."
                }
            }
            p {
                label for="bundle" { "Source file or archive" }
                input #bundle type="file" name="bundle" required accept=(file_types)
                    aria-describedby="bundle-help";
                small #bundle-help {
                    "One source file (" (endings.join(", ")) ", at most " (MAX_SOURCE_FILE >> 20)
                    " MiB): the file type gives the language. Or a .zip, .tar, .tar.gz or .tar.zst "
                    "archive of the bot's directory with its bot.toml, at most " (MAX_BUNDLE >> 20)
                    " MiB. A worker builds the bot. "
                    a href={ "/t/" (tournament) "/how-to-play" } { "How to play" }
                    " lists the languages of the workers."
                }
            }
            p { button type="submit" { "Submit" } }
        }
    }
}

/// What happens to a submission, and its limits.
fn instructions(tournament: &Tournament) -> Markup {
    let settings: Value = serde_json::from_str(&tournament.settings).unwrap_or_default();
    let submissions = &settings["submissions"];
    let has_trial = submissions["preflight"] != false;
    let mut limits = String::new();
    if let Some(max) = submissions["per_hour"].as_u64().filter(|max| *max > 0) {
        let versions = layout::count(max, "version", "versions");
        write!(limits, " An owner may submit {versions} an hour.").expect("writing to a string");
    }
    html! {
        p {
            @if has_trial {
                "Each version has a trial: a worker builds it and plays a few short matches in a "
                "sandbox. A version that passes enters the tournament. Otherwise the bot's previous "
                "version, if it has one, stays in the tournament."
            } @else { "The version enters the tournament at once." }
            (limits)
        }
        (new_bot_outlook(tournament))
    }
}

//! Submitting a version in a browser: an uploaded archive, as `arbiter submit` sends it.

use std::fmt::Write as _;

use arbiter_proto::v1::{
    Bot, GetTournamentRequest, ListBotsRequest, Submission, Tournament, Version,
};
use axum::extract::{Multipart, Path, Query};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::error::WebError;
use super::multipart::Upload;
use super::session::Session;
use super::tournament_page::{Tab, TournamentPage};
use super::{flash, layout};
use crate::access::Role;
use crate::service::MAX_BUNDLE;

/// Maximum size of the form: a bundle and 1 MiB for the other fields.
pub(super) const MAX_FORM_BYTES: usize = MAX_BUNDLE + (1 << 20);
/// The file types that the file dialog offers.
const ARCHIVE_TYPES: &str = ".zip,.tar,.tar.gz,.tgz,.tar.zst,.zst";

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
) -> Result<Markup, WebError> {
    session.caller.require(Role::Player)?;
    render(&session, &tournament, &bot, None).await
}

/// Submits a version.
pub(super) async fn submit(
    session: Session,
    headers: HeaderMap,
    Path(tournament): Path<String>,
    multipart: Multipart,
) -> Result<Response, WebError> {
    let mut upload = Upload::checked(multipart, &session, &headers).await?;
    let bot = upload.name("bot").await?;
    match forward_bundle(&session, &tournament, &bot, upload).await {
        Ok(Version { number, .. }) => {
            let path = format!("/t/{tournament}/bots/{bot}/versions/{number}");
            Ok(flash::redirect(&path, "submit").into_response())
        }
        Err(error) => {
            let page = render(&session, &tournament, &bot, Some(error.message())).await?;
            Ok((error.status(), page).into_response())
        }
    }
}

/// Streams the uploaded bundle to the service.
async fn forward_bundle(
    session: &Session,
    tournament: &str,
    bot: &str,
    mut upload: Upload,
) -> Result<Version, WebError> {
    let submission =
        Submission { tournament: tournament.to_owned(), bot: bot.to_owned(), house: false };
    let pieces = upload.pieces("bundle").await?;
    Ok(session.service.submit_version(&session.caller, &submission, pieces).await?)
}

/// Renders the form with the submitted name and the error, if any.
async fn render(
    session: &Session,
    tournament: &str,
    bot: &str,
    error: Option<&str>,
) -> Result<Markup, WebError> {
    let request = GetTournamentRequest { tournament: tournament.to_owned(), edition: None };
    let details = session.service.get_tournament(&session.caller, request).await?;
    let request = ListBotsRequest { tournament: tournament.to_owned() };
    let bots = session.service.list_bots(&session.caller, request).await?.bots;
    let own_bots: Vec<_> = bots.into_iter().filter(|bot| bot.owned_by_caller).collect();
    let body = html! {
        (layout::error_message(error))
        (instructions(&details))
        @if details.state == "open" { (fields(session, tournament, bot, &own_bots)) }
    };
    let page = TournamentPage::below(tournament, Tab::Bots, "Submit a bot");
    Ok(page.render(session, &body).await)
}

fn fields(session: &Session, tournament: &str, bot: &str, own_bots: &[Bot]) -> Markup {
    html! {
        form.fields method="post" enctype="multipart/form-data"
            action={ "/t/" (tournament) "/submit" } {
            (layout::csrf_field(session))
            p {
                label for="bot" { "Bot name" }
                input #bot name="bot" value=(bot) required maxlength="64"
                    pattern="[A-Za-z0-9._\\-]+" list="own" autocomplete="off"
                    aria-describedby="bot-help";
                datalist #own { @for bot in own_bots { option value=(bot.name) {} } }
                small #bot-help {
                    "To update a bot, enter its name. A new name creates a new bot. Names have 1 to 64 "
                    "characters: letters (A–Z, a–z), digits, dots, underscores and hyphens."
                }
            }
            p {
                label for="bundle" { "Archive" }
                input #bundle type="file" name="bundle" required accept=(ARCHIVE_TYPES)
                    aria-describedby="bundle-help";
                small #bundle-help {
                    "A .zip, .tar, .tar.gz or .tar.zst archive of the bot's directory, which must contain "
                    "bot.toml. Maximum size: " (MAX_BUNDLE >> 20) " MiB. A worker builds the bot as "
                    "bot.toml specifies."
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
        write!(limits, " Limit: {versions} per hour and owner.").expect("writing to a string");
    }
    if let Some(closes) = submissions["closes"].as_str() {
        write!(limits, " Entry closes at {closes}.").expect("writing to a string");
    }
    html! {
        @if tournament.state == "open" {
            p {
                @if has_trial {
                    "Each version has a trial: a worker builds it and plays a few short matches in a "
                    "sandbox. A version that passes enters the tournament. Otherwise the bot's previous "
                    "version stays in the tournament."
                } @else { "The version enters the tournament at once." }
                (limits)
            }
            @if !tournament.new_bot_outlook.is_empty() {
                p { "If a new bot enters: " (tournament.new_bot_outlook) "." }
            }
        } @else { p { "The tournament is over and accepts no more versions." } }
    }
}

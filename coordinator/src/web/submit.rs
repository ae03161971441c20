//! Submissions from a browser: an archive goes to the service that takes those of the command line.

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
use tokio_stream::StreamExt as _;

use super::error::WebError;
use super::multipart::Upload;
use super::session::Session;
use super::{done, page};
use crate::access::Role;
use crate::service::{MAX_BUNDLE, ServiceError};

/// The largest form: a bundle, and what is around it.
pub(super) const LARGEST_FORM: usize = MAX_BUNDLE + (1 << 20);
/// What a browser offers to choose.
const ARCHIVES: &str = ".zip,.tar,.tar.gz,.tgz,.tar.zst,.zst";

/// For which bot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    bot: String,
}

/// The page to submit a version.
pub(super) async fn form(
    session: Session,
    Path(tournament): Path<String>,
    Query(Look { bot }): Query<Look>,
) -> Result<Markup, WebError> {
    session.caller.require(Role::Player)?;
    shown(&session, &tournament, &bot, None).await
}

/// Takes a version.
pub(super) async fn submit(
    session: Session,
    headers: HeaderMap,
    Path(tournament): Path<String>,
    multipart: Multipart,
) -> Result<Response, WebError> {
    let mut upload = Upload::checked(multipart, &session, &headers).await?;
    let bot = upload.name("bot").await?;
    match taken(&session, &tournament, &bot, upload).await {
        Ok(Version { number, .. }) => {
            let path = format!("/t/{tournament}/bots/{bot}/versions/{number}");
            Ok(done::to(&path, "submit").into_response())
        }
        Err(error) => {
            let page = shown(&session, &tournament, &bot, Some(error.why())).await?;
            Ok((error.status(), page).into_response())
        }
    }
}

/// Sends on what comes, piece by piece.
async fn taken(
    session: &Session,
    tournament: &str,
    bot: &str,
    mut upload: Upload,
) -> Result<Version, WebError> {
    let submission =
        Submission { tournament: tournament.to_owned(), bot: bot.to_owned(), house: false };
    let pieces = upload.field("bundle").await?.map(|piece| match piece {
        Ok(piece) => Ok(piece.to_vec()),
        Err(error) => Err(ServiceError::invalid_argument(format!(
            "the file did not arrive whole: {}",
            error.body_text()
        ))),
    });
    Ok(session.service.submit_version(&session.caller, &submission, pieces).await?)
}

/// The form, with what was typed and why it was refused.
async fn shown(
    session: &Session,
    tournament: &str,
    bot: &str,
    refused: Option<&str>,
) -> Result<Markup, WebError> {
    let asked = GetTournamentRequest { tournament: tournament.to_owned() };
    let found = session.service.get_tournament(&session.caller, asked).await?;
    let asked = ListBotsRequest { tournament: tournament.to_owned() };
    let bots = session.service.list_bots(&session.caller, asked).await?.bots;
    let own: Vec<_> = bots.into_iter().filter(|found| found.owned_by_caller).collect();
    let title = format!("{tournament}: submit a version");
    let body = html! {
        (page::refused(refused))
        (rules(&found))
        @if found.state == "open" { (fields(session, tournament, bot, &own)) }
    };
    Ok(page::of_tournament((tournament, "Submit"), &title, session, &body))
}

fn fields(session: &Session, tournament: &str, bot: &str, own: &[Bot]) -> Markup {
    html! {
        form.fields method="post" enctype="multipart/form-data"
            action={ "/t/" (tournament) "/submit" } {
            (page::csrf(session))
            p {
                label for="bot" { "The bot's name" }
                input #bot name="bot" value=(bot) required maxlength="64"
                    pattern="[A-Za-z0-9._\\-]+" list="own" autocomplete="off"
                    aria-describedby="bot-help";
                datalist #own { @for bot in own { option value=(bot.name) {} } }
                small #bot-help {
                    "One of yours gets a new version; another name makes a new bot. "
                    "1 to 64 letters without accents, digits, dots, underscores, hyphens."
                }
            }
            p {
                label for="bundle" { "Its files" }
                input #bundle type="file" name="bundle" required accept=(ARCHIVES)
                    aria-describedby="bundle-help";
                small #bundle-help {
                    "An archive (.zip, .tar, .tar.gz, .tar.zst) of the directory with its bot.toml, at "
                    "most " (MAX_BUNDLE >> 20) " MiB. A worker builds it as bot.toml says."
                }
            }
            p { button type="submit" { "Submit" } }
        }
    }
}

/// What is to be known before.
fn rules(found: &Tournament) -> Markup {
    let settings: Value = serde_json::from_str(&found.settings).unwrap_or_default();
    let submissions = &settings["submissions"];
    let tried = submissions["preflight"] != false;
    let mut more = String::new();
    if let Some(most) = submissions["per_hour"].as_u64().filter(|most| *most > 0) {
        write!(more, " {most} versions an hour are taken from an owner.")
            .expect("a string takes every text");
    }
    if let Some(closes) = submissions["closes"].as_str() {
        write!(more, " Entry closes at {closes}.").expect("a string takes every text");
    }
    html! {
        @if found.state == "open" {
            p {
                @if tried {
                    "It is built and plays a few short matches in a worker's sandbox. If it passes it "
                    "enters; until then, and if it fails, the bot's former version stays in play."
                } @else { "It enters at once." }
                (more)
            }
        } @else { p { "The tournament is over: it takes no more versions." } }
    }
}

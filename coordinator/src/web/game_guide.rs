//! "How to play": the text for authors of bots of a tournament's game, starter kits, and the file
//! of its game package.

use arbiter_games::Game;
use arbiter_packages::{MAX_BOT_MD, packed_file};
use arbiter_proto::v1::GetPackageRequest;
use axum::body::Body;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use tokio_stream::StreamExt as _;

use super::error::WebError;
use super::session::Session;
use super::tournament_page::{Tab, TournamentPage};
use super::{download, markdown};
use crate::service::GameGuide;

/// The page.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<Markup, WebError> {
    if session.service.lacks_package(&tournament).await? == Some(true) {
        return Ok(without_package(&session, &tournament).await);
    }
    let guide = session.service.game_guide(&session.caller, &tournament).await?;
    let text = &guide.content.text;
    let is_cut = text.len() as u64 >= MAX_BOT_MD;
    let body = html! {
        (downloads(&tournament, &guide))
        @if text.is_empty() {
            p { "The game package has no text for authors of bots (BOT.md)." }
        } @else {
            article.guide { (markdown::render(text, "guide-")) }
        }
        @if is_cut { p { "The text is longer. All of it is in the game package." } }
    };
    Ok(TournamentPage::new(&tournament, Tab::HowToPlay).render(&session, &body).await)
}

/// The page before an organiser has sent the game package.
async fn without_package(session: &Session, tournament: &str) -> Markup {
    let body = html! {
        p { "The organiser has not sent the game package yet. It contains this page's text and the \
            starter kits. Bots can be submitted when it is here." }
        @if session.caller.is_organiser() {
            p {
                "Send it from " a href={ "/t/" (tournament) "/organise" } { "the page Organise" }
                " or with " code { "arbiter tournament package " (tournament) " DIR" } "."
            }
        }
    };
    TournamentPage::new(tournament, Tab::HowToPlay).render(session, &body).await
}

/// The starter kits and the game package.
fn downloads(tournament: &str, guide: &GameGuide) -> Markup {
    let file = package_file(&guide.game);
    let game = file.as_deref().unwrap_or(&guide.game.name);
    html! {
        @if !guide.content.starters.is_empty() {
            p {
                "Download a starter kit, a complete bot: "
                @for (index, starter) in guide.content.starters.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href={ "/t/" (tournament) "/how-to-play/" (starter.language) } download {
                        (starter.language)
                    }
                }
                "."
            }
        }
        @if let Some(file) = &file {
            p {
                "This game is a game package. Download "
                a href={ "/t/" (tournament) "/package" } download { (file) }
                " to play it on your machine."
            }
        }
        p {
            "Then try your bot with " code { "arbiter preflight " (game) " mybot" }
            " and submit it with " code { "arbiter submit " (tournament) " mybot" } "."
        }
    }
}

/// The name of the file of a game package.
fn package_file(game: &Game) -> Option<String> {
    game.package.is_some().then(|| packed_file(&game.name, &game.rules_version))
}

/// The starter kit in a language.
pub(super) async fn starter(
    session: Session,
    Path((tournament, language)): Path<(String, String)>,
) -> Result<Response, WebError> {
    let guide = session.service.game_guide(&session.caller, &tournament).await?;
    let starter = guide.content.starters.iter().find(|starter| starter.language == language);
    let starter = starter.ok_or_else(|| {
        let message = format!("{} has no starter kit in {language}", guide.game.name);
        WebError::new(StatusCode::NOT_FOUND, message)
    })?;
    let archive = starter.tar_gz(&format!("{}-bot", guide.game.name)).map_err(|error| {
        let message = format!("cannot pack the starter kit in {language}: {error}");
        WebError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    })?;
    let file = format!("{}-{language}.tar.gz", guide.game.name);
    Ok(download::file(&file, "application/gzip", archive))
}

/// The packed files of the tournament's game package.
pub(super) async fn package(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<Response, WebError> {
    let game = session.service.game_of(&tournament).await?;
    let request = GetPackageRequest { tournament, digest: Vec::new() };
    let pieces = session.service.get_package(&session.caller, request).await?;
    let file = package_file(&game).unwrap_or_default();
    let pieces = pieces.map(|piece| piece.map(|piece| piece.bytes));
    Ok(download::file(&file, "application/zstd", Body::from_stream(pieces)))
}

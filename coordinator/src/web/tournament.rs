//! The front page of a tournament: its leaderboard, and beside it the running edition, how to
//! enter, and the newest matches.

use std::sync::Arc;

use arbiter_proto::v1::{
    Edition, GetTournamentRequest, ListSetAsideRequest, SetAsideMatch, Tournament,
    WatchEditionRequest,
};
use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use time::OffsetDateTime;
use tokio_stream::StreamExt as _;

use super::entry_text::{entry_of, entry_text, freeze_of, freeze_text, new_bot_outlook};
use super::error::WebError;
use super::flash::Flash;
use super::leaderboard::{self, LeaderboardQuery, Section};
use super::organise::set_aside;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use super::{announcements, deadline, layout, markdown, matches, sse};
use crate::service::{ErrorKind, ServiceError};

/// The front page. It also exists before there is a leaderboard.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(flash): Query<Flash>,
) -> Result<Markup, WebError> {
    let details = tournament_details(&session, &tournament).await?;
    let query = LeaderboardQuery::default();
    let section = match leaderboard::section(&session, &details, &query).await {
        Err(error)
            if error.is_of(&[ErrorKind::FailedPrecondition, ErrorKind::PermissionDenied]) =>
        {
            let is_organiser = session.caller.is_organiser();
            let board = no_leaderboard(&details, error.message(), is_organiser);
            Section { board, data: html! {}, edition: None, heading: None }
        }
        result => result?,
    };
    let content = Section { board: html! { (flash.message()) (section.board) }, ..section };
    let body = beside_state(&session, &details, &content).await?;
    let page = TournamentPage::new(&tournament, Tab::Leaderboard).with_heading(content.heading);
    Ok(page.render(&session, &body).await)
}

/// A leaderboard: the official one, or that of an edition.
pub(super) async fn ranking(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<LeaderboardQuery>,
) -> Result<Response, WebError> {
    let details = tournament_details(&session, &tournament).await?;
    let page = TournamentPage::new(&tournament, Tab::Leaderboard);
    match leaderboard::section(&session, &details, &query).await {
        Ok(board) => {
            let content = beside_state(&session, &details, &board).await;
            page.with_heading(board.heading).respond(&session, content).await
        }
        Err(error) => page.respond(&session, Err(error)).await,
    }
}

async fn tournament_details(session: &Session, name: &str) -> Result<Arc<Tournament>, WebError> {
    let request = GetTournamentRequest { tournament: name.to_owned(), edition: None };
    Ok(session.service.cached_tournament(&session.caller, request).await?)
}

/// A leaderboard on the left and the state of the tournament on the right.
async fn beside_state(
    session: &Session,
    details: &Tournament,
    Section { board, data, edition: shown, .. }: &Section,
) -> Result<Markup, WebError> {
    let aside = matches_set_aside(session, details).await?;
    let mut newest = html! {};
    if let Some(edition) = details.editions.first() {
        let links = TournamentLinks::of(&session.service, &details.name).await?;
        newest = matches::newest(session, &links, edition.number).await;
    }
    Ok(html! {
        div.columns {
            div.main { (announcements::list(details)) (board) }
            aside aria-label="State of the tournament" {
                (progress(details, session, &newest, *shown))
                (set_aside(&aside, None))
                (taking_part(details, session))
            }
        }
        (data)
    })
}

/// The matches for which the running edition waits.
async fn matches_set_aside(
    session: &Session,
    details: &Tournament,
) -> Result<Vec<SetAsideMatch>, WebError> {
    let newest = details.editions.first();
    if !newest.is_some_and(|newest| newest.lots.iter().any(|lot| lot.state == "aside")) {
        return Ok(Vec::new());
    }
    let request = ListSetAsideRequest { tournament: details.name.clone() };
    Ok(session.service.list_set_aside(&session.caller, request).await?.matches)
}

/// What the tournament is, why there is no leaderboard, and what comes next.
fn no_leaderboard(details: &Tournament, reason: &str, is_organiser: bool) -> Markup {
    let is_open = details.state == "open";
    let description = &details.description;
    html! {
        @if !description.is_empty() {
            article.guide { (markdown::render(description, "description-")) }
        }
        h2 {
            @if is_open && !details.freeze_notice.is_empty() { "No leaderboard before the freeze" }
            @else if is_open { "No leaderboard yet" }
            @else { "No leaderboard" }
        }
        @if details.editions.is_empty() {
            (nothing_played(details, "No edition has been started", is_organiser))
        } @else { p { (layout::sentence(reason)) } }
    }
}

/// Why a tournament without an edition has nothing to show. `missing` says what there is not yet.
pub(super) fn nothing_played(details: &Tournament, missing: &str, is_organiser: bool) -> Markup {
    html! {
        @match details.state.as_str() {
            "open" => {
                p {
                    (missing) ". An organiser starts the first edition when enough bots have entered."
                    @if is_organiser {
                        " Start it on the page " a href={ "/t/" (details.name) "/organise" } { "Organise" } "."
                    }
                }
            }
            "cancelled" => {
                p { "This tournament was cancelled before its first edition. Nothing was played." }
            }
            _ => { p { "This tournament ended before its first edition. Nothing was played." } }
        }
    }
}

/// The state of the newest edition, and of the next one. `shown` is the edition whose leaderboard
/// is beside it.
fn progress(
    details: &Tournament,
    session: &Session,
    newest_matches: &Markup,
    shown: Option<i32>,
) -> Markup {
    let newest = details.editions.first();
    let runs = newest.is_some_and(is_unfinished);
    let live = runs.then(|| format!("/t/{}/live", details.name));
    let official = details.editions.iter().find(|edition| edition.official);
    let shows_results = runs && (details.freeze_notice.is_empty() || session.caller.is_organiser());
    let is_rehearsal = !details.rehearsal_of.is_empty();
    let shows_provisional = shows_results && !is_rehearsal;
    let shows_rehearsal = shows_results && is_rehearsal;
    // The leaderboard says how many matches of a complete edition are counted.
    let is_repeated =
        newest.is_some_and(|newest| newest.state == "complete" && shown == Some(newest.number));
    html! {
        section aria-labelledby="progress" {
            h2 #progress { @if is_repeated { "Newest matches" } @else { "Progress" } }
            @if let Some(newest) = newest {
                div data-live=[live] {
                    @if !is_repeated { (edition_state(newest, session.service.now())) }
                    (newest_matches)
                }
                @if shows_provisional {
                    p {
                        "The "
                        a href={ "/t/" (details.name) "/ranking?edition=" (newest.number) } { "provisional leaderboard" }
                        " of edition " (newest.number) " becomes official when all its matches are counted."
                    }
                }
                @if shows_rehearsal {
                    p {
                        "The "
                        a href={ "/t/" (details.name) "/ranking?edition=" (newest.number) } { "leaderboard" }
                        " of edition " (newest.number) " is live. It is never official, because this is a rehearsal."
                    }
                }
            } @else { p { "There are no editions yet." } }
            @if let Some(official) = official.filter(|official| newest.is_some_and(|newest| newest.number != official.number)) {
                p { a href={ "/t/" (details.name) "/ranking?edition=" (official.number) } { "Official leaderboard" } " (edition " (official.number) ")" }
            }
            (next_edition(details, session.service.now()))
        }
    }
}

fn is_unfinished(edition: &Edition) -> bool {
    edition.state == "running" || edition.state == "planning"
}

/// When the next edition starts, or why it could not start.
fn next_edition(tournament: &Tournament, now: OffsetDateTime) -> Markup {
    let next = Some(tournament.next_edition_at_us).filter(|at| *at > 0);
    let next = next.and_then(layout::from_micros);
    html! {
        @if !tournament.last_error.is_empty() {
            p.error-message {
                "The next edition could not be opened: "
                (layout::end_of_sentence(&tournament.last_error))
            }
        }
        @if let Some(at) = next {
            p { "There are changes. " (deadline::sentence("The next edition will open at about", at, now, "The next edition is due.")) }
        }
        (new_bot_outlook(tournament))
    }
}

/// Whether bots can enter, and how.
fn taking_part(details: &Tournament, session: &Session) -> Markup {
    html! {
        section aria-labelledby="taking-part" {
            h2 #taking-part { "Taking part" }
            p { (entry_text(entry_of(details), session.service.now())) }
            (freeze_text(freeze_of(details), session.service.now()))
            p { a href={ "/t/" (details.name) "/how-to-play" } { "How to play " (session.service.game_title(details)) } }
            @if details.entry_open {
                p {
                    a href={ "/t/" (details.name) "/submit" } { "Submit a bot" }
                    @if !session.is_logged_in() { " with the token from your organiser." }
                }
            }
        }
    }
}

/// Live updates of the newest edition, until it is over.
pub(super) async fn live(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<impl IntoResponse, WebError> {
    let request = WatchEditionRequest { tournament: tournament.clone(), edition: None };
    let updates = session.service.watch_edition(&session.caller, request).await?;
    let links = TournamentLinks::of(&session.service, &tournament).await?;
    let reader = session.clone();
    let updates = updates.then(move |edition| {
        let reader = reader.clone();
        let links = links.clone();
        async move {
            let edition = edition?;
            let newest = matches::newest(&reader, &links, edition.number).await;
            let state = edition_state(&edition, reader.service.now());
            Ok::<_, ServiceError>(html! { (state) (newest) })
        }
    });
    Ok(sse::viewer_stream(session, updates, Clone::clone))
}

/// The state and the progress of an edition.
fn edition_state(edition: &Edition, now: OffsetDateTime) -> Markup {
    html! {
        p {
            "Edition " (edition.number) ", " (edition.state) ": " (layout::edition_progress(edition))
            @if edition.eta_us.is_some() { ", " (layout::estimate(edition, now)) }
            @if edition.state == "running" && edition.eta_us.is_none() { ". It waits for a worker." }
        }
    }
}

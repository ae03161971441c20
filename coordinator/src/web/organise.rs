//! The page with all that an organiser does with a tournament.

use arbiter_proto::v1::{GetTournamentRequest, ListSetAsideRequest, SetAsideMatch, Tournament};
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};

use super::error::WebError;
use super::flash::Flash;
use super::session::Session;
use super::tournament_page::{Tab, TournamentPage};
use super::{actions, announcements, layout};
use crate::access::Role;
use crate::service::SetAsideGroup;
use crate::tournament::entry_outlook::have_entered;

/// The page.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(flash): Query<Flash>,
) -> Result<Markup, WebError> {
    let body = content(&session, &tournament, &flash.message(), "").await?;
    Ok(TournamentPage::new(&tournament, Tab::Organise).render(&session, &body).await)
}

/// The page with the reason why an action was refused, and the status of the error. `draft` is the
/// text of an announcement that was not posted; may be empty. If the caller may not see the page,
/// the result is the error.
pub(super) async fn refuse(
    session: &Session,
    tournament: &str,
    error: WebError,
    draft: &str,
) -> Result<Response, WebError> {
    let message = layout::error_message(Some(error.message()));
    let Ok(body) = content(session, tournament, &message, draft).await else { return Err(error) };
    TournamentPage::new(tournament, Tab::Organise).respond_with_form(session, error, &body).await
}

/// The content below a message, with the text of an announcement to post.
async fn content(
    session: &Session,
    tournament: &str,
    message: &Markup,
    draft: &str,
) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    let request = GetTournamentRequest { tournament: tournament.to_owned(), edition: None };
    let details = session.service.get_tournament(&session.caller, request).await?;
    let request = ListSetAsideRequest { tournament: tournament.to_owned() };
    let aside = session.service.list_set_aside(&session.caller, request).await?.matches;
    let is_open = details.state == "open";
    let lacks_package =
        if is_open { session.service.lacks_package(&details.name).await? } else { None };
    let too_few = if is_open { too_few_bots(session, &details).await? } else { None };
    Ok(html! {
        (message)
        @if !is_open {
            p {
                @if details.state == "cancelled" { "The tournament was cancelled. " }
                @else { "The tournament is over. " }
                "Only announcements can still change."
            }
        }
        (set_aside(&aside, Some((session, &details.name))))
        @if is_open { (actions::run_section(session, &details, too_few.as_deref())) }
        @if let Some(is_missing) = lacks_package {
            (actions::package_form(session, &details.name, is_missing))
        }
        @if is_open { (actions::players_section(&details)) (actions::check_section(&details)) }
        (announcements::organise(session, &details, draft))
        @if is_open { (actions::end_section(session, &details)) }
    })
}

/// The number of bots that a first edition needs, if fewer are entered.
async fn too_few_bots(
    session: &Session,
    tournament: &Tournament,
) -> Result<Option<String>, WebError> {
    if !tournament.editions.is_empty() {
        return Ok(None);
    }
    let Some(schedule) = actions::schedule(tournament) else { return Ok(None) };
    let entered = session.service.entered_bots(&tournament.name).await?;
    let least = schedule.min_bots();
    Ok((entered < least).then(|| {
        let bots = layout::count(least, "bot", "bots");
        format!("An edition needs at least {bots}, and {}.", have_entered(entered))
    }))
}

/// The matches that were set aside and the reasons, with a retry button for organisers.
pub(super) fn set_aside(aside: &[SetAsideMatch], organiser: Option<(&Session, &str)>) -> Markup {
    html! {
        @if !aside.is_empty() {
            h2 { "Matches set aside" }
            p { "These matches had too many faults and need an organiser's attention." }
            ul {
                @for group in SetAsideGroup::all(aside) {
                    li {
                        @for (index, name) in group.matches.iter().enumerate() {
                            @if index > 0 { ", " }
                            (layout::match_link(name))
                        }
                        @if !group.reasons.is_empty() { ": " (group.reasons.join("; ")) }
                        @if group.is_of_rules() { ". Correct the rules and send the package." }
                    }
                }
            }
            @if let Some((session, tournament)) = organiser {
                (actions::button(session, &format!("/t/{tournament}/retry"),
                    "Retry all", None))
            }
        }
    }
}

//! Rehearsals of a tournament: the page on which an organiser starts one, and the notice on its
//! pages.

use arbiter_proto::v1::{
    EstimateEditionRequest, GetTournamentRequest, StartRehearsalRequest, Tournament,
};
use arbiter_schedule::Schedule;
use axum::extract::Path;
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;

use super::csrf_form::{CsrfForm, WrittenForm};
use super::error::WebError;
use super::session::Session;
use super::tournament_page::{Tab, TournamentPage};
use super::{actions, flash, layout};
use crate::access::Role;
use crate::db::tournaments::Rehearsal;

/// The form, which has no fields besides the CSRF token.
#[derive(Debug, Deserialize)]
pub(super) struct StartForm {}

impl WrittenForm for StartForm {}

/// The page with what a rehearsal would play, and the button that starts it.
pub(super) async fn form(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    let request = GetTournamentRequest { tournament: tournament.clone(), edition: None };
    let details = session.service.get_tournament(&session.caller, request).await?;
    let preview = preview(&session, &details).await;
    let path = format!("/t/{tournament}/rehearse");
    let body = html! {
        p {
            "A rehearsal plays the schedule once, as another tournament: with copies of the bots that \
             would play now, the same clock and limits, and another seed. Its leaderboard is never \
             official, and no bot can enter it. " (details.name) " stays as it is."
        }
        @match preview {
            Ok(preview) => {
                p { (preview) }
                (actions::button(&session, &path, "Start rehearsal", None))
            },
            Err(error) => p.error-message {
                "No rehearsal can start: " (layout::end_of_sentence(error.message()))
            },
        }
        (list(&details))
    };
    Ok(TournamentPage::below(&tournament, Tab::Organise, "Rehearsal").render(&session, &body).await)
}

/// What an edition is, and which one is official. `is_frozen`: the reader sees frozen leaderboards.
pub(super) fn what_editions_are(tournament: &Tournament, is_frozen: bool) -> &'static str {
    if !tournament.rehearsal_of.is_empty() {
        "An edition is one complete schedule over fixed versions. Those of a rehearsal are never \
         official."
    } else if tournament.state == "cancelled" {
        "An edition is one complete schedule over fixed versions. None is official, because the \
         tournament was cancelled."
    } else if is_frozen {
        "An edition is one complete schedule over fixed versions. Until the tournament is over, the \
         last edition that was complete before the freeze is official."
    } else {
        "An edition is one complete schedule over fixed versions. The last complete edition is \
         official."
    }
}

/// What a rehearsal would play.
async fn preview(session: &Session, details: &Tournament) -> Result<String, WebError> {
    let request = EstimateEditionRequest { tournament: details.name.clone(), fresh: true };
    let estimate = session.service.estimate_edition(&session.caller, request).await?;
    let depends_on_results = actions::schedule(details)
        .is_some_and(|schedule| schedule.depends_on_results() || is_episodes(&schedule));
    let most = if depends_on_results { "at most " } else { "" };
    #[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
    let hours = estimate.matches as f64 * estimate.match_ms / 3_600_000.0;
    Ok(format!(
        "It would play {most}{} of {}. It would take one worker slot {}; {} connected.",
        layout::count(estimate.matches, "match", "matches"),
        layout::count(estimate.bots, "bot", "bots"),
        rough_duration(hours),
        layout::count(estimate.slots, "slot is", "slots are")
    ))
}

/// A time in hours, in the unit that fits.
fn rough_duration(hours: f64) -> String {
    let minutes = hours * 60.0;
    if minutes < 1.0 {
        "less than a minute".to_owned()
    } else if minutes < 1.5 {
        "about a minute".to_owned()
    } else if minutes < 59.5 {
        format!("about {minutes:.0}\u{a0}minutes")
    } else if minutes < 63.0 {
        "about an hour".to_owned()
    } else {
        let number = format!("{hours:.1}");
        format!("about {}\u{a0}hours", number.trim_end_matches(".0"))
    }
}

fn is_episodes(schedule: &Schedule) -> bool {
    matches!(schedule, Schedule::Episodes(_))
}

/// Starts a rehearsal.
pub(super) async fn start(
    Path(tournament): Path<String>,
    CsrfForm { session, form: StartForm {} }: CsrfForm<StartForm>,
) -> Result<Redirect, WebError> {
    let request = StartRehearsalRequest { tournament };
    let rehearsal = session.service.start_rehearsal(&session.caller, request).await?;
    Ok(flash::redirect(&format!("/t/{}", rehearsal.name), "rehearse"))
}

/// The rehearsals of a tournament. Empty if it has none.
pub(super) fn list(tournament: &Tournament) -> Markup {
    html! {
        @if !tournament.rehearsals.is_empty() {
            h2 { "Rehearsals" }
            ul { @for name in &tournament.rehearsals { li { a href={ "/t/" (name) } { (name) } } } }
        }
    }
}

/// The notice on every page of a rehearsal.
pub(super) fn notice(rehearsal: Option<&Rehearsal>) -> Markup {
    html! {
        @if let Some(Rehearsal { original, original_state, .. }) = rehearsal {
            p.notice role="note" {
                strong {
                    "Rehearsal of "
                    @if original_state.is_some() { a href={ "/t/" (original) } { (original) } }
                    @else { (original) }
                }
                ": its leaderboard is never official."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rough_duration_has_the_unit_that_fits() {
        for (minutes, text) in [
            (0.0, "less than a minute"),
            (0.9, "less than a minute"),
            (1.2, "about a minute"),
            (1.6, "about 2\u{a0}minutes"),
            (59.4, "about 59\u{a0}minutes"),
            (60.0, "about an hour"),
            (90.0, "about 1.5\u{a0}hours"),
            (600.0, "about 10\u{a0}hours"),
        ] {
            assert_eq!(rough_duration(minutes / 60.0), text);
        }
    }
}

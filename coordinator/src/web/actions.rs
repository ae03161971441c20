//! The buttons of organisers (start, cancel and close a tournament, retry matches and trials,
//! send a game package, reinstate bots) and of owners (withdraw a bot).
//!
//! A button is a form of the session ([`CsrfForm`]). The service checks the caller again, does the
//! work and writes the audit log. The response redirects to a page that confirms it ([`flash`]).

use arbiter_proto::v1::{
    CancelTournamentRequest, CloseTournamentRequest, ReinstateBotRequest, RetrySetAsideRequest,
    RetryTrialRequest, StartEditionRequest, Tournament, WithdrawBotRequest,
};
use arbiter_schedule::Schedule;
use axum::extract::{Multipart, Path};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::csrf_form::CsrfForm;
use super::error::WebError;
use super::multipart::Upload;
use super::session::Session;
use super::{create_tournament, flash, layout};

/// The fields of a button's form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Button {
    /// The confirmation checkbox of actions that cannot be undone.
    sure: Option<String>,
    /// Whether to plan the edition from scratch.
    fresh: Option<String>,
}

type ActionResult = Result<Redirect, WebError>;

impl CsrfForm<Button> {
    /// The session, if the confirmation box is ticked.
    fn confirmed(self) -> Result<Session, WebError> {
        check_confirmed(self.form.sure.as_deref())?;
        Ok(self.session)
    }
}

/// Refuses an action whose confirmation box is not ticked.
pub(super) fn check_confirmed(ticked: Option<&str>) -> Result<(), WebError> {
    let unconfirmed =
        || WebError::new(StatusCode::BAD_REQUEST, "tick the box to confirm this action");
    ticked.map(drop).ok_or_else(unconfirmed)
}

/// A button that posts to `action`. `confirmation` is the label of a checkbox that must be ticked
/// first.
pub(super) fn button(
    session: &Session,
    action: &str,
    label: &str,
    confirmation: Option<&str>,
) -> Markup {
    html! {
        form.action method="post" action=(action) {
            (layout::csrf_field(session))
            @if let Some(text) = confirmation {
                label { input type="checkbox" name="sure" value="yes" required; " " (text) } " "
            }
            button type="submit" { (label) }
        }
    }
}

/// The end of a form that needs a reason: the reason, the confirmation checkbox and the button.
pub(super) fn reason_fields(confirmation: &str, label: &str) -> Markup {
    html! {
        p {
            label for="reason" { "Reason (for the audit log)" }
            input #reason name="reason" required maxlength="1000";
        }
        p { label.check { input type="checkbox" name="sure" value="yes" required; " " (confirmation) } }
        p { button type="submit" { (label) } }
    }
}

/// The organiser's buttons on the page Organise.
pub(super) fn buttons(session: &Session, tournament: &Tournament) -> Markup {
    let is_running = tournament
        .editions
        .first()
        .is_some_and(|edition| edition.state == "running" || edition.state == "planning");
    let has_editions = !tournament.editions.is_empty();
    let at = |action: &str| format!("/t/{}/{action}", tournament.name);
    html! {
        @if tournament.state == "open" {
            section.actions aria-labelledby="organiser" {
                h2 #organiser { "Organiser actions" }
                @if !is_running {
                    form.action method="post" action=(at("start")) {
                        (layout::csrf_field(session))
                        @if schedule(tournament).is_some_and(|schedule| schedule.has_history()) {
                            label {
                                input type="checkbox" name="fresh" value="yes";
                                " Plan the tables from scratch, ignoring earlier editions."
                            } " "
                        }
                        button type="submit" { "Start edition" }
                    }
                    @if has_editions {
                        (button(session, &at("close"), "Close tournament",
                            Some("No edition can follow. The seed is published.")))
                    }
                }
                @if tournament.rehearsal_of.is_empty() {
                    p { a href=(at("rehearse")) { "Rehearse with the present bots" } }
                    p { a href={ "/invitations?t=" (tournament.name) } { "Invite players" } }
                }
                @if has_editions {
                    p { a href=(at("void")) { "Declare matches void" } }
                    p { a href=(at("collusion")) { "Check for collusion" } }
                }
                (button(session, &at("cancel"), "Cancel tournament",
                    Some("This cannot be undone.")))
            }
        }
    }
}

/// The form that sends the game package of a tournament, or replaces it.
pub(super) fn package_form(session: &Session, tournament: &str, is_missing: bool) -> Markup {
    html! {
        section aria-labelledby="game-package" {
            h2 #game-package { "Game package" }
            @if is_missing {
                p.error-message { "The game package is missing. Send it before you start an edition." }
            }
            form.fields method="post" enctype="multipart/form-data"
                action={ "/t/" (tournament) "/package" } {
                (layout::csrf_field(session))
                (create_tournament::package_field("Another version of the game replaces the present \
                    one: the next edition plays all matches again."))
                p { button type="submit" { "Send game package" } }
            }
        }
    }
}

/// The schedule of a tournament, if this release can read it.
pub(super) fn schedule(tournament: &Tournament) -> Option<Schedule> {
    let settings: Value = serde_json::from_str(&tournament.settings).ok()?;
    Schedule::deserialize(&settings["schedule"]).ok()
}

/// Starts an edition.
pub(super) async fn start(
    Path(tournament): Path<String>,
    CsrfForm { session, form: button }: CsrfForm<Button>,
) -> ActionResult {
    let fresh = button.fresh.is_some();
    let request = StartEditionRequest { tournament: tournament.clone(), fresh };
    session.service.start_edition(&session.caller, request).await?;
    Ok(redirect_to_tournament(&tournament, if fresh { "fresh" } else { "start" }))
}

/// Stores the game package of a tournament.
pub(super) async fn send_package(
    session: Session,
    headers: HeaderMap,
    Path(tournament): Path<String>,
    multipart: Multipart,
) -> ActionResult {
    let mut upload = Upload::checked(multipart, &session, &headers).await?;
    let pieces = upload.pieces("package").await?;
    session.service.upload_package(&session.caller, &tournament, pieces).await?;
    Ok(redirect_to_tournament(&tournament, "package"))
}

/// Cancels a tournament.
pub(super) async fn cancel(Path(tournament): Path<String>, form: CsrfForm<Button>) -> ActionResult {
    let session = form.confirmed()?;
    let request = CancelTournamentRequest { tournament: tournament.clone() };
    session.service.cancel_tournament(&session.caller, request).await?;
    Ok(redirect_to_tournament(&tournament, "cancel"))
}

/// Closes a tournament, which publishes its seed.
pub(super) async fn close(Path(tournament): Path<String>, form: CsrfForm<Button>) -> ActionResult {
    let session = form.confirmed()?;
    let request = CloseTournamentRequest { tournament: tournament.clone() };
    session.service.close_tournament(&session.caller, request).await?;
    Ok(redirect_to_tournament(&tournament, "close"))
}

/// Retries a match that was set aside.
pub(super) async fn retry(
    Path((tournament, number)): Path<(String, i64)>,
    CsrfForm { session, .. }: CsrfForm<Button>,
) -> ActionResult {
    let name = format!("{tournament}/{number}");
    let path = layout::match_path(&name);
    let request = RetrySetAsideRequest { r#match: name };
    session.service.retry_set_aside(&session.caller, request).await?;
    Ok(flash::redirect_with_count(&path, "retry", 1))
}

/// Retries all matches of a tournament that were set aside.
pub(super) async fn retry_all(
    Path(tournament): Path<String>,
    CsrfForm { session, .. }: CsrfForm<Button>,
) -> ActionResult {
    let count = session.service.retry_all_aside(&session.caller, &tournament).await?;
    Ok(flash::redirect_with_count(&organiser_page(&tournament), "retry", count))
}

/// Withdraws a bot from future editions.
pub(super) async fn withdraw(
    Path((tournament, bot)): Path<(String, String)>,
    form: CsrfForm<Button>,
) -> ActionResult {
    let session = form.confirmed()?;
    let request = WithdrawBotRequest { tournament: tournament.clone(), bot: bot.clone() };
    session.service.withdraw_bot(&session.caller, request).await?;
    Ok(flash::redirect(&format!("/t/{tournament}/bots/{bot}"), "withdraw"))
}

/// Reinstates a suspended bot.
pub(super) async fn reinstate(
    Path((tournament, bot)): Path<(String, String)>,
    CsrfForm { session, .. }: CsrfForm<Button>,
) -> ActionResult {
    let request = ReinstateBotRequest { tournament: tournament.clone(), bot: bot.clone() };
    session.service.reinstate_bot(&session.caller, request).await?;
    Ok(flash::redirect(&format!("/t/{tournament}/bots/{bot}"), "reinstate"))
}

/// Retries the trial of a version that was set aside.
pub(super) async fn retry_trial(
    Path((tournament, bot, number)): Path<(String, String, i32)>,
    CsrfForm { session, .. }: CsrfForm<Button>,
) -> ActionResult {
    let request = RetryTrialRequest { tournament: tournament.clone(), bot: bot.clone(), number };
    session.service.retry_trial(&session.caller, request).await?;
    Ok(flash::redirect(&format!("/t/{tournament}/bots/{bot}/versions/{number}"), "trial"))
}

/// The path of the organisers' page of a tournament.
pub(super) fn organiser_page(tournament: &str) -> String {
    format!("/t/{tournament}/organise")
}

/// Redirects to the organisers' page of a tournament. Names of tournaments need no escaping.
fn redirect_to_tournament(tournament: &str, done: &str) -> Redirect {
    flash::redirect(&organiser_page(tournament), done)
}

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
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::csrf_form::{CsrfForm, WrittenForm};
use super::error::WebError;
use super::multipart::Upload;
use super::session::Session;
use super::{create_tournament, flash, layout, organise};
use crate::service::schedule_in;

/// The fields of a button's form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Button {
    /// The confirmation checkbox of actions that cannot be undone.
    sure: Option<String>,
    /// Whether to plan the edition from scratch.
    fresh: Option<String>,
}

impl WrittenForm for Button {}

type ActionResult = Result<Redirect, WebError>;

/// The labels of the buttons that end a tournament.
const CLOSE: &str = "Close tournament";
const CANCEL: &str = "Cancel tournament";

impl CsrfForm<Button> {
    /// The session, if the confirmation box of the button with this label is ticked.
    fn confirmed(self, label: &str) -> Result<Session, WebError> {
        check_confirmed(self.form.sure.as_deref(), label)?;
        Ok(self.session)
    }
}

/// Refuses an action whose confirmation box is not ticked. `label` is that of its button.
pub(super) fn check_confirmed(ticked: Option<&str>, label: &str) -> Result<(), WebError> {
    let unconfirmed = || {
        let message =
            format!("\"{label}\" needs your confirmation: tick the box before the button");
        WebError::new(StatusCode::BAD_REQUEST, message)
    };
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

/// Whether the newest edition is being planned or played.
fn is_running(tournament: &Tournament) -> bool {
    let newest = tournament.editions.first();
    newest.is_some_and(|edition| edition.state == "running" || edition.state == "planning")
}

/// The part of the page Organise that runs the tournament. `too_few` says that too few bots have
/// entered for an edition.
pub(super) fn run_section(
    session: &Session,
    tournament: &Tournament,
    too_few: Option<&str>,
) -> Markup {
    let at = |action: &str| format!("/t/{}/{action}", tournament.name);
    html! {
        section.actions aria-labelledby="run" {
            h2 #run { "Run" }
            @if let Some(too_few) = too_few { p #too-few { (too_few) } }
            @if !is_running(tournament) {
                form.action method="post" action=(at("start")) {
                    (layout::csrf_field(session))
                    @if schedule(tournament).is_some_and(|schedule| schedule.has_history()) {
                        label {
                            input type="checkbox" name="fresh" value="yes";
                            " Plan the tables from scratch, ignoring earlier editions."
                        } " "
                    }
                    button type="submit" disabled[too_few.is_some()]
                        aria-describedby=[too_few.map(|_| "too-few")] { "Start edition" }
                }
            }
            @if tournament.rehearsal_of.is_empty() {
                p { a href=(at("rehearse")) { "Rehearse with the current bots" } }
            }
            p { a href=(at("edit")) { "Edit settings" } }
        }
    }
}

/// The part of the page Organise about players.
pub(super) fn players_section(tournament: &Tournament) -> Markup {
    html! {
        @if tournament.rehearsal_of.is_empty() {
            section.actions aria-labelledby="players" {
                h2 #players { "Players" }
                p { a href={ "/invitations?t=" (tournament.name) } { "Invite players" } }
                p { a href={ "/t/" (tournament.name) "/bots" } { "Bots and their owners" } }
            }
        }
    }
}

/// The part of the page Organise that checks results.
pub(super) fn check_section(tournament: &Tournament) -> Markup {
    // The search for collusion needs three bots in a match. Those of episodes have several numbers.
    let seats = schedule(tournament).and_then(|schedule| schedule.table_seats());
    let at = |action: &str| format!("/t/{}/{action}", tournament.name);
    html! {
        @if !tournament.editions.is_empty() {
            section.actions aria-labelledby="check" {
                h2 #check { "Check" }
                p { a href={ "/workers?t=" (tournament.name) } { "Audit of workers" } }
                @if seats.is_none_or(|seats| seats > 2) { p { a href=(at("collusion")) { "Check for collusion" } } }
                p { a href=(at("void")) { "Declare matches void" } }
            }
        }
    }
}

/// The part of the page Organise that ends the tournament. It can be closed when no edition runs.
pub(super) fn end_section(session: &Session, tournament: &Tournament) -> Markup {
    let is_closable = !tournament.editions.is_empty() && !is_running(tournament);
    let at = |action: &str| format!("/t/{}/{action}", tournament.name);
    html! {
        section.actions aria-labelledby="end" {
            h2 #end { "End" }
            @if is_closable {
                (button(session, &at("close"), CLOSE,
                    Some("I confirm: no edition can follow, and the seed is published.")))
            }
            (button(session, &at("cancel"), CANCEL,
                Some("I confirm: a cancelled tournament cannot be continued.")))
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
    schedule_in(&settings)
}

/// Starts an edition.
pub(super) async fn start(
    Path(tournament): Path<String>,
    CsrfForm { session, form: button }: CsrfForm<Button>,
) -> Result<Response, WebError> {
    let fresh = button.fresh.is_some();
    let request = StartEditionRequest { tournament: tournament.clone(), fresh };
    let result = session.service.start_edition(&session.caller, request).await;
    let done = if fresh { "fresh" } else { "start" };
    respond(&session, &tournament, result.map_err(WebError::from), done).await
}

/// Redirects to the organisers' page of a tournament, or shows there why the action was refused.
async fn respond<T: Send>(
    session: &Session,
    tournament: &str,
    result: Result<T, WebError>,
    done: &str,
) -> Result<Response, WebError> {
    match result {
        Ok(_) => Ok(redirect_to_tournament(tournament, done).into_response()),
        Err(error) => organise::refuse(session, tournament, error, "").await,
    }
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
pub(super) async fn cancel(
    Path(tournament): Path<String>,
    CsrfForm { session, form: button }: CsrfForm<Button>,
) -> Result<Response, WebError> {
    let action = async {
        check_confirmed(button.sure.as_deref(), CANCEL)?;
        let request = CancelTournamentRequest { tournament: tournament.clone() };
        Ok(session.service.cancel_tournament(&session.caller, request).await?)
    };
    respond(&session, &tournament, action.await, "cancel").await
}

/// Closes a tournament, which publishes its seed.
pub(super) async fn close(
    Path(tournament): Path<String>,
    CsrfForm { session, form: button }: CsrfForm<Button>,
) -> Result<Response, WebError> {
    let action = async {
        check_confirmed(button.sure.as_deref(), CLOSE)?;
        let request = CloseTournamentRequest { tournament: tournament.clone() };
        Ok(session.service.close_tournament(&session.caller, request).await?)
    };
    respond(&session, &tournament, action.await, "close").await
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
    let session = form.confirmed("Withdraw bot")?;
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

//! What organisers do: start, cancel and close, let what was set aside be played or tried again,
//! reinstate bots; and what owners do too: withdraw them.
//!
//! A button is a form of the session ([`Posted`]), and what it asks for is done by the
//! service, which looks once more who asks and notes it in the audit log. It leads to a page that
//! says what was done ([`done`]).

use arbiter_proto::v1::{
    CancelTournamentRequest, CloseTournamentRequest, ReinstateBotRequest, RetryQuarantinedRequest,
    RetryTrialRequest, StartEditionRequest, Tournament, WithdrawBotRequest,
};
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::error::WebError;
use super::posted::Posted;
use super::session::Session;
use super::{done, page};

/// What a button's form carries.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Button {
    /// Ticked where there is no way back.
    sure: Option<String>,
    /// Ticked where an edition is to be planned from the beginning.
    fresh: Option<String>,
}

/// Where a button leads after it was accepted.
type Answer = Result<Redirect, WebError>;

impl Posted<Button> {
    /// Whose button it is, if it was ticked that it is meant.
    fn sure(self) -> Result<Session, WebError> {
        check_sure(self.form.sure.as_deref())?;
        Ok(self.session)
    }
}

/// Refuses what was not meant.
pub(super) fn check_sure(ticked: Option<&str>) -> Result<(), WebError> {
    let unsure = || WebError::new(StatusCode::BAD_REQUEST, "tick that you are sure");
    ticked.map(drop).ok_or_else(unsure)
}

/// A button that does something at `action`; `tick` is what has to be ticked first, if anything
/// has.
pub(super) fn button(session: &Session, action: &str, label: &str, tick: Option<&str>) -> Markup {
    html! {
        form.action method="post" action=(action) {
            (page::csrf(session))
            @if let Some(tick) = tick {
                label { input type="checkbox" name="sure" value="yes" required; " " (tick) } " "
            }
            button type="submit" { (label) }
        }
    }
}

/// The end of a form that asks why something is done: the reason, what has to be ticked, the button.
pub(super) fn reasoned(tick: &str, label: &str) -> Markup {
    html! {
        p {
            label for="reason" { "Why, for the audit log" }
            input #reason name="reason" required maxlength="1000";
        }
        p { label.check { input type="checkbox" name="sure" value="yes" required; " " (tick) } }
        p { button type="submit" { (label) } }
    }
}

/// The buttons of a tournament.
pub(super) fn buttons(session: &Session, found: &Tournament) -> Markup {
    let runs = found
        .editions
        .first()
        .is_some_and(|edition| edition.state == "running" || edition.state == "planning");
    let at = |action: &str| format!("/t/{}/{action}", found.name);
    let sure = |label: &str| Some(label.to_owned());
    html! {
        @if found.state == "open" {
            section.actions aria-labelledby="organiser" {
                h2 #organiser { "Organiser" }
                @if !runs {
                    form.action method="post" action=(at("start")) {
                        (page::csrf(session))
                        @if grows(found) {
                            label {
                                input type="checkbox" name="fresh" value="yes";
                                " Plan tables of four from the beginning, whatever was planned before."
                            } " "
                        }
                        button type="submit" { "Start an edition" }
                    }
                    @if !found.editions.is_empty() {
                        (button(session, &at("close"), "Close the tournament",
                            sure("No edition will follow; the seed is shown.").as_deref()))
                    }
                }
                @if !found.editions.is_empty() {
                    p { a href=(at("void")) { "Declare matches void" } }
                    p { a href=(at("collusion")) { "Look for collusion at tables" } }
                }
                (button(session, &at("cancel"), "Cancel the tournament",
                    sure("It is given up for good.").as_deref()))
            }
        }
    }
}

/// Whether plans of a tournament grow as bots come and go.
fn grows(found: &Tournament) -> bool {
    let settings: Value = serde_json::from_str(&found.settings).unwrap_or_default();
    settings["schedule"]["kind"] == "foursomes"
}

/// Begins an edition.
pub(super) async fn start(Path(tournament): Path<String>, posted: Posted<Button>) -> Answer {
    let Posted { session, form: button } = posted;
    let fresh = button.fresh.is_some();
    let asked = StartEditionRequest { tournament: tournament.clone(), fresh };
    session.service.start_edition(&session.caller, asked).await?;
    Ok(to(&tournament, if fresh { "fresh" } else { "start" }))
}

/// Gives a tournament up.
pub(super) async fn cancel(Path(tournament): Path<String>, posted: Posted<Button>) -> Answer {
    let session = posted.sure()?;
    let asked = CancelTournamentRequest { tournament: tournament.clone() };
    session.service.cancel_tournament(&session.caller, asked).await?;
    Ok(to(&tournament, "cancel"))
}

/// Ends a tournament, and shows its seed.
pub(super) async fn close(Path(tournament): Path<String>, posted: Posted<Button>) -> Answer {
    let session = posted.sure()?;
    let asked = CloseTournamentRequest { tournament: tournament.clone() };
    session.service.close_tournament(&session.caller, asked).await?;
    Ok(to(&tournament, "close"))
}

/// Gives a match that was set aside another chance.
pub(super) async fn retry(
    Path((edition, number)): Path<(i32, i64)>,
    Posted { session, .. }: Posted<Button>,
) -> Answer {
    let name = format!("{edition}/{number}");
    let asked = RetryQuarantinedRequest { r#match: name.clone() };
    session.service.retry_quarantined(&session.caller, asked).await?;
    Ok(done::to_counted(&format!("/matches/{name}"), "retry", 1))
}

/// Gives all matches of a tournament that were set aside another chance.
pub(super) async fn retry_all(
    Path(tournament): Path<String>,
    Posted { session, .. }: Posted<Button>,
) -> Answer {
    let count = session.service.retry_all_aside(&session.caller, &tournament).await?;
    Ok(done::to_counted(&format!("/t/{tournament}"), "retry", count))
}

/// Takes a bot out of the editions to come.
pub(super) async fn withdraw(
    Path((tournament, bot)): Path<(String, String)>,
    posted: Posted<Button>,
) -> Answer {
    let session = posted.sure()?;
    let asked = WithdrawBotRequest { tournament: tournament.clone(), bot: bot.clone() };
    session.service.withdraw_bot(&session.caller, asked).await?;
    Ok(done::to(&format!("/t/{tournament}/bots/{bot}"), "withdraw"))
}

/// Lets a bot that was stood down take part again.
pub(super) async fn reinstate(
    Path((tournament, bot)): Path<(String, String)>,
    Posted { session, .. }: Posted<Button>,
) -> Answer {
    let asked = ReinstateBotRequest { tournament: tournament.clone(), bot: bot.clone() };
    session.service.reinstate_bot(&session.caller, asked).await?;
    Ok(done::to(&format!("/t/{tournament}/bots/{bot}"), "reinstate"))
}

/// Tries a version again that could not be tried.
pub(super) async fn retry_trial(
    Path((tournament, bot, number)): Path<(String, String, i32)>,
    Posted { session, .. }: Posted<Button>,
) -> Answer {
    let asked = RetryTrialRequest { tournament: tournament.clone(), bot: bot.clone(), number };
    session.service.retry_trial(&session.caller, asked).await?;
    Ok(done::to(&format!("/t/{tournament}/bots/{bot}/versions/{number}"), "trial"))
}

/// To the page of a tournament; its name, which was found, needs no escape.
fn to(tournament: &str, done: &str) -> Redirect {
    done::to(&format!("/t/{tournament}"), done)
}

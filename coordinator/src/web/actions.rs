//! What organisers do: start, cancel and close, and let a match that was set aside be played again.
//!
//! A button is a form of the session ([`Session::check`]), and what it asks for is done by the
//! service, which looks once more who asks and notes it in the audit log.

use arbiter_proto::v1::tournament_service_server::TournamentService as _;
use arbiter_proto::v1::{
    CancelTournamentRequest, CloseTournamentRequest, RetryAsideRequest, StartEditionRequest,
    Tournament,
};
use axum::Form;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;

use super::error::WebError;
use super::session::Session;
use crate::access::Role;
use crate::rpc::Shared;

/// What a button's form carries.
#[derive(Debug, Deserialize)]
pub(super) struct Button {
    pub(super) csrf: String,
    /// Ticked where there is no way back.
    #[serde(default)]
    sure: Option<String>,
}

impl Button {
    fn check_sure(&self) -> Result<(), WebError> {
        let unsure = || WebError::new(StatusCode::BAD_REQUEST, "tick that you are sure");
        self.sure.as_ref().map(|_| ()).ok_or_else(unsure)
    }
}

/// Whether whoever looks may command tournaments.
pub(super) async fn is_organiser(shared: &Shared, session: &Session) -> bool {
    session.is_somebody() && shared.admit(&session.ask(()), Role::Organiser).await.is_ok()
}

/// The buttons of a tournament.
pub(super) fn buttons(session: &Session, found: &Tournament) -> Markup {
    let runs = found
        .editions
        .first()
        .is_some_and(|edition| edition.state == "running" || edition.state == "planning");
    let form = |action: &str, label: &str, sure: Option<&str>| {
        html! {
            form.action method="post" action={ "/t/" (found.name) "/" (action) } {
                input type="hidden" name="csrf" value=(session.csrf());
                @if let Some(sure) = sure {
                    label { input type="checkbox" name="sure" value="yes" required; " " (sure) } " "
                }
                button type="submit" { (label) }
            }
        }
    };
    html! {
        @if found.state == "open" {
            section.actions aria-label="Organiser" {
                h2 { "Organiser" }
                @if !runs { (form("start", "Start an edition", None)) }
                @if !runs && !found.editions.is_empty() {
                    (form("close", "Close the tournament", Some("No edition will follow; the seed is shown.")))
                }
                (form("cancel", "Cancel the tournament", Some("It is given up for good.")))
            }
        }
    }
}

/// Begins an edition.
pub(super) async fn start(
    State(shared): State<Shared>,
    session: Session,
    headers: HeaderMap,
    Path(tournament): Path<String>,
    Form(button): Form<Button>,
) -> Result<Redirect, WebError> {
    session.check(&headers, &button.csrf)?;
    let asked = StartEditionRequest { tournament: tournament.clone(), fresh: false };
    shared.start_edition(session.ask(asked)).await?;
    Ok(to(&tournament))
}

/// Gives a tournament up.
pub(super) async fn cancel(
    State(shared): State<Shared>,
    session: Session,
    headers: HeaderMap,
    Path(tournament): Path<String>,
    Form(button): Form<Button>,
) -> Result<Redirect, WebError> {
    session.check(&headers, &button.csrf)?;
    button.check_sure()?;
    let asked = CancelTournamentRequest { tournament: tournament.clone() };
    shared.cancel_tournament(session.ask(asked)).await?;
    Ok(to(&tournament))
}

/// Ends a tournament, and shows its seed.
pub(super) async fn close(
    State(shared): State<Shared>,
    session: Session,
    headers: HeaderMap,
    Path(tournament): Path<String>,
    Form(button): Form<Button>,
) -> Result<Redirect, WebError> {
    session.check(&headers, &button.csrf)?;
    button.check_sure()?;
    let asked = CloseTournamentRequest { tournament: tournament.clone() };
    shared.close_tournament(session.ask(asked)).await?;
    Ok(to(&tournament))
}

/// Gives a match that was set aside another chance.
pub(super) async fn retry(
    State(shared): State<Shared>,
    session: Session,
    headers: HeaderMap,
    Path((edition, number)): Path<(i32, i64)>,
    Form(button): Form<Button>,
) -> Result<Redirect, WebError> {
    session.check(&headers, &button.csrf)?;
    let name = format!("{edition}/{number}");
    shared.retry_aside(session.ask(RetryAsideRequest { r#match: name.clone() })).await?;
    Ok(Redirect::to(&format!("/matches/{name}")))
}

/// To the page of a tournament; its name, which was found, needs no escape.
fn to(tournament: &str) -> Redirect {
    Redirect::to(&format!("/t/{tournament}"))
}

//! The collusion report for organisers: which bots score more at tables with a certain other bot.

use crate::service::ErrorKind;
use arbiter_proto::v1::{CollusionPair, FindCollusionRequest, FindCollusionResponse};
use arbiter_ranking::statistics::text;
use arbiter_replay::number_text;
use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;

use super::error::WebError;
use super::layout;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use crate::access::Role;

/// Maximum number of pairs on the page.
const MAX_PAIRS: u32 = 100;

/// The query string of the page.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CollusionQuery {
    edition: Option<i32>,
}

/// The page. If the tournament cannot be checked, the page gives the reason.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(CollusionQuery { edition }): Query<CollusionQuery>,
) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    let request =
        FindCollusionRequest { tournament: tournament.clone(), edition, limit: MAX_PAIRS };
    let result = match session.service.find_collusion(&session.caller, request).await {
        Err(error) if error.kind() != ErrorKind::FailedPrecondition => return Err(error.into()),
        result => result,
    };
    let links = TournamentLinks::of(&session.service, &tournament).await?;
    let page = TournamentPage::below(&tournament, Tab::Organise, "Collusion");
    let body = match result {
        Ok(response) => report(&links, &response),
        Err(error) => {
            let nothing = page.nothing_played(&session).await;
            nothing.unwrap_or_else(|| html! { p { (layout::sentence(error.message())) } })
        }
    };
    Ok(page.render(&session, &body).await)
}

fn report(tournament: &TournamentLinks, response: &FindCollusionResponse) -> Markup {
    let FindCollusionResponse { edition, tables, tested, flagged, claim, pairs, .. } = response;
    html! {
        p {
            "Edition " (edition) ": " (layout::count(*tables, "table", "tables")) ", "
            (layout::count(*tested, "ordered pair", "ordered pairs")) " tested, "
            strong { (flagged) " flagged" } "."
        }
        p { (layout::sentence(claim)) }
        @if pairs.is_empty() { p { "No pair met often enough to be tested." } }
        @else { (table(tournament, pairs)) }
    }
}

fn table(tournament: &TournamentLinks, pairs: &[CollusionPair]) -> Markup {
    let heads = [
        "Bot",
        "Partner",
        "Tables together",
        "Mean with partner",
        "Mean without partner",
        "Gain",
        "Partner's gain",
        "p",
        "q",
        "Flagged",
    ];
    let row = |pair: &CollusionPair| {
        html! {
            td { (tournament.bot(&pair.bot)) }
            td { (tournament.bot(&pair.partner)) }
            td.number { (pair.together) }
            td.number { (number_text(text::mean(pair.mean_with, None))) }
            td.number { (number_text(text::mean(pair.mean_without, None))) }
            td.number { (number_text(text::difference(pair.difference))) }
            td.number { (number_text(text::difference(pair.partner_difference))) }
            td.number { (number_text(format!("{:.2e}", pair.p))) }
            td.number { (number_text(format!("{:.2e}", pair.q))) }
            td { @if pair.flagged { strong { "flagged" } } }
        }
    };
    layout::table("Pairs with the lowest p-values", "collusion", &heads, pairs.iter().map(row))
}

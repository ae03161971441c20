//! Collusion at tables, for organisers: which bots score more when a certain other bot is there.

use crate::service::ErrorKind;
use arbiter_proto::v1::{CollusionPair, FindCollusionRequest, FindCollusionResponse};
use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;

use super::error::WebError;
use super::page;
use super::session::Session;
use crate::access::Role;

/// Pairs on the page.
const PAIRS: u32 = 100;

/// Which edition is searched.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CollusionQuery {
    edition: Option<i32>,
}

/// The page. A tournament that cannot be searched says why on it.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(CollusionQuery { edition }): Query<CollusionQuery>,
) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    let request = FindCollusionRequest { tournament: tournament.clone(), edition, limit: PAIRS };
    let found = match session.service.find_collusion(&session.caller, request).await {
        Err(error) if error.kind() != ErrorKind::FailedPrecondition => return Err(error.into()),
        found => found,
    };
    let title = format!("{tournament}: collusion");
    let body = html! {
        @match &found {
            Ok(found) => { (answer(&tournament, found)) }
            Err(status) => { p { (status.message()) } }
        }
    };
    Ok(page::of_tournament((&tournament, ""), &title, &session, &body))
}

fn answer(tournament: &str, found: &FindCollusionResponse) -> Markup {
    let FindCollusionResponse { edition, tables, tested, flagged, claim, pairs, .. } = found;
    html! {
        p {
            "Edition " (edition) ": " (tables) " tables, " (tested) " ordered pairs tested; "
            strong { (flagged) @if *flagged == 1 { " is flagged" } @else { " are flagged" } } "."
        }
        p { (claim) }
        (table(tournament, pairs))
    }
}

fn table(tournament: &str, pairs: &[CollusionPair]) -> Markup {
    let heads = [
        "Bot",
        "Partner",
        "Tables together",
        "Mean with",
        "Mean without",
        "Gains",
        "Partner gains",
        "p",
        "q",
        "Flagged",
    ];
    let row = |pair: &CollusionPair| {
        html! {
            td { (page::bot(tournament, &pair.bot)) }
            td { (page::bot(tournament, &pair.partner)) }
            td.number { (pair.together) }
            td.number { (format!("{:.2}", pair.mean_with)) }
            td.number { (format!("{:.2}", pair.mean_without)) }
            td.number { (format!("{:+.2}", pair.difference)) }
            td.number { (format!("{:+.2}", pair.partner_difference)) }
            td.number { (format!("{:.2e}", pair.p)) }
            td.number { (format!("{:.2e}", pair.q)) }
            td { @if pair.flagged { strong { "flagged" } } }
        }
    };
    page::table("Pairs with the least p-values", "collusion", &heads, pairs.iter().map(row))
}

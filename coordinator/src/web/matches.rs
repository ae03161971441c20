//! The matches of an edition: those that were played, and all that are planned, with the
//! certificate of their balance.

use crate::service::ErrorKind;
use arbiter_proto::ids::{EditionId, MatchId};
use arbiter_proto::v1::{self, CertifyEditionRequest, ListMatchesRequest, MatchStatus};
use arbiter_ranking::Entrant;
use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;
use tokio_stream::StreamExt as _;

use super::error::{WebError, unless};
use super::page;
use super::session::Session;
use crate::db::entrants::Roster;
use crate::db::matches::Match;
use crate::service::{Planned, counted_certificate};
use crate::tournament::beacon::seed_origin;

/// Matches on a page.
const MATCHES: u32 = 100;
/// The longest schedule whose balance is counted for a page, in matches.
const COUNTED: i64 = 50_000;
/// The most bots whose matches are counted for a page, bot by bot.
const BOTS: usize = 500;

/// Which matches are looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    edition: Option<i32>,
    /// Only matches of this bot.
    bot: String,
    /// Only matches after this number.
    after: Option<i64>,
}

impl Look {
    /// The matches of a page, and one more if there are further ones.
    fn request(&self, tournament: &str) -> ListMatchesRequest {
        let Self { edition, bot, after } = self.clone();
        let (tournament, limit) = (tournament.to_owned(), MATCHES + 1);
        ListMatchesRequest { tournament, edition, bot, after, limit }
    }
}

/// Matches that were played.
pub(super) async fn list(
    session: Session,
    Path(tournament): Path<String>,
    Query(look): Query<Look>,
) -> Result<Markup, WebError> {
    let asked = look.request(&tournament);
    let Look { edition, bot, after } = look;
    let mut answers = session.service.list_matches(&session.caller, asked).await?;
    let mut played: Vec<MatchStatus> = Vec::new();
    while let Some(answer) = answers.next().await {
        played.push(answer?);
    }
    let more = played.len() > MATCHES as usize;
    played.truncate(MATCHES as usize);
    let number = |status: &MatchStatus| Some(status.r#match.parse::<MatchId>().ok()?.number.0);
    let last = played.last().and_then(number);
    let title = format!("{tournament}: matches");
    let heads = ["Match", "Seats, and what they scored", "Parameters", "ms"];
    let row = |status: &MatchStatus| {
        html! {
            td { (page::match_link(&status.r#match)) }
            td { (page::seats(&tournament, &status.seats)) }
            td { (status.params) }
            td.number { (status.wall_ms) }
        }
    };
    let edition = edition.map(|edition| format!("edition={edition}&")).unwrap_or_default();
    let body = html! {
        @if !bot.is_empty() { p { "Matches of " (page::bot(&tournament, &bot)) "." } }
        @if played.is_empty() { p { "None was played yet." } }
        @else { (page::table("Matches", "", &heads, played.iter().map(row))) }
        p { a href={ "/t/" (tournament) "/matches.csv?" (edition) "bot=" (bot) } download { "All of them as comma-separated values" } }
        nav.paging aria-label="Pages" {
            @if after.is_some() { a href={ "?" (edition) "bot=" (bot) } { "The first matches" } }
            @if let Some(last) = last.filter(|_| more) {
                a rel="next" href={ "?" (edition) "bot=" (bot) "&after=" (last) } { "Further matches" }
            }
        }
    };
    Ok(page::of_tournament((&tournament, "Matches"), &title, &session, &body))
}

/// All matches that are planned, and how balanced they are.
pub(super) async fn schedule(
    session: Session,
    Path(tournament): Path<String>,
    Query(look): Query<Look>,
) -> Result<Markup, WebError> {
    let asked = look.request(&tournament);
    let Look { bot, after, .. } = look;
    let Planned { edition, roster, matches: mut planned } =
        session.service.planned_matches(&session.caller, asked).await?;
    let counted = edition.matches <= COUNTED && edition.matches > 0;
    let certificate =
        if counted { certificate(&session, &tournament, edition.number).await? } else { None };
    let seats = if counted && roster.iter().len() <= BOTS {
        session.service.times_in_seats(&session.caller, &edition).await?
    } else {
        Vec::new()
    };
    let more = planned.len() > MATCHES as usize;
    planned.truncate(MATCHES as usize);
    let last = planned.last().filter(|_| more).map(|planned| planned.number.0);
    let beacon = session.service.beacon_of(&tournament).await?;
    let title = format!("{tournament}: schedule");
    let query = format!("?edition={}&bot={bot}", edition.number);
    let body = html! {
        p {
            "Edition " (edition.number) ": " (edition.matches) " matches"
            @if edition.growing { ", and more as results come in" } "."
        }
        @if let Some(certificate) = &certificate { (certified(certificate)) }
        @if !counted && edition.matches > 0 {
            p { "Its balance is counted by " code { "arbiter tournament schedule " (tournament) " --certificate" } "." }
            p { (seed_origin(beacon.as_ref(), edition.number)) }
        }
        (counts(&tournament, &roster, &seats))
        h2 { "Matches" }
        form.search method="get" role="search" {
            input type="hidden" name="edition" value=(edition.number);
            label for="bot" { "Only those of the bot" }
            input #bot name="bot" value=(bot);
            button type="submit" { "Show" }
        }
        (rows(&tournament, edition.id, &roster, &planned))
        nav.paging aria-label="Pages" {
            @if after.is_some() { a href=(query) { "The first matches" } }
            @if let Some(last) = last { a rel="next" href={ (query) "&after=" (last) } { "Further matches" } }
        }
    };
    Ok(page::of_tournament((&tournament, "Schedule"), &title, &session, &body))
}

/// What was counted of an edition, unless there is nothing that could be.
async fn certificate(
    session: &Session,
    tournament: &str,
    edition: i32,
) -> Result<Option<v1::Certificate>, WebError> {
    let (tournament, edition) = (tournament.to_owned(), Some(edition));
    let asked = CertifyEditionRequest { tournament, edition, next: false, fresh: false };
    let counted = session.service.certify_edition(&session.caller, asked).await;
    unless(&[ErrorKind::FailedPrecondition], counted)
}

fn certified(told: &v1::Certificate) -> Markup {
    if !told.not_counted.is_empty() {
        return html! {
            section.certificate aria-labelledby="certificate" {
                h2 #certificate { "Certificate" }
                p { strong { "Balance not certified" } ": " (told.not_counted) "." }
                p { (seed_origin(told.beacon.as_ref(), told.edition)) }
            }
        };
    }
    html! {
        section.certificate aria-labelledby="certificate" {
            h2 #certificate { "Certificate" }
            p { "Counted from the matches themselves, whoever planned them:" }
            pre { (counted_certificate(told)) }
            p { (seed_origin(told.beacon.as_ref(), told.edition)) }
            @if told.broken_promise.is_empty() { p { strong { "Proved" } ": all as promised." } }
            @else { p.refused { "Not as promised: " (told.broken_promise) } }
        }
    }
}

/// How many matches each bot has, and in which seats.
fn counts(tournament: &str, roster: &Roster, counts: &[(Entrant, Vec<i64>)]) -> Markup {
    let seats = counts.iter().map(|(_, seats)| seats.len()).max().unwrap_or(0);
    let table = html! {
        table.counts {
            thead {
                tr {
                    th scope="col" { "Bot" } th scope="col" { "Matches" }
                    @for seat in 1..=seats { th scope="col" { "Seat " (seat) } }
                }
            }
            tbody {
                @for (entrant, times) in counts {
                    tr {
                        th scope="row" { (named(tournament, roster, *entrant)) }
                        td.number { (times.iter().sum::<i64>()) }
                        @for times in times { td.number { (times) } }
                    }
                }
            }
        }
    };
    html! {
        @if !counts.is_empty() {
            details {
                summary { "Matches of each bot, seat by seat" }
                (page::wide("Matches of each bot", &table))
            }
        }
    }
}

fn named(tournament: &str, roster: &Roster, entrant: Entrant) -> Markup {
    page::bot(tournament, roster.get(entrant).map_or("?", |named| &named.name))
}

fn rows(tournament: &str, edition: EditionId, roster: &Roster, planned: &[Match]) -> Markup {
    let row = |planned: &Match| {
        let id = MatchId { edition, number: planned.number };
        html! {
            td { (page::match_link(&id.to_string())) }
            td {
                ol.seats {
                    @for entrant in &planned.seats.0 { li { (named(tournament, roster, *entrant)) } }
                }
            }
        }
    };
    page::table("Matches", "schedule", &["Match", "Seats"], planned.iter().map(row))
}

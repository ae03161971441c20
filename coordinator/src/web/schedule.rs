//! The schedule of an edition: all planned matches, and how balanced they are.

use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{self, CertifyEditionRequest, ListMatchesRequest};
use arbiter_ranking::Entrant;
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::api::escape;
use super::data_links::{DataLink, data_links};
use super::error::{WebError, none_if};
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use super::{balance, layout};
use crate::db::entrants::Roster;
use crate::db::matches::Match;
use crate::service::{ErrorKind, Planned};

const MATCHES_PER_PAGE: u32 = 100;
/// Larger schedules are not certified on the page.
const MAX_CERTIFIED_MATCHES: i64 = 50_000;
/// With more bots, the page does not count matches for each bot.
const MAX_COUNTED_BOTS: usize = 500;

/// The query string of the schedule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ScheduleQuery {
    edition: Option<i32>,
    /// Only matches of this bot.
    bot: String,
    /// Only matches after this number.
    after: Option<i64>,
}

impl ScheduleQuery {
    /// Requests the matches of a page, and one more to see whether another page follows.
    fn request(&self, tournament: &str) -> ListMatchesRequest {
        let Self { edition, bot, after } = self.clone();
        let tournament = tournament.to_owned();
        let limit = MATCHES_PER_PAGE + 1;
        ListMatchesRequest { tournament, edition, bot, after, limit, ..Default::default() }
    }
}

/// All planned matches and the certificate of their balance.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<ScheduleQuery>,
) -> Result<Response, WebError> {
    let content = content(&session, &tournament, query).await;
    TournamentPage::below(&tournament, Tab::Matches, "Schedule").respond(&session, content).await
}

async fn content(
    session: &Session,
    tournament: &str,
    query: ScheduleQuery,
) -> Result<Markup, WebError> {
    let request = query.request(tournament);
    let ScheduleQuery { bot, after, .. } = query;
    let Planned { edition, roster, matches: mut planned } =
        session.service.planned_matches(&session.caller, request).await?;
    let certifies = edition.matches <= MAX_CERTIFIED_MATCHES && edition.matches > 0;
    let certificate =
        if certifies { certificate(session, tournament, edition.number).await? } else { None };
    let seat_counts = if certifies && roster.iter().len() <= MAX_COUNTED_BOTS {
        session.service.seat_counts(&session.caller, &edition).await?
    } else {
        Vec::new()
    };
    let links = &TournamentLinks::of(&session.service, tournament).await?;
    let has_next = planned.len() > MATCHES_PER_PAGE as usize;
    planned.truncate(MATCHES_PER_PAGE as usize);
    let last = planned.last().filter(|_| has_next).map(|planned| planned.number.0);
    let beacon = session.service.beacon_of(tournament).await?;
    let query = format!("?edition={}&bot={}", edition.number, escape(&bot));
    Ok(html! {
        p {
            "Edition " (edition.number) ": " (layout::count(edition.matches, "match", "matches"))
            @if edition.open_ended { " so far; results can add more" } "."
        }
        @if let Some(certificate) = &certificate { (balance::section(certificate)) }
        @if !certifies && edition.matches > 0 {
            p {
                "This schedule is too large to count its balance here. To count it, run "
                code { "arbiter tournament schedule " (tournament) " --certificate" } "."
            }
            (balance::seed(beacon.as_ref(), edition.number))
        }
        (seat_count_table(links, &roster, &seat_counts))
        h2 { "Matches" }
        form.search method="get" role="search" {
            input type="hidden" name="edition" value=(edition.number);
            label for="bot" { "Only matches of the bot" }
            input #bot name="bot" value=(layout::form_value(&bot));
            button type="submit" { "Show" }
        }
        (match_table(links, &roster, &planned))
        nav.paging aria-label="Pages" {
            @if after.is_some() { a href=(query) { "First page" } }
            @if let Some(last) = last { a rel="next" href={ (query) "&after=" (last) } { "Next page" } }
        }
        (data_links("Data of this schedule", &[
            DataLink::Json(format!("tournaments/{tournament}/schedule?edition={}", edition.number)),
        ]))
    })
}

/// The certificate of an edition, or `None` if its schedule has none.
async fn certificate(
    session: &Session,
    tournament: &str,
    edition: i32,
) -> Result<Option<v1::Certificate>, WebError> {
    let tournament = tournament.to_owned();
    let edition = Some(edition);
    let request = CertifyEditionRequest { tournament, edition, next: false, fresh: false };
    let certificate = session.service.certify_edition(&session.caller, request).await;
    none_if(&[ErrorKind::FailedPrecondition], certificate)
}

/// The number of matches of each bot, in total and in each seat.
fn seat_count_table(
    tournament: &TournamentLinks,
    roster: &Roster,
    counts: &[(Entrant, Vec<i64>)],
) -> Markup {
    let seats = counts.iter().map(|(_, seats)| seats.len()).max().unwrap_or(0);
    let mut heads = vec!["Bot".to_owned(), "Matches".to_owned()];
    heads.extend((1..=seats).map(|seat| format!("Seat {seat}")));
    let row = |(entrant, seat_counts): &(Entrant, Vec<i64>)| {
        html! {
            th scope="row" { (entrant_link(tournament, roster, *entrant)) }
            td.number { (seat_counts.iter().sum::<i64>()) }
            @for count in seat_counts { td.number { (count) } }
        }
    };
    let label = "Matches per bot and seat";
    html! {
        @if !counts.is_empty() {
            details {
                summary { (label) }
                (layout::table(label, "counts", &heads, counts.iter().map(row)))
            }
        }
    }
}

fn entrant_link(tournament: &TournamentLinks, roster: &Roster, entrant: Entrant) -> Markup {
    tournament.bot(roster.get(entrant).map_or("?", |named| &named.name))
}

fn match_table(tournament: &TournamentLinks, roster: &Roster, planned: &[Match]) -> Markup {
    let row = |planned: &Match| {
        let name = MatchName { tournament: tournament.to_string(), number: planned.number };
        html! {
            td { (layout::match_number_link(&name.to_string())) }
            td {
                ol.seats {
                    @for entrant in &planned.seats.0 { li { (entrant_link(tournament, roster, *entrant)) } }
                }
            }
        }
    };
    layout::table("Matches", "schedule", &["Match", "Seats"], planned.iter().map(row))
}

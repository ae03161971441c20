//! The matches of an edition: those that were played, and all that are planned, with the
//! certificate of their balance.

use arbiter_proto::ids::{EditionId, MatchId, MatchNumber};
use arbiter_proto::v1::tournament_service_server::TournamentService as _;
use arbiter_proto::v1::{Board, ListMatchesRequest, MatchStatus};
use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use tokio_stream::StreamExt as _;

use super::error::WebError;
use super::page;
use super::session::Session;
use crate::db::entrants::Roster;
use crate::db::matches::{self, Match};
use crate::rpc::{Shared, Which, database};
use crate::schedule::{Bot, Certificate, Counter};

/// Matches on a page.
const MATCHES: u32 = 100;
/// The longest schedule whose balance is counted for a page, in matches.
const COUNTED: i64 = 50_000;
/// How many matches are read at a time to be counted.
const READ: i32 = 10_000;

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

/// Matches that were played.
pub(super) async fn list(
    State(shared): State<Shared>,
    session: Session,
    Path(tournament): Path<String>,
    Query(look): Query<Look>,
) -> Result<Markup, WebError> {
    let Look { edition, bot, after } = look;
    let asked = ListMatchesRequest {
        tournament: tournament.clone(),
        edition,
        bot: bot.clone(),
        after,
        limit: MATCHES + 1,
    };
    let _turn = super::turn().await;
    let mut answers = shared.list_matches(session.ask(asked)).await?.into_inner();
    let mut played: Vec<MatchStatus> = Vec::new();
    while let Some(answer) = answers.next().await {
        played.push(answer?);
    }
    let more = played.len() > MATCHES as usize;
    played.truncate(MATCHES as usize);
    let number = |status: &MatchStatus| Some(status.r#match.parse::<MatchId>().ok()?.number.0);
    let last = played.last().and_then(number);
    let title = format!("{tournament}: matches");
    let table = html! {
        table {
            thead { tr { th { "Match" } th { "Seats, and what they scored" } th { "Parameters" } th { "ms" } } }
            tbody {
                @for status in &played {
                    tr {
                        td { (page::match_link(&status.r#match)) }
                        td { (page::seats(&tournament, &status.seats)) }
                        td { (status.params) }
                        td.number { (status.wall_ms) }
                    }
                }
            }
        }
    };
    let edition = edition.map(|edition| format!("edition={edition}&")).unwrap_or_default();
    let body = html! {
        h1 { (title) }
        (page::tabs(&tournament, "Matches"))
        @if !bot.is_empty() { p { "Matches of " (page::bot(&tournament, &bot)) "." } }
        @if played.is_empty() { p { "None was played yet." } } @else { (page::wide(&table)) }
        p { a href={ "/t/" (tournament) "/matches.csv?" (edition) "bot=" (bot) } download { "All of them as comma-separated values" } }
        @if let Some(last) = last.filter(|_| more) {
            nav.paging aria-label="Pages" {
                a rel="next" href={ "?" (edition) "bot=" (bot) "&after=" (last) } { "Further matches" }
            }
        }
    };
    Ok(page::page(&title, &session, &body))
}

/// All matches that are planned, and how balanced they are.
pub(super) async fn schedule(
    State(shared): State<Shared>,
    session: Session,
    Path(tournament): Path<String>,
    Query(look): Query<Look>,
) -> Result<Markup, WebError> {
    let asked = Board { tournament: tournament.clone(), edition: look.edition };
    let viewer = shared.viewer(&session.ask(())).await?;
    let (edition, _) = shared.edition_of(Some(asked), Which::Newest, &viewer).await?;
    let roster = Roster::of(&shared.pool, edition.id).await.map_err(database)?;
    let first = look.after.map_or(0, |after| after.saturating_add(1)).max(0);
    let shown = i32::try_from(MATCHES).expect("a page is short");
    let planned = matches::range(&shared.pool, edition.id, MatchNumber(first), shown).await;
    let planned = planned.map_err(database)?;
    let certificate = if edition.matches <= COUNTED && edition.matches > 0 && !edition.growing {
        let _turn = super::turn().await;
        count(&shared, edition.id, roster.iter().len()).await?
    } else {
        None
    };
    let last = planned.last().map(|planned| planned.number.0);
    let more = last.filter(|last| last + 1 < edition.matches);
    let title = format!("{tournament}: schedule");
    let body = html! {
        h1 { (title) }
        (page::tabs(&tournament, "Schedule"))
        p {
            "Edition " (edition.number) ": " (edition.matches) " matches"
            @if edition.growing { ", and more as results come in" } "."
        }
        @if let Some(certificate) = certificate { (certified(&certificate)) }
        @if let Some(file) = (edition.matches > COUNTED).then_some(&tournament) {
            p { "Its balance is counted by " code { "arbiter tournament schedule " (file) " --certificate" } "." }
        }
        (page::wide(&rows(&tournament, edition.id, &roster, &planned)))
        @if let Some(last) = more {
            nav.paging aria-label="Pages" {
                a rel="next" href={ "?edition=" (edition.number) "&after=" (last) } { "Further matches" }
            }
        }
    };
    Ok(page::page(&title, &session, &body))
}

/// Counts the matches of an edition as they are stored; nothing if they are of several kinds.
async fn count(
    shared: &Shared,
    edition: EditionId,
    bots: usize,
) -> Result<Option<Certificate>, WebError> {
    let (mut counter, mut next): (Option<Counter>, _) = (None, 0);
    loop {
        let read = matches::range(&shared.pool, edition, MatchNumber(next), READ).await;
        let read = read.map_err(database)?;
        if read.is_empty() {
            return Ok(counter.map(Counter::finish));
        }
        for planned in read {
            let seats = planned.seats.0.iter().map(|entrant| Bot::try_from(entrant.0));
            let Ok(seats) = seats.collect::<Result<Vec<_>, _>>() else { return Ok(None) };
            let counter = counter.get_or_insert_with(|| Counter::new(bots, seats.len()));
            if counter.add(&seats).is_err() {
                return Ok(None);
            }
        }
        next += i64::from(READ);
    }
}

fn certified(certificate: &Certificate) -> Markup {
    html! {
        section.certificate {
            h2 { "Certificate" }
            p { "Counted from the matches themselves, whoever planned them:" }
            pre { (certificate) }
        }
    }
}

fn rows(tournament: &str, edition: EditionId, roster: &Roster, planned: &[Match]) -> Markup {
    html! {
        table {
            thead { tr { th { "Match" } th { "Seats" } } }
            tbody {
                @for planned in planned {
                    tr {
                        td { (page::match_link(&MatchId { edition, number: planned.number }.to_string())) }
                        td {
                            ol.seats {
                                @for entrant in &planned.seats.0 {
                                    li { (page::bot(tournament, roster.get(*entrant).map_or("?", |named| &named.name))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

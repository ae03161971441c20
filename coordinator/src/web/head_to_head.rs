//! The head-to-head page: wins, draws and losses between the bots of a leaderboard.

use std::cmp::Ordering;

use arbiter_proto::v1::LeaderboardRef;
use arbiter_ranking::{HeadToHead, HeadToHeads, PairFilter};
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::layout;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use crate::leaderboard_cache;
use arbiter_ranking::Entrant;

const BOTS_PER_PAGE: usize = 50;

/// The query string of the page.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HeadToHeadQuery {
    edition: Option<i32>,
    /// The number of leaderboard rows to skip.
    offset: usize,
}

pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<HeadToHeadQuery>,
) -> Result<Response, WebError> {
    let content = content(&session, &tournament, query).await;
    TournamentPage::new(&tournament, Tab::HeadToHead).respond(&session, content).await
}

async fn content(
    session: &Session,
    tournament: &str,
    HeadToHeadQuery { edition, offset }: HeadToHeadQuery,
) -> Result<Markup, WebError> {
    let request = LeaderboardRef { tournament: tournament.to_owned(), edition };
    let (edition, board) = session.service.leaderboard(&session.caller, request).await?;
    let shown = board.places.iter().skip(offset).take(BOTS_PER_PAGE);
    let shown: Vec<Entrant> = shown.map(|place| place.contestant.entrant).collect();
    let pairs = PairFilter::Among(shown.iter().copied().collect());
    let meetings = session.service.head_to_heads(&edition, pairs, &session.caller).await?;
    let links = TournamentLinks::of(&session.service, tournament).await?;
    let places = board.places.len();
    let status =
        session.service.edition_status(&session.caller, tournament, edition.number).await?;
    let query = |offset: usize| format!("?edition={}&offset={offset}", edition.number);
    let is_partial = has_unmet(&shown, |bot, other| meetings.between(bot, other).is_some());
    Ok(html! {
        p {
            "Results of " (layout::edition_label(edition.number, status)) ". "
            (legend(", and links to their matches", is_partial))
        }
        (matrix((&links, edition.number), &board, &meetings, &shown))
        nav.paging aria-label="Pages" {
            @if offset > 0 { a rel="prev" href=(query(offset.saturating_sub(BOTS_PER_PAGE))) { "Previous page" } }
            @if offset.saturating_add(BOTS_PER_PAGE) < places { a rel="next" href=(query(offset + BOTS_PER_PAGE)) { "Next page" } }
        }
        (data_links("Matches of this edition", &[
            DataLink::Json(format!("tournaments/{tournament}/matches?edition={}", edition.number)),
            DataLink::Csv(format!("/t/{tournament}/matches.csv?edition={}", edition.number)),
        ]))
    })
}

/// Whether two of these bots have not met.
pub(super) fn has_unmet<T: Copy>(shown: &[T], have_met: impl Fn(T, T) -> bool) -> bool {
    shown
        .iter()
        .enumerate()
        .any(|(index, bot)| shown[index + 1..].iter().any(|other| !have_met(*bot, *other)))
}

fn matrix(
    (tournament, edition): (&TournamentLinks, i32),
    board: &leaderboard_cache::Leaderboard,
    meetings: &HeadToHeads,
    shown: &[Entrant],
) -> Markup {
    let name = |entrant: &Entrant| board.roster.get(*entrant).map_or("?", |named| &named.name[..]);
    let mut heads = vec![html! { "Bot" }];
    heads.extend(shown.iter().map(|other| html! { span { (tournament.label(name(other))) } }));
    let matches = |row: &Entrant, other: &Entrant| {
        tournament.matches_between(edition, name(row), name(other))
    };
    let row = |row: &Entrant| {
        html! {
            th.name scope="row" { (tournament.bot(name(row))) }
            @for other in shown {
                (cell(meetings.between(*row, *other).filter(|_| row != other), &matches(row, other)))
            }
        }
    };
    layout::table("Head to head", "matrix", &heads, shown.iter().map(row))
}

/// Wins, draws and losses, coloured by the balance, with a link to the matches.
fn cell(result: Option<HeadToHead>, matches: &str) -> Markup {
    let Some(result) = result else { return html! { td.none {} } };
    let class = balance(result.won.cmp(&result.lost));
    html! { td class=(class) { a href=(matches) { (result.won) "–" (result.drawn) "–" (result.lost) } } }
}

/// The CSS class of a cell, by the comparison of wins with losses.
pub(super) fn balance(wins_with_losses: Ordering) -> &'static str {
    match wins_with_losses {
        Ordering::Greater => "better",
        Ordering::Equal => "even",
        Ordering::Less => "worse",
    }
}

/// What the cells show, and what their colours mean. `links` says what a cell links to;
/// `has_unmet`, whether two bots have not met.
pub(super) fn legend(links: &str, has_unmet: bool) -> Markup {
    html! {
        "Each cell shows wins–draws–losses of the row's bot against the column's bot" (links) ". "
        span.better { "Green" } ": it won more often than it lost. "
        span.worse { "Red" } ": it lost more often. "
        "Of two bots in a match, the one with the higher score wins."
        @if has_unmet { " Two bots with an empty cell have not met." }
    }
}

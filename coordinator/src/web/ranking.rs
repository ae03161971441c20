//! Leaderboards: pages of places, searched, with their intervals, live while an edition runs.

use arbiter_proto::v1::{
    GetRankingRequest, GetRankingResponse, GetTournamentRequest, LeaderboardRef, Standing,
    Tournament,
};
use std::sync::OnceLock;

use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use time::OffsetDateTime;

use super::api::escape;
use super::chart::{self, Interval};
use super::error::WebError;
use super::session::Session;
use super::{Pages, live, page};
use crate::cache::Cache;

/// Places on a page.
const PLACES: u32 = 100;

/// What of a leaderboard is looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    /// The edition's number; that of the official leaderboard if it is not given.
    edition: Option<i32>,
    /// Only bots whose name holds this.
    q: String,
    /// Places to leave out at the top.
    offset: u32,
}

impl Look {
    fn request(&self, tournament: &str) -> GetRankingRequest {
        let board = LeaderboardRef { tournament: tournament.to_owned(), edition: self.edition };
        GetRankingRequest {
            leaderboard: Some(board),
            offset: self.offset,
            limit: PLACES,
            name_contains: self.q.clone(),
        }
    }

    /// The same look from another place on, as part of an address.
    fn query(&self, offset: u32) -> String {
        let mut parts = Vec::new();
        parts.extend(self.edition.map(|edition| format!("edition={edition}")));
        if !self.q.is_empty() {
            parts.push(format!("q={}", escape(&self.q)));
        }
        if offset > 0 {
            parts.push(format!("offset={offset}"));
        }
        parts.join("&")
    }
}

/// The markup of leaderboards that are watched: drawn for the first watcher, and the same for all.
pub(super) type Rendered = Cache<u64, OnceLock<String>>;

/// A page of a leaderboard.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(look): Query<Look>,
) -> Result<Markup, WebError> {
    let asked = GetTournamentRequest { tournament: tournament.clone() };
    let found = session.service.cached_tournament(&session.caller, asked).await?;
    let board = session.service.get_ranking(&session.caller, look.request(&tournament)).await?;
    // Where no edition is asked for, another one may become the official one.
    let changes = look.edition.is_none() && found.state == "open"
        || found.editions.iter().any(|edition| {
            edition.number == board.edition && ["running", "planning"].contains(&&edition.state[..])
        });
    let query = look.query(look.offset);
    let live = changes.then(|| format!("/t/{tournament}/ranking/live?{query}"));
    let title = format!("{tournament}: leaderboard");
    let body = html! {
        (boards(&found, &board, session.service.now()))
        form.search method="get" role="search" {
            @if let Some(edition) = look.edition {
                input type="hidden" name="edition" value=(edition);
            }
            label for="q" { "Bot" }
            input #q type="search" name="q" value=(look.q);
            button type="submit" { "Search" }
        }
        section data-live=[live] { (places(&tournament, &board)) }
        (paging(&look, &board))
        p { a href={ "/t/" (tournament) "/ranking.csv?edition=" (board.edition) } download { "As comma-separated values" } }
    };
    Ok(page::of_tournament((&tournament, "Leaderboard"), &title, &session, &body))
}

/// The same page, whenever it changes.
pub(super) async fn live(
    State(pages): State<Pages>,
    session: Session,
    Path(tournament): Path<String>,
    Query(look): Query<Look>,
) -> Result<impl IntoResponse, WebError> {
    let boards = session.service.watch_page(&session.caller, look.request(&tournament)).await?;
    Ok(live::watched(session, boards, move |told| {
        let markup = pages.boards.get_or_insert_with(told.id, OnceLock::new);
        let markup = markup.get_or_init(|| places(&tournament, &told.page).into_string());
        PreEscaped(markup.clone())
    }))
}

/// Which leaderboard this is, and which others there are.
fn boards(found: &Tournament, board: &GetRankingResponse, now: OffsetDateTime) -> Markup {
    let others = found.editions.iter().filter(|edition| edition.number != board.edition);
    let address = |number: i32| format!("/t/{}/ranking?edition={number}", found.name);
    html! {
        @for edition in others.clone().filter(|edition| edition.official) {
            p { a href=(address(edition.number)) { "The official leaderboard" } }
        }
        @for edition in others.filter(|edition| edition.state == "running") {
            p.provisional {
                a href=(address(edition.number)) { "The provisional one of edition " (edition.number) }
                " is being played: " (page::progress_of(edition))
                @if edition.eta_us.is_some() { "; " (page::forecast(edition, now)) }
            }
        }
    }
}

/// The places of a page.
fn places(tournament: &str, board: &GetRankingResponse) -> Markup {
    let shown = |place: &Standing| Interval { mean: place.mean, margin: place.margin };
    let range = chart::range(board.standings.iter().map(shown));
    let bad = board.standings.iter().any(|place| place.bad_answers > 0);
    let table = html! {
        table.ranking data-edition=(board.edition) data-counted=(board.counted) {
            thead {
                tr {
                    th.number scope="col" { "Rank" } th scope="col" { "Bot" }
                    th.number scope="col" { "Version" } th.number scope="col" { "Matches" }
                    @for column in &board.columns { th.number scope="col" { (column) } }
                    th.number scope="col" { "Mean" } th scope="col" { "95 % interval" }
                    th.number scope="col" { "Forfeits" }
                    @if bad { th.number scope="col" { "Bad answers" } }
                }
            }
            tbody {
                @for place in &board.standings {
                    tr data-bot=(place.bot) {
                        td.number { @if place.tied { "=" } (place.rank) }
                        td { (page::bot(tournament, &place.bot)) }
                        td.number { (place.version) }
                        td.number { (place.matches) }
                        @for (number, _) in score(place, board.columns.len()) { td.number.score { (number) } }
                        td.number { (mean(place)) }
                        td { (chart::interval(shown(place), range)) }
                        td.number { (forfeits(place)) }
                        @if bad { td.number { (place.bad_answers) } }
                    }
                }
            }
        }
    };
    html! {
        p {
            @if board.official { strong { "The official leaderboard" } ", of edition " (board.edition) "." }
            @else { strong { "Provisional" } ": edition " (board.edition) " is not the official one." }
        }
        p { (page::progress(board.counted, board.matches, false)) "; " (board.bots) " bots." }
        (page::wide("Leaderboard", &table))
    }
}

/// One number for each column: who has not played has nothing.
fn score(place: &Standing, columns: usize) -> impl Iterator<Item = (&str, usize)> {
    (0..columns).map(|column| (place.score.get(column).map_or("0", String::as_str), column))
}

/// A mean with half the width of its interval.
pub(super) fn mean(place: &Standing) -> String {
    match place.margin {
        Some(margin) => format!("{:.3} ± {margin:.3}", place.mean),
        None => format!("{:.3}", place.mean),
    }
}

/// Forfeits by kind, those that there were.
pub(super) fn forfeits(place: &Standing) -> String {
    let kinds = arbiter_games::Forfeit::ALL.iter().zip(&place.forfeits);
    let counts = kinds.filter(|(_, count)| **count > 0);
    let counts: Vec<_> = counts.map(|(kind, count)| format!("{kind} {count}")).collect();
    counts.join(", ")
}

fn paging(look: &Look, board: &GetRankingResponse) -> Markup {
    let next = look.offset.saturating_add(PLACES);
    html! {
        nav.paging aria-label="Pages" {
            @if look.offset > 0 {
                a rel="prev" href={ "?" (look.query(look.offset.saturating_sub(PLACES))) } { "Better places" }
            }
            @if next < board.bots { a rel="next" href={ "?" (look.query(next)) } { "Further places" } }
        }
    }
}

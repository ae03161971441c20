//! Leaderboards: standings with possible ranks, searchable, updated live.

use std::sync::OnceLock;

use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::v1::{
    GetRankingRequest, GetRankingResponse, LeaderboardRef, Standing, Tournament,
};
use arbiter_ranking::statistics::text;
use arbiter_replay::number_text;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::api::escape;
use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::{WebState, layout, sse, statistics};
use crate::cache::Cache;
use crate::service::TournamentHeading;

const ROWS_PER_PAGE: u32 = 100;

/// The query string of the page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LeaderboardQuery {
    /// The edition's number. Default: the official edition.
    edition: Option<i32>,
    /// Only bots whose name contains this text.
    q: String,
    /// The number of rows to skip.
    offset: u32,
}

impl LeaderboardQuery {
    fn request(&self, tournament: &str) -> GetRankingRequest {
        let board = LeaderboardRef { tournament: tournament.to_owned(), edition: self.edition };
        GetRankingRequest {
            leaderboard: Some(board),
            offset: self.offset,
            limit: ROWS_PER_PAGE,
            name_contains: self.q.clone(),
            rank_sets: true,
        }
    }

    /// The query string of the page that begins at `offset`.
    fn to_query(&self, offset: u32) -> String {
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

/// The markup of live leaderboards. It is rendered once and shared by all viewers.
pub(super) type MarkupCache = Cache<u64, OnceLock<String>>;

/// A leaderboard with its search and its pages.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) board: Markup,
    /// Links to its data, for the foot of the page.
    pub(super) data: Markup,
    /// The number of its edition.
    pub(super) edition: Option<i32>,
    /// The heading of the tournament, if it was read with the leaderboard.
    pub(super) heading: Option<TournamentHeading>,
}

/// The leaderboard of a query.
pub(super) async fn section(
    session: &Session,
    details: &Tournament,
    page_query: &LeaderboardQuery,
) -> Result<Section, WebError> {
    let tournament = &details.name;
    let request = page_query.request(tournament);
    let (board, heading) = session.service.ranking_page(&session.caller, request).await?;
    // Without an explicit edition, the page also follows changes of the official edition.
    let changes = page_query.edition.is_none() && details.state == "open"
        || details.editions.iter().any(|edition| {
            edition.number == board.edition && ["running", "planning"].contains(&&edition.state[..])
        });
    let url_query = page_query.to_query(page_query.offset);
    let links = TournamentLinks::of(&session.service, tournament).await?;
    let live = changes.then(|| format!("/t/{tournament}/ranking/live?{url_query}"));
    let shown = LeaderboardQuery { edition: Some(board.edition), ..page_query.clone() };
    let data = data_links(
        "Data of this leaderboard",
        &[
            DataLink::Json(format!(
                "tournaments/{tournament}/ranking?{}&limit={ROWS_PER_PAGE}",
                shown.to_query(shown.offset)
            )),
            DataLink::Csv(format!("/t/{tournament}/ranking.csv?edition={}", board.edition)),
            DataLink::File("All data of the tournament", format!("/t/{tournament}/data.tar.gz")),
        ],
    );
    let edition = Some(board.edition);
    let board = html! {
        section.board data-live=[live] { (standings(&links, &board, heading.unit)) }
        div.below {
            (paging(page_query, &board))
            form.search method="get" action={ "/t/" (tournament) "/ranking" } role="search" {
                @if let Some(edition) = page_query.edition {
                    input type="hidden" name="edition" value=(edition);
                }
                label for="q" { "Find a bot" }
                input #q type="search" name="q" value=(layout::form_value(&page_query.q));
                button type="submit" { "Search" }
            }
            a href={ "/t/" (tournament) "/projector" } { "Projector view" }
        }
    };
    Ok(Section { board, data, edition, heading: Some(heading) })
}

/// Live updates of the page.
pub(super) async fn live(
    State(state): State<WebState>,
    session: Session,
    Path(tournament): Path<String>,
    Query(page_query): Query<LeaderboardQuery>,
) -> Result<impl IntoResponse, WebError> {
    let pages =
        session.service.watch_page(&session.caller, page_query.request(&tournament)).await?;
    let links = TournamentLinks::of(&session.service, &tournament).await?;
    let unit = session.service.tournament_heading(&tournament).await?.unit;
    Ok(sse::viewer_stream(session, pages, move |update| {
        let cached = state.leaderboards.get_or_insert_with(update.id, OnceLock::new);
        let markup = cached.get_or_init(|| standings(&links, &update.page, unit).into_string());
        PreEscaped(markup.clone())
    }))
}

/// What a leaderboard is: `Official leaderboard (edition 3)`.
pub(super) fn heading(board: &GetRankingResponse) -> Markup {
    let status = EditionStatus::of(board.official, &board.state, board.rehearsal);
    html! {
        strong class=(layout::status_class(status)) { (layout::label(status.as_str())) " leaderboard" }
        " (edition " (board.edition) ")"
    }
}

/// The heading of a column of means: `Mean per match`, or `Mean per episode`. The words after the
/// first one stay together.
pub(super) fn mean_heading(unit: &str) -> String {
    format!("Mean per\u{a0}{unit}")
}

/// The rows of the page. Means are per `unit`.
fn standings(tournament: &TournamentLinks, board: &GetRankingResponse, unit: &str) -> Markup {
    let has_owners = has_owners(&board.standings);
    let has_bad_answers = board.standings.iter().any(|place| place.bad_answers > 0);
    let has_rank_sets = board.standings.iter().any(|place| place.rank_set.is_some());
    let has_forfeits = board.standings.iter().any(|place| !forfeits(place).is_empty());
    let table = html! {
        table.ranking data-edition=(board.edition) data-counted=(board.counted) {
            thead {
                tr {
                    th.number scope="col" { "Rank" } th scope="col" { "Bot" }
                    (layout::score_heads(&board.columns))
                    th.number scope="col" { (mean_heading(unit)) } th.number scope="col" { "Matches" }
                    @if has_rank_sets {
                        th.number scope="col" { a href={ "/t/" (tournament) "/statistics?edition=" (board.edition) } { "Possible ranks" } }
                    }
                    @if has_forfeits { th.number scope="col" { "Forfeits" } }
                    @if has_bad_answers { th.number scope="col" { "Bad replies" } }
                    th.number scope="col" { "Version" }
                }
            }
            tbody {
                @for place in &board.standings {
                    tr data-bot=(place.bot) {
                        td.number { (rank(place.rank, place.tied)) }
                        td.bot { (tournament.bot(&place.bot)) @if has_owners { (owner(tournament, place)) } }
                        @for number in score(place, board.columns.len()) { td.number.score { (number) } }
                        td.number { (mean(place)) }
                        td.number { (place.matches) }
                        @if has_rank_sets {
                            td.number { (place.rank_set.map(statistics::possible_ranks).unwrap_or_default()) }
                        }
                        @if has_forfeits { td.number { (forfeits(place)) } }
                        @if has_bad_answers { td.number { (place.bad_answers) } }
                        td.number { (place.version) }
                    }
                }
            }
        }
    };
    html! {
        p.standing-state {
            (heading(board)) ": " (layout::progress(board.counted, board.matches, false)) ", "
            (layout::count(board.bots, "bot", "bots"))
        }
        @if board.bots == 0 { p { "No bot has this text in its name." } }
        (layout::scrollable("Leaderboard", &table))
    }
}

/// A rank; `=` marks a shared one. A house bot without a rank has a dash.
pub(super) fn rank(rank: u32, tied: bool) -> Markup {
    html! {
        @if rank == 0 { span title="This house bot has no rank." { "–" } }
        @else { @if tied { "=" } (rank) }
    }
}

/// Whether a leaderboard shows whose the bots are: some have an owner, or a house bot has no rank.
pub(super) fn has_owners(standings: &[Standing]) -> bool {
    standings.iter().any(|place| !place.owner.is_empty() || place.rank == 0)
}

/// One number for each column; zeros for a bot without matches.
pub(super) fn score(place: &Standing, columns: usize) -> impl Iterator<Item = String> {
    (0..columns).map(|column| number_text(place.score.get(column).map_or("0", String::as_str)))
}

/// What stands beside the name of a bot: its owner, unless the name has it, or that it is a house
/// bot.
pub(super) fn owner(links: &TournamentLinks, place: &Standing) -> Markup {
    html! {
        @if place.owner.is_empty() { " " span.owner { "house bot" } }
        @else if let Some(owner) = links.owner_beside(&place.bot, &place.owner) {
            " " span.owner { (owner) }
        }
    }
}

/// A mean.
pub(super) fn mean(place: &Standing) -> String {
    number_text(text::mean(place.mean, None))
}

/// The number of forfeits of each kind that occurred.
pub(super) fn forfeits(place: &Standing) -> String {
    let kinds = arbiter_games::Forfeit::ALL.iter().zip(&place.forfeits);
    let counts = kinds.filter(|(_, count)| **count > 0);
    let counts: Vec<_> = counts.map(|(kind, count)| format!("{kind} {count}")).collect();
    counts.join(", ")
}

fn paging(page_query: &LeaderboardQuery, board: &GetRankingResponse) -> Markup {
    let next = page_query.offset.saturating_add(ROWS_PER_PAGE);
    if page_query.offset == 0 && next >= board.bots {
        return html! {};
    }
    html! {
        nav.paging aria-label="Pages" {
            @if page_query.offset > 0 {
                a rel="prev" href={ "?" (page_query.to_query(page_query.offset.saturating_sub(ROWS_PER_PAGE))) } { "Previous page" }
            }
            @if next < board.bots { a rel="next" href={ "?" (page_query.to_query(next)) } { "Next page" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_scores_have_minus_signs_on_pages_and_hyphens_in_data() {
        let place = Standing {
            bot: "a-b".to_owned(),
            score: vec!["-3".to_owned()],
            mean: -1.5,
            ..Standing::default()
        };
        let columns = vec!["points".to_owned(), "tricks".to_owned()];
        let standings_list = vec![place.clone()];
        let board = GetRankingResponse { columns, standings: standings_list, ..Default::default() };
        let links = TournamentLinks::among("cup", &[]);
        let markup = standings(&links, &board, "episode").into_string();
        for cell in [">−3<", ">−1.500<", ">0<", ">a-b<", ">Mean per\u{a0}episode<"] {
            assert!(markup.contains(cell), "{cell}: {markup}");
        }
        let csv = super::super::csv_export::ranking_text(&board.columns, &[place], true);
        assert!(String::from_utf8_lossy(&csv).contains(",-3,0,-1.5,"), "{csv:?}");
    }
}

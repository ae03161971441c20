//! Head to head: what the best bots of a leaderboard made of each other.

use arbiter_proto::v1::LeaderboardRef;
use arbiter_ranking::{HeadToHead, HeadToHeads, PairFilter};
use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;

use super::error::WebError;
use super::page;
use super::session::Session;
use crate::leaderboard_cache;
use arbiter_ranking::Entrant;

/// How many bots are shown at once.
const BOTS: usize = 50;

/// Which part of which matrix is looked at.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    edition: Option<i32>,
    /// Places to leave out at the top.
    offset: usize,
}

pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(Look { edition, offset }): Query<Look>,
) -> Result<Markup, WebError> {
    let asked = LeaderboardRef { tournament: tournament.clone(), edition };
    let (edition, board) = session.service.leaderboard(&session.caller, asked).await?;
    let shown = board.places.iter().skip(offset).take(BOTS);
    let shown: Vec<Entrant> = shown.map(|place| place.contestant.entrant).collect();
    let whose = PairFilter::Among(shown.iter().copied().collect());
    let meetings = session.service.meetings(&edition, whose, &session.caller).await?;
    let title = format!("{tournament}: head to head");
    let places = board.places.len();
    let query = |offset: usize| format!("?edition={}&offset={offset}", edition.number);
    let body = html! {
        p {
            "Edition " (edition.number) ". A cell says how often the bot of the row won, drew and "
            "lost against that of the column; whoever has the higher score at the table has won."
        }
        (page::wide("Head to head", &matrix(&tournament, &board, &meetings, &shown)))
        nav.paging aria-label="Pages" {
            @if offset > 0 { a rel="prev" href=(query(offset.saturating_sub(BOTS))) { "Better places" } }
            @if offset.saturating_add(BOTS) < places { a rel="next" href=(query(offset + BOTS)) { "Further places" } }
        }
    };
    Ok(page::of_tournament((&tournament, "Head to head"), &title, &session, &body))
}

fn matrix(
    tournament: &str,
    board: &leaderboard_cache::Leaderboard,
    meetings: &HeadToHeads,
    shown: &[Entrant],
) -> Markup {
    let name = |entrant: &Entrant| board.roster.get(*entrant).map_or("?", |named| &named.name[..]);
    html! {
        table.matrix {
            thead {
                tr {
                    th scope="col" { "Bot" }
                    @for other in shown { th scope="col" { span { (name(other)) } } }
                }
            }
            tbody {
                @for own in shown {
                    tr {
                        th scope="row" { (page::bot(tournament, name(own))) }
                        @for other in shown { (cell(meetings.between(*own, *other).filter(|_| own != other))) }
                    }
                }
            }
        }
    }
}

/// Won, drawn and lost; in the colour of whoever has the better of it.
fn cell(met: Option<HeadToHead>) -> Markup {
    let Some(met) = met else { return html! { td.none {} } };
    let class = match met.won.cmp(&met.lost) {
        std::cmp::Ordering::Greater => "better",
        std::cmp::Ordering::Equal => "even",
        std::cmp::Ordering::Less => "worse",
    };
    html! { td class=(class) { (met.won) "–" (met.drawn) "–" (met.lost) } }
}

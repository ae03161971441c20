//! A bot: its place, its version, its opponents, its points over editions.

use arbiter_proto::v1::bot_service_server::BotService as _;
use arbiter_proto::v1::ranking_service_server::RankingService as _;
use arbiter_proto::v1::{
    Board, Bot, GetHistoryRequest, GetMeetingsRequest, GetPlaceRequest, GetPlaceResponse,
    ListBotsRequest, Meeting,
};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use tonic::Code;

use super::chart::{self, Interval};
use super::error::WebError;
use super::session::Session;
use super::{page, ranking};
use crate::rpc::Shared;

/// In which edition a bot is looked at.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    edition: Option<i32>,
}

pub(super) async fn show(
    State(shared): State<Shared>,
    session: Session,
    Path((tournament, name)): Path<(String, String)>,
    Query(Look { edition }): Query<Look>,
) -> Result<Markup, WebError> {
    let asked = session.ask(ListBotsRequest { tournament: tournament.clone() });
    let bots = shared.list_bots(asked).await?.into_inner().bots;
    let Some(bot) = bots.into_iter().find(|bot| bot.name == name) else {
        let why = format!("there is no bot `{name}` in {tournament}");
        return Err(WebError::new(StatusCode::NOT_FOUND, why));
    };
    let board = Some(Board { tournament: tournament.clone(), edition });
    let asked = session.ask(GetPlaceRequest { board: board.clone(), bot: name.clone() });
    let place = match shared.get_place(asked).await {
        Ok(place) => Some(place.into_inner()),
        // A bot that has entered no edition yet has no place.
        Err(status) if [Code::NotFound, Code::FailedPrecondition].contains(&status.code()) => None,
        Err(status) => return Err(status.into()),
    };
    let meetings = match &place {
        Some(_) => {
            let _turn = super::turn().await;
            let asked = session.ask(GetMeetingsRequest { board, bot: name.clone() });
            shared.get_meetings(asked).await?.into_inner().meetings
        }
        None => Vec::new(),
    };
    let asked = GetHistoryRequest { tournament: tournament.clone(), bot: name.clone() };
    let history = shared.get_history(session.ask(asked)).await?.into_inner().places;
    let body = html! {
        h1 { (name) }
        (page::tabs(&tournament, ""))
        (about(&bot))
        @if let Some(place) = &place { (standing(place)) }
        @else { p { "It has not played in this leaderboard yet." } }
        p { a href={ "/t/" (tournament) "/matches?bot=" (name) } { "Its matches" } }
        (over_editions(&tournament, &history))
        (opponents(&tournament, &meetings))
    };
    Ok(page::page(&format!("{name} in {tournament}"), &session, &body))
}

fn about(bot: &Bot) -> Markup {
    html! {
        p {
            @if bot.owner.is_empty() { "A house bot" } @else { "Owner: " (bot.owner) }
            @if bot.withdrawn { "; " strong { "withdrawn" } }
            @if let Some(newest) = &bot.newest {
                "; newest version " (newest.number) ", submitted " (page::moment(newest.submitted_at_us))
                ", digest " code.hash { (page::hex(&newest.digest)) }
            }
        }
    }
}

fn standing(found: &GetPlaceResponse) -> Markup {
    let Some(place) = &found.place else { return html! {} };
    html! {
        dl.standing {
            dt { "Place" } dd { @if place.tied { "=" } (place.rank) " in edition " (found.edition) }
            dt { "Version" } dd { (place.version) }
            dt { "Matches" } dd { (place.matches) }
            dt { "Score" } dd { (place.score.join(" ")) }
            dt { "Mean" } dd { (ranking::mean(place)) }
            dt { "Forfeits" } dd {
                @let forfeits = ranking::forfeits(place);
                @if forfeits.is_empty() { "none" } @else { (forfeits) }
            }
            @if place.bad_answers > 0 { dt { "Bad answers" } dd { (place.bad_answers) } }
        }
    }
}

/// The newest edition comes first in `history`, and last in the plot.
fn over_editions(tournament: &str, history: &[GetPlaceResponse]) -> Markup {
    let points = history.iter().rev().filter_map(|found| {
        let place = found.place.as_ref()?;
        Some((found.edition, Interval { mean: place.mean, margin: place.margin }))
    });
    let points: Vec<_> = points.collect();
    let table = html! {
        table {
            thead { tr { th { "Edition" } th { "Version" } th { "Place" } th { "Mean" } th { "Matches" } } }
            tbody {
                @for found in history {
                    @if let Some(place) = &found.place {
                        tr {
                            td { a href={ "/t/" (tournament) "/ranking?edition=" (found.edition) } { (found.edition) } }
                            td.number { (place.version) }
                            td.number { @if place.tied { "=" } (place.rank) }
                            td.number { (ranking::mean(place)) }
                            td.number { (place.matches) }
                        }
                    }
                }
            }
        }
    };
    html! {
        @if !points.is_empty() {
            h2 { "Complete editions" }
            (chart::over_editions(&points))
            (page::wide(&table))
        }
    }
}

fn opponents(tournament: &str, meetings: &[Meeting]) -> Markup {
    let table = html! {
        table {
            thead { tr { th { "Opponent" } th { "Matches" } th { "Won" } th { "Drawn" } th { "Lost" } } }
            tbody {
                @for met in meetings {
                    tr {
                        td { (page::bot(tournament, &met.other)) }
                        td.number { (met.matches) } td.number { (met.won) }
                        td.number { (met.drawn) } td.number { (met.lost) }
                    }
                }
            }
        }
    };
    html! { @if !meetings.is_empty() { h2 { "Opponents" } (page::wide(&table)) } }
}

//! The page for a projector in a hall: the leaderboard beside replays that play by themselves.
//!
//! The page is the same for all people, because everybody in the hall sees it: an organiser who
//! opens it sees a frozen leaderboard, too, and only replays that are public.
//!
//! The first replay is that of the newest match. When it ends, the page opens itself again with the
//! number of that match, and of the newest one at that time. If a newer one was played meanwhile,
//! it is next, otherwise the one before; after the oldest the newest again.

use arbiter_proto::ids::MatchNumber;
use arbiter_proto::v1::{GetRankingRequest, GetRankingResponse, LeaderboardRef};
use arbiter_replay::Autoplay;
use axum::extract::{Path, Query};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::entry_text::frozen_notice;
use super::error::{WebError, none_if};
use super::match_page::{Replay, match_name};
use super::session::{Anonymous, Session};
use super::tournament_links::TournamentLinks;
use super::{bare_page, layout, leaderboard, sse};
use crate::service::{ErrorKind, TournamentHeading};

/// Rows of the leaderboard.
const ROWS: u32 = 16;
/// How many matches are tried until one has a public replay.
const MAX_ATTEMPTS: u32 = 20;
/// When a page without a replay is loaded again, in seconds.
const REFRESH: (HeaderName, HeaderValue) =
    (HeaderName::from_static("refresh"), HeaderValue::from_static("30"));

/// The query string of the page.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProjectorQuery {
    /// The match that was shown before.
    after: Option<i64>,
    /// The newest match at that time.
    newest: Option<i64>,
}

/// The rows at the top of the official leaderboard.
fn top(tournament: &str) -> GetRankingRequest {
    let board = LeaderboardRef { tournament: tournament.to_owned(), edition: None };
    GetRankingRequest {
        leaderboard: Some(board),
        offset: 0,
        limit: ROWS,
        name_contains: String::new(),
        rank_sets: true,
    }
}

/// The page.
pub(super) async fn show(
    Anonymous(session): Anonymous,
    Path(tournament): Path<String>,
    Query(query): Query<ProjectorQuery>,
) -> Result<Response, WebError> {
    let board = session.service.get_ranking(&session.caller, top(&tournament)).await;
    let too_early = [ErrorKind::FailedPrecondition, ErrorKind::PermissionDenied];
    let board = none_if(&too_early, board)?;
    let hidden = session.service.why_replays_are_hidden(&tournament).await?;
    let replay = match hidden {
        None => next_replay(&session, &tournament, query).await?,
        Some(_) => None,
    };
    let links = TournamentLinks::of(&session.service, &tournament).await?;
    let TournamentHeading { title, frozen_since, .. } =
        session.service.tournament_heading(&tournament).await?;
    let live = format!("/t/{tournament}/projector/live");
    let body = html! {
        section aria-labelledby="top" {
            h1 #top { (title) }
            @match &board {
                Some(board) => div data-live=(live) { (standings(&links, board)) },
                None => @if let Some(since) = frozen_since {
                    p.notice.frozen {
                        "Leaderboards are frozen since " (layout::time(since))
                        " until the tournament is over."
                    }
                } @else { p { "There is no leaderboard yet." } },
            }
        }
        section aria-label="Replay" {
            @match &replay {
                Some((number, replay, next)) => {
                    h2 {
                        a href=(layout::match_path(&match_name(&tournament, *number))) {
                            (bots(replay)) ", match " (number)
                        }
                    }
                    (replay.viewer(
                        &layout::match_path(&match_name(&tournament, *number)),
                        "embed/steps",
                        Some(Autoplay { next })))
                }
                None => {
                    @if let Some(reason) = hidden { p { (layout::sentence(reason)) } }
                    @else if frozen_since.is_some() {
                        p { "Replays of later matches are shown when the tournament is over." }
                    } @else { p { "No match with a public replay has been played yet." } }
                }
            }
        }
    };
    let script = html! { script src="/assets/arbiter.js" defer {} };
    let page = bare_page::render(&title, "projector", &script, &body);
    let refresh = replay.is_none().then_some([REFRESH]);
    Ok(match refresh {
        Some(headers) => (headers, page).into_response(),
        None => page.into_response(),
    })
}

/// The names of the bots of a match.
fn bots(replay: &Replay) -> String {
    let names: Vec<_> = replay.overview().names.iter().map(ToString::to_string).collect();
    names.join(" – ")
}

/// `8 of 24 matches`, or `24 matches` if all are counted.
fn progress(counted: i64, matches: i64) -> String {
    let total = layout::count(matches, "match", "matches");
    if counted < matches { format!("{counted} of {total}") } else { total }
}

/// What the leaderboard is, the progress of the running edition, and the rows of the leaderboard,
/// with the columns that are read from a distance.
fn standings(links: &TournamentLinks, board: &GetRankingResponse) -> Markup {
    let table = html! {
        table.ranking {
            thead {
                tr {
                    th.number scope="col" { "Rank" } th scope="col" { "Bot" }
                    (layout::score_heads(&board.columns))
                }
            }
            tbody {
                @for place in &board.standings {
                    tr {
                        td.number { (leaderboard::rank(place.rank, place.tied)) }
                        td.bot { (links.label(&place.bot)) @if place.rank == 0 { (leaderboard::owner(links, place)) } }
                        @for number in leaderboard::score(place, board.columns.len()) {
                            td.number.score { (number) }
                        }
                    }
                }
            }
        }
    };
    html! {
        p {
            (leaderboard::heading(board)) ": " (progress(board.counted, board.matches))
            @if let Some(running) = &board.running {
                ". Edition " (running.edition) " is running: "
                (progress(running.counted, running.matches)) "."
            }
        }
        @if !board.cancel_notice.is_empty() {
            p.notice { (layout::sentence(&board.cancel_notice)) }
        }
        (frozen_notice(&board.freeze_notice, ""))
        (layout::scrollable("Leaderboard", &table))
    }
}

/// The number of the next match with a public replay, its replay, and the URL of the page after it.
async fn next_replay(
    session: &Session,
    tournament: &str,
    ProjectorQuery { after, newest: newest_before }: ProjectorQuery,
) -> Result<Option<(i64, Replay, String)>, WebError> {
    let before = |number: Option<i64>| {
        let before = number.map(MatchNumber);
        session.service.newest_shown(&session.caller, tournament, before, MAX_ATTEMPTS)
    };
    let mut candidates = before(None).await?;
    let newest = candidates.first().copied();
    let is_old = newest_before.is_some() && newest.map(|newest| newest.0) <= newest_before;
    if let Some(after) = after.filter(|_| is_old) {
        let older = before(Some(after)).await?;
        candidates.splice(0..0, older);
    }
    for number in candidates {
        // A match whose replay cannot be opened now must not stop the others.
        if let Ok(replay) = Replay::open(session, &match_name(tournament, number.0), 0).await {
            let newest = newest.unwrap_or(number);
            let next = format!("/t/{tournament}/projector?after={number}&newest={newest}");
            return Ok(Some((number.0, replay, next)));
        }
    }
    Ok(None)
}

/// Live updates of the leaderboard.
pub(super) async fn live(
    Anonymous(session): Anonymous,
    Path(tournament): Path<String>,
) -> Result<impl IntoResponse, WebError> {
    let pages = session.service.watch_page(&session.caller, top(&tournament)).await?;
    let links = TournamentLinks::of(&session.service, &tournament).await?;
    Ok(sse::viewer_stream(session, pages, move |update| -> Markup {
        standings(&links, &update.page)
    }))
}

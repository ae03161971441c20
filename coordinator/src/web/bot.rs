//! A bot: its place, its versions, its opponents, its forfeits, how long it thinks, and its points
//! over editions.

use crate::service::ErrorKind;
use arbiter_proto::v1::{
    Bot, GetBotLogRequest, GetBotRequest, GetHeadToHeadRequest, GetHistoryRequest,
    GetReplyTimesRequest, GetReplyTimesResponse, GetStandingRequest, GetStandingResponse,
    HeadToHead, LeaderboardRef, LogEntry, Version,
};
use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;

use super::chart::{self, Interval};
use super::done::Done;
use super::error::{WebError, unless};
use super::session::Session;
use super::{actions, page, ranking, version};

/// Forfeits that are listed for the owner.
const FORFEITS: u32 = 50;
/// Versions that are shown at once.
const VERSIONS: usize = 20;

/// In which edition a bot is looked at.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    edition: Option<i32>,
}

/// What is known of how a bot plays in an edition.
#[derive(Debug, Default)]
struct Play {
    place: Option<GetStandingResponse>,
    /// Nothing if they are not counted, or not at this moment.
    meetings: Vec<HeadToHead>,
    times: Option<GetReplyTimesResponse>,
}

pub(super) async fn show(
    session: Session,
    Path((tournament, name)): Path<(String, String)>,
    Query(Look { edition }): Query<Look>,
    Query(done): Query<Done>,
) -> Result<Markup, WebError> {
    let asked = GetBotRequest { tournament: tournament.clone(), bot: name.clone() };
    let found = session.service.get_bot(&session.caller, asked).await?;
    let bot = found.bot.unwrap_or_default();
    let organiser = session.caller.is_organiser();
    let board = LeaderboardRef { tournament: tournament.clone(), edition };
    let play = Play::of(&session, &board, &name).await?;
    let asked = GetHistoryRequest { tournament: tournament.clone(), bot: name.clone() };
    let history = session.service.get_history(&session.caller, asked).await?.standings;
    let forfeits = if bot.owned_by_caller || organiser {
        let (tournament, bot) = (tournament.clone(), name.clone());
        let asked = GetBotLogRequest { tournament, bot, limit: FORFEITS, forfeits: true };
        session.service.get_bot_log(&session.caller, asked).await?.entries
    } else {
        Vec::new()
    };
    let body = html! {
        h1 { (name) }
        (page::tabs(&tournament, ""))
        (done.note())
        (about(&bot))
        @if let Some(place) = &play.place { (standing(place)) }
        @else { p { "It has not played in this leaderboard yet." } }
        p { a href={ "/t/" (tournament) "/matches?bot=" (name) } { "Its matches" } }
        (looked_after(&session, &tournament, &bot, organiser))
        (versions(&tournament, &found.versions))
        (over_editions(&tournament, &history))
        @if let Some(times) = &play.times { (reply_times(times)) }
        (opponents(&tournament, &play.meetings))
        (forfeited(&forfeits))
    };
    Ok(page::for_session(&format!("{name} in {tournament}"), &session, &body))
}

impl Play {
    async fn of(session: &Session, board: &LeaderboardRef, bot: &str) -> Result<Self, WebError> {
        let Session { service, caller, .. } = session;
        let (board, bot) = (Some(board.clone()), bot.to_owned());
        let asked = GetStandingRequest { leaderboard: board.clone(), bot: bot.clone() };
        // A bot that has entered no edition yet has no place.
        // Nor is one shown while boards are frozen; what its owner may see and do still is.
        let hidden =
            [ErrorKind::NotFound, ErrorKind::FailedPrecondition, ErrorKind::PermissionDenied];
        let place = unless(&hidden, service.get_standing(caller, asked).await)?;
        if place.is_none() {
            return Ok(Self::default());
        }
        let asked = GetHeadToHeadRequest { leaderboard: board.clone(), bot: bot.clone() };
        // The edition is too large to count them, or too many ask.
        let uncounted = [ErrorKind::FailedPrecondition, ErrorKind::ResourceExhausted];
        let meetings = unless(&uncounted, service.get_head_to_head(caller, asked).await)?;
        let meetings = meetings.map(|found| found.results).unwrap_or_default();
        let asked = GetReplyTimesRequest { leaderboard: board, bot };
        // A record is out of reach, or too many ask: the rest of the page does not need them.
        let unread = [ErrorKind::Unavailable, ErrorKind::ResourceExhausted];
        let times = unless(&unread, service.get_reply_times(caller, asked).await)?;
        Ok(Self { place, meetings, times })
    }
}

fn about(bot: &Bot) -> Markup {
    html! {
        p {
            @if bot.owner.is_empty() { "A house bot" } @else { "Owner: " (bot.owner) }
            @if bot.withdrawn { "; " strong { "withdrawn" } }
            @if bot.suspended { "; " strong { "stood down" } }
            @if let Some(newest) = &bot.newest {
                "; newest version " (newest.number) ", submitted " (page::moment(newest.submitted_at_us))
                ", digest " code.hash { (page::hex(&newest.digest)) }
            }
        }
        @if !bot.suspended_reason.is_empty() {
            p.refused {
                "It takes no part any more: " (bot.suspended_reason) ". A new version enters as if nothing had "
                "happened; an organiser can reinstate it."
            }
        }
    }
}

/// What its owner or an organiser can do.
pub(super) fn looked_after(
    session: &Session,
    tournament: &str,
    bot: &Bot,
    organiser: bool,
) -> Markup {
    let at = |action: &str| format!("/t/{tournament}/bots/{}/{action}", bot.name);
    html! {
        @if bot.owned_by_caller || organiser {
            section.actions aria-label="What can be done" {
                @if !bot.owner.is_empty() {
                    p {
                        a href={ "/t/" (tournament) "/submit?bot=" (bot.name) } { "Submit a version" }
                    }
                }
                @if bot.suspended && organiser {
                    (actions::button(session, &at("reinstate"), "Reinstate it", None))
                }
                @if !bot.withdrawn {
                    (actions::button(session, &at("withdraw"), "Withdraw it",
                        Some("It takes no part in the editions to come.")))
                }
            }
        }
    }
}

fn versions(tournament: &str, versions: &[Version]) -> Markup {
    let heads = ["Version", "Submitted", "State"];
    let row = |found: &Version| {
        html! {
            td.number {
                a href={ "/t/" (tournament) "/bots/" (found.bot) "/versions/" (found.number) } {
                    (found.number)
                }
            }
            td { (page::moment(found.submitted_at_us)) }
            td {
                (version::standing(found))
                @if !found.reason.is_empty() { ": " (found.reason) }
            }
        }
    };
    let (newest, older) = versions.split_at(versions.len().min(VERSIONS));
    html! {
        h2 { "Versions" }
        (page::table("Versions", "versions", &heads, newest.iter().map(row)))
        @if !older.is_empty() {
            details {
                summary { (older.len()) " older ones" }
                (page::table("Older versions", "versions", &heads, older.iter().map(row)))
            }
        }
    }
}

fn standing(found: &GetStandingResponse) -> Markup {
    let Some(place) = &found.standing else { return html! {} };
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
fn over_editions(tournament: &str, history: &[GetStandingResponse]) -> Markup {
    let points = history.iter().rev().filter_map(|found| {
        let place = found.standing.as_ref()?;
        Some((found.edition, Interval { mean: place.mean, margin: place.margin }))
    });
    let points: Vec<_> = points.collect();
    let heads = ["Edition", "Version", "Place", "Mean", "Matches"];
    let row = |GetStandingResponse { edition, standing: place }: &GetStandingResponse| {
        let place = place.as_ref()?;
        Some(html! {
            td { a href={ "/t/" (tournament) "/ranking?edition=" (edition) } { (edition) } }
            td.number { (place.version) }
            td.number { @if place.tied { "=" } (place.rank) }
            td.number { (ranking::mean(place)) }
            td.number { (place.matches) }
        })
    };
    html! {
        @if !points.is_empty() {
            h2 { "Complete editions" }
            (chart::over_editions(&points))
            (page::table("Complete editions", "", &heads, history.iter().filter_map(row)))
        }
    }
}

/// How long it takes to answer.
fn reply_times(found: &GetReplyTimesResponse) -> Markup {
    let GetReplyTimesResponse { replies, p50_us, p90_us, p99_us, max_us, .. } = *found;
    let bins: Vec<_> = found.bins.iter().map(|bin| (bin.up_to_us, bin.count)).collect();
    html! {
        @if replies > 0 {
            h2 { "Reply times" }
            figure {
                (chart::histogram(&bins))
                figcaption {
                    (replies) " answers in its last " (found.matches) " matches of edition "
                    (found.edition) ", on the wall; without the first one of a process, which "
                    "includes its start."
                }
            }
            dl.times { (version::percentiles([p50_us, p90_us, p99_us, max_us])) }
        }
    }
}

fn opponents(tournament: &str, meetings: &[HeadToHead]) -> Markup {
    let row = |met: &HeadToHead| {
        html! {
            td { (page::bot(tournament, &met.opponent)) }
            td.number { (met.matches) } td.number { (met.won) }
            td.number { (met.drawn) } td.number { (met.lost) }
        }
    };
    let heads = ["Opponent", "Matches", "Won", "Drawn", "Lost"];
    let table = page::table("Opponents", "", &heads, meetings.iter().map(row));
    html! { @if !meetings.is_empty() { h2 { "Opponents" } (table) } }
}

/// The last matches that it forfeited, and why, for its owner.
fn forfeited(lines: &[LogEntry]) -> Markup {
    let row = |line: &LogEntry| {
        html! {
            td { (page::match_link(&line.r#match)) }
            td.number { (line.seat) }
            td.forfeit { (line.forfeit) }
            @if let Some(why) = &line.evidence {
                td { (why.detail) }
                td.number { (page::span(u64::try_from(why.wall_us).unwrap_or(0))) }
            } @else { td {} td {} }
        }
    };
    let heads = ["Match", "Seat", "Forfeit", "What happened", "The answer took"];
    let table = page::table("Forfeits", "forfeits", &heads, lines.iter().map(row));
    html! { @if !lines.is_empty() { h2 { "Forfeits" } (table) } }
}

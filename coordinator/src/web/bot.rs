//! The page of a bot: its standing, versions, opponents, forfeits, reply times, and its mean score
//! over editions.

use crate::service::{EntryState, ErrorKind};
use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::state_words::version_state;
use arbiter_proto::v1::{
    Bot, GetBotLogRequest, GetBotRequest, GetHeadToHeadRequest, GetHistoryRequest,
    GetReplyTimesRequest, GetReplyTimesResponse, GetStandingRequest, GetStandingResponse,
    HeadToHead, LeaderboardRef, LogEntry, Version,
};
use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;

use super::api::escape;
use super::chart;
use super::data_links::{DataLink, data_links};
use super::entry_text::entry_text;
use super::error::{WebError, none_if};
use super::flash::Flash;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use super::{actions, bots, layout, leaderboard, version};

/// Maximum number of forfeits shown to the owner, newest first.
const MAX_FORFEITS: u32 = 50;
/// Versions older than the newest `MAX_VERSIONS` are in a collapsed section.
const MAX_VERSIONS: usize = 20;

/// The query string of the page.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BotQuery {
    edition: Option<i32>,
}

/// How a bot plays in an edition.
#[derive(Debug, Default)]
struct EditionStats {
    standing: Option<(GetStandingResponse, EditionStatus)>,
    /// Empty if it cannot be computed, or not at the moment.
    head_to_head: Vec<HeadToHead>,
    reply_times: Option<GetReplyTimesResponse>,
}

pub(super) async fn show(
    session: Session,
    Path((tournament, bot)): Path<(String, String)>,
    Query(BotQuery { edition }): Query<BotQuery>,
    Query(flash): Query<Flash>,
) -> Result<Markup, WebError> {
    let request = GetBotRequest { tournament: tournament.clone(), bot };
    let response = session.service.get_bot(&session.caller, request).await?;
    let bot = response.bot.unwrap_or_default();
    // The request may have left out the owner.
    let name = bot.name.clone();
    let links = TournamentLinks::of(&session.service, &tournament).await?;
    let organiser = session.caller.is_organiser();
    let board = LeaderboardRef { tournament: tournament.clone(), edition };
    let stats = EditionStats::fetch(&session, &board, &name).await?;
    let request = GetHistoryRequest { tournament: tournament.clone(), bot: name.clone() };
    let history = session.service.get_history(&session.caller, request).await?.standings;
    let forfeits = if bot.owned_by_caller || organiser {
        let tournament = tournament.clone();
        let bot = name.clone();
        let request =
            GetBotLogRequest { tournament, bot, limit: MAX_FORFEITS, forfeits: true, before: 0 };
        session.service.get_bot_log(&session.caller, request).await?.entries
    } else {
        Vec::new()
    };
    let heading = session.service.tournament_heading(&tournament).await?;
    let buttons = bot_actions(&session, &tournament, &bot, organiser).await?;
    let body = html! {
        (flash.message())
        (summary(&bot))
        @if let Some((response, status)) = &stats.standing {
            (standing(response, *status, heading.unit))
        }
        @else { p { (no_rank(&bot)) } }
        p {
            a href={ "/t/" (tournament) "/matches?bot=" (name) } { "Matches of this bot" }
            @if bot.owned_by_caller || organiser { (downloads(&tournament, &name)) }
        }
        (buttons)
        (versions(&tournament, &response.versions))
        (history_table(&tournament, &history, heading.unit))
        @if let Some(times) = &stats.reply_times { (reply_times(times)) }
        @if let Some((response, _)) = &stats.standing {
            (opponents(&links, response.edition, &name, &stats.head_to_head))
        }
        (forfeit_table(&forfeits))
        @if let Some(newest) = &bot.newest {
            p.quiet { "Digest of version " (newest.number) ": " code.hash { (layout::hex(&newest.digest)) } }
        }
        (data_links("Data of this bot", &[
            DataLink::Json(format!("tournaments/{tournament}/bots/{name}")),
            DataLink::Csv(format!("/t/{tournament}/matches.csv?bot={}", escape(&name))),
        ]))
    };
    let page = TournamentPage::below(&tournament, Tab::Bots, links.label(&name));
    Ok(page.with_heading(Some(heading)).render(&session, &body).await)
}

/// Links to what a bot's owner can download.
fn downloads(tournament: &str, bot: &str) -> Markup {
    let archive = format!("/t/{tournament}/bots/{bot}/download.zip");
    html! {
        ". Download (ZIP): "
        a href=(archive) download { "recent records, trials and forfeits" } " · "
        a href={ (archive) "?all=1" } download { "the same with all matches" }
    }
}

impl EditionStats {
    async fn fetch(session: &Session, board: &LeaderboardRef, bot: &str) -> Result<Self, WebError> {
        let Session { service, caller, .. } = session;
        let board = Some(board.clone());
        let bot = bot.to_owned();
        let request = GetStandingRequest { leaderboard: board.clone(), bot: bot.clone() };
        // A bot has no standing before its first edition or while leaderboards are frozen. The rest
        // of the page is still shown.
        let hidden =
            [ErrorKind::NotFound, ErrorKind::FailedPrecondition, ErrorKind::PermissionDenied];
        let standing = none_if(&hidden, service.standing_with_status(caller, request).await)?;
        if standing.is_none() {
            return Ok(Self::default());
        }
        let request = GetHeadToHeadRequest { leaderboard: board.clone(), bot: bot.clone() };
        // The edition is too large, or too many requests are waiting.
        let not_computed = [ErrorKind::FailedPrecondition, ErrorKind::ResourceExhausted];
        let response = none_if(&not_computed, service.get_head_to_head(caller, request).await)?;
        let head_to_head = response.map(|response| response.results).unwrap_or_default();
        let request = GetReplyTimesRequest { leaderboard: board, bot };
        // A record is not reachable, or too many requests are waiting.
        let not_readable = [ErrorKind::Unavailable, ErrorKind::ResourceExhausted];
        let reply_times = none_if(&not_readable, service.get_reply_times(caller, request).await)?;
        Ok(Self { standing, head_to_head, reply_times })
    }
}

fn summary(bot: &Bot) -> Markup {
    html! {
        p {
            @if bot.owner.is_empty() { "House bot" } @else { "Owner: " (bot.owner) }
            @if bot.withdrawn { "; " strong { "withdrawn" } }
            @if bot.suspended { "; " strong { "suspended" } }
            @if let Some(newest) = &bot.newest {
                "; newest version " (newest.number) ", submitted " (layout::timestamp(newest.submitted_at_us))
            }
        }
        @if !bot.suspended_reason.is_empty() {
            p.error-message { (bots::suspension(&html! { "This bot" }, &bot.suspended_reason)) }
        }
    }
}

/// Why a bot has no rank.
fn no_rank(bot: &Bot) -> &'static str {
    let has_failed = bot.pending.as_ref().is_some_and(|version| version.state == "failed");
    if bot.withdrawn {
        "This bot has no rank: it is withdrawn."
    } else if bot.suspended {
        "This bot has no rank: it is suspended."
    } else if bot.newest.is_none() && has_failed {
        "This bot has no rank: its trial failed."
    } else {
        "This bot is not on the leaderboard yet."
    }
}

/// The buttons for the owner and for organisers: those that the rules of entry now allow.
pub(super) async fn bot_actions(
    session: &Session,
    tournament: &str,
    bot: &Bot,
    organiser: bool,
) -> Result<Markup, WebError> {
    let manager = session.caller.principal().filter(|_| bot.owned_by_caller || organiser);
    let Some(principal) = manager else { return Ok(html! {}) };
    let (entry, refused) = session.service.entry_of_bot(principal, tournament, &bot.name).await?;
    let may_change = refused.is_none();
    let reason = refused.filter(|_| organiser && matches!(entry, EntryState::Closed(_)));
    let can_submit = entry.is_open() && !bot.owner.is_empty();
    let can_reinstate = may_change && bot.suspended && organiser;
    let can_withdraw = may_change && !bot.withdrawn;
    let at = |action: &str| format!("/t/{tournament}/bots/{}/{action}", bot.name);
    Ok(html! {
        @if !entry.is_open() { p { (entry_text(entry, session.service.now())) } }
        @if let Some(error) = &reason { p { (layout::sentence(error.message())) } }
        @if can_submit || can_reinstate || can_withdraw {
            section.actions aria-label="Actions" {
                @if can_submit {
                    p {
                        a href={ "/t/" (tournament) "/submit?bot=" (bot.name) } { "Submit a new version" }
                    }
                }
                @if can_reinstate {
                    (actions::button(session, &at("reinstate"), "Reinstate bot", None))
                }
                @if can_withdraw {
                    (actions::button(session, &at("withdraw"), "Withdraw bot",
                        Some("I confirm: the bot will not play in future editions, unless a new \
                              version is submitted.")))
                }
            }
        }
    })
}

fn versions(tournament: &str, versions: &[Version]) -> Markup {
    let heads = ["Version", "State", "Submitted"];
    let row = |version: &Version| {
        html! {
            td.number {
                a href={ "/t/" (tournament) "/bots/" (version.bot) "/versions/" (version.number) } {
                    (version.number)
                }
            }
            td.state {
                (version_state(&version.state))
                @if !version.reason.is_empty() { ": " (version.reason) }
            }
            td { (layout::timestamp(version.submitted_at_us)) }
        }
    };
    let (newest, older) = versions.split_at(versions.len().min(MAX_VERSIONS));
    html! {
        h2 { "Versions" }
        (layout::table("Versions", "versions", &heads, newest.iter().map(row)))
        @if !older.is_empty() {
            details {
                summary { (layout::count(older.len(), "older version", "older versions")) }
                (layout::table("Older versions", "versions", &heads, older.iter().map(row)))
            }
        }
    }
}

fn standing(response: &GetStandingResponse, status: EditionStatus, unit: &str) -> Markup {
    let Some(place) = &response.standing else { return html! {} };
    html! {
        dl.standing {
            dt { "Edition" } dd {
                (response.edition) ", " strong class=(layout::status_class(status)) { (status) }
            }
            dt { "Rank" } dd {
                @if place.rank == 0 { "none (house bot)" } @else { (leaderboard::rank(place.rank, place.tied)) }
            }
            @let columns = &response.columns;
            @for (column, number) in columns.iter().zip(leaderboard::score(place, columns.len())) {
                dt { (layout::label(column)) } dd { (number) }
            }
            dt { (leaderboard::mean_heading(unit)) } dd { (leaderboard::mean(place)) }
            dt { "Matches" } dd { (place.matches) }
            dt { "Version" } dd { (place.version) }
            dt { "Forfeits" } dd {
                @let forfeits = leaderboard::forfeits(place);
                @if forfeits.is_empty() { "none" } @else { (forfeits) }
            }
            @if place.bad_answers > 0 { dt { "Bad replies" } dd { (place.bad_answers) } }
        }
    }
}

/// `history` is newest first; the plot shows the newest edition last. Means are per `unit`.
fn history_table(tournament: &str, history: &[GetStandingResponse], unit: &str) -> Markup {
    let points = history.iter().rev().filter_map(|response| {
        let place = response.standing.as_ref()?;
        Some((response.edition, place.mean))
    });
    let points: Vec<_> = points.collect();
    let mean = leaderboard::mean_heading(unit);
    let heads = ["Edition", "Version", "Rank", &mean, "Matches"];
    let row = |GetStandingResponse { edition, standing: place, .. }: &GetStandingResponse| {
        let place = place.as_ref()?;
        Some(html! {
            td { a href={ "/t/" (tournament) "/ranking?edition=" (edition) } { (edition) } }
            td.number { (place.version) }
            td.number { (leaderboard::rank(place.rank, place.tied)) }
            td.number { (leaderboard::mean(place)) }
            td.number { (place.matches) }
        })
    };
    html! {
        @if !points.is_empty() {
            h2 { "Complete editions" }
            @if points.len() > 1 {
                p.quiet { (mean) " by edition:" }
                (chart::means_over_editions(&points))
            }
            (layout::table("Complete editions", "", &heads, history.iter().filter_map(row)))
        }
    }
}

/// A histogram and percentiles of the bot's reply times.
fn reply_times(response: &GetReplyTimesResponse) -> Markup {
    let GetReplyTimesResponse { replies, p50_us, p90_us, p99_us, max_us, .. } = *response;
    let bins: Vec<_> = response.bins.iter().map(|bin| (bin.up_to_us, bin.count)).collect();
    html! {
        @if replies > 0 {
            h2 { "Reply times" }
            figure {
                (chart::histogram(&bins))
                figcaption {
                    "Wall-clock times of " (layout::count(replies, "reply", "replies")) " in the last "
                    (layout::count(response.matches, "match", "matches")) " of edition "
                    (response.edition) ". The first reply of each process is left out because it "
                    "includes the start-up."
                }
            }
            dl.times { (version::percentiles([p50_us, p90_us, p99_us, max_us])) }
        }
    }
}

/// The results of a bot against its opponents in an edition, with links to the matches.
fn opponents(
    tournament: &TournamentLinks,
    edition: i32,
    bot: &str,
    results: &[HeadToHead],
) -> Markup {
    let row = |result: &HeadToHead| {
        let matches = tournament.matches_between(edition, bot, &result.opponent);
        html! {
            td.name { (tournament.bot(&result.opponent)) }
            td.number { a href=(matches) { (result.matches) } } td.number { (result.won) }
            td.number { (result.drawn) } td.number { (result.lost) }
        }
    };
    let heads = ["Opponent", "Matches", "Won", "Drawn", "Lost"];
    let table = layout::table("Opponents", "", &heads, results.iter().map(row));
    html! { @if !results.is_empty() { h2 { "Opponents" } (table) } }
}

/// The latest forfeited matches and the reasons, for the owner.
fn forfeit_table(entries: &[LogEntry]) -> Markup {
    let row = |entry: &LogEntry| {
        html! {
            td { (layout::match_number_link(&entry.r#match)) }
            td.number { (entry.seat) }
            td.forfeit { (entry.forfeit) }
            @if let Some(evidence) = &entry.evidence {
                td { (evidence.detail) }
                td.number { (layout::format_micros(u64::try_from(evidence.wall_us).unwrap_or(0))) }
            } @else { td {} td {} }
        }
    };
    let heads = ["Match", "Seat", "Forfeit", "Reason", "Reply time"];
    let table = layout::table("Forfeits", "forfeits", &heads, entries.iter().map(row));
    html! { @if !entries.is_empty() { h2 { "Forfeits" } (table) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_matches_with_an_opponent_links_to_them() {
        let links = TournamentLinks::with_owners("cup");
        let result = HeadToHead { opponent: "bob/b".to_owned(), matches: 4, ..Default::default() };
        let table = opponents(&links, 3, "ada/a", &[result]).into_string();
        let address = "/t/cup/matches?edition=3&amp;bot=ada%2Fa&amp;opponent=bob%2Fb";
        assert!(table.contains(&format!("<a href=\"{address}\">4</a>")), "{table}");
    }
}

//! The page of the logged-in person: name and role, bots in all tournaments, and newest matches.

use std::collections::HashMap;

use arbiter_proto::state_words::version_state;
use arbiter_proto::v1::LogEntry;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

use super::entry_text::frozen_notice;
use super::error::WebError;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::{bots, create_tournament, layout, leaderboard};
use crate::access::{Role, Token};
use crate::service::{OwnBot, OwnMatch};

/// The links of tournaments, by their names.
type Links = HashMap<String, TournamentLinks>;

/// The page. Without a valid token it leads to the login page.
pub(super) async fn show(session: Session) -> Result<Response, WebError> {
    let Session { service, caller, .. } = &session;
    let Some(token) = service.own_token(caller).await? else {
        return Ok(Redirect::to("/login?next=/me").into_response());
    };
    let body = if token.role.covers(Role::Player) {
        let bots = service.own_bots(caller).await?;
        let matches = service.own_matches(caller, &bots).await?;
        let handle = service.own_handle(caller).await?;
        let mut links = Links::new();
        for tournament in bots.iter().map(|bot| &bot.tournament) {
            if !links.contains_key(tournament) {
                let of_tournament = TournamentLinks::of(service, tournament).await?;
                links.insert(tournament.clone(), of_tournament);
            }
        }
        html! {
            (identity(&token))
            (own_bots(handle.as_deref(), &bots, &links))
            (own_matches(&bots, &matches, &links))
        }
    } else {
        html! { (identity(&token)) p { "A worker's token has no bots." } }
    };
    Ok(layout::page(&token.name, &session, &body).into_response())
}

/// Name and role, and what the role allows.
fn identity(token: &Token) -> Markup {
    let rights = match token.role {
        Role::Admin => "You may do everything.",
        Role::Organiser => "You run tournaments and invite players.",
        Role::Player => "You submit bots and see their records and output.",
        Role::Worker => "This token leases matches and reports results.",
    };
    html! {
        p { "Logged in as " strong { (token.name) } ", " (token.role) ". " (rights) }
        @if let Some(end) = token.expires_at {
            p { "Your token expires on " (layout::timestamp(end.unix_timestamp() * 1_000_000)) "." }
        }
        @if token.role.covers(Role::Organiser) {
            p { a href="/invitations" { "Invite players" } " · " a href="/new" { (create_tournament::TITLE) } }
        }
    }
}

/// Without a handle the names of new bots are plain.
fn own_bots(handle: Option<&str>, bots: &[OwnBot], links: &Links) -> Markup {
    let heads = ["Bot", "State", "Rank", "Tournament", "Version", "Submitted"];
    let row = |own: &OwnBot| {
        let OwnBot { tournament, title, bot, .. } = own;
        let links = links_of(links, tournament);
        html! {
            th.name scope="row" { (links.bot(&bot.name)) }
            td { (bots::state(&links, bot)) }
            td { (ranked(own)) }
            td { a href={ "/t/" (tournament) } { (title) } }
            (bots::version_cells(bot))
        }
    };
    html! {
        h2 { "Your bots" }
        @if let Some(handle) = handle {
            p { "Names of new bots begin with " code { (handle) "/" } ". You may leave it out." }
        }
        @for own in bots.iter().filter(|own| own.is_entry_open) { (problems(own, &links_of(links, &own.tournament))) }
        @if bots.is_empty() {
            p {
                "You have not submitted a bot yet. Choose a tournament on the " a href="/" { "home page" }
                ", read its page " em { "How to play" } ", and submit a bot there."
            }
        } @else { (layout::table("Your bots", "own-bots", &heads, bots.iter().map(row))) }
    }
}

/// Why a bot is suspended, and why the trial of its newest version failed. A new version helps, so
/// this is only shown where one can enter.
fn problems(OwnBot { title, bot, .. }: &OwnBot, links: &TournamentLinks) -> Markup {
    let untried = bot.pending.as_ref().filter(|version| !version.reason.is_empty());
    let subject = html! { (links.bot(&bot.name)) " in " (title) };
    html! {
        @if bot.suspended && !bot.suspended_reason.is_empty() {
            p.notice { (bots::suspension(&subject, &bot.suspended_reason)) }
        }
        @if let Some(version) = untried {
            p.notice {
                (subject) ", "
                a href={ (links.bot_path(&bot.name)) "/versions/" (version.number) } {
                    "version " (version.number)
                }
                ", " (version_state(&version.state)) ": " (layout::end_of_sentence(&version.reason))
            }
        }
    }
}

/// The links of a tournament.
fn links_of(links: &Links, tournament: &str) -> TournamentLinks {
    links.get(tournament).cloned().unwrap_or_else(|| TournamentLinks::with_owners(tournament))
}

/// The rank on the leaderboard that the owner sees, with a link, and what the leaderboard is.
fn ranked(OwnBot { tournament, bot, place, is_frozen, .. }: &OwnBot) -> Markup {
    let standing = place.as_ref().and_then(|(response, status)| {
        Some((response.standing.as_ref()?, response.edition, *status))
    });
    html! {
        @if let Some((standing, edition, status)) = standing {
            a href={ "/t/" (tournament) "/ranking" } { (leaderboard::rank(standing.rank, standing.tied)) }
            " (" (layout::edition_label(edition, status)) @if *is_frozen { ", frozen" } ")"
        } @else if *is_frozen && bot.newest.is_some() { "frozen" }
        @else if bot.state == "entered" { "not ranked yet" } @else { "–" }
    }
}

fn own_matches(bots: &[OwnBot], matches: &[OwnMatch], links: &Links) -> Markup {
    html! {
        @if !bots.is_empty() {
            h2 { "Newest matches" }
            @if matches.is_empty() {
                p {
                    "Your bots have not played yet. They play when the next edition of their "
                    "tournament starts."
                }
            } @else {
                p { "Open a match to watch its replay." }
                @for group in matches.chunk_by(have_one_heading) { (matches_of_tournament(group, links)) }
            }
        }
    }
}

/// Whether two neighbours are in one table: those of a tournament, with the same score columns.
fn have_one_heading(one: &OwnMatch, other: &OwnMatch) -> bool {
    (&one.tournament, &one.columns) == (&other.tournament, &other.columns)
}

/// Matches of one tournament.
fn matches_of_tournament(matches: &[OwnMatch], links: &Links) -> Markup {
    let Some(first) = matches.first() else { return html! {} };
    let OwnMatch { tournament, title, columns, freeze_notice, .. } = first;
    let hides_scores = matches.iter().any(|own| own.entry.score.is_empty());
    let has_forfeits = matches.iter().any(|own| !own.entry.forfeit.is_empty());
    let links = links_of(links, tournament);
    let table = html! {
        table.own-matches {
            thead {
                tr {
                    th scope="col" { "Match" } th scope="col" { "Your bot" }
                    (layout::score_heads(columns))
                    th scope="col" { "Seats" }
                    @if has_forfeits { th scope="col" { "Forfeit" } }
                }
            }
            tbody {
                @for OwnMatch { bot, entry, .. } in matches {
                    tr {
                        td { (layout::match_number_link(&entry.r#match)) }
                        td.name { (links.bot(bot)) }
                        (layout::score_cells(&entry.score, columns.len()))
                        td.name { (seats(&links, entry)) }
                        @if has_forfeits { td.forfeit { (entry.forfeit) } }
                    }
                }
            }
        }
    };
    html! {
        h3 { a href={ "/t/" (tournament) } { (title) } }
        @if hides_scores {
            (frozen_notice(freeze_notice, "Until then scores of later matches are hidden."))
        }
        (layout::scrollable(&format!("Newest matches of {title}"), &table))
    }
}

/// The bots of a match, seat 1 first.
fn seats(links: &TournamentLinks, entry: &LogEntry) -> Markup {
    html! {
        @for (index, bot) in entry.bots.iter().enumerate() {
            @if index > 0 { ", " }
            (links.bot(bot))
        }
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::v1::{Bot, Version};

    use super::*;

    #[test]
    fn the_reasons_of_suspensions_and_failed_trials_are_shown() {
        let shown = |bot: Bot| {
            let links = TournamentLinks::with_owners("cup");
            problems(
                &OwnBot {
                    tournament: "cup".to_owned(),
                    title: "Spring finals".to_owned(),
                    bot,
                    place: None,
                    is_entry_open: true,
                    is_frozen: false,
                },
                &links,
            )
            .into_string()
        };
        let bot = Bot { name: "ada/engine".to_owned(), ..Bot::default() };
        assert_eq!(shown(bot.clone()), "");
        let reason = "it forfeited 7 of 10 matches".to_owned();
        let suspended = shown(Bot { suspended: true, suspended_reason: reason, ..bot.clone() });
        let expected =
            "</a> in Spring finals is suspended: it forfeited 7 of 10 matches. To enter again, ";
        assert!(suspended.contains(expected), "{suspended}");
        let version = Version {
            number: 3,
            state: "failed".to_owned(),
            reason: "the build failed".to_owned(),
            ..Version::default()
        };
        let failed = shown(Bot { pending: Some(version), ..bot });
        assert!(failed.contains("/bots/ada/engine/versions/3\">version 3</a>"), "{failed}");
        assert!(failed.contains(", trial failed: the build failed.</p>"), "{failed}");
    }
}

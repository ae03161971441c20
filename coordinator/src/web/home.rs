//! The home page: open tournaments as cards, the newest results, and how to take part.

use std::sync::Arc;

use maud::{Markup, html};
use time::OffsetDateTime;

use super::data_links::{DataLink, data_links};
use super::entry_text::{entry_text, freeze_text};
use super::error::WebError;
use super::layout;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use crate::db::tournaments::TournamentState;
use crate::service::{Leader, TournamentCard};

/// Maximum number of results.
const MAX_RESULTS: usize = 8;

/// What the site is, for visitors who are not logged in.
const WHAT_THIS_IS: &str = "Programs (bots) play games against each other here. An edition of a \
    tournament is one complete run of its schedule, with fixed versions of the bots.";

/// The page.
pub(super) async fn show(session: Session) -> Result<Markup, WebError> {
    let page = session.service.home_page(&session.caller).await?;
    let now = session.service.now();
    let results = page.results(MAX_RESULTS);
    let organiser = session.caller.is_organiser();
    let body = html! {
        @if page.open.is_empty() {
            p { "No tournament is open at the moment. Organisers announce new ones here." }
        }
        @let open: Vec<_> = page.open.iter().chain(&page.rehearsals).collect();
        @if !open.is_empty() { ul.cards { @for one in open { li { (card(one, now)) } } } }
        @if organiser { p { a href="/new" { "Create a tournament" } } }
        div.columns {
            div.main {
                @if !results.is_empty() {
                    h2 { "Newest results" }
                    ul.results { @for (card, leader, since) in &results { li { (result(card, leader, *since, now)) } } }
                }
                @if !page.over.is_empty() {
                    h2 { "Tournaments that are over" }
                    ul.cards { @for one in &page.over { li { (card(one, now)) } } }
                    @if page.older > 0 {
                        p { (layout::count(page.older as u64, "older tournament", "older tournaments")) ": see " code { "arbiter tournament list" } "." }
                    }
                }
            }
            aside aria-label="How to take part" { (how_to_take_part(&session)) }
        }
        (data_links("Data of the tournaments", &[DataLink::Json("tournaments".to_owned())]))
    };
    let body = html! {
        h1 { "Tournaments" }
        @if !session.is_logged_in() { p { (WHAT_THIS_IS) } }
        (body)
    };
    Ok(layout::session_page("Tournaments", &session, &body))
}

fn card(card: &TournamentCard, now: OffsetDateTime) -> Markup {
    let heading = &card.heading;
    html! {
        article.tournament {
            h2 { a href={ "/t/" (heading.name) } { (heading.title) } }
            p.quiet {
                (card.game) " · " (layout::count(card.entered, "bot", "bots"))
                @if heading.state == TournamentState::Cancelled { " · cancelled" }
            }
            @if let Some(rehearsal) = &heading.rehearsal {
                p.notice { "Rehearsal of " (rehearsal.original) ": its leaderboard is never official" }
            }
            @if let Some(running) = &card.running {
                p {
                    "Edition " (running.number) ": " (layout::edition_progress(running))
                    @if running.eta_us.is_some() { ", " (layout::time_left(running, now)) }
                }
            }
            @if let Some(leader) = &card.leader { p { (leads(card, leader)) } }
            @else if card.running.is_none() && heading.frozen_since.is_none() {
                p { @if card.is_played { "No bot is ranked." } @else { "Nothing has been played yet." } }
            }
            @if heading.state == TournamentState::Open { p { (entry_text(heading.entry, now)) } }
            (freeze_text(heading.freezes_at, now))
            @if let Some(since) = heading.frozen_since { p.notice { "Leaderboards are frozen since " (layout::time(since)) } }
        }
    }
}

fn bot_link(card: &TournamentCard, bot: &str) -> Markup {
    TournamentLinks::new(&card.heading.name, Arc::clone(&card.names_with_owners)).bot(bot)
}

/// Who leads, or who won.
fn leads(card: &TournamentCard, leader: &Leader) -> Markup {
    let link = bot_link(card, &leader.bot);
    let is_rehearsal = card.heading.rehearsal.is_some();
    let place = match (leader.is_among_ranked, card.heading.state) {
        (false, _) if is_rehearsal => "Leader of the rehearsal",
        (true, _) if is_rehearsal => "Best ranked bot of the rehearsal",
        (false, TournamentState::Open) => "Leader",
        (false, TournamentState::Closed) => "Winner",
        (false, TournamentState::Cancelled) => "Led when it was cancelled",
        (true, TournamentState::Cancelled) => "Best ranked bot when it was cancelled",
        (true, TournamentState::Open | TournamentState::Closed) => "Best ranked bot",
    };
    html! {
        (place) ": " strong { (link) } " (" (layout::edition_label(leader.edition, leader.status)) ")"
    }
}

fn result(
    card: &TournamentCard,
    leader: &Leader,
    since: OffsetDateTime,
    now: OffsetDateTime,
) -> Markup {
    let name = &card.heading.name;
    let verb = match (leader.is_among_ranked, card.heading.state) {
        (true, _) => " is the best ranked bot of ",
        (false, TournamentState::Closed) => " won ",
        (false, _) => " leads ",
    };
    html! {
        (bot_link(card, &leader.bot)) (verb)
        a href={ "/t/" (name) } { (card.heading.title) }
        " after edition\u{a0}" (leader.edition) span.quiet { ", " (layout::relative(since, now)) }
    }
}

fn how_to_take_part(session: &Session) -> Markup {
    html! {
        h2 { "How to take part" }
        ol {
            li { "Choose an open tournament and read its page " em { "How to play" } "." }
            li { "Download a starter kit in your language, or paste the short bot that is shown there." }
            @if session.is_logged_in() {
                li { "Submit your bot. It is built and tried, and then it plays." }
            } @else {
                li { a href="/login" { "Log in" } " with the token from your organiser, and submit your bot." }
            }
            li { "Follow its matches, and submit better versions." }
        }
    }
}

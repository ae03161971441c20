//! The page of a bracket: a list of meetings for each round.

use arbiter_replay::number_text;
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
use crate::service::{Bracket, BracketBot, BracketMeeting, BracketRound};

/// The query string of the page.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BracketQuery {
    /// The edition's number. Default: the newest edition, or the official one while leaderboards
    /// are frozen.
    edition: Option<i32>,
    /// The stage's number. Default: the last knockout that has begun.
    stage: Option<u32>,
}

/// The page.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<BracketQuery>,
) -> Result<Response, WebError> {
    let content = content(&session, &tournament, query).await;
    TournamentPage::new(&tournament, Tab::Rounds).respond(&session, content).await
}

async fn content(
    session: &Session,
    tournament: &str,
    BracketQuery { edition, stage }: BracketQuery,
) -> Result<Markup, WebError> {
    let bracket = session.service.bracket(&session.caller, tournament, edition, stage).await?;
    let links = TournamentLinks::of(&session.service, tournament).await?;
    let status = session.service.edition_status(&session.caller, tournament, bracket.edition);
    let status = status.await?;
    let data = format!(
        "tournaments/{tournament}/bracket?edition={}&stage={}",
        bracket.edition, bracket.stage
    );
    Ok(html! {
        p { "Results of " (layout::edition_label(bracket.edition, status)) ". " }
        (drawing(&links, &bracket))
        (data_links("Data of this bracket", &[DataLink::Json(data)]))
    })
}

/// A bracket with its state: a list of meetings for each round.
pub(super) fn drawing(tournament: &TournamentLinks, bracket: &Bracket) -> Markup {
    let round = |round: &BracketRound| {
        let heading = format!("round-{}", round.round);
        html! {
            section.round aria-labelledby=(heading) {
                h2 id=(heading) { (round_name(round.round, bracket.round_count)) }
                ol { @for meeting in &round.meetings { li { (show_meeting(tournament, meeting)) } } }
            }
        }
    };
    let planned_rounds = bracket.rounds.len() + 1..=bracket.round_count;
    html! {
        p {
            (state(tournament, bracket))
            " The number before a bot is its bracket number; 1 is the best."
        }
        div.bracket {
            @for one in &bracket.rounds { (round(one)) }
            @for number in planned_rounds {
                section.round {
                    h2 { (round_name(number, bracket.round_count)) }
                    p { @if bracket.is_cancelled { "Not played." } @else { "Follows from the results." } }
                }
            }
        }
    }
}

fn state(tournament: &TournamentLinks, bracket: &Bracket) -> Markup {
    html! {
        @match &bracket.winner {
            Some(winner) => { "Winner: " strong { (tournament.bot(winner)) } "." }
            None if bracket.is_cancelled => {
                "Cancelled in round " (bracket.rounds.len()) " of " (bracket.round_count) "."
            }
            None => { "Round " (bracket.rounds.len()) " of " (bracket.round_count) " is being played." }
        }
    }
}

/// The name of a round of this many.
fn round_name(round: usize, count: usize) -> String {
    match count.saturating_sub(round) {
        0 => "Final".to_owned(),
        1 => "Semi-finals".to_owned(),
        2 => "Quarter-finals".to_owned(),
        _ => format!("Round {round}"),
    }
}

fn show_meeting(tournament: &TournamentLinks, meeting: &BracketMeeting) -> Markup {
    let is_winner = |bot: &BracketBot| meeting.winner.as_ref() == Some(&bot.name);
    html! {
        @if meeting.is_for_third_place { p.quiet { "Third place" } }
        ul {
            @for bot in &meeting.bots {
                li {
                    span.quiet { (bot.number) } " "
                    @if is_winner(bot) { strong { (tournament.bot(&bot.name)) } }
                    @else { (tournament.bot(&bot.name)) }
                    @if !bot.score.is_empty() { " " b { (score(bot)) } }
                    @if is_winner(bot) { " " (advances(meeting)) }
                }
            }
        }
        @if !meeting.matches.is_empty() {
            p.quiet { "Matches " (layout::match_numbers(&meeting.matches)) }
        }
    }
}

fn score(bot: &BracketBot) -> String {
    let parts: Vec<_> = bot.score.iter().map(number_text).collect();
    parts.join(" ")
}

/// Why the winner of a meeting won.
fn advances(meeting: &BracketMeeting) -> &'static str {
    match meeting.decided_by {
        None => "(bye)",
        Some("extra_games") => "(winner after extra games)",
        Some("number") => "(winner by its bracket number, since the scores are equal)",
        Some(_) => "(winner)",
    }
}

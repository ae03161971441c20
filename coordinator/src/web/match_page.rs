//! The page of a match: its state, its result and its replay, step by step.
//!
//! The record is replayed through the rules ([`arbiter_replay::steps`]), and the requested steps
//! are rendered and cached with their neighbours ([`replay_cache`]). Without scripts each step is a
//! page. With scripts, the script fetches steps ahead and plays them.

use arbiter_proto::ids::{MatchName, MatchNumber};
use arbiter_proto::state_words::match_state;
use arbiter_proto::v1::{GetMatchRequest, MatchStatus};
use arbiter_replay::Difference;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::error::WebError;
use super::flash::Flash;
use super::replay_cache::{self, RenderedSteps};
use super::session::Session;
use super::tournament_page::{Tab, TournamentPage};
use super::{actions, download, layout};

/// Maximum number of steps in a response.
const MAX_STEPS: usize = 50;

/// The query string of the page.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StepQuery {
    step: usize,
}

/// The query string of a request for steps.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StepRange {
    from: usize,
    count: usize,
}

/// The page of a match.
pub(super) async fn show(
    session: Session,
    Path((tournament, number)): Path<(String, i64)>,
    Query(StepQuery { step }): Query<StepQuery>,
    Query(flash): Query<Flash>,
) -> Result<Markup, WebError> {
    let name = match_name(&tournament, number);
    let request = GetMatchRequest { r#match: name.clone() };
    let status = session.service.get_match(&session.caller, request).await?;
    let edition = session.service.edition_of_match(&name).await?;
    let replay = match session.service.record(&session.caller, &name).await {
        Ok(record) => {
            let games = session.service.games_of_match(&name).await?;
            let render = move || replay_cache::render_steps(&games, &record, step, 1);
            replay(&name, &run_replay(&session, render).await?, step)
        }
        Err(status) => html! {
            p { "The replay is not available: " (status.message()) "." }
            @if !session.is_logged_in() { p { a href="/login" { "Log in" } " to see it." } }
        },
    };
    let can_retry = status.state == "aside" && session.caller.is_organiser();
    let body = html! {
        (flash.message())
        @if status.seats.is_empty() { p { "Who plays is hidden while the leaderboards are frozen." } }
        @else { (layout::scrollable("Seats", &seats(&status))) }
        @if can_retry {
            (actions::button(
                &session, &format!("{}/retry", layout::match_path(&name)), "Retry match", None))
        }
        (replay)
        (details(&status, edition))
    };
    let title = format!("Match {number}");
    let page = TournamentPage::below(&status.tournament, Tab::Matches, title);
    Ok(page.render(&session, &body).await)
}

/// Steps of a match as HTML fragments, one article each.
pub(super) async fn steps(
    session: Session,
    Path((tournament, number)): Path<(String, i64)>,
    Query(StepRange { from, count }): Query<StepRange>,
) -> Result<Markup, WebError> {
    let name = match_name(&tournament, number);
    let record = session.service.record(&session.caller, &name).await?;
    let count = count.clamp(1, MAX_STEPS);
    let games = session.service.games_of_match(&name).await?;
    let render = move || replay_cache::render_steps(&games, &record, from, count);
    let replay = run_replay(&session, render).await?;
    Ok(html! { @for step in &replay.steps { (step) } })
}

/// The compressed record.
pub(super) async fn record(
    session: Session,
    Path((tournament, number)): Path<(String, i64)>,
) -> Result<Response, WebError> {
    let record = session.service.record(&session.caller, &match_name(&tournament, number)).await?;
    let name = format!("match-{tournament}-{number}.jsonl.zst");
    Ok(download::file(&name, "application/zstd", download::record(&record)))
}

fn match_name(tournament: &str, number: i64) -> String {
    MatchName { tournament: tournament.to_owned(), number: MatchNumber(number) }.to_string()
}

/// Runs a replay on a blocking thread, once the caller gets a permit. This may take long.
pub(super) async fn run_replay<T: Send + 'static>(
    session: &Session,
    replay: impl FnOnce() -> Result<T, Difference> + Send + 'static,
) -> Result<T, WebError> {
    let _permit = session.service.permit(&session.caller).await?;
    let task = tokio::task::spawn_blocking(replay);
    let failed = |reason: String| {
        tracing::error!(reason, "cannot replay a record");
        let message = format!("the record cannot be replayed: {reason}");
        WebError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    };
    let result = task.await.map_err(|error| failed(error.to_string()))?;
    result.map_err(|difference| failed(difference.to_string()))
}

/// The state of a match and how it was played. `edition` is the number of the edition that added
/// it.
fn details(status: &MatchStatus, edition: i32) -> Markup {
    html! {
        h2 { "About this match" }
        dl {
            dt { "State" } dd { (match_state(&status.state)) }
            dt { "Added by" } dd {
                a href={ "/t/" (status.tournament) "/ranking?edition=" (edition) } {
                    "edition " (edition)
                }
            }
            @if !status.params.is_empty() { dt { "Parameters" } dd { code { (status.params) } } }
            @if !status.transcript.is_empty() {
                dt { "Duration" } dd { (layout::format_millis(status.wall_ms)) }
                dt { "Sandbox level" } dd { (status.level) }
                dt { "Transcript" } dd { code.hash { (layout::hex(&status.transcript)) } }
            }
            @if !status.worker.is_empty() { dt { "Worker" } dd { (status.worker) } }
        }
        @if !status.faults.is_empty() {
            details {
                summary { (layout::count(status.faults.len(), "infrastructure fault", "infrastructure faults")) }
                ul { @for fault in &status.faults { li { (fault) } } }
            }
        }
    }
}

/// The seats with bots, scores and forfeits.
fn seats(status: &MatchStatus) -> Markup {
    let has_bad_answers = status.seats.iter().any(|seat| seat.bad_answers > 0);
    let has_forfeits = status.seats.iter().any(|seat| !seat.forfeit.is_empty());
    html! {
        table.scores {
            thead {
                tr {
                    th { "Seat" } th { "Bot" } th.number { "Version" }
                    th.number { "Score" (layout::components(&status.columns)) }
                    @if has_forfeits { th { "Forfeit" } }
                    @if has_bad_answers { th.number { "Invalid replies" } }
                }
            }
            tbody {
                @for (number, seat) in (1..).zip(&status.seats) {
                    tr {
                        td class={ "seat" (number) } { (number) }
                        td { (layout::bot_link(&status.tournament, &seat.bot)) }
                        td.number { (seat.version) }
                        td.number.score { (layout::format_score(&seat.score)) }
                        @if has_forfeits {
                            td {
                                @if !seat.forfeit.is_empty() { em.forfeit { (seat.forfeit) } }
                                @if let Some(evidence) = &seat.evidence { " " (evidence.detail) }
                            }
                        }
                        @if has_bad_answers { td.number { (seat.bad_answers) } }
                    }
                }
            }
        }
    }
}

/// The replay viewer at a step.
fn replay(name: &str, rendered: &RenderedSteps, step: usize) -> Markup {
    let path = layout::match_path(name);
    let info = &rendered.info;
    let last = info.total.saturating_sub(1);
    let shown = step.min(last);
    html! {
        section #replay data-steps={ (path) "/steps" } data-total=(info.total) {
            h2 { "Replay" }
            nav.player aria-label="Steps" {
                (jump(0, "|◀", "First step"))
                (jump(shown.saturating_sub(1), "◀", "Previous step"))
                button type="button" data-play hidden { "Play" }
                (jump((shown + 1).min(last), "▶", "Next step"))
                (jump(last, "▶|", "Last step"))
                input type="range" min="0" max=(last) value=(shown) hidden aria-label="Step";
                label.speed hidden {
                    "Steps per second "
                    select { @for speed in [1, 2, 5, 10, 25] { option selected[speed == 2] { (speed) } } }
                }
                output { (shown) " of " (last) }
            }
            div.step-view aria-live="polite" {
                @if let Some(step) = rendered.steps.first() { (step) }
                @else { p { "There is no step " (step) ". The last step is " (last) "." } }
            }
            @if info.chapters.len() > 1 {
                details.chapters {
                    summary { "Chapters" }
                    ul { @for (chapter, first) in &info.chapters { li { (jump(*first, chapter, chapter)) } } }
                }
            }
            @for (name, stderr) in info.names.iter().zip(&info.stderr) {
                @if let Some(stderr) = stderr {
                    details {
                        summary { "Standard error of " (name) }
                        @if stderr.dropped > 0 { p { "The first " (layout::count(stderr.dropped, "byte", "bytes")) " were dropped." } }
                        pre { (stderr.text) }
                    }
                }
            }
            p { a href={ (path) "/record" } { "Download the record" } " (JSON Lines, Zstandard)" }
        }
    }
}

/// A link to a step. The script handles clicks on it.
fn jump(step: usize, text: &str, label: &str) -> Markup {
    html! { a href={ "?step=" (step) "#replay" } data-step=(step) aria-label=(label) { (text) } }
}

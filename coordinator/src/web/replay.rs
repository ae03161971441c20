//! A match: where it stands, and its replay, step by step.
//!
//! The record is replayed through the rules, and the steps that are asked for are drawn from them
//! ([`arbiter_replay::steps`]), with those around them: [`films`]. Without scripts a step is a page;
//! with them the script fetches the steps ahead and plays.

use arbiter_proto::ids::{EditionId, MatchId, MatchNumber};
use arbiter_proto::v1::{GetMatchRequest, MatchStatus};
use arbiter_replay::Difference;
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::done::Done;
use super::error::WebError;
use super::films::{self, Scenes};
use super::session::Session;
use super::{actions, page};

/// Steps that are given at a time, at most.
const STEPS: usize = 50;

/// Which step is looked at.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    step: usize,
}

/// Which steps are asked for.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    from: usize,
    count: usize,
}

/// The page of a match.
pub(super) async fn show(
    session: Session,
    Path((edition, number)): Path<(i32, i64)>,
    Query(Look { step }): Query<Look>,
    Query(done): Query<Done>,
) -> Result<Markup, WebError> {
    let id = name(edition, number);
    let asked = GetMatchRequest { r#match: id.clone() };
    let status = session.service.get_match(&session.caller, asked).await?;
    let title = format!("Match {id}");
    let replay = match session.service.record(&session.caller, &id).await {
        Ok(record) => {
            let games = session.service.games().clone();
            let drawn = move || films::scenes(&games, &record, step, 1);
            replay(&id, &replayed(&session, drawn).await?, step)
        }
        Err(status) => html! {
            p { "No replay: " (status.message()) "." }
            @if !session.is_somebody() { p { a href="/login" { "Log in" } " to see it." } }
        },
    };
    let organiser = status.state == "aside" && session.caller.is_organiser();
    let body = html! {
        (done.note())
        (page::wide("Seats", &seats(&status)))
        @if organiser {
            (actions::button(&session, &format!("/matches/{id}/retry"), "Let it be played again", None))
        }
        (replay)
        (about(&status))
    };
    Ok(page::of_tournament((&status.tournament, ""), &title, &session, &body))
}

/// Some steps of a match, one article each.
pub(super) async fn steps(
    session: Session,
    Path((edition, number)): Path<(i32, i64)>,
    Query(Part { from, count }): Query<Part>,
) -> Result<Markup, WebError> {
    let record = session.service.record(&session.caller, &name(edition, number)).await?;
    let count = count.clamp(1, STEPS);
    let games = session.service.games().clone();
    let drawn = move || films::scenes(&games, &record, from, count);
    let found = replayed(&session, drawn).await?;
    Ok(html! { @for step in &found.steps { (step) } })
}

/// The record itself, compressed.
pub(super) async fn record(
    session: Session,
    Path((edition, number)): Path<(i32, i64)>,
) -> Result<Response, WebError> {
    let record = session.service.record(&session.caller, &name(edition, number)).await?;
    let file = format!("attachment; filename=\"match-{edition}-{number}.jsonl.zst\"");
    let headers = [
        (header::CONTENT_TYPE, "application/zstd".to_owned()),
        (header::CONTENT_DISPOSITION, file),
    ];
    Ok((headers, record).into_response())
}

fn name(edition: i32, number: i64) -> String {
    MatchId { edition: EditionId(edition), number: MatchNumber(number) }.to_string()
}

/// Has a record replayed when it is the viewer's turn. It may take long.
pub(super) async fn replayed<T: Send + 'static>(
    session: &Session,
    replay: impl FnOnce() -> Result<T, Difference> + Send + 'static,
) -> Result<T, WebError> {
    let _turn = session.service.permit(&session.caller).await?;
    let found = tokio::task::spawn_blocking(replay);
    let failed = |why: String| {
        tracing::error!(why, "a record cannot be replayed");
        let why = format!("the record cannot be replayed: {why}");
        WebError::new(StatusCode::INTERNAL_SERVER_ERROR, why)
    };
    let found = found.await.map_err(|error| failed(error.to_string()))?;
    found.map_err(|difference| failed(difference.to_string()))
}

/// Where a match stands, and what is known of how it was played.
fn about(status: &MatchStatus) -> Markup {
    html! {
        h2 { "About this match" }
        dl {
            dt { "State" } dd { (status.state) }
            @if !status.params.is_empty() { dt { "Parameters" } dd { code { (status.params) } } }
            @if !status.reused_from.is_empty() {
                dt { "Played as" } dd { (page::match_link(&status.reused_from)) }
            }
            @if !status.transcript.is_empty() {
                dt { "Took" } dd { (status.wall_ms) " ms, in a sandbox of level " (status.level) }
                dt { "Transcript" } dd { code.hash { (page::hex(&status.transcript)) } }
            }
            @if !status.worker.is_empty() { dt { "Played by" } dd { (status.worker) } }
        }
        @if !status.faults.is_empty() {
            details {
                summary { (status.faults.len()) " attempts failed through no fault of a bot" }
                ul { @for fault in &status.faults { li { (fault) } } }
            }
        }
    }
}

/// Who sat where, and what it brought them.
fn seats(status: &MatchStatus) -> Markup {
    let bad = status.seats.iter().any(|seat| seat.bad_answers > 0);
    let dead = status.seats.iter().any(|seat| !seat.forfeit.is_empty());
    html! {
        table.scores {
            thead {
                tr {
                    th { "Seat" } th { "Bot" } th.number { "Version" } th.number { "Score" }
                    @if dead { th { "Forfeit" } }
                    @if bad { th.number { "Bad answers" } }
                }
            }
            tbody {
                @for (number, seat) in (1..).zip(&status.seats) {
                    tr {
                        td class={ "seat" (number) } { (number) }
                        td { (page::bot(&status.tournament, &seat.bot)) }
                        td.number { (seat.version) }
                        td.number.score { (page::numbers(&seat.score)) }
                        @if dead {
                            td {
                                @if !seat.forfeit.is_empty() { em.forfeit { (seat.forfeit) } }
                                @if let Some(why) = &seat.evidence { " " (why.detail) }
                            }
                        }
                        @if bad { td.number { (seat.bad_answers) } }
                    }
                }
            }
        }
    }
}

/// The replay at a step.
fn replay(id: &str, found: &Scenes, shown: usize) -> Markup {
    let head = &found.head;
    let last = head.total.saturating_sub(1);
    let shown = shown.min(last);
    html! {
        section #replay data-steps={ "/matches/" (id) "/steps" } data-total=(head.total) {
            h2 { "Replay" }
            nav.player aria-label="Steps" {
                (jump(0, "|◀", "first step"))
                (jump(shown.saturating_sub(1), "◀", "step back"))
                button type="button" data-play hidden { "Play" }
                (jump((shown + 1).min(last), "▶", "step on"))
                (jump(last, "▶|", "last step"))
                input type="range" min="0" max=(last) value=(shown) hidden aria-label="step";
                label.speed hidden {
                    "Steps a second "
                    select { @for speed in [1, 2, 5, 10, 25] { option selected[speed == 2] { (speed) } } }
                }
                output { (shown) " of " (last) }
            }
            div.stage aria-live="polite" {
                @if let Some(step) = found.steps.first() { (step) }
                @else { p { "There is no such step; the last one is " (last) "." } }
            }
            @if head.chapters.len() > 1 {
                details.chapters {
                    summary { "Jump" }
                    ul { @for (chapter, first) in &head.chapters { li { (jump(*first, chapter, chapter)) } } }
                }
            }
            @for (name, stderr) in head.names.iter().zip(&head.stderr) {
                @if let Some(stderr) = stderr {
                    details {
                        summary { "Standard error of " (name) }
                        @if stderr.dropped > 0 { p { (stderr.dropped) " bytes before these were not kept." } }
                        pre { (stderr.text) }
                    }
                }
            }
            p { a href={ "/matches/" (id) "/record" } { "Download the record" } " (JSON Lines, Zstandard)" }
        }
    }
}

/// A link to a step, which the script takes for a button.
fn jump(step: usize, text: &str, label: &str) -> Markup {
    html! { a href={ "?step=" (step) "#replay" } data-step=(step) aria-label=(label) { (text) } }
}

//! A version of a bot: where it stands, and for its owner how its trial went, live while it goes on.

use crate::service::ErrorKind;
use arbiter_proto::trial::{Measurements, ReplyTimeSummary};
use arbiter_proto::v1::{GetBotRequest, GetTrialRequest, TrialStatus, Version};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use maud::{Markup, html};

use super::done::Done;
use super::error::{WebError, unless};
use super::session::Session;
use super::{actions, bot, live, page};
use crate::service::trial_is_over;

/// The page of a version.
pub(super) async fn show(
    session: Session,
    Path((tournament, name, number)): Path<(String, String, i32)>,
    Query(done): Query<Done>,
) -> Result<Markup, WebError> {
    let asked = GetBotRequest { tournament: tournament.clone(), bot: name.clone() };
    let found = session.service.get_bot(&session.caller, asked).await?;
    let version = found.versions.iter().find(|version| version.number == number);
    let version = version.cloned().ok_or_else(|| {
        let why = format!("{name} of {tournament} has no version {number}");
        WebError::new(StatusCode::NOT_FOUND, why)
    })?;
    let asked = GetTrialRequest { tournament: tournament.clone(), bot: name.clone(), number };
    // Everybody sees where a version stands, and no more.
    let hidden = [ErrorKind::Unauthenticated, ErrorKind::PermissionDenied];
    let told = unless(&hidden, session.service.get_trial(&session.caller, asked).await)?;
    let (is_told, status) = (
        told.is_some(),
        told.unwrap_or_else(|| TrialStatus {
            version: Some(version.clone()),
            ..TrialStatus::default()
        }),
    );
    let path = format!("/t/{tournament}/bots/{name}/versions/{number}");
    let watched = is_told && !trial_is_over(&status);
    let live = watched.then(|| format!("{path}/live"));
    let organiser = session.caller.is_organiser();
    let again = version.state == "aside" && organiser;
    let title = format!("{name} version {number}");
    let body = html! {
        (done.note())
        p {
            (page::bot(&tournament, &name)) ", submitted " (page::moment(version.submitted_at_us))
            "; digest " code.hash { (page::hex(&version.digest)) }
        }
        section data-live=[live] aria-live="polite" { (trial(&status)) }
        @if watched { noscript { p { a href=(path) { "Look again" } } } }
        @if again { (actions::button(&session, &format!("{path}/retry"), "Try it again", None)) }
        @if let Some(of) = &found.bot { (bot::looked_after(&session, &tournament, of, organiser)) }
    };
    Ok(page::of_tournament((&tournament, ""), &title, &session, &body))
}

/// How its trial goes, whenever that changes, until it is over.
pub(super) async fn live(
    session: Session,
    Path((tournament, bot, number)): Path<(String, String, i32)>,
) -> Result<impl IntoResponse, WebError> {
    let asked = GetTrialRequest { tournament, bot, number };
    let states = session.service.watch_trial(&session.caller, asked).await?;
    Ok(live::watched(session, states, trial))
}

/// Where a version stands, in words.
pub(super) fn standing(version: &Version) -> &'static str {
    match &version.state[..] {
        "waiting" => "waits for its trial",
        "trying" => "is being tried",
        "failed" => "failed its trial",
        "aside" => "could not be tried, through no fault of its own",
        _ => "has entered",
    }
}

/// All that is told about the trial of a version.
fn trial(status: &TrialStatus) -> Markup {
    let Some(version) = &status.version else { return html! {} };
    let over = trial_is_over(status);
    let failed = version.state == "failed";
    html! {
        p.state data-state=(version.state) data-over[over] {
            strong { "It " (standing(version)) }
            @if status.ahead > 0 { "; " (status.ahead) " others come first" }
            @if !version.reason.is_empty() { ": " (version.reason) }
        }
        @if !status.evidence.is_empty() {
            h2 { "What shows it" }
            pre.evidence { (status.evidence) }
        }
        @if !status.warnings.is_empty() {
            h2 { "Warnings" }
            ul { @for warning in &status.warnings { li { (warning) } } }
        }
        @if let Ok(figures) = serde_json::from_str(&status.measurements) { (measured(&figures)) }
        @if !status.log.trim().is_empty() {
            details.log open[failed && status.evidence.is_empty()] {
                summary { "What its build wrote" }
                pre { (status.log) }
            }
        }
    }
}

/// What was measured in the trial.
fn measured(figures: &Measurements) -> Markup {
    let Measurements { build_ms, matches, start_us, replies, memory } = figures;
    html! {
        h2 { "Measured in the trial" }
        dl {
            @if let Some(ms) = build_ms { dt { "Build" } dd { (ms) " ms" } }
            dt { "Matches" } dd { (matches) }
            @if let Some(us) = start_us { dt { "First answer within" } dd { (page::span(*us)) } }
            @if let Some(ReplyTimeSummary { count, p50_us, p90_us, p99_us, max_us }) = *replies {
                dt { "Replies" } dd { (count) }
                (percentiles([p50_us, p90_us, p99_us, max_us]))
            }
            @if let Some(bytes) = memory { dt { "Memory" } dd { (bytes.div_ceil(1 << 20)) " MiB" } }
        }
    }
}

/// How long half, nine in ten, 99 in 100 and all of the answers took at most, in microseconds.
pub(super) fn percentiles(times: [u64; 4]) -> Markup {
    let shares = ["Half within", "90 % within", "99 % within", "All within"];
    html! { @for (share, time) in shares.iter().zip(times) { dt { (share) } dd { (page::span(time)) } } }
}

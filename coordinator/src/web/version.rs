//! The page of a version: its state and, for the owner and organisers, its trial, updated live.

use crate::service::ErrorKind;
use arbiter_proto::state_words::version_state;
use arbiter_proto::trial::{Measurements, ReplyTimeSummary};
use arbiter_proto::v1::{EntryForecast, GetBotRequest, GetTrialRequest, TrialStatus};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use maud::{Markup, html};

use super::error::{WebError, none_if};
use super::flash::Flash;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use super::{actions, bot, layout, sse};
use crate::service::trial_is_over;

/// The page of a version.
pub(super) async fn show(
    session: Session,
    Path((tournament, bot, number)): Path<(String, String, i32)>,
    Query(flash): Query<Flash>,
) -> Result<Markup, WebError> {
    let request = GetBotRequest { tournament: tournament.clone(), bot };
    let response = session.service.get_bot(&session.caller, request).await?;
    // The request may have left out the owner.
    let name = response.bot.as_ref().map(|bot| bot.name.clone()).unwrap_or_default();
    let links = TournamentLinks::of(&session.service, &tournament).await?;
    let version = response.versions.iter().find(|version| version.number == number);
    let version = version.cloned().ok_or_else(|| {
        let message = format!("the bot {name} of {tournament} has no version {number}");
        WebError::new(StatusCode::NOT_FOUND, message)
    })?;
    let request = GetTrialRequest { tournament: tournament.clone(), bot: name.clone(), number };
    // Without access to the trial, the page shows the state of the version only.
    let hidden = [ErrorKind::Unauthenticated, ErrorKind::PermissionDenied];
    let trial_status = none_if(&hidden, session.service.get_trial(&session.caller, request).await)?;
    let is_visible = trial_status.is_some();
    let status = trial_status.unwrap_or_else(|| TrialStatus {
        version: Some(version.clone()),
        ..TrialStatus::default()
    });
    let path = format!("{}/versions/{number}", links.bot_path(&name));
    let is_live = is_visible && !trial_is_over(&status);
    let live = is_live.then(|| format!("{path}/live"));
    let organiser = session.caller.is_organiser();
    let can_retry = version.state == "aside" && organiser;
    let buttons = if let Some(bot) = &response.bot {
        bot::bot_actions(&session, &tournament, bot, organiser).await?
    } else {
        html! {}
    };
    let body = html! {
        (flash.message())
        p {
            (links.bot(&name)) ", submitted " (layout::timestamp(version.submitted_at_us))
            "; digest " code.hash { (layout::hex(&version.digest)) }
        }
        section data-live=[live] aria-live="polite" { (trial(&status)) }
        @if is_live { noscript { p { a href=(path) { "Reload" } } } }
        @if can_retry { (actions::button(&session, &format!("{path}/retry"), "Retry trial", None)) }
        (buttons)
    };
    let title = format!("{} version {number}", links.label(&name));
    let page = TournamentPage::below(&tournament, Tab::Bots, title);
    let page = page.with_parent(links.label(&name), links.bot_path(&name));
    Ok(page.render(&session, &body).await)
}

/// Live updates of the trial, until it is over.
pub(super) async fn live(
    session: Session,
    Path((tournament, bot, number)): Path<(String, String, i32)>,
) -> Result<impl IntoResponse, WebError> {
    let request = GetTrialRequest { tournament, bot, number };
    let updates = session.service.watch_trial(&session.caller, request).await?;
    Ok(sse::viewer_stream(session, updates, trial))
}

/// The trial of a version: state, evidence, warnings, measurements, build log.
fn trial(status: &TrialStatus) -> Markup {
    let Some(version) = &status.version else { return html! {} };
    let over = trial_is_over(status);
    // If the build failed, its log says why.
    let has_failed_build = version.state == "failed" && status.evidence.is_empty();
    let measurements = serde_json::from_str::<Measurements>(&status.measurements).ok();
    let measurements = measurements.filter(|measured| measured.matches > 0);
    html! {
        p.state data-state=(version.state) data-over[over] {
            "State: " strong { (version_state(&version.state)) }
            @if status.ahead > 0 { "; " (layout::count(status.ahead, "trial", "trials")) " ahead" }
            @if !version.reason.is_empty() { ": " (version.reason) }
        }
        @if let Some(forecast) = &version.forecast { (entry_forecast(forecast)) }
        @if has_failed_build { (build_log(status, true)) }
        @if !status.evidence.is_empty() {
            h2 { "Evidence" }
            pre.evidence { (status.evidence) }
        }
        @if !status.warnings.is_empty() {
            h2 { "Warnings" }
            ul { @for warning in &status.warnings { li { (warning) } } }
        }
        @if let Some(measurements) = measurements { (measurements_list(&measurements)) }
        @if !has_failed_build { (build_log(status, false)) }
    }
}

/// The output of the build, if there is some.
fn build_log(status: &TrialStatus, is_open: bool) -> Markup {
    html! {
        @if !status.log.trim().is_empty() {
            details.log open[is_open] {
                summary { "Build log" }
                pre { (status.log) }
            }
        }
    }
}

/// In which edition the version plays, with a link to the page that shows it.
fn entry_forecast(forecast: &EntryForecast) -> Markup {
    html! {
        p.forecast {
            (layout::label(&forecast.text()))
            @if forecast.at_us > 0 { " " (layout::timestamp(forecast.at_us)) }
            ". " a href=(forecast.path) { "Show edition " (forecast.edition) }
        }
    }
}

/// The measurements of the trial.
fn measurements_list(measurements: &Measurements) -> Markup {
    let Measurements { build_ms, matches, start_us, replies, memory } = measurements;
    html! {
        h2 { "Trial measurements" }
        dl {
            @if let Some(ms) = build_ms { dt { "Build time" } dd { (ms) " ms" } }
            dt { "Matches" } dd { (matches) }
            @if let Some(us) = start_us { dt { "Slowest first reply" } dd { (layout::format_micros(*us)) } }
            @if let Some(ReplyTimeSummary { count, p50_us, p90_us, p99_us, max_us }) = *replies {
                dt { "Replies" } dd { (count) }
                (percentiles([p50_us, p90_us, p99_us, max_us]))
            }
            @if let Some(bytes) = memory { dt { "Peak memory" } dd { (bytes.div_ceil(1_000_000)) "\u{a0}MB" } }
        }
    }
}

/// Percentiles of reply times (50, 90, 99, 100), in microseconds.
pub(super) fn percentiles(times: [u64; 4]) -> Markup {
    let labels = ["Median", "90th percentile", "99th percentile", "Maximum"];
    html! { @for (label, time) in labels.iter().zip(times) { dt { (label) } dd { (layout::format_micros(time)) } } }
}

//! Waits for trials and prints their results.

use std::time::Duration;

use arbiter_games::Micros;
use arbiter_proto::state_words::version_state;
use arbiter_proto::trial::{Measurements, ReplyTimeSummary};
use arbiter_proto::v1::{EntryForecast, GetTrialRequest, TrialStatus, Version};
use serde_json::{Value, json};

use super::client::Server;
use crate::failure::Failure;
use crate::output::{Output, eprint_line, moment, moment_json, non_empty, printable, span};

/// How often a trial's state is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// How many lines from the end of a build log are shown by default.
const LOG_LINES: usize = 20;

/// Whether the trial of a version has ended.
pub(super) fn is_over(version: &Version) -> bool {
    !matches!(version.state.as_str(), "waiting" | "trying")
}

/// The state of a version, as text.
pub(super) fn describe(version: &Version) -> String {
    let Version { number, state, reason, .. } = version;
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("version {number}: {}{why}", version_state(state))
}

/// In which edition a version plays, when, and where that is shown, in one line.
pub(super) fn forecast_line(version: &Version, tournament: &str) -> Option<String> {
    let forecast = version.forecast.as_ref()?;
    let text = forecast.text();
    let at =
        if forecast.at_us > 0 { format!(" {}", moment(forecast.at_us)) } else { String::new() };
    let EntryForecast { path, state, .. } = forecast;
    let where_shown = if state == "complete" {
        format!("its page is {path} in a browser")
    } else {
        format!("follow it with arbiter tournament watch {tournament}, or at {path} in a browser")
    };
    Some(printable(&format!("{text}{at}; {where_shown}")))
}

/// The forecast as JSON; null if the version plays in no edition.
fn forecast_json(version: &Version) -> Value {
    version.forecast.as_ref().map_or(Value::Null, |forecast| {
        let at =
            |state: &str| (forecast.state == state && forecast.at_us > 0).then_some(forecast.at_us);
        json!({
            "edition": forecast.edition,
            "state": forecast.state,
            "after_trial": forecast.after_trial,
            "opens_at": at("due").map(moment_json),
            "complete_at": at("running").map(moment_json),
            "page": forecast.path,
        })
    })
}

/// Waits until the trial of a version has ended, and reports its progress.
pub(super) async fn wait(
    server: &Server,
    tournament: &str,
    version: &Version,
) -> Result<TrialStatus, Failure> {
    let mut last_line = String::new();
    loop {
        let bot = &version.bot;
        let status = match get(server, tournament, bot, version.number).await {
            Err(Failure::Refused(why)) => {
                let remedy = format!("its trial continues: arbiter log {tournament} {bot} --trial");
                return Err(Failure::Refused(format!("{why}; {remedy}")));
            }
            status => status?,
        };
        let current = status.version.clone().unwrap_or_default();
        if is_over(&current) {
            return Ok(status);
        }
        let ahead = match status.ahead {
            0 => String::new(),
            1 => ", 1 trial ahead of it".to_owned(),
            count => format!(", {count} trials ahead of it"),
        };
        let line = format!("{} {}{ahead}", current.bot, describe(&current));
        if line != last_line {
            eprint_line(&line);
            last_line = line;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Fetches the trial of a version; number 0 means the newest.
pub(super) async fn get(
    server: &Server,
    tournament: &str,
    bot: &str,
    number: i32,
) -> Result<TrialStatus, Failure> {
    let tournament = tournament.to_owned();
    let bot = bot.to_owned();
    server.send(GetTrialRequest { tournament, bot, number }).await
}

/// Prints the details of a trial to standard error.
pub(super) fn print_details(status: &TrialStatus) {
    for line in details(status, false) {
        eprint_line(&line);
    }
}

/// Prints the state and the details of a trial.
pub(super) fn show(
    out: &mut Output,
    tournament: &str,
    status: &TrialStatus,
    full: bool,
) -> Result<(), Failure> {
    lines(tournament, status, full).iter().try_for_each(|line| out.line(line))
}

/// The state and all details of a trial, one per line.
pub(super) fn text(tournament: &str, status: &TrialStatus) -> Vec<String> {
    lines(tournament, status, true)
}

fn lines(tournament: &str, status: &TrialStatus, full: bool) -> Vec<String> {
    let version = status.version.clone().unwrap_or_default();
    let forecast = forecast_line(&version, tournament);
    [describe(&version)].into_iter().chain(forecast).chain(details(status, full)).collect()
}

/// The details of a trial, one per line.
fn details(status: &TrialStatus, full: bool) -> Vec<String> {
    let TrialStatus { evidence, log, warnings, .. } = status;
    let failed = status.version.as_ref().is_some_and(|version| version.state == "failed");
    let measurements = serde_json::from_str::<Measurements>(&status.measurements).ok();
    detail_lines(
        evidence,
        log,
        full || failed && evidence.is_empty(),
        full,
        warnings,
        measurements.as_ref(),
    )
}

/// The details of a trial, one per line: evidence, the build log if `with_log` (its end unless
/// `full`), warnings and measurements.
pub(super) fn detail_lines(
    evidence: &str,
    log: &str,
    with_log: bool,
    full: bool,
    warnings: &[String],
    measurements: Option<&Measurements>,
) -> Vec<String> {
    let mut lines: Vec<String> = evidence.lines().map(printable).collect();
    if with_log && !log.trim().is_empty() {
        lines.push("build log:".to_owned());
        let log_lines: Vec<_> = log.lines().collect();
        let start = if full { 0 } else { log_lines.len().saturating_sub(LOG_LINES) };
        lines.extend(log_lines[start..].iter().map(|line| format!("  {}", printable(line))));
    }
    lines.extend(warnings.iter().map(|line| format!("warning: {}", printable(line))));
    lines.extend(measurements.and_then(measurements_line));
    lines
}

/// The measurements in one line, if there are any.
fn measurements_line(measurements: &Measurements) -> Option<String> {
    let Measurements { build_ms, matches, start_us, replies, memory } = measurements;
    let time = |micros: &u64| Micros(i64::try_from(*micros).unwrap_or(i64::MAX));
    let mut parts = Vec::new();
    parts.extend(build_ms.map(|ms| format!("built in {ms} ms")));
    parts.extend((*matches > 0).then(|| match matches {
        1 => "1 match".to_owned(),
        count => format!("{count} matches"),
    }));
    parts.extend(start_us.map(|us| format!("first reply within {}", span(time(&us)))));
    parts.extend(replies.map(|ReplyTimeSummary { count, p50_us, p90_us, p99_us, max_us }| {
        let times = [p50_us, p90_us, p99_us, max_us].map(|us| span(time(&us)));
        let replies = if count == 1 { "1 reply" } else { &format!("{count} replies") };
        format!("{replies}: p50 / p90 / p99 / max {}", times.join(" / "))
    }));
    parts.extend(memory.map(|bytes| format!("{} MB of memory", bytes.div_ceil(1_000_000))));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A trial as one JSON object.
pub(super) fn status_json(status: &TrialStatus) -> Value {
    let version = status.version.clone().unwrap_or_default();
    let measurements: Option<Value> = serde_json::from_str(&status.measurements).ok();
    json!({
        "bot": version.bot,
        "version": version.number,
        "state": version_state(&version.state),
        "reason": non_empty(&version.reason),
        "evidence": status.evidence.lines().collect::<Vec<_>>(),
        "build_log": status.log,
        "forecast": forecast_json(&version),
        "warnings": status.warnings,
        "measurements": measurements,
    })
}

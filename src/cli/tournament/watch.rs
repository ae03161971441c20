//! `arbiter tournament watch T`: shows the progress of an edition until it ends.

use std::cell::Cell;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;

use arbiter_proto::v1::{Edition, WatchEditionRequest};
use clap::Args;
use indicatif::ProgressBar;

use super::list::{completion_estimate, edition_json, lots};
use crate::cli::client::{Client, Server, interrupt};
use crate::cli::reconnecting_stream::follow;
use crate::failure::Failure;
use crate::output::{eprint_line, matches, non_empty, print, print_line};
use crate::play::progress;

/// Watch an edition until it ends; exit code 1 if it was cancelled.
#[derive(Debug, Args)]
#[command(
    after_help = "Shows a progress bar on a terminal, otherwise one line per change. Reconnects \
    when the coordinator restarts. Ctrl-C does not affect the edition.

Examples:
  arbiter tournament watch finals
  arbiter tournament watch finals --edition 3 --json"
)]
pub(super) struct Watch {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The edition; by default the newest.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// Print one JSON object per change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Watch {
    pub(super) fn run(self) -> Result<(), Failure> {
        let last = self.client.run(async |server| {
            let mut last = self.follow(&server, None).await?;
            // Without --edition, watch the edition that replaced a cancelled one.
            while self.edition.is_none() && last.state == "cancelled" {
                let next = self.follow(&server, Some(last.number)).await?;
                if next.number == last.number {
                    break;
                }
                last = next;
            }
            Ok(last)
        })?;
        match last.state.as_str() {
            "complete" => Ok(()),
            state => Err(Failure::Negative(format!(
                "edition {} of {} is {state}",
                last.number, self.tournament
            ))),
        }
    }

    /// Shows the progress of the edition and returns its final state. Does not show edition
    /// `skipped` again.
    async fn follow(&self, server: &Server, skipped: Option<i32>) -> Result<Edition, Failure> {
        // After a reconnection, continue with the same edition even if there is a newer one.
        let number = Cell::new(self.edition);
        let open = async || {
            let tournament = self.tournament.clone();
            let edition = number.get();
            let request = WatchEditionRequest { tournament, edition };
            server.tournaments().watch_edition(request).await
        };
        let view = View::new(self.json);
        let bar = view.bar.clone();
        let on_edition = |edition: Edition| {
            if skipped == Some(edition.number) {
                return Ok(ControlFlow::Break(edition));
            }
            number.set(Some(edition.number));
            let is_over = matches!(edition.state.as_str(), "complete" | "cancelled");
            view.show(&edition, is_over)?;
            Ok(if is_over { ControlFlow::Break(edition) } else { ControlFlow::Continue(()) })
        };
        let warn = |warning: &str| bar.suspend(|| eprint_line(warning));
        tokio::select! {
            result = follow(skipped.is_some(), open, on_edition, warn) => result,
            () = interrupt() => Err(Failure::Negative(format!(
                "interrupted; the edition continues: arbiter tournament show {}",
                self.tournament
            ))),
        }
    }
}

/// How changes are shown.
struct View {
    json: bool,
    /// Hidden if each change is a line.
    bar: ProgressBar,
}

impl View {
    fn new(json: bool) -> Self {
        let has_bar = !json && io::stdout().is_terminal() && io::stderr().is_terminal();
        let bar = if has_bar { progress::bar(0, "waiting") } else { ProgressBar::hidden() };
        Self { json, bar }
    }

    fn show(&self, edition: &Edition, is_over: bool) -> Result<(), Failure> {
        if self.json {
            return print(|out| out.json(&edition_json(edition)));
        }
        if !self.bar.is_hidden() && !is_over {
            self.advance(edition);
            return Ok(());
        }
        self.bar.finish_and_clear();
        print_line(&line(edition, is_over))
    }

    fn advance(&self, edition: &Edition) {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let first = self.bar.length() == Some(0);
        self.bar.set_length(count(edition.matches));
        self.bar.set_position(count(edition.counted));
        if first {
            // Matches counted before the start must not affect the estimated rate.
            self.bar.reset_eta();
        }
        let aside = edition
            .lots
            .iter()
            .find(|count| count.state == "aside")
            .map_or(0, |count| count.matches);
        let mut suffix = if aside > 0 { format!(", {aside} set aside") } else { String::new() };
        if let Some(estimate) = completion_estimate(edition) {
            suffix = format!("{suffix}, {estimate}");
        }
        self.bar.set_message(format!("edition {}{suffix}", edition.number));
    }
}

/// Describes an edition in one line.
fn line(edition: &Edition, is_over: bool) -> String {
    let Edition { number, state, counted, matches: planned, official, .. } = edition;
    let official = if *official { ", official" } else { "" };
    let planned = matches(*planned);
    let is_waiting = !is_over && !edition.lots.is_empty();
    let lots = if is_waiting { format!("; lots: {}", lots(&edition.lots)) } else { String::new() };
    let estimate =
        completion_estimate(edition).map(|estimate| format!("; {estimate}")).unwrap_or_default();
    let frozen = &edition.freeze_notice;
    let frozen = if frozen.is_empty() { String::new() } else { format!("; leaderboards {frozen}") };
    let cancelled = non_empty(&edition.cancel_notice).map(|text| format!("; {text}"));
    let notices = format!("{frozen}{}", cancelled.unwrap_or_default());
    format!(
        "edition {number}: {state}{official}, {counted} of {planned} counted{lots}{estimate}{notices}"
    )
}

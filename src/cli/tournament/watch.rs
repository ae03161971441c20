//! `arbiter tournament watch T`: how an edition goes on, until it is over.

use std::cell::Cell;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;

use arbiter_proto::v1::{Edition, WatchEditionRequest};
use clap::Args;
use indicatif::ProgressBar;

use super::list::{edition_json, forecast, lots};
use crate::cli::client::{Client, Server, interrupt};
use crate::cli::follow::follow;
use crate::failure::Failure;
use crate::output::{matches, print, say, tell};
use crate::play::progress;

/// Watch an edition until it is over; exit code 1 if it was cancelled. Ctrl-C leaves it alone.
#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal there is a progress bar, elsewhere a line for each change. A \
coordinator that
restarts meanwhile is waited for.

Examples:
  arbiter tournament watch finals
  arbiter tournament watch finals --edition 3 --json"
)]
pub(super) struct Watch {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The edition; the newest if it is not given.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// Print one JSON object a change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Watch {
    pub(super) fn run(self) -> Result<(), Failure> {
        let last = self.client.run(async |server| {
            let mut last = self.follow(&server, None).await?;
            // Where none was named, the one that took its place is watched.
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

    /// Shows the edition as it goes on, the newest if none is named, and gives what became of it.
    /// If it is the one that was seen to its end already, it is not shown again.
    async fn follow(&self, server: &Server, seen: Option<i32>) -> Result<Edition, Failure> {
        // What was watched is watched on, even if there is a newer one when the stream is mended.
        let number = Cell::new(self.edition);
        let open = async || {
            let (tournament, edition) = (self.tournament.clone(), number.get());
            let request = WatchEditionRequest { tournament, edition };
            server.tournaments().watch_edition(request).await
        };
        let view = View::new(self.json);
        let bar = view.bar.clone();
        let see = |edition: Edition| {
            if seen == Some(edition.number) {
                return Ok(ControlFlow::Break(edition));
            }
            number.set(Some(edition.number));
            let over = matches!(edition.state.as_str(), "complete" | "cancelled");
            view.show(&edition, over)?;
            Ok(if over { ControlFlow::Break(edition) } else { ControlFlow::Continue(()) })
        };
        tokio::select! {
            ended = follow(seen.is_some(), open, see, |told| bar.suspend(|| tell(told))) => ended,
            () = interrupt() => Err(Failure::Negative(format!(
                "interrupted: the edition goes on; see arbiter tournament show {}",
                self.tournament
            ))),
        }
    }
}

/// How changes are shown.
struct View {
    json: bool,
    /// Hidden where each change is a line.
    bar: ProgressBar,
}

impl View {
    fn new(json: bool) -> Self {
        let drawn = !json && io::stdout().is_terminal() && io::stderr().is_terminal();
        let bar = if drawn { progress::bar(0, "waiting") } else { ProgressBar::hidden() };
        Self { json, bar }
    }

    fn show(&self, edition: &Edition, over: bool) -> Result<(), Failure> {
        if self.json {
            return print(|out| out.json(&edition_json(edition)));
        }
        if !self.bar.is_hidden() && !over {
            self.advance(edition);
            return Ok(());
        }
        self.bar.finish_and_clear();
        say(&line(edition, over))
    }

    fn advance(&self, edition: &Edition) {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let first = self.bar.length() == Some(0);
        self.bar.set_length(count(edition.matches));
        self.bar.set_position(count(edition.counted));
        if first {
            // What was played before says nothing of how fast it goes.
            self.bar.reset_eta();
        }
        let aside = edition.lots.iter().find(|count| count.state == "aside");
        let aside = aside.map_or(0, |count| count.matches);
        let mut more = if aside > 0 { format!(", {aside} aside") } else { String::new() };
        if let Some(done) = forecast(edition) {
            more = format!("{more}, {done}");
        }
        self.bar.set_message(format!("edition {}{more}", edition.number));
    }
}

/// An edition in a line.
fn line(edition: &Edition, over: bool) -> String {
    let Edition { number, state, counted, matches: planned, official, .. } = edition;
    let official = if *official { ", official" } else { "" };
    let planned = matches(*planned);
    let waiting = !over && !edition.lots.is_empty();
    let lots = if waiting { format!("; lots: {}", lots(&edition.lots)) } else { String::new() };
    let done = forecast(edition).map(|done| format!("; {done}")).unwrap_or_default();
    format!("edition {number}: {state}{official}, {counted} of {planned} counted{lots}{done}")
}

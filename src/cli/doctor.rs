//! `arbiter doctor`: what this machine can isolate and measure, and what is lost without it.

use std::io::{self, Write as _};

use arbiter_worker::sandbox::{Checkup, Row};
use clap::Args;

use super::{Failure, broken_pipe};

/// Show what this machine can isolate and measure; exit code 1 if --sandbox strict would refuse.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter doctor
  arbiter doctor --json")]
pub(super) struct Doctor {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self) -> Result<(), Failure> {
        let checkup = Checkup::make();
        self.print(&checkup.rows).or_else(broken_pipe)?;
        if checkup.is_strict() {
            return Ok(());
        }
        Err(Failure::Negative("--sandbox strict would refuse on this machine".to_owned()))
    }

    fn print(&self, rows: &[Row]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            return rows.iter().try_for_each(|row| {
                writeln!(out, "{}", serde_json::to_string(row).map_err(io::Error::other)?)
            });
        }
        let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        for Row { what, state, lost, remedy } in rows {
            writeln!(out, "{what:width$}  {state}")?;
            for (word, text) in [("lost", lost), ("remedy", remedy)] {
                if let Some(text) = text {
                    writeln!(out, "{:width$}    {word}: {text}", "")?;
                }
            }
        }
        Ok(())
    }
}

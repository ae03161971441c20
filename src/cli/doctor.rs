//! `arbiter doctor`: what this machine can isolate and measure, and what is lost without it; and how
//! far its clock is from that of a database.

use std::io::{self, Write as _};

use arbiter_coordinator::coordinator::{self, PgConnectOptions};
use arbiter_coordinator::database_clock::{self, Clock};
use arbiter_coordinator::db;
use arbiter_worker::sandbox::{DoctorReport, DoctorRow};
use clap::Args;

use crate::failure::Failure;
use crate::output::broken_pipe;

/// Show what this machine can isolate and measure; exit code 1 if --sandbox strict would refuse.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter doctor
  arbiter doctor --json
  arbiter doctor --database-url postgres:///arbiter")]
pub(super) struct Doctor {
    /// Compare this machine's clock with that of a coordinator's database, as
    /// `postgres://USER@HOST/NAME`.
    #[arg(long, value_name = "URL", env = "ARBITER_DATABASE_URL", hide_env_values = true)]
    #[arg(value_parser = coordinator::parse_database_url)]
    database_url: Option<PgConnectOptions>,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self) -> Result<(), Failure> {
        // First of all: it fails sooner.
        let clock = self.database_url.clone().map(clock).transpose()?;
        let report = DoctorReport::new();
        let rows: Vec<_> = report.rows.iter().cloned().chain(clock).collect();
        self.print(&rows).or_else(broken_pipe)?;
        if report.is_strict() {
            return Ok(());
        }
        Err(Failure::Negative("--sandbox strict would refuse on this machine".to_owned()))
    }

    fn print(&self, rows: &[DoctorRow]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            return rows.iter().try_for_each(|row| {
                writeln!(out, "{}", serde_json::to_string(row).map_err(io::Error::other)?)
            });
        }
        let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        for DoctorRow { what, state, lost, remedy } in rows {
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

/// How far this machine's clock is from that of a database.
fn clock(options: PgConnectOptions) -> Result<DoctorRow, Failure> {
    let unreachable = |error| {
        Failure::Refused(format!("cannot read the clock of the database: {error}; is it running?"))
    };
    let skew = super::runtime()?.block_on(async {
        let pool = db::connect(options, 1).await.map_err(unreachable)?;
        Ok::<_, Failure>(Clock::of(&pool).await.map_err(unreachable)?.skew())
    })?;
    let word = if skew.is_negative() { "behind" } else { "ahead of" };
    let state = format!("{:.3} s {word} the database's", skew.abs().as_seconds_f64());
    let (lost, remedy) = if skew.abs() > database_clock::MAX_SKEW {
        let lost =
            "times in logs and records differ from those of results; nothing that counts does";
        (Some(lost.to_owned()), Some("let both keep time, for instance with chrony".to_owned()))
    } else {
        (None, None)
    };
    Ok(DoctorRow { what: "clock".to_owned(), state, lost, remedy })
}

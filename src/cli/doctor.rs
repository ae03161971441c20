//! `arbiter doctor`: reports what this machine can isolate and measure, with the effects and
//! remedies of missing features, and the offset of its clock from a database's clock.

use std::io::{self, Write as _};

use arbiter_coordinator::coordinator::{self, PgConnectOptions};
use arbiter_coordinator::database_clock::{self, Clock};
use arbiter_coordinator::db;
use arbiter_worker::sandbox::{DoctorReport, DoctorRow};
use clap::Args;

use crate::failure::Failure;
use crate::output::broken_pipe;

/// Check what this machine can isolate and measure; exit code 1 if `--sandbox strict` would fail.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter doctor
  arbiter doctor --json
  arbiter doctor --database-url postgres:///arbiter")]
pub(super) struct Doctor {
    /// Also compare this machine's clock with a coordinator's database, such as
    /// `postgres://USER@HOST/NAME`.
    #[arg(long, value_name = "URL", env = "ARBITER_DATABASE_URL", hide_env_values = true)]
    #[arg(value_parser = coordinator::parse_database_url)]
    database_url: Option<PgConnectOptions>,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self) -> Result<(), Failure> {
        // Read the clock first, because it fails sooner than the report.
        let clock = self.database_url.clone().map(clock).transpose()?;
        let report = DoctorReport::collect();
        let rows: Vec<_> = report.rows.iter().cloned().chain(clock).collect();
        self.print(&rows).or_else(broken_pipe)?;
        if report.is_strict() {
            return Ok(());
        }
        Err(Failure::Negative("--sandbox strict would fail on this machine".to_owned()))
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
            for (label, text) in [("lost", lost), ("remedy", remedy)] {
                if let Some(text) = text {
                    writeln!(out, "{:width$}    {label}: {text}", "")?;
                }
            }
        }
        Ok(())
    }
}

/// Measures the offset of this machine's clock from a database's clock.
fn clock(options: PgConnectOptions) -> Result<DoctorRow, Failure> {
    let unreachable = |error| {
        Failure::Refused(format!("cannot read the clock of the database: {error}; is it running?"))
    };
    let skew = super::runtime()?.block_on(async {
        let pool = db::connect(options, 1).await.map_err(unreachable)?;
        Ok::<_, Failure>(Clock::of(&pool).await.map_err(unreachable)?.skew())
    })?;
    let direction = if skew.is_negative() { "behind" } else { "ahead of" };
    let state = format!("{:.3} s {direction} the database's", skew.abs().as_seconds_f64());
    let is_large = skew.abs() > database_clock::MAX_SKEW;
    let effect = "times in logs and records differ from the database's; results are not affected";
    let effect = is_large.then(|| effect.to_owned());
    let remedy = is_large.then(|| "synchronise both clocks, for example with chrony".to_owned());
    Ok(DoctorRow { what: "clock".to_owned(), state, lost: effect, remedy })
}

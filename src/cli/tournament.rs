//! `arbiter tournament …`: tournaments and their schedules.

mod schedule;

use clap::{Args, Subcommand};

use super::Failure;

/// Tournaments and their schedules.
#[derive(Debug, Args)]
pub(super) struct Tournament {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Schedule(schedule::Show),
}

impl Tournament {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Schedule(show) => show.run(),
        }
    }
}

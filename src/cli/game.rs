//! `arbiter game …`: game packages.

mod serve;

use arbiter_games::Games;
use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Tools for game packages.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter game serve gomoku")]
pub(super) struct Game {
    #[command(subcommand)]
    command: GameCommand,
}

#[derive(Debug, Subcommand)]
enum GameCommand {
    Serve(serve::Serve),
}

impl Game {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        match self.command {
            GameCommand::Serve(serve) => serve.run(games),
        }
    }
}

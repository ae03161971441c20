//! `arbiter game …`: the games, and the tools of authors of game packages.

mod check;
mod list;
mod new;
mod pack;
mod serve;
mod show;
mod subject;

use arbiter_games::Games;
use clap::{Args, Subcommand};

use crate::failure::Failure;

/// List and show games; create, check and pack game packages.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter game list
  arbiter game show gomoku
  arbiter game show games/packages/connect4
  arbiter game new mygame --lang python
  arbiter game check games/packages/connect4
  arbiter game pack games/packages/connect4
  arbiter game serve gomoku")]
pub(super) struct Game {
    #[command(subcommand)]
    command: GameCommand,
}

#[derive(Debug, Subcommand)]
enum GameCommand {
    List(list::List),
    Show(show::Show),
    New(new::New),
    Check(check::Check),
    Pack(pack::Pack),
    Serve(serve::Serve),
}

impl Game {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        match self.command {
            GameCommand::List(list) => list.run(games),
            GameCommand::Show(show) => show.run(games),
            GameCommand::New(new) => new.run(games),
            GameCommand::Check(check) => check.run(games),
            GameCommand::Pack(pack) => pack.run(),
            GameCommand::Serve(serve) => serve.run(games),
        }
    }
}

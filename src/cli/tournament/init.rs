//! `arbiter tournament init GAME`: prints a complete tournament file.

use std::path::Path;

use arbiter_coordinator::tournament::file::TournamentFile;
use arbiter_games::Games;
use clap::Args;

use super::package::PackedPackage;
use crate::failure::Failure;
use crate::output::print;

/// Print a tournament file for a game with every key explained.
#[derive(Debug, Args)]
#[command(
    after_help = "Keys with a default have it, all others are comments, so the file works as it \
    is. The path of a package is written as given: keep the file where the path leads to the \
    package.

Examples:
  arbiter tournament init gomoku > cup.toml
  arbiter tournament init games/connect4 > cup.toml
  arbiter tournament create cup.toml"
)]
pub(super) struct Init {
    /// A built-in game, or the folder or packed file of a game package.
    #[arg(value_name = "GAME")]
    game: String,
}

impl Init {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let Self { game } = self;
        let path = Path::new(&game);
        let package = if games.find(&game).is_err() && path.exists() {
            Some(PackedPackage::load(path)?)
        } else {
            None
        };
        let name = package.as_ref().map_or(&game, |package| &package.name);
        let source = package.as_ref().map(|package| &package.source);
        let text = TournamentFile::template(games, name, &game, source).map_err(Failure::usage)?;
        print(|out| text.lines().try_for_each(|line| out.line(line)))
    }
}

//! `arbiter game serve GAME`: a built-in game as the rules of a game package.

use std::io::{self, BufRead as _, Write as _};

use arbiter_games::Games;
use arbiter_packages::ServedGame;
use clap::Args;

use crate::failure::Failure;

/// Play a built-in game as the rules of a game package: read the protocol's questions from standard
/// input, and write the answers to standard output.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter game serve gomoku

  In game.toml of a package that holds a copy of this program:
  rules = { run = [\"./arbiter\", \"game\", \"serve\", \"GAME\"] }")]
pub(super) struct Serve {
    /// A built-in game.
    game: String,
}

impl Serve {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let game = games.find(&self.game).map_err(Failure::usage)?;
        let mut served = ServedGame::new(game);
        let failed = |error: io::Error| Failure::Negative(error.to_string());
        let mut output = io::stdout().lock();
        for question in io::stdin().lock().lines() {
            let answer = served.answer(&question.map_err(failed)?).map_err(Failure::Negative)?;
            writeln!(output, "{answer}").and_then(|()| output.flush()).map_err(failed)?;
        }
        Ok(())
    }
}

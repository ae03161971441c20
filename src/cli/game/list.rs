//! `arbiter game list`: the built-in games, and packages.

use arbiter_games::{Games, seat_counts};
use clap::Args;
use serde_json::json;

use super::subject::Subject;
use crate::failure::Failure;
use crate::output::{Columns, print};

/// List the built-in games, and the packages at these paths.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter game list
  arbiter game list games/packages/* --json")]
pub(super) struct List {
    /// Folders or files of game packages.
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Print one JSON object per game.
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let mut subjects: Vec<_> =
            games.iter().map(|game| Subject { game: game.clone(), package: None }).collect();
        for path in &self.packages {
            subjects.push(Subject::find(games, path)?);
        }
        let object = |subject: &Subject| {
            let game = &subject.game;
            let seats = [game.seats.start(), game.seats.end()];
            json!({"name": game.name, "title": game.title, "version": game.rules_version,
                "package": game.package, "seats": seats, "score": game.columns})
        };
        let row = |subject: &Subject| {
            let game = &subject.game;
            let digest = game.package.as_deref().unwrap_or("built in");
            let digest = digest.chars().take(12).collect();
            let seats = seat_counts(&game.seats);
            let title = game.title.to_string();
            vec![game.name.to_string(), title, seats, game.columns.join(", "), digest]
        };
        let table = Columns::new(["GAME", "TITLE", "SEATS", "SCORE", "PACKAGE"], &[0, 1, 2, 3, 4]);
        print(|out| out.list(self.json, &subjects, object, table, row))
    }
}

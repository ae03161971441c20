//! The games that a program knows.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;

use thiserror::Error;

use crate::info::{Game, GameInfo};
use crate::{bitwa, blackjack, gomoku, tricks, wojna};

/// The games that a program knows, in the order of the documents.
#[derive(Clone, Debug)]
pub struct Games(Arc<[Game]>);

/// The error for a name that no game has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no game `{name}`; {list}")]
pub struct UnknownGame {
    name: String,
    /// The list of games, as the end of a sentence.
    list: String,
}

impl Games {
    /// The games that come with Arbiter.
    pub fn built_in() -> Self {
        let games =
            [wojna::game(), bitwa::game(), tricks::game(), blackjack::game(), gomoku::game()];
        Self(games.into())
    }

    /// The games with one more. It replaces an equal one. Game packages of one name differ if their
    /// files do.
    #[must_use]
    pub fn with(&self, info: GameInfo) -> Self {
        self.with_game(&Game::new(info))
    }

    /// The games with one more, like [`Games::with`].
    #[must_use]
    pub fn with_game(&self, game: &Game) -> Self {
        let others = self.iter().filter(|other| *other != game).cloned();
        Self(others.chain([game.clone()]).collect())
    }

    /// The games, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Game> {
        self.0.iter()
    }

    /// The game of this name.
    ///
    /// # Errors
    /// If there is none. The error lists the games.
    pub fn find(&self, name: &str) -> Result<Game, UnknownGame> {
        let game = self.iter().find(|game| game.name == name);
        game.cloned().ok_or_else(|| UnknownGame { name: name.to_string(), list: self.list() })
    }

    /// The list of games as the end of a sentence: "the games are …".
    pub fn list(&self) -> String {
        format!("the games are {}", self.names("and"))
    }

    /// The names of the games, with this conjunction before the last name.
    pub fn names(&self, conjunction: &str) -> String {
        let names: Vec<_> = self.iter().map(Game::as_str).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} {conjunction} {last}", others.join(", "))
            }
            _ => names.concat(),
        }
    }
}

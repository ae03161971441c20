//! The game that a command is about: a built-in one, or a package that is read and never run.

use std::sync::Arc;

use arbiter_games::{Game, GameInfo, Games, Seed};
use arbiter_packages::{RulesHost, RulesSession};
use arbiter_worker::package::Package;

use crate::failure::Failure;
use crate::play::game::{Located, locate};

/// A game, with its package if it is not built in.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) game: Game,
    pub(super) package: Option<Package>,
}

impl Subject {
    /// Finds a game by its name or the path of its package.
    pub(super) fn find(games: &Games, text: &str) -> Result<Self, Failure> {
        match locate(games, text)? {
            Located::BuiltIn(game) => Ok(Self { game, package: None }),
            Located::Package(package) => {
                let info: GameInfo = package.descriptor.game(&package.digest, Arc::new(NoRules));
                Ok(Self { game: Game::new(info), package: Some(*package) })
            }
        }
    }
}

/// Rules of a package that is only shown.
#[derive(Debug)]
struct NoRules;

impl RulesHost for NoRules {
    fn begin(&self, _seed: Seed) -> Result<Box<dyn RulesSession>, String> {
        Err("this command runs no rules".to_owned())
    }
}

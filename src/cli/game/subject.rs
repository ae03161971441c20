//! The game that a command is about: a built-in one, or a package that is read and never run.

use std::path::Path;
use std::sync::Arc;

use arbiter_games::{Game, GameInfo, Games, Seed};
use arbiter_packages::{RulesHost, RulesSession};
use arbiter_worker::package::Package;

use crate::failure::Failure;

/// A game, with its package if it is not built in.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) game: Game,
    pub(super) package: Option<Package>,
}

impl Subject {
    /// Finds a game by its name or the path of its package.
    pub(super) fn find(games: &Games, text: &str) -> Result<Self, Failure> {
        let unknown = match games.find(text) {
            Ok(game) => return Ok(Self { game, package: None }),
            Err(unknown) => unknown,
        };
        let path = Path::new(text);
        if !path.exists() {
            return Err(Failure::usage(format!("{unknown}; or name the folder of a game package")));
        }
        let package = load(path)?;
        let info: GameInfo = package.descriptor.game(&package.digest, Arc::new(NoRules));
        Ok(Self { game: Game::new(info), package: Some(package) })
    }
}

/// Loads the package at a path.
pub(super) fn load(path: &Path) -> Result<Package, Failure> {
    if !Package::is_at(path) {
        let cause = if path.exists() {
            "not a game package: it has no game.toml"
        } else {
            "there is no such file or folder"
        };
        return Err(Failure::usage(format!("{}: {cause}", path.display())));
    }
    Package::load(path).map_err(Failure::usage)
}

/// Rules of a package that is only shown.
#[derive(Debug)]
struct NoRules;

impl RulesHost for NoRules {
    fn begin(&self, _seed: Seed) -> Result<Box<dyn RulesSession>, String> {
        Err("this command runs no rules".to_owned())
    }
}

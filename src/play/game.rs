//! The game of a command: a built-in one by its name, or a game package by its folder or packed
//! file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbiter_games::{Game, Games};
use arbiter_worker::package::Package;
use arbiter_worker::sandbox::Host;
use arbiter_worker::seat::StopSignal;

use crate::failure::Failure;

/// Finds the game `text`: one of these games, or the package at this path, whose rules run on
/// `host` until `stop`.
///
/// # Errors
/// If there is neither, or the package is not valid.
pub(crate) fn find(
    games: &Games,
    text: &str,
    host: &Arc<Host>,
    stop: &Arc<StopSignal>,
) -> Result<Game, Failure> {
    locate(games, text)?.run(games, text, host, stop)
}

/// A game of a command before its rules can run.
#[derive(Debug)]
pub(crate) enum Located {
    /// One of the games that the program knows.
    BuiltIn(Game),
    /// A package.
    Package(Box<Package>),
}

impl Located {
    /// The game, found as `text`. The rules of a package run on `host` until `stop`.
    ///
    /// # Errors
    /// If the package has the name of one of these games, or its rules cannot run.
    pub(crate) fn run(
        &self,
        games: &Games,
        text: &str,
        host: &Arc<Host>,
        stop: &Arc<StopSignal>,
    ) -> Result<Game, Failure> {
        match self {
            Self::BuiltIn(game) => Ok(game.clone()),
            Self::Package(package) => run(games, Path::new(text), package, host, stop),
        }
    }

    /// The folders of the package's house bots; none for a built-in game.
    pub(crate) fn house_bots(&self) -> Vec<PathBuf> {
        match self {
            Self::BuiltIn(_) => Vec::new(),
            Self::Package(package) => package.house_bots(),
        }
    }
}

/// Finds the game `text`: one of these games, or the package at this path.
///
/// # Errors
/// If there is neither, or the package is not valid.
pub(crate) fn locate(games: &Games, text: &str) -> Result<Located, Failure> {
    let unknown = match games.find(text) {
        Ok(game) => return Ok(Located::BuiltIn(game)),
        Err(unknown) => unknown,
    };
    let path = Path::new(text);
    if !path.exists() {
        return Err(Failure::usage(format!("{unknown}; or name the folder of a game package")));
    }
    load(path).map(Box::new).map(Located::Package)
}

/// These games and the packages at these paths, whose rules run on `host` until `stop`.
///
/// # Errors
/// If a package has the name of one of these games, or its rules cannot run.
pub(crate) fn with_packages(
    games: &Games,
    packages: &[(PathBuf, Package)],
    host: &Arc<Host>,
    stop: &Arc<StopSignal>,
) -> Result<Games, Failure> {
    packages.iter().try_fold(games.clone(), |all, (path, package)| {
        Ok(all.with_game(&run(games, path, package, host, stop)?))
    })
}

/// Loads the package at a path.
///
/// # Errors
/// If there is none, or it is not valid.
pub(crate) fn load(path: &Path) -> Result<Package, Failure> {
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

/// The game of the package at `path`, whose rules run on `host` until `stop`.
fn run(
    games: &Games,
    path: &Path,
    package: &Package,
    host: &Arc<Host>,
    stop: &Arc<StopSignal>,
) -> Result<Game, Failure> {
    let name = &package.descriptor.name;
    if games.find(name).is_ok() {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path}: a built-in game is named {name}; choose another `name` in game.toml"
        )));
    }
    Ok(Game::new(package.game(host, stop).map_err(Failure::usage)?))
}

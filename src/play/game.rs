//! The game of a command: a built-in one by its name, or a game package by its folder or packed file.

use std::path::Path;
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
    let unknown = match games.find(text) {
        Ok(game) => return Ok(game),
        Err(unknown) => unknown,
    };
    let path = Path::new(text);
    if !path.exists() {
        return Err(Failure::usage(format!("{unknown}; or name the folder of a game package")));
    }
    if !Package::is_at(path) {
        let cause = format!("{text}: not a game package: it has no game.toml");
        return Err(Failure::usage(format!("{cause}; {}", games.list())));
    }
    load(games, path, host, stop)
}

/// These games and the package at `path`.
///
/// # Errors
/// If it is not valid.
pub(crate) fn with_package(
    games: &Games,
    path: &Path,
    host: &Arc<Host>,
    stop: &Arc<StopSignal>,
) -> Result<Games, Failure> {
    Ok(games.with_game(&load(games, path, host, stop)?))
}

/// Loads the package at a path.
fn load(
    games: &Games,
    path: &Path,
    host: &Arc<Host>,
    stop: &Arc<StopSignal>,
) -> Result<Game, Failure> {
    let package = Package::load(path).map_err(Failure::usage)?;
    let name = &package.descriptor.name;
    if games.find(name).is_ok() {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path}: a built-in game is named {name}; choose another `name` in game.toml"
        )));
    }
    Ok(Game::new(package.game(host, stop).map_err(Failure::usage)?))
}

//! The games of tournaments: built in, or game packages in their files.
//!
//! The coordinator knows a package by its descriptor and its digests. Its rules run on workers
//! only.

use std::sync::Arc;

use arbiter_games::{Game, Games, Seed, UnknownGame};
use arbiter_packages::{Descriptor, DescriptorError, RulesHost, RulesSession};
use arbiter_proto::settings::GamePackage;
use serde::Deserialize as _;
use serde_json::Value;

/// Why a tournament has no valid game.
#[derive(Debug, thiserror::Error)]
pub enum GameError {
    /// No built-in game has its name.
    #[error("{0}; or name the folder of a game package")]
    Unknown(#[from] UnknownGame),
    /// A built-in game has the name of the package.
    #[error("a built-in game is named {0}; choose another `name` in game.toml")]
    Taken(String),
    /// The package describes another game.
    #[error("the package holds the game {0}")]
    Other(String),
    /// The descriptor of the package is not valid.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// The stored package cannot be read.
    #[error("cannot read the game package: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// The game of this name: the package, or one of these games.
///
/// # Errors
/// If there is none, or the package is not valid or has another name.
pub fn find(games: &Games, name: &str, package: Option<&GamePackage>) -> Result<Game, GameError> {
    let Some(GamePackage { digest, descriptor, .. }) = package else {
        return Ok(games.find(name)?);
    };
    let descriptor = Descriptor::parse(descriptor)?;
    if descriptor.name != name {
        return Err(GameError::Other(descriptor.name));
    }
    if games.find(name).is_ok() {
        return Err(GameError::Taken(descriptor.name));
    }
    Ok(Game::new(descriptor.game(&digest.to_string(), Arc::new(NoRules))))
}

/// A package in a few words: `auction version 1, digest e753d04f24f1`.
///
/// # Errors
/// If its descriptor is not valid.
pub fn summary(package: &GamePackage) -> Result<String, DescriptorError> {
    let Descriptor { name, version, .. } = Descriptor::parse(&package.descriptor)?;
    let digest = package.digest.to_string();
    Ok(format!("{name} version {version}, digest {digest:.12}"))
}

/// The package in the stored settings of a tournament, if its game is one.
pub fn of_settings(settings: &Value) -> Result<Option<GamePackage>, GameError> {
    Ok(settings.get("package").map(GamePackage::deserialize).transpose()?)
}

/// The rules of packages, which do not run here.
#[derive(Debug)]
struct NoRules;

impl RulesHost for NoRules {
    fn begin(&self, _seed: Seed) -> Result<Box<dyn RulesSession>, String> {
        Err("rules of game packages run on workers only".to_owned())
    }
}

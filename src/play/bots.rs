//! Loads the bots of a local run and gives them distinct names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbiter_games::{BotName, BotNameError, Game};
use arbiter_proto::tricks_http::HTTP_ONLY_FOR_TRICKS;
use arbiter_worker::bot::Bot;

use crate::failure::Failure;

/// A bot and its name in the run.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: BotName,
    /// The path as the user wrote it.
    pub(crate) path: PathBuf,
    pub(crate) bot: Arc<Bot>,
}

/// Loads the bots at `paths`, builds them if necessary, and copies their files to `snapshots`, so
/// that later edits do not affect the run. Bots of the same name get the suffixes `-2`, `-3` and so
/// on.
///
/// # Errors
/// If a path holds no bot for `game`.
pub(crate) fn load(
    game: &Game,
    paths: &[PathBuf],
    snapshots: &Path,
) -> Result<Vec<Entry>, Failure> {
    let mut entries: Vec<Entry> = Vec::new();
    for path in paths {
        let bot = Bot::load(path).map_err(Failure::usage)?;
        let protocol = bot.protocol.unwrap_or(game.bots.protocol);
        if !game.supports(protocol) {
            return Err(Failure::usage(format!(
                "{}: {HTTP_ONLY_FOR_TRICKS}; use protocol = \"stdio\" or \"exec\"",
                path.display()
            )));
        }
        let is_taken = |name: &BotName| entries.iter().any(|entry| entry.name == *name);
        let name = distinct(&bot.name, is_taken).map_err(Failure::usage)?;
        let bot = bot.snapshot(&snapshots.join(name.as_str())).map_err(Failure::usage)?;
        entries.push(Entry { name, path: path.clone(), bot: Arc::new(bot) });
    }
    Ok(entries)
}

/// What people call an entry: its name, with its path if others have the same one.
pub(crate) fn label(entries: &[Entry], entry: usize) -> String {
    let Entry { name, path, bot } = &entries[entry];
    let namesakes = entries.iter().filter(|other| other.bot.name == bot.name).count();
    if namesakes > 1 { format!("{name} ({})", path.display()) } else { name.to_string() }
}

/// `name`, or the first numbered variant of it that is not taken.
pub(crate) fn distinct(
    name: &BotName,
    is_taken: impl Fn(&BotName) -> bool,
) -> Result<BotName, BotNameError> {
    let mut variant = name.clone();
    let mut number = 1;
    while is_taken(&variant) {
        number += 1;
        variant = format!("{name}-{number}").parse()?;
    }
    Ok(variant)
}

//! Loads the bots of a local run and gives them distinct names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbiter_games::{BotName, BotNameError, Game};
use arbiter_proto::tricks_http::HTTP_ONLY_FOR_TRICKS;
use arbiter_worker::bot::Bot;

use crate::failure::Failure;

/// A bot of a run.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The name that rules and records use. Different from the names of all other entries.
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

/// What people call the entries: `name`, or `name (path)` if a bot from another path has the same
/// name. Copies of a bot, from the same path, are `name#1`, `name#2` and so on.
pub(crate) fn labels(entries: &[Entry]) -> Vec<String> {
    let label = |(index, entry): (usize, &Entry)| {
        let Entry { path, bot, .. } = entry;
        let namesakes = || entries.iter().filter(|other| other.bot.name == bot.name);
        let is_copy = |other: &&Entry| other.path == *path;
        let copies = namesakes().filter(is_copy).count();
        let number = if copies > 1 {
            let earlier = entries[..index].iter().filter(is_copy).count();
            format!("#{}", earlier + 1)
        } else {
            String::new()
        };
        let place = if namesakes().count() > copies {
            format!(" ({})", path.display())
        } else {
            String::new()
        };
        format!("{}{number}{place}", bot.name)
    };
    entries.iter().enumerate().map(label).collect()
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

//! `arbiter bot new GAME`: writes a complete bot, to begin with.

use std::path::{Path, PathBuf};

use arbiter_games::{BotName, Games};
use arbiter_packages::{PackageFiles, Starter};
use clap::{Args, Subcommand};

use super::new_folder;
use crate::failure::Failure;
use crate::output::print;
use crate::play::game::{Located, locate};

/// Write a complete bot, to begin with.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter bot new gomoku
  arbiter bot new gomoku --lang c mybot
  arbiter bot new games/packages/rps --lang javascript mybot")]
pub(super) struct Bot {
    #[command(subcommand)]
    command: BotCommand,
}

#[derive(Debug, Subcommand)]
enum BotCommand {
    New(New),
}

/// Write a complete small bot for a game, to begin with.
///
/// The bot plays by the rules as it is, and passes `arbiter preflight`. In Python it is the bot
/// that the text for authors of bots shows: docs/bots/GAME.md, or BOT.md of a game package. In
/// other languages it is one of the bots that come with the game.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter bot new gomoku
  arbiter bot new gomoku --lang c mybot
  arbiter bot new games/packages/rps --lang javascript mybot
  arbiter preflight gomoku mybot")]
struct New {
    /// A built-in game, or a game package: its folder or packed file.
    game: String,
    /// The language of the bot. An error lists those of the game.
    #[arg(long, value_name = "LANG", default_value = "python")]
    lang: String,
    /// The folder to write, whose name becomes that of the bot. By default GAME-bot.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Bot {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        match self.command {
            BotCommand::New(new) => new.run(games),
        }
    }
}

impl New {
    fn run(self, games: &Games) -> Result<(), Failure> {
        let Self { game, lang, folder } = &self;
        let located = locate(games, game)?;
        let (name, starters) = match &located {
            Located::BuiltIn(game) => (&*game.name, Starter::of_game(game)),
            Located::Package(package) => {
                let bundle = package.pack().map_err(Failure::usage)?;
                let files = PackageFiles::read(bundle.bytes()).map_err(Failure::usage)?;
                (package.descriptor.name.as_str(), Starter::of_package(&files))
            }
        };
        let starter = starters.iter().find(|starter| starter.language == lang).ok_or_else(|| {
            let languages: Vec<_> = starters.iter().map(|starter| starter.language).collect();
            Failure::usage(match languages[..] {
                [] => format!(
                    "{name} has no bot to begin with: its BOT.md shows none, and no house bot is \
                     a single program"
                ),
                _ => format!(
                    "{name} has no bot in {lang} to begin with; choose one of {}",
                    languages.join(", ")
                ),
            })
        })?;
        let folder = folder.clone().unwrap_or_else(|| PathBuf::from(format!("{name}-bot")));
        let bot = bot_name(&folder)?;
        let files = starter.files(bot.as_str());
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        new_folder::write(&folder, files)?;
        let folder = folder.display();
        print(|out| {
            out.line(&format!(
                "{folder}: a bot for {name} in {lang}: {}. Next:",
                paths.join(", ")
            ))?;
            out.line(&format!("  arbiter preflight {game} {folder}"))?;
            out.line(&format!("  arbiter try {game} {folder}"))
        })
    }
}

/// The name of the bot in a folder.
fn bot_name(folder: &Path) -> Result<BotName, Failure> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.parse().map_err(|error| {
        Failure::usage(format!("{}: the folder gives the bot its name: {error}", folder.display()))
    })
}

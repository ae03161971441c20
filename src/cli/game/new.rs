//! `arbiter game new`: writes a complete example of a game package.

use std::path::{Path, PathBuf};

use arbiter_games::Games;
use arbiter_packages::{BotFile, Descriptor, GAME_TOML};
use clap::{Args, ValueEnum};

use crate::cli::new_folder;
use crate::failure::Failure;
use crate::output::print;

/// Write a complete game package with a small game, to begin with.
///
/// The game is playable as it is: rules with pictures, a text for authors of bots, and two bots.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter game new mygame --lang python
  arbiter game new mygame --lang c --in games")]
pub(super) struct New {
    /// The name of the game, and of the new folder.
    #[arg(value_name = "NAME")]
    name: String,
    /// The language of the rules. C becomes a WebAssembly module; others run as programs.
    #[arg(long)]
    lang: Language,
    /// The folder that gets the new folder.
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    parent: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    Python,
    Rust,
    C,
    #[value(alias = "js")]
    Javascript,
}

/// A file of a template: its path in the package, and its text.
type TemplateFile = (&'static str, &'static str);

/// The files of every language.
const COMMON: [TemplateFile; 6] = [
    (GAME_TOML, include_str!("templates/common/game.toml")),
    ("BOT.md", include_str!("templates/common/BOT.md")),
    ("bots/careful/bot.toml", "name = \"careful\"\nrun = [\"sh\", \"bot.sh\"]\n"),
    ("bots/careful/bot.sh", include_str!("templates/common/careful.sh")),
    ("bots/greedy/bot.toml", "name = \"greedy\"\nrun = [\"sh\", \"bot.sh\"]\n"),
    ("bots/greedy/bot.sh", include_str!("templates/common/greedy.sh")),
];

impl Language {
    /// The files of the rules, the one to change first.
    fn files(self) -> &'static [TemplateFile] {
        match self {
            Self::Python => &[
                ("rules.py", include_str!("templates/python/rules.py")),
                (".gitignore", "__pycache__/\n"),
            ],
            Self::Javascript => &[
                ("rules.js", include_str!("templates/javascript/rules.js")),
                (".gitignore", "node_modules/\n"),
            ],
            Self::Rust => &[
                ("src/main.rs", include_str!("templates/rust/main.rs")),
                ("Cargo.toml", include_str!("templates/rust/Cargo.toml")),
                ("build.sh", include_str!("templates/rust/build.sh")),
                (".gitignore", "/rules\n/target/\n"),
            ],
            Self::C => &[
                ("rules.c", include_str!("templates/c/rules.c")),
                ("build.sh", include_str!("templates/c/build.sh")),
                (".gitignore", "/rules.wasm\n"),
            ],
        }
    }

    /// The value of `rules` in the descriptor.
    fn rules(self) -> &'static str {
        match self {
            Self::Python => r#"{ run = ["python3", "rules.py"] }"#,
            Self::Javascript => r#"{ run = ["node", "rules.js"] }"#,
            Self::Rust => r#"{ run = ["./rules"], build = ["./build.sh"] }"#,
            Self::C => r#"{ wasm = "rules.wasm", build = ["./build.sh"] }"#,
        }
    }
}

impl New {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let Self { name, lang, parent } = &self;
        let fill = |text: &str| {
            text.replace("{{name}}", name)
                .replace("{{title}}", &title(name))
                .replace("{{rules}}", lang.rules())
        };
        if games.find(name).is_ok() {
            return Err(Failure::usage(format!("a built-in game is named {name}; choose another")));
        }
        Descriptor::parse(&fill(COMMON[0].1)).map_err(|error| {
            let cause = error.cause.strip_prefix("name: ").unwrap_or(&error.cause);
            Failure::usage(format!("`{name}` cannot be the name of a game: {cause}"))
        })?;
        // A path that starts with `./` would be longer than needed.
        let folder = if parent == Path::new(".") { name.into() } else { parent.join(name) };
        let files = COMMON.iter().chain(lang.files()).map(|(path, text)| BotFile {
            is_executable: text.starts_with("#!"),
            ..BotFile::text(path, &fill(text))
        });
        new_folder::write(&folder, files)?;
        let next = self.next_steps(&folder);
        print(|out| next.iter().try_for_each(|line| out.line(line)))
    }

    fn next_steps(&self, folder: &Path) -> Vec<String> {
        let path = folder.display();
        let rules = self.lang.files()[0].0;
        vec![
            format!("{path}: a game that can be played, with its rules in {rules}. Next:"),
            format!("  arbiter game check {path}"),
            format!("  arbiter play {path} {path}/bots/careful {path}/bots/greedy --games 10"),
            format!("Then change game.toml, {rules}, BOT.md and bots/ to your game."),
        ]
    }
}

/// The title of a game from its name: each word begins with a capital letter.
fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('-').map(capital).collect::<Vec<_>>().join(" ")
}

//! Starter kits: complete small bots for authors.
//!
//! The text for authors of bots shows a complete bot in a block of code that names its language. In
//! other languages the house bots of the game serve, if they need no more than their own folder.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use arbiter_games::GameInfo;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};
use toml::{Table, Value};

use crate::package_files::{BotFile, PackageFiles};

/// The manifest of a bot.
const BOT_TOML: &str = "bot.toml";

/// Maximum length of a manifest, in bytes: that of workers.
const MAX_MANIFEST: usize = 64 << 10;

/// The program of a bot that is compiled.
pub(crate) const PROGRAM: &str = "bot";

/// The beginning of the manifest of a starter kit.
const MANIFEST_HELP: &str = "\
# `name` is the name of the bot in tournaments. `run` is the command that starts it in this directory,
# and `build`, if there is one, the command that builds it. `stderr = true` stores the end of its
# standard error with each record.
";

/// A language of starter kits.
#[derive(Debug)]
struct Language {
    /// Its name, as after the fence of a block of code in Markdown.
    name: &'static str,
    /// The interpreter or compiler.
    program: &'static str,
    is_compiled: bool,
    /// The ending of the names of source files.
    extension: &'static str,
}

const fn language(
    name: &'static str,
    program: &'static str,
    is_compiled: bool,
    extension: &'static str,
) -> Language {
    Language { name, program, is_compiled, extension }
}

/// The languages, the first that is offered first. Compilers need only the files of the bot.
const LANGUAGES: [Language; 7] = [
    language("python", "python3", false, "py"),
    language("javascript", "node", false, "js"),
    language("perl", "perl", false, "pl"),
    language("ruby", "ruby", false, "rb"),
    language("c", "cc", true, "c"),
    language("cpp", "c++", true, "cpp"),
    language("rust", "rustc", true, "rs"),
];

/// A complete bot in a language.
#[derive(Clone, Debug, PartialEq)]
pub struct Starter {
    /// The name of the language: a word of lowercase letters.
    pub language: &'static str,
    /// The manifest without its name.
    manifest: Table,
    /// All files but the manifest.
    files: Vec<BotFile>,
}

impl Starter {
    /// The starter kits of a built-in game, one a language.
    pub fn of_game(game: &GameInfo) -> Vec<Self> {
        let bots = game.guide.bots.iter();
        let bots = bots.map(|bot| bot.iter().map(|(path, text)| BotFile::text(path, text)));
        starters(game.guide.text, bots.map(Iterator::collect))
    }

    /// The starter kits of a package, one a language.
    pub fn of_package(package: &PackageFiles) -> Vec<Self> {
        starters(package.bot_md.as_deref().unwrap_or_default(), package.bots.iter().cloned())
    }

    /// The command that builds it, if it needs one.
    pub fn build(&self) -> Option<String> {
        let words = self.manifest.get("build")?.as_array()?;
        Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
    }

    /// The files of the kit for a bot of this name, the manifest first.
    pub fn files(&self, name: &str) -> Vec<BotFile> {
        let name = Value::from(name);
        let manifest = format!("{MANIFEST_HELP}\nname = {name}\n{}", self.manifest);
        let manifest = BotFile::text(BOT_TOML, &manifest);
        [manifest].into_iter().chain(self.files.iter().cloned()).collect()
    }

    /// The kit for a bot of this name as a tar archive, compressed with gzip. Its files are in a
    /// folder of this name.
    ///
    /// # Errors
    /// If a path is too long for the archive.
    pub fn tar_gz(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for BotFile { path, contents, is_executable } in self.files(name) {
            let mut header = Header::new_gnu();
            header.set_mode(if is_executable { 0o755 } else { 0o644 });
            header.set_size(contents.len() as u64);
            archive.append_data(&mut header, Path::new(name).join(path), contents.as_slice())?;
        }
        archive.into_inner()?.finish()
    }

    /// A bot of one file with this manifest, which has no name.
    pub(crate) fn of_file(
        language: &'static str,
        manifest: Table,
        path: &str,
        contents: Vec<u8>,
        is_executable: bool,
    ) -> Self {
        let file = BotFile { path: path.to_owned(), contents, is_executable };
        Self { language, manifest, files: vec![file] }
    }

    /// The bot in a block of code.
    fn of_code(language: &Language, code: &str) -> Self {
        let Language { name, program, is_compiled, extension } = *language;
        let source = format!("{PROGRAM}.{extension}");
        let command =
            |words: &[&str]| Value::Array(words.iter().map(|word| Value::from(*word)).collect());
        let mut manifest = Table::new();
        if is_compiled {
            manifest.insert("run".to_owned(), command(&[&format!("./{PROGRAM}")]));
            manifest.insert("build".to_owned(), command(&[program, "-O", "-o", PROGRAM, &source]));
        } else {
            manifest.insert("run".to_owned(), command(&[program, &source]));
        }
        Self { language: name, manifest, files: vec![BotFile::text(&source, code)] }
    }

    /// A house bot, if it needs no more than its own folder.
    fn of_bot(mut files: Vec<BotFile>) -> Option<Self> {
        let at = files.iter().position(|file| file.path == BOT_TOML)?;
        let text = String::from_utf8(files.remove(at).contents).ok()?;
        if text.len() > MAX_MANIFEST {
            return None;
        }
        let mut manifest: Table = text.parse().ok()?;
        manifest.remove("name");
        let first = |key: &str| manifest.get(key)?.as_array()?.first()?.as_str();
        let program = first("run")?;
        let build = first("build");
        let by = |language: &&Language| {
            language.program == build.unwrap_or(program) && language.is_compiled == build.is_some()
        };
        let language = LANGUAGES.iter().find(by)?.name;
        if build.is_some() {
            let program = program.trim_start_matches("./");
            files.retain(|file| file.path != program);
        }
        Some(Self { language, manifest, files })
    }
}

/// The first starter kit of each language: from the text for authors, and of these bots.
fn starters(guide: &str, bots: impl Iterator<Item = Vec<BotFile>>) -> Vec<Starter> {
    let code = LANGUAGES.iter().filter_map(|language| {
        code_block(guide, language.name).map(|code| Starter::of_code(language, &code))
    });
    let mut by_language = BTreeMap::new();
    for starter in code.chain(bots.filter_map(Starter::of_bot)) {
        by_language.entry(starter.language).or_insert(starter);
    }
    LANGUAGES.iter().filter_map(|language| by_language.remove(language.name)).collect()
}

/// The first block of code of a language in a text.
fn code_block(text: &str, language: &str) -> Option<String> {
    let is_begin = |line: &str| line.strip_prefix("```").is_some_and(|tag| tag.trim() == language);
    let mut lines = text.lines().skip_while(|line| !is_begin(line));
    lines.next()?;
    let code = lines.take_while(|line| !line.starts_with("```"));
    Some(code.flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bot(manifest: &str, file: &str) -> Vec<BotFile> {
        vec![BotFile::text(BOT_TOML, manifest), BotFile::text(file, "the source")]
    }

    #[test]
    fn the_first_bot_of_each_language_is_offered() {
        let guide = "# A game\n```\nplain\n```\n```python\none\ntwo\n```\n```python\nlater\n```\n";
        let bots = [
            bot("name = \"a\"\nrun = [\"python3\", \"a.py\"]", "a.py"),
            bot("name = \"b\"\nrun = [\"node\", \"b.js\"]\nprotocol = \"exec\"", "b.js"),
            bot("name = \"c\"\nrun = [\"./c\"]\nbuild = [\"cc\", \"-o\", \"c\", \"c.c\"]", "c"),
            bot("name = \"d\"\nrun = [\"./d\"]\nbuild = [\"sh\", \"build.sh\"]", "d.rs"),
            bot("not a manifest", "e.py"),
        ];
        let starters = starters(guide, bots.into_iter());
        let languages: Vec<_> = starters.iter().map(|starter| starter.language).collect();
        assert_eq!(languages, ["python", "javascript", "c"]);
        let files = starters[0].files("mine");
        assert_eq!(files[1], BotFile::text("bot.py", "one\ntwo\n"));
        let manifest = str::from_utf8(&files[0].contents).unwrap();
        assert!(
            manifest.contains("\nname = \"mine\"\nrun = [\"python3\", \"bot.py\"]\n"),
            "{manifest}"
        );
        let manifest = String::from_utf8(starters[1].files("mine")[0].contents.clone()).unwrap();
        assert!(manifest.contains("protocol = \"exec\"") && !manifest.contains("\"b\""));
        assert_eq!(starters[2].files("mine").len(), 1, "the program is left out");
    }
}

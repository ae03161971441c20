//! A bot that is one file: a source file of a known language, a script, or a program.
//!
//! The name of the file gives the bot its name, and its ending the language. The manifest that such
//! a file lacks is made here, for submissions from the command line and from browsers.

use arbiter_games::BotName;
use thiserror::Error;
use toml::{Table, Value};

use crate::starter::{PROGRAM, Starter};

/// Maximum size of the file, in bytes.
pub const MAX_SOURCE_FILE: usize = 4 << 20;

/// How a language is run: the command words, in which `FILE` is the file and `STEM` its name
/// without the ending.
struct SourceLanguage {
    /// Its name, as in starter kits.
    name: &'static str,
    /// The endings of its files.
    endings: &'static [&'static str],
    build: &'static [&'static str],
    run: &'static [&'static str],
}

const fn interpreted(
    name: &'static str,
    endings: &'static [&'static str],
    run: &'static [&'static str],
) -> SourceLanguage {
    SourceLanguage { name, endings, build: &[], run }
}

const fn compiled(
    name: &'static str,
    endings: &'static [&'static str],
    build: &'static [&'static str],
) -> SourceLanguage {
    SourceLanguage { name, endings, build, run: &["./bot"] }
}

const SOURCE_LANGUAGES: [SourceLanguage; 9] = [
    interpreted("python", &["py"], &["python3", "FILE"]),
    interpreted("javascript", &["js", "mjs", "cjs"], &["node", "FILE"]),
    interpreted("perl", &["pl"], &["perl", "FILE"]),
    interpreted("ruby", &["rb"], &["ruby", "FILE"]),
    compiled("c", &["c"], &["cc", "-O2", "-o", PROGRAM, "FILE", "-lm"]),
    compiled("cpp", &["cpp", "cc", "cxx"], &["c++", "-O2", "-o", PROGRAM, "FILE"]),
    compiled("rust", &["rs"], &["rustc", "-O", "-o", PROGRAM, "FILE"]),
    compiled("go", &["go"], &["go", "build", "-o", PROGRAM, "FILE"]),
    SourceLanguage {
        name: "java",
        endings: &["java"],
        build: &["javac", "FILE"],
        run: &["java", "-cp", ".", "STEM"],
    },
];

/// Why a file is not a bot: its name, the cause and a remedy in one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceFileError {
    /// It has no name, from which the language would follow.
    #[error("the file has no name; give it a name with an ending, such as bot.py")]
    NoName,
    /// Its name or its contents cannot be those of a bot.
    #[error("the file {file} {cause}")]
    Unsuitable {
        /// The name of the file.
        file: String,
        /// What is wrong and a remedy. It begins with a verb.
        cause: String,
    },
}

/// A bot of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFile {
    /// The name of the file without its ending, if a bot can have this name.
    pub name: Option<BotName>,
    /// The bot, whose manifest lacks only its name.
    pub bot: Starter,
}

impl SourceFile {
    /// The endings of files of the known languages, each with its dot.
    pub fn endings() -> impl Iterator<Item = String> {
        let endings = SOURCE_LANGUAGES.iter().flat_map(|language| language.endings);
        endings.map(|ending| format!(".{ending}"))
    }

    /// Whether the file of this name is a source file of a known language, by its ending.
    pub fn has_known_ending(file: &str) -> bool {
        language_of(file).is_some()
    }

    /// Whether a file can be run as it is, by its beginning with the whole first line: a program in
    /// the format of Linux, or a script. Linux does not find the interpreter of a script whose
    /// first line ends with CR LF.
    pub fn is_program(beginning: &[u8]) -> bool {
        let first = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
        beginning.starts_with(b"\x7fELF") || first.starts_with(b"#!") && !first.ends_with(b"\r")
    }

    /// The bot in the file of this name, without folders, and with these contents. A script with a
    /// `#!` line and a program for this system are run as they are.
    ///
    /// # Errors
    /// If the file is none of them, or too large.
    pub fn new(file: &str, contents: Vec<u8>) -> Result<Self, SourceFileError> {
        if file.is_empty() {
            return Err(SourceFileError::NoName);
        }
        let to_error = |cause: String| SourceFileError::Unsuitable { file: file.to_owned(), cause };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
        if !file.chars().all(is_name) || file.starts_with(['-', '.']) {
            let rule = "use letters, digits, dots, underscores, hyphens and plus signs, and do not \
                        begin with a dot or a hyphen";
            return Err(to_error(format!("has a name that a bot's file cannot have; {rule}")));
        }
        if contents.is_empty() {
            return Err(to_error("is empty".to_owned()));
        }
        if contents.len() > MAX_SOURCE_FILE {
            let max = MAX_SOURCE_FILE >> 20;
            return Err(to_error(format!(
                "is larger than {max} MiB; put it into an archive with a bot.toml"
            )));
        }
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let is_program = Self::is_program(&contents);
        let Some(language) = language_of(file).filter(|_| !is_program) else {
            if !is_program {
                return Err(to_error(format!(
                    "is neither an archive nor a source file of a known language ({}); put the \
                     bot into an archive with a bot.toml",
                    Self::endings().collect::<Vec<_>>().join(", ")
                )));
            }
            let run = vec![format!("./{file}")];
            let bot = Starter::of_file("program", manifest(run, Vec::new()), file, contents, true);
            return Ok(Self { name: stem.parse().ok(), bot });
        };
        let words = |words: &[&str]| -> Vec<String> {
            let word = |word: &&str| word.replace("FILE", file).replace("STEM", stem);
            words.iter().map(word).collect()
        };
        let manifest = manifest(words(language.run), words(language.build));
        let bot = Starter::of_file(language.name, manifest, file, contents, false);
        Ok(Self { name: stem.parse().ok(), bot })
    }
}

/// The language of the file of this name, by its ending.
fn language_of(file: &str) -> Option<&'static SourceLanguage> {
    let (_, ending) = file.rsplit_once('.')?;
    SOURCE_LANGUAGES.iter().find(|language| language.endings.contains(&ending))
}

/// The manifest with these commands.
fn manifest(run: Vec<String>, build: Vec<String>) -> Table {
    let command = |words: Vec<String>| Value::Array(words.into_iter().map(Value::String).collect());
    let mut manifest = Table::new();
    manifest.insert("run".to_owned(), command(run));
    if !build.is_empty() {
        manifest.insert("build".to_owned(), command(build));
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package_files::BotFile;

    /// The manifest of the bot in a file, and the permission of the file.
    fn bot(file: &str, contents: &str) -> (String, bool) {
        let source = SourceFile::new(file, contents.into()).unwrap();
        let files: Vec<BotFile> = source.bot.files("x");
        assert_eq!((files.len(), files[1].path.as_str()), (2, file));
        let manifest = String::from_utf8(files[0].contents.clone()).unwrap();
        let lines = manifest.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        (lines.skip(1).collect::<Vec<_>>().join(" "), files[1].is_executable)
    }

    #[test]
    fn the_ending_tells_the_language() {
        for (file, contents, manifest, is_executable) in [
            ("a.py", "print()", r#"run = ["python3", "a.py"]"#, false),
            ("a.py", "#!/usr/bin/env python3\r\nprint()", r#"run = ["python3", "a.py"]"#, false),
            ("a.py", "#!/usr/bin/env pypy3\nprint()", r#"run = ["./a.py"]"#, true),
            ("noending", "#!/bin/sh\n", r#"run = ["./noending"]"#, true),
            ("tool.exe", "\x7fELF\x02", r#"run = ["./tool.exe"]"#, true),
            (
                "my.cpp",
                "int main() {}",
                r#"build = ["c++", "-O2", "-o", "bot", "my.cpp"] run = ["./bot"]"#,
                false,
            ),
            (
                "Bot.java",
                "class Bot {}",
                r#"build = ["javac", "Bot.java"] run = ["java", "-cp", ".", "Bot"]"#,
                false,
            ),
        ] {
            let (mut found, executable) = bot(file, contents);
            // The order of the keys in the manifest does not matter.
            if let Some((run, build)) = found.split_once(" build = ") {
                found = format!("build = {build} {run}");
            }
            assert_eq!((found.as_str(), executable), (manifest, is_executable), "{file}");
        }
        let name = |file: &str| SourceFile::new(file, b"x".to_vec()).unwrap().name;
        assert_eq!(name("my-bot.2.py").unwrap().as_str(), "my-bot.2");
        assert_eq!(name("bot+.py"), None);
    }

    #[test]
    fn other_files_are_refused_with_the_remedy() {
        let error = |file: &str, contents: &[u8]| {
            SourceFile::new(file, contents.to_vec()).unwrap_err().to_string()
        };
        let unknown = error("a.cobol", b"x");
        assert!(unknown.starts_with("the file a.cobol is neither an archive nor"), "{unknown}");
        assert!(unknown.contains(".py, ") && unknown.contains(".java"), "{unknown}");
        assert!(error("a.py", b"").ends_with("a.py is empty"));
        for name in ["../a.py", "a b.py", "-a.py", "a\n.py"] {
            let sentence = format!(
                "the file {name} has a name that a bot's file cannot have; use letters, digits, \
                 dots, underscores, hyphens and plus signs, and do not begin with a dot or a hyphen"
            );
            assert_eq!(error(name, b"x"), sentence);
        }
        let expected = "the file has no name; give it a name with an ending, such as bot.py";
        assert_eq!(error("", b"x"), expected);
        assert!(error("a.py", &vec![b'x'; MAX_SOURCE_FILE + 1]).contains("larger than 4 MiB"));
    }
}

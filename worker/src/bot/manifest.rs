//! The two formats of a bot's manifest.

use std::path::Path;
use std::{fmt, io};

use arbiter_games::BotName;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use arbiter_games::Protocol;

use super::BotError;
use crate::bounded_read::{read_text_at_most, within};

/// The file name of Arbiter's format.
pub(crate) const BOT_TOML: &str = "bot.toml";

/// The format of KotH challenges: four lines with name, command, arguments, and `0` or `1` for
/// standard error.
const META: &str = "meta";

/// Maximum size of a manifest, in bytes. Parsing TOML takes many times the memory of its text.
pub(crate) const MAX_MANIFEST: u64 = 64 << 10;

/// Maximum length of a command in a message, in bytes. A longer one gets another example.
const MAX_EXAMPLE: usize = 60;

/// The contents of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) name: BotName,
    #[serde(deserialize_with = "command")]
    pub(crate) run: Vec<String>,
    #[serde(
        default,
        deserialize_with = "optional_command",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) build: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<Protocol>,
    #[serde(default)]
    pub(crate) stderr: bool,
}

impl Manifest {
    /// Formats the manifest as a `bot.toml`.
    pub(crate) fn to_toml(&self) -> String {
        toml::to_string(self).expect("names and lists of texts can be written as TOML")
    }
}

/// Reads a command: a program and its arguments.
fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(CommandVisitor)
}

fn optional_command<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    command(deserializer).map(Some)
}

/// Reads a list of texts. The error for a single text shows it as a list.
struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of texts such as [\"./bot\"]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element()? {
            words.push(word);
        }
        Ok(words)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
        let short = Some(text).filter(|text| text.len() <= MAX_EXAMPLE);
        let words = short.and_then(shlex::split).filter(|words| !words.is_empty());
        let example = words.unwrap_or_else(|| vec!["./bot".to_owned()]);
        Err(E::custom(format!("write a list such as {}", toml::Value::from(example))))
    }
}

/// The `bot.toml` of a built bot: `text` without `build`. `None` if it has no `build`.
pub(crate) fn once_built(text: &[u8]) -> Option<String> {
    let mut manifest = parse_toml(str::from_utf8(text).ok()?).ok()?;
    manifest.build.take()?;
    Some(manifest.to_toml())
}

/// Reads the manifest of the bot in `directory`, and checks that its commands are not empty.
pub(crate) fn read(directory: &Path) -> Result<Manifest, BotError> {
    let text = |name: &str| {
        let result =
            within(directory, name).and_then(|path| read_text_at_most(&path, MAX_MANIFEST));
        match result {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let remedy = "keep only the bot's name and its commands in it";
                Err(BotError::new(&directory.join(name), format!("{error}; {remedy}")))
            }
            Err(error) => Err(BotError::new(&directory.join(name), error.to_string())),
        }
    };
    let (name, result) = if let Some(text) = text(BOT_TOML)? {
        (BOT_TOML, parse_toml(&text))
    } else if let Some(text) = text(META)? {
        (META, parse_meta(&text))
    } else {
        let cause = format!(
            "not a bot: it has neither a {BOT_TOML} nor a {META} file; add a {BOT_TOML}, or \
             submit the single file"
        );
        return Err(BotError::new(directory, cause));
    };
    let manifest = result.map_err(|cause| BotError::new(&directory.join(name), cause))?;
    let is_empty = |command: &[String]| command.first().is_none_or(String::is_empty);
    if is_empty(&manifest.run) || manifest.build.as_deref().is_some_and(is_empty) {
        let cause = "a command is empty; name a program, as in run = [\"./bot\"]";
        return Err(BotError::new(&directory.join(name), cause));
    }
    Ok(manifest)
}

fn parse_toml(text: &str) -> Result<Manifest, String> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().map_or("", |span| &text[..span.start]);
        let line = before.matches('\n').count() + 1;
        format!("line {line}: {}", error.message().replace('\n', " "))
    })
}

fn parse_meta(text: &str) -> Result<Manifest, String> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let (&[name, command, arguments, stderr], rest) =
        lines.split_first_chunk().ok_or_else(|| {
            let count = lines.len();
            format!("expected four lines (name, command, arguments, 0 or 1), found {count}")
        })?;
    if rest.iter().any(|line| !line.is_empty()) {
        return Err("unexpected text after the fourth line; remove it".to_owned());
    }
    let split = |line: &str, what: &str| {
        shlex::split(line).ok_or_else(|| format!("the {what} have an unclosed quote"))
    };
    let mut run = split(command, "command's words")?;
    run.extend(split(arguments, "arguments")?);
    let stderr = match stderr {
        "0" => false,
        "1" => true,
        other => return Err(format!("line 4 must be 0 or 1 for standard error, not `{other}`")),
    };
    let name = name.parse().map_err(|error| format!("line 1: {error}"))?;
    Ok(Manifest { name, run, build: None, protocol: None, stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn koth_meta() {
        let manifest = parse_meta("five\npython3\nmain.py --name 'a b'\n1\n").unwrap();
        assert_eq!(manifest.run, ["python3", "main.py", "--name", "a b"]);
        assert!(manifest.stderr && manifest.name.as_str() == "five");
        assert_eq!(parse_meta("five\n./five\n\n0").unwrap().run, ["./five"]);
        for invalid in
            ["", "a\n./b\n\n", "a\n./b\n\nyes", "a b\n./b\n\n0", "a\n./b\n'\n0", "a\nb\n\n0\nc"]
        {
            assert!(parse_meta(invalid).is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn bot_toml() {
        let manifest = parse_toml("name = \"x\"\nrun = [\"./x\"]\nprotocol = \"exec\"\n").unwrap();
        assert_eq!((manifest.protocol, manifest.stderr), (Some(Protocol::Exec), false));
        let error = parse_toml("name = \"x\"\nrun = [\"./x\"]\nprotocol = \"smtp\"\n").unwrap_err();
        assert!(error.starts_with("line 3: ") && error.contains("smtp"), "{error}");
        assert!(parse_toml("name = \"x\"\nruns = []\n").unwrap_err().contains("runs"));
    }

    #[test]
    fn a_command_that_is_one_text_is_shown_as_a_list() {
        let error = |lines: &str| parse_toml(&format!("name = \"x\"\n{lines}")).unwrap_err();
        assert_eq!(
            error("run = [\"java\", \"X\"]\nbuild = \"javac 'My Bot.java'\"\n"),
            "line 3: write a list such as [\"javac\", \"My Bot.java\"]"
        );
        assert_eq!(error("run = \"./x\"\n"), "line 2: write a list such as [\"./x\"]");
        for other in ["", "'", &"x ".repeat(1000)] {
            let text = toml::Value::from(other);
            let expected = "line 2: write a list such as [\"./bot\"]";
            assert_eq!(error(&format!("run = {text}\n")), expected, "{other}");
        }
        assert!(error("run = 5\n").contains("a list of texts such as [\"./bot\"]"));
        assert!(error("run = [5]\n").starts_with("line 2: "));
    }

    #[test]
    fn hostile_toml_is_refused() {
        let length = usize::try_from(MAX_MANIFEST).unwrap();
        let repeated = |part: &str| part.repeat(length / part.len());
        let keys: Vec<_> = (0..length / 8).map(|number| format!("k{number:x}=1\n")).collect();
        let keys = keys.concat();
        let tables: Vec<_> = (0..length / 8).map(|number| format!("[t{number:x}]\n")).collect();
        let tables = tables.concat();
        let deep = format!("[{}a]\n", "a.".repeat(60));
        let texts = [
            repeated("["),
            format!("a={}", repeated("[")),
            format!("a={}", repeated("{a=")),
            format!("{}a=1", repeated("a.")),
            format!("[{}a]", repeated("a.")),
            format!("a=[{}]", repeated("[],")),
            format!("a=[{}]", repeated("{},")),
            deep.repeat(length / deep.len()),
            repeated("[[a.b.c]]\n"),
            format!("a='{}", repeated("'")),
            keys,
            tables,
        ];
        for text in texts {
            let begin = text.chars().take(20).collect::<String>();
            let error = parse_toml(&text).expect_err(&begin);
            assert!(error.len() < 1000, "{begin}: {} bytes of error", error.len());
        }
    }
}

//! The parsed tournament file: a tree of keys and values with the line of each key.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::FileError;
use super::serde_words::in_words;

/// Maximum length of a value in a message, in characters. Longer values are left out.
pub(super) const MAX_VALUE_LEN: usize = 48;

/// A key: its section (empty at the top) and its name.
type Key = (&'static str, String);

/// A tournament file, parsed from TOML or JSON.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) root: Map<String, Value>,
    /// The lines of keys.
    lines: BTreeMap<Key, usize>,
}

/// All sections.
pub(super) const SECTIONS: [&str; 9] =
    ["params", "schedule", "clock", "limits", "submissions", "public", "audit", "house", "package"];

/// The section of a stage; there is one for each.
pub(super) const STAGE: &str = "stage";

/// The name of a key of a stage, numbered from 1.
fn stage_key(number: usize, key: &str) -> String {
    format!("{number} {key}")
}

impl Source {
    /// Reads TOML.
    pub(super) fn of_toml(text: &str) -> Result<Self, FileError> {
        let table = table(text)?;
        let mut source = Self { root: Map::new(), lines: BTreeMap::new() };
        for (key, value) in table.get_ref() {
            let name = key.get_ref().to_string();
            source.lines.insert(("", name.clone()), line(text, &key.span()));
            let section = SECTIONS.into_iter().find(|section| *section == name);
            if let (Some(section), DeValue::Table(keys)) = (section, value.get_ref()) {
                for key in keys.keys() {
                    let place = (section, key.get_ref().to_string());
                    source.lines.insert(place, line(text, &key.span()));
                }
            }
            if let (STAGE, DeValue::Array(stages)) = (name.as_str(), value.get_ref()) {
                source.add_stage_lines(text, stages);
            }
            let value = Value::deserialize(value.clone().into_deserializer())
                .map_err(|error| parse_error(text, &error))?;
            source.root.insert(name, value);
        }
        Ok(source)
    }

    /// Keeps the lines of the `[[stage]]` sections and of their keys.
    fn add_stage_lines(&mut self, text: &str, stages: &DeArray<'_>) {
        for (number, stage) in (1..).zip(stages) {
            self.lines.insert((STAGE, stage_key(number, "")), line(text, &stage.span()));
            let Some(keys) = stage.get_ref().as_table() else { continue };
            for key in keys.keys() {
                let place = (STAGE, stage_key(number, key.get_ref()));
                self.lines.insert(place, line(text, &key.span()));
            }
        }
    }

    /// Reads JSON.
    pub(super) fn of_json(stored: &Value) -> Result<Self, FileError> {
        let root = stored.as_object().cloned().ok_or_else(|| FileError {
            line: None,
            what: "the tournament file".to_owned(),
            cause: "it must be stored as an object".to_owned(),
        })?;
        Ok(Self { root, lines: BTreeMap::new() })
    }

    /// A section; empty if it is missing.
    pub(super) fn section(&self, name: &'static str) -> Result<Map<String, Value>, FileError> {
        match self.root.get(name) {
            None => Ok(Map::new()),
            Some(Value::Object(keys)) => Ok(keys.clone()),
            Some(_) => Err(self.blame("", name, &format!("it must be a section; write [{name}]"))),
        }
    }

    /// The error for a key.
    pub(super) fn blame<C: ToString + ?Sized>(
        &self,
        section: &'static str,
        key: &str,
        cause: &C,
    ) -> FileError {
        let value = match section {
            "" => self.root.get(key),
            _ => self.root.get(section).and_then(|section| section.get(key)),
        };
        let bracket = if section.is_empty() { String::new() } else { format!("[{section}] ") };
        let value_text = value.map(format_value).unwrap_or_default();
        FileError {
            line: self.lines.get(&(section, key.to_owned())).copied(),
            what: format!("{bracket}{key}{value_text}"),
            cause: in_words(one_line(&cause.to_string())),
        }
    }

    /// The error for a key of a stage, numbered from 1; for the whole stage if `key` is empty.
    pub(super) fn blame_stage<C: ToString + ?Sized>(
        &self,
        number: usize,
        key: &str,
        cause: &C,
    ) -> FileError {
        let value = self.root.get(STAGE).and_then(|stages| stages.get(number - 1)?.get(key));
        let value_text = value.map(format_value).unwrap_or_default();
        let space = if key.is_empty() { "" } else { " " };
        let line = |key: &str| self.lines.get(&(STAGE, stage_key(number, key))).copied();
        FileError {
            line: line(key).or_else(|| line("")),
            what: format!("[[{STAGE}]] number {number}{space}{key}{value_text}"),
            cause: in_words(one_line(&cause.to_string())),
        }
    }

    /// The error for a section as a whole.
    pub(super) fn blame_section<C: ToString + ?Sized>(
        &self,
        section: &'static str,
        cause: &C,
    ) -> FileError {
        FileError {
            line: self.lines.get(&("", section.to_owned())).copied(),
            what: format!("[{section}]"),
            cause: in_words(one_line(&cause.to_string())),
        }
    }
}

/// Parses TOML with the position of each key.
pub(super) fn table(text: &str) -> Result<Spanned<DeTable<'_>>, FileError> {
    DeTable::parse(text).map_err(|error| parse_error(text, &error))
}

/// The error of the TOML parser.
fn parse_error(text: &str, error: &toml::de::Error) -> FileError {
    FileError {
        line: error.span().map(|span| line(text, &span)),
        what: "the tournament file".to_owned(),
        cause: format!("it is not TOML: {}", one_line(error.message())),
    }
}

/// The line on which a span begins, from 1.
pub(super) fn line(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    1 + before.filter(|byte| **byte == b'\n').count()
}

/// A value for a message. Empty if the value is long.
fn format_value(value: &Value) -> String {
    let text = value.to_string();
    let is_short = text.chars().count() <= MAX_VALUE_LEN && !value.is_object();
    if is_short { format!(" = {text}") } else { String::new() }
}

/// A message on one line.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

//! Edits of a tournament file: the file with some keys changed, and how two files differ.

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::Games;
use serde_json::{Map, Value, json};

use super::parse_keys::{known_keys, list};
use super::toml_tree::{SECTIONS, Source};
use super::{FileError, TournamentFile, object};
use crate::db::tournaments::{Replays, Tournament};

/// The file of a tournament as an organiser edited it, with the text for error messages.
#[derive(Debug)]
pub struct EditedFile {
    /// The edited file.
    pub file: TournamentFile,
    source: Source,
}

impl EditedFile {
    /// The error for a key with dots, such as `limits.memory`.
    pub fn blame(&self, key: &str, cause: &str) -> FileError {
        let (section, name) = split(key);
        self.source.blame(section, name, cause)
    }
}

impl TournamentFile {
    /// The file of a stored tournament, without its seed.
    ///
    /// # Errors
    /// If this release cannot read it.
    pub fn stored(games: &Games, row: &Tournament) -> Result<Self, FileError> {
        Ok(Self {
            presentation: row.presentation.clone(),
            beacon: row.beacon.as_ref().map(|beacon| beacon.name.clone()),
            ..Self::from_json(games, &row.settings)?
        })
    }

    /// Another text of this file. Keys that it leaves out have their defaults.
    ///
    /// # Errors
    /// Like [`TournamentFile::parse`].
    pub fn rewritten(games: &Games, text: &str) -> Result<EditedFile, FileError> {
        let source = Source::of_toml(text)?;
        Ok(EditedFile { file: Self::read(games, &source)?, source })
    }

    /// This file with the keys of `changes`, which are lines of a tournament file. The keys of
    /// `unset`, with dots, return to their defaults. A key may lack its section if no other section
    /// has it.
    ///
    /// # Errors
    /// Like [`TournamentFile::parse`], without lines.
    pub fn with_changes(
        &self,
        games: &Games,
        changes: &str,
        unset: &[String],
    ) -> Result<EditedFile, FileError> {
        let without_line = |error: FileError| FileError { line: None, ..error };
        let mut root = self.all_keys();
        let known = known_keys(self.game());
        for key in unset {
            remove(&mut root, &known, key)?;
        }
        let changed = Source::of_toml(changes).map_err(without_line)?;
        let blame = |key: &str, cause: &str| without_line(changed.blame("", key, cause));
        // The parameters of this game would be errors in another one.
        let game = changed.root.get("game");
        if game.is_some_and(|game| game.as_str() != Some(self.game().as_str())) {
            let cause = "it cannot change in an existing tournament: the matches follow from it; \
                         create another tournament";
            return Err(blame("game", cause));
        }
        for (key, value) in &changed.root {
            set(&mut root, &known, key, value.clone()).map_err(|cause| blame(key, &cause))?;
        }
        let source = Source::of_json(&Value::Object(root))?;
        Ok(EditedFile { file: Self::read(games, &source).map_err(without_line)?, source })
    }

    /// All keys of this file as a tree, besides the seed.
    pub(super) fn all_keys(&self) -> Map<String, Value> {
        let mut root = object(&self.to_json());
        root.insert("audit".to_owned(), json!(self.audit));
        root["house"]["ranked"] = json!(self.house.ranked);
        let presentation = &self.presentation;
        let texts = [
            ("title", &presentation.title),
            ("description", &presentation.description),
            ("beacon", &self.beacon),
        ];
        for (key, text) in texts {
            root.extend(text.as_ref().map(|text| (key.to_owned(), json!(text))));
        }
        root.insert("public".to_owned(), json!({ "replays": presentation.replays }));
        root
    }

    /// The values of all keys, by their names with dots, such as `limits.memory`.
    pub fn values(&self) -> BTreeMap<String, Value> {
        let mut values = BTreeMap::new();
        for (key, value) in self.all_keys() {
            match value {
                Value::Object(keys) if SECTIONS.contains(&key.as_str()) => values
                    .extend(keys.into_iter().map(|(name, value)| (format!("{key}.{name}"), value))),
                value => drop(values.insert(key, value)),
            }
        }
        values
    }

    /// When everyone may see the records of its matches.
    pub fn replays(&self) -> Replays {
        self.presentation.replays
    }
}

/// Removes a key, so that it has its default.
fn remove(
    root: &mut Map<String, Value>,
    known: &BTreeSet<String>,
    key: &str,
) -> Result<(), FileError> {
    let error = |cause| FileError { line: None, what: key.to_owned(), cause };
    let found = meanings(known, key);
    let full = match found.as_slice() {
        [] => return Err(error("there is no such key".to_owned())),
        [full] => *full,
        several => return Err(error(ambiguous(key, several))),
    };
    let (section, name) = split(full);
    match root.get_mut(section) {
        Some(Value::Object(keys)) => keys.shift_remove(name),
        _ => root.shift_remove(name),
    };
    Ok(())
}

/// Sets a key, or some keys of a section.
fn set(
    root: &mut Map<String, Value>,
    known: &BTreeSet<String>,
    key: &str,
    value: Value,
) -> Result<(), String> {
    let found = meanings(known, key);
    let full = match (&value, found.as_slice()) {
        // A game may have a parameter with the name of a section, such as `clock` of wojna.
        (Value::Object(_), _) if SECTIONS.contains(&key) => key,
        (_, []) => key,
        (_, [full]) => *full,
        (_, several) => return Err(ambiguous(key, several)),
    };
    match (split(full), value) {
        (("", name), Value::Object(changed)) => match root.get_mut(name) {
            Some(Value::Object(keys)) => keys.extend(changed),
            _ => drop(root.insert(name.to_owned(), Value::Object(changed))),
        },
        (("", name), value) => drop(root.insert(name.to_owned(), value)),
        ((section, name), value) => {
            let keys = root.entry(section).or_insert_with(|| json!({}));
            keys[name] = value;
        }
    }
    Ok(())
}

/// The known keys that `key` may mean: the key itself, or keys of sections with this name.
fn meanings<'a>(known: &'a BTreeSet<String>, key: &str) -> Vec<&'a str> {
    match known.get(key) {
        Some(full) => vec![full.as_str()],
        None => known.iter().map(String::as_str).filter(|full| split(full).1 == key).collect(),
    }
}

/// The cause of the error for a key that several sections have.
fn ambiguous(key: &str, keys: &[&str]) -> String {
    let sections: Vec<_> = keys.iter().map(|full| split(full).0).collect();
    format!(
        "there is no such key; {key} is a key of {}: write {}",
        list(&sections),
        keys.join(" or ")
    )
}

/// The section and the name of a key with dots; the section is empty at the top.
fn split(key: &str) -> (&'static str, &str) {
    let section = key.split_once('.').and_then(|(section, name)| {
        let section = SECTIONS.into_iter().find(|known| *known == section)?;
        Some((section, name))
    });
    section.unwrap_or(("", key))
}

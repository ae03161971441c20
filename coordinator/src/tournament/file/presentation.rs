//! `title`, `description` and `[public]`: what the public sees of a tournament besides its results.

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::super::beacon::single_line;
use super::FileError;
use super::parse_keys::{section, top};
use super::toml_tree::Source;
use crate::db::tournaments::{Presentation, Replays};

/// Maximum length of a title, in characters.
pub(super) const MAX_TITLE: usize = 100;
/// Maximum length of a description, in bytes.
pub(super) const MAX_DESCRIPTION: usize = 20_000;

/// Reads the keys.
pub(super) fn read(source: &Source) -> Result<Presentation, FileError> {
    Ok(Presentation {
        title: title(source)?,
        description: description(source)?,
        replays: replays(source)?,
    })
}

/// The title; none if it is empty.
fn title(source: &Source) -> Result<Option<String>, FileError> {
    let text = top::<String>(source, "title")?.filter(|text| !text.trim().is_empty());
    let line = text.as_deref().map(|text| single_line(text, MAX_TITLE)).transpose();
    let line = line.map_err(|cause| source.blame("", "title", &cause))?;
    Ok(line.map(ToOwned::to_owned))
}

/// The description; none if it is empty.
fn description(source: &Source) -> Result<Option<String>, FileError> {
    let Some(text) = top::<String>(source, "description")? else { return Ok(None) };
    let text = markdown(&text, MAX_DESCRIPTION)
        .map_err(|cause| source.blame("", "description", &cause))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Trims a Markdown text and checks it: at most `max` bytes, and no control characters besides tabs
/// and ends of lines.
pub(crate) fn markdown(text: &str, max: usize) -> Result<String, String> {
    // Browsers send CRLF line ends.
    let text = text.replace("\r\n", "\n").trim().to_owned();
    let is_strange = |c: char| c.is_control() && !['\n', '\t'].contains(&c);
    if let Some(c) = text.chars().find(|c| is_strange(*c)) {
        return Err(format!("it has the control character U+{:04X}; leave it out", u32::from(c)));
    }
    if text.len() > max {
        return Err(format!("it has {} bytes; write at most {max}", text.len()));
    }
    Ok(text)
}

/// `[public] replays`.
fn replays(source: &Source) -> Result<Replays, FileError> {
    let mut official = Map::new();
    official.insert("replays".to_owned(), json!(Replays::Always));
    section(source, "public", &official, &["replays"], |keys| {
        let value = keys.get("replays").cloned().unwrap_or(Value::Null);
        let words = Replays::ALL.map(|replays| format!("\"{replays}\"")).join(", ");
        Replays::deserialize(value).map_err(|_| format!("write one of {words}"))
    })
}

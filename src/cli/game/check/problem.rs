//! What a check found, with the question to the rules.

use serde_json::Value;

use super::dialogue::{Dialogue, Exchange};

/// Maximum number of characters of a question or an answer in a message.
const MAX_QUOTED: usize = 600;

/// A defect of a package.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    /// What is wrong.
    pub(super) cause: String,
    /// The match, in words.
    pub(super) place: Option<String>,
    /// The last question to the rules.
    pub(super) question: Option<String>,
    /// Their answer to it.
    pub(super) answer: Option<String>,
}

impl Problem {
    /// A problem that has nothing to do with a question.
    pub(super) fn new(cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), place: None, question: None, answer: None }
    }

    /// A problem with the last answer of a dialogue.
    pub(super) fn after(dialogue: &Dialogue, cause: impl Into<String>) -> Self {
        dialogue.last().map_or_else(|| Self::new(""), |last| Self::at(&last)).because(cause)
    }

    /// A problem with an answer.
    pub(super) fn at(exchange: &Exchange) -> Self {
        let answer = exchange.answer.as_ref().ok().map(|answer| quoted(answer));
        let question = Some(quoted(&exchange.question));
        Self { cause: String::new(), place: None, question, answer }
    }

    /// The same with this cause.
    pub(super) fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..self }
    }

    /// The same in this match.
    pub(super) fn in_match(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }
}

/// A question or an answer with the lengths of its pictures instead of them.
fn quoted(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) if text.contains("\"svg\"") => {
            leave_pictures_out(&mut value);
            cut(&value.to_string())
        }
        _ => cut(text),
    }
}

/// Replaces the pictures in a value by their lengths.
fn leave_pictures_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(svg) if key == "svg" => {
                        *svg = format!("… {} characters", svg.chars().count());
                    }
                    member => leave_pictures_out(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(leave_pictures_out),
        _ => {}
    }
}

/// The beginning of a long text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

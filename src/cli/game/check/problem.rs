//! What a check found, with the question to the rules.

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
        let answer = exchange.answer.as_ref().ok().map(|answer| cut(answer));
        let question = Some(cut(&exchange.question));
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

/// The beginning of a long text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

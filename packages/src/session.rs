//! The rules of one match while they run, shared by the match and its copies.

use std::sync::{Arc, Mutex, PoisonError};

use arbiter_games::Seat;

use crate::answer_error::quote;
use crate::protocol::{LegalReplies, MAX_LEGAL, Question};
use crate::rules_host::RulesSession;

/// Maximum number of questions in a match. Otherwise a match by rules that never end it would last
/// until the output of its bots is too much, and they would forfeit.
const MAX_QUESTIONS: u64 = 1_000_000;

/// Maximum length of all answers in a match, in bytes: they become the record.
const MAX_ANSWERS: usize = 256 << 20;

/// How a match reaches its rules. A copy of a match only reads.
#[derive(Debug, Default)]
pub(crate) enum Access {
    /// The rules do not run yet.
    #[default]
    NotStarted,
    /// The match moves the rules on.
    Owner(Arc<Session>),
    /// A copy asks only what changes nothing.
    Reader(Arc<Session>),
}

impl Clone for Access {
    fn clone(&self) -> Self {
        match self {
            Self::NotStarted => Self::NotStarted,
            Self::Owner(session) | Self::Reader(session) => Self::Reader(Arc::clone(session)),
        }
    }
}

/// The rules of one match while they run.
#[derive(Debug)]
pub(crate) struct Session(Mutex<Running>);

#[derive(Debug)]
struct Running {
    rules: Box<dyn RulesSession>,
    /// The number of the last question that moved the match on.
    questions: u64,
    /// The length of all answers, in bytes.
    answered: usize,
}

impl Session {
    pub(crate) fn new(rules: Box<dyn RulesSession>) -> Self {
        Self(Mutex::new(Running { rules, questions: 0, answered: 0 }))
    }

    /// Asks the question with this number, which moves the match on.
    ///
    /// # Errors
    /// How the rules failed, with the question.
    pub(crate) fn ask(&self, number: u64, line: &str) -> Result<String, String> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.questions = number;
        running.ask(line).map_err(|cause| format!("{cause}; asked: {}", quote(line)))
    }

    /// The replies of a seat that are legal after the question with this number. Empty if the rules
    /// cannot list them, fail, are busy, or have heard more questions.
    pub(crate) fn legal_replies(&self, number: u64, seat: Seat) -> Vec<String> {
        let Ok(mut running) = self.0.try_lock() else { return Vec::new() };
        if running.questions != number {
            return Vec::new();
        }
        let line = serde_json::to_string(&Question::Legal(seat)).expect("a seat has a text");
        let Ok(text) = running.rules.ask(&line) else { return Vec::new() };
        let answer = serde_json::from_str::<LegalReplies>(&text);
        let legal = answer.map(|answer| answer.legal).unwrap_or_default();
        if legal.len() > MAX_LEGAL { Vec::new() } else { legal }
    }
}

impl Running {
    /// Asks a question that moves the match on.
    fn ask(&mut self, line: &str) -> Result<String, String> {
        if self.questions > MAX_QUESTIONS {
            return Err(format!("they have not ended the match after {MAX_QUESTIONS} questions"));
        }
        let answer = self.rules.ask(line)?;
        self.answered += answer.len();
        if self.answered > MAX_ANSWERS {
            return Err(format!("their answers in this match exceed {MAX_ANSWERS} bytes"));
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules_host::RulesSession;

    /// Rules that answer everything with a text of this length.
    #[derive(Debug)]
    struct Endless(usize);

    impl RulesSession for Endless {
        fn ask(&mut self, _: &str) -> Result<String, String> {
            Ok("x".repeat(self.0))
        }
    }

    #[test]
    fn a_match_has_an_end() {
        let session = Session::new(Box::new(Endless(1)));
        assert!(session.ask(MAX_QUESTIONS, "{}").is_ok());
        let error = session.ask(MAX_QUESTIONS + 1, "{}").unwrap_err();
        assert!(error.contains("not ended the match after 1000000 questions"), "{error}");

        let session = Session::new(Box::new(Endless(MAX_ANSWERS / 4)));
        for number in 1..=4 {
            assert!(session.ask(number, "{}").is_ok());
        }
        let error = session.ask(5, "{}").unwrap_err();
        assert!(error.contains("their answers in this match exceed"), "{error}");
    }
}

//! A bot that is a function: for tests of the referee without processes.

use std::fmt;
use std::time::Instant;

use arbiter_games::{Micros, Spent};

use super::{Answer, Failure, Remains, Seat};
use crate::fault::Fault;

/// What a function answers: the words, or a failure, and the time they took.
pub(super) type Spoken = (Result<String, Failure>, Micros);

/// A seat whose bot is a function from words to words.
pub struct MemorySeat<F> {
    bot: F,
    /// Everything the bot heard without owing an answer.
    pub told: Vec<String>,
    dismissed: bool,
}

impl<F: FnMut(&str) -> Spoken> MemorySeat<F> {
    /// Seats a function.
    pub fn new(bot: F) -> Self {
        Self { bot, told: Vec::new(), dismissed: false }
    }
}

impl<F> fmt::Debug for MemorySeat<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySeat").field("dismissed", &self.dismissed).finish_non_exhaustive()
    }
}

impl<F: FnMut(&str) -> Spoken> Seat for MemorySeat<F> {
    fn ask(&mut self, text: &str, _limit: Micros) -> Result<Answer, Fault> {
        assert!(!self.dismissed, "a dismissed bot is never asked again");
        let (reply, wall) = (self.bot)(text);
        let spent = Spent { wall, cpu: Micros::ZERO };
        Ok(Answer { reply: reply.map(String::into_bytes), spent })
    }

    fn tell(&mut self, text: &str) {
        assert!(!self.dismissed, "a dismissed bot is never told anything again");
        self.told.push(text.to_owned());
    }

    fn starting_up(&self) -> bool {
        false
    }

    fn dismiss(&mut self) {
        self.dismissed = true;
    }

    fn hang_up(&mut self) {}

    fn farewell(&mut self, _deadline: Instant) -> Result<(), Fault> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<Remains, Fault> {
        Ok(Remains::default())
    }
}

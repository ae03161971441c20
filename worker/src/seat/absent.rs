//! The seat of a bot that cannot play: nothing is started for it, and it forfeits what it is asked.

use std::time::Instant;

use arbiter_games::{Forfeit, Micros};

use super::{Answer, Remains, Seat};
use crate::fault::Fault;

/// A place at the table that stays empty.
#[derive(Debug)]
pub struct AbsentSeat(String);

impl AbsentSeat {
    /// The seat of a bot that is not there, and why: words for its author.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// The same, for a table.
    pub(crate) fn boxed(why: impl Into<String>) -> Box<dyn Seat> {
        Box::new(Self::new(why))
    }
}

impl Seat for AbsentSeat {
    fn ask(&mut self, _text: &str, _limit: Micros) -> Result<Answer, Fault> {
        Ok(Answer::failed(Forfeit::Gone, self.0.clone()))
    }

    fn tell(&mut self, _text: &str) {}

    fn starting_up(&self) -> bool {
        false
    }

    fn dismiss(&mut self) {}

    fn hang_up(&mut self) {}

    fn farewell(&mut self, _deadline: Instant) -> Result<(), Fault> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<Remains, Fault> {
        Ok(Remains::default())
    }
}

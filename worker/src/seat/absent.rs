//! The seat of a bot that cannot play: nothing runs for it, and it forfeits what it is asked.

use arbiter_games::{Forfeit, Micros};

use super::pipes::Tail;
use super::{ProtocolWarnings, SeatDriver, SeatUsage, TimedReply, remains};
use crate::fault::Fault;
use crate::sandbox::Jail;

/// A place at the table that stays empty.
#[derive(Debug)]
pub(crate) struct AbsentSeat {
    /// Words for the bot's author.
    why: String,
    /// What was opened for it, if its program could not be started there.
    jail: Option<Jail>,
}

impl AbsentSeat {
    /// The seat of a bot that is not there, and why: words for its author.
    pub(crate) fn boxed(why: impl Into<String>, jail: Option<Jail>) -> Box<dyn SeatDriver> {
        Box::new(Self { why: why.into(), jail })
    }
}

impl SeatDriver for AbsentSeat {
    fn ask(&mut self, _text: &str, _limit: Micros) -> Result<TimedReply, Fault> {
        Ok(TimedReply::failed(Forfeit::Gone, self.why.clone()))
    }

    fn dismiss(&mut self) {}

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        match self.jail {
            Some(jail) => remains(jail, Tail::default(), ProtocolWarnings::default()),
            None => Ok(SeatUsage::default()),
        }
    }
}

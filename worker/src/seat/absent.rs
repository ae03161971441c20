//! Seat driver for a bot that cannot play: it forfeits every request.

use arbiter_games::{Forfeit, Micros};

use super::pipes::Tail;
use super::{ProtocolWarnings, SeatDriver, SeatUsage, TimedReply, seat_usage};
use crate::fault::Fault;
use crate::sandbox::Jail;

/// A seat without a running program.
#[derive(Debug)]
pub(crate) struct AbsentSeat {
    /// Why the bot cannot play, for its author.
    reason: String,
    /// The opened jail, if only the start of the program failed.
    jail: Option<Jail>,
}

impl AbsentSeat {
    /// A driver for a bot that cannot play, with the reason for its author.
    pub(crate) fn boxed(reason: impl Into<String>, jail: Option<Jail>) -> Box<dyn SeatDriver> {
        Box::new(Self { reason: reason.into(), jail })
    }
}

impl SeatDriver for AbsentSeat {
    fn ask(&mut self, _text: &str, _limit: Micros) -> Result<TimedReply, Fault> {
        Ok(TimedReply::failed(Forfeit::Gone, self.reason.clone()))
    }

    fn dismiss(&mut self) {}

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        match self.jail {
            Some(jail) => seat_usage(jail, Tail::default(), ProtocolWarnings::default()),
            None => Ok(SeatUsage::default()),
        }
    }
}

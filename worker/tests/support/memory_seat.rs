//! Seats with functions instead of processes, replies and a log of forfeits, for tests of the
//! referee.

#![allow(dead_code, reason = "the benchmark of the referee uses seats alone")]

use std::fmt;

use arbiter_games::{Forfeit, Micros, TimeSpent};
use arbiter_worker::fault::Fault;
use arbiter_worker::referee::{EventSink, MatchEvent};
use arbiter_worker::seat::{SeatDriver, SeatFailure, SeatUsage, TimedReply};

/// A reply of a function: a text or a failure, and the time it took.
type FunctionReply = (Result<String, SeatFailure>, Micros);

/// A seat whose bot is a function from messages to replies.
pub(crate) struct MemorySeat<F> {
    bot: F,
    dismissed: bool,
}

impl<F: FnMut(&str) -> FunctionReply> MemorySeat<F> {
    /// A seat for a function.
    pub(crate) fn new(bot: F) -> Self {
        Self { bot, dismissed: false }
    }
}

impl<F> fmt::Debug for MemorySeat<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySeat").field("dismissed", &self.dismissed).finish_non_exhaustive()
    }
}

impl<F: FnMut(&str) -> FunctionReply> SeatDriver for MemorySeat<F> {
    fn ask(&mut self, text: &str, _limit: Micros) -> Result<TimedReply, Fault> {
        assert!(!self.dismissed, "a dismissed bot is never asked again");
        let (reply, wall) = (self.bot)(text);
        let spent = TimeSpent { wall, cpu: Micros::ZERO };
        Ok(TimedReply { reply: reply.map(String::into_bytes), spent })
    }

    fn notify(&mut self, _text: &str) {
        assert!(!self.dismissed, "a dismissed bot never receives a message again");
    }

    fn dismiss(&mut self) {
        self.dismissed = true;
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        Ok(SeatUsage::default())
    }
}

/// Collects forfeits with their evidence.
#[derive(Default)]
pub(crate) struct Forfeits(pub(crate) Vec<(u8, Forfeit, String)>);

impl EventSink for Forfeits {
    fn on_event(&mut self, _time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        if let MatchEvent::Forfeited { seat, forfeit, detail, .. } = event {
            self.0.push((seat.number(), forfeit, detail.to_owned()));
        }
        Ok(())
    }
}

/// A bot's replies at gomoku: it opens, takes black, and then places stones that never form a row.
pub(crate) fn gomoku_reply(request: &str) -> String {
    match request.as_bytes()[0] {
        b'A' => "(7,7)(7,8)(8,8)".to_owned(),
        b'B' => "B".to_owned(),
        _ => {
            let ply: Option<u32> = request.split(' ').next().and_then(|ply| ply.parse().ok());
            let ply = ply.expect("a request for a move begins with the number of its ply");
            format!("({},{})", ply / 7 * 2, ply % 7 * 2)
        }
    }
}

//! The referee: sends a game's requests to the seats, measures the replies, and reports events.
//!
//! The loop depends on no game and no protocol. It only decides whether a reply came in time. The
//! game decides the consequence of a late, illegal or missing reply.

use std::time::Instant;

use arbiter_games::{
    ClockRules, ExpectedReply, Forfeit, Illegal, MatchState, Message, Micros, Note, Seat,
    SeatResult, Step, TimeSpent,
};

use crate::fault::Fault;
use crate::seat::pipes::since;
use crate::seat::{GRACE, SeatDriver, SeatFailure, TimedReply};

/// An event of a match, for records, hashes and statistics. It borrows its data, so that unused
/// events cost no allocation.
#[derive(Clone, Copy, Debug)]
pub enum MatchEvent<'a> {
    /// The referee sent a text to a seat.
    Sent {
        /// The seat.
        seat: Seat,
        /// One protocol unit.
        text: &'a str,
        /// Whether the text contains the time. Then the transcript's hash does not include it.
        tells_time: bool,
    },
    /// A seat replied in time.
    Replied {
        /// The seat.
        seat: Seat,
        /// The reply without its frame.
        reply: &'a [u8],
        /// Time of the reply.
        spent: TimeSpent,
        /// Whether the request contains the time.
        tells_time: bool,
    },
    /// A seat forfeited.
    Forfeited {
        /// The seat.
        seat: Seat,
        /// The kind of forfeit.
        forfeit: Forfeit,
        /// Time of the reply, unless `Replied` reported it already.
        spent: Option<TimeSpent>,
        /// The evidence, for the bot's author.
        detail: &'a str,
    },
    /// The game wrote a note for people and verification.
    Noted(&'a Note),
}

/// Receives the events of a match.
pub trait EventSink {
    /// Handles an event. `time` counts from the start of the match.
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault>;
}

/// The referee of one match.
#[derive(Debug)]
pub struct Referee<'a, W> {
    clock: ClockRules,
    start_time: Instant,
    events: &'a mut W,
    margin_used: Micros,
}

impl<'a, W: EventSink> Referee<'a, W> {
    /// A referee that measures time by `clock` and reports to `events`. The match begins now.
    pub fn new(clock: ClockRules, events: &'a mut W) -> Self {
        Self { clock, start_time: Instant::now(), events, margin_used: Micros::ZERO }
    }

    /// The largest part of the clock's margin used by a reply in time, so far.
    pub fn margin_used(&self) -> Micros {
        self.margin_used
    }

    /// Plays `game` to its end, and then waits for the bots to exit. After a fault the match does
    /// not count.
    pub fn play(
        &mut self,
        game: &mut dyn MatchState,
        drivers: &mut [Box<dyn SeatDriver>],
    ) -> Result<Vec<SeatResult>, Fault> {
        let mut is_dismissed = vec![false; drivers.len()];
        loop {
            match game.step() {
                Step::Send(message) => self.send(game, drivers, &message)?,
                Step::Dismiss(seat) => {
                    is_dismissed[seat.index()] = true;
                    drivers[seat.index()].dismiss();
                }
                Step::Note(note) => self.report(MatchEvent::Noted(&note))?,
                Step::Illegal(seat, illegal) => self.report_illegal(seat, &illegal)?,
                Step::Fault(cause) => return Err(Fault::Rules(cause)),
                Step::Over(standings) => {
                    wait_for_exits(drivers.iter_mut().zip(is_dismissed))?;
                    return Ok(standings);
                }
            }
        }
    }

    /// Sends a text to a seat and passes the reply to the game.
    fn send(
        &mut self,
        game: &mut dyn MatchState,
        drivers: &mut [Box<dyn SeatDriver>],
        message: &Message,
    ) -> Result<(), Fault> {
        let &Message { seat, ref text, expected_reply, allowance, tells_time } = message;
        self.report(MatchEvent::Sent { seat, text, tells_time })?;
        if expected_reply != ExpectedReply::None {
            wait_for_others(drivers, seat)?;
        }
        let driver = drivers[seat.index()].as_mut();
        if expected_reply == ExpectedReply::None {
            driver.notify(text);
            return Ok(());
        }
        let is_first = driver.is_starting_up();
        let TimedReply { reply, spent } =
            driver.ask(text, self.clock.wall_limit(allowance, is_first))?;
        let charge = self.clock.charge(spent, allowance, is_first);
        if charge.late.is_none() {
            self.margin_used = self.margin_used.max(charge.cost - allowance.time());
        }
        let result = match in_time(reply, charge.late) {
            Ok(reply) => {
                self.report(MatchEvent::Replied { seat, reply: &reply, spent, tells_time })?;
                game.receive_reply(Ok(&String::from_utf8_lossy(&reply)), charge.cost)
            }
            Err(SeatFailure { forfeit, detail }) => {
                let spent = Some(spent);
                self.report(MatchEvent::Forfeited { seat, forfeit, spent, detail: &detail })?;
                game.receive_reply(Err(forfeit), charge.cost)
            }
        };
        result.or_else(|illegal| self.report_illegal(seat, &illegal))
    }

    fn report_illegal(&mut self, seat: Seat, Illegal(detail): &Illegal) -> Result<(), Fault> {
        let forfeit = Forfeit::Illegal;
        self.report(MatchEvent::Forfeited { seat, forfeit, spent: None, detail })
    }

    fn report(&mut self, event: MatchEvent<'_>) -> Result<(), Fault> {
        self.events.on_event(since(self.start_time), event)
    }
}

/// Waits until all other bots are stopped, before the referee asks the bot at `seat`. This includes
/// bots that start up: a bot with sixty processes could delay the start-up of another bot.
fn wait_for_others(drivers: &mut [Box<dyn SeatDriver>], seat: Seat) -> Result<(), Fault> {
    let mut others = drivers.iter_mut().enumerate().filter(|(index, _)| *index != seat.index());
    others.try_for_each(|(_, other)| other.wait_until_stopped())
}

/// Waits for all bots that were not dismissed to exit, within one common deadline.
fn wait_for_exits<'a>(
    drivers: impl Iterator<Item = (&'a mut Box<dyn SeatDriver>, bool)>,
) -> Result<(), Fault> {
    let mut running: Vec<_> = drivers.filter(|(_, is_dismissed)| !is_dismissed).collect();
    for (driver, _) in &mut running {
        driver.close_input();
    }
    let deadline = Instant::now() + GRACE;
    running.into_iter().try_for_each(|(driver, _)| driver.wait_for_exit(deadline))
}

/// Returns the reply if it came in time. Otherwise returns a forfeit with the delay as evidence.
pub(crate) fn in_time(
    reply: Result<Vec<u8>, SeatFailure>,
    late: Option<String>,
) -> Result<Vec<u8>, SeatFailure> {
    match (reply, late) {
        (Ok(_), Some(late)) => Err(SeatFailure { forfeit: Forfeit::Clock, detail: late }),
        (Err(SeatFailure { forfeit: Forfeit::Clock, detail }), late) => {
            let delay = late.unwrap_or_else(|| "no reply in time".to_owned());
            let detail = if detail.is_empty() { delay } else { format!("{delay}; {detail}") };
            Err(SeatFailure { forfeit: Forfeit::Clock, detail })
        }
        (reply, _) => reply,
    }
}

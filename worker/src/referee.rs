//! The referee: brings a game's words to the seats, measures, and reports what happened.
//!
//! The loop knows no game and no protocol. It decides nothing but whether an answer came in time:
//! what a late, illegal or missing answer means is for the game to say.

use std::time::Instant;

use arbiter_games::{
    ClockRules, Forfeit, MatchState, Micros, Note, Owes, Say, Seat, SeatResult, Step, TimeSpent,
};

use crate::fault::Fault;
use crate::seat::pipes::since;
use crate::seat::{GRACE, SeatDriver, SeatFailure, TimedReply};

/// Something that happened in a match, for records, hashes and statistics. Borrowed: what is not
/// kept costs nothing.
#[derive(Clone, Copy, Debug)]
pub enum MatchEvent<'a> {
    /// The referee spoke to a seat.
    Sent {
        /// Whom.
        seat: Seat,
        /// One protocol unit.
        text: &'a str,
        /// Whether it tells the time, and is left out of the transcript's hash.
        tells_time: bool,
    },
    /// A seat answered in time.
    Replied {
        /// Who.
        seat: Seat,
        /// The answer without its frame.
        reply: &'a [u8],
        /// What it took.
        spent: TimeSpent,
        /// Whether it answers a request that tells the time.
        tells_time: bool,
    },
    /// A seat forfeited.
    Forfeited {
        /// Who.
        seat: Seat,
        /// What it did.
        forfeit: Forfeit,
        /// What it took, unless the answer that forfeits was reported before.
        spent: Option<TimeSpent>,
        /// The evidence, in words for the bot's author.
        detail: &'a str,
    },
    /// The game noted something for people and verification.
    Noted(&'a Note),
}

/// Hears what happens in a match.
pub trait EventSink {
    /// Something happened, so long after the match began.
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault>;
}

/// A match being refereed.
#[derive(Debug)]
pub struct Referee<'a, W> {
    clock: ClockRules,
    began: Instant,
    witness: &'a mut W,
    margin: Micros,
}

impl<'a, W: EventSink> Referee<'a, W> {
    /// A referee who keeps time by `clock` and reports to `witness`. The match begins now.
    pub fn new(clock: ClockRules, witness: &'a mut W) -> Self {
        Self { clock, began: Instant::now(), witness, margin: Micros::ZERO }
    }

    /// The most of the clock's margin that an answer in time has needed so far.
    pub fn margin_used(&self) -> Micros {
        self.margin
    }

    /// Plays `game` to its end between `seats`, and gives them their grace to end in. After a fault
    /// the match counts for nothing.
    pub fn play(
        &mut self,
        game: &mut dyn MatchState,
        seats: &mut [Box<dyn SeatDriver>],
    ) -> Result<Vec<SeatResult>, Fault> {
        let mut dismissed = vec![false; seats.len()];
        loop {
            match game.step() {
                Step::Say(say) => self.say(game, seats, &say)?,
                Step::Dismiss(place) => {
                    dismissed[place.index()] = true;
                    seats[place.index()].dismiss();
                }
                Step::Note(note) => self.report(MatchEvent::Noted(&note))?,
                Step::Over(standings) => {
                    part(seats.iter_mut().zip(dismissed))?;
                    return Ok(standings);
                }
            }
        }
    }

    /// Says something, and tells the game what came back.
    fn say(
        &mut self,
        game: &mut dyn MatchState,
        seats: &mut [Box<dyn SeatDriver>],
        say: &Say,
    ) -> Result<(), Fault> {
        let &Say { seat: place, ref text, owes, allowance, tells_time } = say;
        self.report(MatchEvent::Sent { seat: place, text, tells_time })?;
        if owes != Owes::Nothing {
            settle_others(seats, place)?;
        }
        let seat = seats[place.index()].as_mut();
        if owes == Owes::Nothing {
            seat.tell(text);
            return Ok(());
        }
        let first = seat.starting_up();
        let TimedReply { reply, spent } =
            seat.ask(text, self.clock.wall_limit(allowance, first))?;
        let charge = self.clock.charge(spent, allowance, first);
        if charge.late.is_none() {
            self.margin = self.margin.max(charge.cost - allowance.time());
        }
        let verdict = match in_time(reply, charge.late) {
            Ok(reply) => {
                self.report(MatchEvent::Replied { seat: place, reply: &reply, spent, tells_time })?;
                game.receive_reply(Ok(&String::from_utf8_lossy(&reply)), charge.cost)
            }
            Err(SeatFailure { forfeit, detail }) => {
                let spent = Some(spent);
                self.report(MatchEvent::Forfeited {
                    seat: place,
                    forfeit,
                    spent,
                    detail: &detail,
                })?;
                game.receive_reply(Err(forfeit), charge.cost)
            }
        };
        let Err(illegal) = verdict else { return Ok(()) };
        let (forfeit, detail) = (Forfeit::Illegal, illegal.to_string());
        self.report(MatchEvent::Forfeited { seat: place, forfeit, spent: None, detail: &detail })
    }

    fn report(&mut self, event: MatchEvent<'_>) -> Result<(), Fault> {
        self.witness.on_event(since(self.began), event)
    }
}

/// Sees to it that nobody takes a turn from the bot at `place`, which is about to be asked: not
/// even one that starts up, whose sixty processes would make another's start-up too long.
fn settle_others(seats: &mut [Box<dyn SeatDriver>], place: Seat) -> Result<(), Fault> {
    let mut others = seats.iter_mut().enumerate().filter(|(index, _)| *index != place.index());
    others.try_for_each(|(_, other)| other.settle())
}

/// Gives all who were not dismissed their grace to end in, the same for all.
fn part<'a>(seats: impl Iterator<Item = (&'a mut Box<dyn SeatDriver>, bool)>) -> Result<(), Fault> {
    let mut staying: Vec<_> = seats.filter(|(_, dismissed)| !dismissed).collect();
    for (seat, _) in &mut staying {
        seat.hang_up();
    }
    let deadline = Instant::now() + GRACE;
    staying.into_iter().try_for_each(|(seat, _)| seat.farewell(deadline))
}

/// The reply, if it came in time; otherwise a forfeit that says how late it was.
pub(crate) fn in_time(
    reply: Result<Vec<u8>, SeatFailure>,
    late: Option<String>,
) -> Result<Vec<u8>, SeatFailure> {
    match (reply, late) {
        (Ok(_), Some(late)) => Err(SeatFailure { forfeit: Forfeit::Clock, detail: late }),
        (Err(SeatFailure { forfeit: Forfeit::Clock, detail }), late) => {
            let late = late.unwrap_or_else(|| "no answer in time".to_owned());
            let parts = if detail.is_empty() { late } else { format!("{late}; {detail}") };
            Err(SeatFailure { forfeit: Forfeit::Clock, detail: parts })
        }
        (reply, _) => reply,
    }
}

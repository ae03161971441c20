//! Rehearsals: a bot is told again what a seat was told in a match that was recorded, and its answers
//! are compared with those of the record.
//!
//! The rules replay the record, so what the bot hears is to the letter what the seat heard, with the
//! allowances and banks that it had, whatever the bot answers now. Its answers go nowhere: the match
//! goes on as it went. What it may use, how time is measured and how it is held is as in any match;
//! only files that it had left in matches before are not there.

use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{Games, MatchState, Micros, Say, Seat, TimeSpent};
use thiserror::Error;

use crate::bot::Bot;
use crate::fault::Fault;
use crate::match_runner::{BotState, Match};
use crate::record::{Difference, Follower, Header, Scene, follow};
use crate::referee::in_time;
use crate::sandbox::{Host, JailConfig};
use crate::seat::{GRACE, SeatDriver, SeatFailure, SeatUsage, StopSignal, TimedReply};

/// Who rehearses which part, and how.
#[derive(Clone, Debug)]
pub struct SeatReplay {
    /// The seat whose part it is.
    pub place: Seat,
    /// Who plays it.
    pub bot: Arc<Bot>,
    /// On which terms.
    pub terms: JailConfig,
}

/// One answer then and now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyComparison {
    /// Which answer of the seat it is, from 1.
    pub number: usize,
    /// What it answers.
    pub told: String,
    /// What the record has.
    pub then: TimedReply,
    /// What the bot answers now.
    pub now: TimedReply,
}

/// Why a rehearsal ended early.
#[derive(Debug, Error)]
pub enum SeatReplayError {
    /// The record is wrong.
    #[error(transparent)]
    Record(#[from] Difference),
    /// Something of ours failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The record has no such seat.
    #[error("the match has {0} seats")]
    NoSeat(usize),
}

impl SeatReplay {
    /// Lets the bot hear its part of `record`, hands over each of its answers, and gives what is
    /// left of it. Once it has forfeited it is asked no more.
    ///
    /// # Errors
    /// If the record is wrong, has no such seat, or something of ours failed.
    pub fn run(
        &self,
        games: &Games,
        record: impl BufRead,
        host: &Host,
        stop: &Arc<StopSignal>,
        each: impl FnMut(ReplyComparison),
    ) -> Result<SeatUsage, SeatReplayError> {
        let mut stage = Stage { rehearsal: self, host, stop, each, part: Part::Waiting, plies: 0 };
        let replayed = follow(games, record, &mut stage);
        let closed = match stage.part {
            Part::Waiting => Ok(SeatUsage::default()),
            Part::Playing { mut seat, .. } => {
                seat.hang_up();
                let parted = seat.farewell(Instant::now() + GRACE);
                let closed = seat.close();
                parted.and(closed)
            }
            Part::Gone(seat) => seat.close(),
            Part::Failed(fault) => Err(fault),
        };
        let verified = replayed?;
        let seats = verified.header.seats.len();
        if self.place.index() >= seats {
            return Err(SeatReplayError::NoSeat(seats));
        }
        Ok(closed?)
    }
}

/// Where the rehearsal stands.
enum Part {
    /// The match has not begun.
    Waiting,
    /// The bot hears and answers.
    Playing { seat: Box<dyn SeatDriver>, table: Box<Match> },
    /// It forfeited, or was dismissed.
    Gone(Box<dyn SeatDriver>),
    /// Something of ours failed.
    Failed(Fault),
}

struct Stage<'a, F> {
    rehearsal: &'a SeatReplay,
    host: &'a Host,
    stop: &'a Arc<StopSignal>,
    each: F,
    part: Part,
    plies: usize,
}

impl<F: FnMut(ReplyComparison)> Follower for Stage<'_, F> {
    fn begin(&mut self, header: &Header, game: &dyn MatchState) {
        let SeatReplay { place, bot, terms } = self.rehearsal;
        if place.index() >= header.seats.len() {
            return;
        }
        let Header { params, seed, clock, .. } = header.clone();
        let (entrants, terms) = (Vec::new(), terms.clone());
        let table = Box::new(Match { params, seed, clock, terms, entrants, record: None });
        let arguments = game.launch_arguments(*place);
        let seat = table.seat(bot, &BotState::Fresh, &table.terms, arguments, self.host, self.stop);
        self.part = match seat {
            Ok(seat) => Part::Playing { seat, table },
            Err(fault) => Part::Failed(fault),
        };
    }

    fn follow(&mut self, _: Micros, scene: Scene<'_>, _: &dyn MatchState) {
        match scene {
            Scene::Told(say) if say.seat == self.rehearsal.place => {
                if let Part::Playing { seat, .. } = &mut self.part {
                    seat.tell(&say.text);
                }
            }
            Scene::Replied { say, reply, spent, .. } => self.ask(say, Ok(reply.to_owned()), spent),
            Scene::Forfeited { say, forfeit, spent, detail, .. } => {
                self.ask(say, Err(SeatFailure { forfeit, detail: detail.to_owned() }), spent);
            }
            Scene::Dismissed(seat) if seat == self.rehearsal.place => self.dismiss(),
            _ => {}
        }
    }
}

impl<F: FnMut(ReplyComparison)> Stage<'_, F> {
    /// Asks the bot what its seat was asked, and hands over its answer with that of the record.
    fn ask(&mut self, say: &Say, reply: Result<Vec<u8>, SeatFailure>, spent: TimeSpent) {
        if say.seat != self.rehearsal.place {
            return;
        }
        let Part::Playing { seat, table } = &mut self.part else { return };
        self.plies += 1;
        let now = match asked(seat.as_mut(), table, say) {
            Ok(now) => now,
            Err(fault) => {
                self.fail(fault);
                return;
            }
        };
        let forfeited = now.reply.is_err();
        let then = TimedReply { reply, spent };
        (self.each)(ReplyComparison { number: self.plies, told: say.text.clone(), then, now });
        if forfeited {
            self.dismiss();
        }
    }
}

impl<F> Stage<'_, F> {
    /// Ends the part of the bot.
    fn dismiss(&mut self) {
        self.part = match std::mem::replace(&mut self.part, Part::Waiting) {
            Part::Playing { mut seat, .. } => {
                seat.dismiss();
                Part::Gone(seat)
            }
            part => part,
        };
    }

    /// Gives up.
    fn fail(&mut self, fault: Fault) {
        let part = std::mem::replace(&mut self.part, Part::Waiting);
        if let Part::Playing { seat, .. } | Part::Gone(seat) = part {
            // The first fault is the one that matters.
            drop(seat.close());
        }
        self.part = Part::Failed(fault);
    }
}

/// What the bot answers, judged by the clock as in a match.
fn asked(seat: &mut dyn SeatDriver, table: &Match, say: &Say) -> Result<TimedReply, Fault> {
    let first = seat.starting_up();
    let limit = table.clock.wall_limit(say.allowance, first);
    let TimedReply { reply, spent } = seat.ask(&say.text, limit)?;
    let late = table.clock.charge(spent, say.allowance, first).late;
    Ok(TimedReply { reply: in_time(reply, late), spent })
}

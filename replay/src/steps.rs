//! Divides a replay into steps for people: the move, the position after it, and the clocks.
//!
//! A step is a decision, a forfeit, or another change of the picture, such as a deal of cards. Only
//! requested steps are drawn, so a page of a match with ten thousand steps is cheap.

use std::io::BufRead;
use std::ops::Range;

use arbiter_games::picture::Key;
use arbiter_games::{
    Allowance, BotName, ClockKind, ExpectedReply, Games, MatchState, Message, Micros, Seat,
    SeatResult, TimeSpent,
};

use crate::draw::{Picture, draw};
use crate::record_line::Header;
use crate::verify::{Difference, ReplayEvent, ReplayObserver, Verified, replay_with};

/// A replay with some of its steps drawn.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The verified record.
    pub verified: Verified,
    /// The number of steps of the match.
    pub total: usize,
    /// The requested steps, if they exist.
    pub drawn: Vec<Step>,
    /// The names and first steps of the chapters of the match, such as deals or rounds. Empty in
    /// games without chapters.
    pub chapters: Vec<(String, usize)>,
    /// The end of each bot's standard error, if the record has it, seat 1 first.
    pub stderr: Vec<Option<Stderr>>,
}

/// The end of a bot's standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stderr {
    /// The last bytes, as text.
    pub text: String,
    /// The number of earlier bytes, which the record does not have.
    pub dropped: usize,
}

/// A step of a replay.
#[derive(Clone, Debug)]
pub struct Step {
    /// The number of the step, from 0.
    pub index: usize,
    /// Time since the match began.
    pub time: Micros,
    /// The seat that acted; `None` if the step is neither a decision nor a forfeit.
    pub seat: Option<Seat>,
    /// The exact reply.
    pub reply: Option<String>,
    /// The kind of forfeit and its details.
    pub forfeit: Option<String>,
    /// The position after the step.
    pub picture: Picture,
    /// The clocks, seat 1 first.
    pub clocks: Vec<Clock>,
    /// The results, seat 1 first, in the last step.
    pub standings: Option<Vec<SeatResult>>,
}

/// A seat's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The remaining time of its bank, in games with a time bank.
    pub left: Option<Micros>,
    /// The time of its last reply.
    pub last: Option<TimeSpent>,
    /// The sum of the charged clock (wall-clock or processor time) over its replies.
    pub used: Micros,
}

/// Replays a record and draws the steps whose numbers are in `requested`.
///
/// # Errors
/// The first difference between the record and the rules.
pub fn steps(
    games: &Games,
    record: impl BufRead,
    requested: Range<usize>,
) -> Result<Steps, Difference> {
    let mut builder = StepsBuilder { requested, ..StepsBuilder::default() };
    let verified = replay_with(games, record, &mut builder)?;
    let StepsBuilder { total, drawn, chapters, stderr, .. } = builder;
    Ok(Steps { verified, total, drawn, chapters, stderr })
}

/// Collects the steps during a replay.
#[derive(Debug, Default)]
struct StepsBuilder {
    requested: Range<usize>,
    names: Vec<BotName>,
    /// Whether processor time is charged.
    cpu: bool,
    total: usize,
    drawn: Vec<Step>,
    chapters: Vec<(String, usize)>,
    stderr: Vec<Option<Stderr>>,
    clocks: Vec<Clock>,
    /// The key of the last picture.
    last_key: Option<Key>,
}

/// The action of a step.
#[derive(Clone, Debug, Default)]
struct Action {
    seat: Option<Seat>,
    reply: Option<String>,
    forfeit: Option<String>,
    standings: Option<Vec<SeatResult>>,
}

impl StepsBuilder {
    /// Adds a step.
    fn add(&mut self, time: Micros, action: Action, game: &dyn MatchState) {
        let index = self.total;
        self.total += 1;
        self.last_key = Some(game.view().picture_key());
        if let Some(chapter) = game.view().chapter()
            && self.chapters.last().is_none_or(|(previous, _)| *previous != chapter)
        {
            self.chapters.push((chapter, index));
        }
        if !self.requested.contains(&index) {
            return;
        }
        let Action { seat, reply, forfeit, standings } = action;
        let picture = draw(&game.view().picture(&self.names, None));
        let clocks = self.clocks.clone();
        self.drawn.push(Step { index, time, seat, reply, forfeit, picture, clocks, standings });
    }

    /// Updates the clock of a seat that has replied.
    fn charge(&mut self, message: &Message, spent: TimeSpent, cost: Micros) {
        let time = if self.cpu { spent.cpu } else { spent.wall };
        let clock = &mut self.clocks[message.seat.index()];
        clock.last = Some(spent);
        clock.used += time;
        if let Allowance::Bank(left) = message.allowance {
            clock.left = Some((left - cost).max(Micros::ZERO));
        }
    }
}

impl ReplayObserver for StepsBuilder {
    fn begin(&mut self, header: &Header, game: &dyn MatchState) {
        self.names = header.names();
        self.cpu = header.clock.kind == ClockKind::Cpu;
        self.clocks = vec![Clock::default(); self.names.len()];
        self.stderr = vec![None; self.names.len()];
        self.add(Micros::ZERO, Action::default(), game);
    }

    fn on_event(&mut self, time: Micros, event: ReplayEvent<'_>, game: &dyn MatchState) {
        let action = match event {
            ReplayEvent::Notified(_) | ReplayEvent::Dismissed(_) => return,
            ReplayEvent::Advanced if self.last_key == Some(game.view().picture_key()) => return,
            ReplayEvent::Advanced => Action::default(),
            ReplayEvent::Replied { message, reply, spent, cost, illegal } => {
                self.charge(message, spent, cost);
                if message.expected_reply != ExpectedReply::Move && illegal.is_none() {
                    return;
                }
                Action {
                    seat: Some(message.seat),
                    reply: Some(String::from_utf8_lossy(reply).into_owned()),
                    forfeit: illegal.map(|detail| format!("illegal: {detail}")),
                    standings: None,
                }
            }
            ReplayEvent::Forfeited { message, forfeit, spent, cost, detail } => {
                self.charge(message, spent, cost);
                let forfeit = Some(format!("{forfeit}: {detail}"));
                Action { seat: Some(message.seat), forfeit, ..Action::default() }
            }
            ReplayEvent::Over(standings) => {
                Action { standings: Some(standings.to_vec()), ..Action::default() }
            }
            ReplayEvent::Stderr { seat, text, dropped } => {
                let stderr = Stderr { text: text.to_owned(), dropped };
                self.stderr[seat.index()] = Some(stderr);
                return;
            }
        };
        self.add(time, action, game);
    }
}

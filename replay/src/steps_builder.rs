//! The steps of a replay, and how they are collected.

use std::ops::Range;

use arbiter_games::picture::{self, Key};
use arbiter_games::{BotName, ClockKind, Micros, Seat, SeatResult, TimeSpent};

use crate::draw::{Picture, draw};
use crate::record_line::Header;

/// A replay with some of its steps drawn.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The names of the bots, seat 1 first.
    pub names: Vec<BotName>,
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

/// Collects the steps during a replay.
#[derive(Debug, Default)]
pub(crate) struct StepsBuilder {
    requested: Range<usize>,
    names: Vec<BotName>,
    /// Whether processor time is charged.
    cpu: bool,
    total: usize,
    drawn: Vec<Step>,
    chapters: Vec<(String, usize)>,
    stderr: Vec<Option<Stderr>>,
    pub(crate) clocks: Vec<Clock>,
    /// The key of the last picture.
    pub(crate) last_key: Option<Key>,
}

/// The action of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Action {
    pub(crate) seat: Option<Seat>,
    pub(crate) reply: Option<String>,
    pub(crate) forfeit: Option<String>,
    pub(crate) standings: Option<Vec<SeatResult>>,
}

impl StepsBuilder {
    pub(crate) fn new(requested: Range<usize>) -> Self {
        Self { requested, ..Self::default() }
    }

    /// Prepares for the match of this header.
    pub(crate) fn prepare(&mut self, header: &Header) {
        self.names = header.names();
        self.cpu = header.clock.kind == ClockKind::Cpu;
        self.clocks = vec![Clock::default(); self.names.len()];
        self.stderr = vec![None; self.names.len()];
    }

    pub(crate) fn finish(self) -> Steps {
        let Self { names, total, drawn, chapters, stderr, .. } = self;
        Steps { names, total, drawn, chapters, stderr }
    }

    /// Adds a step in which the match has this chapter. `picture` is called if the step is
    /// requested.
    pub(crate) fn add(
        &mut self,
        time: Micros,
        action: Action,
        chapter: Option<String>,
        picture: impl FnOnce(&[BotName]) -> picture::Picture,
    ) {
        let index = self.total;
        self.total += 1;
        if let Some(chapter) = chapter
            && self.chapters.last().is_none_or(|(previous, _)| *previous != chapter)
        {
            self.chapters.push((chapter, index));
        }
        if !self.requested.contains(&index) {
            return;
        }
        let Action { seat, reply, forfeit, standings } = action;
        let picture = draw(&picture(&self.names));
        let clocks = self.clocks.clone();
        self.drawn.push(Step { index, time, seat, reply, forfeit, picture, clocks, standings });
    }

    /// Updates the clock of a seat that has spent time on a reply.
    pub(crate) fn spend(&mut self, seat: Seat, spent: TimeSpent) {
        let time = if self.cpu { spent.cpu } else { spent.wall };
        let clock = &mut self.clocks[seat.index()];
        clock.last = Some(spent);
        clock.used += time;
    }

    /// Keeps the end of a bot's standard error.
    pub(crate) fn keep_stderr(&mut self, seat: Seat, text: &str, dropped: usize) {
        self.stderr[seat.index()] = Some(Stderr { text: text.to_owned(), dropped });
    }
}

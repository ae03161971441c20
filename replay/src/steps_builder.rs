//! The steps of a replay, and how they are collected.

use std::fmt;
use std::ops::Range;

use arbiter_games::picture::{self, Key};
use arbiter_games::{
    Allowance, BotName, ClockKind, EntrantName, Forfeit, Micros, Seat, SeatResult, Text, TimeSpent,
};

use crate::draw::{Picture, draw};
use crate::reader::Reader;
use crate::record_line::{SeatLine, names};

/// A replay with some of its steps drawn.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The whole replay.
    pub overview: Overview,
    /// The requested steps, if they exist.
    pub drawn: Vec<Step>,
}

/// What a viewer needs to know of a whole replay.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// The names of the bots, seat 1 first.
    pub names: Vec<EntrantName>,
    /// The number of steps of the match.
    pub total: usize,
    /// The names and first steps of the chapters of the match, such as deals or rounds. Empty in
    /// games without chapters. A name like `Deal 2, trick 3` is a chapter within `Deal 2`.
    pub chapters: Vec<(String, usize)>,
    /// The forfeits, in the order of the match.
    pub forfeits: Vec<ForfeitedSeat>,
    /// The end of each bot's standard error, if the record has it, seat 1 first.
    pub stderr: Vec<Option<Stderr>>,
    /// The results, seat 1 first.
    pub standings: Vec<SeatResult>,
    /// The names of the components of a score. Empty if they are not known: a record of a game
    /// package does not contain them.
    pub columns: Vec<Text>,
}

/// Where a seat forfeited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForfeitedSeat {
    /// The seat.
    pub seat: Seat,
    /// Why it forfeited.
    pub kind: Forfeit,
    /// The number of the step.
    pub step: usize,
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
    /// The forfeit, if the seat forfeited.
    pub forfeit: Option<StepForfeit>,
    /// The position after the step.
    pub picture: Picture,
    /// The clocks, seat 1 first.
    pub clocks: Vec<Clock>,
    /// The results, seat 1 first, in the last step.
    pub standings: Option<Vec<SeatResult>>,
    /// The names of the components of the results' scores. Empty in other steps than the last one,
    /// or if they are not known.
    pub columns: Vec<Text>,
}

/// A forfeit with its evidence. As text: its kind and its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepForfeit {
    /// Why the seat forfeited.
    pub kind: Forfeit,
    /// Details for the bot's author; may be empty.
    pub detail: String,
    /// The time of the reply, if it is known.
    pub spent: Option<TimeSpent>,
    /// The time that the reply was allowed to take, if it is known.
    pub allowance: Option<Allowance>,
}

impl fmt::Display for StepForfeit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
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
    /// The most time that its bank had, or the limit for its last reply; `None` if unknown.
    pub limit: Option<Micros>,
}

/// Receives the requested steps.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[EntrantName], Step);

/// Collects the steps during a replay.
pub(crate) struct StepsBuilder<'a> {
    requested: Range<usize>,
    reader: Reader<'a>,
    visit: Visit<'a>,
    /// Whether processor time is charged.
    cpu: bool,
    overview: Overview,
    pub(crate) clocks: Vec<Clock>,
    /// The key of the last picture.
    pub(crate) last_key: Option<Key>,
}

/// The action of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Action {
    pub(crate) seat: Option<Seat>,
    pub(crate) reply: Option<String>,
    pub(crate) forfeit: Option<StepForfeit>,
    pub(crate) standings: Option<Vec<SeatResult>>,
}

impl<'a> StepsBuilder<'a> {
    /// Draws the steps whose numbers are in `requested`, as the reader may see them. Passes them to
    /// `visit`.
    pub(crate) fn new(requested: Range<usize>, reader: Reader<'a>, visit: Visit<'a>) -> Self {
        let overview = Overview::default();
        Self { requested, reader, visit, cpu: false, overview, clocks: Vec::new(), last_key: None }
    }

    /// Prepares for a match between bots in these seats. The components of its scores have these
    /// names, if they are known.
    pub(crate) fn prepare(&mut self, seats: &[SeatLine], clock: ClockKind, columns: &[Text]) {
        self.cpu = clock == ClockKind::Cpu;
        self.clocks = vec![Clock::default(); seats.len()];
        let names_shown = self.reader.names;
        let shown = |name: BotName| match names_shown.and_then(|names| names.get(&name)) {
            Some(shown) => shown.clone(),
            None => name.into(),
        };
        self.overview.names = names(seats).into_iter().map(shown).collect();
        self.overview.stderr = vec![None; seats.len()];
        self.overview.columns = columns.to_vec();
    }

    pub(crate) fn finish(self) -> Overview {
        self.overview
    }

    /// Adds a step in which the match has this chapter. `picture` is called if the step is
    /// requested.
    pub(crate) fn add(
        &mut self,
        time: Micros,
        action: Action,
        chapter: Option<String>,
        picture: impl FnOnce(&[EntrantName]) -> picture::Picture,
    ) {
        let Overview { total, chapters, forfeits, .. } = &mut self.overview;
        let index = *total;
        *total += 1;
        if let Some(chapter) = chapter
            && chapters.last().is_none_or(|(previous, _)| *previous != chapter)
        {
            chapters.push((chapter, index));
        }
        if let (Some(seat), Some(forfeit)) = (action.seat, &action.forfeit) {
            forfeits.push(ForfeitedSeat { seat, kind: forfeit.kind, step: index });
        }
        let Action { seat, reply, forfeit, standings } = action;
        if let Some(standings) = &standings {
            self.overview.standings.clone_from(standings);
        }
        if !self.requested.contains(&index) {
            return;
        }
        let names = &self.overview.names;
        let picture = draw(&picture(names));
        let clocks = self.clocks.clone();
        let columns = standings.as_ref().map(|_| self.overview.columns.clone()).unwrap_or_default();
        let step = Step { index, time, seat, reply, forfeit, picture, clocks, standings, columns };
        (self.visit)(names, step);
    }

    /// Updates the clock of a seat that has spent time on a reply.
    pub(crate) fn spend(&mut self, seat: Seat, spent: TimeSpent) {
        let time = if self.cpu { spent.cpu } else { spent.wall };
        let clock = &mut self.clocks[seat.index()];
        clock.last = Some(spent);
        clock.used += time;
    }

    /// What was measured of a forfeit of a seat; empty if the reader may not see it.
    pub(crate) fn shown_detail<'b>(&self, seat: Seat, detail: &'b str) -> &'b str {
        if self.reader.sees(seat) { detail } else { "" }
    }

    /// Keeps the end of a bot's standard error, if the reader may see it.
    pub(crate) fn keep_stderr(&mut self, seat: Seat, text: &str, dropped: usize) {
        if !self.reader.sees(seat) {
            return;
        }
        self.overview.stderr[seat.index()] = Some(Stderr { text: text.to_owned(), dropped });
    }
}

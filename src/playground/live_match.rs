//! The current match: the state that its thread and the pages share.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_games::picture::Key;
use arbiter_games::{
    Allowance, ClockKind, EntrantName, ExpectedReply, MatchState, MatchView, Message, Micros, Seat,
    SeatResult, Step, Text,
};
use arbiter_replay::{Clock, StepForfeit};
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::{MatchOutcome, SeatSummary};
use arbiter_worker::referee::MatchEvent;
use arbiter_worker::seat::StopHandle;
use tokio::sync::watch;

/// Maximum number of stored lines of the dialogue.
const MAX_LINES: usize = 300;

/// Maximum length of a stored line, in characters.
const MAX_LINE: usize = 2000;

/// Maximum number of stored captions.
const MAX_CAPTIONS: usize = 40;

/// The occupant of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeatChoice {
    /// A person at a browser.
    Person,
    /// A bot, by its position on the command line.
    Bot(usize),
}

/// The current match, running or over.
pub(crate) struct LiveMatch {
    /// Fixed before the start.
    pub(crate) config: MatchConfig,
    state: Mutex<LiveState>,
    /// Wakes the match's thread.
    wake: Condvar,
    /// Notifies the pages of changes.
    changes: watch::Sender<u64>,
    stop_handle: Mutex<Option<StopHandle>>,
}

impl fmt::Debug for LiveMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveMatch").field("number", &self.config.number).finish_non_exhaustive()
    }
}

/// The properties of a match that are fixed before its start.
#[derive(Debug)]
pub(crate) struct MatchConfig {
    /// Its number in this run, from 1.
    pub(crate) number: u64,
    /// The occupants, seat 1 first.
    pub(crate) seat_choices: Vec<SeatChoice>,
    /// The names of the occupants, seat 1 first.
    pub(crate) names: Vec<EntrantName>,
    /// The names of the components of a score.
    pub(crate) columns: Vec<Text>,
    /// The text of its seed.
    pub(crate) seed: String,
    /// The path of its record.
    pub(crate) record: PathBuf,
    /// The clock that charges people, if any.
    pub(crate) person_clock: Option<ClockKind>,
    /// Whether the start-up before a seat's first reply is free.
    pub(crate) startup_is_free: bool,
}

/// The state of a live match.
#[derive(Default)]
pub(crate) struct LiveState {
    /// A copy of the game at the last picture or the last turn of a person; none before the start.
    pub(crate) position: Option<Box<dyn MatchState>>,
    key: Option<Key>,
    /// The number of pictures so far.
    pub(crate) pictures: usize,
    pub(crate) captions: VecDeque<String>,
    /// Time since the match began.
    pub(crate) time: Micros,
    /// The last action.
    pub(crate) last_action: LastAction,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) lines: VecDeque<Line>,
    /// The standard error of each bot.
    pub(crate) stderr: Vec<String>,
    /// The kind of reply that the last message needs.
    expected_reply: ExpectedReply,
    /// The number of turns of people so far.
    turns: u64,
    /// The current turn of a person, if there is one.
    pub(crate) turn: Option<Turn>,
    answer: Option<String>,
    pub(crate) pace: Pace,
    abandoned: bool,
    pub(crate) ending: Option<MatchEnd>,
}

/// The turn of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The person's seat.
    pub(crate) seat: Seat,
    /// The number of the turn in the match. A reply contains it, so a repeated reply is refused.
    pub(crate) number: u64,
}

/// The last reply or forfeit.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastAction {
    pub(crate) seat: Option<Seat>,
    pub(crate) reply: Option<String>,
    pub(crate) forfeit: Option<StepForfeit>,
}

/// A line of the dialogue.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) seat: Seat,
    /// Whether it is a message to the seat; else it is a reply.
    pub(crate) is_message: bool,
    /// Whether other seats must not see it. Messages and replies that are not moves are private.
    pub(crate) is_private: bool,
    pub(crate) text: String,
}

/// How a match ended.
#[derive(Clone, Debug)]
pub(crate) enum MatchEnd {
    /// It was played to the end.
    Over {
        standings: Vec<SeatResult>,
        /// Why each seat forfeited, if it did.
        details: Vec<Option<String>>,
    },
    /// It has no result, for this reason.
    Broken(String),
}

/// The speed of the display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) paused: bool,
    /// Number of pictures to show before the pause continues.
    pub(super) steps: u32,
    /// Steps per second; none means as fast as the bots play.
    pub(crate) speed: Option<u32>,
}

/// Why a person's move was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No move is expected: it was made already, or the match is over.
    NotDue,
    /// The rules do not allow it, for this reason.
    Illegal(String),
}

impl LiveMatch {
    /// Creates a match before its start. `stop_handle` stops it.
    pub(crate) fn new(config: MatchConfig, pace: Pace, stop_handle: StopHandle) -> Self {
        let seats = config.names.len();
        let state = LiveState {
            clocks: vec![Clock::default(); seats],
            stderr: vec![String::new(); seats],
            pace,
            ..LiveState::default()
        };
        Self {
            config,
            state: Mutex::new(state),
            wake: Condvar::new(),
            changes: watch::Sender::new(0),
            stop_handle: Mutex::new(Some(stop_handle)),
        }
    }

    /// Locks the state.
    pub(crate) fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The seats of people.
    pub(crate) fn persons(&self) -> impl Iterator<Item = Seat> {
        let seats = Seat::all(self.config.seat_choices.len()).zip(&self.config.seat_choices);
        seats.filter(|(_, seat_choice)| **seat_choice == SeatChoice::Person).map(|(seat, _)| seat)
    }

    fn notify_pages(&self) {
        self.changes.send_modify(|number| *number += 1);
    }
}

/// For the match's thread.
impl LiveMatch {
    /// Shows the state before a step, and waits as long as the pace requires.
    pub(super) fn show_step(&self, view: &dyn MatchView, step: &Step) {
        let message = if let Step::Send(message) = step { Some(message) } else { None };
        let mut state = self.state();
        state.expected_reply =
            message.map_or(ExpectedReply::None, |message| message.expected_reply);
        if let Some(&Message { seat, allowance: Allowance::Bank(left), .. }) = message
            && state.expected_reply != ExpectedReply::None
        {
            state.clocks[seat.index()].left = Some(left.max(Micros::ZERO));
        }
        let seat_to_move = message
            .filter(|message| message.expected_reply == ExpectedReply::Move)
            .map(|message| message.seat);
        let person = seat_to_move
            .filter(|seat| self.config.seat_choices[seat.index()] == SeatChoice::Person);
        let picture_key = view.picture_key();
        let is_new = state.key != Some(picture_key);
        if person.is_none() && !is_new {
            return;
        }
        state.position = Some(view.fork());
        if is_new {
            state.key = Some(picture_key);
            state.pictures += 1;
            // A seat that does not exist sees only public information.
            let outsider = Seat::from_index(self.config.names.len());
            state.captions.push_back(view.picture(&self.config.names, Some(outsider)).caption);
            let surplus = state.captions.len().saturating_sub(MAX_CAPTIONS);
            state.captions.drain(..surplus);
        }
        if let Some(seat) = person {
            state.turns += 1;
            state.turn = Some(Turn { seat, number: state.turns });
        }
        drop(state);
        self.notify_pages();
        if person.is_none() {
            self.wait_for_pace();
        }
    }

    /// Waits as long as the pace requires.
    fn wait_for_pace(&self) {
        let start = Instant::now();
        let mut state = self.state();
        while !state.abandoned {
            let Pace { paused, speed, .. } = state.pace;
            if paused && state.pace.steps > 0 {
                state.pace.steps -= 1;
                return;
            }
            if paused {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(speed) = speed else { return };
            let interval = Duration::from_secs(1) / speed.max(1);
            let Some(remaining) =
                interval.checked_sub(start.elapsed()).filter(|remaining| !remaining.is_zero())
            else {
                return;
            };
            let wait_result = self.wake.wait_timeout(state, remaining);
            state = wait_result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The kind of reply that the last message needs.
    pub(super) fn expected_reply(&self) -> ExpectedReply {
        self.state().expected_reply
    }

    /// Waits for the reply of the person whose turn it is; none after `limit`.
    pub(super) fn wait_for_reply(&self, limit: Option<Micros>) -> Result<Option<String>, Fault> {
        let limit = limit.map(|limit| Duration::from_micros(limit.0.max(0).unsigned_abs()));
        let start = Instant::now();
        let mut state = self.state();
        loop {
            if state.abandoned {
                return Err(Fault::Abandoned);
            }
            if let Some(answer) = state.answer.take() {
                return Ok(Some(answer));
            }
            state = match limit {
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(limit) => {
                    // Waits 1 ms longer, so that a late reply exceeds the limit.
                    let Some(remaining) =
                        (limit + Duration::from_millis(1)).checked_sub(start.elapsed())
                    else {
                        state.turn = None;
                        return Ok(None);
                    };
                    let wait_result = self.wake.wait_timeout(state, remaining);
                    wait_result.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Records an event of the match.
    pub(super) fn record_event(&self, time: Micros, event: MatchEvent<'_>) {
        let mut state = self.state();
        state.time = time;
        let is_move = state.expected_reply == ExpectedReply::Move;
        match event {
            MatchEvent::Sent { seat, text, .. } => state.add_line(seat, true, true, text),
            MatchEvent::Replied { seat, reply, spent, .. } => {
                let reply = truncate(&String::from_utf8_lossy(reply));
                state.add_line(seat, false, !is_move, &reply);
                let clock = &mut state.clocks[seat.index()];
                clock.last = Some(spent);
                clock.used += spent.wall;
                if is_move {
                    state.last_action =
                        LastAction { seat: Some(seat), reply: Some(reply), forfeit: None };
                }
            }
            MatchEvent::Forfeited { seat, forfeit: kind, spent, detail } => {
                let detail = truncate(detail);
                let forfeit = StepForfeit { kind, detail, spent, allowance: None };
                state.add_line(seat, false, false, &format!("({forfeit})"));
                let last_action = &mut state.last_action;
                let reply = last_action.reply.take().filter(|_| last_action.seat == Some(seat));
                state.last_action = LastAction { seat: Some(seat), reply, forfeit: Some(forfeit) };
            }
            MatchEvent::Noted(_) => {}
        }
    }

    /// Stores the standard error of a bot so far.
    pub(super) fn set_stderr(&self, seat: Seat, stderr: &[u8]) {
        let mut state = self.state();
        let stored = &mut state.stderr[seat.index()];
        if stored.len() != stderr.len() || stored.as_bytes() != stderr {
            *stored = String::from_utf8_lossy(stderr).into_owned();
        }
    }

    /// Records the end of the match.
    pub(super) fn end(&self, result: Result<MatchOutcome, Fault>) {
        let ending = match result {
            Ok(MatchOutcome { results: standings, seats, .. }) => {
                let details = seats.iter().map(SeatSummary::detail).collect();
                MatchEnd::Over { standings, details }
            }
            Err(Fault::Abandoned) => MatchEnd::Broken("it was abandoned".to_owned()),
            Err(fault) => MatchEnd::Broken(fault.to_string()),
        };
        self.finish(ending);
    }

    /// Records the end of the match, or the failure of its thread.
    pub(super) fn finish(&self, ending: MatchEnd) {
        let mut state = self.state();
        state.turn = None;
        state.ending = Some(ending);
        drop(state);
        self.notify_pages();
    }
}

/// For the pages.
impl LiveMatch {
    /// Makes the move of the person whose turn it is.
    pub(crate) fn answer(&self, turn: Turn, answer: String) -> Result<(), Refusal> {
        let mut state = self.state();
        if state.turn != Some(turn) {
            return Err(Refusal::NotDue);
        }
        let position = state.position.as_ref().ok_or(Refusal::NotDue)?;
        position.view().check(turn.seat, &answer).map_err(Refusal::Illegal)?;
        state.answer = Some(answer);
        state.turn = None;
        drop(state);
        self.wake.notify_all();
        self.notify_pages();
        Ok(())
    }

    /// Changes the pace.
    pub(crate) fn set_pace(&self, change: impl FnOnce(&mut Pace)) {
        change(&mut self.state().pace);
        self.wake.notify_all();
        self.notify_pages();
    }

    /// Pauses the match, or continues a paused match to its next picture.
    pub(crate) fn step(&self) {
        self.set_pace(|pace| {
            pace.steps = if pace.paused { pace.steps.saturating_add(1) } else { 0 };
            pace.paused = true;
        });
    }

    /// Abandons the match. Its thread ends soon.
    pub(crate) fn abandon(&self) {
        self.state().abandoned = true;
        let stop_handle = self.stop_handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop_handle) = stop_handle {
            stop_handle.stop();
        }
        self.wake.notify_all();
    }
}

impl LiveState {
    fn add_line(&mut self, seat: Seat, is_message: bool, is_private: bool, text: &str) {
        self.lines.push_back(Line { seat, is_message, is_private, text: truncate(text) });
        let surplus = self.lines.len().saturating_sub(MAX_LINES);
        self.lines.drain(..surplus);
    }
}

/// Truncates a long text.
fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

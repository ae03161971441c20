//! The current match: the state that its thread and the pages share.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_games::picture::Key;
use arbiter_games::{
    Allowance, BotName, ClockKind, MatchState, MatchView, Micros, Owes, Say, Seat, SeatResult, Step,
};
use arbiter_replay::Clock;
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::MatchOutcome;
use arbiter_worker::referee::MatchEvent;
use arbiter_worker::seat::StopHandle;
use tokio::sync::watch;

/// How many lines of the dialogue are kept.
const LINES: usize = 300;

/// How much of a line is kept, in characters.
const LINE: usize = 2000;

/// How many captions of pictures are kept.
const CAPTIONS: usize = 40;

/// The occupant of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeatChoice {
    /// A person at a browser.
    Person,
    /// A bot, by its position among those of the command line.
    Bot(usize),
}

/// One match at the table, being played or over.
pub(crate) struct LiveMatch {
    /// What was decided before it began.
    pub(crate) config: MatchConfig,
    state: Mutex<LiveState>,
    /// Wakes the match's thread.
    go_on: Condvar,
    /// Tells pages that there is something new.
    news: watch::Sender<u64>,
    cord: Mutex<Option<StopHandle>>,
}

impl fmt::Debug for LiveMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveMatch").field("number", &self.config.number).finish_non_exhaustive()
    }
}

/// What is decided about a match before it begins.
#[derive(Debug)]
pub(crate) struct MatchConfig {
    /// Which one of this run it is, from 1.
    pub(crate) number: u64,
    /// Who sits where, seat 1 first.
    pub(crate) seat_choices: Vec<SeatChoice>,
    /// The names they play by.
    pub(crate) names: Vec<BotName>,
    /// The text of its seed.
    pub(crate) seed: String,
    /// Where its record will be.
    pub(crate) record: PathBuf,
    /// The clock that charges people, if one does.
    pub(crate) person_clock: Option<ClockKind>,
    /// Whether a seat's first answer is free, by the game's own protocol.
    pub(crate) startup_is_free: bool,
}

/// The state of a live match.
#[derive(Default)]
pub(crate) struct LiveState {
    /// A copy of the match, at the last picture or the last question to a person; none before it
    /// begins.
    pub(crate) position: Option<Box<dyn MatchState>>,
    key: Option<Key>,
    /// How many pictures there were.
    pub(crate) pictures: usize,
    pub(crate) captions: VecDeque<String>,
    /// Time since the match began.
    pub(crate) time: Micros,
    /// What was done last.
    pub(crate) last_action: LastAction,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) lines: VecDeque<Line>,
    /// What each bot wrote to its standard error.
    pub(crate) stderr: Vec<String>,
    /// What the last thing that was said owes.
    owes: Owes,
    /// How many questions people were asked.
    asked: u64,
    /// Which person is to answer.
    pub(crate) turn: Option<Turn>,
    answer: Option<String>,
    pub(crate) pace: Pace,
    abandoned: bool,
    pub(crate) ending: Option<MatchEnd>,
}

/// A question to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Who is to answer.
    pub(crate) seat: Seat,
    /// The number of the question in its match: an answer names it, so that none is given twice.
    pub(crate) number: u64,
}

/// What somebody did.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastAction {
    pub(crate) seat: Option<Seat>,
    pub(crate) said: Option<String>,
    pub(crate) forfeit: Option<String>,
}

/// A line of the dialogue.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) seat: Seat,
    /// Whether the referee said it, to the seat.
    pub(crate) told: bool,
    /// Whether other seats do not get to know it: what was told, and what is said to that except
    /// moves.
    pub(crate) private: bool,
    pub(crate) text: String,
}

/// How a match ended.
#[derive(Clone, Debug)]
pub(crate) enum MatchEnd {
    /// It was played.
    Over {
        standings: Vec<SeatResult>,
        /// Why each seat forfeited, if it did.
        details: Vec<Option<String>>,
    },
    /// It counts for nothing, and why.
    Broken(String),
}

/// The speed of the display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) paused: bool,
    /// How many pictures may still be shown while it is paused.
    pub(super) steps: u32,
    /// Pictures a second; as fast as the bots play if none.
    pub(crate) speed: Option<u32>,
}

/// Why an answer of a person's was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nobody waits for it: it was answered, or the match is over.
    NotDue,
    /// The rules do not allow it, in their words.
    Illegal(String),
}

impl LiveMatch {
    /// A match that is about to begin at this pace, and will be ended by the cord.
    pub(crate) fn new(config: MatchConfig, pace: Pace, cord: StopHandle) -> Self {
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
            go_on: Condvar::new(),
            news: watch::Sender::new(0),
            cord: Mutex::new(Some(cord)),
        }
    }

    /// Where the match stands.
    pub(crate) fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says when there is something new.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// The seats of people.
    pub(crate) fn persons(&self) -> impl Iterator<Item = Seat> {
        let seats = Seat::all(self.config.seat_choices.len()).zip(&self.config.seat_choices);
        seats.filter(|(_, seat_choice)| **seat_choice == SeatChoice::Person).map(|(seat, _)| seat)
    }

    fn tell_pages(&self) {
        self.news.send_modify(|number| *number += 1);
    }
}

/// What the match's thread does.
impl LiveMatch {
    /// The match has come to this step: shows it, and holds it up as long as the pace says.
    pub(super) fn reach(&self, view: &dyn MatchView, step: &Step) {
        let say = if let Step::Say(say) = step { Some(say) } else { None };
        let mut state = self.state();
        state.owes = say.map_or(Owes::Nothing, |say| say.owes);
        if let Some(&Say { seat, allowance: Allowance::Bank(left), .. }) = say
            && state.owes != Owes::Nothing
        {
            state.clocks[seat.index()].left = Some(left.max(Micros::ZERO));
        }
        let asked = say.filter(|say| say.owes == Owes::Move).map(|say| say.seat);
        let person =
            asked.filter(|seat| self.config.seat_choices[seat.index()] == SeatChoice::Person);
        let shown = view.picture_key();
        let is_new = state.key != Some(shown);
        if person.is_none() && !is_new {
            return;
        }
        state.position = Some(view.fork());
        if is_new {
            state.key = Some(shown);
            state.pictures += 1;
            let nobody = Seat::from_index(self.config.names.len());
            state.captions.push_back(view.picture(&self.config.names, Some(nobody)).caption);
            let surplus = state.captions.len().saturating_sub(CAPTIONS);
            state.captions.drain(..surplus);
        }
        if let Some(seat) = person {
            state.asked += 1;
            state.turn = Some(Turn { seat, number: state.asked });
        }
        drop(state);
        self.tell_pages();
        if person.is_none() {
            self.hold_up();
        }
    }

    /// Waits as long as the pace says.
    fn hold_up(&self) {
        let shown = Instant::now();
        let mut state = self.state();
        while !state.abandoned {
            let Pace { paused, speed, .. } = state.pace;
            if paused && state.pace.steps > 0 {
                state.pace.steps -= 1;
                return;
            }
            if paused {
                state = self.go_on.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(speed) = speed else { return };
            let due = Duration::from_secs(1) / speed.max(1);
            let Some(left) = due.checked_sub(shown.elapsed()).filter(|left| !left.is_zero()) else {
                return;
            };
            let waited = self.go_on.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What the last thing that was said owes.
    pub(super) fn owes(&self) -> Owes {
        self.state().owes
    }

    /// Waits for the answer of the person whose turn it is, at most for `limit`; none if that has
    /// passed.
    pub(super) fn wait_for_answer(&self, limit: Option<Micros>) -> Result<Option<String>, Fault> {
        let limit = limit.map(|limit| Duration::from_micros(limit.0.max(0).unsigned_abs()));
        let begun = Instant::now();
        let mut state = self.state();
        loop {
            if state.abandoned {
                return Err(Fault::Abandoned);
            }
            if let Some(answer) = state.answer.take() {
                return Ok(Some(answer));
            }
            state = match limit {
                None => self.go_on.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(limit) => {
                    // A moment more, so that what is late is later than the limit.
                    let Some(left) =
                        (limit + Duration::from_millis(1)).checked_sub(begun.elapsed())
                    else {
                        state.turn = None;
                        return Ok(None);
                    };
                    let waited = self.go_on.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Takes down what happened.
    pub(super) fn note(&self, time: Micros, event: MatchEvent<'_>) {
        let mut state = self.state();
        state.time = time;
        let is_move = state.owes == Owes::Move;
        match event {
            MatchEvent::Sent { seat, text, .. } => state.line(seat, true, true, text),
            MatchEvent::Replied { seat, reply, spent, .. } => {
                let said = cut(&String::from_utf8_lossy(reply));
                state.line(seat, false, !is_move, &said);
                let clock = &mut state.clocks[seat.index()];
                clock.last = Some(spent);
                clock.used += spent.wall;
                if is_move {
                    state.last_action =
                        LastAction { seat: Some(seat), said: Some(said), forfeit: None };
                }
            }
            MatchEvent::Forfeited { seat, forfeit, detail, .. } => {
                let forfeit = cut(&format!("{forfeit}: {detail}"));
                state.line(seat, false, false, &format!("({forfeit})"));
                let last_action = &mut state.last_action;
                let said = last_action.said.take().filter(|_| last_action.seat == Some(seat));
                state.last_action = LastAction { seat: Some(seat), said, forfeit: Some(forfeit) };
            }
            MatchEvent::Noted(_) => {}
        }
    }

    /// Takes down what a bot wrote to its standard error so far.
    pub(super) fn overhear(&self, seat: Seat, stderr: &[u8]) {
        let mut state = self.state();
        let shown = &mut state.stderr[seat.index()];
        if shown.len() != stderr.len() || shown.as_bytes() != stderr {
            *shown = String::from_utf8_lossy(stderr).into_owned();
        }
    }

    /// The match has ended.
    pub(super) fn end(&self, played: Result<MatchOutcome, Fault>) {
        let ending = match played {
            Ok(MatchOutcome { results: standings, seats, .. }) => {
                let details = seats.into_iter().map(|report| report.detail).collect();
                MatchEnd::Over { standings, details }
            }
            Err(Fault::Abandoned) => MatchEnd::Broken("it was given up".to_owned()),
            Err(fault) => MatchEnd::Broken(fault.to_string()),
        };
        self.finish(ending);
    }

    /// The match is over, or its thread has failed.
    pub(super) fn finish(&self, ending: MatchEnd) {
        let mut state = self.state();
        state.turn = None;
        state.ending = Some(ending);
        drop(state);
        self.tell_pages();
    }
}

/// What pages do.
impl LiveMatch {
    /// Gives the answer of the person whose turn it is.
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
        self.go_on.notify_all();
        self.tell_pages();
        Ok(())
    }

    /// Changes the pace.
    pub(crate) fn set_pace(&self, change: impl FnOnce(&mut Pace)) {
        change(&mut self.state().pace);
        self.go_on.notify_all();
        self.tell_pages();
    }

    /// Lets a match that is paused go on to its next picture.
    pub(crate) fn step(&self) {
        self.set_pace(|pace| {
            pace.steps = if pace.paused { pace.steps.saturating_add(1) } else { 0 };
            pace.paused = true;
        });
    }

    /// Ends the match, wherever it stands. Its thread ends soon.
    pub(crate) fn abandon(&self) {
        self.state().abandoned = true;
        let cord = self.cord.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(cord) = cord {
            cord.stop();
        }
        self.go_on.notify_all();
    }
}

impl LiveState {
    fn line(&mut self, seat: Seat, told: bool, private: bool, text: &str) {
        self.lines.push_back(Line { seat, told, private, text: cut(text) });
        let surplus = self.lines.len().saturating_sub(LINES);
        self.lines.drain(..surplus);
    }
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

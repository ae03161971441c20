//! A replay cut into steps, for people: what was played, what the table looks like, what the
//! clocks say.
//!
//! A step is a decision, a forfeit, or whatever else changes the picture: cards are dealt, shown,
//! or won. Only the steps that are asked for are drawn, so that a match of ten thousand of them
//! can be leafed through a handful at a time.

use std::io::BufRead;
use std::ops::Range;

use arbiter_games::picture::Key;
use arbiter_games::{
    Allowance, BotName, ClockKind, Games, MatchState, Micros, Owes, Say, Seat, SeatResult,
    TimeSpent,
};

use crate::draw::{Picture, draw};
use crate::record_line::Header;
use crate::verify::{Difference, Follower, Scene, Verified, follow};

/// A replay of which some steps are drawn.
#[derive(Clone, Debug)]
pub struct Steps {
    /// What the record tells as a whole.
    pub verified: Verified,
    /// How many steps there are.
    pub total: usize,
    /// The steps that were asked for, as far as there are such.
    pub drawn: Vec<Step>,
    /// Where the parts of the match begin, such as deals or rounds: their names, and their first
    /// steps. Empty in games without parts.
    pub chapters: Vec<(String, usize)>,
    /// The end of each bot's standard error, if it was kept, seat 1 first.
    pub stderr: Vec<Option<Stderr>>,
}

/// The end of a bot's standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stderr {
    /// Its last bytes, as text.
    pub text: String,
    /// How many bytes came before those.
    pub dropped: usize,
}

/// A step of a replay.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number, from 0.
    pub index: usize,
    /// So long after the match began.
    pub time: Micros,
    /// Who played, if this is somebody's decision or forfeit.
    pub seat: Option<Seat>,
    /// What was answered, as it was said.
    pub said: Option<String>,
    /// How the seat forfeited, and the evidence.
    pub forfeit: Option<String>,
    /// The table after it.
    pub picture: Picture,
    /// Every seat's clock, seat 1 first.
    pub clocks: Vec<Clock>,
    /// Every seat's result, in the last step.
    pub standings: Option<Vec<SeatResult>>,
}

/// A seat's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// What is left in its bank, in games that have one.
    pub left: Option<Micros>,
    /// What its last answer took.
    pub last: Option<TimeSpent>,
    /// What its answers took so far, by the clock that is charged.
    pub used: Micros,
}

/// Replays a record, and draws the steps whose numbers are in `wanted`.
///
/// # Errors
/// The first difference between the record and the rules.
pub fn steps(
    games: &Games,
    record: impl BufRead,
    wanted: Range<usize>,
) -> Result<Steps, Difference> {
    let mut film = Film { wanted, ..Film::default() };
    let verified = follow(games, record, &mut film)?;
    let Film { total, drawn, chapters, stderr, .. } = film;
    Ok(Steps { verified, total, drawn, chapters, stderr })
}

/// A replay being cut into steps.
#[derive(Debug, Default)]
struct Film {
    wanted: Range<usize>,
    names: Vec<BotName>,
    /// Whether processor time is charged.
    cpu: bool,
    total: usize,
    drawn: Vec<Step>,
    chapters: Vec<(String, usize)>,
    stderr: Vec<Option<Stderr>>,
    clocks: Vec<Clock>,
    /// What the last picture shows.
    shown: Option<Key>,
}

/// What somebody did.
#[derive(Clone, Debug, Default)]
struct Deed {
    seat: Option<Seat>,
    said: Option<String>,
    forfeit: Option<String>,
    standings: Option<Vec<SeatResult>>,
}

impl Film {
    /// Adds a step.
    fn add(&mut self, time: Micros, deed: Deed, game: &dyn MatchState) {
        let index = self.total;
        self.total += 1;
        self.shown = Some(game.view().picture_key());
        if let Some(chapter) = game.view().chapter()
            && self.chapters.last().is_none_or(|(last, _)| *last != chapter)
        {
            self.chapters.push((chapter, index));
        }
        if !self.wanted.contains(&index) {
            return;
        }
        let Deed { seat, said, forfeit, standings } = deed;
        let picture = draw(&game.view().picture(&self.names, None));
        let clocks = self.clocks.clone();
        self.drawn.push(Step { index, time, seat, said, forfeit, picture, clocks, standings });
    }

    /// Reads the clock of a seat that has answered.
    fn charge(&mut self, say: &Say, spent: TimeSpent, cost: Micros) {
        let measured = if self.cpu { spent.cpu } else { spent.wall };
        let clock = &mut self.clocks[say.seat.index()];
        clock.last = Some(spent);
        clock.used += measured;
        if let Allowance::Bank(left) = say.allowance {
            clock.left = Some((left - cost).max(Micros::ZERO));
        }
    }
}

impl Follower for Film {
    fn begin(&mut self, header: &Header, game: &dyn MatchState) {
        self.names = header.names();
        self.cpu = header.clock.kind == ClockKind::Cpu;
        self.clocks = vec![Clock::default(); self.names.len()];
        self.stderr = vec![None; self.names.len()];
        self.add(Micros::ZERO, Deed::default(), game);
    }

    fn follow(&mut self, time: Micros, scene: Scene<'_>, game: &dyn MatchState) {
        let deed = match scene {
            Scene::Told(_) | Scene::Dismissed(_) => return,
            Scene::Due if self.shown == Some(game.view().picture_key()) => return,
            Scene::Due => Deed::default(),
            Scene::Replied { say, reply, spent, cost, illegal } => {
                self.charge(say, spent, cost);
                if say.owes != Owes::Move && illegal.is_none() {
                    return;
                }
                Deed {
                    seat: Some(say.seat),
                    said: Some(String::from_utf8_lossy(reply).into_owned()),
                    forfeit: illegal.map(|detail| format!("illegal: {detail}")),
                    standings: None,
                }
            }
            Scene::Forfeited { say, forfeit, spent, cost, detail } => {
                self.charge(say, spent, cost);
                let forfeit = Some(format!("{forfeit}: {detail}"));
                Deed { seat: Some(say.seat), forfeit, ..Deed::default() }
            }
            Scene::Over(standings) => {
                Deed { standings: Some(standings.to_vec()), ..Deed::default() }
            }
            Scene::Stderr { seat, text, dropped } => {
                let stderr = Stderr { text: text.to_owned(), dropped };
                self.stderr[seat.index()] = Some(stderr);
                return;
            }
        };
        self.add(time, deed, game);
    }
}

//! The seam between the rules and the world: what a game asks for, what it is told.
//!
//! The driver (a referee with real programs, or the verification of a record) repeats:
//!
//! 1. [`MatchState::step`] gives the next thing to do.
//! 2. After a [`Say`] that owes something, [`MatchState::receive_reply`] passes on the answer, or the forfeit
//!    that stands in its place, with the time charged for it.
//!
//! Consequences are the game's alone. A forfeit is ordinary input: each game treats a dead bot in
//! its own way, and says [`Step::Dismiss`] when the program is to be killed.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use crate::clock::Allowance;
use crate::clock::Micros;
use crate::move_form::{ANSWER, FormFields, MoveForm};
use crate::name::BotName;
use crate::picture::{Key, Picture};
pub(crate) use crate::seat::Seat;

crate::string_enum! {
    /// What a bot did to lose its say. Always scored; never used for a failure of ours. Reports
    /// count the kinds in this order, and databases number them by it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Forfeit {
        /// Its time was up.
        Clock = "clock",
        /// Its answer breaks the rules of the game or of the protocol.
        Illegal = "illegal",
        /// It crashed, exited, or closed a pipe.
        Gone = "gone",
        /// It wrote more than any answer needs.
        Flood = "flood",
    }
}

impl Forfeit {
    /// The forfeit that an answer comes to, if it is one or breaks the rules.
    pub fn from_reply(taken: &Result<Result<(), Illegal>, Self>) -> Option<Self> {
        match taken {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some(Self::Illegal),
            Err(forfeit) => Some(*forfeit),
        }
    }
}

/// What a bot owes after hearing something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owes {
    /// No answer: one that comes all the same is ignored.
    #[default]
    Nothing,
    /// An answer whose content does not matter, as long as its form is right.
    Ack,
    /// A decision.
    Move,
}

/// When a bot is asked that plays at several tables at once, as in tricks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TurnPolicy {
    /// As soon as one table waits for it.
    #[default]
    AnyTable,
    /// Only when every table that is not over waits for it.
    AllTables,
}

/// One protocol unit from the referee to one seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Say {
    /// Whom it is for.
    pub seat: Seat,
    /// The words: one command, one line, several lines joined by `\n`, or, for programs executed
    /// once per decision, the arguments joined by single spaces. Without a final newline.
    pub text: String,
    /// What is expected back.
    pub owes: Owes,
    /// The time for the answer; without meaning where nothing is owed.
    pub allowance: Allowance,
    /// Whether this tells the time (`time_left`), so that the words depend on the speed of the
    /// machine: such words and their answers are left out of the transcript's hash.
    pub tells_time: bool,
}

impl Say {
    /// Asks a seat for a decision, for which it has so much time.
    pub fn ask(seat: Seat, text: String, limit: Micros) -> Self {
        let allowance = Allowance::Move(limit);
        Self { seat, text, owes: Owes::Move, allowance, tells_time: false }
    }

    /// Tells a seat something that asks for no answer.
    pub fn tell(seat: Seat, text: String) -> Self {
        Self { owes: Owes::Nothing, ..Self::ask(seat, text, Micros::ZERO) }
    }
}

/// An event for people and verification. No seat is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Note {
    /// The end of a hand of blackjack.
    Hand {
        /// The number of the hand in its match, from 1.
        hand: u32,
        /// The dealer's cards in the order drawn.
        dealer: String,
        /// Every seat's chips after the hand.
        chips: Vec<i64>,
    },
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Say this, and if it owes something report back through [`MatchState::receive_reply`].
    Say(Say),
    /// Kill this seat's program: it is never spoken to again.
    Dismiss(Seat),
    /// Put this into the record.
    Note(Note),
    /// The match is over. Repeated for ever after.
    Over(Vec<SeatResult>),
}

/// Tie-break keys, the most important first: added component by component over matches, compared
/// from the left, more is better. Sums of them may need more bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Score(pub Vec<i64>);

/// How one seat ends a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatResult {
    /// What the match brings to the ranking.
    pub score: Score,
    /// The forfeit that ended this seat's say, if one did.
    pub forfeit: Option<Forfeit>,
    /// Answers that were bad without being forfeits (blackjack counts them; elsewhere none).
    pub bad_answers: u32,
}

impl SeatResult {
    /// How a seat ends that gave no bad answer.
    pub fn new(score: Vec<i64>, forfeit: Option<Forfeit>) -> Self {
        Self { score: Score(score), forfeit, bad_answers: 0 }
    }
}

/// An answer that breaks the rules: the reason, in words for the bot's author.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Illegal(pub String);

/// Why a match cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct StartError(pub String);

/// A match in progress.
pub trait MatchState: Send + fmt::Debug {
    /// The next thing to do. After a [`Step::Say`] that owes something, [`MatchState::receive_reply`] comes
    /// first.
    fn step(&mut self) -> Step;

    /// The answer to the last [`Say`], or the forfeit in its place, and the time charged for it.
    ///
    /// The text is the answer without its frame (a line's end, the empty line of GTP); bytes that
    /// are not UTF-8 arrive as U+FFFD, which no game accepts as part of a move.
    ///
    /// # Errors
    /// [`Illegal`] if the answer forfeits the seat. The game has taken it into account already.
    fn receive_reply(
        &mut self,
        answer: Result<&str, Forfeit>,
        charged: Micros,
    ) -> Result<(), Illegal>;

    /// What the program of `seat` is told on its command line, after its own arguments.
    fn launch_arguments(&self, _seat: Seat) -> Vec<String> {
        Vec::new()
    }

    /// What records of earlier versions say to a program that was gone, if they do.
    fn legacy_farewell(&self) -> Option<String> {
        None
    }

    /// The match as people see it.
    fn view(&self) -> &dyn MatchView;
}

/// A match that can be tried out.
pub trait Fork {
    /// A match that stands as this one does: what is tried there is not played here.
    fn fork(&self) -> Box<dyn MatchState>;
}

impl<T: MatchState + Clone + 'static> Fork for T {
    fn fork(&self) -> Box<dyn MatchState> {
        Box::new(self.clone())
    }
}

/// A match as people see it: what it looks like, and what they may play. Read-only.
pub trait MatchView: Any + fmt::Debug + Fork {
    /// What the match looks like between bots of these names, seat 1 first, as the player of `viewer`
    /// sees it; without viewer everything is seen. What is hidden is not in the picture at all.
    fn picture(&self, names: &[BotName], viewer: Option<Seat>) -> Picture;

    /// What a picture of this state shows.
    fn picture_key(&self) -> Key;

    /// The part of the match that this state belongs to, in games that have parts.
    fn chapter(&self) -> Option<String> {
        None
    }

    /// Whether nothing is answered to this protocol unit: it is the last one of a match.
    fn is_farewell(&self, _unit: &str) -> bool {
        false
    }

    /// What the person at `seat` may do. `chosen` is what was chosen before, in moves that take
    /// several steps.
    fn move_form(&self, seat: Seat, chosen: &FormFields) -> MoveForm;

    /// The answer that a form comes to in which no whole answer was chosen.
    ///
    /// # Errors
    /// What is missing in it, for the person.
    fn form_answer(&self, _seat: Seat, _fields: &FormFields) -> Result<String, String> {
        Err("choose a move".to_string())
    }

    /// Warns a person of an answer that the rules take and punish.
    fn warn(&self, _seat: Seat, _answer: &str) -> Result<(), String> {
        Ok(())
    }
}

impl dyn MatchView {
    /// The answer that a form comes to.
    ///
    /// # Errors
    /// If something is missing in it: what, for the person.
    pub fn answer(&self, seat: Seat, fields: &FormFields) -> Result<String, String> {
        match fields.get(ANSWER) {
            Some(answer) => Ok(answer.trim().to_string()),
            None => self.form_answer(seat, fields),
        }
    }

    /// Whether the person at `seat` may answer so: the answer is tried on a copy of the match. Where
    /// the rules take an answer but punish it, a person is told before and not after.
    ///
    /// # Errors
    /// Why not: in the words of the rules, where these have any.
    pub fn check(&self, seat: Seat, answer: &str) -> Result<(), String> {
        self.fork()
            .receive_reply(Ok(answer), Micros::ZERO)
            .map_err(|illegal| illegal.to_string())?;
        self.warn(seat, answer)
    }
}

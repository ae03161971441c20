//! The interface between the rules of a game and the driver of a match.
//!
//! The driver (a referee with real programs, or the verification of a record) repeats:
//!
//! 1. [`MatchState::step`] returns the next thing to do.
//! 2. After a [`Say`] that owes something, the driver calls [`MatchState::receive_reply`] with the
//!    reply, or with the forfeit in its place, and with the charged time.
//!
//! The game alone decides the consequences. A forfeit is ordinary input: each game treats a dead bot
//! in its own way, and returns [`Step::Dismiss`] when the program must be killed.

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
    /// Why a bot forfeited. A forfeit is always scored; infrastructure failures are never forfeits.
    /// Reports and databases rely on this order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Forfeit {
        /// Its time ran out.
        Clock = "clock",
        /// Its reply breaks the rules of the game or of the protocol.
        Illegal = "illegal",
        /// It crashed, exited, or closed a pipe.
        Gone = "gone",
        /// It wrote more than any reply needs.
        Flood = "flood",
    }
}

impl Forfeit {
    /// The forfeit that follows from a reply: `Illegal` if it breaks the rules.
    pub fn from_reply(taken: &Result<Result<(), Illegal>, Self>) -> Option<Self> {
        match taken {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some(Self::Illegal),
            Err(forfeit) => Some(*forfeit),
        }
    }
}

/// The reply that a bot owes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owes {
    /// No reply. If the bot sends one anyway, it is ignored.
    #[default]
    Nothing,
    /// An acknowledgement: its form must be right, its content does not matter.
    Ack,
    /// A decision.
    Move,
}

/// When to ask a bot that plays at several tables at once, as in tricks.
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
    /// The seat that it is for.
    pub seat: Seat,
    /// The text: one command, one line, several lines joined by `\n`, or, for programs executed once
    /// per decision, the arguments joined by single spaces. Without a final newline.
    pub text: String,
    /// The reply that is expected.
    pub owes: Owes,
    /// The time for the reply; without meaning if none is owed.
    pub allowance: Allowance,
    /// Whether the text tells the time (`time_left`) and so depends on the speed of the machine. The
    /// transcript's hash leaves out such texts and the replies to them.
    pub tells_time: bool,
}

impl Say {
    /// Asks a seat for a decision within a time limit.
    pub fn ask(seat: Seat, text: String, limit: Micros) -> Self {
        let allowance = Allowance::Move(limit);
        Self { seat, text, owes: Owes::Move, allowance, tells_time: false }
    }

    /// Tells a seat something that needs no reply.
    pub fn tell(seat: Seat, text: String) -> Self {
        Self { owes: Owes::Nothing, ..Self::ask(seat, text, Micros::ZERO) }
    }
}

/// An event for people and for verification. It is not sent to any seat.
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
    /// Send this. If it owes a reply, pass the reply to [`MatchState::receive_reply`].
    Say(Say),
    /// Kill this seat's program. It gets no more messages.
    Dismiss(Seat),
    /// Put this into the record.
    Note(Note),
    /// The match is over. All later steps are the same.
    Over(Vec<SeatResult>),
}

/// The components of a score, the most important first. They are added over matches and compared from
/// the left; more is better. Sums may need more bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Score(pub Vec<i64>);

/// The result of one seat in a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatResult {
    /// The score that counts for the ranking.
    pub score: Score,
    /// The seat's forfeit, if it forfeited.
    pub forfeit: Option<Forfeit>,
    /// Bad replies that are no forfeits. Only blackjack counts them.
    pub bad_answers: u32,
}

impl SeatResult {
    /// The result of a seat without bad replies.
    pub fn new(score: Vec<i64>, forfeit: Option<Forfeit>) -> Self {
        Self { score: Score(score), forfeit, bad_answers: 0 }
    }
}

/// A reply that breaks the rules, with the reason for the bot's author.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Illegal(pub String);

/// Why a match cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct StartError(pub String);

/// A match in progress.
pub trait MatchState: Send + fmt::Debug {
    /// The next thing to do. After a [`Step::Say`] that owes a reply, call
    /// [`MatchState::receive_reply`] first.
    fn step(&mut self) -> Step;

    /// Takes the reply to the last [`Say`], or the forfeit in its place, and the charged time.
    ///
    /// The text is the reply without its frame (the end of a line, the empty line of GTP). Bytes that
    /// are not UTF-8 arrive as U+FFFD, which no game accepts in a move.
    ///
    /// # Errors
    /// [`Illegal`] if the reply forfeits the seat. The game already counts the forfeit.
    fn receive_reply(
        &mut self,
        answer: Result<&str, Forfeit>,
        charged: Micros,
    ) -> Result<(), Illegal>;

    /// The arguments for the command line of the program of `seat`, after its own arguments.
    fn launch_arguments(&self, _seat: Seat) -> Vec<String> {
        Vec::new()
    }

    /// The last message that records of earlier versions send to a program that is gone, if any.
    fn legacy_farewell(&self) -> Option<String> {
        None
    }

    /// The match for people.
    fn view(&self) -> &dyn MatchView;
}

/// A match that can be copied, to try a reply.
pub trait Fork {
    /// An independent copy of this match.
    fn fork(&self) -> Box<dyn MatchState>;
}

impl<T: MatchState + Clone + 'static> Fork for T {
    fn fork(&self) -> Box<dyn MatchState> {
        Box::new(self.clone())
    }
}

/// A match for people: its picture, and the moves they may play. Read-only.
pub trait MatchView: Any + fmt::Debug + Fork {
    /// The picture of the match between bots of these names, seat 1 first, for the player of `viewer`;
    /// without a viewer everything is visible. Hidden things are not in the picture at all.
    fn picture(&self, names: &[BotName], viewer: Option<Seat>) -> Picture;

    /// A key of everything that the picture shows: equal keys mean equal pictures.
    fn picture_key(&self) -> Key;

    /// The part of the match that this state belongs to, in games that have parts.
    fn chapter(&self) -> Option<String> {
        None
    }

    /// Whether this protocol unit is the last one of a match, which needs no reply.
    fn is_farewell(&self, _unit: &str) -> bool {
        false
    }

    /// The form for the move of the person at `seat`. `chosen` holds the earlier choices of a move that
    /// takes several steps.
    fn move_form(&self, seat: Seat, chosen: &FormFields) -> MoveForm;

    /// The reply that a form without a whole reply stands for.
    ///
    /// # Errors
    /// What is missing, for the person.
    fn form_answer(&self, _seat: Seat, _fields: &FormFields) -> Result<String, String> {
        Err("choose a move".to_string())
    }

    /// Warns a person of a reply that the rules accept but punish.
    fn warn(&self, _seat: Seat, _answer: &str) -> Result<(), String> {
        Ok(())
    }
}

impl dyn MatchView {
    /// The reply that a form stands for.
    ///
    /// # Errors
    /// What is missing, for the person.
    pub fn answer(&self, seat: Seat, fields: &FormFields) -> Result<String, String> {
        match fields.get(ANSWER) {
            Some(answer) => Ok(answer.trim().to_string()),
            None => self.form_answer(seat, fields),
        }
    }

    /// Checks the reply of a person at `seat` on a copy of the match. It also refuses replies that the
    /// rules accept but punish, so that a person is warned first.
    ///
    /// # Errors
    /// Why the reply is refused, in the words of the rules where they have any.
    pub fn check(&self, seat: Seat, answer: &str) -> Result<(), String> {
        self.fork()
            .receive_reply(Ok(answer), Micros::ZERO)
            .map_err(|illegal| illegal.to_string())?;
        self.warn(seat, answer)
    }
}

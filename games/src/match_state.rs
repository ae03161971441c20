//! The interface between the rules of a game and the driver of a match.
//!
//! The driver (a referee with real programs, or the verification of a record) repeats:
//!
//! 1. [`MatchState::step`] returns the next thing to do.
//! 2. After a [`Message`] that expects a reply, the driver calls [`MatchState::receive_reply`] with
//!    the reply or the forfeit, and with the charged time.
//!
//! The game alone decides the consequences. A forfeit is ordinary input: each game decides how to
//! go on without the bot, and returns [`Step::Dismiss`] when the program must be killed.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use crate::clock::Allowance;
use crate::clock::Micros;
use crate::move_form::{FormFields, MoveForm, REPLY};
use crate::name::EntrantName;
use crate::picture::{Frame, Key, Picture};
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
        /// Its output exceeded the size limit.
        Flood = "flood",
    }
}

impl Forfeit {
    /// The forfeit that follows from a reply: `Illegal` if it breaks the rules.
    pub fn from_reply(outcome: &Result<Result<(), Illegal>, Self>) -> Option<Self> {
        match outcome {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some(Self::Illegal),
            Err(forfeit) => Some(*forfeit),
        }
    }
}

/// The kind of reply that a message expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedReply {
    /// No reply. If the bot sends one anyway, it is ignored.
    #[default]
    None,
    /// An acknowledgement: only its syntax is checked.
    Ack,
    /// A decision.
    Move,
}

/// When to ask a bot that plays at several tables at once, as in tricks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TurnPolicy {
    /// As soon as it has the turn at one table.
    #[default]
    AnyTable,
    /// Only when it has the turn at every unfinished table.
    AllTables,
}

/// One protocol unit that the referee sends to one seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The seat that receives it.
    pub seat: Seat,
    /// The text without a final newline: one command, one line, or several lines joined by `\n`.
    /// For programs executed once per decision: the arguments joined by single spaces.
    pub text: String,
    /// The kind of reply that is expected.
    pub expected_reply: ExpectedReply,
    /// The time for the reply. Unused if no reply is expected.
    pub allowance: Allowance,
    /// Whether the text contains the remaining time (`time_left`), which depends on the speed of
    /// the machine. The transcript's hash leaves out such texts and the replies to them.
    pub tells_time: bool,
}

impl Message {
    /// A request for a decision within a time limit.
    pub fn request(seat: Seat, text: String, limit: Micros) -> Self {
        let allowance = Allowance::Move(limit);
        Self { seat, text, expected_reply: ExpectedReply::Move, allowance, tells_time: false }
    }

    /// A message that expects no reply.
    pub fn notice(seat: Seat, text: String) -> Self {
        Self { expected_reply: ExpectedReply::None, ..Self::request(seat, text, Micros::ZERO) }
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
    /// An event of a game package in words.
    Text {
        /// The words.
        note: String,
    },
    /// A picture that a game package draws.
    Frame {
        /// The picture.
        frame: Frame,
        /// The seat that may see it during the match. Without a seat, it is the picture for all
        /// people after the match.
        #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
        viewer: Option<Seat>,
    },
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this message. If it expects a reply, pass the reply to [`MatchState::receive_reply`].
    Send(Message),
    /// Kill this seat's program. It gets no more messages.
    Dismiss(Seat),
    /// Write this note into the record.
    Note(Note),
    /// An earlier reply of this seat breaks the rules, which [`MatchState::receive_reply`] could
    /// not tell yet.
    Illegal(Seat, Illegal),
    /// The rules failed, and this is how. The match does not count. All later steps are the same.
    Fault(String),
    /// The match is over, with the result of each seat. All later steps are the same.
    Over(Vec<SeatResult>),
}

/// The components of a score, the most important first. They are added over matches and compared
/// from the left; more is better. Sums may need more bits.
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
    /// The number of bad replies that are not forfeits. Only blackjack counts them.
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
    /// The next thing to do. After a [`Step::Send`] that expects a reply, call
    /// [`MatchState::receive_reply`] first.
    fn step(&mut self) -> Step;

    /// Takes the reply or the forfeit that follows the last [`Message`], and the charged time.
    ///
    /// The text is the reply without its end (a newline, or the empty line of GTP). The driver
    /// replaces bytes that are not UTF-8 by U+FFFD, which no game accepts in a move.
    ///
    /// # Errors
    /// [`Illegal`] if the reply breaks the rules. The game has already applied the consequences.
    fn receive_reply(
        &mut self,
        reply: Result<&str, Forfeit>,
        charged: Micros,
    ) -> Result<(), Illegal>;

    /// Starts what the rules need besides this state. The driver calls it before it asks for launch
    /// arguments and starts programs, which then start side by side with the rules.
    fn prepare(&mut self) {}

    /// The arguments for the command line of the program of `seat`, after its own arguments.
    fn launch_arguments(&self, _seat: Seat) -> Vec<String> {
        Vec::new()
    }

    /// The last message to a program that is gone, in records of earlier versions. `None` if the
    /// game had no such message.
    fn legacy_farewell(&self) -> Option<String> {
        None
    }

    /// The match as people see it.
    fn view(&self) -> &dyn MatchView;
}

/// A match that can be copied, so that a reply can be checked on the copy.
pub trait Fork {
    /// An independent copy of this match.
    fn fork(&self) -> Box<dyn MatchState>;
}

impl<T: MatchState + Clone + 'static> Fork for T {
    fn fork(&self) -> Box<dyn MatchState> {
        Box::new(self.clone())
    }
}

/// A read-only view of a match for people: its picture, and the moves that they can play.
pub trait MatchView: Any + fmt::Debug + Fork {
    /// The picture of the match between bots of these names, seat 1 first. It contains only what
    /// the player of the seat `viewer` may see; without a viewer it contains everything.
    fn picture(&self, names: &[EntrantName], viewer: Option<Seat>) -> Picture;

    /// A key of the picture: equal keys mean equal pictures.
    fn picture_key(&self) -> Key;

    /// The title of the present part of the match, in games that have parts.
    fn chapter(&self) -> Option<String> {
        None
    }

    /// Whether this protocol unit is the last one of a match, which expects no reply.
    fn is_farewell(&self, _unit: &str) -> bool {
        false
    }

    /// The form for the move of the person at `seat`. `chosen` holds the earlier choices of a move
    /// that takes several steps.
    fn move_form(&self, seat: Seat, chosen: &FormFields) -> MoveForm;

    /// The reply for the fields of a form, if no field holds a whole reply.
    ///
    /// # Errors
    /// A message for the person: which field is missing.
    fn form_reply(&self, _seat: Seat, _fields: &FormFields) -> Result<String, String> {
        Err("choose a move".to_string())
    }

    /// Warns a person of a reply that the rules accept but penalise.
    fn warn(&self, _seat: Seat, _reply: &str) -> Result<(), String> {
        Ok(())
    }
}

impl dyn MatchView {
    /// The reply for the fields of a form.
    ///
    /// # Errors
    /// A message for the person: which field is missing.
    pub fn reply(&self, seat: Seat, fields: &FormFields) -> Result<String, String> {
        match fields.get(REPLY) {
            Some(reply) => Ok(reply.trim().to_string()),
            None => self.form_reply(seat, fields),
        }
    }

    /// Checks the reply of a person at `seat` on a copy of the match. It also refuses replies that
    /// the rules accept but penalise, to warn the person first.
    ///
    /// # Errors
    /// A message for the person: why the reply is refused.
    pub fn check(&self, seat: Seat, reply: &str) -> Result<(), String> {
        self.fork()
            .receive_reply(Ok(reply), Micros::ZERO)
            .map_err(|illegal| illegal.to_string())?;
        self.warn(seat, reply)
    }
}

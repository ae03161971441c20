//! The lines between Arbiter and the rules of a package: JSON objects, one a line.
//!
//! ```text
//! > {"new":{"protocol":1,"params":{"columns":7},"seed":"<64 hex>","bots":["alice","bob"],"frames":false}}
//! < {"do":[{"tell":1,"text":"start 1"},{"tell":2,"text":"start 2"},{"ask":1,"text":"move"}]}
//! > {"heard":[{"seat":1,"text":"3"}]}
//! < {"do":[{"tell":2,"text":"played 3"},{"ask":2,"text":"move"}]}
//! > {"heard":[{"seat":2,"forfeit":"clock"}]}
//! < {"do":[{"over":[[2],[0]]}]}
//! ```

use arbiter_games::{BotName, Forfeit, Frame, Seat, Seed, Values};
use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// The largest component of a score, and with a minus sign the smallest.
pub const MAX_SCORE: i64 = 1_000_000_000_000;

/// The largest number of legal replies in an answer.
pub const MAX_LEGAL: usize = 1000;

/// The largest text of an answer, in bytes: a message, a note or a reason.
pub const MAX_TEXT: usize = 64 * 1024;

/// The largest sum of texts to a seat between two of its requests, in bytes. They wait in a pipe
/// while the program is stopped, and more does not fit.
pub const MAX_TOLD: usize = 60 * 1024;

/// The largest picture of an answer, in bytes.
pub const MAX_FRAME: usize = 256 * 1024;

/// The longest time that a request may give, in microseconds: a day.
pub const MAX_ALLOWANCE: i64 = 86_400_000_000;

/// The largest number of bad replies of a seat in a match.
pub const MAX_BAD_ANSWERS: u32 = 1_000_000;

/// The largest number of arguments for a program, and the largest length of all of them in bytes.
pub const MAX_ARGUMENTS: (usize, usize) = (100, 16 * 1024);

/// A line to the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// A match begins.
    New(NewMatch),
    /// The replies to the requests of the last answer, in seat order.
    Heard(Vec<Heard>),
    /// Which replies of this seat, which was asked, are legal? The question changes nothing.
    Legal(Seat),
}

/// The start of a match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewMatch {
    /// [`PROTOCOL_VERSION`].
    pub protocol: u32,
    /// The values of all parameters.
    pub params: Values,
    /// The seed: the only source of chance.
    pub seed: Seed,
    /// The names of the bots, seat 1 first.
    pub bots: Vec<BotName>,
    /// Whether pictures are recorded.
    pub frames: bool,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heard {
    /// The seat.
    pub seat: Seat,
    /// The reply without its end. Bytes that are not UTF-8 are U+FFFD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why there is no reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forfeit: Option<Forfeit>,
    /// The charged time in microseconds, if the request said how long the reply may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged_us: Option<i64>,
}

/// The answer to [`Question::Legal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegalReplies {
    /// The legal replies, at most [`MAX_LEGAL`]. None at all means that they cannot be listed.
    pub legal: Vec<String>,
}

/// The answer to a question that moves the match on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What to do, in order. Requests come last, or `over` does.
    #[serde(rename = "do")]
    pub actions: Vec<Action>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Action {
    /// Sends a message that expects no reply.
    Tell {
        /// The seat that receives it.
        tell: Seat,
        /// One line, or several joined by `\n`.
        text: String,
        /// Whether the text contains a time, which depends on the machine.
        #[serde(default, skip_serializing_if = "is_false")]
        timed: bool,
    },
    /// Sends a request. Requests of one answer are simultaneous: no seat learns of another's reply
    /// before all have replied.
    Ask {
        /// The seat that must reply.
        ask: Seat,
        /// The request.
        text: String,
        /// Whether the text contains a time, which depends on the machine.
        #[serde(default, skip_serializing_if = "is_false")]
        timed: bool,
        /// Whether the reply only acknowledges the text, so that people need not write it.
        #[serde(default, skip_serializing_if = "is_false")]
        ack: bool,
        /// The limit of this reply in microseconds, instead of the package's clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        move_us: Option<i64>,
        /// The rest of the seat's bank in microseconds, instead of the package's clock. It may be
        /// negative after a reply that used a part of the margin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bank_us: Option<i64>,
    },
    /// Gives the program of a seat these arguments. Only the first answer has it, at its beginning.
    Launch {
        /// The seat.
        launch: Seat,
        /// The arguments, after those of the program itself.
        arguments: Vec<String>,
    },
    /// Ends a seat's program. The seat is told and asked nothing more.
    Dismiss {
        /// The seat.
        dismiss: Seat,
    },
    /// Reports a public event in words.
    Note {
        /// The words.
        note: String,
    },
    /// Shows a picture to people.
    Frame {
        /// The picture.
        frame: Frame,
        /// The seat that may see it during the match. Without a seat, it is the picture for all
        /// people after the match.
        #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
        viewer: Option<Seat>,
    },
    /// Declares that the last reply of a seat breaks the rules: the seat forfeits.
    Illegal {
        /// The seat.
        illegal: Seat,
        /// The reason, for the bot's author.
        why: String,
    },
    /// Ends the match.
    Over {
        /// The score of each seat, seat 1 first: one number for each name in `score`.
        over: Vec<Vec<i64>>,
        /// The forfeit of each seat that counts, if not every forfeit does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forfeits: Option<Vec<Option<Forfeit>>>,
        /// The number of bad replies of each seat, in games where they are not forfeits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bad_answers: Option<Vec<u32>>,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_documented_ones() {
        let answer = r#"{"do":[{"tell":1,"text":"start"},{"ask":2,"text":"move"},{"dismiss":1},{"note":"end"},{"frame":{"svg":"<svg/>","caption":"a board"},"for":2},{"illegal":2,"why":"no"},{"over":[[2],[0]]}]}"#;
        let parsed: Answer = serde_json::from_str(answer).unwrap();
        assert_eq!(parsed.actions.len(), 7);
        assert_eq!(serde_json::to_string(&parsed).unwrap(), answer);
        let heard = r#"{"heard":[{"seat":1,"text":"3"},{"seat":2,"forfeit":"clock"}]}"#;
        let parsed: Question = serde_json::from_str(heard).unwrap();
        assert_eq!(serde_json::to_string(&parsed).unwrap(), heard);
    }

    #[test]
    fn rules_may_keep_their_own_clocks() {
        let answer = r#"{"do":[{"launch":1,"arguments":["bob"]},{"tell":1,"text":"9 ms","timed":true},{"ask":2,"text":"go","timed":true,"ack":true,"bank_us":-5},{"over":[[1]],"forfeits":[null],"bad_answers":[3]}]}"#;
        let parsed: Answer = serde_json::from_str(answer).unwrap();
        assert_eq!(serde_json::to_string(&parsed).unwrap(), answer);
        let heard = r#"{"heard":[{"seat":1,"forfeit":"gone","charged_us":12}]}"#;
        let parsed: Question = serde_json::from_str(heard).unwrap();
        assert_eq!(serde_json::to_string(&parsed).unwrap(), heard);
    }

    #[test]
    fn unknown_members_are_errors() {
        for answer in [
            r#"{"do":[],"more":1}"#,
            r#"{"do":[{"tell":1,"text":"x","to":2}]}"#,
            r#"{"do":[{"over":[[1.5]]}]}"#,
            r#"{"do":[{"frame":{"svg":"<svg/>"}}]}"#,
            r#"{"do":[{"ask":1,"text":"x","move_ms":2}]}"#,
        ] {
            assert!(serde_json::from_str::<Answer>(answer).is_err(), "{answer}");
        }
    }
}

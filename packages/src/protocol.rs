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

/// The largest picture of an answer, in bytes.
pub const MAX_FRAME: usize = 256 * 1024;

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
    },
    /// Sends a request. Requests of one answer are simultaneous: no seat learns of another's reply
    /// before all have replied.
    Ask {
        /// The seat that must reply.
        ask: Seat,
        /// The request.
        text: String,
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
    },
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
    fn unknown_members_are_errors() {
        for answer in [
            r#"{"do":[],"more":1}"#,
            r#"{"do":[{"tell":1,"text":"x","to":2}]}"#,
            r#"{"do":[{"over":[[1.5]]}]}"#,
            r#"{"do":[{"frame":{"svg":"<svg/>"}}]}"#,
        ] {
            assert!(serde_json::from_str::<Answer>(answer).is_err(), "{answer}");
        }
    }
}

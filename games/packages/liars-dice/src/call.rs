//! What a seat says in its turn.

use std::str::FromStr;

use crate::dice::FACES;

/// Maximum number of characters of a reply that a message quotes.
const MAX_QUOTED: usize = 40;

/// What a seat says in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The table has at least this number of dice with a face.
    Bid(Bid),
    /// The last bid is wrong.
    Liar,
}

/// At least `count` dice of a face. A greater bid has a greater count, or an equal count and a
/// greater face.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bid {
    pub count: usize,
    pub face: u8,
}

impl Call {
    /// Reads a reply: `4 3` is a bid of four threes, `liar` a challenge.
    ///
    /// # Errors
    /// Why the reply is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("liar"), None, _) => Some(Self::Liar),
            (Some(count), Some(face), None) => {
                number(count).zip(number(face)).map(|(count, face)| Self::Bid(Bid { count, face }))
            }
            _ => None,
        }
        .ok_or_else(|| format!("write `COUNT FACE`, as in `4 3`, or `liar`, not {}", quote(text)))
    }

    /// The reply that says this.
    pub fn reply(self) -> String {
        match self {
            Self::Bid(Bid { count, face }) => format!("{count} {face}"),
            Self::Liar => "liar".to_owned(),
        }
    }
}

impl Bid {
    /// The bids on a number of dice that are greater than another, the least one first.
    pub fn greater(than: Option<Self>, dice: usize) -> impl Iterator<Item = Self> {
        let bids = (1..=dice).flat_map(|count| (1..=FACES).map(move |face| Self { count, face }));
        bids.filter(move |bid| than.is_none_or(|than| *bid > than))
    }
}

/// A number of at most three digits.
fn number<T: FromStr>(word: &str) -> Option<T> {
    let is_short = word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| is_short)
}

/// The beginning of a text in quotation marks, without control characters.
fn quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        let bid = Call::Bid(Bid { count: 4, face: 3 });
        for text in ["4 3", " 4\t3\r", "04 3"] {
            assert_eq!(Call::parse(text), Ok(bid), "{text}");
        }
        assert_eq!(Call::parse("liar"), Ok(Call::Liar));
        for call in [bid, Call::Liar] {
            assert_eq!(Call::parse(&call.reply()), Ok(call));
        }
    }

    #[test]
    fn other_replies_are_quoted() {
        let long = "♞".repeat(20_000);
        for text in [
            "", "4", "4 3 2", "liar 4", "Liar", "+4 3", "-1 3", "4.0 3", "1000 3", "٣ 3", "\0",
            &long,
        ] {
            let why = Call::parse(text).unwrap_err();
            assert!(why.len() < 250 && !why.contains('\0'), "{why}");
        }
    }

    #[test]
    fn a_greater_bid_has_more_dice_or_a_greater_face() {
        let bids: Vec<_> = Bid::greater(Some(Bid { count: 2, face: 4 }), 3).collect();
        let replies: Vec<_> = bids.into_iter().map(|bid| Call::Bid(bid).reply()).collect();
        assert_eq!(replies, ["2 5", "2 6", "3 1", "3 2", "3 3", "3 4", "3 5", "3 6"]);
        assert_eq!(Bid::greater(None, 36).count(), 216);
        assert_eq!(Bid::greater(Some(Bid { count: 3, face: 6 }), 3).count(), 0);
    }
}

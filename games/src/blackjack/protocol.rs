//! The protocol: the five arguments of a decision, and the replies.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::blackjack::cards::{self, Card, Face};
use crate::gtp;
use crate::match_state::Illegal;

/// The maximum length of a bet, in decimal digits.
const MAX_DIGITS: usize = 18;

/// The situation of a bot at a decision. As text: the five arguments of the command line ("INPUT
/// SPECIFICATION").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The cards of the bot in dealt order.
    pub hand: Vec<Card>,
    /// The dealer's two cards, then the cards of all bots in dealt order.
    pub visible: Vec<Face>,
    /// The stake of the bot in this hand, including the ante, in chips.
    pub stake: i64,
    /// The remaining chips of the bot.
    pub chips: i64,
}

impl fmt::Display for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", cards::score(&self.hand))?;
        self.hand.iter().try_for_each(|card| write!(f, "{}", card.letter()))?;
        write!(f, " ")?;
        self.visible.iter().try_for_each(|face| write!(f, "{face}"))?;
        write!(f, " {} {}", self.stake, self.chips)
    }
}

/// An action of a bot ("OUTPUT SPECIFICATION").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `H`: draw a card.
    Hit,
    /// `S`: draw no more cards.
    Stand,
    /// `D`: double the stake, draw one card and stand; only as the first action of a hand.
    DoubleDown,
    /// `B n`: raise the stake by |n| chips.
    Bet(i64),
}

impl FromStr for Action {
    type Err = Illegal;

    fn from_str(reply: &str) -> Result<Self, Illegal> {
        match reply.trim_ascii() {
            "" => Err(Illegal(String::from("the output is empty: write H, S, D or B n"))),
            "H" | "h" => Ok(Self::Hit),
            "S" | "s" => Ok(Self::Stand),
            "D" | "d" => Ok(Self::DoubleDown),
            other => bet(other).map(Self::Bet).ok_or_else(|| {
                Illegal(format!("{} is not one of H, S, D and B n", gtp::quote(other)))
            }),
        }
    }
}

/// The bet of `B n`: the absolute value of n.
fn bet(reply: &str) -> Option<i64> {
    let argument = reply.strip_prefix(['B', 'b'])?;
    let number = argument.strip_prefix([' ', '\t'])?.trim_start_matches([' ', '\t']);
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_valid = digits.len() <= MAX_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_valid { digits.parse().ok() } else { None }
}

//! Decks of cards.

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use crate::value::ParamsError;

/// A card. The higher number wins.
pub type Card = u16;

/// The maximum number of cards of a deck.
const MAX_CARDS: usize = 1000;

/// The cards of a deck, in ascending order. As text: a comma-separated list of cards `v` or ranges
/// `a-b`, as in `1-13*8`. The suffix `*n` means `n` copies of each card.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deck(Vec<Card>);

impl Deck {
    /// A deck of these cards.
    pub(super) fn of(mut cards: Vec<Card>) -> Self {
        cards.sort_unstable();
        Self(cards)
    }

    /// All cards, in ascending order.
    pub fn cards(&self) -> &[Card] {
        &self.0
    }

    /// The ranges of the shortest text: consecutive cards with equal numbers of copies.
    fn ranges(&self) -> Vec<(RangeInclusive<Card>, usize)> {
        let mut ranges: Vec<(RangeInclusive<Card>, usize)> = Vec::new();
        for equal_cards in self.0.chunk_by(|left, right| left == right) {
            let card = equal_cards[0];
            let copies = equal_cards.len();
            match ranges.last_mut() {
                Some((range, range_copies))
                    if *range_copies == copies && range.end() + 1 == card =>
                {
                    *range = *range.start()..=card;
                }
                _ => ranges.push((card..=card, copies)),
            }
        }
        ranges
    }
}

impl Default for Deck {
    /// The official deck: eight copies of 1 to 13 ("setdeck").
    fn default() -> Self {
        Self::of((1..=13).flat_map(|card| [card; 8]).collect())
    }
}

/// Parses a part of the list: a range, and the copies of each card.
fn part(text: &str) -> Option<(RangeInclusive<Card>, usize)> {
    let (range, copies) = text.split_once('*').unwrap_or((text, "1"));
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let range = number(low)?..=number(high)?;
    let copies = number(copies)?;
    (copies > 0 && !range.is_empty()).then_some((range, usize::from(copies)))
}

/// Parses a number without a sign.
fn number(text: &str) -> Option<u16> {
    let text = text.trim();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl FromStr for Deck {
    type Err = ParamsError;

    fn from_str(text: &str) -> Result<Self, ParamsError> {
        let mut cards = Vec::new();
        for part_text in text.split(',') {
            let (range, copies) = part(part_text).ok_or_else(|| {
                let text = part_text.trim();
                ParamsError::new(format_args!(
                    "deck cannot contain `{text}`: write cards v or ranges a-b, with *n for n of \
                     each, separated by commas, as in 1-13*8; cards are 0 to 65535"
                ))
            })?;
            if cards.len() + range.len() * copies > MAX_CARDS {
                return Err(ParamsError::new(format_args!(
                    "deck `{text}` has too many cards: at most {MAX_CARDS} are possible"
                )));
            }
            cards.extend(range.flat_map(|card| core::iter::repeat_n(card, copies)));
        }
        Ok(Self::of(cards))
    }
}

impl fmt::Display for Deck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (range, copies)) in self.ranges().into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}", range.start())?;
            if range.start() < range.end() {
                write!(f, "-{}", range.end())?;
            }
            if copies > 1 {
                write!(f, "*{copies}")?;
            }
        }
        Ok(())
    }
}

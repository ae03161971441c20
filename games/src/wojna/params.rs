//! The parameters of a match.

use core::ops::RangeInclusive;

use serde::{Deserialize, Deserializer};
use thiserror::Error;

use super::auction::MOST_SEATS;
use super::clock::TimeSettings;
use super::deck::Deck;
use crate::parameter::{Accepts, whole_number};

/// The most deals a match may have.
pub(super) const MOST_DEALS: u32 = 10_000;
/// The fewest seats of a table.
pub(super) const LEAST_SEATS: usize = 2;

/// What is played, and with how much time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Params {
    deals: u32,
    deck: Deck,
    clock: TimeSettings,
    seats: usize,
}

/// The parameters as they are written, whatever they mean.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    #[serde(deserialize_with = "deals")]
    deals: i64,
    deck: Deck,
    clock: TimeSettings,
    #[serde(deserialize_with = "seats")]
    seats: i64,
}

fn deals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let values = "a whole number from 1 to 10000, as in 40";
    whole_number(deserializer, Accepts { key: "deals", values })
}

fn seats<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let values = "a whole number from 2 to 4, as in 4";
    whole_number(deserializer, Accepts { key: "seats", values })
}

impl Default for Written {
    fn default() -> Self {
        Self { deals: 40, deck: Deck::default(), clock: TimeSettings::default(), seats: 4 }
    }
}

/// A value that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParamsError {
    /// There cannot be so many deals.
    #[error("deals cannot be {0}: a match has 1 to {MOST_DEALS} deals, as in 40")]
    Deals(i64),
    /// There cannot be so many seats.
    #[error("seats cannot be {0}: a table has {LEAST_SEATS} to {MOST_SEATS} seats, as in 4")]
    Seats(i64),
    /// Some seat would be dealt no card.
    #[error("deck cannot have {cards} cards: {seats} seats need at least one each, as in 1-13*8")]
    TooFewCards {
        /// How many cards the deck has.
        cards: usize,
        /// How many seats there are.
        seats: usize,
    },
}

impl TryFrom<Written> for Params {
    type Error = ParamsError;

    fn try_from(written: Written) -> Result<Self, ParamsError> {
        let Written { deals, deck, clock, seats } = written;
        let number = u32::try_from(deals).ok().filter(|deals| (1..=MOST_DEALS).contains(deals));
        let table =
            usize::try_from(seats).ok().filter(|seats| (LEAST_SEATS..=MOST_SEATS).contains(seats));
        let deals = number.ok_or(ParamsError::Deals(deals))?;
        let seats = table.ok_or(ParamsError::Seats(seats))?;
        let cards = deck.cards().len();
        if cards < seats {
            return Err(ParamsError::TooFewCards { cards, seats });
        }
        Ok(Self { deals, deck, clock, seats })
    }
}

impl Default for Params {
    /// The official parameters.
    fn default() -> Self {
        Self::try_from(Written::default()).expect("the official parameters mean something")
    }
}

impl Params {
    /// How many deals a match has.
    pub fn deals(&self) -> u32 {
        self.deals
    }

    /// The cards that are dealt.
    pub fn deck(&self) -> &Deck {
        &self.deck
    }

    /// The clock, set anew for each deal.
    pub fn clock(&self) -> TimeSettings {
        self.clock
    }

    /// How many bots play: exactly so many.
    pub fn seats(&self) -> RangeInclusive<usize> {
        self.seats..=self.seats
    }
}

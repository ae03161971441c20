//! Cards, their order in a trick, and the deal of a table.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use super::table::Player;
use crate::seed::{Dice, Seed};

/// The number of cards of a deck: 4 suits of 9 ranks.
pub const DECK: usize = 36;
/// The number of cards of a hand at the start.
pub const HAND: usize = 9;
/// The number of ranks of a suit; ranks are numbered from 0.
const RANKS: u8 = 9;

/// The stream of a seed that shuffles the decks.
const CARDS: u64 = 0;
/// The stream of a seed that chooses the trumps.
const TRUMPS: u64 = 1;
/// The stream of a seed that chooses the first attackers.
const ATTACKERS: u64 = 2;

/// A suit. No suit beats another suit, except the trump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suit {
    /// The suit `W`.
    W,
    /// The suit `X`.
    X,
    /// The suit `Y`.
    Y,
    /// The suit `Z`.
    Z,
}

impl Suit {
    /// All suits, in the order of their letters.
    pub const ALL: [Self; 4] = [Self::W, Self::X, Self::Y, Self::Z];

    /// The letter of the suit, always a capital.
    pub fn letter(self) -> char {
        match self {
            Self::W => 'W',
            Self::X => 'X',
            Self::Y => 'Y',
            Self::Z => 'Z',
        }
    }
}

/// A card; as text its suit and its rank: `W0` to `Z8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Card {
    suit: Suit,
    /// From 0, the lowest, to 8.
    rank: u8,
}

impl Card {
    /// The whole deck, in the order of suits and then of ranks.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_suit = |suit| (0..RANKS).map(move |rank| Self { suit, rank });
        Suit::ALL.into_iter().flat_map(of_suit)
    }

    /// The card's suit.
    pub fn suit(self) -> Suit {
        self.suit
    }

    /// The card's rank, from 0 to 8.
    pub fn rank(self) -> u8 {
        self.rank
    }

    /// Whether this card wins the trick as a defence against `attack`: by a higher rank of the same
    /// suit, or as a trump against another suit.
    pub fn beats(self, attack: Self, trump: Option<Suit>) -> bool {
        if self.suit == attack.suit { self.rank > attack.rank } else { trump == Some(self.suit) }
    }
}

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.suit.letter(), self.rank)
    }
}

/// The error for a text that is not a card.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a card: a letter from WXYZ and a digit from 0 to 8")]
pub struct CardError(String);

impl FromStr for Card {
    type Err = CardError;

    fn from_str(text: &str) -> Result<Self, CardError> {
        let error = || CardError(text.to_string());
        let &[letter, digit] = text.as_bytes() else { return Err(error()) };
        let suit = Suit::ALL.into_iter().find(|suit| suit.letter() == char::from(letter));
        let rank = digit.checked_sub(b'0').filter(|rank| *rank < RANKS);
        suit.zip(rank).map(|(suit, rank)| Self { suit, rank }).ok_or_else(error)
    }
}

/// The random start of a table: the order of the cards, the trump and the first attacker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    /// Each card once: the hand of the first player, the hand of the second player, and the pack,
    /// its next card first.
    order: [Card; DECK],
    trump: Option<Suit>,
    attacker: Player,
}

/// The error for an order of cards that contains a card twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is dealt twice: a deck has each card once")]
pub struct DealError(pub Card);

impl Deal {
    /// A deal of the cards in this order: nine for the first player, nine for the second player,
    /// then the pack, from its next card to its last.
    pub fn new(
        order: [Card; DECK],
        trump: Option<Suit>,
        attacker: Player,
    ) -> Result<Self, DealError> {
        let is_duplicate = |(index, card): &(usize, Card)| order[..*index].contains(card);
        match order.into_iter().enumerate().find(is_duplicate) {
            Some((_, card)) => Err(DealError(card)),
            None => Ok(Self { order, trump, attacker }),
        }
    }

    /// The deal with the hands and the first attack exchanged. Luck cancels between the two deals.
    #[must_use]
    pub fn swapped(&self) -> Self {
        let mut order = self.order;
        let (first, rest) = order.split_at_mut(HAND);
        first.swap_with_slice(&mut rest[..HAND]);
        Self { order, trump: self.trump, attacker: self.attacker.other() }
    }

    /// The first hand of a player.
    pub fn hand(&self, player: Player) -> &[Card] {
        let start = player.index() * HAND;
        &self.order[start..start + HAND]
    }

    /// The cards of the pack, from its next card to its last.
    pub fn pack(&self) -> &[Card] {
        &self.order[2 * HAND..]
    }

    /// The trump suit, if there is one.
    pub fn trump(&self) -> Option<Suit> {
        self.trump
    }

    /// The attacker of the first trick.
    pub fn attacker(&self) -> Player {
        self.attacker
    }
}

/// Deals the tables of a match.
#[derive(Clone, Debug)]
pub struct Dealer {
    cards: Dice,
    trumps: Dice,
    attackers: Dice,
}

impl Dealer {
    /// The dealer for this seed.
    pub fn new(seed: Seed) -> Self {
        Self { cards: seed.dice(CARDS), trumps: seed.dice(TRUMPS), attackers: seed.dice(ATTACKERS) }
    }

    /// The next deal. The orders of the cards, the five trumps (a suit or none) and the two first
    /// attackers are equally likely.
    pub fn deal(&mut self) -> Deal {
        let mut order = [Card { suit: Suit::W, rank: 0 }; DECK];
        order.iter_mut().zip(Card::all()).for_each(|(slot, card)| *slot = card);
        self.cards.shuffle(&mut order);
        Deal {
            order,
            trump: Suit::ALL.get(self.trumps.index(Suit::ALL.len() + 1)).copied(),
            attacker: Player::ALL[self.attackers.index(Player::ALL.len())],
        }
    }
}

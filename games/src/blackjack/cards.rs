//! Cards, their values, and the shoe that they are drawn from.

use alloc::vec::Vec;
use core::fmt;

use crate::seed::Dice;

/// The letters of the cards, the ace first (`class CARD` of the document).
const LETTERS: [char; 13] = ['A', '2', '3', '4', '5', '6', '7', '8', '9', 'T', 'J', 'Q', 'K'];
/// The letter of a face-down card.
const HIDDEN: char = '#';
/// The number of cards of each letter in a deck. Suits do not matter in this game.
const SUITS: usize = 4;
/// The best score of a hand.
pub const BEST: u32 = 21;
/// The difference between the two values of an ace.
const ACE_DIFFERENCE: u32 = 10;

/// A card, identified by its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Card(u8);

impl Card {
    /// The 13 cards of a suit, the ace first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..13).map(Self)
    }

    /// The card of this letter, if there is one.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::all().find(|card| card.letter() == letter)
    }

    /// The card's letter: one of `A23456789TJQK`.
    pub fn letter(self) -> char {
        LETTERS[usize::from(self.0)]
    }

    /// The value of the card; 11 for an ace.
    fn value(self) -> u32 {
        match self.0 {
            0 => 11,
            index @ 1..=8 => u32::from(index) + 1,
            _ => 10,
        }
    }

    fn is_ace(self) -> bool {
        self.0 == 0
    }
}

/// A card on the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Face {
    /// Face up.
    Up(Card),
    /// Face down.
    Down,
}

impl fmt::Display for Face {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up(card) => write!(f, "{}", card.letter()),
            Self::Down => write!(f, "{HIDDEN}"),
        }
    }
}

/// The score of a hand ("Scoring"). An ace counts 11, or 1 if the sum would be above 21. A hand
/// whose score is above 21 is bust.
pub fn score(hand: &[Card]) -> u32 {
    let mut score = hand.iter().map(|card| card.value()).sum();
    for _ in hand.iter().filter(|card| card.is_ace()) {
        if score > BEST {
            score -= ACE_DIFFERENCE;
        }
    }
    score
}

/// One shuffled deck. A draw from an empty deck replaces it by a newly shuffled deck ("Rules
/// concerning cards and decks"), also in the middle of a hand. The bots get no message about it.
#[derive(Clone, Debug)]
pub struct Shoe {
    /// The deck. The next card is at the end.
    cards: Vec<Card>,
    dice: Dice,
}

impl Shoe {
    /// A shoe whose decks are all shuffled with `dice`.
    pub fn new(dice: Dice) -> Self {
        Self { cards: Vec::new(), dice }
    }

    /// A shoe that deals `cards` first, in this order, and then decks shuffled with `dice`.
    pub fn stacked(cards: &[Card], dice: Dice) -> Self {
        Self { cards: cards.iter().rev().copied().collect(), dice }
    }

    /// Takes the next card.
    pub fn draw(&mut self) -> Card {
        loop {
            if let Some(card) = self.cards.pop() {
                return card;
            }
            self.cards = (0..SUITS).flat_map(|_| Card::all()).collect();
            self.dice.shuffle(&mut self.cards);
        }
    }
}

//! The bidding of one auction: whose turn it is, what a move costs, and when bidding ends.
//!
//! This module counts cards. [`super::deal`] has their values.
//!
//! The source ends bidding in three ways. This module implements two of them by one rule: at most
//! one seat is the *closer*, and bidding ends at its next turn. The first seat that checks becomes
//! the closer. Later, each seat that raises becomes the closer instead.

use core::fmt;

use crate::match_state::Seat;

/// The maximum number of seats.
pub const MAX_SEATS: usize = 4;

/// The number of cards of a raise, on top of the cost of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Raise {
    /// One card.
    One = 1,
    /// Two cards.
    Two = 2,
    /// Three cards.
    Three = 3,
}

/// A move of a seat ("Licytacja").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// Leaves this auction and shows no card.
    Pass,
    /// Matches the largest contribution of the other seats, or pays all its cards if it has fewer.
    Check,
    /// Matches the largest contribution, and adds some cards.
    Raise(Raise),
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::Check => f.write_str("check"),
            Self::Raise(cards) => write!(f, "raise {}", *cards as u8),
        }
    }
}

/// A raise that the seat cannot pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("raise {raise} costs {cost} cards, and the pile has {pile}")]
pub struct CannotPay {
    /// The number of cards on top of a check.
    pub raise: usize,
    /// The cost of the whole move, in cards.
    pub cost: usize,
    /// The number of cards of the seat.
    pub pile: usize,
}

/// The bidding of one auction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Auction {
    /// The number of cards that each seat has paid into the pot in this auction.
    paid: [usize; MAX_SEATS],
    /// The seats that take part and have not passed.
    bidding: [bool; MAX_SEATS],
    /// The seat at whose next turn bidding ends.
    closer: Option<Seat>,
    /// The seat with the turn; `None` after the end of bidding.
    turn: Option<Seat>,
}

impl Auction {
    /// Opens the bidding among the seats that have paid. `first` has the first turn.
    pub(super) fn open(paid: [usize; MAX_SEATS], first: Seat) -> Self {
        Self { paid, bidding: paid.map(|cards| cards > 0), closer: None, turn: Some(first) }
    }

    /// The seat with the turn; `None` after the end of bidding.
    pub(super) fn turn(&self) -> Option<Seat> {
        self.turn
    }

    /// Whether `seat` takes part and has not passed.
    pub(super) fn is_bidding(&self, seat: Seat) -> bool {
        self.bidding[seat.index()]
    }

    /// The number of cards that `seat` has paid into the pot in this auction.
    pub(super) fn paid(&self, seat: Seat) -> usize {
        self.paid[seat.index()]
    }

    /// Plays a move of `seat`, which has the turn and `pile` cards, and returns its cost in cards.
    pub(super) fn play(&mut self, seat: Seat, bid: Move, pile: usize) -> Result<usize, CannotPay> {
        let missing = self.missing(seat);
        let cost = match bid {
            Move::Pass => 0,
            Move::Check => missing.min(pile),
            Move::Raise(raise) => {
                let raise = raise as usize;
                let cost = missing + raise;
                if cost > pile {
                    return Err(CannotPay { raise, cost, pile });
                }
                cost
            }
        };
        match bid {
            Move::Pass => self.bidding[seat.index()] = false,
            Move::Check => self.closer = self.closer.or(Some(seat)),
            Move::Raise(_) => self.closer = Some(seat),
        }
        self.paid[seat.index()] += cost;
        self.turn = self.next(seat);
        Ok(cost)
    }

    /// The number of cards that `seat` must add to match the largest contribution.
    fn missing(&self, seat: Seat) -> usize {
        let largest = self.paid.into_iter().max().unwrap_or(0);
        largest - self.paid[seat.index()]
    }

    /// The seat with the turn after a move of `seat`; `None` if this move ends bidding.
    fn next(&self, seat: Seat) -> Option<Seat> {
        if self.bidding.into_iter().filter(|bidding| *bidding).count() <= 1 {
            return None;
        }
        let start = seat.index() + 1;
        let mut order = (start..start + MAX_SEATS).map(|index| index % MAX_SEATS);
        let next = order.find(|&index| self.bidding[index]).map(Seat::from_index);
        next.filter(|_| next != self.closer)
    }
}

//! The bidding of one auction: whose turn it is, what a move costs, and when bidding ends.
//!
//! Only numbers of cards matter here; which cards they are is the business of the deal.
//!
//! The source ends bidding in three ways. Two of them are one rule: there is at most one seat, the
//! *closer*, at whose next turn bidding ends. The first to check becomes it, and whoever raises
//! takes the part over.

use core::fmt;

use crate::match_state::Seat;

/// The largest table.
pub const MAX_SEATS: usize = 4;

/// How many cards are put on top of what a check costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Raise {
    /// One card.
    One = 1,
    /// Two cards.
    Two = 2,
    /// Three cards.
    Three = 3,
}

/// What a seat may do at its turn ("Licytacja").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// Leaves this auction, and shows nothing.
    Pass,
    /// Matches the largest contribution of the others, or goes all-in.
    Check,
    /// Matches it, and adds some cards.
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

/// A raise that a seat cannot pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("raise {raise} costs {cost} cards, and the pile has {pile}")]
pub struct CannotPay {
    /// How many cards were to be put on top of a check.
    pub raise: usize,
    /// What the whole move costs, in cards.
    pub cost: usize,
    /// What the seat has, in cards.
    pub pile: usize,
}

/// The bidding of one auction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Auction {
    /// What each seat has put into the pot in this auction, in cards.
    paid: [usize; MAX_SEATS],
    /// Who takes part and has not passed.
    bidding: [bool; MAX_SEATS],
    /// The seat at whose next turn bidding ends.
    closer: Option<Seat>,
    /// Whose turn it is, until bidding has ended.
    turn: Option<Seat>,
}

impl Auction {
    /// Opens the bidding among the seats that have paid something, with `first` to move.
    pub(super) fn open(paid: [usize; MAX_SEATS], first: Seat) -> Self {
        Self { paid, bidding: paid.map(|cards| cards > 0), closer: None, turn: Some(first) }
    }

    /// Whose turn it is, unless bidding has ended.
    pub(super) fn turn(&self) -> Option<Seat> {
        self.turn
    }

    /// Whether `seat` takes part and has not passed.
    pub(super) fn is_bidding(&self, seat: Seat) -> bool {
        self.bidding[seat.index()]
    }

    /// What `seat` has put into the pot in this auction, in cards.
    pub(super) fn paid(&self, seat: Seat) -> usize {
        self.paid[seat.index()]
    }

    /// Makes a move of `seat`, whose turn it is and who has `pile` cards, and says how many of
    /// them it costs.
    pub(super) fn play(
        &mut self,
        seat: Seat,
        choice: Move,
        pile: usize,
    ) -> Result<usize, CannotPay> {
        let missing = self.missing(seat);
        let cost = match choice {
            Move::Pass => 0,
            Move::Check => missing.min(pile),
            Move::Raise(raise) => {
                let (raise, cost) = (raise as usize, missing + raise as usize);
                if cost > pile {
                    return Err(CannotPay { raise, cost, pile });
                }
                cost
            }
        };
        match choice {
            Move::Pass => self.bidding[seat.index()] = false,
            Move::Check => self.closer = self.closer.or(Some(seat)),
            Move::Raise(_) => self.closer = Some(seat),
        }
        self.paid[seat.index()] += cost;
        self.turn = self.next(seat);
        Ok(cost)
    }

    /// How many cards `seat` lacks to the largest contribution.
    fn missing(&self, seat: Seat) -> usize {
        let largest = self.paid.into_iter().max().unwrap_or(0);
        largest - self.paid[seat.index()]
    }

    /// Whose turn it is after a move of `seat`, unless bidding ends with it.
    fn next(&self, seat: Seat) -> Option<Seat> {
        if self.bidding.into_iter().filter(|bidding| *bidding).count() <= 1 {
            return None;
        }
        let after = seat.index() + 1;
        let mut order = (after..after + MAX_SEATS).map(|index| index % MAX_SEATS);
        let next = order.find(|&index| self.bidding[index]).map(Seat::from_index);
        next.filter(|_| next != self.closer)
    }
}

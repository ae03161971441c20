//! The bidding of one auction: whose turn it is, what a move costs, and when bidding ends.
//!
//! Only numbers of cards matter here; the deal knows which cards they are.
//!
//! The source ends bidding in three ways. Two of them are one rule: at most one seat is the *closer*,
//! at whose next turn bidding ends. The first seat to check becomes the closer, and each seat that
//! raises takes over.

use core::fmt;

use crate::match_state::Seat;

/// The largest table.
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

/// What a seat may do at its turn ("Licytacja").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// Leaves this auction and shows no card.
    Pass,
    /// Matches the largest contribution of the others, or goes all-in.
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
    /// The cards of the seat.
    pub pile: usize,
}

/// The bidding of one auction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Auction {
    /// The cards that each seat has paid into the pot in this auction.
    paid: [usize; MAX_SEATS],
    /// The seats that take part and have not passed.
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

    /// The cards that `seat` has paid into the pot in this auction.
    pub(super) fn paid(&self, seat: Seat) -> usize {
        self.paid[seat.index()]
    }

    /// Plays a move of `seat`, which has the turn and `pile` cards, and returns its cost in cards.
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
                let raise = raise as usize;
                let cost = missing + raise;
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

    /// How many cards `seat` needs to match the largest contribution.
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

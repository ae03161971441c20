//! One deal: piles, pot, auctions and wars, and when seats leave.
//!
//! A deal runs in a loop, without allocation:
//!
//! 1. [`Deal::open`] begins an auction, or returns that the deal is over.
//! 2. [`Deal::play`] plays a move for the seat of [`Deal::turn`], until no seat has the turn.
//! 3. [`Deal::settle`] compares the shown cards and awards the pot.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::auction::{Auction, CannotPay, MAX_SEATS, Move};
use super::deck::{Card, Deck};
use super::scoring::DealResult;
use crate::match_state::Seat;
use crate::seed::{Dice, Seed};

/// The number of auctions before a deal may be interrupted ("Szczegóły").
const UNINTERRUPTED_AUCTIONS: u32 = 200;
/// Before each later auction the deal is interrupted with probability 1 / `INTERRUPTION`.
const INTERRUPTION: u32 = 200;

/// The number of cards that a seat pays to take part in a regular auction.
const ANTE: usize = 1;
/// The number of cards that a seat pays to take part in a war, or all its cards if it has fewer.
const WAR_ANTE: usize = 2;

/// The random stream that shuffles decks.
const SHUFFLES: u64 = 0;
/// The random stream that chooses the first bidder of each auction.
const FIRST_BIDDERS: u64 = 1;
/// The random stream for the order in which won cards go to the back of a pile.
const SPOILS: u64 = 2;
/// The random stream that interrupts deals.
const INTERRUPTIONS: u64 = 3;

/// The random streams of a deal.
#[derive(Clone, Debug)]
struct DealDice {
    shuffles: Dice,
    first_bidders: Dice,
    spoils: Dice,
    interruptions: Dice,
}

/// The state of a seat in a deal.
#[derive(Clone, Debug)]
struct Player {
    /// The cards of the seat, face down, the next card at the front.
    pile: VecDeque<Card>,
    /// The peeked card in the last auction of the seat.
    peeked: Option<Card>,
    /// The number of the auction after which the seat left, if it left.
    left_after: Option<u32>,
}

/// The result of an auction for its pot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PotOutcome {
    /// This seat wins it.
    Won(Seat),
    /// The marked seats, by index, fight a war for it.
    War([bool; MAX_SEATS]),
    /// It stays for the next auction.
    Stays,
}

/// A deal in progress. [`Deal::redeal`] starts the next deal with the same cards.
#[derive(Clone, Debug)]
pub struct Deal {
    /// All cards, in the order of the last shuffle.
    cards: Vec<Card>,
    dice: DealDice,
    players: Vec<Player>,
    /// The cards in the pot, including those of earlier auctions.
    pot: Vec<Card>,
    /// The number of auctions that have begun.
    number: u32,
    /// The last auction that has begun.
    auction: Option<Auction>,
    /// The seats in the next auction, if it is a war.
    war: Option<[bool; MAX_SEATS]>,
}

impl Deal {
    /// Deals a shuffled deck card by card to `seats` seats, seat 1 first.
    ///
    /// # Panics
    /// If there are not 2 to 4 seats.
    pub fn new(deck: &Deck, seats: usize, seed: Seed) -> Self {
        let mut deal = Self::empty(deck.cards().to_vec(), seats, seed);
        deal.redeal();
        deal
    }

    /// Deals these piles, seat 1 first, the front card of each pile first. [Later
    /// deals](Self::redeal) are shuffled.
    ///
    /// # Panics
    /// If there are not 2 to 4 piles, or one is empty.
    pub fn stacked(piles: &[Vec<Card>], seed: Seed) -> Self {
        let mut deal = Self::empty(piles.concat(), piles.len(), seed);
        for (player, pile) in deal.players.iter_mut().zip(piles) {
            assert!(!pile.is_empty(), "every seat is dealt a card");
            player.pile.extend(pile);
        }
        deal
    }

    fn empty(cards: Vec<Card>, seats: usize, seed: Seed) -> Self {
        assert!((2..=MAX_SEATS).contains(&seats), "a table has 2 to 4 seats, not {seats}");
        let pile = VecDeque::with_capacity(cards.len());
        let player = Player { pile, peeked: None, left_after: None };
        Self {
            pot: Vec::with_capacity(cards.len()),
            players: (0..seats).map(|_| player.clone()).collect(),
            dice: DealDice {
                shuffles: seed.dice(SHUFFLES),
                first_bidders: seed.dice(FIRST_BIDDERS),
                spoils: seed.dice(SPOILS),
                interruptions: seed.dice(INTERRUPTIONS),
            },
            cards,
            number: 0,
            auction: None,
            war: None,
        }
    }

    /// Shuffles all cards and deals again.
    pub fn redeal(&mut self) {
        self.pot.clear();
        (self.number, self.auction, self.war) = (0, None, None);
        for player in &mut self.players {
            player.pile.clear();
            (player.peeked, player.left_after) = (None, None);
        }
        self.dice.shuffles.shuffle(&mut self.cards);
        let seats = self.players.len();
        for (index, card) in self.cards.iter().enumerate() {
            self.players[index % seats].pile.push_back(*card);
        }
    }

    /// The number of seats.
    pub fn seats(&self) -> usize {
        self.players.len()
    }

    /// The number of cards in the pot.
    pub fn pot(&self) -> usize {
        self.pot.len()
    }

    /// The number of cards in the pile of `seat`.
    pub fn pile(&self, seat: Seat) -> usize {
        self.players[seat.index()].pile.len()
    }

    /// The number of the last auction that has begun, from 1.
    pub fn auction(&self) -> u32 {
        self.number
    }

    /// The seat with the turn; `None` after the end of bidding.
    pub fn turn(&self) -> Option<Seat> {
        self.auction.and_then(|auction| auction.turn())
    }

    /// The number of cards that a seat has paid into the pot in the last auction.
    pub fn paid(&self, seat: Seat) -> usize {
        self.auction.map_or(0, |auction| auction.paid(seat))
    }

    /// The peeked card of `seat`, if it takes part in this auction and has not passed. It shows
    /// this card at the end.
    pub fn peeked(&self, seat: Seat) -> Option<Card> {
        let bidding = self.auction.is_some_and(|auction| auction.is_bidding(seat));
        self.players[seat.index()].peeked.filter(|_| bidding)
    }

    /// Whether `seat` has not left the deal.
    pub fn is_in(&self, seat: Seat) -> bool {
        self.players[seat.index()].left_after.is_none()
    }

    /// The present result of the deal for `seat`.
    pub fn result(&self, seat: Seat) -> DealResult {
        self.players[seat.index()].left_after.map_or(DealResult::Stayed, DealResult::Left)
    }

    /// Begins the next auction: its participants pay, and see their cards. Returns `false` if the
    /// deal is over, because it is decided or interrupted.
    pub fn open(&mut self) -> bool {
        self.auction = None;
        let is_decided = Seat::all(self.seats()).filter(|seat| self.is_in(*seat)).count() <= 1;
        if is_decided || self.is_interrupted() {
            return false;
        }
        self.number += 1;
        let war = self.war.take();
        let ante = if war.is_some() { WAR_ANTE } else { ANTE };
        let mut paid = [0; MAX_SEATS];
        for seat in Seat::all(self.seats()) {
            if war.map_or(self.is_in(seat), |fighters| fighters[seat.index()]) {
                self.players[seat.index()].peeked =
                    self.players[seat.index()].pile.front().copied();
                paid[seat.index()] = ante.min(self.pile(seat));
                self.pay(seat, paid[seat.index()]);
            }
        }
        self.auction = Some(Auction::open(paid, self.first_bidder(paid)));
        true
    }

    /// Whether the deal is interrupted before its next auction.
    fn is_interrupted(&mut self) -> bool {
        self.number >= UNINTERRUPTED_AUCTIONS && self.dice.interruptions.below(INTERRUPTION) == 0
    }

    /// A random seat that has paid.
    fn first_bidder(&mut self, paid: [usize; MAX_SEATS]) -> Seat {
        let participants = paid.iter().filter(|cards| **cards > 0).count();
        let position = self.dice.first_bidders.index(participants);
        let mut participants = Seat::all(self.seats()).filter(|seat| paid[seat.index()] > 0);
        participants.nth(position).expect("the position is below the number of participants")
    }

    /// Moves cards from the front of a pile into the pot.
    fn pay(&mut self, seat: Seat, cards: usize) {
        self.pot.extend(self.players[seat.index()].pile.drain(..cards));
    }

    /// Plays a move for the seat that has the turn.
    ///
    /// # Errors
    /// If the seat cannot pay the move. Nothing changes then.
    ///
    /// # Panics
    /// If no seat has the turn.
    pub fn play(&mut self, bid: Move) -> Result<(), CannotPay> {
        let seat = self.turn().expect("a seat has the turn");
        let pile = self.pile(seat);
        let auction = self.auction.as_mut().expect("only an auction gives turns");
        let cost = auction.play(seat, bid, pile)?;
        self.pay(seat, cost);
        Ok(())
    }

    /// Ends an auction: awards the pot, leaves it on the table, or begins a war for it. Seats
    /// without cards leave.
    ///
    /// # Panics
    /// If bidding has not ended.
    pub fn settle(&mut self) {
        match self.outcome() {
            PotOutcome::Won(winner) => {
                self.dice.spoils.shuffle(&mut self.pot);
                self.players[winner.index()].pile.extend(self.pot.drain(..));
            }
            PotOutcome::War(fighters) => self.war = Some(fighters),
            PotOutcome::Stays => {}
        }
        self.auction = None;
        for player in &mut self.players {
            if player.pile.is_empty() && player.left_after.is_none() {
                player.left_after = Some(self.number);
            }
        }
    }

    /// The result of the auction for the pot, by the shown cards.
    ///
    /// # Panics
    /// If bidding has not ended.
    pub fn outcome(&self) -> PotOutcome {
        assert!(self.turn().is_none(), "bidding has not ended");
        let best = Seat::all(self.seats()).filter_map(|seat| self.peeked(seat)).max();
        let tied = self.seats_where(|seat| best.is_some() && self.peeked(seat) == best);
        let fighters = self.seats_where(|seat| tied[seat.index()] && self.pile(seat) > 0);
        if let Some(winner) = only(tied).or(only(fighters)) {
            PotOutcome::Won(winner)
        } else if fighters.contains(&true) {
            PotOutcome::War(fighters)
        } else {
            PotOutcome::Stays
        }
    }

    /// The seats for which `test` holds.
    fn seats_where(&self, test: impl Fn(Seat) -> bool) -> [bool; MAX_SEATS] {
        let mut seats = [false; MAX_SEATS];
        Seat::all(self.seats()).for_each(|seat| seats[seat.index()] = test(seat));
        seats
    }
}

/// The only marked seat; `None` if there are none or several.
fn only(seats: [bool; MAX_SEATS]) -> Option<Seat> {
    let mut members = Seat::all(MAX_SEATS).filter(|seat| seats[seat.index()]);
    members.next().filter(|_| members.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All cards on the table, in ascending order.
    fn all_cards(deal: &Deal) -> Vec<Card> {
        let piles = deal.players.iter().flat_map(|player| &player.pile);
        let mut cards: Vec<_> = piles.chain(&deal.pot).copied().collect();
        cards.sort_unstable();
        cards
    }

    #[test]
    fn no_card_is_lost_or_added() {
        let deck = Deck::default();
        let mut deal = Deal::new(&deck, 4, Seed([8; 32]));
        let mut auctions = 0;
        for _ in 0..20 {
            while deal.open() {
                auctions += 1;
                while let Some(seat) = deal.turn() {
                    let bid = if deal.peeked(seat) > Some(6) { Move::Check } else { Move::Pass };
                    deal.play(bid).expect("checks and passes can be paid");
                }
                assert_eq!(all_cards(&deal), deck.cards());
                deal.settle();
                assert_eq!(all_cards(&deal), deck.cards());
            }
            deal.redeal();
            assert_eq!(all_cards(&deal), deck.cards());
        }
        assert!(auctions > 20);
    }

    #[test]
    fn won_cards_go_to_the_back_in_random_order() {
        let orders = (0..200).map(|number| {
            let seed = Seed::of_text(&alloc::format!("{number}"));
            let mut deal = Deal::stacked(&[alloc::vec![9, 5, 6], alloc::vec![1, 2]], seed);
            deal.open();
            while deal.turn().is_some() {
                deal.play(Move::Check).expect("a check can be paid");
            }
            deal.settle();
            deal.players[0].pile.iter().copied().collect::<Vec<_>>()
        });
        let is_first_order = |order: &Vec<Card>| *order == [5, 6, 9, 1];
        let (first, second): (Vec<_>, Vec<_>) = orders.partition(is_first_order);
        assert!(second.iter().all(|order| *order == [5, 6, 1, 9]));
        assert!((60..140).contains(&first.len()), "{}", first.len());
    }
}

//! The rules of Liar's Dice. Seats are counted from 0.

use crate::call::{Bid, Call};
use crate::dice::{FACES, Generator, matching};
use crate::words;

/// A game in progress.
pub struct Game {
    generator: Generator,
    wild: bool,
    /// The dice of each seat. A seat without dice is out.
    hands: Vec<Vec<u8>>,
    /// The seats that are out, in the order in which they left.
    out: Vec<usize>,
    /// The number of the round, from 1.
    round: usize,
    turn: usize,
    /// The bids of the round with their seats.
    bids: Vec<(usize, Bid)>,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A seat has bid.
    Bid(Bid),
    /// A seat has challenged the last bid, which ends the round.
    Challenge(Challenge),
}

/// A challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    pub challenger: usize,
    pub bidder: usize,
    pub bid: Bid,
    /// The number of dice that count for the bid.
    pub count: usize,
}

impl Challenge {
    /// Whether the bid is true.
    pub fn is_true(self) -> bool {
        self.count >= self.bid.count
    }

    /// The seat that loses a die.
    pub fn loser(self) -> usize {
        if self.is_true() { self.challenger } else { self.bidder }
    }
}

impl Game {
    /// A game before its first round. The generator chooses the seat that bids first.
    pub fn new(seats: usize, dice: usize, wild: bool, mut generator: Generator) -> Self {
        let turn = generator.below(u8::try_from(seats).expect("a small number of seats"));
        Self {
            generator,
            wild,
            hands: vec![vec![1; dice]; seats],
            out: Vec::new(),
            round: 0,
            turn: usize::from(turn),
            bids: Vec::new(),
        }
    }

    /// Begins a round: all dice are rolled.
    pub fn roll(&mut self) {
        self.round += 1;
        for hand in &mut self.hands {
            *hand = self.generator.roll(hand.len());
        }
    }

    /// Takes a bid or a challenge from the seat whose turn it is. A challenge ends the round; after
    /// it, the loser [loses](Self::lose) a die.
    ///
    /// # Errors
    /// Why it is not legal.
    pub fn call(&mut self, call: Call) -> Result<Event, String> {
        match (call, self.bids.last()) {
            (Call::Bid(bid), last) => {
                self.check(bid, last.map(|(_, bid)| *bid))?;
                self.bids.push((self.turn, bid));
                self.turn = self.next_after(self.turn);
                Ok(Event::Bid(bid))
            }
            (Call::Liar, Some(&(bidder, bid))) => {
                let all = self.hands.concat();
                let count = matching(&all, bid.face, self.wild);
                Ok(Event::Challenge(Challenge { challenger: self.turn, bidder, bid, count }))
            }
            (Call::Liar, None) => Err("there is no bid to challenge yet".to_owned()),
        }
    }

    fn check(&self, bid: Bid, last: Option<Bid>) -> Result<(), String> {
        let dice = self.dice();
        match last {
            _ if !(1..=FACES).contains(&bid.face) => {
                Err(format!("face {} is not one of 1 to {FACES}", bid.face))
            }
            _ if bid.count == 0 => Err("a bid is on at least 1 die".to_owned()),
            _ if bid.count > dice => Err(format!("only {dice} dice are on the table")),
            Some(last) if bid <= last => Err(format!(
                "{} are not more than {}: bid a greater count, or an equal count of a greater face",
                words::bid(bid),
                words::bid(last)
            )),
            _ => Ok(()),
        }
    }

    /// Ends the round: a seat loses dice and begins the next one. If it is out, the next seat does.
    pub fn lose(&mut self, seat: usize, dice: usize) {
        self.bids.clear();
        let hand = &mut self.hands[seat];
        hand.truncate(hand.len().saturating_sub(dice));
        self.turn = seat;
        if hand.is_empty() {
            self.out.push(seat);
            self.turn = self.next_after(seat);
        }
    }

    /// The next seat that has dice.
    fn next_after(&self, seat: usize) -> usize {
        let seats = self.hands.len();
        let others = (1..=seats).map(|distance| (seat + distance) % seats);
        others.clone().find(|other| !self.hands[*other].is_empty()).unwrap_or(seat)
    }

    /// What the seat whose turn it is may say.
    pub fn legal(&self) -> Vec<Call> {
        let last = self.bid();
        let liar = last.map(|_| Call::Liar);
        liar.into_iter().chain(Bid::greater(last, self.dice()).map(Call::Bid)).collect()
    }

    /// The winner, as soon as no other seat has dice.
    pub fn winner(&self) -> Option<usize> {
        (self.out.len() + 1 == self.hands.len()).then_some(self.turn)
    }

    /// The points of each seat: the number of seats that were out before it.
    pub fn points(&self) -> Vec<usize> {
        let outlived = |seat| self.out.iter().position(|out| *out == seat);
        (0..self.hands.len()).map(|seat| outlived(seat).unwrap_or(self.out.len())).collect()
    }

    /// The place of a seat that is out or has won.
    pub fn place(&self, seat: usize) -> Option<usize> {
        let has_place = self.hands[seat].is_empty() || self.winner() == Some(seat);
        has_place.then(|| self.hands.len() - self.points()[seat])
    }

    /// The number of dice on the table.
    pub fn dice(&self) -> usize {
        self.hands.iter().map(Vec::len).sum()
    }

    /// The dice of each seat, lowest first.
    pub fn hands(&self) -> &[Vec<u8>] {
        &self.hands
    }

    /// The last bid of the round.
    pub fn bid(&self) -> Option<Bid> {
        self.bids.last().map(|(_, bid)| *bid)
    }

    /// The last bid of a seat in this round.
    pub fn bid_of(&self, seat: usize) -> Option<Bid> {
        self.bids.iter().rev().find(|(bidder, _)| *bidder == seat).map(|(_, bid)| *bid)
    }

    /// The seat whose turn it is.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// The number of the round, from 1.
    pub fn round(&self) -> usize {
        self.round
    }

    /// Whether ones count for every face.
    pub fn is_wild(&self) -> bool {
        self.wild
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A game in its first round with these dice. Seat 0 bids first.
    fn game(hands: &[&[u8]], wild: bool) -> Game {
        let generator = Generator::new(&"0".repeat(64));
        let mut game = Game::new(hands.len(), 5, wild, generator);
        game.hands = hands.iter().map(|hand| hand.to_vec()).collect();
        game.turn = 0;
        game
    }

    fn bid(count: usize, face: u8) -> Call {
        Call::Bid(Bid { count, face })
    }

    #[test]
    fn a_bid_that_holds_costs_the_challenger_a_die() {
        for (wild, count, loser) in [(true, 3, 1), (false, 2, 0)] {
            let mut game = game(&[&[1, 2, 5], &[3, 5, 6]], wild);
            let bid = Bid { count: 3, face: 5 };
            assert_eq!(game.call(Call::Bid(bid)), Ok(Event::Bid(bid)));
            let challenge = Challenge { challenger: 1, bidder: 0, bid, count };
            assert_eq!(game.call(Call::Liar), Ok(Event::Challenge(challenge)));
            assert_eq!(challenge.loser(), loser);
            game.lose(loser, 1);
            game.roll();
            assert_eq!((game.turn(), game.dice(), game.bid()), (loser, 5, None));
        }
    }

    #[test]
    fn calls_that_break_the_rules() {
        let mut game = game(&[&[1, 2], &[3, 5]], true);
        assert_eq!(game.call(Call::Liar).unwrap_err(), "there is no bid to challenge yet");
        assert!(game.call(bid(2, 4)).is_ok());
        for call in [bid(2, 4), bid(2, 3), bid(1, 6), bid(0, 6), bid(5, 1), bid(3, 0), bid(3, 7)] {
            assert!(game.call(call).is_err(), "{call:?}");
            assert!(!game.legal().contains(&call), "{call:?}");
        }
        for call in game.legal() {
            let mut game = self::game(&[&[1, 2], &[3, 5]], true);
            assert!(game.call(bid(2, 4)).is_ok());
            assert!(game.call(call).is_ok(), "{call:?}");
        }
        assert!(game.call(bid(4, 6)).is_ok());
        assert_eq!(game.legal(), [Call::Liar]);
    }

    #[test]
    fn seats_without_dice_are_passed_over() {
        let mut game = game(&[&[2], &[3, 5], &[4]], true);
        game.lose(0, 1);
        assert_eq!((game.turn(), game.place(0), game.winner()), (1, Some(3), None));
        game.roll();
        assert!(game.call(bid(1, 2)).is_ok() && game.turn() == 2);
        assert!(game.call(bid(1, 3)).is_ok() && game.turn() == 1);
        // Seat 1 forfeits.
        game.lose(1, 2);
        assert_eq!(game.winner(), Some(2));
        assert_eq!(game.points(), [0, 1, 2]);
        assert_eq!([0, 1, 2].map(|seat| game.place(seat)), [Some(3), Some(2), Some(1)]);
    }

    #[test]
    fn every_seat_may_be_the_first_to_bid() {
        let first =
            |digit: u32| Game::new(6, 5, true, Generator::new(&format!("{digit:064x}"))).turn();
        let mut seats: Vec<_> = (0..100).map(first).collect();
        seats.sort_unstable();
        seats.dedup();
        assert_eq!(seats, [0, 1, 2, 3, 4, 5]);
    }
}

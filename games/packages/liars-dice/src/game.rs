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

/// A challenge, which ends the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    pub challenger: usize,
    pub bidder: usize,
    pub bid: Bid,
    /// The number of dice that count for the bid.
    pub count: usize,
}

impl Challenge {
    /// The seat that loses a die.
    pub fn loser(self) -> usize {
        if self.count >= self.bid.count { self.challenger } else { self.bidder }
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
    pub fn call(&mut self, call: Call) -> Result<Option<Challenge>, String> {
        match (call, self.bids.last()) {
            (Call::Bid(bid), last) => {
                self.check(bid, last.map(|(_, bid)| *bid))?;
                self.bids.push((self.turn, bid));
                self.turn = self.next_after(self.turn);
                Ok(None)
            }
            (Call::Liar, Some(&(bidder, bid))) => {
                let all = self.hands.concat();
                let count = matching(&all, bid.face, self.wild);
                Ok(Some(Challenge { challenger: self.turn, bidder, bid, count }))
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

    /// Ends the round: a seat loses dice, and begins the next one. If it is out, the next seat does.
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

    /// The place of a seat that is out, or that has won.
    pub fn place(&self, seat: usize) -> Option<usize> {
        let outlived = self.out.iter().position(|out| *out == seat);
        outlived
            .map(|outlived| self.hands.len() - outlived)
            .or_else(|| (self.winner() == Some(seat)).then_some(1))
    }

    /// The points of each seat: the number of seats that were out before it.
    pub fn points(&self) -> Vec<usize> {
        let outlived = |seat| self.out.iter().position(|out| *out == seat);
        (0..self.hands.len()).map(|seat| outlived(seat).unwrap_or(self.out.len())).collect()
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

//! A table: the dealer, up to four players, and the chips that move between them.
//!
//! A hand is dealt, played in turns, and settled. Every chip belongs to a player, to a stake or to
//! the house. The total number of chips never changes.

use alloc::vec::Vec;
use core::mem;
use core::ops::RangeInclusive;

use crate::blackjack::cards::{self, BEST, Card, Face, Shoe};
use crate::blackjack::protocol::{Action, Situation};
use crate::match_state::Seat;

/// The chips that each player pays for a hand ("Betting and chips").
pub const ANTE: i64 = 10;
/// The score at which the dealer stands ("Dealer"), also with soft hands.
const DEALER_STANDS: u32 = 17;
/// The maximum number of bets of a player in a hand.
const MAX_BETS: u32 = 100;
/// The maximum stake in a hand, in chips. It is far above the stakes of official games, and low
/// enough that the sum over all hands cannot overflow.
const MAX_STAKE: i64 = 1_000_000_000_000;

/// The bounds of a player's chips after `hands` hands. A player that is not asked stakes only the
/// ante.
pub(super) fn chips_after(chips: i64, hands: u32, is_asked: bool) -> RangeInclusive<i64> {
    if chips < ANTE {
        return chips..=chips;
    }
    let stake = if is_asked { MAX_STAKE } else { ANTE };
    let max = (0..hands).fold(chips, |max, _| max + max.min(stake));
    let max_loss = if is_asked {
        // The player can choose its stakes so that it can still pay the ante of the last hand.
        chips.min(i64::from(hands) * stake)
    } else {
        ANTE * (chips / ANTE).min(hands.into())
    };
    chips - max_loss..=max
}

/// A player at the table.
#[derive(Clone, Debug)]
pub struct Player {
    chips: i64,
    /// The stake in chips; 0 in a hand without this player.
    stake: i64,
    hand: Vec<Card>,
    /// Whether the player has neither stood nor gone bust.
    acting: bool,
    /// Whether the player has not acted yet in this hand.
    is_first_action: bool,
    /// The number of the player's bets in this hand.
    bets: u32,
}

impl Player {
    fn new(chips: i64) -> Self {
        Self { chips, stake: 0, hand: Vec::new(), acting: false, is_first_action: true, bets: 0 }
    }

    /// The chips of the player without the stake.
    pub fn chips(&self) -> i64 {
        self.chips
    }

    /// The stake in this hand, in chips.
    pub fn stake(&self) -> i64 {
        self.stake
    }

    /// The cards of the player in dealt order.
    pub fn hand(&self) -> &[Card] {
        &self.hand
    }

    /// Whether the player has neither stood nor gone bust in this hand.
    pub fn is_acting(&self) -> bool {
        self.acting
    }

    /// Whether the player can double down: only as the first action, and with enough chips.
    pub fn can_double(&self) -> bool {
        self.acting && self.is_first_action && self.can_raise(self.stake)
    }

    /// The maximum bet now, in chips; 0 if the player cannot bet.
    pub fn max_bet(&self) -> i64 {
        let max = if self.bets < MAX_BETS { self.chips.min(MAX_STAKE - self.stake) } else { 0 };
        max.max(0)
    }

    /// Begins a hand with this player, if it can pay the ante.
    fn begin_hand(&mut self) {
        *self = Self::new(self.chips);
        self.acting = self.raise(ANTE);
    }

    fn can_raise(&self, chips: i64) -> bool {
        (1..=self.chips).contains(&chips) && chips <= MAX_STAKE - self.stake
    }

    /// Moves chips to the stake. Returns `false`, without a change, if the player cannot pay them.
    fn raise(&mut self, chips: i64) -> bool {
        let is_possible = self.can_raise(chips);
        if is_possible {
            self.chips -= chips;
            self.stake += chips;
        }
        is_possible
    }

    /// Bets. Returns `false`, without a change, if the player cannot pay, or has already made
    /// [`MAX_BETS`] bets.
    fn bet(&mut self, chips: i64) -> bool {
        let is_possible = self.bets < MAX_BETS && self.raise(chips);
        self.bets += u32::from(is_possible);
        is_possible
    }

    /// Whether the hand beats the dealer's score. Equal scores lose.
    fn beats(&self, dealer: u32) -> bool {
        let score = cards::score(&self.hand);
        score <= BEST && score > dealer
    }
}

/// A table in play.
#[derive(Clone, Debug)]
pub struct Table {
    players: Vec<Player>,
    /// The dealer's cards in drawn order.
    dealer: Vec<Card>,
    /// The players' cards in dealt order.
    dealt: Vec<Card>,
    shoe: Shoe,
    /// The winnings of the house.
    house: i64,
    /// The index of the seat from which the next player is searched.
    next: usize,
}

impl Table {
    /// A table whose players have these chips, seat 1 first.
    pub fn new(chips: &[i64], shoe: Shoe) -> Self {
        let players = chips.iter().copied().map(Player::new).collect();
        Self { players, dealer: Vec::new(), dealt: Vec::new(), shoe, house: 0, next: 0 }
    }

    /// The players, seat 1 first.
    pub fn players(&self) -> &[Player] {
        &self.players
    }

    /// The dealer's cards in drawn order. The first card is open. The second card is face down
    /// until all players have acted.
    pub fn dealer(&self) -> &[Card] {
        &self.dealer
    }

    /// The winnings of the house since the table was opened, in chips.
    pub fn house(&self) -> i64 {
        self.house
    }

    /// Takes the antes and deals two cards to each player and to the dealer, one at a time. Players
    /// who cannot pay get no cards. Returns `false`, without a hand, if no player can pay.
    pub fn deal(&mut self) -> bool {
        self.players.iter_mut().for_each(Player::begin_hand);
        (self.next, self.dealer, self.dealt) = (0, Vec::new(), Vec::new());
        if self.turn().is_none() {
            return false;
        }
        for _ in 0..2 {
            for index in 0..self.players.len() {
                if self.players[index].acting {
                    self.draw(index);
                }
            }
            self.dealer.push(self.shoe.draw());
        }
        true
    }

    /// The seat with the turn. The players act one after another, in the order of the seats, until
    /// each of them has stood or gone bust. `None` afterwards.
    pub fn turn(&self) -> Option<Seat> {
        let seats = self.players.len();
        let mut order = (self.next..seats).chain(0..self.next);
        order.find(|index| self.players[*index].acting).map(Seat::from_index)
    }

    /// The situation as the player of `seat` sees it.
    pub fn situation(&self, seat: Seat) -> Situation {
        let player = &self.players[seat.index()];
        let dealer = self.dealer.first().copied().map(Face::Up).into_iter().chain([Face::Down]);
        Situation {
            hand: player.hand.clone(),
            visible: dealer.chain(self.dealt.iter().copied().map(Face::Up)).collect(),
            stake: player.stake,
            chips: player.chips,
        }
    }

    /// Carries out the action of the player with the turn. An impossible action counts as standing.
    ///
    /// # Panics
    /// If no player has the turn.
    pub fn act(&mut self, action: Action) {
        let index = self.turn().expect("a player has the turn").index();
        self.next = index + 1;
        let player = &mut self.players[index];
        let is_first = mem::take(&mut player.is_first_action);
        match action {
            Action::Hit => self.draw(index),
            Action::Stand => player.acting = false,
            Action::DoubleDown => {
                player.acting = false;
                if is_first && player.raise(player.stake) {
                    self.draw(index);
                }
            }
            Action::Bet(chips) => player.acting = player.bet(chips),
        }
    }

    /// Deals a card to a player, who may go bust.
    fn draw(&mut self, index: usize) {
        let card = self.shoe.draw();
        self.dealt.push(card);
        let player = &mut self.players[index];
        player.hand.push(card);
        player.acting &= cards::score(&player.hand) <= BEST;
    }

    /// Reveals the dealer's hidden card, lets the dealer draw, and pays the winners twice their
    /// stake ("Betting and chips"). A bust dealer has score 0.
    pub fn settle(&mut self) {
        while cards::score(&self.dealer) < DEALER_STANDS {
            self.dealer.push(self.shoe.draw());
        }
        let score = cards::score(&self.dealer);
        let dealer = if score > BEST { 0 } else { score };
        for player in &mut self.players {
            let stake = mem::take(&mut player.stake);
            if player.beats(dealer) {
                player.chips += 2 * stake;
                self.house -= stake;
            } else {
                self.house += stake;
            }
        }
    }
}

//! One table: two hands, a pack, a trump, and 18 tricks.
//!
//! A table is independent of bots and of the line protocol. The player with the turn plays a card.
//! The table collects the protocol's text for each player, and [`Table::take_text`] returns it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::cards::{Card, DECK, Deal, Suit};

/// The number of tricks of a table.
pub const TRICKS: u8 = 18;

/// The mark of a table that is over.
const OVER: char = '.';
/// The mark of a table that waits for the other player.
const WAITING: char = '_';
/// The mark of a game without trumps.
const NO_TRUMP: char = 'N';

/// A player of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Player {
    /// The player with the first hand.
    First,
    /// The player with the second hand.
    Second,
}

impl Player {
    /// Both players, the first one first.
    pub const ALL: [Self; 2] = [Self::First, Self::Second];

    /// The player across the table.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// The player's position in a list of both, counted from 0.
    pub fn index(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }
}

/// The next action at a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// An attack of this player.
    Attack(Player),
    /// A defence of this player against a card.
    Defence(Player, Card),
    /// None: the table is over.
    Over,
}

/// A finished trick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trick {
    /// The attacker.
    pub attacker: Player,
    /// The attacking card.
    pub attack: Card,
    /// The defending card.
    pub defence: Card,
    /// The winner.
    pub winner: Player,
}

/// The state of a player.
#[derive(Clone, Debug, Default)]
struct PlayerState {
    hand: Vec<Card>,
    /// The number of won tricks.
    tricks: u8,
    /// The text that the player has not received yet.
    text: String,
}

impl PlayerState {
    fn take_card(&mut self, card: Card) {
        self.hand.push(card);
        self.write_card(card);
    }

    fn write_card(&mut self, card: Card) {
        write!(self.text, "{card}").expect("a string takes every text");
    }
}

/// A game of 18 tricks between two players.
#[derive(Clone, Debug)]
pub struct Table {
    trump: Option<Suit>,
    players: [PlayerState; 2],
    /// The pack; the next card is the last one.
    pack: Vec<Card>,
    phase: Phase,
    last: Option<Trick>,
    /// The player that gave up the remaining tricks. Only pictures use it.
    conceded: Option<Player>,
}

impl Table {
    /// A table at its start.
    pub fn new(deal: &Deal) -> Self {
        let trump = deal.trump();
        let state = |player| {
            let mut state = PlayerState::default();
            deal.hand(player).iter().for_each(|card| state.take_card(*card));
            state.text.push(':');
            state.text.push(trump.map_or(NO_TRUMP, Suit::letter));
            state
        };
        Self {
            trump,
            players: Player::ALL.map(state),
            pack: deal.pack().iter().rev().copied().collect(),
            phase: Phase::Attack(deal.attacker()),
            last: None,
            conceded: None,
        }
    }

    /// The trump suit, if there is one.
    pub fn trump(&self) -> Option<Suit> {
        self.trump
    }

    /// The player that the table waits for; `None` once it is over.
    pub fn turn(&self) -> Option<Player> {
        match self.phase {
            Phase::Attack(player) | Phase::Defence(player, _) => Some(player),
            Phase::Over => None,
        }
    }

    /// The attacking card, if the table waits for a defence.
    pub fn attack(&self) -> Option<Card> {
        match self.phase {
            Phase::Defence(_, attack) => Some(attack),
            Phase::Attack(_) | Phase::Over => None,
        }
    }

    /// A player's cards, in the order in which the player got them.
    pub fn hand(&self, player: Player) -> &[Card] {
        &self.players[player.index()].hand
    }

    /// The number of cards in the pack.
    pub fn pack(&self) -> usize {
        self.pack.len()
    }

    /// The number of tricks that a player has won.
    pub fn tricks(&self, player: Player) -> u8 {
        self.players[player.index()].tricks
    }

    /// The last finished trick.
    pub fn last_trick(&self) -> Option<Trick> {
        self.last
    }

    /// The player whose illegal card or forfeit has ended the table early.
    pub fn conceded(&self) -> Option<Player> {
        self.conceded
    }

    /// The legal cards: the attacker's whole hand, or the defender's cards of the attacking suit,
    /// or the defender's whole hand if it has no card of this suit. No cards if the table is over.
    pub fn playable(&self) -> impl Iterator<Item = Card> {
        let hand = self.turn().map(|player| self.hand(player)).unwrap_or_default();
        let suit = self.attack().map(Card::suit);
        let required_suit = suit.filter(|suit| hand.iter().any(|card| card.suit() == *suit));
        hand.iter()
            .copied()
            .filter(move |card| required_suit.is_none_or(|suit| card.suit() == suit))
    }

    /// Plays a card for the player with the turn. An illegal card, or `None` for a word that is not
    /// a card, ends the table: the opponent gets all remaining tricks, including the present one.
    pub fn play(&mut self, card: Option<Card>) {
        let Some(player) = self.turn() else { return };
        match card.filter(|card| self.playable().any(|playable| playable == *card)) {
            Some(card) => self.lay_card(player, card),
            None => self.concede(player),
        }
    }

    /// Ends the table: the opponent gets all tricks that `player` has not won. A table that is over
    /// does not change.
    pub fn concede(&mut self, player: Player) {
        self.conceded = self.conceded.or(self.turn().map(|_| player));
        self.players[player.other().index()].tricks = TRICKS - self.tricks(player);
        self.phase = Phase::Over;
    }

    /// Moves a card from a hand to the table.
    fn lay_card(&mut self, player: Player, card: Card) {
        self.players[player.index()].hand.retain(|other| *other != card);
        let other = &mut self.players[player.other().index()];
        other.text.push('>');
        other.write_card(card);
        match self.attack() {
            None => self.phase = Phase::Defence(player.other(), card),
            Some(attack) => {
                let attacker = player.other();
                let winner = if card.beats(attack, self.trump) { player } else { attacker };
                self.last = Some(Trick { attacker, attack, defence: card, winner });
                self.score(winner);
            }
        }
    }

    /// Awards a trick to its winner, who draws first and attacks next.
    fn score(&mut self, winner: Player) {
        for (player, outcome) in [(winner, '+'), (winner.other(), '-')] {
            let state = &mut self.players[player.index()];
            state.tricks += u8::from(player == winner);
            state.text.push(outcome);
            if let Some(card) = self.pack.pop() {
                state.take_card(card);
            }
        }
        let is_over = self.hand(winner).is_empty();
        self.phase = if is_over { Phase::Over } else { Phase::Attack(winner) };
    }

    /// Takes the text for a player:
    ///
    /// - If the table waits for the player: the events since the last text.
    /// - If the table waits for the opponent: `_`. The next text contains the events.
    /// - If the table is over: the remaining events and a dot. Later texts are only the dot.
    pub fn take_text(&mut self, player: Player) -> String {
        if self.turn() == Some(player.other()) {
            return WAITING.into();
        }
        let mut text = core::mem::take(&mut self.players[player.index()].text);
        if self.turn().is_none() {
            text.push(OVER);
        }
        text
    }

    /// The score for a player: the opponent's tricks, a colon, and the player's own.
    pub fn score_for(&self, player: Player) -> String {
        alloc::format!("{}:{}", self.tricks(player.other()), self.tricks(player))
    }
}

// Each trick uses one card of each player, and all cards of the deck are played.
const _: () = assert!(DECK == 2 * TRICKS as usize);

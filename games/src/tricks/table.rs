//! One table: two hands, a pack, a trump, and 18 tricks.
//!
//! A table knows neither bots nor a protocol. Whoever is to play names a card; what the players
//! learn from it is gathered for each of them in the fragments of the source, and handed out by
//! [`Table::tell`]. Players who meet at many tables, or one player against the house, only differ
//! in who asks whom.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::cards::{Card, DECK, Deal, Suit};

/// How many tricks are played at a table.
pub const TRICKS: u8 = 18;

/// What stands for a table that is over.
const OVER: char = '.';
/// What stands for a table that waits for the other player.
const WAITING: char = '_';
/// What stands for the trump of a game without trumps.
const NO_TRUMP: char = 'N';

/// One of the two at a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Player {
    /// The one who is dealt the first hand.
    First,
    /// The one who is dealt the second hand.
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

/// What a table waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// This player is to attack.
    Attack(Player),
    /// This player is to defend against a card.
    Defence(Player, Card),
    /// Nothing.
    Over,
}

/// A trick that was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trick {
    /// Who attacked.
    pub attacker: Player,
    /// With which card.
    pub attack: Card,
    /// The card of the defence.
    pub defence: Card,
    /// Who won it.
    pub winner: Player,
}

/// What one player holds, has won, and is still to be told.
#[derive(Clone, Debug, Default)]
struct PlayerState {
    hand: Vec<Card>,
    tricks: u8,
    news: String,
}

impl PlayerState {
    fn take_card(&mut self, card: Card) {
        self.hand.push(card);
        self.report(card);
    }

    fn report(&mut self, card: Card) {
        write!(self.news, "{card}").expect("a string takes all that is written");
    }
}

/// A game of 18 tricks between two players.
#[derive(Clone, Debug)]
pub struct Table {
    trump: Option<Suit>,
    players: [PlayerState; 2],
    /// The next card is the last.
    pack: Vec<Card>,
    phase: Phase,
    last: Option<Trick>,
}

impl Table {
    /// A table that is just dealt.
    pub fn new(deal: &Deal) -> Self {
        let trump = deal.trump();
        let state = |player| {
            let mut state = PlayerState::default();
            deal.hand(player).iter().for_each(|card| state.take_card(*card));
            state.news.push(':');
            state.news.push(trump.map_or(NO_TRUMP, Suit::letter));
            state
        };
        Self {
            trump,
            players: Player::ALL.map(state),
            pack: deal.pack().iter().rev().copied().collect(),
            phase: Phase::Attack(deal.attacker()),
            last: None,
        }
    }

    /// The trump suit, if there is one.
    pub fn trump(&self) -> Option<Suit> {
        self.trump
    }

    /// Whom the table waits for; nobody once it is over.
    pub fn turn(&self) -> Option<Player> {
        match self.phase {
            Phase::Attack(player) | Phase::Defence(player, _) => Some(player),
            Phase::Over => None,
        }
    }

    /// The card that is to be defended against, if the table waits for a defence.
    pub fn attack(&self) -> Option<Card> {
        match self.phase {
            Phase::Defence(_, attack) => Some(attack),
            Phase::Attack(_) | Phase::Over => None,
        }
    }

    /// The cards a player holds, in the order in which they came.
    pub fn hand(&self, player: Player) -> &[Card] {
        &self.players[player.index()].hand
    }

    /// How many cards are in the pack.
    pub fn pack(&self) -> usize {
        self.pack.len()
    }

    /// How many tricks a player has won.
    pub fn tricks(&self, player: Player) -> u8 {
        self.players[player.index()].tricks
    }

    /// The last trick that was played to its end.
    pub fn last_trick(&self) -> Option<Trick> {
        self.last
    }

    /// The cards that the table would take now: the attacker's whole hand; of the defender's the
    /// cards of the attack's suit, or all if there is none. None once the table is over.
    pub fn playable(&self) -> impl Iterator<Item = Card> {
        let hand = self.turn().map(|player| self.hand(player)).unwrap_or_default();
        let due = self.attack().map(Card::suit);
        let due = due.filter(|suit| hand.iter().any(|card| card.suit() == *suit));
        hand.iter().copied().filter(move |card| due.is_none_or(|suit| card.suit() == suit))
    }

    /// Plays a card for whom the table waits. A card that cannot be played, or `None` for a word
    /// that is no card, is a grave mistake: the table is over, and all remaining tricks, the one
    /// on the table included, are the opponent's.
    pub fn play(&mut self, card: Option<Card>) {
        let Some(player) = self.turn() else { return };
        match card.filter(|card| self.playable().any(|playable| playable == *card)) {
            Some(card) => self.lay(player, card),
            None => self.concede(player),
        }
    }

    /// Ends the table: all the tricks that `player` has not won are its opponent's. Of a table
    /// that is over this is true already.
    pub fn concede(&mut self, player: Player) {
        self.players[player.other().index()].tricks = TRICKS - self.tricks(player);
        self.phase = Phase::Over;
    }

    /// Moves a card from a hand to the table.
    fn lay(&mut self, player: Player, card: Card) {
        self.players[player.index()].hand.retain(|held| *held != card);
        let other = &mut self.players[player.other().index()];
        other.news.push('>');
        other.report(card);
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

    /// Gives a trick to its winner, who draws first and attacks next.
    fn score(&mut self, winner: Player) {
        for (player, outcome) in [(winner, '+'), (winner.other(), '-')] {
            let state = &mut self.players[player.index()];
            state.tricks += u8::from(player == winner);
            state.news.push(outcome);
            if let Some(card) = self.pack.pop() {
                state.take_card(card);
            }
        }
        let is_over = self.hand(winner).is_empty();
        self.phase = if is_over { Phase::Over } else { Phase::Attack(winner) };
    }

    /// What a player is told. If the table waits for it, all that has happened since it was told
    /// last; if it waits for the other, `_`, and what has happened is kept; once it is over, the
    /// last news with a dot behind, and from then on the dot alone.
    pub fn tell(&mut self, player: Player) -> String {
        if self.turn() == Some(player.other()) {
            return WAITING.into();
        }
        let mut news = core::mem::take(&mut self.players[player.index()].news);
        if self.turn().is_none() {
            news.push(OVER);
        }
        news
    }

    /// The score as a player is shown it: the opponent's tricks, a colon, the player's own.
    pub fn score_for(&self, player: Player) -> String {
        alloc::format!("{}:{}", self.tricks(player.other()), self.tricks(player))
    }
}

// Each trick takes a card from both hands, and the deck is played out.
const _: () = assert!(DECK == 2 * TRICKS as usize);

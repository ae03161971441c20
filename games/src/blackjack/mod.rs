//! Blackjack: up to four bots at a table against a dealer.
//!
//! A match is one round: several hands at the same table with one shoe. A bot is executed once for
//! each decision and sees the dealer's open card and the cards of all bots. Equal scores lose. A
//! bad reply or a missing reply counts as standing. No bot ever forfeits a match.
//!
//! An episode ([`crate::Episode`]) is a series of rounds with new tables in each. [`Table`] has the
//! rules of a hand; [`Situation`] and [`Action`] are the protocol.
//!
//! Source: the challenge "Blackjack KotH", whose sections are quoted by their English titles. Where
//! the challenge has no rule, the behaviour of its judge applies.

mod cards;
mod info;
mod moves;
mod params;
mod picture;
mod protocol;
mod table;

use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

pub use cards::{BEST, Card, Face, Shoe, score};
pub use info::game;
pub use params::{Count, Params, PerSeat, SEATS};
pub use protocol::{Action, Situation};
pub use table::{ANTE, Player, Table};

use crate::bounds::Bounds;
use crate::clock::Micros;
use crate::match_state::{
    Forfeit, Illegal, MatchState, MatchView, Message, Note, Seat, SeatResult, StartError, Step,
};
use crate::seed::Seed;

/// The stream of a match's seed that shuffles its decks.
const SHOE: u64 = 1;
/// Maximum number of bad replies of a bot in an episode. After them the bot always stands and gets
/// no more messages.
const MAX_BAD_ANSWERS: i64 = 15;

/// The number of bad replies of a bot.
#[derive(Clone, Copy, Debug)]
struct BadAnswers {
    /// Bad replies in earlier matches of the episode.
    earlier: i64,
    /// Bad replies in this match.
    in_match: u32,
}

impl BadAnswers {
    fn is_asked(self) -> bool {
        self.earlier + i64::from(self.in_match) < MAX_BAD_ANSWERS
    }
}

/// The bounds of the chips of a round. `None` if a bot forfeited, which is impossible in blackjack,
/// or if the parameters are for a table of another size.
pub(crate) fn bounds(params: &Params, forfeited: &[bool]) -> Option<Bounds> {
    if forfeited.contains(&true) {
        return None;
    }
    let hands = params.hands.0;
    let chips = params.chips.at_table(forfeited.len(), "chips").ok()?;
    let earlier = params.bad_answers.at_table(forfeited.len(), "bad_answers").ok()?;
    let mut seats = Vec::new();
    let mut bad_answers = Vec::new();
    for (chips, earlier) in chips.into_iter().zip(earlier) {
        let is_asked = earlier < MAX_BAD_ANSWERS;
        seats.push([table::chips_after(chips, hands, is_asked)].to_vec());
        // A bot gives at most one bad reply in a hand, because it stands then.
        let max = if chips < ANTE { 0 } else { (MAX_BAD_ANSWERS - earlier).clamp(0, hands.into()) };
        bad_answers.push(u32::try_from(max).expect("a round has at most 100 hands"));
    }
    let min = seats.iter().map(|seat| seat[0].start()).sum();
    let max = seats.iter().map(|seat| seat[0].end()).sum();
    Some(Bounds { seats, sums: [min..=max].to_vec(), bad_answers })
}

/// A decision that was carried out. Only pictures use it.
#[derive(Clone, Copy, Debug)]
struct Decision {
    seat: Seat,
    /// The action; `None` after a bad reply.
    action: Option<Action>,
    /// The chips that it added to the stake.
    raised: i64,
    /// Whether the player drew a card.
    drew: bool,
}

/// What pictures show of the past.
#[derive(Clone, Debug, Default)]
struct Past {
    /// The number of decisions so far.
    decisions: u64,
    /// The last decision of this hand.
    last: Option<Decision>,
    /// The chips that each seat won in the last hand that is over, or lost, negative.
    gained: Vec<i64>,
}

/// A round of blackjack in progress.
#[derive(Clone, Debug)]
pub struct Match {
    table: Table,
    bad_answers: Vec<BadAnswers>,
    move_limit: Micros,
    /// The number of dealt hands.
    dealt: u32,
    /// The total number of hands.
    hands: u32,
    /// Whether a hand is being played.
    in_hand: bool,
    past: Past,
}

impl Match {
    /// Opens a table of `seats` seats, with a shoe shuffled from `seed`.
    ///
    /// # Errors
    /// If this number of seats is not possible, or a parameter is for another number.
    pub fn start(params: &Params, seats: usize, seed: Seed) -> Result<Self, StartError> {
        Self::with_shoe(params, seats, Shoe::new(seed.dice(SHOE)))
    }

    /// Like [`Match::start`], but deals `cards` first, in this order; the following decks are
    /// shuffled from `seed`.
    pub fn stacked(
        params: &Params,
        seats: usize,
        seed: Seed,
        cards: &[Card],
    ) -> Result<Self, StartError> {
        Self::with_shoe(params, seats, Shoe::stacked(cards, seed.dice(SHOE)))
    }

    fn with_shoe(params: &Params, seats: usize, shoe: Shoe) -> Result<Self, StartError> {
        if !SEATS.contains(&seats) {
            let min = SEATS.start();
            let max = SEATS.end();
            return Err(StartError(format!("a table has {min} to {max} seats, not {seats}")));
        }
        let chips = params.chips.at_table(seats, "chips")?;
        let earlier = params.bad_answers.at_table(seats, "bad_answers")?;
        Ok(Self {
            table: Table::new(&chips, shoe),
            bad_answers: earlier
                .into_iter()
                .map(|earlier| BadAnswers { earlier, in_match: 0 })
                .collect(),
            move_limit: params.move_limit,
            dealt: 0,
            hands: params.hands.0,
            in_hand: false,
            past: Past::default(),
        })
    }

    /// The present table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The number of dealt hands.
    pub fn dealt(&self) -> u32 {
        self.dealt
    }

    /// The maximum number of hands. The match ends earlier if no player can pay an ante.
    pub fn hands(&self) -> u32 {
        self.hands
    }

    /// Whether a hand is being played.
    pub fn is_in_hand(&self) -> bool {
        self.in_hand
    }

    /// The number of bad replies of a seat in this match.
    pub fn bad_answers(&self, seat: Seat) -> u32 {
        self.bad_answers[seat.index()].in_match
    }

    /// Deals the next hand, if there is one and a player can pay for it.
    fn deal(&mut self) {
        self.in_hand = self.dealt < self.hands && self.table.deal();
        self.dealt += u32::from(self.in_hand);
    }

    /// Ends a hand.
    fn settle(&mut self) -> Note {
        let owned = |player: &Player| player.chips() + player.stake();
        let before: Vec<_> = self.table.players().iter().map(owned).collect();
        self.table.settle();
        let after = self.table.players().iter().map(owned);
        self.past.gained = after.zip(before).map(|(after, before)| after - before).collect();
        self.past.last = None;
        self.in_hand = false;
        Note::Hand {
            hand: self.dealt,
            dealer: self.table.dealer().iter().map(|card| card.letter()).collect(),
            chips: self.table.players().iter().map(Player::chips).collect(),
        }
    }

    fn results(&self) -> Vec<SeatResult> {
        let seats = self.table.players().iter().zip(&self.bad_answers);
        seats
            .map(|(player, bad_answers)| SeatResult {
                bad_answers: bad_answers.in_match,
                ..SeatResult::new([player.chips()].into(), None)
            })
            .collect()
    }
}

impl MatchState for Match {
    fn step(&mut self) -> Step {
        if !self.in_hand {
            self.deal();
        }
        if !self.in_hand {
            return Step::Over(self.results());
        }
        while let Some(seat) = self.table.turn() {
            if self.bad_answers[seat.index()].is_asked() {
                let situation = self.table.situation(seat).to_string();
                return Step::Send(Message::request(seat, situation, self.move_limit));
            }
            self.table.act(Action::Stand);
        }
        Step::Note(self.settle())
    }

    fn view(&self) -> &dyn MatchView {
        self
    }

    /// Counts a bad reply. The bot stands then.
    fn receive_reply(
        &mut self,
        reply: Result<&str, Forfeit>,
        _charged: Micros,
    ) -> Result<(), Illegal> {
        let seat = self.table.turn().expect("the driver passes one reply for each message");
        let (action, legality) = match reply.map(str::parse) {
            Ok(Ok(action)) => (action, Ok(())),
            Ok(Err(illegal)) => (Action::Stand, Err(illegal)),
            Err(_) => (Action::Stand, Ok(())),
        };
        let is_bad = legality.is_err() || reply.is_err();
        self.bad_answers[seat.index()].in_match += u32::from(is_bad);
        let player = |table: &Table| {
            let player = &table.players()[seat.index()];
            (player.stake(), player.hand().len())
        };
        let (stake, cards) = player(&self.table);
        self.table.act(action);
        let (new_stake, new_cards) = player(&self.table);
        self.past.decisions += 1;
        self.past.last = Some(Decision {
            seat,
            action: (!is_bad).then_some(action),
            raised: new_stake - stake,
            drew: new_cards > cards,
        });
        legality
    }
}

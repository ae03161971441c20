//! Matches of two: every bot against every other bot, on each board and in each leg.
//!
//! The circle method: the bots are arranged in a circle of an odd number n of places. With an even
//! number of bots, one bot is outside the circle. In round r the bots at distance k on both sides
//! of place r meet, and the bot outside the circle meets the bot at place r. All rounds together
//! are one *pass*: each pair meets once.
//!
//! Two consecutive passes are twins: every bot has the same place in both. If sides are balanced,
//! the second twin reverses all sides. So a pair with an even number of matches has each side
//! equally often. A last pass without a twin must be balanced within 1 by itself. For it, all bots
//! form a ring. Each bot is first against the half of the bots after it, and second against the
//! half before it. A random choice decides between opposite bots.
//!
//! Places and sides depend on the bots' names ([`NameKey`]), so a bot that joins or leaves changes
//! as little as possible for the other bots. If sides are random, it changes nothing. On the ring,
//! a new bot changes the sides of pairs that are opposite or almost opposite: one pair for every
//! four bots.

use arbiter_games::{Seed, string_enum};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::error::check_bots;
use super::seeded_mix::{NameKey, mix};
use super::{Bot, Claim, Repetitions, ScheduleError};

/// The number of seats of a match.
pub(crate) const SEATS: usize = 2;

/// The name of this plan in errors.
const PLAN: &str = "a round robin";

/// Keys of [`mix`], so that places and sides are independent random choices.
const PLACES: u64 = 1;
const SIDES: u64 = 2;

/// The options of a round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {
    /// The number of meetings of each pair on each board.
    pub legs: Repetitions,
    /// The choice of the bot with seat 1 in each pair.
    pub sides: Sides,
    /// The number of boards on which each pair meets.
    pub boards: Repetitions,
}

string_enum! {
    /// The choice of the bot with seat 1 in each pair.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case", try_from = "String")]
    pub enum Sides {
        /// Each bot once, in two matches on each board and in each leg, in random order.
        Both = "both",
        /// A random bot in each match.
        Random = "random",
        /// Balanced within 1: in every pair, and in all matches of a bot.
        #[default]
        Balanced = "balanced",
    }
    FromStr, Err = UnknownSides
}

/// The error for a text that is not one of [`Sides`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("sides can be both, random or balanced")]
pub struct UnknownSides(pub String);

impl TryFrom<String> for Sides {
    type Error = UnknownSides;

    fn try_from(text: String) -> Result<Self, UnknownSides> {
        text.parse()
    }
}

impl RoundRobin {
    /// The plan for a number of bots. `seed` determines all random choices.
    ///
    /// # Errors
    /// If there are fewer than 2 bots, or too many.
    pub fn plan(self, bots: usize, seed: Seed) -> Result<Pairings, ScheduleError> {
        check_bots(bots, SEATS, PLAN)?;
        self.among(&NameKey::of_numbers(seed, bots))
    }

    /// The plan for bots of these names.
    ///
    /// # Errors
    /// If there are fewer than 2 bots, or too many.
    pub fn among(self, names: &[NameKey]) -> Result<Pairings, ScheduleError> {
        check_bots(names.len(), SEATS, PLAN)?;
        Ok(Pairings::new(self, names))
    }

    /// The number of meetings of each pair.
    pub fn meetings(self) -> u32 {
        let passes = self.legs.get() * self.boards.get();
        if self.sides == Sides::Both { 2 * passes } else { passes }
    }
}

/// A planned match of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The index of the board, from 0.
    pub board: u16,
    /// The number of earlier matches of the pair on this board, on both sides.
    pub leg: u32,
    /// The bots, seat 1 first.
    pub seats: [Bot; SEATS],
}

/// The matches of a round robin, one by one.
#[derive(Debug)]
pub struct Pairings {
    rules: RoundRobin,
    names: Vec<NameKey>,
    /// The bots by place. The bot outside the circle is the last one.
    circle: Vec<Bot>,
    pass: u32,
    round: usize,
    /// The distance of the next pair from the middle of the round.
    distance: usize,
    /// The return match of the previous pair.
    return_match: Option<Pairing>,
}

impl Pairings {
    fn new(rules: RoundRobin, names: &[NameKey]) -> Self {
        let circle = (0..=Bot::MAX).take(names.len()).collect();
        let pass = 0;
        let round = 0;
        let distance = 0;
        let return_match = None;
        let names = names.to_vec();
        let mut pairings = Self { rules, names, circle, pass, round, distance, return_match };
        pairings.begin_pass();
        pairings
    }

    /// The total number of matches.
    pub fn matches(&self) -> u64 {
        let bots = self.circle.len() as u64;
        u64::from(self.rules.meetings()) * (bots * (bots - 1) / 2)
    }

    /// The claim about all matches. It also holds for each board alone, with the numbers of matches
    /// and meetings divided by the number of boards.
    pub fn claim(&self) -> Claim {
        let meetings = self.rules.meetings();
        let (seat_spread, side_spread) = match self.rules.sides {
            Sides::Both => (Some(0), Some(0)),
            Sides::Balanced => (Some(meetings % 2), Some(meetings % 2)),
            Sides::Random => (None, None),
        };
        Claim {
            matches: self.matches(),
            meetings: meetings..=meetings,
            same_owner_meetings: None,
            match_spread: Some(0),
            seat_spread,
            side_spread,
        }
    }

    fn passes(&self) -> u32 {
        self.rules.legs.get() * self.rules.boards.get()
    }

    /// The number of places of the circle: odd.
    fn places(&self) -> usize {
        (self.circle.len() - 1) | 1
    }

    /// Begins a pass. The first of two twins gives the bots new places.
    fn begin_pass(&mut self) {
        if self.pass.is_multiple_of(2) {
            let names = &self.names;
            let twins = u64::from(self.pass / 2);
            let place = |bot: &Bot| (mix([PLACES, twins, names[usize::from(*bot)].0]), *bot);
            self.circle.sort_by_cached_key(place);
        }
        self.round = 0;
        self.distance = self.first_distance();
    }

    /// The first distance of a round. It is 1 if there is no bot outside the circle, since then the
    /// bot in the middle has no match.
    fn first_distance(&self) -> usize {
        self.circle.len() % 2
    }

    /// The places of the current pair.
    fn places_of_pair(&self) -> [usize; SEATS] {
        let round = self.round;
        let k = self.distance;
        let places = self.places();
        if k == 0 { [places, round] } else { [(round + k) % places, (round + places - k) % places] }
    }

    /// The current pair, seat 1 first.
    fn pair(&self) -> [Bot; SEATS] {
        let [first, second] = self.places_of_pair();
        let bots = self.circle.len();
        let pair = [self.circle[first], self.circle[second]];
        let offset = (second + bots - first) % bots;
        let is_random = match self.rules.sides {
            Sides::Both | Sides::Random => true,
            // With an even number of legs, twins balance each other.
            Sides::Balanced => self.rules.legs.get().is_multiple_of(2) || 2 * offset == bots,
        };
        let is_swapped = if is_random {
            let name = |bot: Bot| self.names[usize::from(bot)].0;
            let [first, second] = pair.map(name);
            let low = first.min(second);
            let high = first.max(second);
            let is_low_first = mix([SIDES, self.choice_number(), low, high]) & 1 == 0;
            is_low_first != (low == first)
        } else {
            2 * offset > bots
        };
        let is_reversed = is_swapped != (self.rules.sides == Sides::Balanced && self.pass % 2 == 1);
        if is_reversed { [pair[1], pair[0]] } else { pair }
    }

    /// The number of the random choice of sides. If sides are balanced, twins share one choice.
    fn choice_number(&self) -> u64 {
        let is_balanced = self.rules.sides == Sides::Balanced;
        (if is_balanced { self.pass / 2 } else { self.pass }).into()
    }

    /// Advances to the next pair, round and pass.
    fn advance(&mut self) {
        self.distance += 1;
        if self.distance <= self.places() / 2 {
            return;
        }
        self.distance = self.first_distance();
        self.round += 1;
        if self.round == self.places() {
            self.pass += 1;
            self.begin_pass();
        }
    }
}

impl Iterator for Pairings {
    type Item = Pairing;

    fn next(&mut self) -> Option<Pairing> {
        if let Some(pairing) = self.return_match.take() {
            return Some(pairing);
        }
        let pass = self.pass;
        if pass == self.passes() {
            return None;
        }
        let seats = self.pair();
        self.advance();
        // The legs of a board are consecutive passes, so that twins share a board where possible.
        let board = pass / self.rules.legs.get();
        let leg = pass % self.rules.legs.get();
        let board = u16::try_from(board).expect("there are at most 1000 boards");
        if self.rules.sides == Sides::Both {
            self.return_match = Some(Pairing { board, leg, seats: [seats[1], seats[0]] });
        }
        Some(Pairing { board, leg, seats })
    }
}

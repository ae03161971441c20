//! Matches of two: every bot against every other, on each board and in each leg.
//!
//! The circle method: all bots but one stand in a circle of an odd number n of places (with an odd
//! number of bots, all do). In round r the bots at distance k on both sides of place r meet, and the
//! bot outside the circle meets the bot at place r. All rounds are one *pass*: each pair meets once.
//!
//! Passes come in twins, in which every bot has the same place. In balanced passes the second twin
//! reverses all sides. So a pair that plays an even number of times has each side equally often. An
//! odd pass at the end must be balanced within 1 alone: all bots stand on a ring, and each is
//! first against the half of the bots after it, and second against the half before it. A random
//! choice decides between opposite bots.
//!
//! Places and sides depend on the bots' names ([`NameKey`]), so a bot that joins or leaves changes
//! as little as possible between the others. Where sides are random, nothing changes; on the ring a
//! new bot turns the pairs that stood opposite or nearly opposite: one pair for every four bots.

use arbiter_games::{Seed, string_enum};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::error::check_bots;
use super::seeded_mix::{NameKey, mix};
use super::{Bot, Claim, Repetitions, ScheduleError};

/// Seats in a match.
const SEATS: usize = 2;

/// The name of this plan in errors.
const PLAN: &str = "a round robin";

/// Domain separators, so that places and sides are independent random choices.
const PLACES: u64 = 1;
const SIDES: u64 = 2;

/// The options of a round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {
    /// How many times all pairs meet on each board.
    pub legs: Repetitions,
    /// Which bot of a pair has seat 1.
    pub sides: Sides,
    /// The number of boards on which each pair meets.
    pub boards: Repetitions,
}

string_enum! {
    /// Which bot of a pair has seat 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case", try_from = "String")]
    pub enum Sides {
        /// Each bot once, in two matches on each board and in each leg; which bot begins is random.
        Both = "both",
        /// A random bot in each match.
        Random = "random",
        /// Each bot equally often, or once more: in every pair, and in all matches of a bot.
        #[default]
        Balanced = "balanced",
    }
    FromStr, Err = UnknownSides
}

/// A word that names no [`Sides`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("sides can be both, random or balanced")]
pub struct UnknownSides(pub String);

impl TryFrom<String> for Sides {
    type Error = UnknownSides;

    fn try_from(word: String) -> Result<Self, UnknownSides> {
        word.parse()
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

    /// How often each pair meets.
    pub fn meetings(self) -> u32 {
        let passes = self.legs.get() * self.boards.get();
        if self.sides == Sides::Both { 2 * passes } else { passes }
    }
}

/// A planned match of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The board it is played on, from 0.
    pub board: u16,
    /// How many earlier matches the pair has on this board, counting both sides.
    pub leg: u32,
    /// The bots, seat 1 first.
    pub seats: [Bot; SEATS],
}

/// The matches of a round robin, one by one.
#[derive(Debug)]
pub struct Pairings {
    rules: RoundRobin,
    names: Vec<NameKey>,
    /// The bots by place; the bot outside the circle comes last.
    circle: Vec<Bot>,
    pass: u32,
    round: usize,
    /// The distance of the next pair from the middle of the round.
    distance: usize,
    /// The return match of the previous pair.
    again: Option<Pairing>,
}

impl Pairings {
    fn new(rules: RoundRobin, names: &[NameKey]) -> Self {
        let circle = (0..=Bot::MAX).take(names.len()).collect();
        let pass = 0;
        let round = 0;
        let distance = 0;
        let again = None;
        let names = names.to_vec();
        let mut pairings = Self { rules, names, circle, pass, round, distance, again };
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

    /// Orders the bots anew for each pair of twin passes.
    fn begin_pass(&mut self) {
        if self.pass.is_multiple_of(2) {
            let names = &self.names;
            let twins = u64::from(self.pass / 2);
            let place = |bot: &Bot| (mix([PLACES, twins, names[usize::from(*bot)].0]), *bot);
            self.circle.sort_by_cached_key(place);
        }
        self.round = 0;
        self.distance = self.nearest();
    }

    /// The first distance of a round: 1 if no bot stands outside the circle, since then the bot in
    /// the middle has no match.
    fn nearest(&self) -> usize {
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
        let [one, other] = self.places_of_pair();
        let bots = self.circle.len();
        let pair = [self.circle[one], self.circle[other]];
        let after = (other + bots - one) % bots;
        let by_chance = match self.rules.sides {
            Sides::Both | Sides::Random => true,
            // With an even number of legs, twins balance each other.
            Sides::Balanced => self.rules.legs.get().is_multiple_of(2) || 2 * after == bots,
        };
        let swapped = if by_chance {
            let name = |bot: Bot| self.names[usize::from(bot)].0;
            let [one, other] = pair.map(name);
            let low = one.min(other);
            let high = one.max(other);
            let low_first = mix([SIDES, self.turn(), low, high]) & 1 == 0;
            low_first != (low == one)
        } else {
            2 * after > bots
        };
        let turned = swapped != (self.rules.sides == Sides::Balanced && self.pass % 2 == 1);
        if turned { [pair[1], pair[0]] } else { pair }
    }

    /// The number of the random choice of sides: one for each pass, or for each two twins.
    fn turn(&self) -> u64 {
        let balanced = self.rules.sides == Sides::Balanced;
        (if balanced { self.pass / 2 } else { self.pass }).into()
    }

    /// Advances to the next pair, round and pass.
    fn advance(&mut self) {
        self.distance += 1;
        if self.distance <= self.places() / 2 {
            return;
        }
        self.distance = self.nearest();
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
        if let Some(again) = self.again.take() {
            return Some(again);
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
            self.again = Some(Pairing { board, leg, seats: [seats[1], seats[0]] });
        }
        Some(Pairing { board, leg, seats })
    }
}

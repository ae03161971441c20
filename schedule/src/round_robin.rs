//! Matches of two: every bot against every other bot, or against some of them, on each board and in
//! each leg.
//!
//! A *pass* lists every pair that meets once ([`pass`]). Two consecutive passes are twins: every
//! bot has the same place in both. If sides are balanced, the second twin reverses all sides. So a
//! pair with an even number of matches has each side equally often. A last pass without a twin must
//! be balanced within 1 by itself. For it, all bots form a ring. Each bot is first against the half
//! of the bots after it, and second against the half before it. A random choice decides between
//! opposite bots.
//!
//! Places and sides depend on the bots' names ([`NameKey`]), so a bot that joins or leaves changes
//! as little as possible for the other bots. If all pairs meet and sides are random, it changes
//! nothing. On the ring, a new bot changes the sides of pairs that are opposite or almost opposite:
//! one pair for every four bots.
//!
//! If each bot meets an even number k of others, they are its neighbours on a ring in the order of
//! the keys, in all passes. A new bot meets its k neighbours there. The k/2 pairs between them at
//! distance k/2 are now too far apart, and no other pair changes: no plan with exactly k opponents
//! can change less. If k is odd, the opposite pairs change too.

mod opponents;
mod pass;

use arbiter_games::{Seed, string_enum};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::opponents::{Opponents, OpponentsError};
use self::pass::Pass;
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
    /// The number of others that each bot meets. `None`: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opponents: Option<Opponents>,
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

    /// The number of others that each of `bots` bots meets.
    pub fn opponents_among(self, bots: usize) -> usize {
        let all = bots.saturating_sub(1);
        self.opponents.map_or(all, |opponents| opponents.among(bots))
    }

    /// The number of meetings of each pair that meets.
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
    /// The number of others that each bot meets.
    opponents: usize,
    /// The bots by place. If all meet, the bot outside the circle is the last one.
    circle: Vec<Bot>,
    /// The number of the present pass, from 0.
    pass: u32,
    /// The remaining pairs of the present pass.
    pairs: Pass,
    /// The return match of the previous pair.
    return_match: Option<Pairing>,
}

impl Pairings {
    fn new(rules: RoundRobin, names: &[NameKey]) -> Self {
        let bots = names.len();
        let mut circle: Vec<Bot> = (0..=Bot::MAX).take(bots).collect();
        circle.sort_unstable_by_key(|bot| (names[usize::from(*bot)], *bot));
        let opponents = rules.opponents_among(bots);
        let pairs = Pass::new(bots, opponents);
        let names = names.to_vec();
        let mut pairings =
            Self { rules, names, opponents, circle, pass: 0, pairs, return_match: None };
        pairings.place_bots();
        pairings
    }

    /// The total number of matches.
    pub fn matches(&self) -> u64 {
        let seated = self.circle.len() as u64 * self.opponents as u64;
        u64::from(self.rules.meetings()) * (seated / SEATS as u64)
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
            opponents: (!self.all_meet()).then_some(self.opponents),
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

    /// Whether all pairs meet.
    fn all_meet(&self) -> bool {
        self.opponents + 1 == self.circle.len()
    }

    /// Gives the bots new places in the first of two twins. If not all pairs meet, the bots keep
    /// their places, because the same pairs meet in all passes.
    fn place_bots(&mut self) {
        if self.all_meet() && self.pass.is_multiple_of(2) {
            let names = &self.names;
            let twins = u64::from(self.pass / 2);
            let place = |bot: &Bot| (mix([PLACES, twins, names[usize::from(*bot)].0]), *bot);
            self.circle.sort_by_cached_key(place);
        }
    }

    /// The pair at these places, seat 1 first.
    fn pair(&self, [first, second]: [usize; SEATS]) -> [Bot; SEATS] {
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

    /// The places of the next pair. Begins the next pass at the end of a pass. `None` after the
    /// last pass.
    fn next_places(&mut self) -> Option<[usize; SEATS]> {
        if let Some(places) = self.pairs.next() {
            return Some(places);
        }
        if self.pass + 1 == self.passes() {
            return None;
        }
        self.pass += 1;
        self.place_bots();
        self.pairs = Pass::new(self.circle.len(), self.opponents);
        self.pairs.next()
    }
}

impl Iterator for Pairings {
    type Item = Pairing;

    fn next(&mut self) -> Option<Pairing> {
        if let Some(pairing) = self.return_match.take() {
            return Some(pairing);
        }
        let places = self.next_places()?;
        let seats = self.pair(places);
        // The legs of a board are consecutive passes, so that twins share a board where possible.
        let board = self.pass / self.rules.legs.get();
        let leg = self.pass % self.rules.legs.get();
        let board = u16::try_from(board).expect("there are at most 1000 boards");
        if self.rules.sides == Sides::Both {
            self.return_match = Some(Pairing { board, leg, seats: [seats[1], seats[0]] });
        }
        Some(Pairing { board, leg, seats })
    }
}

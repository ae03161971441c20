//! Matches of two: everybody against everybody, on each board and in each leg.
//!
//! All but one bot stand in a circle of an odd number n of places (with an odd number of bots, all
//! do). In round r those meet who stand at the same distance k to both sides of place r, and the
//! one apart meets who stands there. That is one *pass*: each pair once.
//!
//! Passes come in twins, in which the same bots stand in the same places. Balanced ones have all
//! sides reversed in the second of them. So a pair that plays an even number of times has each side
//! equally often, and an odd pass at the end leaves nobody more than one match off, if one pass by
//! itself does: there all bots stand on a ring, and each is first against the half that comes after
//! it, and second against the half before. Chance decides between those who stand opposite.
//!
//! Where somebody stands, and who is first, follows from the names of the bots ([`NameKey`]), so
//! that one who comes or goes changes as little as can be between the others. Where chance alone
//! decides about a pair nothing changes; on the ring a newcomer turns those who stood opposite, or
//! nearly so: one pair for each four bots.

use arbiter_games::{Seed, string_enum};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::chance::{NameKey, mix};
use super::error::check_bots;
use super::{Bot, Claim, ScheduleError, Times};

/// Seats in a match.
const SEATS: usize = 2;

/// What this plan is called in errors.
const PLAN: &str = "a round robin";

/// What is mixed into the chance of who stands where, and of who is first.
const PLACES: u64 = 1;
const SIDES: u64 = 2;

/// Everybody against everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {
    /// How many times everything is played.
    pub legs: Times,
    /// Who is in seat 1.
    pub sides: Sides,
    /// On how many boards each pair meets.
    pub boards: Times,
}

string_enum! {
    /// Who is in seat 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case", try_from = "String")]
    pub enum Sides {
        /// Both, in two matches on each board and in each leg; chance decides who is first at
        /// first.
        Both = "both",
        /// Chance decides, match by match.
        Random = "random",
        /// Each equally often or once more, both of a pair and of each bot in all matches.
        #[default]
        Balanced = "balanced",
    }
    FromStr, Err = UnknownSides
}

/// A word that does not say who is in seat 1.
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
    /// The plan for so many bots; `seed` decides who is who in it, and who is first by chance.
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
    /// How many times the pair was planned before on this board, both sides taken as one.
    pub leg: u32,
    /// Who plays, seat 1 first.
    pub seats: [Bot; SEATS],
}

/// The matches of a round robin, one by one.
#[derive(Debug)]
pub struct Pairings {
    rules: RoundRobin,
    names: Vec<NameKey>,
    /// Who stands in which place; the one apart comes last.
    circle: Vec<Bot>,
    pass: u32,
    round: usize,
    /// The distance from the middle of the round of those who meet next.
    distance: usize,
    /// The second match of a pair that has just played its first.
    again: Option<Pairing>,
}

impl Pairings {
    fn new(rules: RoundRobin, names: &[NameKey]) -> Self {
        let circle = (0..=Bot::MAX).take(names.len()).collect();
        let (pass, round, distance, again) = (0, 0, 0, None);
        let names = names.to_vec();
        let mut pairings = Self { rules, names, circle, pass, round, distance, again };
        pairings.begin_pass();
        pairings
    }

    /// How many matches there are in all.
    pub fn matches(&self) -> u64 {
        let bots = self.circle.len() as u64;
        u64::from(self.rules.meetings()) * (bots * (bots - 1) / 2)
    }

    /// What is promised of all matches together. It holds for those on each board, too, with as
    /// many times fewer matches and meetings as there are boards.
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
            kin_meetings: None,
            match_spread: Some(0),
            seat_spread,
            side_spread,
        }
    }

    fn passes(&self) -> u32 {
        self.rules.legs.get() * self.rules.boards.get()
    }

    /// The places of the circle: an odd number.
    fn places(&self) -> usize {
        (self.circle.len() - 1) | 1
    }

    /// Puts the bots into a new order, the same for the second of two twins.
    fn begin_pass(&mut self) {
        if self.pass.is_multiple_of(2) {
            let (names, twins) = (&self.names, u64::from(self.pass / 2));
            let place = |bot: &Bot| (mix([PLACES, twins, names[usize::from(*bot)].0]), *bot);
            self.circle.sort_by_cached_key(place);
        }
        self.round = 0;
        self.distance = self.nearest();
    }

    /// The least distance: nobody meets the bot in the middle if nobody stands apart.
    fn nearest(&self) -> usize {
        self.circle.len() % 2
    }

    /// The places of those who meet now.
    fn places_of_pair(&self) -> [usize; SEATS] {
        let (round, k, places) = (self.round, self.distance, self.places());
        if k == 0 { [places, round] } else { [(round + k) % places, (round + places - k) % places] }
    }

    /// Those who meet now, seat 1 first.
    fn pair(&self) -> [Bot; SEATS] {
        let [one, other] = self.places_of_pair();
        let (bots, pair) = (self.circle.len(), [self.circle[one], self.circle[other]]);
        let after = (other + bots - one) % bots;
        let by_chance = match self.rules.sides {
            Sides::Both | Sides::Random => true,
            // Legs that come in twins are even whoever is first in the first of them.
            Sides::Balanced => self.rules.legs.get().is_multiple_of(2) || 2 * after == bots,
        };
        let swapped = if by_chance {
            let name = |bot: Bot| self.names[usize::from(bot)].0;
            let [one, other] = pair.map(name);
            let (low, high) = (one.min(other), one.max(other));
            let low_first = mix([SIDES, self.turn(), low, high]) & 1 == 0;
            low_first != (low == one)
        } else {
            2 * after > bots
        };
        let turned = swapped != (self.rules.sides == Sides::Balanced && self.pass % 2 == 1);
        if turned { [pair[1], pair[0]] } else { pair }
    }

    /// What chance decides anew: each pass, or each two that are twins.
    fn turn(&self) -> u64 {
        let balanced = self.rules.sides == Sides::Balanced;
        (if balanced { self.pass / 2 } else { self.pass }).into()
    }

    /// Goes on to the next pair, round, pass.
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
        // Legs on one board follow one another, so that twins are on the same board if they can.
        let (board, leg) = (pass / self.rules.legs.get(), pass % self.rules.legs.get());
        let board = u16::try_from(board).expect("there are at most 1000 boards");
        if self.rules.sides == Sides::Both {
            self.again = Some(Pairing { board, leg, seats: [seats[1], seats[0]] });
        }
        Some(Pairing { board, leg, seats })
    }
}

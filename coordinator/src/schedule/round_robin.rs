//! Matches of two: everybody against everybody, on each board and in each leg.
//!
//! All but one bot stand in a circle of an odd number n of places (with an odd number of bots, all
//! do). In round r those meet who stand at the same distance k to both sides of place r, and the
//! one apart meets who stands there. Sides alternate with k, and for the one apart with r: each bot
//! is first in half of its matches, or half a match more or less. That is one *pass*: each pair
//! once.
//!
//! Balanced passes come in twins, in which the same bots stand in the same places, but all sides
//! are reversed. So a pair that plays an even number of times has each side equally often, and an
//! odd pass at the end leaves nobody more than one match off.

use core::fmt;
use core::str::FromStr;

use arbiter_games::{Dice, Seed};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Bot, Claim, MOST_BOTS, ScheduleError, Times};

/// Seats in a match.
const SEATS: usize = 2;

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

/// Who is in seat 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum Sides {
    /// Both, in two matches on each board and in each leg; chance decides who is first at first.
    Both,
    /// Chance decides, match by match.
    Random,
    /// Each equally often or once more, both of a pair and of each bot in all matches.
    #[default]
    Balanced,
}

impl Sides {
    /// All ways, in the order of the documents.
    pub const ALL: [Self; 3] = [Self::Both, Self::Random, Self::Balanced];

    /// The word for it in tournament files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Random => "random",
            Self::Balanced => "balanced",
        }
    }
}

impl fmt::Display for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that does not say who is in seat 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("sides can be both, random or balanced")]
pub struct UnknownSides;

impl FromStr for Sides {
    type Err = UnknownSides;

    fn from_str(word: &str) -> Result<Self, UnknownSides> {
        Self::ALL.into_iter().find(|sides| sides.word() == word).ok_or(UnknownSides)
    }
}

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
        match bots {
            ..SEATS => Err(ScheduleError::TooFew { bots, fewest: SEATS, plan: "a round robin" }),
            SEATS..=MOST_BOTS => Ok(Pairings::new(self, bots, seed)),
            _ => Err(ScheduleError::TooMany { bots }),
        }
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
    /// Who plays, seat 1 first.
    pub seats: [Bot; SEATS],
}

/// The matches of a round robin, one by one.
#[derive(Debug)]
pub struct Pairings {
    rules: RoundRobin,
    seed: Seed,
    /// Who stands in which place; the one apart comes last.
    circle: Vec<Bot>,
    chance: Dice,
    pass: u32,
    round: usize,
    /// The distance from the middle of the round of those who meet next.
    distance: usize,
    /// The second match of a pair that has just played its first.
    again: Option<Pairing>,
}

impl Pairings {
    fn new(rules: RoundRobin, bots: usize, seed: Seed) -> Self {
        let circle = (0..=Bot::MAX).take(bots).collect();
        let chance = seed.derive("sides").dice(0);
        let (pass, round, distance, again) = (0, 0, 0, None);
        let mut pairings = Self { rules, seed, circle, chance, pass, round, distance, again };
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
            match_spread: 0,
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
        let bots = self.circle.len();
        self.circle.clear();
        self.circle.extend((0..=Bot::MAX).take(bots));
        self.seed.derive(&format!("twins {}", self.pass / 2)).dice(0).shuffle(&mut self.circle);
        self.round = 0;
        self.distance = self.nearest();
    }

    /// The least distance: nobody meets the bot in the middle if nobody stands apart.
    fn nearest(&self) -> usize {
        self.circle.len() % 2
    }

    /// Those who meet now; in seat 1 who is first in the first of two twins.
    fn pair(&self) -> [Bot; SEATS] {
        let (round, k, places) = (self.round, self.distance, self.places());
        let (one, other, swapped) = if k == 0 {
            (self.circle[places], self.circle[round], round % 2 == 1)
        } else {
            let right = self.circle[(round + k) % places];
            let left = self.circle[(round + places - k) % places];
            (right, left, k % 2 == 0)
        };
        if swapped { [other, one] } else { [one, other] }
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
        let mut seats = self.pair();
        self.advance();
        let turned = match self.rules.sides {
            Sides::Balanced => pass % 2 == 1,
            Sides::Both | Sides::Random => self.chance.below(2) == 1,
        };
        if turned {
            seats.reverse();
        }
        // Legs on one board follow one another, so that twins are on the same board if they can.
        let board = pass / self.rules.legs.get();
        let board = u16::try_from(board).expect("there are at most 1000 boards");
        if self.rules.sides == Sides::Both {
            self.again = Some(Pairing { board, seats: [seats[1], seats[0]] });
        }
        Some(Pairing { board, seats })
    }
}

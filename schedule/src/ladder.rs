//! Ladder: in each round every bot meets the bot against which a game tells most about ratings.
//!
//! # Ratings
//!
//! Under the model of Bradley and Terry ("Rank Analysis of Incomplete Block Designs", Biometrika
//! 39, 1952) bot i has a strength πᵢ > 0 and beats j with probability πᵢ / (πᵢ + πⱼ); a draw is
//! half a win of each. Every bot also has two drawn games against an imaginary bot of strength 1,
//! so the best strengths exist and are unique whatever the results are. They depend on how often
//! each pair met and on its points, not on the order of its games. `strengths` finds
//! them by Newton's method. It uses only sums, products and quotients, which every machine rounds
//! the same way: all coordinators must plan the same matches. Strengths are rounded to 32 bits, so
//! that bots with equal results have equal ones.
//!
//! # Pairs
//!
//! A game between i and j has the Fisher information p (1 − p), p = πᵢ / (πᵢ + πⱼ), about the
//! logarithm of their strengths: most between equals. What is known about a bot is the sum of it
//! over its games, and its inverse is the variance. A round begins with the bot about which least
//! is known. It meets the bot with the most p (1 − p) (vᵢ + vⱼ) / (1 + m) among the 64 nearest in
//! strength that have no opponent yet, where m is how often the two have met: the model does not
//! know that a bot can have opponents that suit it, so new opponents tell more. If the number of
//! bots is odd, the last bot has a bye.

mod strengths;

use core::cmp::Ordering;
use core::fmt;
use std::collections::BTreeMap;

use arbiter_games::Score;
use serde::{Deserialize, Serialize};

use self::strengths::{PairResults, strengths};
use super::error::check_bots;
use super::planned_match::counted;
use super::rounds::Rounds;
use super::seeded_mix::{NameKey, mix};
use super::shared_ranks::shared_ranks;
use super::{Bot, MatchBounds, PlannedMatch, Repetitions, ScheduleError};

/// The minimum number of bots.
pub(crate) const MIN_BOTS: usize = 2;

/// The name of this plan in errors.
const PLAN: &str = "a ladder";

/// Keys of [`mix`], so that sides and the first round are independent random choices.
const SIDES: u64 = 8;
const ORDER: u64 = 9;

/// The number of bots, on either side of a bot, that are looked at as its opponents.
const NEAREST: usize = 32;

/// The default number of rounds.
const ROUNDS: Repetitions = Repetitions::TEN;

/// The options of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LadderRules {
    /// The number of rounds. In each, a bot has one meeting of two games with sides swapped.
    pub rounds: Repetitions,
}

impl Default for LadderRules {
    fn default() -> Self {
        Self { rounds: ROUNDS }
    }
}

/// A ladder when all planned matches are played.
#[derive(Clone, Debug)]
pub struct Ladder {
    rules: LadderRules,
    names: Vec<NameKey>,
    finished: u32,
    /// The games of each pair, the bot with the smaller number first.
    results: BTreeMap<[Bot; 2], PairResults>,
    strengths: Vec<f64>,
    /// The pairs of the next round.
    next: Vec<[Bot; 2]>,
}

impl LadderRules {
    /// The plan for bots of these names.
    ///
    /// # Errors
    /// If there are fewer than 2 bots, or too many.
    pub fn among(self, names: &[NameKey]) -> Result<Ladder, ScheduleError> {
        check_bots(names.len(), MIN_BOTS, PLAN)?;
        let mut ladder = Ladder {
            rules: self,
            names: names.to_vec(),
            finished: 0,
            results: BTreeMap::new(),
            strengths: vec![1.0; names.len()],
            next: Vec::new(),
        };
        ladder.next = ladder.pairs();
        Ok(ladder)
    }

    /// The number of matches for this many bots.
    pub(crate) fn matches(self, bots: usize) -> u64 {
        2 * (bots / 2) as u64 * u64::from(self.rounds.get())
    }
}

impl Ladder {
    /// The number of rounds of the whole ladder.
    pub fn round_count(&self) -> usize {
        self.rules.rounds.get() as usize
    }

    /// The number of rounds that are over.
    pub fn finished_rounds(&self) -> usize {
        self.finished as usize
    }

    /// The strength of each bot, in the order of the bots; 1 is the mean bot. It is e^(r / 173.7)
    /// for a rating of r Elo.
    pub fn strengths(&self) -> &[f64] {
        &self.strengths
    }

    /// The pairs of the next round.
    fn pairs(&self) -> Vec<[Bot; 2]> {
        let variances = self.variances();
        let bots = self.names.len();
        let place = |bot: usize| mix([ORDER, self.names[bot].0]);
        let by_strength = |first: &usize, second: &usize| {
            let order = self.strengths[*second].total_cmp(&self.strengths[*first]);
            order.then(place(*first).cmp(&place(*second)))
        };
        let mut free: Vec<usize> = (0..bots).collect();
        free.sort_by(by_strength);
        let mut waiting = free.clone();
        waiting.sort_by(|first, second| variances[*second].total_cmp(&variances[*first]));
        let mut is_paired = vec![false; bots];
        let mut pairs = Vec::new();
        for bot in waiting {
            if is_paired[bot] {
                continue;
            }
            let at =
                free.binary_search_by(|other| by_strength(other, &bot)).unwrap_or_else(|at| at);
            let near = at.saturating_sub(NEAREST)..free.len().min(at + NEAREST + 1);
            let others = near.filter(|other| *other != at);
            let gain = |at: usize| self.gain(bot, free[at], &variances);
            let Some(best) =
                others.reduce(|best, other| match gain(best).total_cmp(&gain(other)) {
                    Ordering::Less => other,
                    Ordering::Equal | Ordering::Greater => best,
                })
            else {
                break;
            };
            let other = free[best];
            free.remove(best.max(at));
            free.remove(best.min(at));
            is_paired[bot] = true;
            is_paired[other] = true;
            pairs.push([bot.min(other), bot.max(other)].map(to_bot));
        }
        pairs
    }

    /// What a meeting of two bots tells about their ratings.
    fn gain(&self, first: usize, second: usize, variances: &[f64]) -> f64 {
        let pair = [first.min(second), first.max(second)].map(to_bot);
        let meetings = self.results.get(&pair).map_or(0, |results| results.games / 2);
        let variance = variances[first] + variances[second];
        self.information(first, second) * variance / f64::from(1 + meetings)
    }

    /// The Fisher information of a game.
    fn information(&self, first: usize, second: usize) -> f64 {
        let own = self.strengths[first];
        let other = self.strengths[second];
        own * other / ((own + other) * (own + other))
    }

    /// The variance of the rating of each bot.
    fn variances(&self) -> Vec<f64> {
        let imaginary = |strength: &f64| 2.0 * strength / ((strength + 1.0) * (strength + 1.0));
        let mut known: Vec<_> = self.strengths.iter().map(imaginary).collect();
        for (pair, results) in &self.results {
            let [first, second] = pair.map(usize::from);
            let information = f64::from(results.games) * self.information(first, second);
            known[first] += information;
            known[second] += information;
        }
        known.into_iter().map(|known| 1.0 / known).collect()
    }

    /// The two games of a pair.
    fn games(&self, pair: [Bot; 2]) -> [PlannedMatch; 2] {
        let leg = self.results.get(&pair).map_or(0, |results| results.games / 2);
        let [first, second] = pair.map(|bot| self.names[usize::from(bot)].0);
        let low = first.min(second);
        let high = first.max(second);
        let is_low_first = mix([SIDES, low, high, leg.into()]) & 1 == 0;
        let seats = if is_low_first == (low == first) { pair } else { [pair[1], pair[0]] };
        [seats, [seats[1], seats[0]]].map(|seats| PlannedMatch::new(0, leg, seats))
    }
}

fn to_bot(bot: usize) -> Bot {
    Bot::try_from(bot).expect("at most 65536 bots")
}

impl Rounds for Ladder {
    fn bots(&self) -> usize {
        self.names.len()
    }

    fn seats(&self) -> usize {
        2
    }

    fn matches(&self) -> Vec<PlannedMatch> {
        self.next.iter().flat_map(|pair| self.games(*pair)).collect()
    }

    fn is_over(&self) -> bool {
        self.next.is_empty()
    }

    fn advance(&mut self, results: &[Vec<Score>]) {
        for (planned, scores) in self.matches().iter().zip(results) {
            let seats = planned.seats();
            let first = usize::from(seats[0] > seats[1]);
            let pair = [seats[first], seats[1 - first]];
            let results = self.results.entry(pair).or_default();
            results.add(scores[first].cmp(&scores[1 - first]));
        }
        self.strengths = strengths(&self.strengths, &self.results);
        self.finished += 1;
        let is_last = self.finished >= self.rules.rounds.get();
        self.next = if is_last { Vec::new() } else { self.pairs() };
    }

    /// By strength.
    fn ranks(&self) -> Vec<u32> {
        let strengths = &self.strengths;
        shared_ranks(strengths.len(), |one, other| strengths[other].total_cmp(&strengths[one]))
    }

    fn bounds(&self) -> MatchBounds {
        MatchBounds::exact(self.rules.matches(self.names.len()))
    }
}

/// A summary in one line, for people.
impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ladder of {}", counted(self.round_count(), "round", "rounds"))
    }
}

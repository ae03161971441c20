//! A plan whose matches are all known at its beginning, as a plan of one round.

use core::cmp::Ordering;
use std::collections::HashMap;

use arbiter_games::Score;

use super::rounds::{Rounds, add_score};
use super::shared_ranks::shared_ranks;
use super::{Bot, MatchBounds, PlannedMatch, ScheduleError};

/// The maximum number of matches of such a plan, which are in memory.
pub(crate) const MAX_MATCHES: u64 = 500_000;

/// Fails if a plan of this kind has more matches than possible.
pub(crate) fn check_matches(
    plan: impl FnOnce() -> String,
    matches: u64,
    remedy: &'static str,
) -> Result<(), ScheduleError> {
    if matches <= MAX_MATCHES {
        return Ok(());
    }
    Err(ScheduleError::LargePlan { plan: plan(), matches, max: MAX_MATCHES, remedy })
}

/// All matches of a plan, and the sums of their scores.
#[derive(Clone, Debug)]
pub struct ListedRound {
    seats: usize,
    matches: Vec<PlannedMatch>,
    is_over: bool,
    totals: Vec<Total>,
}

/// The scores of a bot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// The number of matches.
    pub matches: u64,
    /// The sum of the scores, one number for each component.
    pub scores: Vec<i128>,
}

impl Total {
    /// Adds a match.
    fn add(&mut self, score: &Score) {
        self.matches += 1;
        add_score(&mut self.scores, score);
    }

    /// Compares the scores per match, from the left.
    fn compare_means(&self, other: &Self) -> Ordering {
        let own = self.scores.iter().map(|sum| sum * i128::from(other.matches.max(1)));
        own.cmp(other.scores.iter().map(|sum| sum * i128::from(self.matches.max(1))))
    }
}

impl ListedRound {
    /// A plan of these matches, with their legs. `totals` are the scores that each bot brings
    /// along.
    pub(crate) fn new(
        seats: usize,
        matches: impl Iterator<Item = PlannedMatch>,
        totals: Vec<Total>,
    ) -> Self {
        Self { seats, matches: matches.collect(), is_over: false, totals }
    }

    /// Like [`Self::new`] for tables, which have no legs: those of the same bots get different
    /// ones.
    pub(crate) fn of_tables(
        seats: usize,
        tables: impl Iterator<Item = PlannedMatch>,
        totals: Vec<Total>,
    ) -> Self {
        let mut repeats: HashMap<Vec<Bot>, u32> = HashMap::new();
        let numbered = tables.map(|planned| {
            let leg = repeats.entry(planned.sorted_bots()).or_default();
            *leg += 1;
            planned.with_leg(*leg - 1)
        });
        Self::new(seats, numbered, totals)
    }

    /// The scores of each bot, in the order of the bots.
    pub fn totals(&self) -> &[Total] {
        &self.totals
    }

    /// The same round with the scores of those matches that are played, for its standings so far.
    /// `results` are in the order of the matches. A round that is over stays the same.
    #[must_use]
    pub fn with_played(&self, results: &[Option<Vec<Score>>]) -> Self {
        let mut round = self.clone();
        if !self.is_over {
            round.add(results.iter().map(|scores| scores.as_deref().unwrap_or(&[])));
        }
        round
    }

    /// Adds the scores of matches, in their order.
    fn add<'a>(&mut self, results: impl Iterator<Item = &'a [Score]>) {
        for (planned, scores) in self.matches.iter().zip(results) {
            for (bot, score) in planned.seats().iter().zip(scores) {
                self.totals[usize::from(*bot)].add(score);
            }
        }
    }
}

impl Rounds for ListedRound {
    fn bots(&self) -> usize {
        self.totals.len()
    }

    fn seats(&self) -> usize {
        self.seats
    }

    fn matches(&self) -> Vec<PlannedMatch> {
        if self.is_over { Vec::new() } else { self.matches.clone() }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn advance(&mut self, results: &[Vec<Score>]) {
        self.add(results.iter().map(Vec::as_slice));
        self.is_over = true;
    }

    /// By scores per match, compared from the left: with a budget of matches some bots have one
    /// match more than others, and bots of a panel have more than candidates.
    fn ranks(&self) -> Vec<u32> {
        let totals = &self.totals;
        shared_ranks(totals.len(), |first, second| totals[second].compare_means(&totals[first]))
    }

    fn bounds(&self) -> MatchBounds {
        MatchBounds::exact(self.matches.len() as u64)
    }
}

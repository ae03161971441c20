//! Certificates of plans in rounds: what such a plan promises, counted on two runs of it.
//!
//! The matches depend on the results, so they cannot be counted in advance. In the first run the
//! bot that entered earlier wins every match, in the second one all scores are equal. The counts
//! are those of both runs together.

use core::fmt;
use core::ops::RangeInclusive;
use std::collections::{HashMap, HashSet};

use arbiter_games::Score;
use thiserror::Error;

use super::{Bot, CertificateBuilder, CertificateError, MatchBounds, PlannedMatch, RoundPlan};

/// The counts of two runs of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundsCertificate {
    /// The number of bots.
    pub bots: usize,
    /// The number of seats of each match.
    pub seats: usize,
    /// The most rounds of a run.
    pub rounds: usize,
    /// The fewest and most matches of a run.
    pub matches: MatchBounds,
    /// The minimum and maximum number of matches of a bot in a run.
    pub matches_of_bot: RangeInclusive<u32>,
    /// The most rounds in which two bots meet, in matches of two.
    pub meetings: Option<u32>,
    /// The maximum difference, over all bots, between the numbers of times that a bot has each
    /// seat.
    pub seat_spread: u32,
}

/// The first promise that a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RoundsError {
    /// A match is impossible.
    #[error(transparent)]
    Match(#[from] CertificateError),
    /// A match occurs twice in a run.
    #[error("match {number} has the board, leg and seats of an earlier one")]
    Repeated {
        /// The number of the match in the run, from 1.
        number: usize,
    },
    /// A run has another number of matches than the plan promises.
    #[error("matches: {actual}, not {expected} as promised")]
    Matches {
        /// The number of matches of a run.
        actual: u64,
        /// The promised bounds.
        expected: MatchBounds,
    },
}

/// The counts of one run.
struct Run {
    rounds: usize,
    counts: super::Certificate,
    meetings: Option<u32>,
}

impl Run {
    /// Plays all matches with these scores.
    fn of(
        mut plan: RoundPlan,
        scores: impl Fn(&PlannedMatch) -> Vec<Score>,
    ) -> Result<Self, RoundsError> {
        let seats = plan.seats();
        let mut counter = CertificateBuilder::without_meetings(plan.bots(), seats);
        let mut rounds = 0;
        let mut meetings: HashMap<Vec<Bot>, u32> = HashMap::new();
        let mut seen: HashSet<(u16, u32, Vec<Bot>)> = HashSet::new();
        let mut former: HashSet<Vec<Bot>> = HashSet::new();
        while !plan.is_over() {
            let planned = plan.matches();
            for one in &planned {
                counter.add(one.seats())?;
                if !seen.insert((one.board, one.leg, one.seats().to_vec())) {
                    return Err(RoundsError::Repeated { number: seen.len() + 1 });
                }
            }
            if seats == 2 {
                let pairs: HashSet<_> = planned.iter().map(PlannedMatch::sorted_bots).collect();
                // Extra games of a knockout follow in a round after those of their meeting.
                for pair in pairs.difference(&former) {
                    *meetings.entry(pair.clone()).or_default() += 1;
                }
                former = pairs;
            }
            rounds += 1;
            let results: Vec<_> = planned.iter().map(&scores).collect();
            plan.finish(&results).expect("there is a score for each seat");
        }
        let meetings = (seats == 2).then(|| meetings.into_values().max().unwrap_or(0));
        Ok(Self { rounds, counts: counter.finish(), meetings })
    }
}

impl RoundsCertificate {
    /// Counts two runs of a plan before its first match, and compares them with its promises.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn prove(plan: &RoundPlan) -> Result<Self, RoundsError> {
        let by_entry = |planned: &PlannedMatch| {
            planned.seats().iter().map(|bot| Score(vec![-i64::from(*bot)])).collect()
        };
        let equal = |planned: &PlannedMatch| vec![Score(vec![0]); planned.seats().len()];
        let runs = [Run::of(plan.clone(), by_entry)?, Run::of(plan.clone(), equal)?];
        let expected = plan.bounds();
        let matches = runs.each_ref().map(|run| run.counts.matches);
        for actual in matches {
            if !(expected.fewest..=expected.most).contains(&actual) {
                return Err(RoundsError::Matches { actual, expected });
            }
        }
        let of_bot = runs.each_ref().map(|run| run.counts.matches_of_bot.clone());
        Ok(Self {
            bots: plan.bots(),
            seats: plan.seats(),
            rounds: runs[0].rounds.max(runs[1].rounds),
            matches: MatchBounds {
                fewest: matches[0].min(matches[1]),
                most: matches[0].max(matches[1]),
            },
            matches_of_bot: *of_bot[0].start().min(of_bot[1].start())
                ..=*of_bot[0].end().max(of_bot[1].end()),
            meetings: runs[0].meetings.max(runs[1].meetings),
            seat_spread: runs[0].counts.seat_spread.max(runs[1].counts.seat_spread),
        })
    }
}

impl fmt::Display for RoundsCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bots, seats, rounds, matches, matches_of_bot, .. } = self;
        writeln!(f, "{bots} bots, {rounds} rounds, matches of {seats}")?;
        writeln!(f, "all rounds:         {matches}")?;
        let least = matches_of_bot.start();
        let most = matches_of_bot.end();
        if least == most {
            writeln!(f, "matches of a bot:   {most}")?;
        } else {
            writeln!(f, "matches of a bot:   {least} to {most}")?;
        }
        if let Some(meetings) = self.meetings {
            writeln!(f, "meetings of a pair: at most {meetings}")?;
        }
        writeln!(f, "seats of a bot:     within {}", self.seat_spread)
    }
}

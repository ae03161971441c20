//! What can be concluded from the results of an edition, beside its exact sums: who is better, and
//! how sure.
//!
//! # The question
//!
//! Which entrant would have the higher mean with ever more fresh seeds, against the same field? The
//! mean is that of the first column of the scores, over matches, or over episodes in games with
//! episodes. Other columns and other opponents are not considered.
//!
//! # The method
//!
//! A *block* is all that shares a seed key: one observation (`blocks`). Blocks of the same entrants
//! are a *cell*: their differences show how much chance there is (`covariance`). From that follows
//! an error for the difference of each two entrants. A bootstrap of the blocks (`resampling`) gives
//! the error that all differences together stay within in 95 % of all cases: so every claim of a
//! leaderboard holds at once (`certain_order`). Two entrants whose interval includes 0 cannot be
//! told apart. The *rank set* of an entrant follows: its best rank is 1 + the number of entrants
//! that are surely above it, its worst rank is the number of all minus those surely below it.
//!
//! Sources: Mogstad, Romano, Shaikh and Wilhelm, "Inference for Ranks", Review of Economic Studies
//! 91 (2024), for rank sets with the step-down procedure of Romano and Wolf (2005); Chernozhukov,
//! Chetverikov and Kato (2013) for the multiplier bootstrap of a maximum; Satterthwaite (1946) for
//! the degrees of freedom; Morris (1983) for probabilities that allow for chance in the field.

mod blocks;
mod certain_order;
mod covariance;
mod quantiles;
mod resampling;
mod shrinkage;
#[cfg(test)]
mod tests;
pub mod text;

use arbiter_games::Seed;

pub use self::blocks::{Blocks, Measured};
pub(crate) use self::quantiles::{normal_cdf, student_quantile};

use self::certain_order::CertainOrder;
use self::covariance::Covariance;
use self::quantiles::student_cdf;
use self::resampling::Replicates;
use self::shrinkage::Shrinkage;
use crate::Entrant;

/// The probability with which all statements about ranks hold.
pub const CONFIDENCE: f64 = 0.95;
/// For how many best ranks there are probabilities: first, among the best 2, and so on.
pub const MAX_TOP: usize = 16;

/// What the intervals of an edition are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Fresh seeds, and the same pairs or tables.
    Seeds,
    /// Fresh seeds and freshly drawn tables: at least half of the entrants have a table with one
    /// block, so that the chance of its seed cannot be told from the strength of its seats.
    Tables,
}

/// Why the mean of an entrant has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoInterval {
    /// It has no counted match.
    NoMatches,
    /// It has met some opponents with one seed only.
    OneSeed,
    /// All its blocks had equal outcomes, and not because matches were repeated.
    EqualOutcomes,
}

/// What is known of the mean of an entrant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// Its standard error, with its degrees of freedom.
    Error {
        /// The standard error.
        error: f64,
        /// The degrees of freedom.
        degrees: f64,
    },
    /// The mean is exact: fresh seeds repeat the same matches.
    Exact,
    /// Nothing.
    Unknown(NoInterval),
}

/// What can be concluded about one entrant.
#[derive(Clone, Debug, PartialEq)]
pub struct EntrantStatistics {
    /// The entrant.
    pub entrant: Entrant,
    /// The number of its matches.
    pub matches: u64,
    /// The number of different ones among them.
    pub distinct_matches: u64,
    /// The mean of the first column.
    pub mean: f64,
    /// How precise the mean is.
    pub precision: Precision,
    /// Half the width of the 95 % interval of the mean alone. Intervals of two entrants cannot be
    /// compared: see [`Statistics::pair`].
    pub margin: Option<f64>,
    /// Its best and its worst possible rank, from 1. None without an interval, and if it is
    /// unranked.
    pub rank_set: Option<(usize, usize)>,
    /// The probability that it is among the best 1, 2, … [`MAX_TOP`] of the ranked entrants. Empty
    /// without an interval, and if it is unranked.
    pub top: Vec<f64>,
    /// The number of further matches after which its rank should be certain. None if that cannot
    /// be said.
    pub matches_needed: Option<u64>,
}

impl Precision {
    /// Half the width of the 95 % interval of the mean.
    fn margin(self) -> Option<f64> {
        match self {
            Self::Error { error, degrees } => {
                Some(error * student_quantile(degrees, f64::midpoint(1.0, CONFIDENCE)))
            }
            Self::Exact => Some(0.0),
            Self::Unknown(_) => None,
        }
    }
}

/// What can be concluded about two entrants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairStatistics {
    /// The mean of the first entrant minus that of the second one.
    pub difference: f64,
    /// Half the width of the interval of the difference. The intervals of all pairs of the edition
    /// hold together with a probability of [`CONFIDENCE`]. None if it cannot be said.
    pub margin: Option<f64>,
    /// The probability that the first entrant is above the second one. None if it cannot be said.
    pub probability: Option<f64>,
    /// The number of further matches of each of the two after which they can be told apart, apart
    /// from other pairs. None if that cannot be said.
    pub matches_needed: Option<u64>,
}

/// What can be concluded from the results of an edition.
#[derive(Debug)]
pub struct Statistics {
    /// What the intervals are for.
    pub basis: Basis,
    /// The number of matches.
    pub matches: u64,
    /// The number of different ones among them: same seats, same transcript.
    pub distinct_matches: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The entrants, in ascending order.
    pub entrants: Vec<EntrantStatistics>,
    covariance: Covariance,
    shrinkage: Shrinkage,
    /// The number of standard errors that all differences stay within, for a normal error.
    critical: f64,
}

impl Statistics {
    /// Computes the statistics of these entrants. `seed` determines the resampling. The order of
    /// the results in `blocks` changes, and makes no difference. Possible ranks do not count
    /// entrants that are not ranked.
    pub fn of(
        entrants: &[Entrant],
        is_ranked: impl Fn(Entrant) -> bool,
        blocks: &mut Blocks,
        seed: Seed,
    ) -> Self {
        let ranked: Vec<_> = entrants.iter().map(|entrant| is_ranked(*entrant)).collect();
        let cells = blocks.cells(entrants);
        let covariance = Covariance::of(&cells);
        let means = cells.means();
        let shrinkage = Shrinkage::of(&means, &covariance);
        let replicates = Replicates::draw(&covariance, &means, &ranked, &shrinkage, seed);
        let order = CertainOrder::of(&means, &ranked, &covariance, &replicates);
        let numbered = entrants.iter().enumerate();
        let entrants = numbered.map(|(index, entrant)| {
            let precision = covariance.precision(index);
            let is_known = ranked[index] && !matches!(precision, Precision::Unknown(_));
            EntrantStatistics {
                entrant: *entrant,
                matches: cells.matches[index],
                distinct_matches: cells.distinct[index],
                mean: means[index],
                precision,
                margin: precision.margin(),
                rank_set: is_known.then(|| order.rank_set(index)),
                top: if is_known { replicates.top(index) } else { Vec::new() },
                matches_needed: order
                    .matches_needed(index, cells.matches[index])
                    .filter(|_| ranked[index]),
            }
        });
        Self {
            basis: cells.basis,
            matches: cells.all_matches,
            distinct_matches: cells.all_distinct,
            blocks: cells.blocks,
            entrants: entrants.collect(),
            critical: order.critical,
            covariance,
            shrinkage,
        }
    }

    /// The index of an entrant in `entrants`.
    pub fn index(&self, entrant: Entrant) -> Option<usize> {
        self.entrants.binary_search_by_key(&entrant, |known| known.entrant).ok()
    }

    /// The statistics of two entrants.
    pub fn pair(&self, first: Entrant, second: Entrant) -> Option<PairStatistics> {
        let pair = [self.index(first)?, self.index(second)?];
        let means = pair.map(|index| self.entrants[index].mean);
        let difference = means[0] - means[1];
        let Some(error) = self.covariance.difference(pair) else {
            let margin = None;
            return Some(PairStatistics {
                difference,
                margin,
                probability: None,
                matches_needed: None,
            });
        };
        let margin = error.margin(self.critical);
        let matches = pair.map(|index| self.entrants[index].matches);
        let alone = student_quantile(error.degrees, f64::midpoint(1.0, CONFIDENCE)) * error.error;
        Some(PairStatistics {
            difference,
            margin: Some(margin),
            probability: Some(self.shrinkage.probability(means, pair, &self.covariance)),
            matches_needed: matches_needed(alone, difference, matches[0].max(matches[1])),
        })
    }
}

/// The number of matches beyond `matches` after which an interval with this half width no longer
/// includes 0, if the difference stays the same. The width falls with the square root of the number
/// of matches.
fn matches_needed(margin: f64, difference: f64, matches: u64) -> Option<u64> {
    if margin < difference.abs() || margin == 0.0 {
        return Some(0);
    }
    let more = ((margin / difference).powi(2) - 1.0) * count(matches);
    (more < 1e15).then(|| whole(more.ceil()))
}

#[expect(clippy::cast_precision_loss, reason = "there are less than 2⁵³ matches")]
fn count(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is small, and not negative"
)]
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

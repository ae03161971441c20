//! Outcomes of blocks, and what follows from them about the mean of a block.
//!
//! A block is a group of matches that share a seed: one observation. Intervals over matches would
//! be wrong, because the matches of a block depend on each other.

use std::collections::BTreeMap;

use crate::{Mean, U256};

/// How often each outcome of a block occurred. An outcome is a whole number, such as points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockOutcomes {
    counts: BTreeMap<i64, u64>,
}

impl BlockOutcomes {
    /// Adds a block with this outcome.
    pub fn add(&mut self, outcome: i64) {
        *self.counts.entry(outcome).or_default() += 1;
    }

    /// The number of blocks.
    pub fn blocks(&self) -> u64 {
        self.counts.values().sum()
    }

    /// How often this outcome occurred.
    pub fn count(&self, outcome: i64) -> u64 {
        self.counts.get(&outcome).copied().unwrap_or(0)
    }

    /// The mean of a block, with Student's interval over the blocks: for fresh seeds, and the same
    /// bots. None without blocks.
    pub fn mean(&self) -> Option<Mean> {
        let blocks = i64::try_from(self.blocks()).ok()?;
        let mut sum: i128 = 0;
        let mut squares = U256::default();
        for (outcome, count) in &self.counts {
            let outcome = i128::from(*outcome);
            sum = sum.saturating_add(outcome.saturating_mul(i128::from(*count)));
            let square = U256::square(outcome).checked_mul(*count).unwrap_or(U256::MAX);
            squares = squares.saturating_add(square);
        }
        Mean::of(blocks, sum, squares)
    }

    /// The variance of a block, estimated from at least two blocks.
    #[expect(clippy::cast_precision_loss, reason = "a variance is shown with a few digits")]
    pub fn variance(&self) -> Option<f64> {
        let blocks = self.blocks();
        let mean = self.mean()?.mean;
        let scatter = self
            .counts
            .iter()
            .map(|(outcome, count)| (*outcome as f64 - mean).powi(2) * *count as f64)
            .sum::<f64>();
        (blocks > 1).then(|| scatter / (blocks - 1) as f64)
    }

    /// The probability that the mean of a block is above `threshold`, if the error of the mean is
    /// normal. None if all outcomes are equal.
    #[expect(clippy::cast_precision_loss, reason = "a probability is shown with a few digits")]
    pub fn probability_above(&self, threshold: f64) -> Option<f64> {
        let variance = self.variance().filter(|variance| *variance > 0.0)?;
        let error = (variance / self.blocks() as f64).sqrt();
        let standardised = (self.mean()?.mean - threshold) / error;
        Some(libm::erfc(-standardised / std::f64::consts::SQRT_2) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(blocks: &[i64]) -> BlockOutcomes {
        let mut outcomes = BlockOutcomes::default();
        for outcome in blocks {
            outcomes.add(*outcome);
        }
        outcomes
    }

    /// 1, 2, 3, 4 have mean 2.5 and variance 5/3; the margin is 3.182 √(5/3/4) = 2.054, and 2.5 is
    /// 3.873 standard errors above 0, which a normal variable exceeds with probability 0.000054.
    #[test]
    fn the_mean_of_a_block_has_an_interval_over_blocks() {
        let four = outcomes(&[3, 1, 4, 2]);
        let Mean { mean, margin } = four.mean().unwrap();
        assert!((mean - 2.5).abs() < 1e-9 && (margin.unwrap() - 2.054).abs() < 1e-3);
        assert!((four.variance().unwrap() - 5.0 / 3.0).abs() < 1e-9);
        assert!((four.probability_above(0.0).unwrap() - 0.999_946).abs() < 1e-6);
    }

    #[test]
    fn equal_blocks_tell_no_probability() {
        let equal = outcomes(&[2; 50]);
        assert_eq!(equal.probability_above(0.0), None);
        assert_eq!(outcomes(&[]).mean(), None);
        assert_eq!((equal.blocks(), equal.count(2), equal.count(1)), (50, 50, 0));
    }
}

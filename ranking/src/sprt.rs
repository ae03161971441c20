//! The generalised sequential probability ratio test (GSPRT) of two hypotheses about the mean
//! outcome of a block. It ends as soon as the outcomes decide, which takes fewer matches than a
//! fixed number of them.
//!
//! # Theory of operation
//!
//! H0 says that the mean is `low`, H1 that it is `high`. The log-likelihood ratio (LLR) compares
//! the distributions under which the seen outcomes are the most likely, among those with the mean
//! of each hypothesis. The test ends when the LLR leaves Wald's bounds, ln(β/(1−α)) and
//! ln((1−β)/α), where α is the probability to accept H1 if H0 is true, and β the opposite.
//!
//! **Pairs.** A block is two matches with exchanged seats, and its outcome is one of five: 0 to 4
//! half points ("pentanomial"). If outcome aᵢ has the relative frequency pᵢ, the most likely
//! distribution with mean s is pᵢ / (1 + x (aᵢ − s)), where x solves
//! Σ pᵢ (aᵢ − s) / (1 + x (aᵢ − s)) = 0 (M. Van den Bergh, "The support of a maximum likelihood
//! multinomial", Proposition 1.1). An outcome that has not been seen counts as 1/1000 block, so
//! that it is not impossible. Chess engines are tested the same way by fishtest.
//!
//! **Margins.** Any difference of points is possible. Its mean is nearly normal after many blocks,
//! so LLR = N (high − low) (2 mean − low − high) / (2 variance) (the same author, "GSPRT
//! approximation"). Before [`LEAST_BLOCKS`] blocks the variance is too uncertain, and the LLR is 0.
//! Rare large outcomes that have not been seen yet are beyond any test: where they dominate, the
//! errors are more frequent. If all outcomes are equal, the LLR is infinite, unless they are
//! between both means.
//!
//! Source of the test: X. Li, J. Liu, Z. Ying, "Generalized sequential probability ratio test for
//! separate families of hypotheses", 2014.

use crate::{BlockOutcomes, result_of_elo};

/// The probability of a wrong decision under each hypothesis, α and β.
pub const SPRT_ERROR: f64 = 0.05;

/// The number of blocks that a test of margins needs at least.
pub const LEAST_BLOCKS: u64 = 30;

/// The number of half points that a pair of matches can bring.
const PAIR: [i64; 5] = [0, 1, 2, 3, 4];

/// What counts for an outcome of a pair that has not been seen, in blocks.
const UNSEEN: f64 = 1e-3;

/// The two hypotheses of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hypotheses {
    /// The difference in Elo under H0 and H1. The outcomes of blocks are half points of pairs.
    Elo {
        /// Under H0.
        low: f64,
        /// Under H1; greater.
        high: f64,
    },
    /// The mean outcome of a block under H0 and H1.
    Margin {
        /// Under H0.
        low: f64,
        /// Under H1; greater.
        high: f64,
    },
}

/// What a test has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// More blocks are needed.
    Undecided,
    /// H0 is accepted.
    Low,
    /// H1 is accepted.
    High,
}

impl Hypotheses {
    /// The bounds of the LLR at which the test ends, for H0 and for H1.
    pub fn bounds() -> (f64, f64) {
        let bound = ((1.0 - SPRT_ERROR) / SPRT_ERROR).ln();
        (-bound, bound)
    }

    /// The log-likelihood ratio of H1 to H0.
    pub fn llr(&self, outcomes: &BlockOutcomes) -> f64 {
        match *self {
            Self::Elo { low, high } => llr_of_pairs(outcomes, low, high),
            Self::Margin { low, high } => llr_of_margins(outcomes, low, high),
        }
    }

    /// What this LLR decides.
    pub fn decide(llr: f64) -> Decision {
        let (low, high) = Self::bounds();
        match llr {
            llr if llr <= low => Decision::Low,
            llr if llr >= high => Decision::High,
            _ => Decision::Undecided,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of blocks are far below 2^53")]
fn llr_of_pairs(outcomes: &BlockOutcomes, low: f64, high: f64) -> f64 {
    let counts = PAIR.map(|outcome| match outcomes.count(outcome) {
        0 => UNSEEN,
        count => count as f64,
    });
    let sum: f64 = counts.iter().sum();
    let frequencies = counts.map(|count| count / sum);
    let low = most_likely(frequencies, result_of_elo(low));
    let high = most_likely(frequencies, result_of_elo(high));
    let ratios = high.iter().zip(low).map(|(high, low)| (high / low).ln());
    counts.iter().zip(ratios).map(|(count, ratio)| count * ratio).sum()
}

/// The distribution of pairs with this mean result of a match that makes the frequencies most
/// likely. All frequencies are positive, and the mean is between 0 and 1.
fn most_likely(frequencies: [f64; 5], mean: f64) -> [f64; 5] {
    let distances = PAIR.map(|outcome| {
        #[expect(clippy::cast_precision_loss, reason = "it is at most 4")]
        let result = outcome as f64 / 4.0;
        result - mean
    });
    let slope = |x: f64| -> f64 {
        frequencies.iter().zip(distances).map(|(p, d)| p * d / (1.0 + x * d)).sum()
    };
    // The sum falls from +∞ to −∞ between the two poles that enclose all valid x.
    let mut least = -1.0 / distances[4];
    let mut most = -1.0 / distances[0];
    for _ in 0..80 {
        let middle = f64::midpoint(least, most);
        if slope(middle) > 0.0 {
            least = middle;
        } else {
            most = middle;
        }
    }
    let x = f64::midpoint(least, most);
    std::array::from_fn(|index| frequencies[index] / (1.0 + x * distances[index]))
}

#[expect(clippy::cast_precision_loss, reason = "counts of blocks are far below 2^53")]
fn llr_of_margins(outcomes: &BlockOutcomes, low: f64, high: f64) -> f64 {
    let blocks = outcomes.blocks();
    let Some((mean, variance)) = outcomes.mean().zip(outcomes.variance()) else { return 0.0 };
    let mean = mean.mean;
    match variance {
        _ if blocks < LEAST_BLOCKS => 0.0,
        variance if variance > 0.0 => {
            blocks as f64 * (high - low) * (2.0 * mean - low - high) / (2.0 * variance)
        }
        _ if mean >= high => f64::INFINITY,
        _ if mean <= low => f64::NEG_INFINITY,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use arbiter_games::{Dice, Seed};

    use super::*;

    /// The number of simulated tests of each effect.
    const RUNS: u64 = 2000;

    fn outcomes(counts: [u64; 5]) -> BlockOutcomes {
        let mut outcomes = BlockOutcomes::default();
        for (outcome, count) in PAIR.into_iter().zip(counts) {
            (0..count).for_each(|_| outcomes.add(outcome));
        }
        outcomes
    }

    /// Results of tests of Stockfish that fishtest published with their LLR, as the tests of
    /// fastchess quote them.
    #[test]
    fn published_tests_of_chess_engines_have_the_same_llr() {
        let published = [
            ([223, 9863, 21279, 10037, 246], 0.5, 2.5, -3.07),
            ([871, 26175, 55983, 26678, 821], 0.0, 2.0, -4.98),
        ];
        for (counts, low, high, expected) in published {
            let llr = Hypotheses::Elo { low, high }.llr(&outcomes(counts));
            assert!((llr - expected).abs() < 0.01, "{counts:?}: {llr}");
        }
    }

    #[test]
    fn an_even_distribution_decides_nothing_between_opposite_hypotheses() {
        let even = Hypotheses::Elo { low: -5.0, high: 5.0 }.llr(&outcomes([9, 20, 30, 20, 9]));
        assert!(even.abs() < 1e-9, "{even}");
        let none = Hypotheses::Elo { low: 0.0, high: 5.0 }.llr(&outcomes([0; 5]));
        assert!(none.abs() < 0.01, "{none}");
    }

    /// How often a test accepts H1, when blocks are drawn by `draw`.
    fn accepted(hypotheses: Hypotheses, label: &str, draw: impl Fn(&mut Dice) -> i64) -> f64 {
        let mut dice = Seed::of_text(label).dice(0);
        let mut high: u32 = 0;
        for _ in 0..RUNS {
            let mut blocks = BlockOutcomes::default();
            high += loop {
                blocks.add(draw(&mut dice));
                match Hypotheses::decide(hypotheses.llr(&blocks)) {
                    Decision::Undecided => {}
                    Decision::Low => break 0,
                    Decision::High => break 1,
                }
            };
        }
        f64::from(high) / 2000.0
    }

    /// A pair of matches at this difference in Elo, half of which would otherwise be drawn. Luck of
    /// the opening helps the same seat in both, so the matches of a pair depend on each other.
    fn pair(dice: &mut Dice, elo: f64) -> i64 {
        let shift = result_of_elo(elo) - 0.5;
        let luck = if dice.below(2) == 0 { 0.15 } else { -0.15 };
        let mut half_points = 0;
        for side in [1.0, -1.0] {
            let mean = 0.5 + shift + luck * side;
            let chance = f64::from(dice.below(1_000_000)) / 1e6;
            half_points += i64::from(chance < mean - 0.25) + i64::from(chance < mean + 0.25);
        }
        half_points
    }

    #[test]
    fn tests_of_pairs_err_at_most_as_often_as_promised() {
        let hypotheses = Hypotheses::Elo { low: 0.0, high: 60.0 };
        let rate = |elo: f64| accepted(hypotheses, &format!("pairs {elo}"), |dice| pair(dice, elo));
        let low = rate(0.0);
        let middle = rate(30.0);
        let high = rate(60.0);
        assert!(low <= 0.05, "accepted {low} of the tests at H0");
        assert!((0.4..0.6).contains(&middle), "accepted {middle} of the tests half way");
        assert!(high >= 0.95, "accepted {high} of the tests at H1");
    }

    /// Differences of points: mostly small, sometimes large.
    fn margin(dice: &mut Dice, mean: i64) -> i64 {
        let small = i64::from(dice.below(21)) - 10;
        let large = if dice.below(10) == 0 { 5 } else { 1 };
        mean + small * large
    }

    #[test]
    fn equal_margins_decide_unless_they_are_between_both_hypotheses() {
        let llr = |margin: i64| {
            let mut outcomes = BlockOutcomes::default();
            (0..LEAST_BLOCKS).for_each(|_| outcomes.add(margin));
            Hypotheses::decide(Hypotheses::Margin { low: 0.0, high: 2.0 }.llr(&outcomes))
        };
        assert_eq!([0, 1, 2].map(llr), [Decision::Low, Decision::Undecided, Decision::High]);
    }

    #[test]
    fn tests_of_margins_err_at_most_as_often_as_promised() {
        let hypotheses = Hypotheses::Margin { low: 0.0, high: 4.0 };
        let rate =
            |mean: i64| accepted(hypotheses, &format!("margins {mean}"), |dice| margin(dice, mean));
        let low = rate(0);
        let middle = rate(2);
        let high = rate(4);
        assert!(low <= 0.05, "accepted {low} of the tests at H0");
        assert!((0.4..0.6).contains(&middle), "accepted {middle} of the tests half way");
        assert!(high >= 0.95, "accepted {high} of the tests at H1");
    }
}

//! The strengths of the model of Bradley and Terry that fit results best.

use core::cmp::Ordering;
use std::collections::BTreeMap;

use crate::Bot;

/// The most iterations.
const MAX_ITERATIONS: usize = 10_000;
/// The iteration ends when no strength changes by a larger factor than 1 plus this.
const TOLERANCE: f64 = 1e-9;

/// The games of a pair of bots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PairResults {
    /// The number of games.
    pub(super) games: u32,
    /// The half points of the first bot.
    half_points: u32,
}

impl PairResults {
    /// Adds a game, with the first bot's score compared with that of the second one.
    pub(super) fn add(&mut self, score: Ordering) {
        self.games += 1;
        self.half_points += match score {
            Ordering::Less => 0,
            Ordering::Equal => 1,
            Ordering::Greater => 2,
        };
    }
}

/// The strength of each bot. The iteration starts from `start`.
pub(super) fn strengths(start: &[f64], results: &BTreeMap<[Bot; 2], PairResults>) -> Vec<f64> {
    // Two drawn games against an imaginary bot of strength 1.
    let mut won = vec![1.0; start.len()];
    for (pair, results) in results {
        let [first, second] = pair.map(usize::from);
        won[first] += f64::from(results.half_points) / 2.0;
        won[second] += f64::from(2 * results.games - results.half_points) / 2.0;
    }
    let mut strengths = start.to_vec();
    for _ in 0..MAX_ITERATIONS {
        let mut expected: Vec<_> = strengths.iter().map(|own| 2.0 / (own + 1.0)).collect();
        for (pair, results) in results {
            let [first, second] = pair.map(usize::from);
            let share = f64::from(results.games) / (strengths[first] + strengths[second]);
            expected[first] += share;
            expected[second] += share;
        }
        let mut change: f64 = 0.0;
        for ((strength, won), expected) in strengths.iter_mut().zip(&won).zip(expected) {
            let next = won / expected;
            change = change.max((next / *strength - 1.0).abs());
            *strength = next;
        }
        if change < TOLERANCE {
            break;
        }
    }
    strengths
}

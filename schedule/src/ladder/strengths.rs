//! The strengths of the model of Bradley and Terry that fit results best.
//!
//! The logarithm of the likelihood is concave in the logarithms of the strengths, so Newton's
//! method finds its maximum. Each of its steps solves a system of linear equations by conjugate
//! gradients (Hestenes and Stiefel, 1952), divided by the diagonal: the matrix has an entry for
//! each pair that met. A long step is shortened.

use core::cmp::Ordering;
use std::collections::BTreeMap;

use crate::Bot;

/// The most steps of Newton's method. It needs about ten.
const MAX_STEPS: usize = 100;
/// The most steps for a system of equations.
const MAX_SOLVING_STEPS: usize = 300;
/// Newton's method ends when no strength changes by a larger factor than 1 plus this.
const TOLERANCE: f64 = 1e-12;
/// The largest remaining error of a system of equations, compared with its right side.
const SOLVED: f64 = 1e-13;
/// The longest step, of the logarithm of a strength.
const MAX_CHANGE: f64 = 1.0;
/// The last bits of a strength, which rounding errors change.
const ROUNDED_BITS: u32 = 20;

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

/// A pair that met: the bots and the number of games.
struct Edge {
    bots: [usize; 2],
    games: f64,
}

/// The strength of each bot. Newton's method starts from `start`.
pub(super) fn strengths(start: &[f64], results: &BTreeMap<[Bot; 2], PairResults>) -> Vec<f64> {
    // Two drawn games against an imaginary bot of strength 1.
    let mut won = vec![1.0; start.len()];
    let mut edges = Vec::with_capacity(results.len());
    for (pair, results) in results {
        let bots = pair.map(usize::from);
        won[bots[0]] += f64::from(results.half_points) / 2.0;
        won[bots[1]] += f64::from(2 * results.games - results.half_points) / 2.0;
        edges.push(Edge { bots, games: f64::from(results.games) });
    }
    let mut strengths = start.to_vec();
    for _ in 0..MAX_STEPS {
        let step = System::new(&strengths, &won, &edges).solved();
        let longest = step.iter().fold(0.0_f64, |longest, one| longest.max(one.abs()));
        let share = if longest > MAX_CHANGE { MAX_CHANGE / longest } else { 1.0 };
        for (strength, change) in strengths.iter_mut().zip(&step) {
            *strength *= exponential(share * change);
        }
        if longest < TOLERANCE {
            break;
        }
    }
    strengths.into_iter().map(rounded).collect()
}

/// About eˣ for small x, always above 0 (Padé's approximant of order 2).
fn exponential(x: f64) -> f64 {
    let even = 1.0 + x * x / 12.0;
    (even + x / 2.0) / (even - x / 2.0)
}

/// A strength without its last bits.
fn rounded(strength: f64) -> f64 {
    let half = 1 << (ROUNDED_BITS - 1);
    f64::from_bits((strength.to_bits() + half) >> ROUNDED_BITS << ROUNDED_BITS)
}

/// The equations of a step: the matrix of second derivatives, and the first derivatives on the
/// right side.
struct System<'a> {
    diagonal: Vec<f64>,
    edges: &'a [Edge],
    /// The entry of each pair, without its sign.
    weights: Vec<f64>,
    right: Vec<f64>,
}

impl<'a> System<'a> {
    fn new(strengths: &[f64], won: &[f64], edges: &'a [Edge]) -> Self {
        let share = |own: f64, other: f64| own / (own + other);
        let mut diagonal = Vec::with_capacity(strengths.len());
        let mut right = Vec::with_capacity(strengths.len());
        for (strength, won) in strengths.iter().zip(won) {
            let expected = share(*strength, 1.0);
            diagonal.push(2.0 * expected * (1.0 - expected));
            right.push(won - 2.0 * expected);
        }
        let mut weights = Vec::with_capacity(edges.len());
        for Edge { bots: [first, second], games } in edges {
            let expected = share(strengths[*first], strengths[*second]);
            let weight = games * expected * (1.0 - expected);
            diagonal[*first] += weight;
            diagonal[*second] += weight;
            right[*first] -= games * expected;
            right[*second] -= games * (1.0 - expected);
            weights.push(weight);
        }
        Self { diagonal, edges, weights, right }
    }

    /// The product of the matrix and a vector.
    fn times(&self, vector: &[f64]) -> Vec<f64> {
        let mut product: Vec<_> =
            self.diagonal.iter().zip(vector).map(|(entry, one)| entry * one).collect();
        for (Edge { bots: [first, second], .. }, weight) in self.edges.iter().zip(&self.weights) {
            product[*first] -= weight * vector[*second];
            product[*second] -= weight * vector[*first];
        }
        product
    }

    /// The solution.
    fn solved(&self) -> Vec<f64> {
        let scaled = |rest: &[f64]| -> Vec<f64> {
            rest.iter().zip(&self.diagonal).map(|(one, entry)| one / entry).collect()
        };
        let mut solution = vec![0.0; self.right.len()];
        let mut rest = self.right.clone();
        let mut direction = scaled(&rest);
        let mut error = product(&rest, &direction);
        let enough = error * SOLVED * SOLVED;
        for _ in 0..MAX_SOLVING_STEPS {
            if error <= enough || error <= 0.0 {
                break;
            }
            let image = self.times(&direction);
            let length = error / product(&direction, &image);
            add(&mut solution, length, &direction);
            add(&mut rest, -length, &image);
            let next = scaled(&rest);
            let next_error = product(&rest, &next);
            let kept = next_error / error;
            for (one, next) in direction.iter_mut().zip(next) {
                *one = next + kept * *one;
            }
            error = next_error;
        }
        solution
    }
}

/// The scalar product of two vectors.
fn product(first: &[f64], second: &[f64]) -> f64 {
    first.iter().zip(second).map(|(one, other)| one * other).sum()
}

/// Adds a multiple of a vector.
fn add(sum: &mut [f64], times: f64, vector: &[f64]) {
    for (sum, one) in sum.iter_mut().zip(vector) {
        *sum += times * one;
    }
}

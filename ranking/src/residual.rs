//! Compares a worker's results with those of the other workers. Pure.
//!
//! # Theory of operation
//!
//! A worker gets a lot when it requests one, so the choice of the worker is independent of the
//! lot's matches. Under this hypothesis the lots of a worker are a random sample, without
//! replacement, of all played lots. Any sum over a lot (the points of a bot, its losses by the
//! clock) then deviates from its mean like the mean of a random sample.
//!
//! Each such sum is a *question*: does this bot win more with that worker, does the bot in this
//! seat, do bots lose by the clock? For a question, lot `i` has `nᵢ` observations with sum `xᵢ`.
//! With μ = Σx / Σn, the deviation of a lot is `dᵢ = xᵢ − μ nᵢ`, which is zero on average. A
//! worker with `k` of `N` lots has T = Σd over its lots, of mean 0 and variance
//! k (N − k) / (N (N − 1)) · Σd². T² over that variance is the χ² statistic, with one degree of
//! freedom. Fishtest shows the same statistic as the residual of a worker.
//!
//! The observations are lots, not matches. The matches of a lot may share a seed, an opponent or a
//! moment when the machine was busy. A test that treats them as independent would flag honest
//! workers.
//!
//! A worker is suspended at a probability of about one in several thousand. χ² is not reliable at
//! such small probabilities: for example, ten losses by the clock may all be in one lot. The
//! probability here is therefore an upper bound for any distribution: Bernstein's bound for
//! independent draws, which also holds for draws without replacement (Hoeffding, "Probability
//! Inequalities for Sums of Bounded Random Variables", 1963, Theorem 4):
//!
//! P(|T| ≥ t) ≤ 2 exp(−t² / (2 (m Σd²/N + b t / 3))), with m = min(k, N − k) and b = max |d|.
//!
//! The smallest bound of a worker is multiplied by the number of its questions (Bonferroni).
//!
//! A worker with false results also changes μ, so the other workers deviate too. The procedure
//! therefore first flags and removes the worker with the largest deviation. Then it compares the
//! other workers again.

use std::collections::{BTreeMap, BTreeSet};

/// Sums over the lots of one worker, for one question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// The number of lots with at least one observation.
    pub lots: f64,
    /// The number of observations: Σn.
    pub count: f64,
    /// Σn².
    pub count_squares: f64,
    /// Σx.
    pub total: f64,
    /// Σx².
    pub total_squares: f64,
    /// Σnx.
    pub products: f64,
    /// The maximum number of observations of a lot.
    pub max_count: f64,
    /// The minimum x of a lot.
    pub min: f64,
    /// The maximum x of a lot.
    pub max: f64,
}

impl Moments {
    fn add(&mut self, other: &Self) {
        let is_first = self.lots == 0.0;
        self.min = if is_first { other.min } else { self.min.min(other.min) };
        self.max = if is_first { other.max } else { self.max.max(other.max) };
        self.lots += other.lots;
        self.count += other.count;
        self.count_squares += other.count_squares;
        self.total += other.total;
        self.total_squares += other.total_squares;
        self.products += other.products;
        self.max_count = self.max_count.max(other.max_count);
    }
}

/// The lots of a worker as a sample for one question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerSample<W, Q> {
    /// The worker.
    pub worker: W,
    /// The question, with the same meaning for all workers.
    pub question: Q,
    /// The sums over its lots.
    pub moments: Moments,
}

/// The difference between a worker's results and the results of other workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual<Q> {
    /// The question with the greatest difference.
    pub question: Q,
    /// χ² of the deviation in this question, with one degree of freedom.
    pub chi_square: f64,
    /// The logarithm of [`Residual::p`], which may underflow.
    pub ln_p: f64,
    /// Whether another worker has the same difference, so that it is unknown which of them is
    /// wrong. With two workers it is always true.
    pub is_ambiguous: bool,
}

impl<Q> Residual<Q> {
    /// An upper bound of the probability that an honest worker's results differ this much or more.
    pub fn p(&self) -> f64 {
        self.ln_p.exp().min(1.0)
    }
}

/// A probability as text. Small values use scientific notation.
pub fn format_probability(p: f64) -> String {
    if p < 0.0001 { format!("{p:.0e}") } else { format!("{p:.4}") }
}

/// The residual of each worker that can be compared with other workers. While the smallest
/// probability of a worker is below `bound`, this worker is removed and the others are compared
/// again. The workers in `untrusted` are removed first. Each of them is compared only with the
/// workers that remain.
pub fn residuals<W: Copy + Ord, Q: Copy + Ord>(
    samples: &[WorkerSample<W, Q>],
    untrusted: &BTreeSet<W>,
    bound: f64,
) -> BTreeMap<W, Residual<Q>> {
    let mut questions: BTreeMap<Q, Vec<(W, Moments)>> = BTreeMap::new();
    for WorkerSample { worker, question, moments } in samples {
        questions.entry(*question).or_default().push((*worker, *moments));
    }
    let workers: BTreeSet<W> = samples.iter().map(|sample| sample.worker).collect();
    let (untrusted, mut trusted): (BTreeSet<W>, BTreeSet<W>) =
        workers.into_iter().partition(|worker| untrusted.contains(worker));
    let mut residuals = BTreeMap::new();
    loop {
        let mut compared = compare(&questions, &trusted);
        let worst = compared.iter().min_by(|a, b| a.1.ln_p.total_cmp(&b.1.ln_p));
        let Some((worst, residual)) = worst.map(|(worker, residual)| (*worker, *residual)) else {
            break;
        };
        if residual.p() < bound && !residual.is_ambiguous {
            residuals.insert(worst, residual);
            trusted.remove(&worst);
            continue;
        }
        residuals.append(&mut compared);
        break;
    }
    for worker in untrusted {
        let workers: BTreeSet<W> = trusted.iter().copied().chain([worker]).collect();
        if let Some(residual) = compare(&questions, &workers).remove(&worker) {
            // It is not ambiguous: the other workers are trusted.
            residuals.insert(worker, Residual { is_ambiguous: false, ..residual });
        }
    }
    residuals
}

/// The residuals of these workers, compared only with each other.
fn compare<W: Copy + Ord, Q: Copy + Ord>(
    questions: &BTreeMap<Q, Vec<(W, Moments)>>,
    workers: &BTreeSet<W>,
) -> BTreeMap<W, Residual<Q>> {
    let mut of_worker: BTreeMap<W, Vec<Residual<Q>>> = BTreeMap::new();
    for (question, samples) in questions {
        let samples: Vec<_> =
            samples.iter().filter(|(worker, _)| workers.contains(worker)).collect();
        let mut all = Moments::default();
        for (_, moments) in &samples {
            all.add(moments);
        }
        for (worker, moments) in samples {
            if let Some((chi_square, ln_p)) = deviation(moments, &all) {
                let residual =
                    Residual { question: *question, chi_square, ln_p, is_ambiguous: false };
                of_worker.entry(*worker).or_default().push(residual);
            }
        }
    }
    let mut compared: BTreeMap<W, Residual<Q>> = of_worker
        .into_iter()
        .filter_map(|(worker, residuals)| Some((worker, most_extreme(&residuals)?)))
        .collect();
    mark_ambiguous(&mut compared);
    compared
}

/// The residual of a worker's most extreme question, corrected for the number of questions.
fn most_extreme<Q: Copy>(residuals: &[Residual<Q>]) -> Option<Residual<Q>> {
    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 questions")]
    let questions = residuals.len() as f64;
    let extreme = residuals.iter().min_by(|a, b| a.ln_p.total_cmp(&b.ln_p))?;
    Some(Residual { ln_p: (extreme.ln_p + questions.ln()).min(0.0), ..*extreme })
}

/// Marks the workers with the largest difference if there are several. The comparison has a
/// tolerance, since sums are rounded.
fn mark_ambiguous<W: Copy + Ord, Q>(compared: &mut BTreeMap<W, Residual<Q>>) {
    let min = compared.values().map(|residual| residual.ln_p).fold(0.0, f64::min);
    let is_min = |residual: &Residual<Q>| residual.ln_p <= min * (1.0 - 1e-6);
    if compared.values().filter(|residual| is_min(residual)).count() > 1 {
        for residual in compared.values_mut().filter(|residual| is_min(residual)) {
            residual.is_ambiguous = true;
        }
    }
}

/// χ² of a worker's lots among all lots, and the logarithm of the bound of its probability. `None`
/// if there are no other lots, or all lots are equal.
fn deviation(worker: &Moments, all: &Moments) -> Option<(f64, f64)> {
    let others = all.lots - worker.lots;
    if worker.lots < 1.0 || others < 1.0 || all.count <= 0.0 {
        return None;
    }
    let mean = all.total / all.count;
    let squares = all.total_squares - 2.0 * mean * all.products + mean * mean * all.count_squares;
    let scale = all.total_squares + mean * mean * all.count_squares;
    if squares <= scale * 1e-9 {
        // All lots are equal.
        return None;
    }
    let distance = (worker.total - mean * worker.count).abs();
    let variance = worker.lots * others / (all.lots * (all.lots - 1.0)) * squares;
    let sample_squares = worker.lots.min(others) / all.lots * squares;
    // A lot has between 1 and `max_count` observations.
    let (min_n, max_n) = if mean < 0.0 { (all.max_count, 1.0) } else { (1.0, all.max_count) };
    let max_deviation = (all.max - mean * min_n).abs().max((all.min - mean * max_n).abs());
    let exponent = distance * distance / (2.0 * (sample_squares + max_deviation * distance / 3.0));
    Some((distance * distance / variance, (std::f64::consts::LN_2 - exponent).min(0.0)))
}

#[cfg(test)]
mod tests;

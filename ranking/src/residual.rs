//! Compares a worker's results with those of the other workers. Pure.
//!
//! # Theory of operation
//!
//! Workers get lots as they ask for them, so which worker plays a lot is independent of its matches.
//! Under this hypothesis the lots of a worker are a random sample, without replacement, of all played
//! lots, and any sum over a lot (the points of a bot, its losses by the clock) deviates from its mean
//! as samples do.
//!
//! Each such sum is a *question*: does this bot win more with that worker, does the bot in this
//! seat, do bots lose by the clock? For a question, lot `i` has `nᵢ` observations with sum `xᵢ`.
//! With μ = Σx / Σn, the deviation of a lot is `dᵢ = xᵢ − μ nᵢ`, which is zero on average. A
//! worker with `k` of `N` lots has T = Σd over its lots, of mean 0 and variance
//! k (N − k) / (N (N − 1)) · Σd². T² over that variance is the χ² statistic, with one degree of
//! freedom, that fishtest shows as the residual of a worker.
//!
//! Lots are the units, not matches: the matches of a lot may share a seed, an opponent or a moment
//! when the machine was busy. A test that treats them as independent would accuse honest workers.
//!
//! A worker is suspended at a probability of about one in thousands. So far in the tail χ² is not
//! reliable: ten losses by the clock may all be in one lot. The probability here is therefore an upper
//! bound for any distribution: Bernstein's bound for independent draws, which also holds for draws
//! without replacement (Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables",
//! 1963, Theorem 4):
//!
//! P(|T| ≥ t) ≤ 2 exp(−t² / (2 (m Σd²/N + b t / 3))), with m = min(k, N − k) and b = max |d|.
//!
//! The most extreme of a worker's questions is corrected for their number (Bonferroni).
//!
//! A worker with false results also changes μ for the others, which then differ from it as much as it
//! differs from them. So the worker that differs most is flagged first and removed, and the others are
//! compared again without it.

use std::collections::{BTreeMap, BTreeSet};

/// Sums over the lots of one worker, for one question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Lots with at least one observation.
    pub lots: f64,
    /// Observations: Σn.
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
    pub most_count: f64,
    /// The minimum x of a lot.
    pub least: f64,
    /// The maximum x of a lot.
    pub greatest: f64,
}

impl Moments {
    fn add(&mut self, other: &Self) {
        let is_first = self.lots == 0.0;
        self.least = if is_first { other.least } else { self.least.min(other.least) };
        self.greatest = if is_first { other.greatest } else { self.greatest.max(other.greatest) };
        self.lots += other.lots;
        self.count += other.count;
        self.count_squares += other.count_squares;
        self.total += other.total;
        self.total_squares += other.total_squares;
        self.products += other.products;
        self.most_count = self.most_count.max(other.most_count);
    }
}

/// The lots of a worker as a sample for one question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerSample<W, Q> {
    /// The worker.
    pub worker: W,
    /// The question: the same for all workers.
    pub question: Q,
    /// The sums over its lots.
    pub moments: Moments,
}

/// How much a worker's results differ from those of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual<Q> {
    /// The question with the greatest difference.
    pub question: Q,
    /// χ² of the deviation in this question, with one degree of freedom.
    pub chi_square: f64,
    /// The logarithm of [`Residual::p`], which may underflow.
    pub ln_p: f64,
    /// Whether another worker differs as much. Then one of them is wrong, but it is unknown which; this
    /// is always so with two workers.
    pub is_ambiguous: bool,
}

impl<Q> Residual<Q> {
    /// An upper bound of the probability that an honest worker's results differ this much or more.
    pub fn p(&self) -> f64 {
        self.ln_p.exp().min(1.0)
    }
}

/// A probability as text; small ones in scientific notation.
pub fn format_probability(p: f64) -> String {
    if p < 0.0001 { format!("{p:.0e}") } else { format!("{p:.4}") }
}

/// The residual of each worker that can be compared with others. If the probability of the worker that
/// differs most is below `bound`, it is removed before the others are compared again. The workers in
/// `untrusted` are removed from the beginning; each is compared with the remaining workers alone.
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
    let (out, mut field): (BTreeSet<W>, BTreeSet<W>) =
        workers.into_iter().partition(|worker| untrusted.contains(worker));
    let mut found = BTreeMap::new();
    loop {
        let mut compared = compare(&questions, &field);
        let worst = compared.iter().min_by(|a, b| a.1.ln_p.total_cmp(&b.1.ln_p));
        let Some((worst, residual)) = worst.map(|(worker, residual)| (*worker, *residual)) else {
            break;
        };
        if residual.p() < bound && !residual.is_ambiguous {
            found.insert(worst, residual);
            field.remove(&worst);
            continue;
        }
        found.append(&mut compared);
        break;
    }
    for worker in out {
        let beside: BTreeSet<W> = field.iter().copied().chain([worker]).collect();
        let residual = compare(&questions, &beside).remove(&worker);
        // Never ambiguous: the remaining workers are known to be trusted.
        found.extend(residual.map(|found| (worker, Residual { is_ambiguous: false, ..found })));
    }
    found
}

/// The residuals of these workers, compared only with each other.
fn compare<W: Copy + Ord, Q: Copy + Ord>(
    questions: &BTreeMap<Q, Vec<(W, Moments)>>,
    field: &BTreeSet<W>,
) -> BTreeMap<W, Residual<Q>> {
    let mut of_worker: BTreeMap<W, Vec<Residual<Q>>> = BTreeMap::new();
    for (question, samples) in questions {
        let samples: Vec<_> = samples.iter().filter(|(worker, _)| field.contains(worker)).collect();
        let mut all = Moments::default();
        for (_, moments) in &samples {
            all.add(moments);
        }
        for (worker, own) in samples {
            if let Some((chi_square, ln_p)) = deviation(own, &all) {
                let residual =
                    Residual { question: *question, chi_square, ln_p, is_ambiguous: false };
                of_worker.entry(*worker).or_default().push(residual);
            }
        }
    }
    let mut compared: BTreeMap<W, Residual<Q>> =
        of_worker.into_iter().filter_map(|(worker, asked)| Some((worker, most(&asked)?))).collect();
    mark_ambiguous(&mut compared);
    compared
}

/// The residual of a worker's most extreme question, corrected for the number of questions.
fn most<Q: Copy>(asked: &[Residual<Q>]) -> Option<Residual<Q>> {
    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 questions")]
    let questions = asked.len() as f64;
    let most = asked.iter().min_by(|a, b| a.ln_p.total_cmp(&b.ln_p))?;
    Some(Residual { ln_p: (most.ln_p + questions.ln()).min(0.0), ..*most })
}

/// Marks workers that share the greatest difference. The comparison has a tolerance, since sums are
/// rounded.
fn mark_ambiguous<W: Copy + Ord, Q>(compared: &mut BTreeMap<W, Residual<Q>>) {
    let least = compared.values().map(|residual| residual.ln_p).fold(0.0, f64::min);
    let is_least = |residual: &Residual<Q>| residual.ln_p <= least * (1.0 - 1e-6);
    if compared.values().filter(|residual| is_least(residual)).count() > 1 {
        for residual in compared.values_mut().filter(|residual| is_least(residual)) {
            residual.is_ambiguous = true;
        }
    }
}

/// χ² of a worker's share of all lots, and the logarithm of the bound of its probability; `None` if
/// there is nothing to compare.
fn deviation(own: &Moments, all: &Moments) -> Option<(f64, f64)> {
    let others = all.lots - own.lots;
    if own.lots < 1.0 || others < 1.0 || all.count <= 0.0 {
        return None;
    }
    let mean = all.total / all.count;
    let squares = all.total_squares - 2.0 * mean * all.products + mean * mean * all.count_squares;
    let scale = all.total_squares + mean * mean * all.count_squares;
    if squares <= scale * 1e-9 {
        // All lots are equal.
        return None;
    }
    let distance = (own.total - mean * own.count).abs();
    let variance = own.lots * others / (all.lots * (all.lots - 1.0)) * squares;
    let drawn = own.lots.min(others) / all.lots * squares;
    // A lot has between 1 and `most_count` observations.
    let (few, many) = if mean < 0.0 { (all.most_count, 1.0) } else { (1.0, all.most_count) };
    let most = (all.greatest - mean * few).abs().max((all.least - mean * many).abs());
    let exponent = distance * distance / (2.0 * (drawn + most * distance / 3.0));
    Some((distance * distance / variance, (std::f64::consts::LN_2 - exponent).min(0.0)))
}

#[cfg(test)]
mod tests;

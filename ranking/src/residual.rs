//! Whether a worker's results are like those of the other workers: pure.
//!
//! # Theory of operation
//!
//! Lots are handed out to workers as they ask, so which worker plays a lot is chance as far as its
//! matches are concerned. Under that hypothesis the lots of a worker are a random sample, without
//! replacement, of all lots that were played, and whatever is added up over a lot (the points of a
//! bot, its losses by the clock) deviates from its mean as samples do.
//!
//! Each such sum is a *question*: does this bot win more with that worker, does the bot in this
//! seat, do bots lose by the clock? For a question, lot `i` brings `nᵢ` observations that add up to
//! `xᵢ`. With μ = Σx / Σn, the deviation of a lot is `dᵢ = xᵢ − μ nᵢ`, which is zero on average. A
//! worker with `k` of `N` lots has T = Σd over its lots, of mean 0 and variance
//! k (N − k) / (N (N − 1)) · Σd². T² over that variance is the χ² statistic, with one degree of
//! freedom, that fishtest shows as the residual of a worker.
//!
//! Lots are the units, not matches: the matches of a lot may share a seed, an opponent or a moment
//! when the machine was busy, and a test that takes them for independent of each other accuses
//! honest workers.
//!
//! A worker is suspended for a probability of one in thousands, far out in the tail, where χ² is not
//! to be trusted: ten losses by the clock may all be in one lot. The probability given here is an
//! upper bound instead, whatever the distribution: that of Bernstein for independent draws, which
//! holds for draws without replacement as well (Hoeffding, "Probability Inequalities for Sums of
//! Bounded Random Variables", 1963, Theorem 4):
//!
//! P(|T| ≥ t) ≤ 2 exp(−t² / (2 (m Σd²/N + b t / 3))), with m = min(k, N − k) and b = max |d|.
//!
//! The largest of a worker's questions is corrected for their number by Bonferroni.
//!
//! A worker whose results are false changes μ for the others as well, who then differ from it as
//! much as it differs from them. So the worker that differs most is named first and taken out of the
//! field, and the others are compared again without it.

use std::collections::{BTreeMap, BTreeSet};

/// What is added up for a question over the lots of one worker.
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
    /// The most observations of a lot.
    pub most_count: f64,
    /// The least x of a lot.
    pub least: f64,
    /// The greatest x of a lot.
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

/// What a worker's lots say to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerSample<W, Q> {
    /// The worker.
    pub worker: W,
    /// The question: the same for all workers.
    pub question: Q,
    /// What its lots add up to.
    pub moments: Moments,
}

/// How much a worker's results differ from those of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual<Q> {
    /// The question in which they differ most.
    pub question: Q,
    /// χ² of its deviation there, with one degree of freedom.
    pub chi_square: f64,
    /// The logarithm of [`Residual::p`], which may be too small for a number.
    pub ln_p: f64,
    /// Whether another worker differs as much: then one of them is wrong, and which one cannot be
    /// said. So it is where only two workers play.
    pub is_ambiguous: bool,
}

impl<Q> Residual<Q> {
    /// At most how probable it is that the results of an honest worker differ so much or more.
    pub fn p(&self) -> f64 {
        self.ln_p.exp().min(1.0)
    }
}

/// A probability as people read it: small ones by their magnitude.
pub fn format_probability(p: f64) -> String {
    if p < 0.0001 { format!("{p:.0e}") } else { format!("{p:.4}") }
}

/// The residual of each worker, of those that can be compared with others. The worker that differs
/// most is compared with all that are left; if its probability is below `bound`, it is left out of the field
/// before the others are compared. The workers in `untrusted` are out of the field from the
/// beginning, and each is compared with the field alone.
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
        // Whether others differ as much is not asked: that the field is to be trusted is known.
        found.extend(residual.map(|found| (worker, Residual { is_ambiguous: false, ..found })));
    }
    found
}

/// The residuals of these workers, compared with each other alone.
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

/// The residual of the question in which a worker differs most, corrected for their number.
fn most<Q: Copy>(asked: &[Residual<Q>]) -> Option<Residual<Q>> {
    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 questions")]
    let questions = asked.len() as f64;
    let most = asked.iter().min_by(|a, b| a.ln_p.total_cmp(&b.ln_p))?;
    Some(Residual { ln_p: (most.ln_p + questions.ln()).min(0.0), ..*most })
}

/// Marks the workers that differ as much as another one, if none differs more: sums are of rounded
/// numbers.
fn mark_ambiguous<W: Copy + Ord, Q>(compared: &mut BTreeMap<W, Residual<Q>>) {
    let least = compared.values().map(|residual| residual.ln_p).fold(0.0, f64::min);
    let is_least = |residual: &Residual<Q>| residual.ln_p <= least * (1.0 - 1e-6);
    if compared.values().filter(|residual| is_least(residual)).count() > 1 {
        for residual in compared.values_mut().filter(|residual| is_least(residual)) {
            residual.is_ambiguous = true;
        }
    }
}

/// χ² and the logarithm of the bound of the probability of what a worker has of all; nothing if there is nothing to
/// compare.
fn deviation(own: &Moments, all: &Moments) -> Option<(f64, f64)> {
    let others = all.lots - own.lots;
    if own.lots < 1.0 || others < 1.0 || all.count <= 0.0 {
        return None;
    }
    let mean = all.total / all.count;
    let squares = all.total_squares - 2.0 * mean * all.products + mean * mean * all.count_squares;
    let scale = all.total_squares + mean * mean * all.count_squares;
    if squares <= scale * 1e-9 {
        // All lots say the same.
        return None;
    }
    let distance = (own.total - mean * own.count).abs();
    let variance = own.lots * others / (all.lots * (all.lots - 1.0)) * squares;
    let drawn = own.lots.min(others) / all.lots * squares;
    // A lot has from one to so many observations.
    let (few, many) = if mean < 0.0 { (all.most_count, 1.0) } else { (1.0, all.most_count) };
    let most = (all.greatest - mean * few).abs().max((all.least - mean * many).abs());
    let exponent = distance * distance / (2.0 * (drawn + most * distance / 3.0));
    Some((distance * distance / variance, (std::f64::consts::LN_2 - exponent).min(0.0)))
}

#[cfg(test)]
mod tests;

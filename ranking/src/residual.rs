//! Whether a worker's results are like those of the others: pure.
//!
//! Which worker plays a match is chance, as far as the match is concerned. So among the matches of
//! the same bots in the same seats, each kind of outcome (who of them won, whether somebody lost by
//! the clock) is as frequent with one worker as with the others. Pearson's χ² statistic compares
//! what a worker reported with what is to be expected from all who played the same pairing, as
//! fishtest does it with the residuals of its workers.
//!
//! The outcomes of one pairing need not be independent of each other where bots are deterministic:
//! then a pairing and a deal have one outcome, the same with every worker, and what differs from
//! pairing to pairing cancels out because each is compared with itself.

use std::collections::BTreeMap;

/// Results of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<W> {
    /// The worker.
    pub worker: W,
    /// Which bots in which seats: a number for each pairing.
    pub pairing: u32,
    /// The kind of outcome.
    pub outcome: i32,
    /// How many matches.
    pub matches: u64,
}

/// How much a worker's results differ from those of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// χ² of the most improbable outcome, with one degree of freedom.
    pub chi_square: f64,
    /// How probable it is that the results of an honest worker differ so much or more.
    pub p: f64,
}

/// An outcome that is expected less often than this many times is no evidence by itself (Cochran,
/// "Some Methods for Strengthening the Common χ² Tests", 1954): several are added up.
const FEWEST: f64 = 5.0;

/// The residual of each worker, in the order of workers; of those alone that have something to be
/// compared with.
///
/// For each outcome it adds up over all pairings what the worker has and what is expected of it:
/// of the `n` matches that it played of a pairing, the share that the outcome has among all of that
/// pairing. The variance of what it has, given what all have, is that of the hypergeometric
/// distribution, so that the statistic is that of Mantel and Haenszel for several outcomes, taken
/// outcome by outcome; the greatest of them is corrected for their number by Bonferroni.
pub fn residuals<W: Copy + Ord>(cells: &[Cell<W>]) -> Vec<(W, Residual)> {
    let mut pairings: BTreeMap<u32, Vec<&Cell<W>>> = BTreeMap::new();
    for cell in cells {
        pairings.entry(cell.pairing).or_default().push(cell);
    }
    let mut sums: BTreeMap<(W, i32), Sum> = BTreeMap::new();
    for cells in pairings.values() {
        add_pairing(cells, &mut sums);
    }
    let mut found: BTreeMap<W, Vec<&Sum>> = BTreeMap::new();
    for ((worker, _), sum) in &sums {
        if sum.is_enough() {
            found.entry(*worker).or_default().push(sum);
        }
    }
    found.into_iter().map(|(worker, sums)| (worker, Residual::of(&sums))).collect()
}

/// What a worker has of an outcome, over all pairings.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    observed: f64,
    expected: f64,
    /// Matches in which there could have been another outcome.
    of: f64,
    variance: f64,
}

impl Sum {
    /// Whether there are enough of it, and enough of everything else.
    fn is_enough(&self) -> bool {
        self.variance > 0.0 && self.expected >= FEWEST && self.of - self.expected >= FEWEST
    }
}

impl Residual {
    /// The most improbable outcome, corrected for there being several.
    fn of(sums: &[&Sum]) -> Self {
        // A discrete number is compared with a continuous one: half a match is taken away (Yates).
        let statistic = |sum: &Sum| {
            let distance = ((sum.observed - sum.expected).abs() - 0.5).max(0.0);
            distance * distance / sum.variance
        };
        let chi_square = sums.iter().map(|sum| statistic(sum)).fold(0.0, f64::max);
        let p = chi_square_survival(chi_square, 1) * as_float(sums.len() as u64);
        Self { chi_square, p: p.min(1.0) }
    }
}

/// Adds what workers have of a pairing, and what is expected of them.
fn add_pairing<W: Copy + Ord>(cells: &[&Cell<W>], sums: &mut BTreeMap<(W, i32), Sum>) {
    let mut of_worker: BTreeMap<W, u64> = BTreeMap::new();
    let mut of_outcome: BTreeMap<i32, u64> = BTreeMap::new();
    let mut observed: BTreeMap<(W, i32), u64> = BTreeMap::new();
    for cell in cells {
        *of_worker.entry(cell.worker).or_default() += cell.matches;
        *of_outcome.entry(cell.outcome).or_default() += cell.matches;
        *observed.entry((cell.worker, cell.outcome)).or_default() += cell.matches;
    }
    let all = of_worker.values().sum::<u64>();
    // A worker that played all of them, or outcomes that are all the same, show nothing.
    if of_worker.len() < 2 || of_outcome.len() < 2 {
        return;
    }
    let all = as_float(all);
    for (worker, own) in &of_worker {
        let own = as_float(*own);
        for (outcome, with) in &of_outcome {
            let with = as_float(*with);
            let sum = sums.entry((*worker, *outcome)).or_default();
            sum.observed += as_float(observed.get(&(*worker, *outcome)).copied().unwrap_or(0));
            sum.expected += own * with / all;
            sum.of += own;
            sum.variance += own * (all - own) * with * (all - with) / (all * all * (all - 1.0));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 matches")]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// How probable it is that a χ² of so many degrees of freedom is this great or greater: the
/// regularised incomplete gamma function Q(k/2, x/2) (DLMF 8.2.4; Abramowitz and Stegun, 26.4.19).
///
/// # Panics
/// If there are no degrees of freedom.
pub fn chi_square_survival(chi_square: f64, freedom: u32) -> f64 {
    assert!(freedom > 0, "a χ² has degrees of freedom");
    if chi_square <= 0.0 {
        return 1.0;
    }
    let (a, x) = (f64::from(freedom) / 2.0, chi_square / 2.0);
    // Where each of the two converges fast.
    if x < a + 1.0 { 1.0 - lower_by_series(a, x) } else { upper_by_fraction(a, x) }
}

/// Terms after which nothing is gained any more.
const TERMS: u32 = 10_000;

/// P(a, x) = xᵃ e⁻ˣ Σ xⁿ / Γ(a + n + 1) (DLMF 8.7.1).
fn lower_by_series(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    for n in 1..TERMS {
        term *= x / (a + f64::from(n));
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    (sum * scale(a, x)).min(1.0)
}

/// Q(a, x) as the continued fraction 1/(x+1-a- 1(1-a)/(x+3-a- …)) (DLMF 8.9.2), from its front by
/// the method of Lentz ("Numerical Recipes", section 5.2).
#[expect(clippy::many_single_char_names, reason = "as in the sources named above")]
fn upper_by_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / not_zero(b);
    let mut fraction = d;
    for n in 1..TERMS {
        let n = f64::from(n);
        let numerator = -n * (n - a);
        b += 2.0;
        d = 1.0 / not_zero(numerator * d + b);
        c = not_zero(b + numerator / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    fraction * scale(a, x)
}

/// xᵃ e⁻ˣ / Γ(a).
fn scale(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - ln_gamma(a)).exp()
}

/// ln Γ(a) of half a whole number: from Γ(1) = 1 or Γ(1/2) = √π (DLMF 5.4.6) by Γ(a + 1) = a Γ(a)
/// (DLMF 5.5.1).
fn ln_gamma(a: f64) -> f64 {
    let whole = a.fract() == 0.0;
    let mut below = if whole { 1.0 } else { 0.5 };
    let mut sum = if whole { 0.0 } else { std::f64::consts::PI.ln() / 2.0 };
    while below < a {
        sum += f64::ln(below);
        below += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * expected.max(1e-3), "{found}, not {expected}");
    }

    #[test]
    fn probabilities_are_those_of_tables() {
        // Two degrees of freedom: e^(-x/2). One: erfc(√(x/2)).
        for x in [0.01, 0.5, 3.0, 20.0, 100.0] {
            near(chi_square_survival(x, 2), f64::exp(-x / 2.0));
        }
        near(chi_square_survival(4.0, 1), 0.045_500_263_896_358_4);
        near(chi_square_survival(9.0, 1), 0.002_699_796_063_260_2);
        // Critical values as tables have them, rounded to three decimals.
        for (x, freedom, p) in [(10.828, 1, 0.001), (18.307, 10, 0.05), (124.342, 100, 0.05)] {
            let found = chi_square_survival(x, freedom);
            assert!((found / p - 1.0).abs() < 1e-3, "{found}, not {p}");
        }
        assert!((chi_square_survival(0.0, 3) - 1.0).abs() < f64::EPSILON);
    }

    /// Chance for tests: numbers from 0 to 1.
    struct Chance(u64);

    impl Chance {
        fn next(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            as_float(self.0 >> 11) / as_float(1 << 53)
        }

        fn below(&mut self, bound: u32) -> u32 {
            (0..bound).find(|least| self.next() * f64::from(bound - least) < 1.0).unwrap_or(0)
        }
    }

    /// A tournament of pairings that are won with different probabilities; worker 0 turns so many
    /// of the lost matches of seat 1 into won ones.
    fn tournament(chance: &mut Chance, workers: u32, falsified: f64) -> Vec<Cell<u32>> {
        let mut counts: BTreeMap<(u32, u32, i32), u64> = BTreeMap::new();
        for pairing in 0..30 {
            let wins = chance.next();
            for _ in 0..60 {
                let worker = chance.below(workers);
                let drawn = chance.next() < 0.1;
                let mut outcome = if drawn { 1 } else { 2 * i32::from(chance.next() < wins) };
                if worker == 0 && outcome == 0 && chance.next() < falsified {
                    outcome = 2;
                }
                *counts.entry((worker, pairing, outcome)).or_default() += 1;
            }
        }
        let cell =
            |((worker, pairing, outcome), matches)| Cell { worker, pairing, outcome, matches };
        counts.into_iter().map(cell).collect()
    }

    #[test]
    fn honest_workers_are_quiet_and_a_biased_one_is_found() {
        let mut chance = Chance(7);
        let (mut below_5, mut below_01, mut all) = (0, 0, 0);
        for _ in 0..400 {
            for (_, residual) in residuals(&tournament(&mut chance, 5, 0.0)) {
                all += 1;
                below_5 += u32::from(residual.p < 0.05);
                below_01 += u32::from(residual.p < 0.001);
            }
        }
        assert_eq!(all, 2000);
        // At most 5 % and 0.1 % of them by the definition of p: 100 and 2, with three standard
        // deviations.
        assert!(below_5 <= 129, "{below_5} of {all}");
        assert!(below_01 <= 6, "{below_01} of {all}");

        let mut found = 0;
        for _ in 0..50 {
            let residuals = residuals(&tournament(&mut chance, 5, 0.5));
            found += u32::from(residuals[0].1.p < 0.001 / 5.0);
        }
        assert!(found >= 48, "{found} of 50");
    }

    #[test]
    fn what_cannot_be_compared_is_not() {
        let cell = |worker, pairing, outcome| Cell { worker, pairing, outcome, matches: 100 };
        assert_eq!(residuals::<u32>(&[]), []);
        // Everybody has pairings of its own.
        assert_eq!(residuals(&[cell(1, 1, 0), cell(1, 1, 2), cell(2, 2, 0)]), []);
        // All outcomes are the same.
        assert_eq!(residuals(&[cell(1, 1, 0), cell(2, 1, 0)]), []);
        let found = residuals(&[cell(1, 1, 0), cell(2, 1, 2)]);
        assert_eq!(found.iter().map(|(worker, _)| *worker).collect::<Vec<_>>(), [1, 2]);
        assert!(found.iter().all(|(_, residual)| residual.p < 1e-40), "{found:?}");
    }
}

//! Which entrants are surely above others, with all statements true together.

use super::covariance::{Covariance, DifferenceError};
use super::quantiles::normal_quantile;
use super::resampling::{REPLICATES, Replicates};
use super::{CONFIDENCE, count, matches_needed, normal_cdf, student_quantile};

/// The maximum number of steps of the step-down procedure. Each one tells more entrants apart.
const MAX_STEPS: usize = 8;
/// Above this number of degrees of freedom, quantiles are those of this number.
const MAX_DEGREES: usize = 1000;

/// How many entrants are surely above and below each entrant.
#[derive(Debug)]
pub(super) struct CertainOrder {
    /// The number of standard errors that all differences stay within, for a normal error.
    pub(super) critical: f64,
    /// The number of ranked entrants with matches.
    entrants: usize,
    /// The number of pairs that cannot be told apart.
    open: usize,
    /// How many ranked entrants are surely above each entrant.
    above: Vec<usize>,
    /// How many ranked entrants are surely below each entrant.
    below: Vec<usize>,
    /// For each entrant, the maximum over the other ranked ones of half the width of the interval
    /// divided by the difference: its rank is certain if this is less than 1.
    doubt: Vec<f64>,
}

impl CertainOrder {
    /// Tells the entrants apart, step by step: pairs that are told apart need no more protection
    /// against chance, so that the others can be told apart by smaller differences.
    pub(super) fn of(
        means: &[f64],
        ranked: &[bool],
        covariance: &Covariance,
        replicates: &Replicates,
    ) -> Self {
        let entrants = means.len();
        let all = entrants * entrants.saturating_sub(1) / 2;
        let pairs = Pairs::of(covariance, replicates.are_kept());
        let critical = critical_value(&pairs, replicates, all, |_, _| true);
        let mut order = Self::with(means, ranked, &pairs, critical);
        let mut step = critical;
        // With many pairs, the steps gain little.
        let steps = if replicates.are_kept() { MAX_STEPS } else { 1 };
        for _ in 1..steps {
            let margins = Margins::new(step);
            let is_open = |pair: [usize; 2], error: DifferenceError| {
                difference(means, pair).abs() <= margins.of(error)
            };
            step = critical_value(&pairs, replicates, order.open, is_open);
            let next = Self::with(means, ranked, &pairs, step);
            let is_done = next.open == order.open;
            order = next;
            if is_done {
                break;
            }
        }
        Self { critical, ..order }
    }

    fn with(means: &[f64], ranked: &[bool], pairs: &Pairs<'_>, critical: f64) -> Self {
        let entrants = means.len();
        let covariance = pairs.covariance;
        let mut order = Self {
            critical,
            entrants: (0..entrants)
                .filter(|entrant| ranked[*entrant] && covariance.has_matches(*entrant))
                .count(),
            open: 0,
            above: vec![0; entrants],
            below: vec![0; entrants],
            doubt: vec![0.0; entrants],
        };
        let margins = Margins::new(critical);
        pairs.each(|pair, error| {
            let difference = difference(means, pair);
            let margin = margins.of(error);
            let [first, second] = pair;
            if difference.abs() > margin {
                let [better, worse] = if difference > 0.0 { pair } else { [second, first] };
                order.below[better] += usize::from(ranked[worse]);
                order.above[worse] += usize::from(ranked[better]);
            } else {
                order.open += 1;
            }
            let ratio = if margin == 0.0 { 0.0 } else { margin / difference.abs() };
            for (entrant, other) in [(first, second), (second, first)] {
                if ranked[other] {
                    order.doubt[entrant] = order.doubt[entrant].max(ratio);
                }
            }
        });
        for (entrant, doubt) in order.doubt.iter_mut().enumerate() {
            if !covariance.is_complete() || !covariance.is_known(entrant) {
                *doubt = f64::INFINITY;
            }
        }
        order
    }

    /// The best and the worst possible rank.
    pub(super) fn rank_set(&self, entrant: usize) -> (usize, usize) {
        (1 + self.above[entrant], self.entrants - self.below[entrant])
    }

    /// The number of further matches after which the rank of an entrant with `matches` matches is
    /// certain.
    pub(super) fn matches_needed(&self, entrant: usize, matches: u64) -> Option<u64> {
        matches_needed(self.doubt[entrant], 1.0, matches)
    }
}

/// All pairs whose difference has an error.
struct Pairs<'a> {
    covariance: &'a Covariance,
    /// The pairs with their errors, if all of them are in memory. Each step goes through them.
    kept: Option<Vec<([usize; 2], DifferenceError)>>,
}

impl<'a> Pairs<'a> {
    fn of(covariance: &'a Covariance, keeps: bool) -> Self {
        let kept = keeps.then(|| {
            let mut kept = Vec::new();
            covariance.each_pair(|pair, error| kept.push((pair, error)));
            kept
        });
        Self { covariance, kept }
    }

    /// Calls `visit` with each pair and its error.
    fn each(&self, mut visit: impl FnMut([usize; 2], DifferenceError)) {
        match &self.kept {
            Some(kept) => kept.iter().for_each(|(pair, error)| visit(*pair, *error)),
            None => self.covariance.each_pair(visit),
        }
    }
}

fn difference(means: &[f64], [first, second]: [usize; 2]) -> f64 {
    means[first] - means[second]
}

/// The number of standard errors that the differences of all `open` pairs stay within, with a
/// probability of [`CONFIDENCE`]: from the replicates or, if they are too few for that, from the
/// number of pairs (Šidák 1967, which is hardly larger for many pairs).
fn critical_value(
    pairs: &Pairs<'_>,
    replicates: &Replicates,
    open: usize,
    is_open: impl Fn([usize; 2], DifferenceError) -> bool,
) -> f64 {
    let alone = normal_quantile(f64::midpoint(1.0, CONFIDENCE));
    if open == 0 {
        return alone;
    }
    if !replicates.are_kept() || pairs.covariance.has_few_blocks() {
        let each = CONFIDENCE.powf(1.0 / count(open as u64));
        return normal_quantile(f64::midpoint(1.0, each)).max(alone);
    }
    let mut maxima = vec![0.0_f32; REPLICATES];
    pairs.each(|pair, error| {
        if error.error == 0.0 || !is_open(pair, error) {
            return;
        }
        let [first, second] = pair.map(|entrant| replicates.errors(entrant));
        let scale = scale(error.error);
        for ((maximum, first), second) in maxima.iter_mut().zip(first).zip(second) {
            *maximum = maximum.max((first - second).abs() * scale);
        }
    });
    quantile(maxima).max(alone)
}

/// The quantile of the replicates at [`CONFIDENCE`].
fn quantile(mut maxima: Vec<f32>) -> f64 {
    let place = (REPLICATES * 95).div_ceil(100) - 1;
    let (_, quantile, _) = maxima.select_nth_unstable_by(place, f32::total_cmp);
    f64::from(*quantile)
}

/// One over an error.
#[expect(clippy::cast_possible_truncation, reason = "replicates need few digits")]
fn scale(error: f64) -> f32 {
    (1.0 / error) as f32
}

/// Half the widths of intervals, by whole degrees of freedom.
struct Margins {
    quantiles: Vec<std::cell::OnceCell<f64>>,
    /// The probability of an error below the interval: exact even if it is tiny.
    probability: f64,
}

impl Margins {
    fn new(critical: f64) -> Self {
        let quantiles = vec![std::cell::OnceCell::new(); MAX_DEGREES + 1];
        Self { quantiles, probability: normal_cdf(-critical) }
    }

    /// At least [`DifferenceError::margin`].
    fn of(&self, error: DifferenceError) -> f64 {
        if error.error == 0.0 {
            return 0.0;
        }
        let degrees =
            error.degrees.min(f64::from(u16::try_from(MAX_DEGREES).expect("it is small")));
        let quantile = self.quantiles[whole(degrees)]
            .get_or_init(|| -student_quantile(degrees.floor(), self.probability));
        error.error * quantile
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 1 and 1000"
)]
fn whole(degrees: f64) -> usize {
    degrees as usize
}

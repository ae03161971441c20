//! The bootstrap: how the means would differ with other seeds.
//!
//! Each replicate multiplies the deviations of the blocks by independent standard normal numbers (a
//! multiplier bootstrap): errors with the estimated variances and covariances. They come from
//! `ChaCha20` with a given seed, so everybody computes the same figures.

use arbiter_games::Seed;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use rand_distr::{ChiSquared, Distribution as _, StandardNormal};

use super::covariance::Covariance;
use super::shrinkage::Shrinkage;
use super::{MAX_TOP, count};

/// Replicates that are computed together.
const LANES: usize = 64;
/// The number of replicates.
pub(super) const REPLICATES: usize = 2048;
/// Maximum number of entrants whose replicates are kept, to compare each pair in each replicate.
pub(super) const MAX_KEPT: usize = 500;

/// The replicates of the errors of all means.
#[derive(Debug)]
pub(super) struct Replicates {
    /// For each entrant, its error in each replicate. Empty for more than [`MAX_KEPT`] entrants.
    errors: Vec<Vec<f32>>,
    /// For each ranked entrant, in how many replicates it has each of the best ranks.
    ranks: Vec<[u32; MAX_TOP]>,
    has_ranks: bool,
    /// For each replicate, by how much the errors are larger because their variance is uncertain.
    scales: Vec<f64>,
}

impl Replicates {
    pub(super) fn draw(
        covariance: &Covariance,
        means: &[f64],
        ranked: &[bool],
        shrinkage: &Shrinkage,
        seed: Seed,
    ) -> Self {
        let entrants = covariance.entrants();
        let keeps = entrants <= MAX_KEPT;
        let mut random = ChaCha20Rng::from_seed(seed.0);
        let scales = scales(covariance.typical_degrees(), &mut random);
        let mut replicates = Self {
            errors: if keeps { vec![Vec::with_capacity(REPLICATES); entrants] } else { Vec::new() },
            ranks: vec![[0; MAX_TOP]; entrants],
            has_ranks: covariance.is_complete(),
            scales,
        };
        let mut errors = vec![[0.0_f32; LANES]; entrants];
        for batch in 0..REPLICATES / LANES {
            errors.fill([0.0; LANES]);
            for (members, factor) in covariance.factors() {
                let normal: [f32; LANES] =
                    std::array::from_fn(|_| StandardNormal.sample(&mut random));
                for (member, weight) in members.iter().zip(factor) {
                    let weight = single(*weight);
                    for (error, normal) in errors[*member].iter_mut().zip(&normal) {
                        *error += weight * normal;
                    }
                }
            }
            replicates.count_ranks(means, ranked, (shrinkage, covariance), (batch, &errors));
            for (kept, errors) in replicates.errors.iter_mut().zip(&errors) {
                kept.extend_from_slice(errors);
            }
        }
        replicates
    }

    fn count_ranks(
        &mut self,
        means: &[f64],
        ranked: &[bool],
        (shrinkage, covariance): (&Shrinkage, &Covariance),
        (batch, errors): (usize, &[[f32; LANES]]),
    ) {
        if !self.has_ranks {
            return;
        }
        let mut values: Vec<(f64, usize)> = Vec::with_capacity(means.len());
        let is_counted = |entrant: &usize| ranked[*entrant] && covariance.has_matches(*entrant);
        let entrants: Vec<_> = (0..means.len()).filter(is_counted).collect();
        let numbers = (batch..REPLICATES).step_by(REPLICATES / LANES);
        for (lane, number) in numbers.enumerate() {
            values.clear();
            // Spread over all scenarios, whatever the order of the replicates.
            let scenario =
                shrinkage.scenario((count(number as u64) + 0.5) / count(REPLICATES as u64));
            values.extend(entrants.iter().map(|entrant| {
                let error = f64::from(errors[*entrant][lane]) * self.scales[number];
                (shrinkage.value(scenario, *entrant, means[*entrant], error), *entrant)
            }));
            let descending =
                |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            if values.len() > MAX_TOP {
                values.select_nth_unstable_by(MAX_TOP, descending);
                values.truncate(MAX_TOP);
            }
            values.sort_unstable_by(descending);
            let mut rank = 0;
            for place in 0..values.len() {
                // Equal values share the better rank.
                if place > 0 && values[place].0 < values[place - 1].0 {
                    rank = place;
                }
                self.ranks[values[place].1][rank] += 1;
            }
        }
    }

    /// The probability that an entrant is among the best 1, 2, … [`MAX_TOP`]. Empty if that cannot
    /// be said.
    pub(super) fn top(&self, entrant: usize) -> Vec<f64> {
        if !self.has_ranks {
            return Vec::new();
        }
        let mut sum = 0;
        let shares = self.ranks[entrant].iter().map(|times| {
            sum += times;
            f64::from(sum) / count(REPLICATES as u64)
        });
        shares.collect()
    }

    /// Whether [`Self::errors`] are kept.
    pub(super) fn are_kept(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The error of an entrant in each replicate, if errors are kept.
    pub(super) fn errors(&self, entrant: usize) -> &[f32] {
        &self.errors[entrant]
    }
}

/// For each replicate, the square root of the degrees of freedom over a chi-squared variable: a
/// normal variable times it has Student's distribution.
fn scales(degrees: f64, random: &mut ChaCha20Rng) -> Vec<f64> {
    let chi_squared = ChiSquared::new(degrees).ok().filter(|_| degrees.is_finite());
    let mut scale = || {
        let variable = chi_squared.map(|chi_squared| chi_squared.sample(random));
        variable.map_or(1.0, |variable| (degrees / variable).sqrt())
    };
    (0..REPLICATES).map(|_| scale()).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "replicates need few digits")]
fn single(number: f64) -> f32 {
    number as f32
}

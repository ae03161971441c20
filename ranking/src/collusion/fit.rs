//! The additive model, fitted by weighted least squares: score = the bot's strength + the effect of
//! each other bot at the table + the effect of the seat.
//!
//! The weights are needed because some bots, and some rounds, have a much higher variance than
//! others. Without weights, the noise of such bots would change the estimates of the other bots at
//! their tables. It would so change the residuals of low-variance bots, and look like an effect of
//! the pair. With weights by variance, errors of estimation make the test more cautious. A variance
//! is the product of a factor of the bot and a factor of the stratum. Each fit estimates both from
//! its residuals, for the next fit.
//!
//! The normal equations are solved by conjugate gradients (CGLS: Björck, "Numerical Methods for
//! Least Squares Problems", 1996, section 7.4), which need only products with the tables, so
//! that memory is proportional to the number of tables. The effects are unique only up to constants
//! that cancel in the sum. The residuals do not depend on these constants.

use super::float;
use super::tables::{TableView, Tables};

/// The number of fits. The first fit has equal weights. Each later fit has weights from the
/// residuals of the previous one.
const FITS: usize = 4;

/// The maximum number of steps of a fit. Balanced tables take about ten.
const MAX_STEPS: usize = 300;

/// A fit ends when the squared norm of the gradient is this fraction of its initial value.
const TOLERANCE: f64 = 1e-20;

/// The minimum variance of a bot, as a fraction of the variance of all scores.
const MIN_VARIANCE: f64 = 1e-4;

/// The residual of each score, in the order of the scores.
pub(super) fn residuals(tables: &Tables) -> Vec<f64> {
    let mut model = Model::new(tables);
    let mut residuals = Vec::new();
    for _ in 0..FITS {
        residuals = model.fit();
        model.reweigh(&residuals);
    }
    residuals
}

fn square(vector: &[f64]) -> f64 {
    vector.iter().map(|value| value * value).sum()
}

/// The model. Its effects are one vector: the effect of each bot on its own score, the effect of
/// each bot on the other scores, and the effect of each kind of seat.
struct Model<'a> {
    tables: &'a Tables,
    bots: usize,
    /// The standard deviation of each bot's scores, up to a common factor.
    spread_of_bots: Vec<f64>,
    /// The standard deviation of each stratum, up to a common factor.
    spread_of_strata: Vec<f64>,
}

impl<'a> Model<'a> {
    /// A model with equal weights.
    fn new(tables: &'a Tables) -> Self {
        let bots = tables.bots() as usize;
        let strata = usize::from(tables.strata());
        Self { tables, bots, spread_of_bots: vec![1.0; bots], spread_of_strata: vec![1.0; strata] }
    }

    /// The residuals of the best fit.
    fn fit(&self) -> Vec<f64> {
        let mut weighted = self.tables.scores().to_vec();
        self.weigh(&mut weighted, |score, spread| score / spread);
        let mut gradient = vec![0.0; 2 * self.bots + self.tables.kinds_of_seats()];
        self.gradient(&weighted, &mut gradient);
        let mut direction = gradient.clone();
        let mut norm = square(&gradient);
        let goal = norm * TOLERANCE;
        let mut change = vec![0.0; weighted.len()];
        for _ in 0..MAX_STEPS {
            if norm <= goal {
                break;
            }
            self.predict(&direction, &mut change);
            let length = norm / square(&change);
            if !length.is_finite() {
                break;
            }
            for (residual, change) in weighted.iter_mut().zip(&change) {
                *residual -= length * change;
            }
            self.gradient(&weighted, &mut gradient);
            let old_norm = norm;
            norm = square(&gradient);
            for (direction, gradient) in direction.iter_mut().zip(&gradient) {
                *direction = gradient + norm / old_norm * *direction;
            }
        }
        self.weigh(&mut weighted, |residual, spread| residual * spread);
        weighted
    }

    /// Estimates the standard deviations from the residuals. First it estimates those of the
    /// strata, with the previous standard deviations of the bots. Then it estimates those of the
    /// bots, with the new standard deviations of the strata.
    fn reweigh(&mut self, residuals: &[f64]) {
        if square(residuals) <= 0.0 {
            return;
        }
        let mut strata = vec![(0.0, 0_usize); self.spread_of_strata.len()];
        self.for_each(|place, bot, stratum| {
            let (sum, number) = &mut strata[stratum];
            *sum += (residuals[place] / self.spread_of_bots[bot]).powi(2);
            *number += 1;
        });
        let spread = |(sum, number): &(f64, usize)| (sum / float(*number)).sqrt();
        let spreads: Vec<_> = strata.iter().map(spread).collect();
        let positive = |spread: &f64| if *spread > 0.0 { *spread } else { 1.0 };
        self.spread_of_strata = spreads.iter().map(positive).collect();
        let mut bots = vec![(0.0, 0_usize); self.bots];
        let mut level = 0.0;
        self.for_each(|place, bot, stratum| {
            let (sum, number) = &mut bots[bot];
            let scaled = (residuals[place] / self.spread_of_strata[stratum]).powi(2);
            *sum += scaled;
            *number += 1;
            level += scaled;
        });
        let min_spread = (MIN_VARIANCE * level / float(residuals.len())).sqrt();
        self.spread_of_bots = bots.iter().map(|bot| spread(bot).max(min_spread)).collect();
    }

    /// Calls `visit` for every score with its index, its bot and its stratum.
    fn for_each(&self, mut visit: impl FnMut(usize, usize, usize)) {
        for TableView { bots, places, stratum, .. } in self.tables.iter() {
            for (place, bot) in places.zip(bots) {
                visit(place, *bot as usize, usize::from(stratum));
            }
        }
    }

    /// Replaces each value by the result of `change` for the value and its standard deviation.
    fn weigh(&self, values: &mut [f64], change: impl Fn(f64, f64) -> f64) {
        self.for_each(|place, bot, stratum| {
            let spread = self.spread_of_bots[bot] * self.spread_of_strata[stratum];
            values[place] = change(values[place], spread);
        });
    }

    /// Writes the weighted scores that these effects predict to `scores`.
    fn predict(&self, effects: &[f64], scores: &mut [f64]) {
        let (own_effects, other_effects) = effects.split_at(self.bots);
        let (table_effects, seat_effects) = other_effects.split_at(self.bots);
        for TableView { bots, places, kind, stratum } in self.tables.iter() {
            let all: f64 = bots.iter().map(|bot| table_effects[*bot as usize]).sum();
            let stratum_spread = self.spread_of_strata[usize::from(stratum)];
            for (number, (place, bot)) in places.zip(bots).enumerate() {
                let bot = *bot as usize;
                let score =
                    own_effects[bot] + all - table_effects[bot] + seat_effects[kind + number];
                scores[place] = score / (self.spread_of_bots[bot] * stratum_spread);
            }
        }
    }

    /// The transpose of [`Self::predict`].
    fn gradient(&self, scores: &[f64], effects: &mut [f64]) {
        effects.fill(0.0);
        let (own_effects, other_effects) = effects.split_at_mut(self.bots);
        let (table_effects, seat_effects) = other_effects.split_at_mut(self.bots);
        for TableView { bots, places, kind, stratum } in self.tables.iter() {
            let stratum_spread = self.spread_of_strata[usize::from(stratum)];
            let weighted = |place: usize, bot: u32| {
                scores[place] / (self.spread_of_bots[bot as usize] * stratum_spread)
            };
            let all = places.clone().zip(bots);
            let all: f64 = all.map(|(place, bot)| weighted(place, *bot)).sum();
            for (number, (place, bot)) in places.zip(bots).enumerate() {
                let score = weighted(place, *bot);
                own_effects[*bot as usize] += score;
                table_effects[*bot as usize] += all - score;
                seat_effects[kind + number] += score;
            }
        }
    }
}

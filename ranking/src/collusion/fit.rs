//! The additive model: score = the bot's strength + what each other bot at the table adds to the
//! scores of all others + the seat. Fitted by weighted least squares.
//!
//! The weights are needed because some bots, and some rounds, have a much higher variance than others.
//! Without weights, the noise of such bots would enter the estimates of the other bots at their tables
//! and so the residuals of low-variance bots, where it would look like an effect of the pair. With
//! weights by variance, errors of estimation make the test more cautious. A variance is the product of
//! one of the bot and one of the stratum; both are found by fitting again with the variances of the
//! last residuals.
//!
//! The normal equations are solved by conjugate gradients (CGLS: Björck, "Numerical Methods for
//! Least Squares Problems", 1996, section 7.4), which only ask for products with the tables, so
//! that memory stays proportional to them. The model determines its effects only up to constants
//! that move between them; residuals do not depend on those.

use super::float;
use super::tables::{TableView, Tables};

/// The number of fits: the first with equal weights, then each with the weights of the previous fit.
const FITS: usize = 4;

/// The maximum number of steps of a fit. Balanced tables take about ten.
const MAX_STEPS: usize = 300;

/// A fit ends when the squared norm of the gradient has fallen to this share.
const TOLERANCE: f64 = 1e-20;

/// The minimum variance of a bot, as a share of the variance of all scores.
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

/// The effects are one vector: of each bot on its own score, of each bot on the others' scores, of each
/// kind of seat.
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
            let before = norm;
            norm = square(&gradient);
            for (direction, gradient) in direction.iter_mut().zip(&gradient) {
                *direction = gradient + norm / before * *direction;
            }
        }
        self.weigh(&mut weighted, |residual, spread| residual * spread);
        weighted
    }

    /// Estimates the deviations from residuals: first of the strata with the last ones of the bots,
    /// then of the bots with the new ones of the strata.
    fn reweigh(&mut self, residuals: &[f64]) {
        if square(residuals) <= 0.0 {
            return;
        }
        let mut strata = vec![(0.0, 0_usize); self.spread_of_strata.len()];
        self.each(|place, bot, stratum| {
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
        self.each(|place, bot, stratum| {
            let (sum, number) = &mut bots[bot];
            let scaled = (residuals[place] / self.spread_of_strata[stratum]).powi(2);
            *sum += scaled;
            *number += 1;
            level += scaled;
        });
        let least = (MIN_VARIANCE * level / float(residuals.len())).sqrt();
        self.spread_of_bots = bots.iter().map(|bot| spread(bot).max(least)).collect();
    }

    /// Calls `see` for every score with its index, its bot and its stratum.
    fn each(&self, mut see: impl FnMut(usize, usize, usize)) {
        for TableView { bots, places, stratum, .. } in self.tables.iter() {
            for (place, bot) in places.zip(bots) {
                see(place, *bot as usize, usize::from(stratum));
            }
        }
    }

    /// Applies `change` to each value and its deviation.
    fn weigh(&self, values: &mut [f64], change: impl Fn(f64, f64) -> f64) {
        self.each(|place, bot, stratum| {
            let spread = self.spread_of_bots[bot] * self.spread_of_strata[stratum];
            values[place] = change(values[place], spread);
        });
    }

    /// The weighted scores that these effects predict.
    fn predict(&self, effects: &[f64], scores: &mut [f64]) {
        let (own, rest) = effects.split_at(self.bots);
        let (given, seat) = rest.split_at(self.bots);
        for TableView { bots, places, kind, stratum } in self.tables.iter() {
            let all: f64 = bots.iter().map(|bot| given[*bot as usize]).sum();
            let stratum_spread = self.spread_of_strata[usize::from(stratum)];
            for (number, (place, bot)) in places.zip(bots).enumerate() {
                let bot = *bot as usize;
                let score = own[bot] + all - given[bot] + seat[kind + number];
                scores[place] = score / (self.spread_of_bots[bot] * stratum_spread);
            }
        }
    }

    /// The transpose of [`Self::predict`].
    fn gradient(&self, scores: &[f64], effects: &mut [f64]) {
        effects.fill(0.0);
        let (own, rest) = effects.split_at_mut(self.bots);
        let (given, seat) = rest.split_at_mut(self.bots);
        for TableView { bots, places, kind, stratum } in self.tables.iter() {
            let stratum_spread = self.spread_of_strata[usize::from(stratum)];
            let weighted = |place: usize, bot: u32| {
                scores[place] / (self.spread_of_bots[bot as usize] * stratum_spread)
            };
            let each = places.clone().zip(bots);
            let all: f64 = each.map(|(place, bot)| weighted(place, *bot)).sum();
            for (number, (place, bot)) in places.zip(bots).enumerate() {
                let score = weighted(place, *bot);
                own[*bot as usize] += score;
                given[*bot as usize] += all - score;
                seat[kind + number] += score;
            }
        }
    }
}

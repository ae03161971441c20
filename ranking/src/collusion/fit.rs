//! The additive model: score = the bot's strength + what each other bot at the table adds to the
//! scores of all others + the seat. Fitted by weighted least squares.
//!
//! Weights matter. Some bots play with much more chance than others, and some rounds do. Without
//! weights, chance in the scores of wild bots would get into what is estimated of their companions,
//! and from there into the residuals of quiet bots at the same tables, where it would look like an
//! effect of the pair. With weights by variance the residuals of a bot at tables with another one
//! vary less than by the bot's own chance alone, so errors of estimation make the test more
//! cautious. Variances are products of one of the bot and one of the stratum, found by fitting
//! again with those of the last residuals.
//!
//! The normal equations are solved by conjugate gradients (CGLS: Björck, "Numerical Methods for
//! Least Squares Problems", 1996, section 7.4), which only ask for products with the tables, so
//! that memory stays proportional to them. The model determines its effects only up to constants
//! that move between them; residuals do not depend on those.

use super::float;
use super::tables::{TableView, Tables};

/// How often the model is fitted: first with equal weights, then with those of the fit before.
const FITS: usize = 4;

/// After so many steps a fit is taken as it is. Balanced tables take about ten.
const MOST_STEPS: usize = 300;

/// A fit is good when the squared norm of the gradient has fallen to this share.
const ENOUGH: f64 = 1e-20;

/// No variance is taken for less than this share of that of all scores together.
const LEAST_VARIANCE: f64 = 1e-4;

/// What the model does not predict of each score, in the order of the scores.
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

/// Effects in a row: of each bot on its own score, of each bot on the others' scores, of each kind
/// of seat.
struct Model<'a> {
    tables: &'a Tables,
    bots: usize,
    /// The standard deviation of each bot's scores, in any unit.
    spread_of_bots: Vec<f64>,
    /// That of each stratum, in any other.
    spread_of_strata: Vec<f64>,
}

impl<'a> Model<'a> {
    /// A model in which all scores weigh the same.
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
        let goal = norm * ENOUGH;
        let mut change = vec![0.0; weighted.len()];
        for _ in 0..MOST_STEPS {
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

    /// Estimates spreads from residuals: those of strata with the last ones of bots, then those of
    /// bots with these.
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
        let least = (LEAST_VARIANCE * level / float(residuals.len())).sqrt();
        self.spread_of_bots = bots.iter().map(|bot| spread(bot).max(least)).collect();
    }

    /// Goes through all places with the bot and the stratum of each.
    fn each(&self, mut see: impl FnMut(usize, usize, usize)) {
        for TableView { bots, places, stratum, .. } in self.tables.iter() {
            for (place, bot) in places.zip(bots) {
                see(place, *bot as usize, usize::from(stratum));
            }
        }
    }

    /// Changes each value by its spread.
    fn weigh(&self, values: &mut [f64], change: impl Fn(f64, f64) -> f64) {
        self.each(|place, bot, stratum| {
            let spread = self.spread_of_bots[bot] * self.spread_of_strata[stratum];
            values[place] = change(values[place], spread);
        });
    }

    /// The weighted scores that effects come to.
    fn predict(&self, effects: &[f64], scores: &mut [f64]) {
        let (own, rest) = effects.split_at(self.bots);
        let (given, seat) = rest.split_at(self.bots);
        for TableView { bots, places, kind, stratum } in self.tables.iter() {
            let all: f64 = bots.iter().map(|bot| given[*bot as usize]).sum();
            let loud = self.spread_of_strata[usize::from(stratum)];
            for (number, (place, bot)) in places.zip(bots).enumerate() {
                let bot = *bot as usize;
                let score = own[bot] + all - given[bot] + seat[kind + number];
                scores[place] = score / (self.spread_of_bots[bot] * loud);
            }
        }
    }

    /// The transpose of [`Self::predict`].
    fn gradient(&self, scores: &[f64], effects: &mut [f64]) {
        effects.fill(0.0);
        let (own, rest) = effects.split_at_mut(self.bots);
        let (given, seat) = rest.split_at_mut(self.bots);
        for TableView { bots, places, kind, stratum } in self.tables.iter() {
            let loud = self.spread_of_strata[usize::from(stratum)];
            let weighted =
                |place: usize, bot: u32| scores[place] / (self.spread_of_bots[bot as usize] * loud);
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

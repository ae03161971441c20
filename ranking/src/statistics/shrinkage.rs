//! Probabilities that allow for chance in the field.
//!
//! Among many entrants the best mean is partly luck. The differences of the field show how much the
//! entrants really differ, and each mean is moved towards the mean of the field, the more the
//! larger its error (an empirical Bayes estimate: Morris, JASA 78, 1983). How much they differ is
//! itself uncertain. So several *scenarios* are considered: the share of chance in the variance of
//! a mean is 1/40, 3/40, … 39/40, each equally likely before the results are known (the uniform
//! shrinkage prior of Daniels, Canadian Journal of Statistics 27, 1999). The results make some of
//! them more likely than others.

use super::covariance::Covariance;
use super::{count, normal_cdf, student_cdf};

/// The number of scenarios.
const SCENARIOS: u64 = 20;

/// A possible variance of the field.
#[derive(Debug)]
struct Scenario {
    /// Its probability.
    weight: f64,
    /// The mean of the field.
    field: f64,
    /// For each entrant, which share of its distance from the field is kept.
    kept: Vec<f64>,
}

/// The long-run means that results make likely.
#[derive(Debug)]
pub(super) struct Shrinkage(Vec<Scenario>);

impl Shrinkage {
    /// Compares the differences of the field with their errors.
    pub(super) fn of(means: &[f64], covariance: &Covariance) -> Self {
        let known: Vec<_> =
            (0..means.len()).filter(|entrant| covariance.is_known(*entrant)).collect();
        // Errors that all entrants share make no difference between them.
        let common = covariance.mean_covariance();
        let errors: Vec<_> = (0..means.len())
            .map(|entrant| match covariance.variance(entrant) {
                0.0 => 0.0,
                variance => (variance - common).max(0.0),
            })
            .collect();
        let total = known.iter().map(|entrant| errors[*entrant]).sum::<f64>();
        if known.len() < 2 || total == 0.0 {
            return Self(vec![Scenario { weight: 1.0, field: 0.0, kept: vec![1.0; means.len()] }]);
        }
        let error = total / count(known.len() as u64);
        let scenarios = (0..SCENARIOS).map(|number| {
            let chance = (count(number) + 0.5) / count(SCENARIOS);
            let strength = error * (1.0 - chance) / chance;
            let precision = |entrant: usize| 1.0 / (errors[entrant] + strength);
            let sum = known.iter().map(|entrant| precision(*entrant)).sum::<f64>();
            let weighted = known.iter().map(|entrant| precision(*entrant) * means[*entrant]);
            let field = weighted.sum::<f64>() / sum;
            let likelihoods = known.iter().map(|entrant| {
                let precision = precision(*entrant);
                (precision.ln() - precision * (means[*entrant] - field).powi(2)) / 2.0
            });
            let likelihood = likelihoods.sum::<f64>() - sum.ln() / 2.0;
            let kept = errors.iter().map(|error| strength / (error + strength));
            Scenario { weight: likelihood, field, kept: kept.collect() }
        });
        let mut scenarios: Vec<_> = scenarios.collect();
        let largest = scenarios.iter().map(|scenario| scenario.weight).fold(f64::MIN, f64::max);
        for scenario in &mut scenarios {
            scenario.weight = (scenario.weight - largest).exp();
        }
        let sum = scenarios.iter().map(|scenario| scenario.weight).sum::<f64>();
        for scenario in &mut scenarios {
            scenario.weight /= sum;
        }
        Self(scenarios)
    }

    /// The scenario at this share of all probability, from 0 to 1: `value` of it gives likely
    /// long-run means.
    pub(super) fn scenario(&self, share: f64) -> usize {
        let mut sum = 0.0;
        let before = self.0.iter().take_while(|scenario| {
            sum += scenario.weight;
            sum < share
        });
        before.count().min(self.0.len() - 1)
    }

    /// The likely long-run mean of an entrant in a scenario, if its error in a replicate is
    /// `error`.
    pub(super) fn value(&self, scenario: usize, entrant: usize, mean: f64, error: f64) -> f64 {
        let scenario = &self.0[scenario];
        let kept = scenario.kept[entrant];
        scenario.field + kept * (mean - scenario.field) + kept.sqrt() * error
    }

    /// The probability that the first of two entrants has the higher long-run mean.
    pub(super) fn probability(
        &self,
        means: [f64; 2],
        pair: [usize; 2],
        covariance: &Covariance,
    ) -> f64 {
        let [first, second] = pair.map(|entrant| covariance.variance(entrant));
        let together = 2.0 * covariance.covariance(pair);
        let degrees = covariance.difference(pair).map_or(f64::INFINITY, |error| error.degrees);
        let probability = |scenario: &Scenario| {
            let kept = pair.map(|entrant| scenario.kept[entrant]);
            let distances = means.map(|mean| mean - scenario.field);
            let difference = kept[0] * distances[0] - kept[1] * distances[1];
            let variance =
                kept[0] * first + kept[1] * second - (kept[0] * kept[1]).sqrt() * together;
            if variance <= (first + second) * 1e-12 {
                // It is certain. Equal means are half above, half below.
                return if difference == 0.0 {
                    0.5
                } else {
                    normal_cdf(40.0 * difference.signum())
                };
            }
            student_cdf(degrees, difference / variance.sqrt())
        };
        self.0.iter().map(|scenario| scenario.weight * probability(scenario)).sum()
    }
}

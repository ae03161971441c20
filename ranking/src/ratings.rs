//! Ratings: how strong entrants are against such a field, whatever opponents each one had.
//!
//! # The model
//!
//! Bradley and Terry (1952) with the draws of Davidson (1970). If x is the difference of two
//! strengths and ν the inclination to draw, then a win, a draw and a loss have the odds
//! e^(x/2) : ν : e^(−x/2). A match of several is a result for each two of its seats, by their
//! scores. The ratings are the most likely strengths. They do not depend on the order of the
//! results. One virtual win and one virtual loss of each entrant against an average one keep the
//! rating of an entrant that always won finite.
//!
//! # The interval
//!
//! Results of one *cluster* depend on each other. If there are many entrants, a cluster is all
//! matches of the same pair or table, so that the interval is for other opponents and other seeds.
//! Up to [`FEW`] entrants have too few opponents for that: a cluster is a block, and the interval
//! is for other seeds. The variance follows from the clusters' scores (the robust "sandwich"
//! estimate of Liang and Zeger, Biometrika 73, 1986, which is what resampling the clusters tends
//! to).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::statistics::student_quantile;
use crate::{Entrant, ScoredMatch};

/// The rating of an average entrant, on the scale of Elo.
pub const AVERAGE_RATING: f64 = 1500.0;
/// Up to this number of entrants, clusters are blocks.
pub const FEW: usize = 16;

/// Points of the Elo scale for a difference of 1 in strength: 400 points are odds of 10 to 1.
const ELO: f64 = 400.0 / std::f64::consts::LN_10;
/// Maximum number of entrants whose errors are computed with all their dependences.
const MAX_DENSE: usize = 300;
/// Maximum number of improvements.
const MAX_STEPS: usize = 500;
/// Strengths have converged if none changes by more than this.
const TOLERANCE: f64 = 1e-4;
/// Virtual matches of each entrant against an average one.
const VIRTUAL: f64 = 2.0;

/// The results of pairs, in any order.
#[derive(Debug, Default)]
pub struct PairResults {
    /// Block, the two entrants, and the half points of the first one.
    results: Vec<(i64, Entrant, Entrant, u8)>,
}

impl PairResults {
    /// Adds a match of a block.
    pub fn add(&mut self, block: i64, played: &ScoredMatch<'_>) {
        let mut scores: Vec<_> = played.entrant_scores().collect();
        scores.sort_by_key(|(entrant, _)| *entrant);
        for (index, (first, score)) in scores.iter().enumerate() {
            for (second, other) in scores[index + 1..].iter().filter(|(other, _)| other != first) {
                let half_points = match score.cmp(other) {
                    Ordering::Greater => 2,
                    Ordering::Equal => 1,
                    Ordering::Less => 0,
                };
                self.results.push((block, *first, *second, half_points));
            }
        }
    }

    /// The number of results.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// How much memory the results take, in bytes.
    pub fn bytes(&self) -> usize {
        self.results.capacity() * size_of::<(i64, Entrant, Entrant, u8)>()
    }

    /// The results by cluster. Their order changes.
    fn clusters(&mut self, entrants: &[Entrant]) -> Clusters {
        self.results.sort_unstable();
        let index = |entrant| entrants.binary_search(&entrant).ok();
        let mut results = Vec::new();
        let mut blocks = Vec::new();
        for block in self.results.chunk_by(|a, b| a.0 == b.0) {
            let start = results.len();
            results.extend(block.chunk_by(|a, b| (a.1, a.2) == (b.1, b.2)).filter_map(|same| {
                let pair = [index(same[0].1)?, index(same[0].2)?];
                let points = same.iter().map(|result| f64::from(result.3) / 2.0).sum();
                let drawn = number(same.iter().filter(|result| result.3 == 1).count());
                Some(PairResult { pair, matches: number(same.len()), points, drawn })
            }));
            let key = if entrants.len() > FEW { 0 } else { block[0].0 };
            blocks.push((key, start..results.len()));
        }
        Clusters::of(&results, blocks)
    }
}

/// Results by cluster, in one list: each step of the fit goes through all of them.
#[derive(Debug, Default)]
struct Clusters {
    results: Vec<PairResult>,
    /// For each cluster, the number of results up to its last one.
    ends: Vec<usize>,
}

impl Clusters {
    /// Adds up blocks with the same key and the same pairs. A block is its key and where its
    /// results are, by pair.
    fn of(results: &[PairResult], mut blocks: Vec<(i64, Range<usize>)>) -> Self {
        let results_of = |block: &(i64, Range<usize>)| &results[block.1.clone()];
        let compare = |a: &(i64, Range<usize>), b: &(i64, Range<usize>)| {
            let pairs = |block| results_of(block).iter().map(|result| result.pair);
            a.0.cmp(&b.0).then_with(|| pairs(a).cmp(pairs(b)))
        };
        blocks.sort_unstable_by(compare);
        let mut clusters = Self::default();
        for cluster in blocks.chunk_by(|a, b| compare(a, b).is_eq()) {
            let start = clusters.results.len();
            clusters.results.extend_from_slice(results_of(&cluster[0]));
            for block in &cluster[1..] {
                let sums = clusters.results[start..].iter_mut();
                sums.zip(results_of(block)).for_each(|(sum, result)| sum.add(*result));
            }
            clusters.ends.push(clusters.results.len());
        }
        clusters
    }

    /// The results of each cluster.
    fn iter(&self) -> impl Iterator<Item = &[PairResult]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.results[start..*end])
    }

    /// The number of clusters.
    fn len(&self) -> usize {
        self.ends.len()
    }
}

/// The results of two entrants in a cluster.
#[derive(Clone, Copy, Debug)]
struct PairResult {
    pair: [usize; 2],
    matches: f64,
    /// The points of the first entrant: 1 for a win, 0.5 for a draw.
    points: f64,
    drawn: f64,
}

impl PairResult {
    fn add(&mut self, other: Self) {
        self.matches += other.matches;
        self.points += other.points;
        self.drawn += other.drawn;
    }
}

/// The rating of an entrant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// The rating, on the scale of Elo: an average entrant has [`AVERAGE_RATING`].
    pub elo: f64,
    /// Half the width of its 95 % interval. None with fewer than 3 clusters.
    pub margin: Option<f64>,
}

/// The most likely rating of each entrant, in the order of `entrants`, which is ascending. None for
/// entrants without matches. The order of the results changes, and makes no difference.
pub fn ratings(entrants: &[Entrant], results: &mut PairResults) -> Vec<Option<Rating>> {
    let clusters = results.clusters(entrants);
    let mut fit = Fit::new(entrants.len(), &clusters);
    fit.converge();
    let errors = fit.errors();
    let mut clusters_of = vec![0; entrants.len()];
    for cluster in clusters.iter() {
        let mut members: Vec<_> = cluster.iter().flat_map(|result| result.pair).collect();
        members.sort_unstable();
        members.dedup();
        for member in members {
            clusters_of[member] += 1;
        }
    }
    let rated = clusters_of.iter().zip(&fit.strengths).filter(|(clusters, _)| **clusters > 0);
    let rated: Vec<_> = rated.map(|(_, strength)| *strength).collect();
    let average = rated.iter().sum::<f64>() / number(rated.len()).max(1.0);
    let rating = |(index, clusters): (usize, usize)| {
        let elo = AVERAGE_RATING + ELO * (fit.strengths[index] - average);
        let quantile = student_quantile(number(clusters) - 1.0, 0.975);
        let margin = (clusters > 2).then(|| ELO * errors[index] * quantile);
        (clusters > 0).then_some(Rating { elo, margin })
    };
    clusters_of.into_iter().enumerate().map(rating).collect()
}

/// The model and its parameters.
struct Fit<'a> {
    clusters: &'a Clusters,
    strengths: Vec<f64>,
    /// The inclination to draw: ν.
    draw: f64,
    /// The number of draws.
    drawn: f64,
}

/// What the model expects of a match.
#[derive(Clone, Copy)]
struct Expected {
    /// The points of the first entrant.
    points: f64,
    /// The variance of its points.
    variance: f64,
    drawn: f64,
}

impl<'a> Fit<'a> {
    fn new(entrants: usize, clusters: &'a Clusters) -> Self {
        let drawn = clusters.results.iter().map(|result| result.drawn).sum::<f64>();
        let draw = if drawn > 0.0 { 1.0 } else { 0.0 };
        Self { clusters, strengths: vec![0.0; entrants], draw, drawn }
    }

    fn expected(&self, [first, second]: [usize; 2]) -> Expected {
        expected(self.strengths[first] - self.strengths[second], self.draw)
    }

    /// Improves the parameters until they hardly change: each strength by the step of Newton's
    /// method for it alone, halved because its opponents move too.
    fn converge(&mut self) {
        for _ in 0..MAX_STEPS {
            let mut gradient = vec![0.0; self.strengths.len()];
            let mut curvature = vec![0.0; self.strengths.len()];
            let mut expected_draws = 0.0;
            for result in &self.clusters.results {
                let expected = self.expected(result.pair);
                let surplus = result.points - result.matches * expected.points;
                let [first, second] = result.pair;
                gradient[first] += surplus;
                gradient[second] -= surplus;
                for entrant in result.pair {
                    curvature[entrant] += result.matches * expected.variance;
                }
                expected_draws += result.matches * expected.drawn;
            }
            let mut change = 0.0_f64;
            for (entrant, strength) in self.strengths.iter_mut().enumerate() {
                let virtual_match = expected(*strength, 0.0);
                let gradient = gradient[entrant] + VIRTUAL * (0.5 - virtual_match.points);
                let curvature = curvature[entrant] + VIRTUAL * virtual_match.variance;
                let step = (gradient / curvature / 2.0).clamp(-1.0, 1.0);
                *strength += step;
                change = change.max(step.abs());
            }
            if self.drawn > 0.0 {
                let factor = self.drawn / expected_draws;
                self.draw *= factor;
                change = change.max((factor - 1.0).abs());
            }
            if change < TOLERANCE {
                break;
            }
        }
    }

    /// The standard error of each strength.
    fn errors(&self) -> Vec<f64> {
        let size = self.strengths.len();
        let mut diagonal: Vec<_> = self
            .strengths
            .iter()
            .map(|strength| VIRTUAL * expected(*strength, 0.0).variance)
            .collect();
        for result in &self.clusters.results {
            for entrant in result.pair {
                diagonal[entrant] += result.matches * self.expected(result.pair).variance;
            }
        }
        let count = number(self.clusters.len());
        let correction = (count / (count - 1.0).max(1.0)).sqrt();
        let mut variances = vec![0.0; size];
        if size <= MAX_DENSE {
            let inverse = self.inverse_information(&diagonal);
            for cluster in self.clusters.iter() {
                let scores = self.scores(cluster);
                for (entrant, row) in inverse.iter().enumerate() {
                    let influence =
                        scores.iter().map(|(other, score)| row[*other] * score).sum::<f64>();
                    variances[entrant] += influence.powi(2);
                }
            }
        } else {
            // With many opponents, the error of each one matters little.
            for cluster in self.clusters.iter() {
                for (entrant, score) in self.scores(cluster) {
                    variances[entrant] += (score / diagonal[entrant]).powi(2);
                }
            }
        }
        variances.into_iter().map(|variance: f64| correction * variance.sqrt()).collect()
    }

    /// What a cluster adds to the gradient.
    fn scores(&self, cluster: &[PairResult]) -> BTreeMap<usize, f64> {
        let mut scores = BTreeMap::new();
        for result in cluster {
            let surplus = result.points - result.matches * self.expected(result.pair).points;
            *scores.entry(result.pair[0]).or_default() += surplus;
            *scores.entry(result.pair[1]).or_default() -= surplus;
        }
        scores
    }

    /// The inverse of the information matrix, by Gauss and Jordan. It is positive definite, because
    /// of the virtual matches.
    fn inverse_information(&self, diagonal: &[f64]) -> Vec<Vec<f64>> {
        let size = diagonal.len();
        let mut matrix: Vec<Vec<f64>> = (0..size)
            .map(|row| {
                let mut row_of_both = vec![0.0; 2 * size];
                row_of_both[row] = diagonal[row];
                row_of_both[size + row] = 1.0;
                row_of_both
            })
            .collect();
        for result in &self.clusters.results {
            let information = result.matches * self.expected(result.pair).variance;
            let [first, second] = result.pair;
            matrix[first][second] -= information;
            matrix[second][first] -= information;
        }
        for pivot in 0..size {
            let scale = 1.0 / matrix[pivot][pivot];
            matrix[pivot].iter_mut().for_each(|value| *value *= scale);
            let pivot_row = matrix[pivot].clone();
            for (index, row) in matrix.iter_mut().enumerate() {
                let factor = row[pivot];
                if index != pivot && factor != 0.0 {
                    row.iter_mut()
                        .zip(&pivot_row)
                        .for_each(|(value, above)| *value -= factor * above);
                }
            }
        }
        matrix.into_iter().map(|row| row[size..].to_vec()).collect()
    }
}

fn expected(difference: f64, draw: f64) -> Expected {
    let win = (difference / 2.0).exp();
    let loss = 1.0 / win;
    let sum = win + loss + draw;
    let points = (win + draw / 2.0) / sum;
    let variance = (win + draw / 4.0) / sum - points.powi(2);
    // It is positive, unless it is rounded to zero.
    Expected { points, variance: variance.max(1e-12), drawn: draw / sum }
}

#[expect(clippy::cast_precision_loss, reason = "there are few of them")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of pairs: the points of both.
    fn results(played: &[(i32, i32, i64, i64)]) -> PairResults {
        let mut results = PairResults::default();
        for (block, (first, second, points, other)) in (0..).zip(played) {
            let seats = [Entrant(*first), Entrant(*second)];
            let scores = [*points, *other];
            let played = ScoredMatch {
                seats: &seats,
                scores: &scores,
                carried: &[],
                forfeits: &[],
                bad_answers: &[],
            };
            results.add(block, &played);
        }
        results
    }

    /// With enough matches the virtual ones hardly matter: 10 wins to 1 are 400 points.
    #[test]
    fn ten_wins_to_one_are_four_hundred_points() {
        let entrants = [Entrant(3), Entrant(7)];
        let played: Vec<_> = (0..11_000)
            .map(|number| (3, 7, i64::from(number % 11 != 0), i64::from(number % 11 == 0)))
            .collect();
        let rated = ratings(&entrants, &mut results(&played));
        let [first, second] = [rated[0].unwrap(), rated[1].unwrap()];
        assert!((first.elo - second.elo - 400.0).abs() < 1.0, "{rated:?}");
        assert!((f64::midpoint(first.elo, second.elo) - AVERAGE_RATING).abs() < 1e-3, "{rated:?}");
        assert!(first.margin.unwrap() > 0.0 && first.margin.unwrap() < 10.0, "{rated:?}");
    }

    /// The odds of Davidson's model: wins, draws and losses as √10 : ν : 1/√10 are 400 points.
    #[test]
    fn draws_count_as_in_davidsons_model() {
        let entrants = [Entrant(0), Entrant(1)];
        // 10 : 4 : 1 is √10 : 4/√10 : 1/√10.
        let played: Vec<_> = (0..15_000)
            .map(|number| match number % 15 {
                0..10 => (0, 1, 1, 0),
                10..14 => (0, 1, 1, 1),
                _ => (0, 1, 0, 1),
            })
            .collect();
        let rated = ratings(&entrants, &mut results(&played));
        let difference = rated[0].unwrap().elo - rated[1].unwrap().elo;
        assert!((difference - 400.0).abs() < 1.0, "{rated:?}");
    }

    #[test]
    fn ratings_do_not_depend_on_the_order_and_stay_finite() {
        let entrants = [Entrant(0), Entrant(1), Entrant(2), Entrant(3)];
        let mut played = vec![(0, 1, 2, 0), (1, 2, 2, 0), (0, 2, 2, 0), (2, 1, 1, 1)];
        let rated = ratings(&entrants, &mut results(&played));
        played.reverse();
        let reversed = ratings(&entrants, &mut results(&played));
        assert_eq!(rated[3], None, "without matches");
        for (rating, reversed) in rated.iter().zip(&reversed).take(3) {
            let [rating, reversed] = [rating.unwrap().elo, reversed.unwrap().elo];
            assert!(rating.is_finite() && (rating - reversed).abs() < 1e-3);
        }
        assert!(rated[0].unwrap().elo > rated[1].unwrap().elo);
    }
}

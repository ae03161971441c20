//! How far the means of entrants are from their long-run values, and how these errors depend on
//! each other.
//!
//! Within a *stratum*, blocks differ by chance alone: they have the same entrants and, if each
//! order of the seats occurs at least twice, the same seats. If some order occurs once, all blocks
//! of the cell are one stratum. Its scatter then also has the advantages of the seats, so that the
//! errors are too large rather than too small.
//!
//! A stratum of two blocks knows little of its variance, and one with equal outcomes would claim to
//! have none. So each stratum gets one more block with the average scatter of all strata of as many
//! entrants. The estimate stays unbiased if all strata have the same variance. Only if all strata
//! of the edition repeat the same matches, fresh seeds change nothing, and all means are exact.
//!
//! The errors of a stratum are stored as *factors*: vectors with a number for each member. An
//! independent standard normal number for each factor, times the factor, gives errors with the
//! right variances and covariances.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{Block, Cell, Cells};
use super::{Basis, NoInterval, Precision, normal_cdf, student_quantile};

/// Up to this number of members, the factors of a stratum are those of its covariance matrix. Above
/// it, they are the blocks themselves.
const MAX_MATRIX: usize = 16;
/// The minimum number of blocks of an edition that is exact: short matches may be equal by chance.
const MIN_REPEATED: usize = 20;

/// Entrants whose errors depend on each other.
#[derive(Debug)]
struct Stratum {
    /// Indices of entrants, in ascending order.
    members: Vec<usize>,
    /// Each has a number for each member, in units of its mean.
    factors: Vec<Vec<f64>>,
    /// The degrees of freedom of the variances.
    degrees: f64,
}

impl Stratum {
    fn covariance(&self, first: usize, second: usize) -> f64 {
        self.factors.iter().map(|factor| factor[first] * factor[second]).sum()
    }
}

/// The error of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DifferenceError {
    /// The standard error.
    pub(super) error: f64,
    /// The degrees of freedom.
    pub(super) degrees: f64,
}

impl DifferenceError {
    /// Half the width of the interval, if a normal error stays within `critical` standard errors
    /// with the same probability.
    pub(super) fn margin(self, critical: f64) -> f64 {
        if self.error == 0.0 {
            return 0.0;
        }
        -self.error * student_quantile(self.degrees, normal_cdf(-critical))
    }
}

/// The errors of all entrants.
#[derive(Debug)]
pub(super) struct Covariance {
    strata: Vec<Stratum>,
    /// For each entrant its strata, with its position among their members.
    places: Vec<Vec<(usize, usize)>>,
    /// The variance of each mean.
    variances: Vec<f64>,
    /// The sum over strata of squared variance per degree of freedom.
    spreads: Vec<f64>,
    /// For each entrant, the mean variance of a block, if each block is a stratum.
    block_variances: Vec<f64>,
    /// Why an entrant has no variance.
    unknown: Vec<Option<NoInterval>>,
    is_exact: bool,
    /// Whether some errors come from fewer blocks than entrants. Then replicates would make
    /// entrants depend on each other more than they do.
    has_few_blocks: bool,
}

impl Covariance {
    /// Estimates the errors.
    pub(super) fn of(cells: &Cells) -> Self {
        let entrants = cells.totals.len();
        let mut unknown: Vec<_> = cells
            .totals
            .iter()
            .map(|total| (total.1 == 0.0).then_some(NoInterval::NoMatches))
            .collect();
        let mut spreads = vec![0.0; entrants];
        let is_exact = is_repeated(cells);
        let strata = match cells.basis {
            Basis::Seeds => strata_of_seeds(cells, &mut unknown),
            Basis::Tables => strata_of_tables(cells, &mut unknown),
        };
        let is_large = |stratum: &Stratum| stratum.members.len() > MAX_MATRIX;
        let has_few_blocks = strata.iter().any(is_large) || cells.basis == Basis::Tables;
        let mut places = vec![Vec::new(); entrants];
        let mut variances = vec![0.0; entrants];
        for (number, stratum) in strata.iter().enumerate() {
            for (position, member) in stratum.members.iter().enumerate() {
                places[*member].push((number, position));
                let variance = stratum.covariance(position, position);
                variances[*member] += variance;
                spreads[*member] += variance.powi(2) / stratum.degrees;
            }
        }
        let mut block_variances = Vec::new();
        if cells.basis == Basis::Tables {
            for (entrant, spread) in spreads.iter_mut().enumerate() {
                let degrees = (number(places[entrant].len()) - 1.0).max(1.0);
                *spread = variances[entrant].powi(2) / degrees;
                block_variances.push(variances[entrant] / degrees);
            }
        }
        for entrant in 0..entrants {
            if unknown[entrant].is_none() && variances[entrant] == 0.0 && !is_exact {
                unknown[entrant] = Some(NoInterval::EqualOutcomes);
            }
        }
        Self {
            strata,
            places,
            variances,
            spreads,
            block_variances,
            unknown,
            is_exact,
            has_few_blocks,
        }
    }

    /// Independent errors.
    #[cfg(test)]
    pub(super) fn independent(errors: &[f64]) -> Self {
        let stratum = |(member, error): (usize, &f64)| Stratum {
            members: vec![member],
            factors: vec![vec![*error]],
            degrees: f64::INFINITY,
        };
        Self {
            strata: errors.iter().enumerate().map(stratum).collect(),
            places: (0..errors.len()).map(|entrant| vec![(entrant, 0)]).collect(),
            variances: errors.iter().map(|error| error.powi(2)).collect(),
            spreads: vec![0.0; errors.len()],
            block_variances: Vec::new(),
            unknown: vec![None; errors.len()],
            is_exact: false,
            has_few_blocks: false,
        }
    }

    pub(super) fn entrants(&self) -> usize {
        self.variances.len()
    }

    pub(super) fn precision(&self, entrant: usize) -> Precision {
        if let Some(reason) = self.unknown[entrant] {
            return Precision::Unknown(reason);
        }
        if self.is_exact {
            return Precision::Exact;
        }
        let variance = self.variances[entrant];
        let degrees = variance.powi(2) / self.spreads[entrant];
        Precision::Error { error: variance.sqrt(), degrees }
    }

    pub(super) fn is_known(&self, entrant: usize) -> bool {
        self.unknown[entrant].is_none()
    }

    /// Whether probabilities about all entrants can be said: each has met its opponents with at
    /// least two seeds. Entrants with equal outcomes take part without an error.
    pub(super) fn is_complete(&self) -> bool {
        !self.unknown.contains(&Some(NoInterval::OneSeed))
    }

    /// Whether an entrant has matches.
    pub(super) fn has_matches(&self, entrant: usize) -> bool {
        self.unknown[entrant] != Some(NoInterval::NoMatches)
    }

    /// Whether replicates do not show how entrants depend on each other.
    pub(super) fn has_few_blocks(&self) -> bool {
        self.has_few_blocks
    }

    /// The degrees of freedom of a typical difference: it sums over about twice as many strata as a
    /// mean.
    pub(super) fn typical_degrees(&self) -> f64 {
        let degrees = (0..self.entrants()).filter_map(|entrant| match self.precision(entrant) {
            Precision::Error { degrees, .. } => Some(degrees),
            Precision::Exact | Precision::Unknown(_) => None,
        });
        let mut degrees: Vec<_> = degrees.collect();
        degrees.sort_unstable_by(f64::total_cmp);
        degrees.get(degrees.len() / 2).map_or(f64::INFINITY, |median| 2.0 * median)
    }

    /// The variance of an entrant's mean.
    pub(super) fn variance(&self, entrant: usize) -> f64 {
        self.variances[entrant]
    }

    /// The covariance of the means of two entrants.
    pub(super) fn covariance(&self, [first, second]: [usize; 2]) -> f64 {
        self.common(first, second).map(|(stratum, [a, b])| stratum.covariance(a, b)).sum()
    }

    /// The mean covariance of two different entrants.
    pub(super) fn mean_covariance(&self) -> f64 {
        let entrants = number(self.entrants());
        let factors = self.strata.iter().flat_map(|stratum| &stratum.factors);
        let all = factors.map(|factor| factor.iter().sum::<f64>().powi(2)).sum::<f64>();
        let own = self.variances.iter().sum::<f64>();
        (all - own) / (entrants * (entrants - 1.0)).max(1.0)
    }

    /// The error of the difference of two entrants. None if one of them has no variance.
    pub(super) fn difference(&self, [first, second]: [usize; 2]) -> Option<DifferenceError> {
        let mut row = PairSums::default();
        for (stratum, [a, b]) in self.common(first, second) {
            self.add(&mut row, stratum, [a, b]);
        }
        self.difference_with([first, second], row)
    }

    fn difference_with(&self, pair: [usize; 2], sums: PairSums) -> Option<DifferenceError> {
        let [first, second] = pair;
        if !(self.is_known(first) && self.is_known(second)) {
            return None;
        }
        let own = self.variances[first] + self.variances[second];
        let variance = own - 2.0 * sums.covariance;
        // A rounding error of zero.
        let variance = if variance > own * 1e-12 { variance } else { 0.0 };
        let spread = self.spreads[first] + self.spreads[second] + sums.spread;
        // The spread of tables is that of independent errors.
        let known = if self.block_variances.is_empty() { variance } else { own };
        let degrees = if spread > 0.0 { known.powi(2) / spread } else { f64::INFINITY };
        Some(DifferenceError { error: variance.sqrt(), degrees: degrees.max(1.0) })
    }

    /// Adds a stratum in which two entrants have these positions.
    fn add(&self, sums: &mut PairSums, stratum: &Stratum, positions: [usize; 2]) {
        let [first, second] = positions;
        let covariance = stratum.covariance(first, second);
        sums.covariance += covariance;
        let (own, together) = if self.block_variances.is_empty() {
            let own = positions.map(|member| stratum.covariance(member, member));
            (own, own[0] + own[1] - 2.0 * covariance)
        } else {
            // One block tells nothing about its variance.
            let own = positions.map(|member| self.block_variances[stratum.members[member]]);
            (own, own[0] + own[1])
        };
        let apart = own[0].powi(2) + own[1].powi(2);
        sums.spread += (together.powi(2) - apart) / stratum.degrees;
    }

    /// Calls `visit` with each pair and its error, except those without one.
    pub(super) fn each_pair(&self, mut visit: impl FnMut([usize; 2], DifferenceError)) {
        let mut sums = vec![PairSums::default(); self.entrants()];
        for first in 0..self.entrants() {
            for (number, place) in &self.places[first] {
                let stratum = &self.strata[*number];
                for (position, member) in stratum.members.iter().enumerate().skip(place + 1) {
                    self.add(&mut sums[*member], stratum, [*place, position]);
                }
            }
            for (second, sums) in sums.iter_mut().enumerate().skip(first + 1) {
                if let Some(error) = self.difference_with([first, second], std::mem::take(sums)) {
                    visit([first, second], error);
                }
            }
        }
    }

    /// The factors: a number for each of their members.
    pub(super) fn factors(&self) -> impl Iterator<Item = (&[usize], &[f64])> {
        self.strata.iter().flat_map(|stratum| {
            stratum.factors.iter().map(|factor| (&stratum.members[..], &factor[..]))
        })
    }

    fn common(&self, first: usize, second: usize) -> impl Iterator<Item = (&Stratum, [usize; 2])> {
        self.places[first].iter().filter_map(move |(number, place)| {
            let stratum = &self.strata[*number];
            let other = stratum.members.binary_search(&second).ok()?;
            Some((stratum, [*place, other]))
        })
    }
}

/// Sums over the strata that two entrants have in common.
#[derive(Clone, Copy, Debug, Default)]
struct PairSums {
    covariance: f64,
    /// What to add to the spreads of both.
    spread: f64,
}

/// The scatter of some blocks: sums of products of deviations from their mean, in units of values.
struct Scatter {
    members: Vec<usize>,
    blocks: usize,
    /// The deviations of each block.
    deviations: Vec<Vec<f64>>,
}

impl Scatter {
    fn of(members: &[usize], blocks: &[&Block]) -> Self {
        let total = |member: usize| {
            let values = blocks.iter().map(|block| block.values[member]);
            values.fold((0.0, 0.0), |sum: (f64, f64), value| (sum.0 + value.0, sum.1 + value.1))
        };
        let totals: Vec<_> = (0..members.len()).map(total).collect();
        let deviations = blocks.iter().map(|block| {
            let values = block.values.iter().zip(&totals);
            // The numerator is exact for whole numbers.
            values.map(|(value, total)| (value.0 * total.1 - total.0 * value.1) / total.1).collect()
        });
        Self { members: members.to_vec(), blocks: blocks.len(), deviations: deviations.collect() }
    }

    fn degrees(&self) -> f64 {
        number(self.blocks) - 1.0
    }

    fn product(&self, first: usize, second: usize) -> f64 {
        self.deviations.iter().map(|block| block[first] * block[second]).sum()
    }

    fn is_small(&self) -> bool {
        self.members.len() <= MAX_MATRIX
    }

    /// The errors of the stratum, with one more block of average scatter. `units` are the numbers
    /// of matches or episodes of its members.
    fn strata(&self, pool: &Pool, units: &[f64]) -> Vec<Stratum> {
        let members = self.members.clone();
        let degrees = pool.degrees_of(self.blocks);
        let scale = |factor: Vec<f64>| -> Vec<f64> {
            factor.iter().zip(units).map(|(x, units)| x / units).collect()
        };
        if self.is_small() {
            let size = members.len();
            let row = |row: usize| -> Vec<f64> {
                let entry = |column| self.product(row, column) + pool.average(row == column);
                (0..size).map(entry).collect()
            };
            let factors = cholesky((0..size).map(row).collect()).into_iter().map(scale).collect();
            return vec![Stratum { members, factors, degrees }];
        }
        // The average scatter is a common error and one for each member. Only differences matter,
        // so a negative covariance adds to the variances.
        let common = pool.average(false).max(0.0);
        let apart = pool.average(true) - pool.average(false);
        let mut factors: Vec<_> =
            self.deviations.iter().map(|block| scale(block.clone())).collect();
        factors.push(scale(vec![common.sqrt(); members.len()]));
        let alone = members.iter().zip(units).map(|(member, units)| Stratum {
            members: vec![*member],
            factors: vec![vec![apart.max(0.0).sqrt() / units]],
            // So few that with two or three blocks hardly anything is certain: the average scatter
            // may be far from the scatter of one member.
            degrees: (number(self.blocks) / 2.0).max(1.0),
        });
        alone.chain([Stratum { members: members.clone(), factors, degrees }]).collect()
    }
}

/// The average covariance of a block over strata with equally many members.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    own: f64,
    other: f64,
    own_degrees: f64,
    other_degrees: f64,
    /// The number of strata, of their members, and of all blocks beyond the first of each.
    strata: f64,
    members: f64,
    degrees: f64,
    /// The number of entrants that are members of a stratum.
    entrants: f64,
}

impl Pool {
    fn add(&mut self, scatter: &Scatter) {
        self.strata += 1.0;
        self.members += number(scatter.members.len());
        self.degrees += scatter.degrees();
        for first in 0..scatter.members.len() {
            for second in 0..scatter.members.len() {
                let product = scatter.product(first, second);
                if first == second {
                    self.own += product;
                    self.own_degrees += scatter.degrees();
                } else {
                    self.other += product;
                    self.other_degrees += scatter.degrees();
                }
            }
        }
    }

    /// The degrees of freedom of a stratum with this number of blocks.
    ///
    /// The variance of a difference is a sum over k strata, and includes the average k times. So
    /// the scatter of a stratum counts more than once, and there are fewer degrees than blocks
    /// (Satterthwaite, for equal variances).
    fn degrees_of(&self, blocks: usize) -> f64 {
        let together = (2.0 * self.members / self.entrants).min(self.strata);
        let mean = 1.0 + self.degrees / self.strata;
        let own = together * (mean - 1.0);
        let weight = together / self.degrees;
        let spread = own * (1.0 + weight).powi(2) + (self.degrees - own).max(0.0) * weight.powi(2);
        let share = together * mean / spread;
        number(blocks) * share.min(1.0)
    }

    fn average(&self, is_own: bool) -> f64 {
        if is_own {
            self.own / self.own_degrees.max(1.0)
        } else {
            self.other / self.other_degrees.max(1.0)
        }
    }
}

/// Whether all strata of an edition repeat the same matches.
fn is_repeated(cells: &Cells) -> bool {
    let repeats = |blocks: Vec<&Block>| {
        blocks.len() > 1 && blocks.iter().all(|block| block.repetition == blocks[0].repetition)
    };
    let blocks = cells.list.iter().map(|cell| cell.blocks.len()).sum::<usize>();
    blocks >= MIN_REPEATED && cells.list.iter().flat_map(strata).all(repeats)
}

/// The strata of cells with at least two blocks. Entrants of other cells have no variance.
fn strata_of_seeds(cells: &Cells, unknown: &mut [Option<NoInterval>]) -> Vec<Stratum> {
    let mut scatters = Vec::new();
    let mut pools: BTreeMap<usize, (Pool, BTreeSet<usize>)> = BTreeMap::new();
    for cell in &cells.list {
        if cell.blocks.len() < 2 {
            for member in &cell.members {
                unknown[*member] = Some(NoInterval::OneSeed);
            }
            continue;
        }
        for blocks in strata(cell) {
            let scatter = Scatter::of(&cell.members, &blocks);
            let (pool, entrants) = pools.entry(cell.members.len()).or_default();
            pool.add(&scatter);
            entrants.extend(&cell.members);
            scatters.push(scatter);
        }
    }
    for (pool, entrants) in pools.values_mut() {
        pool.entrants = number(entrants.len());
    }
    let strata = |scatter: &Scatter| {
        let (pool, _) = &pools[&scatter.members.len()];
        let units: Vec<_> = scatter.members.iter().map(|member| cells.totals[*member].1).collect();
        scatter.strata(pool, &units)
    };
    scatters.iter().flat_map(strata).collect()
}

/// The blocks of a cell, by the order of seats if each order occurs at least twice.
fn strata(cell: &Cell) -> Vec<Vec<&Block>> {
    let mut by_seats: BTreeMap<u64, Vec<&Block>> = BTreeMap::new();
    for block in &cell.blocks {
        by_seats.entry(block.seats).or_default().push(block);
    }
    if by_seats.values().all(|blocks| blocks.len() > 1) {
        by_seats.into_values().collect()
    } else {
        vec![cell.blocks.iter().collect()]
    }
}

/// A stratum for each block: deviations from the mean of each entrant over its blocks.
fn strata_of_tables(cells: &Cells, unknown: &mut [Option<NoInterval>]) -> Vec<Stratum> {
    let mut blocks = vec![0; unknown.len()];
    for cell in &cells.list {
        cell.members.iter().for_each(|member| blocks[*member] += cell.blocks.len());
    }
    for (unknown, blocks) in unknown.iter_mut().zip(&blocks) {
        if *blocks == 1 {
            *unknown = Some(NoInterval::OneSeed);
        }
    }
    let means = cells.means();
    let factor = |members: &[usize], block: &Block| -> Vec<f64> {
        let values = members.iter().zip(&block.values);
        values
            .map(|(member, (value, units))| {
                let blocks = number(blocks[*member]);
                let inflation = if blocks > 1.0 { (blocks / (blocks - 1.0)).sqrt() } else { 0.0 };
                (value - means[*member] * units) * inflation / cells.totals[*member].1
            })
            .collect()
    };
    let stratum = |members: &[usize], block: &Block| Stratum {
        members: members.to_vec(),
        factors: vec![factor(members, block)],
        degrees: 1.0,
    };
    let blocks = cells
        .list
        .iter()
        .flat_map(|cell| cell.blocks.iter().map(|block| stratum(&cell.members, block)));
    blocks.collect()
}

/// The columns of the Cholesky factor of a covariance matrix that may be singular: the sum of their
/// outer products is the matrix. Zero columns are left out.
fn cholesky(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let size = matrix.len();
    let largest = (0..size).map(|index| matrix[index][index]).fold(0.0, f64::max);
    let mut columns = Vec::new();
    for pivot in 0..size {
        let diagonal = matrix[pivot][pivot];
        // What rounding leaves of zero.
        if diagonal <= largest * 1e-12 {
            continue;
        }
        let root = diagonal.sqrt();
        let column: Vec<_> = (0..size)
            .map(|row| if row < pivot { 0.0 } else { matrix[row][pivot] / root })
            .collect();
        for row in pivot..size {
            for other in pivot..size {
                matrix[row][other] -= column[row] * column[other];
            }
        }
        columns.push(column);
    }
    columns
}

#[expect(clippy::cast_precision_loss, reason = "there are few blocks and entrants")]
fn number(count: usize) -> f64 {
    count as f64
}

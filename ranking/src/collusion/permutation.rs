//! Permutation tests: the probability that randomly drawn tables of a bot have at least the same
//! sum of residuals as its tables with a partner.
//!
//! Draws continue until [`ENOUGH`] of them have reached the observed sum, or until their maximum
//! number (Besag and Clifford, "Sequential Monte Carlo p-values", 1991). Most pairs need a few
//! dozen draws. The p-value is ENOUGH / draws in the first case and (reached + 1) / (draws + 1) in
//! the second case (Phipson and Smyth, "Permutation p-values should never be zero", 2010). It is
//! never too small. Partners that met a bot equally often have the same distribution, so they share
//! its draws.

use std::collections::BTreeMap;

use arbiter_games::{Dice, Seed};

use super::tables::{TableView, Tables};
use super::{TestedPair, float};

/// Draws end when this many of them have reached the observed sum.
const ENOUGH: u64 = 20;

/// The maximum number of draws for a partner.
const MAX_DRAWS: u64 = 1 << 25;

/// The approximate total number of drawn residuals: a minute of processor time. After that, draws
/// end at [`MIN_DRAWS`], which makes p-values coarser, but not smaller.
const MAX_DRAWN: u64 = 1 << 33;

/// The number of draws that every partner may have.
const MIN_DRAWS: u64 = 1 << 16;

/// The number of steps between 0 and the largest residual. Residuals are rounded to these steps, so
/// that sums are exact and equal residuals stay equal.
const STEPS: f64 = 16_777_216.0;

/// The budget of draws.
#[derive(Debug)]
pub(super) struct Budget {
    /// The maximum number of draws for a partner.
    max: u64,
    /// The number of residuals that may still be drawn.
    remaining: u64,
}

impl Budget {
    /// Four times the number of draws that can select a single pair of all pairs of `bots` bots, at
    /// this share of false discoveries.
    pub(super) fn new(bots: u32, share: f64) -> Self {
        let pairs = f64::from(bots) * f64::from(bots.saturating_sub(1));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let draws = (4.0 * pairs / share).ceil() as u64;
        Self { max: draws.clamp(ENOUGH, MAX_DRAWS), remaining: MAX_DRAWN }
    }

    /// The maximum number of draws for partners with this many tables.
    fn draws(&self, tables: u32) -> u64 {
        let affordable = self.remaining / u64::from(tables.max(1));
        self.max.min(affordable.max(MIN_DRAWS))
    }

    fn spend(&mut self, draws: u64, tables: u32) {
        self.remaining = self.remaining.saturating_sub(draws.saturating_mul(u64::from(tables)));
    }
}

/// The tables of each bot and the residuals of its scores.
#[derive(Debug)]
pub(super) struct Appearances<'a> {
    tables: &'a Tables,
    residuals: &'a [f64],
    /// The residuals, rounded to integers.
    rounded: Vec<i32>,
    /// The tables of all bots, concatenated. The tables of each bot are ordered by stratum.
    of_bots: Vec<u32>,
    /// The end of each bot's tables in `of_bots`.
    ends: Vec<u32>,
}

/// The scores of a bot with and without a partner.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Comparison {
    pub(super) together: usize,
    pub(super) mean_with: f64,
    pub(super) mean_without: f64,
    pub(super) difference: f64,
}

/// The tables of a bot with a partner.
#[derive(Clone, Debug, Default)]
struct Observed {
    /// The number of these tables in each stratum.
    tables: Vec<u32>,
    sum: i64,
}

impl<'a> Appearances<'a> {
    pub(super) fn new(tables: &'a Tables, residuals: &'a [f64]) -> Self {
        let max = residuals.iter().fold(0.0_f64, |max, residual| max.max(residual.abs()));
        let unit = if max > 0.0 { STEPS / max } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "at most STEPS")]
        let rounded = residuals.iter().map(|residual| (residual * unit).round() as i32).collect();
        let mut counts = vec![0_u32; tables.bots() as usize];
        for bot in tables.iter().flat_map(|table| table.bots) {
            counts[*bot as usize] += 1;
        }
        let mut ends = Vec::with_capacity(counts.len());
        let mut end = 0;
        for count in counts {
            ends.push(end);
            end += count;
        }
        // Each end is first the start of the bot's tables, and moves with each table that is
        // written.
        let mut of_bots = vec![0; end as usize];
        for stratum in 0..tables.strata() {
            for (number, TableView { bots, .. }) in
                (0..).zip(tables.iter()).filter(|(_, table)| table.stratum == stratum)
            {
                for bot in bots {
                    let place = &mut ends[*bot as usize];
                    of_bots[*place as usize] = number;
                    *place += 1;
                }
            }
        }
        Self { tables, residuals, rounded, of_bots, ends }
    }

    /// The tables of a bot, each with the index of the bot's score.
    fn of(&self, bot: u32) -> impl Iterator<Item = (TableView<'a>, usize)> {
        let end = self.ends[bot as usize] as usize;
        let start = bot.checked_sub(1).map_or(0, |previous| self.ends[previous as usize] as usize);
        let tables = self.tables;
        self.of_bots[start..end].iter().map(move |number| {
            let table = tables.table(*number as usize);
            let seat = table.bots.iter().position(|other| *other == bot).unwrap_or(0);
            let place = table.places.start + seat;
            (table, place)
        })
    }

    /// Tests a bot with each partner.
    pub(super) fn test(
        &self,
        bot: u32,
        seed: Seed,
        budget: &mut Budget,
        tested: &mut Vec<TestedPair>,
    ) {
        let strata = usize::from(self.tables.strata());
        let mut bot_residuals = vec![Vec::new(); strata];
        let mut observed: BTreeMap<u32, Observed> = BTreeMap::new();
        for (table, place) in self.of(bot) {
            let stratum = usize::from(table.stratum);
            let residual = i64::from(self.rounded[place]);
            bot_residuals[stratum].push(residual);
            for partner in table.bots.iter().filter(|other| **other != bot) {
                let observation = observed.entry(*partner).or_default();
                observation.tables.resize(strata, 0);
                observation.tables[stratum] += 1;
                observation.sum += residual;
            }
        }
        // Partners that met the bot equally often, with their sums.
        let mut groups: BTreeMap<Vec<u32>, Vec<(i64, u32)>> = BTreeMap::new();
        for (partner, Observed { tables, sum }) in observed {
            let is_testable = |(together, all): (&u32, &Vec<i64>)| {
                *together > 0 && (*together as usize) < all.len()
            };
            if tables.iter().zip(&bot_residuals).any(is_testable) {
                groups.entry(tables).or_default().push((sum, partner));
            }
        }
        let mut dice = seed.dice(u64::from(self.tables.entrant(bot).0.unsigned_abs()));
        for (counts, mut partners) in groups {
            partners.sort_unstable();
            let tables: u32 = counts.iter().sum();
            let max_draws = budget.draws(tables);
            let sums: Vec<i64> = partners.iter().map(|(sum, _)| *sum).collect();
            let (ps, draws) =
                p_values(&sums, max_draws, || draw(&mut bot_residuals, &counts, &mut dice));
            budget.spend(draws, tables);
            let pair =
                |((_, partner), p): (&(i64, u32), f64)| TestedPair { bot, partner: *partner, p };
            tested.extend(partners.iter().zip(ps).map(pair));
        }
    }

    /// Compares a bot's tables with a partner and its tables without the partner.
    pub(super) fn compare(&self, bot: u32, partner: u32) -> Comparison {
        let mut tables = [0_usize; 2];
        let mut scores = [0.0; 2];
        let mut residuals = [0.0; 2];
        for (table, place) in self.of(bot) {
            let index = usize::from(table.bots.contains(&partner));
            tables[index] += 1;
            scores[index] += self.tables.scores()[place];
            residuals[index] += self.residuals[place];
        }
        let mean = |sums: [f64; 2], index: usize| sums[index] / float(tables[index]);
        Comparison {
            together: tables[1],
            mean_with: mean(scores, 1),
            mean_without: mean(scores, 0),
            difference: mean(residuals, 1) - mean(residuals, 0),
        }
    }
}

/// The sum of `counts[s]` randomly drawn numbers from each stratum s.
fn draw(strata: &mut [Vec<i64>], counts: &[u32], dice: &mut Dice) -> i64 {
    let mut sum = 0;
    for (numbers, count) in strata.iter_mut().zip(counts) {
        // A partial shuffle. All choices are equally likely after any earlier order.
        for place in 0..*count as usize {
            let other = place + dice.index(numbers.len() - place);
            numbers.swap(place, other);
            sum += numbers[place];
        }
    }
    sum
}

/// The p-values of sums in ascending order, and the number of draws.
fn p_values(sums: &[i64], max_draws: u64, mut draw: impl FnMut() -> i64) -> (Vec<f64>, u64) {
    let mut reached = vec![0_u64; sums.len()];
    let mut ps = Vec::with_capacity(sums.len());
    let mut draws = 0;
    // A draw that reaches a larger sum also reaches all smaller sums, so the sums finish in order.
    while ps.len() < sums.len() && draws < max_draws {
        draws += 1;
        let drawn_sum = draw();
        for (sum, reached) in sums.iter().zip(&mut reached).skip(ps.len()) {
            if *sum > drawn_sum {
                break;
            }
            *reached += 1;
        }
        while reached.get(ps.len()).is_some_and(|reached| *reached >= ENOUGH) {
            ps.push(ratio(ENOUGH, draws));
        }
    }
    for reached in &reached[ps.len()..] {
        ps.push(ratio(reached + 1, draws + 1));
    }
    (ps, draws)
}

#[expect(clippy::cast_precision_loss, reason = "a share is shown with a few digits")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two of the numbers 0, 1, 2, 4 and 8 have ten sums: three are 9 or more, and all are 1 or
    /// more.
    #[test]
    fn p_values_are_shares_of_all_draws() {
        let mut strata = [vec![0, 1, 2, 4, 8]];
        let mut dice = Seed::of_text("shares").dice(0);
        let max_draws = 20_000;
        let sums = [1, 9, 12, 13];
        let (ps, draws) = p_values(&sums, max_draws, || draw(&mut strata, &[2], &mut dice));
        assert!((ps[0] - 1.0).abs() < 1e-9);
        assert!((ps[1] - 0.3).abs() < 0.2, "{}", ps[1]);
        assert!((ps[2] - 0.1).abs() < 0.07, "{}", ps[2]);
        assert!((ps[3] - 1.0 / 20_001.0).abs() < 1e-12, "{}", ps[3]);
        assert_eq!(draws, max_draws);
    }

    #[test]
    fn draws_stay_within_strata() {
        let mut strata = [vec![1, 1, 1], vec![100, 100]];
        let mut dice = Seed::of_text("strata").dice(0);
        for _ in 0..100 {
            assert_eq!(draw(&mut strata, &[2, 1], &mut dice), 102);
        }
    }

    #[test]
    fn the_budget_of_draws_runs_out() {
        let mut budget = Budget::new(1000, 0.05);
        assert_eq!(budget.draws(3), MAX_DRAWS);
        budget.spend(MAX_DRAWN, 1);
        assert_eq!(budget.draws(3), MIN_DRAWS);
        assert_eq!(Budget::new(10, 0.05).draws(3), 7200);
    }
}

//! Simulated tournaments: honest workers are rarely flagged, and only the false worker is.

use std::collections::{BTreeMap, BTreeSet};

use super::{Moments, Residual, WorkerSample, residuals};

/// A probability below this bound suspends a worker.
const BOUND: f64 = 0.001;

/// Random numbers from 0 to 1.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 32).unwrap()) / f64::from(u32::MAX)
    }

    fn below(&mut self, bound: u32) -> u32 {
        (0..bound).find(|least| self.next() * f64::from(bound - least) < 1.0).unwrap_or(0)
    }
}

/// A worker's report of a match between two bots; the first one won or lost.
type Report = fn(worker: u32, bots: [u32; 2], first_won: bool) -> bool;

fn honest(_: u32, _: [u32; 2], first_won: bool) -> bool {
    first_won
}

/// Worker 0 reports that bot 3 wins in every seat.
fn favours_a_bot(worker: u32, bots: [u32; 2], first_won: bool) -> bool {
    match (worker, bots) {
        (0, [3, _]) => true,
        (0, [_, 3]) => false,
        _ => first_won,
    }
}

/// Worker 0 reports the opposite.
fn inverts(worker: u32, _: [u32; 2], first_won: bool) -> bool {
    first_won != (worker == 0)
}

/// A double round robin of 12 bots, played `rounds` times by `workers` workers. The matches of a lot
/// have the same outcome, so they are not independent of each other.
fn tournament(chance: &mut Chance, workers: u32, rounds: u32, report: Report) -> Vec<Share> {
    let strengths: Vec<f64> = (0..12).map(|_| chance.next()).collect();
    let mut lots: BTreeMap<(u32, u32, u32), (f64, f64)> = BTreeMap::new();
    let mut lot = 0;
    for _ in 0..rounds {
        for first in 0..12 {
            for second in (0..12).filter(|second| *second != first) {
                lot += 1;
                let worker = chance.below(workers);
                // Deterministic bots: both matches of the lot have the same result.
                let strength = |bot: u32| strengths[bot as usize];
                let won = 2.0 * chance.next() < 1.0 + strength(first) - strength(second);
                for _ in 0..2 {
                    let won = report(worker, [first, second], won);
                    for (bot, points) in [(first, won), (second, !won)] {
                        let (count, total) = lots.entry((worker, lot, bot)).or_default();
                        *count += 1.0;
                        *total += f64::from(u8::from(points));
                    }
                }
            }
        }
    }
    summed(&lots)
}

type Share = WorkerSample<u32, u32>;

fn summed(lots: &BTreeMap<(u32, u32, u32), (f64, f64)>) -> Vec<Share> {
    let mut sums: BTreeMap<(u32, u32), Moments> = BTreeMap::new();
    for ((worker, _, bot), (count, total)) in lots {
        sums.entry((*worker, *bot)).or_default().add(&Moments {
            lots: 1.0,
            count: *count,
            count_squares: count * count,
            total: *total,
            total_squares: total * total,
            products: count * total,
            most_count: *count,
            least: *total,
            greatest: *total,
        });
    }
    let sample = |((worker, question), moments)| WorkerSample { worker, question, moments };
    sums.into_iter().map(sample).collect()
}

fn named(found: &BTreeMap<u32, Residual<u32>>) -> Vec<u32> {
    let is_named = |residual: &Residual<u32>| residual.p() < BOUND && !residual.is_ambiguous;
    found.iter().filter(|(_, residual)| is_named(residual)).map(|(worker, _)| *worker).collect()
}

#[test]
fn honest_workers_are_flagged_at_the_stated_rate() {
    let mut chance = Chance(7);
    let mut below_5 = 0;
    let mut accused = 0;
    for _ in 0..200 {
        let found = residuals(&tournament(&mut chance, 5, 2, honest), &BTreeSet::new(), BOUND);
        assert_eq!(found.len(), 5);
        below_5 += found.values().filter(|residual| residual.p() < 0.05).count();
        accused += named(&found).len();
    }
    // 1000 workers: by the definition of p, at most 50 are below 0.05; at most one is flagged.
    assert!(below_5 <= 50, "{below_5}");
    assert!(accused <= 1, "{accused}");
}

#[test]
fn only_the_worker_that_favours_a_bot_is_flagged() {
    let mut chance = Chance(11);
    for _ in 0..20 {
        let played = tournament(&mut chance, 3, 30, favours_a_bot);
        let found = residuals(&played, &BTreeSet::new(), BOUND);
        assert_eq!(named(&found), [0], "{found:?}");
        assert_eq!(found[&0].question, 3);
    }
}

#[test]
fn a_false_worker_does_not_incriminate_honest_ones() {
    let mut chance = Chance(13);
    for workers in [3, 5] {
        let found =
            residuals(&tournament(&mut chance, workers, 20, inverts), &BTreeSet::new(), BOUND);
        assert_eq!(named(&found), [0], "{found:?}");
        // The same with a false worker that is already known.
        let known = BTreeSet::from([0]);
        let found = residuals(&tournament(&mut chance, workers, 20, inverts), &known, BOUND);
        assert_eq!(named(&found), [0], "{found:?}");
    }
}

#[test]
fn of_two_workers_that_differ_none_is_flagged() {
    let mut chance = Chance(17);
    let played = tournament(&mut chance, 2, 20, inverts);
    let found = residuals(&played, &BTreeSet::new(), BOUND);
    assert!(found.values().all(|residual| residual.p() < BOUND && residual.is_ambiguous));
    // If one of them is known to be false, it is flagged.
    assert_eq!(named(&residuals(&played, &BTreeSet::from([0]), BOUND)), [0]);
}

#[test]
fn constant_or_incomparable_samples_are_no_evidence() {
    let sample = |worker, question, total: f64| {
        let moments = Moments {
            lots: 10.0,
            count: 10.0,
            count_squares: 10.0,
            total,
            total_squares: total,
            products: total,
            most_count: 1.0,
            least: f64::from(u8::from(total >= 10.0)),
            greatest: f64::from(u8::from(total > 0.0)),
        };
        WorkerSample { worker, question, moments }
    };
    let none = BTreeSet::new();
    assert!(residuals::<u32, u32>(&[], &none, BOUND).is_empty());
    assert!(residuals(&[sample(1, 1, 4.0), sample(2, 2, 9.0)], &none, BOUND).is_empty());
    assert!(residuals(&[sample(1, 1, 10.0), sample(2, 1, 10.0)], &none, BOUND).is_empty());
    let found = residuals(&[sample(1, 1, 10.0), sample(2, 1, 0.0)], &none, BOUND);
    // Ten wins for one worker and none for the other: χ² = 19 for twenty lots. The bound is weaker.
    assert!((found[&1].chi_square - 19.0).abs() < 1e-9, "{found:?}");
    assert!((0.001..0.1).contains(&found[&1].p()), "{found:?}");
}

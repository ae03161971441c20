//! Simulated tournaments: only the dishonest worker is flagged, and honest workers rarely.

use std::collections::{BTreeMap, BTreeSet};

use super::{Moments, Residual, WorkerSample, residuals};

/// A probability below this bound suspends a worker.
const BOUND: f64 = 0.001;

/// Random numbers from 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 32).unwrap()) / f64::from(u32::MAX)
    }

    fn below(&mut self, bound: u32) -> u32 {
        (0..bound).find(|number| self.next() * f64::from(bound - number) < 1.0).unwrap_or(0)
    }
}

/// A worker's report of a match between two bots: whether the first bot won.
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

/// Worker 0 reports the opposite result.
fn inverts(worker: u32, _: [u32; 2], first_won: bool) -> bool {
    first_won != (worker == 0)
}

/// A double round robin of 12 bots, played `rounds` times by `workers` workers. The matches of a
/// lot have the same outcome, so they are not independent of each other.
fn tournament(random: &mut Random, workers: u32, rounds: u32, report: Report) -> Vec<Sample> {
    let strengths: Vec<f64> = (0..12).map(|_| random.next()).collect();
    let mut lots: BTreeMap<(u32, u32, u32), (f64, f64)> = BTreeMap::new();
    let mut lot = 0;
    for _ in 0..rounds {
        for first in 0..12 {
            for second in (0..12).filter(|second| *second != first) {
                lot += 1;
                let worker = random.below(workers);
                // Deterministic bots: both matches of the lot have the same result.
                let strength = |bot: u32| strengths[bot as usize];
                let won = 2.0 * random.next() < 1.0 + strength(first) - strength(second);
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
    samples(&lots)
}

type Sample = WorkerSample<u32, u32>;

fn samples(lots: &BTreeMap<(u32, u32, u32), (f64, f64)>) -> Vec<Sample> {
    let mut sums: BTreeMap<(u32, u32), Moments> = BTreeMap::new();
    for ((worker, _, bot), (count, total)) in lots {
        sums.entry((*worker, *bot)).or_default().add(&Moments {
            lots: 1.0,
            count: *count,
            count_squares: count * count,
            total: *total,
            total_squares: total * total,
            products: count * total,
            max_count: *count,
            min: *total,
            max: *total,
        });
    }
    let sample = |((worker, question), moments)| WorkerSample { worker, question, moments };
    sums.into_iter().map(sample).collect()
}

/// The flagged workers.
fn flagged(residuals: &BTreeMap<u32, Residual<u32>>) -> Vec<u32> {
    let is_flagged = |residual: &Residual<u32>| residual.p() < BOUND && !residual.is_ambiguous;
    residuals
        .iter()
        .filter(|(_, residual)| is_flagged(residual))
        .map(|(worker, _)| *worker)
        .collect()
}

#[test]
fn honest_workers_are_flagged_at_the_stated_rate() {
    let mut random = Random(7);
    let mut below_5 = 0;
    let mut flagged_workers = 0;
    for _ in 0..200 {
        let result = residuals(&tournament(&mut random, 5, 2, honest), &BTreeSet::new(), BOUND);
        assert_eq!(result.len(), 5);
        below_5 += result.values().filter(|residual| residual.p() < 0.05).count();
        flagged_workers += flagged(&result).len();
    }
    // 1000 workers: by the definition of p, at most 50 are below 0.05; at most one is flagged.
    assert!(below_5 <= 50, "{below_5}");
    assert!(flagged_workers <= 1, "{flagged_workers}");
}

#[test]
fn only_the_worker_that_favours_a_bot_is_flagged() {
    let mut random = Random(11);
    for _ in 0..20 {
        let samples = tournament(&mut random, 3, 30, favours_a_bot);
        let result = residuals(&samples, &BTreeSet::new(), BOUND);
        assert_eq!(flagged(&result), [0], "{result:?}");
        assert_eq!(result[&0].question, 3);
    }
}

#[test]
fn a_dishonest_worker_does_not_make_others_suspicious() {
    let mut random = Random(13);
    for workers in [3, 5] {
        let result =
            residuals(&tournament(&mut random, workers, 20, inverts), &BTreeSet::new(), BOUND);
        assert_eq!(flagged(&result), [0], "{result:?}");
        // The result is the same if the dishonest worker is already untrusted.
        let untrusted = BTreeSet::from([0]);
        let result = residuals(&tournament(&mut random, workers, 20, inverts), &untrusted, BOUND);
        assert_eq!(flagged(&result), [0], "{result:?}");
    }
}

#[test]
fn neither_of_two_different_workers_is_flagged() {
    let mut random = Random(17);
    let samples = tournament(&mut random, 2, 20, inverts);
    let result = residuals(&samples, &BTreeSet::new(), BOUND);
    assert!(result.values().all(|residual| residual.p() < BOUND && residual.is_ambiguous));
    // An untrusted worker is flagged.
    assert_eq!(flagged(&residuals(&samples, &BTreeSet::from([0]), BOUND)), [0]);
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
            max_count: 1.0,
            min: f64::from(u8::from(total >= 10.0)),
            max: f64::from(u8::from(total > 0.0)),
        };
        WorkerSample { worker, question, moments }
    };
    let none = BTreeSet::new();
    assert!(residuals::<u32, u32>(&[], &none, BOUND).is_empty());
    assert!(residuals(&[sample(1, 1, 4.0), sample(2, 2, 9.0)], &none, BOUND).is_empty());
    assert!(residuals(&[sample(1, 1, 10.0), sample(2, 1, 10.0)], &none, BOUND).is_empty());
    let result = residuals(&[sample(1, 1, 10.0), sample(2, 1, 0.0)], &none, BOUND);
    // One worker has ten wins and the other none, so χ² is 19 for twenty lots. The bound is weaker.
    assert!((result[&1].chi_square - 19.0).abs() < 1e-9, "{result:?}");
    assert!((0.001..0.1).contains(&result[&1].p()), "{result:?}");
}

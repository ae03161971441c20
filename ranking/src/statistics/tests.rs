//! Simulated leagues, whose truth is known, and published examples.

use arbiter_games::Seed;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use rand_distr::{Distribution as _, Normal, StandardNormal};

use super::*;
use crate::ScoredMatch;

/// Simulated leagues of a test.
const LEAGUES: u32 = 2000;

/// The published example of the R package `csranks`: ten equally spaced estimates from 1 to 3, with
/// a standard error of 0.2 each.
#[test]
fn the_published_example_of_rank_sets_is_reproduced() {
    let means: Vec<_> = (0..10).map(|number| 1.0 + 2.0 * f64::from(number) / 9.0).collect();
    let covariance = Covariance::independent(&[0.2; 10]);
    let shrinkage = Shrinkage::of(&means, &covariance);
    let ranked = vec![true; means.len()];
    let replicates =
        Replicates::draw(&covariance, &means, &ranked, &shrinkage, Seed::of_text("csranks"));
    let order = CertainOrder::of(&means, &ranked, &covariance, &replicates);
    let sets: Vec<_> = (0..10).map(|entrant| order.rank_set(entrant)).collect();
    let best = [7, 6, 5, 4, 3, 2, 1, 1, 1, 1];
    let worst = [10, 10, 10, 10, 9, 8, 7, 6, 5, 4];
    assert_eq!(sets, best.into_iter().zip(worst).collect::<Vec<_>>());
}

/// Adds a match of a block. The transcript is a number, equal for repeated matches only.
fn add(blocks: &mut Blocks, block: i64, transcript: u64, seats: &[usize], scores: &[i64]) {
    let seats: Vec<_> = seats.iter().map(|seat| Entrant(i32::try_from(*seat).unwrap())).collect();
    let played =
        ScoredMatch { seats: &seats, scores, carried: &[], forfeits: &[], bad_answers: &[] };
    blocks.add(&Measured { block, board: None, transcript, played });
}

fn entrants(count: usize) -> Vec<Entrant> {
    (0..i32::try_from(count).unwrap()).map(Entrant).collect()
}

/// A league in which each pair plays some blocks of two legs. The luck of a deal helps one bot in
/// both legs, and the luck of a game in one.
fn league(strengths: &[f64], blocks_per_pair: usize, random: &mut ChaCha20Rng) -> Blocks {
    let mut blocks = Blocks::new(false);
    let mut block = 0;
    let mut transcript = 0;
    for first in 0..strengths.len() {
        for second in first + 1..strengths.len() {
            for _ in 0..blocks_per_pair {
                block += 1;
                let deal: f64 = StandardNormal.sample(random);
                for seats in [[first, second], [second, first]] {
                    transcript += 1;
                    let game: f64 = StandardNormal.sample(random);
                    let lead = strengths[first] - strengths[second] + 10.0 * deal + 10.0 * game;
                    let points = round(lead);
                    let scores =
                        if seats[0] == first { [points, -points] } else { [-points, points] };
                    add(&mut blocks, block, transcript, &seats, &scores);
                }
            }
        }
    }
    blocks
}

/// Whether each rank set has the ranks that are true for these strengths. Equal strengths share
/// their ranks.
fn holds_the_truth(statistics: &Statistics, strengths: &[f64]) -> bool {
    statistics.entrants.iter().zip(strengths).all(|(entrant, strength)| {
        // Without an interval nothing is claimed.
        let Some((best, worst)) = entrant.rank_set else { return true };
        let above = strengths.iter().filter(|other| *other > strength).count();
        let below = strengths.iter().filter(|other| *other < strength).count();
        best <= 1 + above && strengths.len() - below <= worst
    })
}

/// The share of leagues whose rank sets are all true.
fn coverage(mut simulate: impl FnMut(&mut ChaCha20Rng) -> (Statistics, Vec<f64>)) -> f64 {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let mut covered = 0;
    for _ in 0..LEAGUES {
        let (statistics, strengths) = simulate(&mut random);
        covered += u32::from(holds_the_truth(&statistics, &strengths));
    }
    f64::from(covered) / f64::from(LEAGUES)
}

/// Equal strengths are the hardest case: each difference that is claimed is wrong.
#[test]
fn rank_sets_hold_the_truth_for_equal_bots() {
    for (bots, blocks) in [(2, 2), (2, 6), (3, 2), (4, 2), (6, 2), (6, 5), (12, 3)] {
        let covered = coverage(|random| {
            let strengths = vec![0.0; bots];
            let mut blocks = league(&strengths, blocks, random);
            (Statistics::of(&entrants(bots), |_| true, &mut blocks, Seed([7; 32])), strengths)
        });
        assert!(covered >= 0.94, "{bots} bots, {blocks} blocks: {covered}");
    }
}

#[test]
fn rank_sets_hold_the_truth_for_different_bots() {
    let covered = coverage(|random| {
        let strengths: Vec<f64> =
            (0..8).map(|_| Normal::new(0.0, 4.0).unwrap().sample(random)).collect();
        let mut blocks = league(&strengths, 4, random);
        (Statistics::of(&entrants(8), |_| true, &mut blocks, Seed([7; 32])), strengths)
    });
    assert!(covered >= 0.94, "{covered}");
}

/// Tables of four whose bots meet once: the tables are drawn too.
#[test]
fn rank_sets_hold_the_truth_for_fresh_tables() {
    for tables in [9, 63] {
        let covered = coverage(|random| {
            let mut blocks = Blocks::new(false);
            for block in 0..tables {
                // At first in turn, so that each bot has four tables. Then any four bots.
                let in_turn = (0..4).map(|seat| usize::try_from(block + seat).unwrap() % 9);
                let seats: Vec<_> = if block < 9 { in_turn.collect() } else { any_four(9, random) };
                let scores: Vec<_> = seats.iter().map(|_| round(100.0 * luck(random))).collect();
                add(&mut blocks, block, block.unsigned_abs(), &seats, &scores);
            }
            (Statistics::of(&entrants(9), |_| true, &mut blocks, Seed([7; 32])), vec![0.0; 9])
        });
        assert!(covered >= 0.94, "{tables} tables: {covered}");
    }
}

/// Four different bots of some bots.
fn any_four(bots: usize, random: &mut ChaCha20Rng) -> Vec<usize> {
    let mut seats: Vec<_> = (0..bots).collect();
    for place in 0..4 {
        let other = place + below(random, bots - place);
        seats.swap(place, other);
    }
    seats.truncate(4);
    seats
}

/// Episodes that all bots play: a block has all of them.
#[test]
fn rank_sets_hold_the_truth_for_episodes() {
    for episodes in [2, 3, 25] {
        let covered = coverage(|random| {
            let mut blocks = Blocks::new(true);
            for episode in 0..episodes {
                for table in 0..5 {
                    let seats: Vec<_> = (4 * table..4 * table + 4).collect();
                    let chips = |_: &usize| round(200.0 + 50.0 * luck(random));
                    let scores: Vec<_> = seats.iter().map(chips).collect();
                    let transcript = i64::try_from(table).unwrap() + 5 * episode;
                    add(&mut blocks, episode, transcript.unsigned_abs(), &seats, &scores);
                }
            }
            (Statistics::of(&entrants(20), |_| true, &mut blocks, Seed([7; 32])), vec![0.0; 20])
        });
        assert!(covered >= 0.94, "{episodes} episodes: {covered}");
    }
}

/// A standard normal number.
fn luck(random: &mut ChaCha20Rng) -> f64 {
    StandardNormal.sample(random)
}

/// Among all pairs that are said to be in order with a probability of about p, a share of p is, in
/// fields that differ little and in fields that differ much.
#[test]
fn the_probability_that_a_bot_is_above_another_is_calibrated() {
    let mut random = ChaCha20Rng::seed_from_u64(2);
    let mut bins = [(0.0, 0.0, 0.0); 10];
    for _ in 0..2 * LEAGUES {
        let logarithm: f64 = StandardNormal.sample(&mut random);
        let spread = 3.0 * logarithm.exp();
        let strengths: Vec<f64> =
            (0..10).map(|_| Normal::new(0.0, spread).unwrap().sample(&mut random)).collect();
        let mut blocks = league(&strengths, 3, &mut random);
        let statistics = Statistics::of(&entrants(10), |_| true, &mut blocks, Seed([7; 32]));
        for first in 0..10 {
            for second in first + 1..10 {
                let pair = [first, second].map(|bot| Entrant(i32::try_from(bot).unwrap()));
                let said = statistics.pair(pair[0], pair[1]).unwrap().probability.unwrap();
                let bin = &mut bins[bin_of(said)];
                bin.0 += 1.0;
                bin.1 += said;
                bin.2 += f64::from(u8::from(strengths[first] > strengths[second]));
            }
        }
    }
    for (pairs, said, above) in bins {
        let error: f64 = (said - above) / pairs;
        assert!(error.abs() <= 0.02, "{bins:?}");
    }
}

/// Whether the first rank is said with the probability that it has.
#[test]
fn the_probability_of_the_first_rank_is_calibrated() {
    let mut random = ChaCha20Rng::seed_from_u64(3);
    let mut said = 0.0;
    let mut best = 0.0;
    for _ in 0..LEAGUES {
        let strengths: Vec<f64> =
            (0..10).map(|_| Normal::new(0.0, 4.0).unwrap().sample(&mut random)).collect();
        let mut blocks = league(&strengths, 4, &mut random);
        let statistics = Statistics::of(&entrants(10), |_| true, &mut blocks, Seed([7; 32]));
        let leader = statistics.entrants.iter().max_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap();
        said += leader.top[0];
        let leader = usize::try_from(leader.entrant.0).unwrap();
        best += f64::from(u8::from(strengths.iter().all(|other| *other <= strengths[leader])));
    }
    let error = (said - best) / f64::from(LEAGUES);
    assert!(error.abs() <= 0.02, "said {said}, was {best}");
}

/// A hundred games of two bots without chance are two different games, and the result is exact.
#[test]
fn repeated_matches_are_one_observation() {
    let mut blocks = Blocks::new(false);
    for block in 0..100 {
        let odd = usize::from(block % 2 == 1);
        let (seats, scores) = if odd == 1 { ([1, 0], [2, 0]) } else { ([0, 1], [2, 0]) };
        add(&mut blocks, block, odd as u64, &seats, &scores);
    }
    let statistics = Statistics::of(&entrants(2), |_| true, &mut blocks, Seed([0; 32]));
    assert_eq!((statistics.matches, statistics.distinct_matches), (100, 2));
    for entrant in &statistics.entrants {
        assert_eq!((entrant.matches, entrant.distinct_matches), (100, 2));
        assert_eq!(entrant.precision, Precision::Exact);
        // Both win with the first seat: they are equal, and certainly so.
        assert_eq!((entrant.mean, entrant.rank_set), (1.0, Some((1, 2))));
    }
}

/// Tables of four of sixteen bots, each with these numbers of blocks.
fn tables(blocks_of: &[usize]) -> Statistics {
    let mut random = ChaCha20Rng::seed_from_u64(5);
    let mut blocks = Blocks::new(false);
    let mut block = 0;
    for (table, count) in blocks_of.iter().enumerate() {
        // Rows and columns of a square, then its diagonals: each bot has several tables.
        let seat = |seat: usize| match table / 4 {
            0 => 4 * table + seat,
            1 => table % 4 + 4 * seat,
            _ => 4 * seat + (table + seat) % 4,
        };
        let seats: Vec<_> = (0..4).map(seat).collect();
        for _ in 0..*count {
            block += 1;
            let scores: Vec<_> = seats.iter().map(|_| round(100.0 * luck(&mut random))).collect();
            add(&mut blocks, block, block.unsigned_abs(), &seats, &scores);
        }
    }
    Statistics::of(&entrants(16), |_| true, &mut blocks, Seed([7; 32]))
}

/// One table whose second seed is not played yet changes nothing for bots that are not at it.
#[test]
fn one_table_with_one_seed_does_not_change_what_all_intervals_are_for() {
    let statistics = tables(&[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
    assert_eq!(statistics.basis, Basis::Seeds);
    let unknown = statistics.entrants.iter().filter(|entrant| entrant.margin.is_none());
    let unknown: Vec<_> = unknown.map(|entrant| entrant.precision).collect();
    assert_eq!(unknown, [Precision::Unknown(NoInterval::OneSeed); 4]);
}

#[test]
fn tables_that_meet_once_are_observations_themselves() {
    for played in [[1; 12], [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1]] {
        let statistics = tables(&played);
        assert_eq!(statistics.basis, Basis::Tables, "{played:?}");
        assert!(statistics.entrants.iter().all(|entrant| entrant.margin.is_some()));
    }
}

#[test]
fn one_deal_for_each_pair_has_no_interval() {
    let mut blocks = Blocks::new(false);
    for (block, pair) in [[0, 1], [0, 2], [1, 2]].into_iter().enumerate() {
        let number = i64::try_from(block).unwrap();
        add(&mut blocks, number, 2 * block as u64, &pair, &[3, 1]);
        add(&mut blocks, number, 2 * block as u64 + 1, &[pair[1], pair[0]], &[2, 2]);
    }
    let statistics = Statistics::of(&entrants(4), |_| true, &mut blocks, Seed([0; 32]));
    for entrant in &statistics.entrants[..3] {
        assert_eq!(entrant.precision, Precision::Unknown(NoInterval::OneSeed));
        assert_eq!((entrant.rank_set, entrant.margin), (None, None));
        assert_eq!((&entrant.top[..], entrant.matches_needed), (&[][..], None));
    }
    let idle = &statistics.entrants[3];
    assert_eq!(idle.precision, Precision::Unknown(NoInterval::NoMatches));
    let pair = statistics.pair(Entrant(0), Entrant(1)).unwrap();
    assert_eq!((pair.margin, pair.probability, pair.matches_needed), (None, None, None));
}

/// Two games, both won: that a bot always wins does not follow.
#[test]
fn a_perfect_score_after_two_different_games_has_no_interval() {
    let mut blocks = Blocks::new(false);
    add(&mut blocks, 0, 0, &[0, 1], &[2, 0]);
    add(&mut blocks, 1, 1, &[0, 1], &[2, 0]);
    let statistics = Statistics::of(&entrants(2), |_| true, &mut blocks, Seed([0; 32]));
    for entrant in &statistics.entrants {
        assert_eq!(entrant.precision, Precision::Unknown(NoInterval::EqualOutcomes));
    }
}

/// A bot that won all its games against one opponent, and some against another: the games of the
/// second pair show that games have chance.
#[test]
fn a_pair_with_equal_outcomes_has_the_chance_of_the_others() {
    let mut blocks = Blocks::new(false);
    for (block, points) in (0..).zip([2, 0, 2, 1, 0, 2]) {
        add(&mut blocks, 2 * block, 2 * block.unsigned_abs(), &[0, 1], &[2, 0]);
        let transcript = 2 * block.unsigned_abs() + 1;
        add(&mut blocks, 2 * block + 1, transcript, &[1, 2], &[points, 2 - points]);
    }
    let statistics = Statistics::of(&entrants(3), |_| true, &mut blocks, Seed([0; 32]));
    let first = &statistics.entrants[0];
    assert!(first.margin.unwrap() > 0.1, "{first:?}");
}

#[test]
fn the_same_results_give_the_same_statistics_in_any_order() {
    let mut random = ChaCha20Rng::seed_from_u64(4);
    let strengths = [3.0, 2.0, 1.0, 0.0];
    let forward = league(&strengths, 3, &mut random);
    let mut backward = Blocks::new(false);
    backward.seats = forward.seats.iter().rev().copied().collect();
    backward.matches = forward.matches.iter().rev().copied().collect();
    let [first, second] = [forward, backward]
        .map(|mut blocks| Statistics::of(&entrants(4), |_| true, &mut blocks, Seed([5; 32])));
    assert_eq!(first.entrants, second.entrants);
}

/// The variance of a mean falls with the number of matches, so a difference of half an interval
/// needs four times as many: three times as many more.
#[test]
fn games_still_needed_follow_from_the_width_of_the_interval() {
    assert_eq!(matches_needed(2.0, 1.0, 100), Some(300));
    assert_eq!(matches_needed(1.0, -2.0, 100), Some(0));
    assert_eq!(matches_needed(0.0, 0.0, 100), Some(0), "it is exact");
    assert_eq!(matches_needed(1.0, 0.0, 100), None, "equal means");
}

fn bin_of(probability: f64) -> usize {
    (0..9).take_while(|bin| f64::from(*bin + 1) / 10.0 <= probability).count()
}

#[expect(clippy::cast_possible_truncation, reason = "it is small")]
fn round(number: f64) -> i64 {
    number.round() as i64
}

/// A random number below `limit`.
fn below(random: &mut ChaCha20Rng, limit: usize) -> usize {
    use rand_distr::Uniform;
    Uniform::new(0, limit).unwrap().sample(random)
}

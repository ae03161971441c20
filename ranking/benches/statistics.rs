//! The time to compute the statistics of a large edition: `cargo bench -p arbiter-ranking`.
//!
//! Each of 10 000 bots meets 50 others with two deals, and plays each deal with both seats: 10⁶
//! matches, 5·10⁵ blocks and 2.5·10⁵ pairs. The target is 10 s for everything, on one processor.

use std::time::Instant;

use arbiter_games::Seed;
use arbiter_ranking::statistics::{Blocks, Measured, Statistics};
use arbiter_ranking::{Entrant, PairResults, ScoredMatch, ratings};

const BOTS: i32 = 10_000;
/// Each bot meets this many bots after it on a circle, and as many before it.
const DISTANCES: i32 = 25;
/// So opponents are spread over the field, as in a random design.
const STRIDE: i32 = 197;
const DEALS: i64 = 2;

fn main() {
    let began = Instant::now();
    let mut blocks = Blocks::new(false);
    let mut pairs = PairResults::default();
    let mut number = 0;
    for (first, distance) in (0..BOTS).flat_map(|first| (1..=DISTANCES).map(move |d| (first, d))) {
        let second = (first + distance * STRIDE) % BOTS;
        let pair = i64::from(first * DISTANCES + distance);
        for deal in 0..DEALS {
            for seats in [[first, second], [second, first]] {
                number += 1;
                add(&mut blocks, &mut pairs, (pair * DEALS + deal, number), seats);
            }
        }
    }
    println!("{number} matches of {BOTS} bots added: {:.1?}", began.elapsed());
    let entrants: Vec<_> = (0..BOTS).map(Entrant).collect();
    let computing = Instant::now();
    let statistics = Statistics::of(&entrants, |_| true, &mut blocks, Seed::of_text("bench"));
    println!("possible ranks and probabilities: {:.1?}", computing.elapsed());
    let computing = Instant::now();
    let ratings = ratings(&entrants, &mut pairs);
    println!("ratings: {:.1?}", computing.elapsed());
    println!("all: {:.1?} (target 10 s)", began.elapsed());
    let last = statistics.entrants.last().and_then(|last| last.rank_set);
    println!("the last bot may have the ranks {last:?}; {:?}", ratings.last());
}

/// Adds a match. Groups of 500 bots are equally strong, the next group is stronger by 1, and luck
/// adds -7 to 8.
fn add(blocks: &mut Blocks, pairs: &mut PairResults, (block, number): (i64, u64), seats: [i32; 2]) {
    let luck = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
    let lead = i64::from(seats[0] / 500 - seats[1] / 500) + luck.cast_signed() - 7;
    let seats = seats.map(Entrant);
    let scores = [lead, -lead];
    let played = ScoredMatch {
        seats: &seats,
        scores: &scores,
        carried: &[],
        forfeits: &[],
        bad_answers: &[],
    };
    blocks.add(&Measured { block, board: None, transcript: number, played });
    pairs.add(block, &played);
}

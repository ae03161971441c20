//! Compares two versions of a bot, block by block. The matches of a block have one seed and differ
//! only in which version plays, so that luck cancels: either both versions meet with seats
//! exchanged, or each takes the same seat at the same table.

use std::cmp::Ordering;

use arbiter_games::{Params, Seed};
use arbiter_ranking::BlockOutcomes;

use crate::failure::Failure;
use crate::play::bots::Entry;
use crate::play::distinct_games::DistinctGames;
use crate::play::plan::{JobKind, Plan};
use crate::play::run::{JobResult, PlayedMatch};

/// The position of the new version among the entries. All after [`OLD`] are their opponents.
pub(crate) const NEW: usize = 0;
/// The position of the old version.
pub(crate) const OLD: usize = 1;
/// The number of matches of a block.
pub(crate) const MATCHES: usize = 2;

/// The minimum number of blocks after which a comparison ends because matches only repeat. Blocks
/// with the same seats then always had the same matches, so the bots and the game seem to use no
/// chance.
const MAX_REPEATED: usize = 20;

/// What the outcome of a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Half points of the new version against the old one, from 0 to 4: two for a win.
    Results,
    /// Points of the new version minus points of the old one, of the first column of the scores.
    Points,
}

/// Plans the blocks: the two versions against each other if there are no opponents.
///
/// # Errors
/// If the game cannot be played so.
pub(crate) fn plan(
    params: Params,
    entries: Vec<Entry>,
    seed: Seed,
    blocks: usize,
) -> Result<Plan, Failure> {
    let opponents = entries.len() - 2;
    let seats = params.seats();
    let size = (opponents + 1).clamp(2, *seats.end());
    let game = params.game().clone();
    let kinds = (0..blocks).flat_map(|block| {
        let seed = seed.derive(&format!("compare {game} {block}"));
        let tables = if opponents == 0 {
            [vec![NEW, OLD], vec![OLD, NEW]]
        } else {
            [NEW, OLD].map(|version| table(version, block, opponents, size))
        };
        tables.map(|seats| (seed, JobKind::Match(seats)))
    });
    Plan::of_jobs(params, entries, kinds)
}

/// The table of a version in a block: its seat and its opponents change from block to block.
fn table(version: usize, block: usize, opponents: usize, size: usize) -> Vec<usize> {
    let first = block / size;
    let mut seats: Vec<_> =
        (0..size - 1).map(|place| OLD + 1 + (first + place) % opponents).collect();
    seats.insert(block % size, version);
    seats
}

/// The blocks that were played.
#[derive(Debug)]
pub(crate) struct Comparison {
    measure: Measure,
    /// The first match of an unfinished block, with its number.
    first: Option<(usize, JobResult)>,
    /// The distinct blocks.
    pub(crate) blocks: DistinctGames,
    /// The outcomes of the blocks.
    pub(crate) outcomes: BlockOutcomes,
    /// Matches of the new version against the old one that it won, drew and lost.
    pub(crate) results: [u64; 3],
}

impl Comparison {
    /// A comparison without matches.
    pub(crate) fn new(measure: Measure) -> Self {
        Self {
            measure,
            first: None,
            blocks: DistinctGames::default(),
            outcomes: BlockOutcomes::default(),
            results: [0; 3],
        }
    }

    /// Adds the match of a job, in the order of the plan. Matches may be missing after an
    /// interruption. Returns the block that it completes.
    pub(crate) fn add(&mut self, number: usize, result: JobResult) -> Option<[JobResult; MATCHES]> {
        let first = match self.first.take() {
            Some((before, first)) if before + 1 == number && number.is_multiple_of(MATCHES) => {
                first
            }
            _ => {
                self.first = Some((number, result));
                return None;
            }
        };
        let block = [first, result];
        let matches = block.each_ref().map(|job| &job.matches[0]);
        for half_points in matches.into_iter().filter_map(half_points) {
            self.results[2 - half_points] += 1;
        }
        self.blocks.add(matches);
        self.outcomes.add(self.outcome(matches));
        Some(block)
    }

    /// Whether more blocks would only repeat the matches.
    pub(crate) fn only_repeats(&self) -> bool {
        self.blocks.only_repeats(MAX_REPEATED)
    }

    fn outcome(&self, block: [&PlayedMatch; MATCHES]) -> i64 {
        match self.measure {
            Measure::Results => {
                let half_points = block.into_iter().filter_map(half_points).sum::<usize>();
                i64::try_from(half_points).expect("at most four")
            }
            Measure::Points => {
                block.into_iter().map(|played| points(played, NEW) - points(played, OLD)).sum()
            }
        }
    }
}

/// An entry's score, if it sat at the table.
fn score(played: &PlayedMatch, entry: usize) -> Option<&[i64]> {
    let seat = played.seats.iter().position(|seated| *seated == entry)?;
    Some(&played.outcome.results[seat].score.0)
}

/// The first component of an entry's score; 0 if it did not sit at the table.
fn points(played: &PlayedMatch, entry: usize) -> i64 {
    score(played, entry).and_then(|score| score.first()).copied().unwrap_or(0)
}

/// The result of the new version against the old one: 2 for a win, 1 for a draw. None if they do
/// not sit at one table.
fn half_points(played: &PlayedMatch) -> Option<usize> {
    Some(match score(played, NEW)?.cmp(score(played, OLD)?) {
        Ordering::Greater => 2,
        Ordering::Equal => 1,
        Ordering::Less => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A match in which the entries have these points.
    fn job(seats: Vec<usize>, points: &[i64]) -> JobResult {
        let scores = seats.iter().map(|entry| vec![points[*entry]]).collect();
        JobResult { matches: vec![PlayedMatch::of_scores(seats, scores)] }
    }

    #[test]
    fn only_whole_blocks_count() {
        let mut comparison = Comparison::new(Measure::Results);
        // Match 2 is missing.
        for (number, is_whole) in [(1, false), (3, false), (4, true), (6, false), (7, false)] {
            let seats = if number % 2 == 1 { vec![NEW, OLD] } else { vec![OLD, NEW] };
            let block = comparison.add(number, job(seats, &[2, 0]));
            assert_eq!(block.is_some(), is_whole, "{number}");
        }
        assert_eq!((comparison.blocks.games, comparison.results), (1, [2, 0, 0]));
        assert_eq!(comparison.outcomes.count(4), 1);
    }

    #[test]
    fn copies_of_matches_with_the_same_seats_show_no_chance() {
        let mut comparison = Comparison::new(Measure::Points);
        let mut play = |block: usize, points: &[i64]| {
            for (number, version) in (2 * block + 1..).zip([NEW, OLD]) {
                let mut seats = vec![2];
                seats.insert(block % 2, version);
                comparison.add(number, job(seats, points));
            }
            comparison.only_repeats()
        };
        // The seats differ from block to block, but each block with the same seats is the same.
        for block in 0..MAX_REPEATED - 1 {
            assert!(!play(block, &[3, 1, 0]), "{block}");
        }
        assert!(play(MAX_REPEATED - 1, &[3, 1, 0]));
        assert!(!play(MAX_REPEATED, &[2, 1, 0]), "a different block shows chance");
    }

    #[test]
    fn both_versions_take_each_seat_against_the_same_opponents() {
        let mut seats_taken = [0; 3];
        for block in 0..6 {
            let new = table(NEW, block, 4, 3);
            let old = table(OLD, block, 4, 3);
            let seat = new.iter().position(|seated| *seated == NEW).unwrap();
            seats_taken[seat] += 1;
            assert_eq!(old[seat], OLD);
            let others = |table: &[usize]| {
                table.iter().copied().filter(|seated| *seated > OLD).collect::<Vec<_>>()
            };
            assert_eq!(others(&new), others(&old));
            assert_ne!(others(&new)[0], others(&new)[1], "no bot has two seats");
        }
        assert_eq!(seats_taken, [2; 3]);
    }
}

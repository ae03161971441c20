//! Compares two versions of a bot, block by block. The matches of a block have one seed and differ
//! only in which version plays, so that luck cancels: either both versions meet with seats
//! exchanged, or each takes the same seat at the same table.

use std::collections::HashSet;

use arbiter_games::{Params, Seed};
use arbiter_ranking::BlockOutcomes;
use arbiter_replay::TranscriptHash;

use crate::failure::Failure;
use crate::play::bots::Entry;
use crate::play::plan::{JobKind, Plan};
use crate::play::run::{JobResult, PlayedMatch};

/// The position of the new version among the entries. All after [`OLD`] are their opponents.
pub(crate) const NEW: usize = 0;
/// The position of the old version.
pub(crate) const OLD: usize = 1;
/// The number of matches of a block.
pub(crate) const MATCHES: usize = 2;

/// A comparison ends if so many blocks all had the same matches. Others would have them, too, since
/// neither the bots nor the game use chance.
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
    let columns = game.columns.iter().map(ToString::to_string).collect();
    Plan::of_jobs(params, entries, columns, kinds)
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
    first: Option<(usize, PlayedMatch)>,
    /// The different blocks: transcripts and outcome. Luck may show in the outcome only.
    different: HashSet<([TranscriptHash; MATCHES], i64)>,
    /// The number of blocks.
    pub(crate) blocks: usize,
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
            different: HashSet::new(),
            blocks: 0,
            outcomes: BlockOutcomes::default(),
            results: [0; 3],
        }
    }

    /// Adds the match of a job, in the order of the plan. Matches may be missing after an
    /// interruption. Returns whether a block is complete.
    pub(crate) fn add(&mut self, number: usize, mut result: JobResult) -> bool {
        let played = result.matches.pop().expect("each job of a comparison is one match");
        let first = match self.first.take() {
            Some((before, first)) if before + 1 == number && number.is_multiple_of(MATCHES) => {
                first
            }
            _ => {
                self.first = Some((number, played));
                return false;
            }
        };
        self.blocks += 1;
        let block = [first, played];
        for played in &block {
            if let Some(half_points) = half_points(played) {
                self.results[2 - half_points] += 1;
            }
        }
        let transcripts = block.each_ref().map(|played| played.outcome.transcript);
        let outcome = self.outcome(&block);
        self.different.insert((transcripts, outcome));
        self.outcomes.add(outcome);
        true
    }

    /// The number of different blocks.
    pub(crate) fn different(&self) -> usize {
        self.different.len()
    }

    /// Whether all blocks are the same, so that they say nothing of other matches.
    pub(crate) fn is_one_block(&self) -> bool {
        self.different.len() <= 1
    }

    /// Whether more blocks would only repeat the matches.
    pub(crate) fn only_repeats(&self) -> bool {
        self.is_one_block() && self.blocks >= MAX_REPEATED
    }

    fn outcome(&self, block: &[PlayedMatch; MATCHES]) -> i64 {
        match self.measure {
            Measure::Results => {
                let half_points = block.iter().filter_map(half_points).sum::<usize>();
                i64::try_from(half_points).expect("at most four")
            }
            Measure::Points => block
                .iter()
                .map(|played| points(played, NEW).unwrap_or(0) - points(played, OLD).unwrap_or(0))
                .sum(),
        }
    }
}

/// The first component of an entry's score, if it sat at the table.
fn points(played: &PlayedMatch, entry: usize) -> Option<i64> {
    let seat = played.seats.iter().position(|seated| *seated == entry)?;
    played.outcome.results[seat].score.0.first().copied()
}

/// The result of the new version against the old one: 2 for a win, 1 for a draw. None if they do
/// not sit at one table.
fn half_points(played: &PlayedMatch) -> Option<usize> {
    let score = |entry: usize| {
        let seat = played.seats.iter().position(|seated| *seated == entry)?;
        Some(&played.outcome.results[seat].score)
    };
    let order = score(NEW)?.0.cmp(&score(OLD)?.0);
    Some(match order {
        std::cmp::Ordering::Greater => 2,
        std::cmp::Ordering::Equal => 1,
        std::cmp::Ordering::Less => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

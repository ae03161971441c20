//! The counted results of an edition in memory, and the statistics that follow from them.
//!
//! # Why only new results are read
//!
//! Results never change, and an edition loses none: a match that is declared void stays in the
//! editions that counted it. (A cancelled edition may even gain some: matches that were played
//! later for the next edition.) So a later reading goes only through the *gaps*, the numbers of
//! matches whose results are not there yet. If it does not find as many results as were counted
//! since, the tables were changed in another way, and everything is read again.
//!
//! A result is left out until its lot is counted. So statistics and leaderboards of one snapshot
//! have the same matches, unless the edition is cancelled.

use std::ops::Range;

use arbiter_games::Seed;
use arbiter_proto::ids::EditionId;
use arbiter_ranking::statistics::{Blocks, Measured, Statistics};
use arbiter_ranking::{Entrant, PairResults, Rating, ratings};
use sqlx::{Error, PgConnection};

use crate::db::editions::{Edition, EditionState};
use crate::db::lots;
use crate::db::results::{self, KeyedResult};
use crate::tournament::episode_rounds::episode_of;

/// Maximum number of results of pairs: a match of several has one for each two seats.
const MAX_PAIR_RESULTS: usize = 12_000_000;

/// Why results cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There are too many of them.
    #[error("it has more than {MAX_PAIR_RESULTS} results of pairs; export it and count there")]
    TooMany,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] Error),
}

/// The statistics of an edition.
#[derive(Debug)]
pub struct EditionStatistics {
    /// What can be concluded from the means.
    pub statistics: Statistics,
    /// The ratings, in the order of `statistics.entrants`.
    pub ratings: Vec<Option<Rating>>,
}

/// The counted results of an edition.
#[derive(Debug)]
pub struct CountedResults {
    edition: EditionId,
    is_episode: bool,
    blocks: Blocks,
    pairs: PairResults,
    /// The matches whose results are here: ranges in order that do not touch.
    matches: Vec<Range<i64>>,
    /// The edition's count of matches.
    counted: i64,
    can_grow: bool,
    newly_read: usize,
}

impl CountedResults {
    /// None of the results of an edition yet. With `is_episode`, a block is an episode.
    pub fn new(edition: EditionId, is_episode: bool) -> Self {
        Self {
            edition,
            is_episode,
            blocks: Blocks::new(is_episode),
            pairs: PairResults::default(),
            matches: Vec::new(),
            counted: 0,
            can_grow: true,
            newly_read: 0,
        }
    }

    /// Reads the results that were counted since the last reading. `edition` is the edition in the
    /// same snapshot of the database, since results and their count belong together.
    ///
    /// # Errors
    /// If there are too many, or the database fails.
    pub async fn updated(
        self,
        db: &mut PgConnection,
        edition: &Edition,
    ) -> Result<Self, ReadError> {
        let since = edition.counted - self.counted;
        let is_first = self.matches.is_empty();
        let nothing = Self::new(self.edition, self.is_episode);
        let updated = self.read(&mut *db, edition).await?;
        if is_first || i64::try_from(updated.newly_read) == Ok(since) {
            return Ok(updated);
        }
        // Both together could need too much memory.
        drop(updated);
        nothing.read(db, edition).await
    }

    /// Reads the results in the gaps.
    async fn read(mut self, db: &mut PgConnection, edition: &Edition) -> Result<Self, ReadError> {
        let scope = edition.scope();
        let uncounted = lots::reported(&mut *db, scope.tournament).await?;
        let is_uncounted = |number: i64| {
            let next = uncounted.partition_point(|lot| lot.start <= number);
            uncounted[..next].last().is_some_and(|lot| lot.contains(&number))
        };
        let mut numbers: Vec<Range<i64>> = Vec::new();
        let mut newly_read = 0;
        let is_episode = self.is_episode;
        let blocks = &mut self.blocks;
        let pairs = &mut self.pairs;
        let visit = |result: &KeyedResult| {
            let number = result.played.number.0;
            if is_uncounted(number) {
                return Ok(());
            }
            newly_read += 1;
            match numbers.last_mut() {
                Some(range) if range.end == number => range.end += 1,
                _ => numbers.push(number..number + 1),
            }
            add(blocks, pairs, result, is_episode);
            if pairs.len() > MAX_PAIR_RESULTS { Err(ReadError::TooMany) } else { Ok(()) }
        };
        if self.matches.is_empty() {
            results::each_with_seed_key(&mut *db, scope, visit).await??;
        } else {
            let gaps = gaps(&self.matches, scope.from..scope.end);
            let firsts: Vec<_> = gaps.iter().map(|gap| gap.start).collect();
            let pasts: Vec<_> = gaps.iter().map(|gap| gap.end).collect();
            results::each_with_seed_key_of_ranges(&mut *db, scope, &firsts, &pasts, visit)
                .await??;
        }
        self.newly_read = newly_read;
        self.matches = joined(self.matches, numbers);
        self.counted = edition.counted;
        self.can_grow = edition.state == EditionState::Running
            && (edition.open_ended || edition.counted < edition.matches);
        Ok(self)
    }

    /// The statistics that follow from the results. The order of the results makes no difference.
    pub fn statistics(
        &mut self,
        entrants: &[Entrant],
        is_ranked: impl Fn(Entrant) -> bool,
        seed: Seed,
    ) -> EditionStatistics {
        EditionStatistics {
            ratings: ratings(entrants, &mut self.pairs),
            statistics: Statistics::of(entrants, is_ranked, &mut self.blocks, seed),
        }
    }

    /// The edition.
    pub fn edition(&self) -> EditionId {
        self.edition
    }

    /// The edition's count of matches at the last reading.
    pub fn counted(&self) -> i64 {
        self.counted
    }

    /// Whether more results may be counted.
    pub fn can_grow(&self) -> bool {
        self.can_grow
    }

    /// How many results the last reading added.
    pub fn newly_read(&self) -> usize {
        self.newly_read
    }

    /// How much memory the results take, in bytes.
    pub fn bytes(&self) -> usize {
        let ranges = self.matches.capacity() * size_of::<Range<i64>>();
        self.blocks.bytes() + self.pairs.bytes() + ranges
    }
}

/// Adds a result.
fn add(blocks: &mut Blocks, pairs: &mut PairResults, result: &KeyedResult, is_episode: bool) {
    let key = result.seed_key;
    let block = if is_episode { episode_of(key) } else { key };
    let [first, .., _] = result.transcript.as_chunks().0 else {
        unreachable!("a hash has 32 bytes")
    };
    let played = result.played.outcome();
    let board = result.board;
    blocks.add(&Measured { block, board, transcript: u64::from_be_bytes(*first), played });
    pairs.add(block, &played);
}

/// The parts of `whole` outside these ranges, which are in order.
fn gaps(ranges: &[Range<i64>], whole: Range<i64>) -> Vec<Range<i64>> {
    let starts = [whole.start].into_iter().chain(ranges.iter().map(|range| range.end));
    let ends = ranges.iter().map(|range| range.start).chain([whole.end]);
    starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty()).collect()
}

/// These and other ranges, in order and without those that touch. None have a number in common.
fn joined(mut ranges: Vec<Range<i64>>, others: Vec<Range<i64>>) -> Vec<Range<i64>> {
    ranges.extend(others);
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let touches = next.start == range.end;
        if touches {
            range.end = next.end;
        }
        touches
    });
    ranges.shrink_to_fit();
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_joined_ranges_leave_out() {
        let ranges = joined(joined(Vec::new(), vec![5..6, 3..5, 9..10]), vec![8..9, 1..2, 6..7]);
        assert_eq!(ranges, [1..2, 3..7, 8..10]);
        assert_eq!(gaps(&ranges, 0..12), [0..1, 2..3, 7..8, 10..12]);
        assert_eq!(gaps(&ranges, 1..10), [2..3, 7..8]);
        assert_eq!(gaps(&joined(ranges, vec![2..3, 7..8]), 1..10), []);
    }
}

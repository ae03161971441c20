//! Blocks: what shares a seed key, and cells: blocks of the same entrants.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};

use super::Basis;
use crate::{Entrant, ScoredMatch};

/// A match with what statistics need besides its scores.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// What the matches of a block have in common: the seed key, or the episode.
    pub block: i64,
    /// The index of the board, in games with several.
    pub board: Option<i16>,
    /// The transcript's hash, or its first bytes: equal only for equal transcripts.
    pub transcript: u64,
    /// The match.
    pub played: ScoredMatch<'a>,
}

/// A seat of a match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SeatValue {
    block: i64,
    entrant: Entrant,
    value: f64,
    /// The seats and the transcript of the match: equal for repeated matches.
    repetition: u64,
}

/// The results of an edition, in any order.
#[derive(Debug)]
pub struct Blocks {
    is_episode: bool,
    pub(super) seats: Vec<SeatValue>,
    /// Block, seats, and seats with transcript of each match.
    pub(super) matches: Vec<(i64, u64, u64)>,
}

impl Blocks {
    /// No results. With `is_episode`, a block is an episode: its mean is per block, not per match.
    pub fn new(is_episode: bool) -> Self {
        Self { is_episode, seats: Vec::new(), matches: Vec::new() }
    }

    /// Adds a match.
    pub fn add(&mut self, measured: &Measured<'_>) {
        let Measured { block, board, transcript, played } = *measured;
        let seated = hash(&(board, played.seats));
        let repetition = hash(&(seated, transcript));
        self.matches.push((block, seated, repetition));
        for (seat, (entrant, score)) in played.entrant_scores().enumerate() {
            let first = score.first().copied().map_or(0, i128::from);
            let carried = played.carried.get(seat).copied().map_or(0, i128::from);
            let value = approximate(first - carried);
            self.seats.push(SeatValue { block, entrant, value, repetition });
        }
    }

    /// How much memory the results take, in bytes.
    pub fn bytes(&self) -> usize {
        self.seats.capacity() * size_of::<SeatValue>()
            + self.matches.capacity() * size_of::<(i64, u64, u64)>()
    }

    /// Groups the results, and changes their order. `entrants` is in ascending order. Seats of
    /// others are left out.
    pub(super) fn cells(&mut self, entrants: &[Entrant]) -> Cells {
        let index = |entrant: Entrant| entrants.binary_search(&entrant).ok();
        let mut counts = Counts::of(entrants.len(), self, index);
        let all_matches = self.matches.len() as u64;
        // By value too, so that a sum does not depend on the order in which results came.
        self.seats.sort_unstable_by(|a, b| {
            (a.block, a.entrant).cmp(&(b.block, b.entrant)).then(a.value.total_cmp(&b.value))
        });
        self.matches.sort_unstable();
        let mut cells: HashMap<Vec<usize>, Vec<Block>> = HashMap::new();
        let mut matches = self.matches.chunk_by(|a, b| a.0 == b.0);
        for seats in self.seats.chunk_by(|a, b| a.block == b.block) {
            let played = matches.next().expect("each block has a match");
            let mut block = Block::of(played);
            let mut members = Vec::new();
            for seats in seats.chunk_by(|a, b| a.entrant == b.entrant) {
                let Some(member) = index(seats[0].entrant) else { continue };
                let units = if self.is_episode { 1.0 } else { count(seats.len()) };
                let value = seats.iter().map(|seat| seat.value).sum::<f64>();
                members.push(member);
                block.values.push((value, units));
                counts.totals[member].0 += value;
                counts.totals[member].1 += units;
            }
            cells.entry(members).or_default().push(block);
        }
        let blocks = cells.values().map(|blocks| blocks.len() as u64).sum();
        // In a fixed order, so that the same results give the same numbers.
        let mut cells: Vec<_> =
            cells.into_iter().map(|(members, blocks)| Cell { members, blocks }).collect();
        cells.sort_unstable_by(|a, b| a.members.cmp(&b.members));
        Cells {
            basis: basis(&cells, &counts.matches),
            list: cells,
            totals: counts.totals,
            matches: counts.matches,
            distinct: counts.distinct,
            blocks,
            all_matches,
            all_distinct: counts.all_distinct,
        }
    }
}

/// What the intervals are for: freshly drawn tables, if otherwise at least half of the entrants
/// with matches had no interval, because a table of theirs has one block. Fewer such tables are
/// left until they have a second block, as while an edition runs.
fn basis(cells: &[Cell], matches: &[u64]) -> Basis {
    let is_fresh = |cell: &&Cell| cell.blocks.len() == 1 && cell.members.len() > 2;
    let mut at_fresh_tables: Vec<_> =
        cells.iter().filter(is_fresh).flat_map(|cell| &cell.members).collect();
    at_fresh_tables.sort_unstable();
    at_fresh_tables.dedup();
    let playing = matches.iter().filter(|matches| **matches > 0).count();
    let is_fresh = !at_fresh_tables.is_empty() && 2 * at_fresh_tables.len() >= playing;
    if is_fresh { Basis::Tables } else { Basis::Seeds }
}

/// What is counted for each entrant.
struct Counts {
    matches: Vec<u64>,
    distinct: Vec<u64>,
    totals: Vec<(f64, f64)>,
    all_distinct: u64,
}

impl Counts {
    /// Counts matches, and different ones.
    fn of(entrants: usize, blocks: &mut Blocks, index: impl Fn(Entrant) -> Option<usize>) -> Self {
        let mut matches = vec![0; entrants];
        let mut distinct = vec![0; entrants];
        blocks.seats.sort_unstable_by_key(|seat| (seat.entrant, seat.repetition));
        for same in
            blocks.seats.chunk_by(|a, b| (a.entrant, a.repetition) == (b.entrant, b.repetition))
        {
            if let Some(index) = index(same[0].entrant) {
                matches[index] += same.len() as u64;
                distinct[index] += 1;
            }
        }
        let mut repetitions: Vec<_> = blocks.matches.iter().map(|played| played.2).collect();
        repetitions.sort_unstable();
        repetitions.dedup();
        let all_distinct = repetitions.len() as u64;
        Self { matches, distinct, totals: vec![(0.0, 0.0); entrants], all_distinct }
    }
}

/// A block: the sum of each member's values, with the number of matches or episodes.
#[derive(Debug)]
pub(super) struct Block {
    /// The boards and seats of its matches: equal for blocks with the same bots in the same seats.
    pub(super) seats: u64,
    /// The seats and transcripts of its matches.
    pub(super) repetition: u64,
    /// For each member of its cell: the sum of its values, and the number of its matches, or 1 for
    /// an episode.
    pub(super) values: Vec<(f64, f64)>,
}

impl Block {
    /// A block of these matches, in ascending order, without values.
    fn of(matches: &[(i64, u64, u64)]) -> Self {
        let seats: Vec<_> = matches.iter().map(|played| played.1).collect();
        let repetitions: Vec<_> = matches.iter().map(|played| played.2).collect();
        Self { seats: hash(&seats), repetition: hash(&repetitions), values: Vec::new() }
    }
}

/// The blocks of the same entrants.
#[derive(Debug)]
pub(super) struct Cell {
    /// The indices of its entrants, in ascending order.
    pub(super) members: Vec<usize>,
    /// Its blocks.
    pub(super) blocks: Vec<Block>,
}

/// The results of an edition, grouped.
#[derive(Debug)]
pub(super) struct Cells {
    pub(super) basis: Basis,
    pub(super) list: Vec<Cell>,
    /// For each entrant: the sum of its values, and the number of its matches or episodes.
    pub(super) totals: Vec<(f64, f64)>,
    /// The number of matches of each entrant.
    pub(super) matches: Vec<u64>,
    /// The number of different matches of each entrant.
    pub(super) distinct: Vec<u64>,
    pub(super) blocks: u64,
    pub(super) all_matches: u64,
    pub(super) all_distinct: u64,
}

impl Cells {
    /// The mean of each entrant; 0 without matches.
    pub(super) fn means(&self) -> Vec<f64> {
        self.totals
            .iter()
            .map(|(sum, units)| if *units > 0.0 { sum / units } else { 0.0 })
            .collect()
    }
}

/// A hash that is the same in all runs.
fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[expect(clippy::cast_precision_loss, reason = "statistics are shown with a few digits")]
fn approximate(number: i128) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a block has few matches")]
fn count(number: usize) -> f64 {
    number as f64
}

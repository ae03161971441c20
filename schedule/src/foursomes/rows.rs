//! Small designs, written out: where every construction ends.
//!
//! 24 of the 42 rows are numbers of points that no rule reaches (4, 5, 7 to 10, 12, 13, 15, 19, 22,
//! 25, 27, 28, 31, 34, 37, 40, 43, 46, 79, 82, 85, 88). The others only look better: the rules
//! would reach them, but repeat some foursomes. The blocks were found by a search over differences;
//! that they are right is not taken on trust, since a schedule's certificate counts every pair.

mod few;
mod many;

use super::{SEATS, Table};
use crate::Bot;

/// A design as a few blocks, each of which is moved round its orbits.
///
/// Point `orbit · residues + i` is residue `i` of an orbit. A move adds 1 to every residue; a
/// point left over behind the last orbit stays where it is.
#[derive(Debug)]
pub(super) struct Row {
    points: usize,
    residues: usize,
    /// The order within a block is the order of seats.
    blocks: &'static [[u8; SEATS]],
}

impl Row {
    /// The row with so many points, in which each pair is together as often as it is at least
    /// in any design.
    pub(super) fn find(points: usize) -> Option<&'static Self> {
        let sought = |row: &Self| row.points.cmp(&points);
        let found = |rows: &'static [Self]| Some(&rows[rows.binary_search_by(sought).ok()?]);
        found(few::ROWS).or_else(|| found(many::ROWS))
    }

    /// How many base blocks there are.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Seats `bots` at the tables of one base block: each place the block is moved to, once.
    /// Whether that gives every bot each seat equally often.
    pub(super) fn develop(&self, block: usize, bots: &[Bot], tables: &mut Vec<Table>) -> bool {
        let base = self.blocks[block].map(usize::from);
        let mut length = 0;
        loop {
            tables.push(self.moved(base, length).map(|point| bots[point]));
            length += 1;
            let mut back = [base, self.moved(base, length)];
            for block in &mut back {
                block.sort_unstable();
            }
            if back[0] == back[1] {
                return length == self.points;
            }
        }
    }

    fn moved(&self, block: [usize; SEATS], by: usize) -> [usize; SEATS] {
        let moving = self.points / self.residues * self.residues;
        block.map(|point| {
            let residue = point % self.residues;
            if point >= moving { point } else { point - residue + (residue + by) % self.residues }
        })
    }
}

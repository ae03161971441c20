//! A table of small designs. Every construction ends with them.
//!
//! 24 of the 42 designs have a number of points without another construction (4, 5, 7 to 10, 12,
//! 13, 15, 19, 22, 25, 27, 28, 31, 34, 37, 40, 43, 46, 79, 82, 85, 88). Constructions of the other
//! numbers would repeat some foursomes. A search over differences found the blocks. The certificate
//! of a schedule checks them, since it counts every pair.

use super::{SEATS, Table};
use crate::Bot;

/// A design as a few base blocks, each of which is rotated within the orbits of its points.
///
/// Point `orbit · residues + i` is residue `i` of an orbit. A rotation by 1 adds 1 to every
/// residue. A point after the last orbit does not move.
#[derive(Debug)]
pub(super) struct SmallDesign {
    points: usize,
    residues: usize,
    /// The order within a block is the order of seats.
    blocks: &'static [[u8; SEATS]],
}

impl SmallDesign {
    /// The design with this many points, in which each pair meets λ times.
    pub(super) fn find(points: usize) -> Option<&'static Self> {
        let index = SMALL_DESIGNS.binary_search_by_key(&points, |design| design.points).ok()?;
        Some(&SMALL_DESIGNS[index])
    }

    /// The number of base blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Appends the tables of one base block: one for each different rotation. Returns whether they
    /// give every bot each seat equally often.
    pub(super) fn develop(&self, block: usize, bots: &[Bot], tables: &mut Vec<Table>) -> bool {
        let base = self.blocks[block].map(usize::from);
        let mut length = 0;
        loop {
            tables.push(self.rotate(base, length).map(|point| bots[point]));
            length += 1;
            let mut blocks = [base, self.rotate(base, length)];
            for block in &mut blocks {
                block.sort_unstable();
            }
            if blocks[0] == blocks[1] {
                return length == self.points;
            }
        }
    }

    fn rotate(&self, block: [usize; SEATS], offset: usize) -> [usize; SEATS] {
        let orbit_points = self.points / self.residues * self.residues;
        block.map(|point| {
            let residue = point % self.residues;
            if point >= orbit_points {
                point
            } else {
                point - residue + (residue + offset) % self.residues
            }
        })
    }
}

/// Declares designs: the number of points by the number of residues, and the blocks.
macro_rules! small_designs {
    ($($points:literal by $residues:literal: $([$($point:literal)+])+;)+) => {
        &[$(SmallDesign { points: $points, residues: $residues, blocks: &[$([$($point),+]),+] }),+]
    };
}

/// One design for each number of points, in ascending order.
const SMALL_DESIGNS: &[SmallDesign] = small_designs! {
    4 by 1: [0 1 2 3];
    5 by 5: [3 2 4 0];
    7 by 7: [4 1 0 6];
    8 by 7: [7 0 2 3] [3 6 1 0];
    9 by 9: [4 5 2 0] [1 4 0 3];
    10 by 5: [8 0 9 2] [0 7 8 5] [2 1 6 0];
    12 by 11: [11 0 6 8] [0 4 5 3] [1 0 5 9];
    13 by 13: [0 2 3 7];
    15 by 15: [1 11 0 5] [3 10 13 0] [1 6 0 2] [11 2 0 4] [7 0 14 12] [7 4 0 1] [6 7 0 9];
    17 by 17: [6 1 4 0] [11 9 1 0] [0 7 4 12] [0 1 3 7];
    19 by 19: [3 2 7 0] [9 11 6 0] [15 0 8 9];
    20 by 19: [19 2 0 14] [0 5 4 10] [3 7 0 6] [9 16 0 8] [0 10 6 8];
    21 by 21: [11 0 13 15] [16 1 13 0] [7 10 3 0] [15 14 2 0] [10 0 1 5];
    22 by 11: [20 0 14 11] [11 4 6 0] [17 0 19 13] [15 0 16 12] [13 0 3 1] [4 3 21 0] [0 20 19 5];
    24 by 23: [23 7 0 11] [8 16 0 5] [1 18 17 0] [0 12 14 9] [20 10 19 0] [8 0 2 21];
    25 by 5: [0 3 16 20] [0 4 9 13] [1 9 15 18] [3 10 21 24] [4 5 6 23] [4 10 14 19] [5 7 12 15]
        [5 11 13 21] [5 17 20 24] [13 15 19 20];
    27 by 27: [0 18 21 6] [9 0 7 5] [22 0 20 10] [0 6 1 7] [24 4 0 11] [9 6 17 0] [2 5 10 0]
        [0 19 14 3] [0 23 9 13] [12 1 0 2] [0 8 9 1] [19 0 15 13] [0 9 24 13];
    28 by 9: [0 6 8 9] [0 14 20 25] [0 15 16 19] [1 5 9 18] [6 18 20 21] [7 9 25 27] [9 13 15 23];
    29 by 29: [19 23 0 7] [16 0 11 1] [26 19 0 8] [13 0 1 4] [6 0 20 8] [4 0 2 7] [0 14 9 8];
    31 by 31: [13 25 0 2] [0 26 27 10] [10 7 11 0] [0 16 29 22] [0 3 26 12];
    32 by 31: [31 21 9 0] [0 13 5 2] [7 10 0 1] [0 15 2 16] [24 5 1 0] [3 20 0 8] [20 14 24 0]
        [4 6 22 0];
    33 by 33: [7 23 0 3] [20 0 1 16] [19 0 17 12] [21 8 10 0] [21 0 22 15] [6 25 0 28] [3 0 9 5]
        [0 18 10 9];
    34 by 17: [30 7 3 0] [19 0 15 17] [11 0 17 26] [0 21 31 26] [32 28 31 0] [27 0 3 2] [5 25 0 12]
        [6 0 24 22] [22 0 33 4] [20 0 8 9] [20 26 17 33];
    36 by 35: [35 13 17 0] [30 27 0 24] [5 0 16 18] [8 6 0 20] [0 19 1 10] [0 25 16 23] [0 11 12 8]
        [15 14 0 10] [22 0 15 29];
    37 by 37: [0 17 29 30] [0 2 23 34] [0 9 27 31];
    39 by 39: [11 18 1 0] [0 20 12 19] [16 0 1 30] [17 1 0 35] [12 22 15 0] [2 0 25 5] [23 0 12 4]
        [10 15 0 2] [13 0 10 4] [9 0 17 15] [19 22 0 28] [0 15 26 21] [32 19 0 3] [2 6 0 14]
        [28 33 0 15] [14 12 0 13] [4 0 18 7] [25 18 0 16] [12 17 0 8];
    40 by 40: [0 10 20 30] [0 26 29 31] [0 13 21 25] [0 17 33 39];
    41 by 41: [4 0 5 16] [0 18 31 24] [1 34 16 0] [30 0 27 33] [0 15 6 1] [14 21 33 0] [2 5 25 0]
        [4 2 28 0] [19 0 10 29] [21 4 32 0];
    43 by 43: [2 0 27 15] [19 34 0 7] [0 29 10 9] [8 11 6 0] [18 0 22 35] [0 40 29 33] [20 21 26 0];
    44 by 43: [43 0 1 33] [1 6 0 20] [0 8 6 13] [10 0 22 17] [28 0 3 24] [7 20 0 17] [25 16 4 0]
        [34 0 35 20] [0 11 8 24] [29 4 31 0] [9 11 37 0];
    45 by 45: [15 34 0 31] [18 6 5 0] [20 0 14 1] [10 23 18 0] [4 0 28 29] [11 19 28 0] [9 11 0 16]
        [21 33 3 0] [0 6 10 2] [9 0 23 2] [0 3 25 10];
    46 by 23: [23 45 24 0] [31 0 3 33] [27 44 0 32] [6 7 23 0] [5 25 35 0] [0 14 4 6] [36 45 0 28]
        [29 0 15 3] [0 12 31 13] [38 27 0 24] [42 0 35 2] [0 7 44 25] [43 0 9 5] [29 32 0 36]
        [26 39 0 34];
    48 by 47: [47 0 31 35] [12 26 32 0] [30 19 0 23] [15 0 34 5] [0 5 6 2] [0 29 31 21] [6 0 3 11]
        [13 1 20 0] [2 22 31 0] [14 25 0 40] [13 38 30 0] [33 10 9 0];
    51 by 51: [9 22 0 17] [16 6 0 23] [20 0 7 43] [25 0 19 28] [24 14 13 0] [0 12 3 14]
        [20 18 0 14] [1 12 0 24] [43 30 18 0] [24 0 9 7] [20 24 5 0] [29 0 34 22] [1 14 0 8]
        [30 0 3 4] [5 3 28 0] [18 39 0 22] [15 10 6 0] [19 33 17 0] [25 24 0 10] [0 1 19 21]
        [29 44 9 0] [8 0 11 19] [10 13 31 0] [45 0 16 41] [30 11 46 0];
    53 by 53: [0 9 24 8] [38 1 0 11] [35 45 22 0] [8 25 0 2] [11 0 44 41] [39 0 20 32] [22 7 5 0]
        [0 40 44 12] [24 0 19 2] [0 46 42 28] [24 27 21 0] [5 18 19 0] [27 0 33 37];
    56 by 55: [55 0 10 17] [0 24 35 2] [22 0 25 37] [14 32 29 0] [19 24 0 15] [44 27 0 35]
        [16 39 0 35] [21 11 0 13] [5 1 0 2] [5 26 12 0] [38 0 25 12] [9 0 19 25] [0 1 28 7]
        [37 14 6 0];
    57 by 57: [15 48 0 12] [0 35 17 3] [0 49 9 44] [7 0 31 1] [44 39 6 0] [0 47 11 25] [27 0 23 28]
        [15 6 17 0] [10 30 2 0] [8 23 12 0] [19 20 16 0] [12 28 0 2] [0 7 41 21] [0 26 7 39];
    60 by 59: [59 26 10 0] [0 39 38 8] [20 43 0 34] [0 7 11 12] [0 10 27 33] [22 0 5 37]
        [24 18 0 21] [1 0 8 10] [9 40 21 0] [3 0 19 8] [35 4 17 0] [29 25 23 0] [0 15 29 41]
        [37 0 24 44] [0 46 14 48];
    79 by 79: [19 15 0 31] [59 16 0 49] [6 0 24 38] [1 0 44 21] [0 33 6 9] [58 8 19 0] [0 17 65 54]
        [51 26 44 0] [29 26 0 28] [37 32 41 0] [22 0 45 67] [13 52 0 62] [74 72 0 8];
    82 by 41: [44 60 41 46] [18 59 71 0] [0 12 19 61] [0 49 57 70] [75 18 0 65] [12 5 0 75]
        [50 64 0 68] [61 54 0 43] [8 0 51 46] [20 51 0 26] [27 44 48 0] [0 10 14 68] [16 0 5 72]
        [64 42 0 74] [32 0 1 78] [0 69 45 13] [55 3 0 63] [45 71 62 0] [25 0 66 6] [48 73 76 0]
        [0 59 65 44] [47 0 76 77] [81 0 80 74] [53 3 1 0] [78 80 11 0] [20 33 24 0] [0 79 24 39];
    85 by 85: [0 10 34 42] [0 13 40 62] [0 66 69 81] [0 17 18 47] [0 21 28 54] [0 60 65 71]
        [0 35 44 83];
    88 by 88: [0 22 44 66] [0 1 65 79] [0 38 77 83] [0 30 37 56] [0 18 20 47] [0 21 46 54]
        [0 12 15 28] [0 17 48 52];
};

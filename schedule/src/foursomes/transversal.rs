//! Transversal designs TD(5, m): blocks that have one point of each of five equal groups, such that
//! any two points of different groups are together in exactly one block.
//!
//! They come from a ring of m elements with four multipliers 0, 1, x, x + 1 whose differences are
//! all units. Block (a, b) has point `r·a + b` of the group with multiplier r, and point a of the
//! fifth group. Two points of the first four groups then fix a, and with it b.
//!
//! The ring is a product of the integers modulo c, prime to 6, where x = 2; of GF(4), GF(8) or
//! GF(16), where x is a root of X² + X + 1, X³ + X + 1 or X⁴ + X + 1; and of GF(9), where x² = -1.

use super::SEATS;

/// The orders of fields with characteristic 2 that are used, and the polynomial that is 0 there.
const BINARY: [(usize, usize); 4] = [(1, 0), (4, 0b111), (8, 0b1011), (16, 0b1_0011)];
/// The order of the field with characteristic 3.
const TERNARY: usize = 9;

/// A ring with m elements, numbered from 0. Element e is `(e / f, e % f)` in the product of the
/// integers and the two fields, which have f elements together.
#[derive(Debug)]
pub(super) struct Ring {
    integers: usize,
    fields: usize,
    /// The sum of two elements of the fields at `one · fields + other`.
    sums: Vec<usize>,
    /// The product of x and an element of the fields.
    multiples: Vec<usize>,
}

/// The factors of m: integers prime to 6, and a field for each of the primes 2 and 3.
struct Factors {
    integers: usize,
    binary: (usize, usize),
    ternary: usize,
}

impl Factors {
    fn of(m: usize) -> Option<Self> {
        if m == 0 {
            return None;
        }
        let twos = 1 << m.trailing_zeros();
        let binary = BINARY.into_iter().find(|(order, _)| *order == twos)?;
        let rest = m / twos;
        let ternary = if rest.is_multiple_of(TERNARY) { TERNARY } else { 1 };
        let integers = rest / ternary;
        (!integers.is_multiple_of(3)).then_some(Self { integers, binary, ternary })
    }
}

impl Ring {
    /// Whether there is a ring of `m` elements.
    pub(super) fn exists(m: usize) -> bool {
        Factors::of(m).is_some()
    }

    /// The ring of `m` elements.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn new(m: usize) -> Self {
        let factors = Factors::of(m).expect("only rings that exist are asked for");
        let (order, polynomial) = factors.binary;
        let fields = order * factors.ternary;
        let split = |element: usize| (element % order, element / order);
        let sum = |one: usize, other: usize| {
            let (two, three) = split(one);
            let (other_two, other_three) = split(other);
            let units = (three % 3 + other_three % 3) % 3;
            let threes = (three / 3 + other_three / 3) % 3;
            (two ^ other_two) + order * (units + 3 * threes)
        };
        let multiple = |element: usize| {
            let (two, three) = split(element);
            let doubled = two << 1;
            let reduced = if doubled >= order { doubled ^ polynomial } else { doubled };
            let turned = (3 - three / 3) % 3 + 3 * (three % 3);
            (if order == 1 { 0 } else { reduced }) + order * turned
        };
        Self {
            integers: factors.integers,
            fields,
            sums: (0..fields * fields).map(|pair| sum(pair / fields, pair % fields)).collect(),
            multiples: (0..fields).map(multiple).collect(),
        }
    }

    /// Calls `with` for every b with the points of the first four groups in block (a, b).
    pub(super) fn blocks(&self, a: usize, mut with: impl FnMut([usize; SEATS])) {
        let whole = a / self.fields;
        let part = a % self.fields;
        let wholes = [0, 1, 2, 3].map(|times| times * whole % self.integers);
        let multiple = self.multiples[part];
        let parts = [0, part, multiple, self.sums[multiple * self.fields + part]];
        for b in 0..self.integers {
            let starts = wholes.map(|whole| {
                let sum = whole + b;
                (if sum < self.integers { sum } else { sum - self.integers }) * self.fields
            });
            for c in 0..self.fields {
                let mut points = starts;
                for (point, part) in points.iter_mut().zip(parts) {
                    *point += self.sums[part * self.fields + c];
                }
                with(points);
            }
        }
    }
}

//! Transversal designs TD(5, m): blocks with one point of each of five equal groups. Every two
//! points of different groups are in exactly one common block.
//!
//! The blocks are computed in a ring of m elements with four multipliers 0, 1, x, x + 1 whose
//! differences are all units. Block (a, b) has point `r·a + b` of the group with multiplier r, and
//! point a of the fifth group. Two points of the first four groups then determine a, and so b.
//!
//! The ring is a product of up to three factors: the integers modulo c, prime to 6, with x = 2;
//! GF(4), GF(8) or GF(16), with x a root of X² + X + 1, X³ + X + 1 or X⁴ + X + 1; and GF(9), with
//! x² = -1.

use super::SEATS;

/// The orders of the fields with characteristic 2, each with its polynomial.
const BINARY: [(usize, usize); 4] = [(1, 0), (4, 0b111), (8, 0b1011), (16, 0b1_0011)];
/// The order of the field with characteristic 3.
const TERNARY: usize = 9;

/// A ring with m elements, numbered from 0. Element e is `(e / f, e % f)` in the product of the
/// integers and of the two fields, whose product has f elements.
#[derive(Debug)]
pub(super) struct Ring {
    integers: usize,
    fields: usize,
    /// The sum of the elements `first` and `second` of the fields, at `first · fields + second`.
    sums: Vec<usize>,
    /// The product of x and each element of the fields.
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
    /// If there is no such ring.
    pub(super) fn new(m: usize) -> Self {
        let factors = Factors::of(m).expect("the caller checks that the ring exists");
        let (order, polynomial) = factors.binary;
        let fields = order * factors.ternary;
        let split = |element: usize| (element % order, element / order);
        let sum = |first: usize, second: usize| {
            let (first_binary, first_ternary) = split(first);
            let (second_binary, second_ternary) = split(second);
            let units = (first_ternary % 3 + second_ternary % 3) % 3;
            let threes = (first_ternary / 3 + second_ternary / 3) % 3;
            (first_binary ^ second_binary) + order * (units + 3 * threes)
        };
        let multiple = |element: usize| {
            let (binary, ternary) = split(element);
            let doubled = binary << 1;
            let binary_product = if doubled >= order { doubled ^ polynomial } else { doubled };
            let ternary_product = (3 - ternary / 3) % 3 + 3 * (ternary % 3);
            (if order == 1 { 0 } else { binary_product }) + order * ternary_product
        };
        Self {
            integers: factors.integers,
            fields,
            sums: (0..fields * fields).map(|pair| sum(pair / fields, pair % fields)).collect(),
            multiples: (0..fields).map(multiple).collect(),
        }
    }

    /// Calls `visit` for every b with the points of the first four groups in block (a, b).
    pub(super) fn blocks(&self, a: usize, mut visit: impl FnMut([usize; SEATS])) {
        let integer = a / self.fields;
        let element = a % self.fields;
        let integers = [0, 1, 2, 3].map(|multiplier| multiplier * integer % self.integers);
        let multiple = self.multiples[element];
        let elements = [0, element, multiple, self.sums[multiple * self.fields + element]];
        for b in 0..self.integers {
            let starts = integers.map(|integer| {
                let sum = integer + b;
                (if sum < self.integers { sum } else { sum - self.integers }) * self.fields
            });
            for c in 0..self.fields {
                let mut points = starts;
                for (point, element) in points.iter_mut().zip(elements) {
                    *point += self.sums[element * self.fields + c];
                }
                visit(points);
            }
        }
    }
}

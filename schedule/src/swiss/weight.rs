//! Integers that are wide enough for a list of criteria: the first criterion has the highest bits.

use std::cmp::Ordering;
use std::fmt::Debug;

/// A signed integer in two's complement. The sum of all weights of a matching must fit.
pub(super) trait Weight: Copy + Ord + Debug {
    /// The number of bits that a weight can use. Sums and duals need a few more than a weight.
    const BITS: u32;
    /// Zero.
    const ZERO: Self;
    /// Less than every weight. It stands for a missing edge.
    const ABSENT: Self;

    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// Half of the number, rounded down.
    fn half(self) -> Self;
    /// Whether the number is odd.
    fn is_odd(self) -> bool;
    /// The number times 2^`bits`, plus `value`.
    fn append(self, bits: u32, value: u64) -> Self;
}

impl Weight for i128 {
    const BITS: u32 = 122;
    const ZERO: Self = 0;
    const ABSENT: Self = Self::MIN;

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn minus(self, other: Self) -> Self {
        self - other
    }

    fn half(self) -> Self {
        self >> 1
    }

    fn is_odd(self) -> bool {
        self & 1 == 1
    }

    fn append(self, bits: u32, value: u64) -> Self {
        (self << bits) + Self::from(value)
    }
}

/// An integer of `N` words of 64 bits, the lowest word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wide<const N: usize>([u64; N]);

impl<const N: usize> Ord for Wide<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        let signed = |word: u64| word.cast_signed();
        let first = signed(self.0[N - 1]).cmp(&signed(other.0[N - 1]));
        first.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl<const N: usize> PartialOrd for Wide<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> Weight for Wide<N> {
    #[expect(clippy::cast_possible_truncation, reason = "a few dozen words")]
    const BITS: u32 = N as u32 * 64 - 6;
    const ZERO: Self = Self([0; N]);
    const ABSENT: Self = {
        let mut words = [0; N];
        words[N - 1] = 1 << 63;
        Self(words)
    };

    fn plus(self, other: Self) -> Self {
        let mut words = self.0;
        let mut carry = false;
        for (word, added) in words.iter_mut().zip(other.0) {
            let (sum, first) = word.overflowing_add(added);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *word = sum;
            carry = first | second;
        }
        Self(words)
    }

    fn minus(self, other: Self) -> Self {
        let mut words = self.0;
        let mut borrow = false;
        for (word, removed) in words.iter_mut().zip(other.0) {
            let (difference, first) = word.overflowing_sub(removed);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            *word = difference;
            borrow = first | second;
        }
        Self(words)
    }

    fn half(self) -> Self {
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            *word = match self.0.get(index + 1) {
                Some(next) => (self.0[index] >> 1) | (next << 63),
                None => (self.0[index].cast_signed() >> 1).cast_unsigned(),
            };
        }
        Self(words)
    }

    fn is_odd(self) -> bool {
        self.0[0] & 1 == 1
    }

    fn append(self, bits: u32, value: u64) -> Self {
        let whole = bits as usize / 64;
        let part = bits % 64;
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate().skip(whole) {
            *word = self.0[index - whole] << part;
            if part > 0 && index > whole {
                *word |= self.0[index - whole - 1] >> (64 - part);
            }
        }
        let mut added = [0; N];
        added[0] = value;
        Self(words).plus(Self(added))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wide integer of a small one.
    fn wide(number: i128) -> Wide<3> {
        let bytes = number.to_le_bytes();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        Wide([word(0), word(8), if number < 0 { u64::MAX } else { 0 }])
    }

    #[test]
    fn wide_integers_count_like_integers_of_128_bits() {
        let numbers =
            [0, 1, -1, 5, -7, 1 << 64, (1 << 64) - 1, -(1 << 64), 1 << 90, -(1 << 90) - 1];
        for a in numbers {
            for b in numbers {
                assert_eq!(wide(a).plus(wide(b)), wide(a + b));
                assert_eq!(wide(a).minus(wide(b)), wide(a - b));
                assert_eq!(wide(a).cmp(&wide(b)), a.cmp(&b));
            }
            assert_eq!(wide(a).half(), wide(a.half()));
            assert_eq!(wide(a).is_odd(), a.is_odd());
            assert_eq!(wide(a).append(7, 100), wide(a.append(7, 100)));
            assert!(wide(a) > Wide::ABSENT);
        }
        assert_eq!(wide(3).append(70, 1).half(), wide(3).append(69, 0));
    }
}

//! Seeds, and the only source of random numbers.
//!
//! A match has one 256-bit seed. All its random numbers come from ChaCha20 keyed with this seed. A
//! game uses a separate stream for each kind of random choice, so that an additional draw of one
//! kind does not change the draws of another kind.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A seed of 256 bits. As text: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(pub [u8; 32]);

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seed({self})")
    }
}

/// The error for a text that is not a seed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a seed: 64 lower-case hexadecimal digits")]
pub struct SeedError(pub String);

impl FromStr for Seed {
    type Err = SeedError;

    fn from_str(text: &str) -> Result<Self, SeedError> {
        let error = || SeedError(text.to_string());
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 64 || !text.bytes().all(is_digit) {
            return Err(error());
        }
        let mut seed = [0; 32];
        for (index, byte) in seed.iter_mut().enumerate() {
            let digits = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| error())?;
        }
        Ok(Self(seed))
    }
}

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::clock::text(deserializer)
    }
}

impl Seed {
    /// The seed of a text: its BLAKE3 hash.
    pub fn of_text(text: &str) -> Self {
        Self(*blake3::hash(text.as_bytes()).as_bytes())
    }

    /// The seed of a named part, such as a match of a tournament: the BLAKE3 hash of the key, keyed
    /// with this seed.
    #[must_use]
    pub fn derive(self, key: &str) -> Self {
        Self(*blake3::keyed_hash(&self.0, key.as_bytes()).as_bytes())
    }

    /// A uniformly random number for a key: the first eight bytes of the derived seed, big-endian.
    #[must_use]
    pub fn derive_number(self, key: &str) -> u64 {
        let derived = self.derive(key).0;
        u64::from_be_bytes(core::array::from_fn(|index| derived[index]))
    }

    /// The random numbers of one stream of this seed. Streams are independent of each other.
    pub fn dice(self, stream: u64) -> Dice {
        let mut rng = ChaCha20Rng::from_seed(self.0);
        rng.set_stream(stream);
        Dice(rng)
    }
}

/// Random numbers, the same on every machine. The mapping from the output of ChaCha20 to numbers
/// may change only with the rules version.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha20Rng);

impl Dice {
    /// A uniform number below `bound`: the high half of a 64-bit product. It is drawn again if the
    /// low half is in the range that would make some numbers more likely (Lemire, "Fast Random
    /// Integer Generation in an Interval", 2019).
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "there is no number below 0");
        let rejected = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(bound);
            let high = (product >> 32) as u32;
            let low = (product & 0xffff_ffff) as u32;
            if low >= rejected {
                return high;
            }
        }
    }

    /// A uniform index into a list of `len` items.
    ///
    /// # Panics
    /// If `len` is 0, or more than `u32::MAX`.
    pub fn index(&mut self, len: usize) -> usize {
        let bound = u32::try_from(len).expect("lists of a game are short");
        self.below(bound) as usize
    }

    /// A uniform 32-bit number.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Puts a list into a uniformly random order (the Fisher-Yates algorithm, from the back).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            let other = self.index(end + 1);
            list.swap(end, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These numbers may change only with the rules version.
    #[test]
    fn random_numbers_never_change() {
        let mut dice = Seed([7; 32]).dice(0);
        let mut list = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        dice.shuffle(&mut list);
        let numbers = [dice.below(6), dice.below(6), dice.below(1000)];
        assert_eq!((list, numbers), ([6, 9, 8, 0, 1, 7, 3, 5, 2, 4], [0, 2, 463]));
    }

    #[test]
    fn streams_differ_and_text_round_trips() {
        let seed = Seed([0xab; 32]);
        assert_ne!(seed.dice(0).next_u32(), seed.dice(1).next_u32());
        assert_eq!(seed.to_string().parse::<Seed>(), Ok(seed));
        assert!("AB".repeat(32).parse::<Seed>().is_err());
    }
}

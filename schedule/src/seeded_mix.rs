//! Random numbers that depend on the names of the bots in a match, not on their list positions.
//!
//! Every random choice about a match, such as its sides and its deal, depends only on the
//! tournament's seed and on the names of its bots. So a bot that joins or leaves changes no match
//! of other bots. A plan has millions of matches. It hashes each name once, and combines these
//! hashes for each match.

use arbiter_games::Seed;

/// The hash of a bot's name in a tournament. It cannot be predicted without the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameKey(pub u64);

impl NameKey {
    /// The key of a name: the number that the seed derives from `bot/NAME`.
    pub fn of(seed: Seed, name: &str) -> Self {
        Self(seed.derive_number(&format!("bot/{name}")))
    }

    /// Keys for bots without names. The names are 1, 2, 3 and so on.
    pub fn of_numbers(seed: Seed, bots: usize) -> Vec<Self> {
        (1..=bots).map(|number| Self::of(seed, &number.to_string())).collect()
    }
}

/// Hashes numbers, in this order, into one number. Each number is added to the hash of the previous
/// numbers, and the sum is mixed as in `SplitMix64` (Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014).
pub fn mix(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, |hash: u64, number| {
        let mut z = hash.wrapping_add(number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds of matches depend on these numbers, so they must never change.
    #[test]
    fn keys_and_mixes_never_change() {
        let seed = Seed::of_text("chance");
        assert_eq!(mix([]), 0);
        assert_eq!(mix([0]), 0xe220_a839_7b1d_cdaf, "the first number of SplitMix64 from 0");
        assert_ne!(mix([1, 2]), mix([2, 1]));
        let expected = u64::from_be_bytes(seed.derive("bot/alice").0[..8].try_into().unwrap());
        assert_eq!(NameKey::of(seed, "alice"), NameKey(expected));
        assert_eq!(NameKey::of_numbers(seed, 2)[1], NameKey::of(seed, "2"));
    }
}

//! Chance that follows from who meets, not from where they stand in a list.
//!
//! What is decided about a match (who is first, what is dealt) is a function of the tournament's
//! seed and of the names of those who meet. A bot that comes or goes changes nothing between the
//! others, so their matches stay what they were. Plans have millions of matches: names are hashed
//! once a plan, and a match only mixes their hashes.

use arbiter_games::Seed;

/// A number that stands for a bot's name in a tournament. Nobody who does not have the seed knows
/// anything of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameKey(pub u64);

impl NameKey {
    /// The number of a name: what the seed derives from `bot/NAME`.
    pub fn of(seed: Seed, name: &str) -> Self {
        Self(seed.derive_number(&format!("bot/{name}")))
    }

    /// The numbers of bots that have no names yet: they are called 1, 2, 3 and so on.
    pub fn of_numbers(seed: Seed, bots: usize) -> Vec<Self> {
        (1..=bots).map(|number| Self::of(seed, &number.to_string())).collect()
    }
}

/// Mixes numbers, in this order, into one of which each bit depends on all of theirs: each is added
/// to what the former ones came to, and scrambled as in `SplitMix64` (Steele, Lea and Flood, "Fast
/// Splittable Pseudorandom Number Generators", 2014).
pub fn mix(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, |mixed: u64, number| {
        let mut z = mixed.wrapping_add(number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds of matches depend on these numbers: they never change.
    #[test]
    fn numbers_are_fixed() {
        let seed = Seed::of_text("chance");
        assert_eq!(mix([]), 0);
        assert_eq!(mix([0]), 0xe220_a839_7b1d_cdaf, "the first number of SplitMix64 from 0");
        assert_ne!(mix([1, 2]), mix([2, 1]));
        let expected = u64::from_be_bytes(seed.derive("bot/alice").0[..8].try_into().unwrap());
        assert_eq!(NameKey::of(seed, "alice"), NameKey(expected));
        assert_eq!(NameKey::of_numbers(seed, 2)[1], NameKey::of(seed, "2"));
    }
}

//! Dice, and the generator that rolls them.

/// The number of faces of a die.
pub const FACES: u8 = 6;

/// The first numbers of the generator are not used, because they depend on parts of the seed only.
const DISCARDED: usize = 16;

/// A generator of random numbers: xoshiro256**.
///
/// Its state of 256 bits is the seed of the match. Each quarter of the seed is mixed as the
/// generator splitmix64 does it, so that seeds that differ little roll different dice.
pub struct Generator([u64; 4]);

impl Generator {
    /// The generator of a seed, which is 64 hexadecimal digits.
    pub fn new(seed: &str) -> Self {
        let quarter = |index: u64| {
            let start = 16 * usize::try_from(index).expect("a small number");
            let digits = seed.get(start..start + 16).expect("a seed of 64 digits");
            let number = u64::from_str_radix(digits, 16).expect("hexadecimal digits");
            mix(number.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        };
        let mut generator = Self([0, 1, 2, 3].map(quarter));
        for _ in 0..DISCARDED {
            generator.next();
        }
        generator
    }

    /// A random number from 0 to `limit` - 1.
    ///
    /// It is the upper half of the product of `limit` and 64 random bits. The probabilities of two
    /// numbers differ by at most 2^-64.
    pub fn below(&mut self, limit: u8) -> u8 {
        let product = u128::from(self.next()) * u128::from(limit);
        u8::try_from(product >> 64).expect("a number below the limit")
    }

    /// Rolls dice, and sorts them.
    pub fn roll(&mut self, dice: usize) -> Vec<u8> {
        let mut faces: Vec<_> = (0..dice).map(|_| 1 + self.below(FACES)).collect();
        faces.sort_unstable();
        faces
    }

    /// The next 64 random bits.
    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let bits = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        bits
    }
}

/// Mixes the bits of a number. Different numbers give different results.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// How many of these dice count for a bid on a face. Wild ones count for every face.
pub fn matching(dice: &[u8], face: u8, wild: bool) -> usize {
    dice.iter().filter(|die| counts(**die, face, wild)).count()
}

/// Whether a die counts for a bid on a face.
pub fn counts(die: u8, face: u8, wild: bool) -> bool {
    die == face || wild && die == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faces_are_equally_likely() {
        for seed in ["0".repeat(64), "0123456789abcdef".repeat(4), "f".repeat(64)] {
            let mut counts = [0_i32; FACES as usize];
            for die in Generator::new(&seed).roll(60_000) {
                counts[usize::from(die) - 1] += 1;
            }
            // The standard deviation of a count is 91.
            assert!(counts.iter().all(|count| (count - 10_000).abs() < 400), "{counts:?}");
        }
    }

    #[test]
    fn every_digit_of_the_seed_counts() {
        let first = |seed: &str| Generator::new(seed).next();
        let zeros = "0".repeat(64);
        for at in 0..64 {
            let mut seed = zeros.clone();
            seed.replace_range(at..=at, "1");
            assert_ne!(first(&seed), first(&zeros), "{at}");
            assert_eq!(first(&seed), first(&seed));
        }
    }

    #[test]
    fn wild_ones_count_for_every_face() {
        let dice = [1, 1, 2, 5, 5];
        assert_eq!(matching(&dice, 5, false), 2);
        assert_eq!(matching(&dice, 5, true), 4);
        assert_eq!(matching(&dice, 1, true), 2);
    }
}

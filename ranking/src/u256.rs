//! 256-bit unsigned integers for sums of squares. The square of one score may need 130 bits.

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

/// The number of digits of a group when a number is printed.
const DIGITS: usize = 19;
/// 10 to the power of [`DIGITS`]: the largest power of 10 in a `u64`.
const GROUP: u64 = 10_u64.pow(19);

/// An integer from 0 to 2²⁵⁶ − 1. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct U256 {
    /// The lowest 64 bits first.
    limbs: [u64; 4],
}

/// The error for a text that is not an unsigned integer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a whole number: write digits only")]
pub struct ParseU256Error(String);

impl U256 {
    /// The largest number.
    pub const MAX: Self = Self { limbs: [u64::MAX; 4] };

    /// The exact product of two numbers.
    pub fn product(left: u128, right: u128) -> Self {
        let mut limbs = [0; 4];
        for (place, digit) in <[u64; 2]>::from(split(left)).into_iter().enumerate() {
            let mut carry = 0;
            for (shift, factor) in <[u64; 2]>::from(split(right)).into_iter().enumerate() {
                let limb = &mut limbs[place + shift];
                (*limb, carry) = split(
                    u128::from(digit) * u128::from(factor) + u128::from(*limb) + u128::from(carry),
                );
            }
            limbs[place + 2] = carry;
        }
        Self { limbs }
    }

    /// The exact square of a number.
    pub fn square(number: i128) -> Self {
        Self::product(number.unsigned_abs(), number.unsigned_abs())
    }

    /// `self * factor + addend`; `None` on overflow.
    fn checked_mul_add(self, factor: u64, addend: u64) -> Option<Self> {
        let mut carry = addend;
        let limbs = self.limbs.map(|limb| {
            let low;
            (low, carry) = split(u128::from(limb) * u128::from(factor) + u128::from(carry));
            low
        });
        (carry == 0).then_some(Self { limbs })
    }

    /// `self * factor`; `None` on overflow.
    pub fn checked_mul(self, factor: u64) -> Option<Self> {
        self.checked_mul_add(factor, 0)
    }

    /// The sum, or [`Self::MAX`] on overflow.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let mut carry = 0;
        let mut limbs = self.limbs;
        for (limb, added) in limbs.iter_mut().zip(other.limbs) {
            (*limb, carry) = split(u128::from(*limb) + u128::from(added) + u128::from(carry));
        }
        if carry > 0 { Self::MAX } else { Self { limbs } }
    }

    /// The difference, or 0 if it is negative.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        let mut borrow = false;
        let mut limbs = self.limbs;
        for (limb, subtracted) in limbs.iter_mut().zip(other.limbs) {
            let (difference, first_borrow) = limb.overflowing_sub(subtracted);
            let (difference, second_borrow) = difference.overflowing_sub(borrow.into());
            *limb = difference;
            borrow = first_borrow || second_borrow;
        }
        if borrow { Self::default() } else { Self { limbs } }
    }

    /// The nearest floating-point number, or one next to it.
    #[expect(clippy::cast_precision_loss, reason = "the result is rounded on purpose")]
    pub fn to_f64(self) -> f64 {
        self.limbs.iter().rev().fold(0.0, |high, limb| high * 2.0_f64.powi(64) + *limb as f64)
    }
}

/// The low and the high 64 bits.
fn split(number: u128) -> (u64, u64) {
    const LOW: u128 = u64::MAX as u128;
    ((number & LOW) as u64, (number >> 64) as u64)
}

impl From<u128> for U256 {
    fn from(number: u128) -> Self {
        let (low, high) = split(number);
        Self { limbs: [low, high, 0, 0] }
    }
}

impl fmt::Display for U256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limbs = self.limbs;
        let mut groups = Vec::new();
        while groups.is_empty() || limbs != [0; 4] {
            let mut remainder = 0;
            for limb in limbs.iter_mut().rev() {
                let number = u128::from(remainder) << 64 | u128::from(*limb);
                (*limb, _) = split(number / u128::from(GROUP));
                (remainder, _) = split(number % u128::from(GROUP));
            }
            groups.push(remainder);
        }
        let first = groups.pop().unwrap_or(0).to_string();
        let groups = groups.iter().rev().map(|group| format!("{group:0DIGITS$}"));
        let text: String = core::iter::once(first).chain(groups).collect();
        f.pad_integral(true, "", &text)
    }
}

impl FromStr for U256 {
    type Err = ParseU256Error;

    /// Parses decimal digits. Larger numbers become [`Self::MAX`].
    fn from_str(text: &str) -> Result<Self, ParseU256Error> {
        let has_only_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if text.is_empty() || !has_only_digits(text) {
            return Err(ParseU256Error(text.to_owned()));
        }
        let mut number = Some(Self::default());
        for digit in text.bytes().map(|byte| u64::from(byte - b'0')) {
            number = number.and_then(|number| number.checked_mul_add(10, digit));
        }
        Ok(number.unwrap_or(Self::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_round_trip() {
        for text in [
            "0",
            "1",
            "9999999999999999999",
            "10000000000000000000",
            "340282366920938463463374607431768211456",
        ] {
            assert_eq!(text.parse::<U256>().unwrap().to_string(), text);
        }
        let max = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(U256::MAX.to_string(), max);
        assert_eq!(max.parse(), Ok(U256::MAX));
        let too_large = "9".repeat(100);
        assert_eq!(too_large.parse(), Ok(U256::MAX));
        for text in ["", "-1", "+1", "1.5", "NaN"] {
            assert!(text.parse::<U256>().is_err(), "{text}");
        }
    }

    /// (10³⁸)² and (2¹²⁸ − 1)².
    #[test]
    fn squares_are_exact() {
        let square = U256::square(-10_i128.pow(38));
        assert_eq!(square.to_string(), format!("1{}", "0".repeat(76)));
        let product = U256::product(u128::MAX, u128::MAX);
        let rest = U256::from(u128::MAX).saturating_add(U256::from(u128::MAX));
        assert_eq!(product.saturating_add(rest), U256::MAX);
        assert_eq!(product.saturating_add(rest).saturating_add(U256::from(1)), U256::MAX);
        assert_eq!(U256::from(1).saturating_sub(U256::from(2)), U256::default());
        assert_eq!(U256::MAX.checked_mul(2), None);
        assert!((square.to_f64() / 1e76 - 1.0).abs() < 1e-15);
    }

    proptest! {
        /// The results of these numbers fit into 128 bits.
        #[test]
        fn it_agrees_with_u128(a in any::<u64>(), b in any::<u64>(), c in any::<u64>()) {
            let x = u128::from(a) * u128::from(b);
            let y = u128::from(c);
            prop_assert_eq!(U256::product(a.into(), b.into()), U256::from(x));
            prop_assert_eq!(U256::from(x.min(y)).saturating_add(U256::from(y)),
                U256::from(x.min(y) + y));
            prop_assert_eq!(U256::from(x.max(y)).saturating_sub(U256::from(y)),
                U256::from(x.max(y) - y));
            prop_assert_eq!(U256::from(y).checked_mul(a), Some(U256::from(y * u128::from(a))));
            prop_assert_eq!(U256::from(x).to_string(), x.to_string());
        }

        #[test]
        fn distributive(a in any::<u128>(), b in any::<u64>(), c in any::<u64>()) {
            let sum = u128::from(b) + u128::from(c);
            let parts = U256::product(a, b.into()).saturating_add(U256::product(a, c.into()));
            prop_assert_eq!(U256::product(a, sum), parts);
            prop_assert_eq!(parts.to_string().parse(), Ok(parts));
        }
    }
}

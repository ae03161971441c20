//! Conversions between messages and checked types.

use std::str::FromStr;

use arbiter_games::{Forfeit, Seed};
use thiserror::Error;

use crate::ids::{Attempt, Lease, LotId, LotNumber, TournamentId};
use crate::v1;

/// Why a message is invalid, for the author of the program that sent it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidField {
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A number is out of range.
    #[error("`{field}` cannot be {value}")]
    Range {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// A text that cannot be parsed.
    #[error("`{field}` cannot be {value:?}")]
    Text {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
    },
    /// A text is not the expected JSON.
    #[error("`{field}`: {cause}")]
    Json {
        /// The field.
        field: &'static str,
        /// The parser's error.
        cause: String,
    },
    /// Bytes of the wrong length.
    #[error("`{field}` has {length} bytes, not {expected}")]
    Length {
        /// The field.
        field: &'static str,
        /// The number of bytes.
        length: usize,
        /// The required number.
        expected: usize,
    },
}

/// The value of a required field.
pub fn required<T>(field: &'static str, value: Option<T>) -> Result<T, InvalidField> {
    value.ok_or(InvalidField::Missing(field))
}

/// Parses a text field.
pub fn parse_field<T: FromStr>(field: &'static str, value: &str) -> Result<T, InvalidField> {
    value.parse().map_err(|_| InvalidField::Text { field, value: value.to_owned() })
}

/// The 32 bytes of a hash, a digest or a seed.
pub fn bytes32(field: &'static str, bytes: &[u8]) -> Result<[u8; 32], InvalidField> {
    let length = bytes.len();
    bytes.try_into().map_err(|_| InvalidField::Length { field, length, expected: 32 })
}

/// A seed.
pub fn seed(field: &'static str, bytes: &[u8]) -> Result<Seed, InvalidField> {
    bytes32(field, bytes).map(Seed)
}

impl From<Lease> for v1::Lease {
    fn from(Lease { lot, attempt }: Lease) -> Self {
        Self { tournament: lot.tournament.0, lot: lot.number.0, attempt: attempt.0 }
    }
}

impl TryFrom<v1::Lease> for Lease {
    type Error = InvalidField;

    fn try_from(message: v1::Lease) -> Result<Self, InvalidField> {
        let v1::Lease { tournament, lot, attempt } = message;
        let number = Some(attempt).filter(|number| *number > 0);
        let range = || InvalidField::Range { field: "attempt", value: attempt.into() };
        Ok(Self {
            lot: LotId { tournament: TournamentId(tournament), number: LotNumber(lot) },
            attempt: Attempt(number.ok_or_else(range)?),
        })
    }
}

impl From<Option<Forfeit>> for v1::Forfeit {
    fn from(forfeit: Option<Forfeit>) -> Self {
        match forfeit {
            None => Self::Unspecified,
            Some(Forfeit::Clock) => Self::Clock,
            Some(Forfeit::Illegal) => Self::Illegal,
            Some(Forfeit::Gone) => Self::Gone,
            Some(Forfeit::Flood) => Self::Flood,
        }
    }
}

/// A forfeit; `None` if there was none.
pub fn forfeit(value: i32) -> Result<Option<Forfeit>, InvalidField> {
    let range = |_| InvalidField::Range { field: "forfeit", value: value.into() };
    Ok(match v1::Forfeit::try_from(value).map_err(range)? {
        v1::Forfeit::Unspecified => None,
        v1::Forfeit::Clock => Some(Forfeit::Clock),
        v1::Forfeit::Illegal => Some(Forfeit::Illegal),
        v1::Forfeit::Gone => Some(Forfeit::Gone),
        v1::Forfeit::Flood => Some(Forfeit::Flood),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_round_trip_and_attempts_count_from_one() {
        let lot = LotId { tournament: TournamentId(-3), number: LotNumber(8) };
        let lease = Lease { lot, attempt: Attempt(2) };
        assert_eq!(Lease::try_from(v1::Lease::from(lease)), Ok(lease));
        for attempt in [0, -1, i32::MIN] {
            let message = v1::Lease { attempt, ..lease.into() };
            let error = Lease::try_from(message).unwrap_err();
            assert_eq!(error.to_string(), format!("`attempt` cannot be {attempt}"));
        }
    }

    #[test]
    fn forfeits_round_trip() {
        for value in Forfeit::ALL.into_iter().map(Some).chain([None]) {
            assert_eq!(forfeit(v1::Forfeit::from(value).into()), Ok(value));
        }
        assert!(forfeit(9).is_err());
    }

    #[test]
    fn lengths_are_checked() {
        assert_eq!(seed("seed", &[7; 32]), Ok(Seed([7; 32])));
        let error = seed("seed", &[7; 31]).unwrap_err();
        assert_eq!(error.to_string(), "`seed` has 31 bytes, not 32");
        assert_eq!(required::<u8>("lease", None), Err(InvalidField::Missing("lease")));
    }
}

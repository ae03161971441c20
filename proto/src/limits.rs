//! Resource limits of a bot, and whether it may think between its turns: `[limits]` and `ponder` of
//! a tournament file.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// An amount of memory or disk. As text a whole number with a unit: `400MB`, `64MiB`, `1GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Units with their sizes in bytes, larger ones first.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1000),
    ("B", 1),
];

impl Bytes {
    /// An amount in megabytes (10⁶ bytes).
    pub const fn megabytes(number: u64) -> Self {
        Self(number * 1_000_000)
    }

    /// The amount in whole mebibytes, rounded down.
    pub const fn mebibytes(self) -> u64 {
        self.0 >> 20
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = UNITS
            .into_iter()
            .find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size))
            .unwrap_or(("B", 1));
        write!(f, "{} {unit}", self.0 / size)
    }
}

/// A text that is not an amount of memory or disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not an amount: write a whole number and a unit, as in 400MB, 64MiB or 1GB")]
pub struct BytesError(String);

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Self, BytesError> {
        let error = || BytesError(text.to_owned());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let (_, size) =
            UNITS.into_iter().find(|(name, _)| *name == unit.trim_start()).ok_or_else(error)?;
        let number: u64 = number.parse().map_err(|_| error())?;
        number.checked_mul(size).map(Self).ok_or_else(error)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Limits for all processes of one bot together, in one match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory, including shared memory and files in memory.
    pub memory: Bytes,
    /// Processes and threads at a time.
    pub processes: u32,
    /// The size of all files in the working directory, in `/tmp` and in `/dev/shm`.
    pub disk: Bytes,
    /// The number of files and directories in the same places.
    pub files: u64,
    /// Open descriptors of one process.
    pub descriptors: u64,
    /// Processors that it may use at a time.
    pub cpus: usize,
}

impl Limits {
    /// The limits of official matches. A Java virtual machine alone has about twenty threads.
    pub const OFFICIAL: Self = Self {
        memory: Bytes::megabytes(400),
        processes: 64,
        disk: Bytes::megabytes(64),
        files: 4096,
        descriptors: 256,
        cpus: 1,
    };

    /// The limits of builds, in every tournament. Compilers need more than bots, and their files
    /// are in memory.
    pub const BUILD: Self = Self {
        memory: Bytes(2 << 30),
        processes: 256,
        disk: Bytes(512 << 20),
        files: 20_000,
        descriptors: 1024,
        cpus: 2,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::OFFICIAL
    }
}

/// What a bot may do between its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ponder {
    /// The bot is stopped.
    #[default]
    Freeze,
    /// The bot keeps running.
    Allow,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_parsed_and_printed() {
        for (text, bytes) in [("400MB", 400_000_000), ("64 MiB", 64 << 20), ("0B", 0)] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        assert_eq!(Bytes(400_000_000).to_string(), "400 MB");
        for text in ["", "MB", "400", "-1MB", "1.5GB", "99999999999999999999B", "18446744074GB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn official_limits_are_the_default() {
        assert_eq!(serde_json::from_str::<Limits>("{}").unwrap(), Limits::OFFICIAL);
        assert!(serde_json::from_str::<Limits>("{\"memroy\": \"1GB\"}").is_err());
    }
}

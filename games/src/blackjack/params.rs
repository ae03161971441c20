//! The parameters of a match and of an episode.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::clock::{Micros, some_time};
use crate::game::StartError;

/// How many bots a table has.
pub const SEATS: RangeInclusive<usize> = 1..=4;
/// The largest number of a [`PerSeat`].
const MOST: i64 = 1_000_000_000_000_000_000;

/// The parameters and their meanings.
pub const PARAMETERS: &[(&str, &str)] = &[
    ("rounds", "how many rounds an episode has, 1 to 1000; a match is one round; default 1"),
    ("hands", "how many hands a round has, 1 to 100; default 5"),
    (
        "chips",
        "what each bot starts with, one number for all or one for each seat as in 120,0,305; \
        default 200",
    ),
    (
        "bad_answers",
        "how many bad answers each bot has given earlier in the episode, as for chips; default 0",
    ),
    ("move_limit", "the time for a decision, the start of the program included; default 2s"),
];

/// What is played, with how many chips and how much time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How many rounds an episode has. A match is one round, whatever is written here.
    pub rounds: Count<1000>,
    /// How many hands a round has ("A round").
    pub hands: Count<100>,
    /// What each bot starts with, in chips.
    pub chips: PerSeat,
    /// How many bad answers each bot has given earlier in the episode.
    pub bad_answers: PerSeat,
    /// The time for a decision.
    #[serde(deserialize_with = "move_limit")]
    pub move_limit: Micros,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            rounds: Count(1),
            hands: Count(5),
            chips: PerSeat::same(200),
            bad_answers: PerSeat::same(0),
            move_limit: Micros::from_millis(2000),
        }
    }
}

/// Reads a limit that leaves some time.
fn move_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Micros, D::Error> {
    some_time(deserializer, "move_limit", "2s")
}

/// A number from 1 to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u32")]
pub struct Count<const MOST: u32>(u32);

/// A number that is no [`Count`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{number} is out of range: 1 to {most} can be played")]
pub struct CountError {
    number: i64,
    most: u32,
}

impl<const MOST: u32> TryFrom<i64> for Count<MOST> {
    type Error = CountError;

    fn try_from(number: i64) -> Result<Self, CountError> {
        let fits = u32::try_from(number).ok().filter(|count| (1..=MOST).contains(count));
        fits.map(Self).ok_or(CountError { number, most: MOST })
    }
}

impl<const MOST: u32> From<Count<MOST>> for u32 {
    fn from(count: Count<MOST>) -> Self {
        count.0
    }
}

/// A number for each seat, from 0 to 10^18; as text `200`, the same for all, or `120,0,305`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PerSeat(Numbers);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Numbers {
    Same(i64),
    Each(Vec<i64>),
}

/// Something that is not a number for each seat.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a number of chips or answers: write one whole number from 0 to 10^18, or one \
    for each seat of 1 to 4, as in 120,0,305"
)]
pub struct PerSeatError(String);

impl PerSeat {
    /// A number known to be right, for all seats.
    fn same(number: i64) -> Self {
        Self(Numbers::Same(number))
    }

    /// The number, if it is the same for all seats.
    pub fn for_all(&self) -> Option<i64> {
        match self.0 {
            Numbers::Same(number) => Some(number),
            Numbers::Each(_) => None,
        }
    }

    /// The numbers at a table of so many seats, seat 1 first.
    ///
    /// # Errors
    /// If they were given for a table of another size; `what` they count is named then.
    pub(crate) fn at_table(&self, seats: usize, what: &str) -> Result<Vec<i64>, StartError> {
        match &self.0 {
            Numbers::Same(number) => Ok(vec![*number; seats]),
            Numbers::Each(numbers) if numbers.len() == seats => Ok(numbers.clone()),
            Numbers::Each(numbers) => Err(StartError(format!(
                "{what} = {self} is for a table of {}, and this one has {seats} seats",
                numbers.len()
            ))),
        }
    }
}

impl TryFrom<i64> for PerSeat {
    type Error = PerSeatError;

    fn try_from(number: i64) -> Result<Self, PerSeatError> {
        let fits = (0..=MOST).contains(&number);
        if fits { Ok(Self::same(number)) } else { Err(PerSeatError(number.to_string())) }
    }
}

impl TryFrom<Vec<i64>> for PerSeat {
    type Error = PerSeatError;

    fn try_from(numbers: Vec<i64>) -> Result<Self, PerSeatError> {
        let fit = numbers.iter().all(|number| (0..=MOST).contains(number));
        let each = Self(Numbers::Each(numbers));
        match &each.0 {
            Numbers::Each(numbers) if fit && SEATS.contains(&numbers.len()) => Ok(each),
            _ => Err(PerSeatError(each.to_string())),
        }
    }
}

impl FromStr for PerSeat {
    type Err = PerSeatError;

    fn from_str(text: &str) -> Result<Self, PerSeatError> {
        let error = |_| PerSeatError(text.to_string());
        let numbers: Result<Vec<i64>, _> =
            text.split(',').map(|number| number.trim().parse()).collect();
        let numbers = numbers.map_err(error)?;
        match numbers[..] {
            [number] => number.try_into(),
            _ => numbers.try_into(),
        }
    }
}

impl fmt::Display for PerSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Numbers::Same(number) => number.fmt(f),
            Numbers::Each(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}

impl Serialize for PerSeat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Numbers::Same(number) => number.serialize(serializer),
            Numbers::Each(numbers) => numbers.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PerSeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PerSeatVisitor)
    }
}

/// Reads a number, a list of numbers, or either as text.
struct PerSeatVisitor;

impl<'de> Visitor<'de> for PerSeatVisitor {
    type Value = PerSeat;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, or one for each seat as in [120, 0, 305] or \"120,0,305\"")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<PerSeat, E> {
        PerSeat::try_from(number).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<PerSeat, E> {
        let number = i64::try_from(number).map_err(|_| PerSeatError(number.to_string()));
        number.and_then(PerSeat::try_from).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PerSeat, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PerSeat, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element()? {
            numbers.push(number);
        }
        PerSeat::try_from(numbers).map_err(A::Error::custom)
    }
}

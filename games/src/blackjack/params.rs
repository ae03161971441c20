//! The parameters of a match and of an episode.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use crate::clock::Micros;
use crate::match_state::StartError;
use crate::parameter::{Accepts, some_time, whole_number};
use crate::value::Value;

/// How many bots a table has.
pub const SEATS: RangeInclusive<usize> = 1..=4;
/// What is played, with how many chips and how much time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How many rounds an episode has. A match is one round, whatever is written here.
    #[serde(deserialize_with = "rounds")]
    pub rounds: Count<1000>,
    /// How many hands a round has ("A round").
    #[serde(deserialize_with = "hands")]
    pub hands: Count<100>,
    /// What each bot starts with, in chips.
    #[serde(deserialize_with = "chips")]
    pub chips: PerSeat,
    /// How many bad answers each bot has given earlier in the episode.
    #[serde(deserialize_with = "bad_answers")]
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

fn rounds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Count<1000>, D::Error> {
    let values = "a whole number from 1 to 1000, as in 1";
    count(deserializer, Accepts { key: "rounds", values })
}

fn hands<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Count<100>, D::Error> {
    let values = "a whole number from 1 to 100, as in 5";
    count(deserializer, Accepts { key: "hands", values })
}

/// Reads a number from 1 to `MOST`.
fn count<'de, D: Deserializer<'de>, const MOST: u32>(
    deserializer: D,
    accepts: Accepts,
) -> Result<Count<MOST>, D::Error> {
    let number = whole_number(deserializer, accepts)?;
    let Accepts { key, values } = accepts;
    Count::try_from(number)
        .map_err(|error| D::Error::custom(format!("{key}: {error}; write {values}")))
}

fn chips<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PerSeat, D::Error> {
    deserializer.deserialize_any(PerSeatVisitor("chips"))
}

fn bad_answers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PerSeat, D::Error> {
    deserializer.deserialize_any(PerSeatVisitor("bad_answers"))
}

/// A number from 1 to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count<const MOST: u32>(u32);

/// A number that is no [`Count`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{number} is out of range: 1 to {most} can be played")]
pub struct CountError {
    number: i64,
    most: u32,
}

impl<const MOST: u32> Count<MOST> {
    /// The most that can be played.
    pub const MOST: u32 = MOST;
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
    /// The largest number.
    pub const MOST: i64 = 1_000_000_000_000_000_000;

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

    /// The numbers as they are written.
    pub(super) fn value(&self) -> Value {
        match &self.0 {
            Numbers::Same(number) => Value::from(*number),
            Numbers::Each(numbers) => {
                Value::List(numbers.iter().copied().map(Value::from).collect())
            }
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
        let fits = (0..=Self::MOST).contains(&number);
        if fits { Ok(Self::same(number)) } else { Err(PerSeatError(number.to_string())) }
    }
}

impl TryFrom<Vec<i64>> for PerSeat {
    type Error = PerSeatError;

    fn try_from(numbers: Vec<i64>) -> Result<Self, PerSeatError> {
        let fit = numbers.iter().all(|number| (0..=Self::MOST).contains(number));
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

/// Reads a number, a list of numbers, or either as text, for the parameter of this name.
struct PerSeatVisitor(&'static str);

impl PerSeatVisitor {
    /// The error for numbers that mean nothing.
    fn refuse<E: serde::de::Error>(&self, error: &PerSeatError) -> E {
        E::custom(format!("{}: {error}", self.0))
    }
}

impl<'de> Visitor<'de> for PerSeatVisitor {
    type Value = PerSeat;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0;
        write!(f, "a whole number, or one for each seat, in {key}, as in 120,0,305")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<PerSeat, E> {
        PerSeat::try_from(number).map_err(|error| self.refuse(&error))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<PerSeat, E> {
        let number = i64::try_from(number).map_err(|_| PerSeatError(number.to_string()));
        number.and_then(PerSeat::try_from).map_err(|error| self.refuse(&error))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PerSeat, E> {
        text.parse().map_err(|error| self.refuse(&error))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PerSeat, A::Error> {
        let mut numbers = Vec::new();
        loop {
            match list.next_element() {
                Ok(Some(number)) => numbers.push(number),
                Ok(None) => break,
                Err(error) => {
                    let cause =
                        format!("{}: {error}; write whole numbers, as in 120,0,305", self.0);
                    return Err(A::Error::custom(cause));
                }
            }
        }
        PerSeat::try_from(numbers).map_err(|error| self.refuse(&error))
    }
}

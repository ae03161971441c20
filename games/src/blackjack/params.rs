//! The parameters of a match and of an episode.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

use crate::clock::Micros;
use crate::match_state::StartError;
use crate::parameter::ParamInput;
use crate::value::{ParamsError, Value};

/// The possible numbers of seats.
pub const SEATS: RangeInclusive<usize> = 1..=4;
/// The maximum number of rounds of an episode.
pub(super) const MAX_ROUNDS: u32 = 1000;
/// The maximum number of hands of a round.
pub(super) const MAX_HANDS: u32 = 100;

/// The parameters of a match and of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The number of rounds of an episode. A match is always one round.
    pub rounds: Count,
    /// The number of hands of a round ("A round").
    pub hands: Count,
    /// The chips of each bot at the start.
    pub chips: PerSeat,
    /// The number of bad replies of each bot earlier in the episode.
    pub bad_answers: PerSeat,
    /// The time limit for a decision.
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

/// Reads a number of a list.
fn whole_number(value: &Value) -> Result<i64, ParamsError> {
    match value {
        Value::Integer(number) => {
            i64::try_from(*number).map_err(|_| ParamsError::new(format!("{number} is too large")))
        }
        other => Err(ParamsError::new(format!("{other} is not a whole number"))),
    }
}

/// A number of repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub(super) u32);

impl Count {
    /// Reads a number from 1 to `max`.
    pub(super) fn read(
        input: &ParamInput<'_>,
        max: u32,
        accepts: &str,
    ) -> Result<Self, ParamsError> {
        let number = input.whole_number(accepts)?;
        let count = u32::try_from(number).ok().filter(|count| (1..=max).contains(count));
        count.map(Self).ok_or_else(|| {
            let key = input.key;
            let cause = format!("{number} is out of range: 1 to {max} can be played");
            ParamsError::new(format!("{key}: {cause}; write {accepts}"))
        })
    }
}

/// A number for each seat, from 0 to 10^18. As text: `200` for the same number at all seats, or
/// `120,0,305`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PerSeat(Numbers);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Numbers {
    Same(i64),
    Each(Vec<i64>),
}

/// The error for a value that is not a number for each seat.
fn not_per_seat(input: impl fmt::Display) -> ParamsError {
    ParamsError::new(format_args!(
        "`{input}` is not a number of chips or answers: write one whole number from 0 to 10^18, or \
         one for each seat of 1 to 4, as in 120,0,305"
    ))
}

impl PerSeat {
    /// The largest number.
    pub const MAX: i64 = 1_000_000_000_000_000_000;

    /// Reads a number, a list of numbers, or either as text.
    pub(super) fn read(input: &ParamInput<'_>) -> Result<Self, ParamsError> {
        let ParamInput { key, value, .. } = *input;
        let numbers = match value {
            Value::Integer(number) => {
                let number = i64::try_from(*number).map_err(|_| not_per_seat(number));
                number.and_then(Self::all)
            }
            Value::Text(text) => Self::parse(text),
            Value::List(list) => {
                let numbers: Result<Vec<_>, _> = list.iter().map(whole_number).collect();
                let numbers = numbers.map_err(|error| {
                    let example = "write whole numbers, as in 120,0,305";
                    ParamsError::new(format!("{key}: {error}; {example}"))
                })?;
                Self::each(numbers)
            }
            other => {
                let expected = "a whole number, or one for each seat, in";
                return Err(other.instead_of(&format!("{expected} {key}, as in 120,0,305")));
            }
        };
        numbers.map_err(|error| ParamsError::new(format!("{key}: {error}")))
    }

    /// One number for all seats.
    fn all(number: i64) -> Result<Self, ParamsError> {
        let is_valid = (0..=Self::MAX).contains(&number);
        if is_valid { Ok(Self::same(number)) } else { Err(not_per_seat(number)) }
    }

    /// A number for each seat.
    pub(super) fn each(numbers: Vec<i64>) -> Result<Self, ParamsError> {
        let is_valid = SEATS.contains(&numbers.len())
            && numbers.iter().all(|number| (0..=Self::MAX).contains(number));
        let each = Self(Numbers::Each(numbers));
        if is_valid { Ok(each) } else { Err(not_per_seat(each)) }
    }

    fn parse(text: &str) -> Result<Self, ParamsError> {
        let numbers: Result<Vec<i64>, _> =
            text.split(',').map(|number| number.trim().parse()).collect();
        let numbers = numbers.map_err(|_| not_per_seat(text))?;
        if let [number] = numbers[..] { Self::all(number) } else { Self::each(numbers) }
    }

    /// One number for all seats, without a check.
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

    /// The numbers as a parameter value.
    pub(super) fn value(&self) -> Value {
        match &self.0 {
            Numbers::Same(number) => Value::from(*number),
            Numbers::Each(numbers) => {
                Value::List(numbers.iter().copied().map(Value::from).collect())
            }
        }
    }

    /// The numbers at a table of `seats` seats, seat 1 first.
    ///
    /// # Errors
    /// If the numbers are for a table of another size. `key` is the key of the parameter.
    pub(crate) fn at_table(&self, seats: usize, key: &str) -> Result<Vec<i64>, StartError> {
        match &self.0 {
            Numbers::Same(number) => Ok(vec![*number; seats]),
            Numbers::Each(numbers) if numbers.len() == seats => Ok(numbers.clone()),
            Numbers::Each(numbers) => Err(StartError(format!(
                "{key} = {self} is for a table of {}, and this one has {seats} seats",
                numbers.len()
            ))),
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

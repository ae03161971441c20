//! How parameters are read: what is refused is answered with the parameter's key, with what it
//! accepts, and with an example.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use serde::de::Error as _;

use crate::clock::Micros;
use crate::info::ParamInfo;
use crate::rules::Rules;
use crate::value::{ParamsError, Value};

/// Reads the parameters of a game that has these; what is left out is official.
///
/// # Errors
/// The first key or value that means nothing.
pub fn read_rules<T: Rules + Default>(
    known: &[ParamInfo],
    value: &Value,
) -> Result<T, ParamsError> {
    let Value::Table(values) = value else { return Err(value.instead_of("struct Params")) };
    let mut rules = T::default();
    for (index, (key, value)) in values.iter().enumerate() {
        if values.iter().take(index).any(|(earlier, _)| earlier == key) {
            return Err(ParamsError::custom(format!("duplicate field `{key}`")));
        }
        rules.set(&Written { key, value, known })?;
    }
    rules.check()?;
    Ok(rules)
}

/// A parameter as it is written. In what is asked of it, `accepts` says what can be written; it ends
/// with an example, "as in …".
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The parameter's name.
    pub key: &'a str,
    /// What it is to be.
    pub value: &'a Value,
    /// The parameters that there are.
    known: &'a [ParamInfo],
}

impl Written<'_> {
    /// The error for a key that is none of the game's.
    pub fn unknown(&self) -> ParamsError {
        let keys: Vec<_> = self.known.iter().map(|known| format!("`{}`", known.key)).collect();
        let expected = match &keys[..] {
            [] => "there are no fields".to_string(),
            [only] => format!("expected {only}"),
            [one, other] => format!("expected {one} or {other}"),
            _ => format!("expected one of {}", keys.join(", ")),
        };
        ParamsError::custom(format!("unknown field `{}`, {expected}", self.key))
    }

    /// The error for a value that is not possible.
    pub fn impossible(&self, why: impl fmt::Display) -> ParamsError {
        ParamsError::custom(format!("{} cannot be {}: {why}", self.key, self.value))
    }

    /// Reads a text by its `FromStr`, whose errors name the parameter.
    pub fn text<T: FromStr<Err: fmt::Display>>(&self, accepts: &str) -> Result<T, ParamsError> {
        match self.value {
            Value::Text(text) => text.parse().map_err(ParamsError::custom),
            _ => Err(self.impossible(format_args!("write {accepts}"))),
        }
    }

    /// Reads a whole number.
    pub fn whole_number(&self, accepts: &str) -> Result<i64, ParamsError> {
        let number = self.value.as_integer().and_then(|number| i64::try_from(number).ok());
        number.ok_or_else(|| self.impossible(format_args!("write {accepts}")))
    }

    /// Reads a whole number within a range; `why` others are not possible.
    pub fn number_in<T: TryFrom<i64> + PartialOrd>(
        &self,
        range: RangeInclusive<T>,
        accepts: &str,
        why: &str,
    ) -> Result<T, ParamsError> {
        let number = T::try_from(self.whole_number(accepts)?).ok();
        number.filter(|number| range.contains(number)).ok_or_else(|| self.impossible(why))
    }

    /// Reads a span of time that leaves a bot some; `example` is one that does.
    pub fn some_time(&self, example: &str) -> Result<Micros, ParamsError> {
        let time = match self.value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        let cause = match time {
            Some(time) if time > Micros::ZERO => return Ok(time),
            Some(time) => format!("{time}: a bot needs some time"),
            None => format!("{}: write a whole number and a unit", self.value),
        };
        Err(ParamsError::custom(format!("{} cannot be {cause}, as in {example}", self.key)))
    }
}

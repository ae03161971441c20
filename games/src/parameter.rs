//! Descriptors of parameters, and the reading of their values. Every error names the parameter's
//! key, describes the valid values, and gives an example.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use crate::clock::Micros;
use crate::value::{ParamsError, Value};

/// A text in a descriptor.
pub type Text = Cow<'static, str>;

/// A parameter.
#[derive(Clone, Debug)]
pub struct ParamInfo {
    /// Its key.
    pub key: Text,
    /// The kind of its values.
    pub kind: ParamKind,
    /// Its default; `None` if the default depends on other parameters.
    pub default: Option<Value>,
    /// Its meaning, values and default, for the command line.
    pub help: Text,
}

/// The kind of a parameter's values.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// A whole number within these bounds.
    Integer(RangeInclusive<i64>),
    /// A number within these bounds.
    Number(RangeInclusive<f64>),
    /// True or false.
    Boolean,
    /// A text that the game parses.
    Text,
    /// One of these texts.
    Choice(Vec<Text>),
    /// A duration with its unit.
    Duration,
    /// One whole number for all seats, or one for each.
    PerSeat(RangeInclusive<i64>),
}

/// A parameter of a descriptor, for [`crate::GameInfo::new`].
pub const fn param(key: &'static str, kind: ParamKind, help: &'static str) -> ParamInfo {
    ParamInfo { key: Cow::Borrowed(key), kind, default: None, help: Cow::Borrowed(help) }
}

/// A parameter with its input value. In its methods `accepts` describes valid values and ends with
/// an example, "as in …".
#[derive(Clone, Copy, Debug)]
pub struct ParamInput<'a> {
    /// The parameter's key.
    pub key: &'a str,
    /// The input value.
    pub value: &'a Value,
    /// The parameters of the game.
    pub(crate) params: &'a [ParamInfo],
}

impl ParamInput<'_> {
    /// The error for an unknown key.
    pub fn unknown(&self) -> ParamsError {
        let keys: Vec<_> = self.params.iter().map(|param| format!("`{}`", param.key)).collect();
        let expected = match &keys[..] {
            [] => "there are no fields".to_string(),
            [only] => format!("expected {only}"),
            [first, second] => format!("expected {first} or {second}"),
            _ => format!("expected one of {}", keys.join(", ")),
        };
        ParamsError::new(format!("unknown field `{}`, {expected}", self.key))
    }

    /// The error for an impossible value.
    pub fn impossible(&self, why: impl fmt::Display) -> ParamsError {
        ParamsError::new(format!("{} cannot be {}: {why}", self.key, self.value))
    }

    /// Parses a text by `FromStr`, whose errors must name the parameter.
    pub fn text<T: FromStr<Err: fmt::Display>>(&self, accepts: &str) -> Result<T, ParamsError> {
        match self.value {
            Value::Text(text) => text.parse().map_err(ParamsError::new),
            _ => Err(self.impossible(format_args!("write {accepts}"))),
        }
    }

    /// Reads a whole number.
    pub fn whole_number(&self, accepts: &str) -> Result<i64, ParamsError> {
        let number = self.value.as_integer().and_then(|number| i64::try_from(number).ok());
        number.ok_or_else(|| self.impossible(format_args!("write {accepts}")))
    }

    /// Reads a whole number within a range; `why` explains the range.
    pub fn number_in<T: TryFrom<i64> + PartialOrd>(
        &self,
        range: RangeInclusive<T>,
        accepts: &str,
        why: &str,
    ) -> Result<T, ParamsError> {
        let number = T::try_from(self.whole_number(accepts)?).ok();
        number.filter(|number| range.contains(number)).ok_or_else(|| self.impossible(why))
    }

    /// Reads a duration greater than 0; `example` is a valid one.
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
        Err(ParamsError::new(format!("{} cannot be {cause}, as in {example}", self.key)))
    }
}

//! Parameters as data, and how they are read: what is refused is answered with the parameter's key, with what it
//! accepts, and with an example.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use crate::clock::Micros;
use crate::value::{ParamsError, Value};

/// A text of a descriptor.
pub type Text = Cow<'static, str>;

/// A parameter.
#[derive(Clone, Debug)]
pub struct ParamInfo {
    /// Its key.
    pub key: Text,
    /// What its values are.
    pub kind: ParamKind,
    /// What it is where nothing is written; nothing if that follows from other parameters.
    pub default: Option<Value>,
    /// What it means, which values it has and what holds without it, for the command line.
    pub help: Text,
}

/// What the values of a parameter are.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// A whole number within these bounds.
    Integer(RangeInclusive<i64>),
    /// A number within these bounds.
    Number(RangeInclusive<f64>),
    /// True or false.
    Boolean,
    /// Any text that the game can read.
    Text,
    /// One of these texts.
    Choice(Vec<Text>),
    /// A span of time with its unit.
    Duration,
    /// One whole number for all seats, or one for each.
    PerSeat(RangeInclusive<i64>),
}

/// A parameter of a descriptor, for [`crate::GameInfo::new`].
pub const fn param(key: &'static str, kind: ParamKind, help: &'static str) -> ParamInfo {
    ParamInfo { key: Cow::Borrowed(key), kind, default: None, help: Cow::Borrowed(help) }
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
    pub(crate) known: &'a [ParamInfo],
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
        ParamsError::new(format!("unknown field `{}`, {expected}", self.key))
    }

    /// The error for a value that is not possible.
    pub fn impossible(&self, why: impl fmt::Display) -> ParamsError {
        ParamsError::new(format!("{} cannot be {}: {why}", self.key, self.value))
    }

    /// Reads a text by its `FromStr`, whose errors name the parameter.
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
        Err(ParamsError::new(format!("{} cannot be {cause}, as in {example}", self.key)))
    }
}

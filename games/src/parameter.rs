//! How the values of parameters are read: what is refused is answered with the parameter's key, with
//! what it accepts, and with an example.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::clock::Micros;

/// A parameter and the values it accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepts {
    /// The parameter's name.
    pub(crate) key: &'static str,
    /// What can be written; it ends with an example, "as in …".
    pub(crate) values: &'static str,
}

impl Accepts {
    /// The error for a value of another kind.
    fn refuse<E: Error>(self, value: impl fmt::Display) -> E {
        let Self { key, values } = self;
        E::custom(format!("{key} cannot be {value}: write {values}"))
    }
}

/// Reads a value that is written as text, by its `FromStr`, whose errors name the parameter.
pub(crate) fn text<'de, D, T>(deserializer: D, accepts: Accepts) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    match deserializer.deserialize_any(ScalarVisitor)? {
        Scalar::Text(text) => text.parse().map_err(D::Error::custom),
        other => Err(accepts.refuse(other)),
    }
}

/// Reads a whole number.
pub(crate) fn whole_number<'de, D: Deserializer<'de>>(
    deserializer: D,
    accepts: Accepts,
) -> Result<i64, D::Error> {
    match deserializer.deserialize_any(ScalarVisitor)? {
        Scalar::Number(number) => Ok(number),
        other => Err(accepts.refuse(other)),
    }
}

/// Reads a span of time for the parameter `key` that leaves a bot some; `example` is one that does.
pub(crate) fn some_time<'de, D: Deserializer<'de>>(
    deserializer: D,
    key: &str,
    example: &str,
) -> Result<Micros, D::Error> {
    let written = deserializer.deserialize_any(ScalarVisitor)?;
    let time = match &written {
        Scalar::Text(text) => text.parse().ok(),
        _ => None,
    };
    let cause = match time {
        Some(time) if time > Micros::ZERO => return Ok(time),
        Some(time) => format!("{time}: a bot needs some time"),
        None => format!("{written}: write a whole number and a unit"),
    };
    Err(D::Error::custom(format!("{key} cannot be {cause}, as in {example}")))
}

/// A value as it is written.
#[derive(Clone, Debug)]
enum Scalar {
    Text(String),
    Number(i64),
    /// Neither, or a number that is not whole or too large: how people call it.
    Other(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "`{text}`"),
            Self::Number(number) => number.fmt(f),
            Self::Other(other) => other.fmt(f),
        }
    }
}

/// Takes any value for what it is.
struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        let whole = i64::try_from(number).map(Scalar::Number);
        Ok(whole.unwrap_or_else(|_| Scalar::Other(number.to_string())))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Other(number.to_string()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other(value.to_string()))
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other("null".to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("a list".to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("a table".to_string()))
    }
}

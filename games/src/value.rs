//! Values of parameters as plain data. They come from a tournament file, a record or `--set`, or
//! from the rules of a game.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// JSON's `null`.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number, within `i64` and `u64`.
    Integer(i128),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// Values by key.
    Table(Values),
}

/// Values by key, in written order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<(String, Value)>);

/// Why parameters cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParamsError(String);

impl ParamsError {
    /// The error with this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl Value {
    /// A text value from anything printable.
    pub fn text(value: impl fmt::Display) -> Self {
        Self::Text(value.to_string())
    }

    /// The whole number, if the value is one.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The error for this value where another kind was expected.
    pub(crate) fn instead_of(&self, expected: &str) -> ParamsError {
        let unexpected = match self {
            // serde would write "unit value", which few users understand.
            Self::Null => Unexpected::Other("null"),
            Self::Boolean(value) => Unexpected::Bool(*value),
            Self::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => Unexpected::Signed(number),
                (_, Ok(number)) => Unexpected::Unsigned(number),
                _ => Unexpected::Other("i128"),
            },
            Self::Number(number) => Unexpected::Float(*number),
            Self::Text(text) => Unexpected::Str(text),
            Self::List(_) => Unexpected::Seq,
            Self::Table(_) => Unexpected::Map,
        };
        ParamsError(format!("invalid type: {unexpected}, expected {expected}"))
    }
}

/// The value for messages.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "`{text}`"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_string())
    }
}

impl Values {
    /// No values.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The values with `value` under `key`. It replaces an earlier value.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match self.0.iter_mut().find(|(other, _)| other == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_string(), value)),
        }
        self
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.iter().find(|(other, _)| *other == key).map(|(_, value)| value)
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Integer(number) => match i64::try_from(*number) {
                Ok(number) => serializer.serialize_i64(number),
                Err(_) => serializer.serialize_i128(*number),
            },
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => serializer.collect_seq(list),
            Self::Table(values) => values.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Table(values) => Ok(values),
            other => Err(D::Error::custom(other.instead_of("a table"))),
        }
    }
}

/// Accepts any value.
struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Integer(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(entry) = map.next_entry()? {
            values.push(entry);
        }
        Ok(Value::Table(Values(values)))
    }
}

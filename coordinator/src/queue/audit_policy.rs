//! `[audit]`: the shares of matches that are audited.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use thiserror::Error;

/// The shares of matches that are audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// The share of records that the coordinator replays through the rules. With a share above 0 %
    /// it also replays every record with a forfeit or an odd score.
    pub replay: Share,
    /// The share of matches that a second worker plays again.
    pub shadow: Share,
}

impl Audit {
    /// The policy of official tournaments.
    pub const OFFICIAL: Self = Self { replay: Share::percent(5), shadow: Share::percent(1) };

    /// Reads only the policy from a stored tournament file.
    ///
    /// # Errors
    /// If a later version of the program stored it in another format.
    pub fn stored(settings: &Value) -> Result<Self, serde_json::Error> {
        settings.get("audit").map_or(Ok(Self::OFFICIAL), Self::deserialize)
    }
}

/// A share of matches, from 0 % to 100 %, in hundredths of a per cent; as text `5%` or `0.25%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u16);

/// A text that is not a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write a share from \"0%\" to \"100%\" with at most two decimals, as in \"5%\"")]
pub struct ShareError;

impl Share {
    /// All matches.
    pub const ALL: Self = Self::percent(100);

    /// A percentage; at most 100.
    pub const fn percent(percent: u8) -> Self {
        let percent = if percent > 100 { 100 } else { percent };
        Self(percent as u16 * 100)
    }

    /// The share in ten-thousandths.
    pub fn of_ten_thousand(self) -> u16 {
        self.0
    }

    /// Whether it is 0.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0 / 100;
        let rest = self.0 % 100;
        match rest {
            0 => write!(f, "{whole}%"),
            tenths if tenths % 10 == 0 => write!(f, "{whole}.{}%", tenths / 10),
            hundredths => write!(f, "{whole}.{hundredths:02}%"),
        }
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let number = text.strip_suffix('%').ok_or(ShareError)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_digits = |text: &str, max: usize| {
            (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_digits(whole, 3) || !is_digits(decimals, 2) {
            return Err(ShareError);
        }
        let whole: u16 = whole.parse().map_err(|_| ShareError)?;
        let hundredths: u16 = format!("{decimals:0<2}").parse().map_err(|_| ShareError)?;
        let share = Self(whole * 100 + hundredths);
        if share <= Self::ALL { Ok(share) } else { Err(ShareError) }
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer).map_err(|_| de::Error::custom(ShareError))?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parsed_and_formatted() {
        for (text, hundredths) in [("0%", 0), ("5%", 500), ("0.25%", 25), ("12.5%", 1250)] {
            let share: Share = text.parse().unwrap();
            assert_eq!((share.of_ten_thousand(), share.to_string()), (hundredths, text.to_owned()));
        }
        assert_eq!("100%".parse(), Ok(Share::ALL));
        assert_eq!("1.05%".parse::<Share>().unwrap().to_string(), "1.05%");
        for text in ["", "%", "5", "5 %", "-1%", "+1%", "101%", "100.01%", "1.234%", "1.%", ".5%"] {
            assert_eq!(text.parse::<Share>(), Err(ShareError), "{text}");
        }
    }
}

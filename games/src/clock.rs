//! Time in whole microseconds, and its charging by the clock rules.
//!
//! This module never reads a clock. The referee measures, and this module computes the cost.
//! Verification repeats the computation from a record and must get the same result.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A duration in microseconds; the rest of a bank may be negative. As text a number with a unit:
/// `500ms`, `15min`, `2s`, `250us`, `1h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub i64);

/// Units with their sizes in microseconds, the largest first.
const UNITS: [(&str, i64); 5] =
    [("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000), ("us", 1)];

impl Micros {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A duration in milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis * 1000)
    }

    /// Whole milliseconds, rounded towards minus infinity.
    pub const fn floor_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The duration for people, in the unit that fits rounded to the nearest: `820 µs`, `2.6 ms`,
    /// `346 ms`, `28.4 s`, `206 s`, `15 min 0 s`, `1.7 h`. Whole seconds and hours have no decimal:
    /// `2 s`, `10 h`. The spaces are no-break spaces.
    pub fn rounded(self) -> String {
        let sign = if self.0 < 0 { "−" } else { "" };
        match self.0.unsigned_abs() {
            micros @ ..1000 => format!("{sign}{micros}\u{a0}µs"),
            micros @ ..9_950 => {
                let tenths = (micros + 50) / 100;
                format!("{sign}{}.{}\u{a0}ms", tenths / 10, tenths % 10)
            }
            micros @ ..999_500 => format!("{sign}{}\u{a0}ms", (micros + 500) / 1000),
            micros @ ..99_950_000 if !micros.is_multiple_of(1_000_000) => {
                let tenths = (micros + 50_000) / 100_000;
                format!("{sign}{}.{}\u{a0}s", tenths / 10, tenths % 10)
            }
            micros @ ..599_500_000 => format!("{sign}{}\u{a0}s", (micros + 500_000) / 1_000_000),
            micros @ ..5_999_500_000 => {
                let seconds = (micros + 500_000) / 1_000_000;
                format!("{sign}{}\u{a0}min\u{a0}{}\u{a0}s", seconds / 60, seconds % 60)
            }
            micros if micros.is_multiple_of(3_600_000_000) => {
                format!("{sign}{}\u{a0}h", micros / 3_600_000_000)
            }
            micros => {
                let tenths = (micros + 180_000_000) / 360_000_000;
                format!("{sign}{}.{}\u{a0}h", tenths / 10, tenths % 10)
            }
        }
    }
}

impl Add for Micros {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Micros {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Micros {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Micros {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = UNITS
            .into_iter()
            .find(|(_, size)| self.0 != 0 && self.0 % size == 0)
            .unwrap_or(("ms", 1000));
        write!(f, "{}{unit}", self.0 / size)
    }
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a duration: write a whole number and a unit, as in 500ms, 2s, 15min or 1h")]
pub struct MicrosError(pub String);

impl FromStr for Micros {
    type Err = MicrosError;

    fn from_str(text: &str) -> Result<Self, MicrosError> {
        let error = || MicrosError(text.to_string());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let (_, size) =
            UNITS.into_iter().find(|(name, _)| *name == unit.trim_start()).ok_or_else(error)?;
        let number: i64 = number.parse().map_err(|_| error())?;
        number.checked_mul(size).map(Self).ok_or_else(error)
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer)
    }
}

/// Deserializes a text by its `FromStr`.
pub(crate) fn text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// How long a bot may take for a reply, without the margin of the clock rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The rest of a bank. Negative after a reply used a part of the margin.
    Bank(Micros),
    /// A limit for this reply alone.
    Move(Micros),
}

impl Allowance {
    /// The time allowed.
    pub fn time(self) -> Micros {
        match self {
            Self::Bank(time) | Self::Move(time) => time,
        }
    }
}

/// Which clock is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockKind {
    /// Wall-clock time: the official clock.
    #[default]
    Wall,
    /// The processor time of the bot's process tree. A limit of wall-clock time applies as well.
    Cpu,
}

/// The limit of wall-clock time under [`ClockKind::Cpu`], as a multiple of the allowance.
const WALL_BACKSTOP: i64 = 10;

/// The rules for charging time. They are the same for every match of a tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockRules {
    /// Which clock is charged.
    pub kind: ClockKind,
    /// Free time for the first reply of a process.
    pub startup: Micros,
    /// Extra time for scheduling delays of the referee.
    pub margin: Micros,
}

impl ClockRules {
    /// The official rules: wall clock, 10 s to start up, 20 ms of margin.
    pub const OFFICIAL: Self = Self {
        kind: ClockKind::Wall,
        startup: Micros::from_millis(10_000),
        margin: Micros::from_millis(20),
    };

    /// The limit of wall-clock time for a reply. `first`: whether it is the first one of its
    /// process.
    pub fn wall_limit(&self, allowance: Allowance, first: bool) -> Micros {
        let allowed = (allowance.time() + self.margin).max(Micros::ZERO);
        let startup = if first { self.startup } else { Micros::ZERO };
        match self.kind {
            ClockKind::Wall => allowed + startup,
            ClockKind::Cpu => Micros((allowed + startup).0.saturating_mul(WALL_BACKSTOP)),
        }
    }

    /// The cost of a reply that took `spent`. `first`: whether it is the first one of its process.
    pub fn charge(&self, spent: TimeSpent, allowance: Allowance, first: bool) -> Charge {
        let measured = match self.kind {
            ClockKind::Wall => spent.wall,
            ClockKind::Cpu => spent.cpu,
        };
        let startup = if first { self.startup } else { Micros::ZERO };
        let cost = (measured - startup).max(Micros::ZERO);
        let over = cost - allowance.time() - self.margin;
        let late = over > Micros::ZERO || spent.wall > self.wall_limit(allowance, first);
        Charge { cost, late: late.then(|| self.lateness(spent, allowance, cost)) }
    }

    /// A message for the bot's author: why the reply is late.
    fn lateness(&self, spent: TimeSpent, allowance: Allowance, cost: Micros) -> String {
        let over = cost - allowance.time();
        if over <= self.margin {
            return format!(
                "{} of processor time, but {} on the wall: waiting is limited to \
                {WALL_BACKSTOP} times the allowance",
                millis(spent.cpu),
                millis(spent.wall)
            );
        }
        match allowance {
            Allowance::Bank(_) => format!("bank exhausted: {} over", millis(over)),
            Allowance::Move(limit) => {
                format!(
                    "{} for one answer: {} over the limit of {}",
                    millis(cost),
                    millis(over),
                    millis(limit)
                )
            }
        }
    }
}

/// A time as text: whole milliseconds, rounded up.
fn millis(time: Micros) -> String {
    format!("{} ms", -(-time.0).div_euclid(1000))
}

/// The measured time of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSpent {
    /// From the last written byte of the request to the last readable byte of the reply.
    pub wall: Micros,
    /// Processor time of the bot's process tree between these two moments.
    pub cpu: Micros,
}

/// The cost of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The charged time. The game deducts it.
    pub cost: Micros,
    /// Why the reply is late, if it is.
    pub late: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_trip() {
        for text in ["500ms", "2s", "15min", "1h", "250us", "0ms"] {
            assert_eq!(text.parse::<Micros>().unwrap().to_string(), text);
        }
        for text in ["", "5", "ms", "-5ms", "5 parsecs", "99999999999999h", "1.5s"] {
            assert!(text.parse::<Micros>().is_err(), "{text}");
        }
    }

    #[test]
    fn people_read_durations_in_the_unit_that_fits() {
        for (micros, text) in [
            (0, "0 µs"),
            (820, "820 µs"),
            (2599, "2.6 ms"),
            (9_949, "9.9 ms"),
            (9_950, "10 ms"),
            (345_678, "346 ms"),
            (999_499, "999 ms"),
            (999_500, "1.0 s"),
            (2_000_000, "2 s"),
            (2_000_001, "2.0 s"),
            (28_431_000, "28.4 s"),
            (99_950_000, "100 s"),
            (179_999_526, "180 s"),
            (599_499_999, "599 s"),
            (599_500_000, "10 min 0 s"),
            (3_620_000_000, "60 min 20 s"),
            (5_999_500_000, "1.7 h"),
            (35_999_999_999, "10.0 h"),
            (36_000_000_000, "10 h"),
            (-12_345, "−12 ms"),
        ] {
            assert_eq!(Micros(micros).rounded(), text.replace(' ', "\u{a0}"));
        }
    }

    #[test]
    fn the_startup_allowance_applies_once() {
        let rules = ClockRules::OFFICIAL;
        let limit = Allowance::Move(Micros::from_millis(500));
        let spent = TimeSpent { wall: Micros::from_millis(9_000), cpu: Micros::ZERO };
        assert_eq!(rules.charge(spent, limit, true), Charge { cost: Micros::ZERO, late: None });
        let late = rules.charge(spent, limit, false).late.unwrap();
        assert_eq!(late, "9000 ms for one answer: 8500 ms over the limit of 500 ms");
    }

    #[test]
    fn the_margin_excuses_lateness_and_is_charged() {
        let rules = ClockRules::OFFICIAL;
        let bank = Allowance::Bank(Micros::from_millis(100));
        let spent = |millis| TimeSpent { wall: Micros::from_millis(millis), cpu: Micros::ZERO };
        assert_eq!(rules.charge(spent(120), bank, false).late, None);
        assert_eq!(rules.charge(spent(120), bank, false).cost, Micros::from_millis(120));
        let late = rules.charge(spent(121), bank, false).late.unwrap();
        assert_eq!(late, "bank exhausted: 21 ms over");
    }

    #[test]
    fn a_cpu_clock_limits_the_wall_time() {
        let rules = ClockRules { kind: ClockKind::Cpu, ..ClockRules::OFFICIAL };
        let limit = Allowance::Move(Micros::from_millis(80));
        let spent = |wall, cpu| TimeSpent {
            wall: Micros::from_millis(wall),
            cpu: Micros::from_millis(cpu),
        };
        assert_eq!(rules.charge(spent(999, 80), limit, false).late, None);
        assert!(rules.charge(spent(1001, 2), limit, false).late.unwrap().contains("on the wall"));
        assert!(rules.charge(spent(200, 101), limit, false).late.is_some());
    }
}

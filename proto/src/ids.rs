//! Identities: one type for each kind, so that they cannot be confused.
//!
//! The database assigns the numbers. They are signed because its integers are signed. With the
//! feature `sqlx`, SQL statements accept and return these types.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Declares a type for an identifying number.
macro_rules! id {
    ($(#[$meaning:meta])* $name:ident($number:ty)) => {
        $(#[$meaning])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        #[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
        pub struct $name(pub $number);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$number> for $name {
            fn from(number: $number) -> Self {
                Self(number)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.parse().map(Self)
            }
        }
    };
}

id! {
    /// A tournament.
    TournamentId(i32)
}
id! {
    /// A bot: a named entrant of an owner in one tournament.
    BotId(i32)
}
id! {
    /// A version: one submission of a bot.
    VersionId(i32)
}
id! {
    /// An edition: one complete schedule of a tournament over fixed versions.
    EditionId(i32)
}
id! {
    /// A match's number in its tournament, counted from 0 in the order in which editions added
    /// them.
    MatchNumber(i64)
}
id! {
    /// A lot's number in its tournament: the number of its first match.
    LotNumber(i64)
}
id! {
    /// The number of a lease among those of its lot, from 1. With the lot it is the fencing token:
    /// no two leases of a lot have the same number.
    Attempt(i32)
}
id! {
    /// A worker.
    WorkerId(i32)
}
id! {
    /// An access token.
    TokenId(i32)
}

impl From<LotNumber> for MatchNumber {
    /// The first match of a lot.
    fn from(lot: LotNumber) -> Self {
        Self(lot.0)
    }
}

/// A lot of a tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct LotId {
    /// The tournament it belongs to.
    pub tournament: TournamentId,
    /// Its number there.
    pub number: LotNumber,
}

impl fmt::Display for LotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tournament, self.number)
    }
}

/// A match of a tournament, by the tournament's identity. People use its [`MatchName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct MatchId {
    /// The tournament it belongs to.
    pub tournament: TournamentId,
    /// Its number there.
    pub number: MatchNumber,
}

impl fmt::Display for MatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tournament, self.number)
    }
}

/// The name of a match; as text `TOURNAMENT/NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatchName {
    /// The name of its tournament.
    pub tournament: String,
    /// Its number there.
    pub number: MatchNumber,
}

impl fmt::Display for MatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tournament, self.number)
    }
}

/// A text that is not the name of a match.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not the name of a match: write TOURNAMENT/NUMBER, such as spring/1207")]
pub struct MatchNameError(pub String);

impl FromStr for MatchName {
    type Err = MatchNameError;

    fn from_str(text: &str) -> Result<Self, MatchNameError> {
        let parse = || {
            let (tournament, number) = text.split_once('/')?;
            let number = number.parse().ok()?;
            let tournament = Some(tournament).filter(|name| !name.is_empty())?.to_owned();
            Some(Self { tournament, number })
        };
        parse().ok_or_else(|| MatchNameError(text.to_owned()))
    }
}

/// A lease of a lot, of a trial (`tournament` is [`TournamentId::TRIALS`]), or of a shadow match
/// ([`Lease::shadow`]). It is valid until the lot is reported, returned or failed, or the lease
/// expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct Lease {
    /// The leased lot.
    #[cfg_attr(feature = "sqlx", sqlx(flatten))]
    pub lot: LotId,
    /// The number of the lease.
    pub attempt: Attempt,
}

impl TournamentId {
    /// The tournament in a lease of a trial. No real tournament has this number.
    pub const TRIALS: Self = Self(0);
}

impl Lease {
    /// The lease of a trial.
    pub fn of_trial(version: VersionId, attempt: Attempt) -> Self {
        let number = LotNumber(version.0.into());
        Self { lot: LotId { tournament: TournamentId::TRIALS, number }, attempt }
    }

    /// The lease of a shadow match, which is a match that another worker plays again. Its
    /// tournament is the negated number.
    pub fn of_shadow(id: MatchId, attempt: Attempt) -> Self {
        let tournament = TournamentId(-id.tournament.0);
        Self { lot: LotId { tournament, number: LotNumber(id.number.0) }, attempt }
    }

    /// The shadow match of this lease; `None` for a lot or a trial.
    pub fn shadow(&self) -> Option<MatchId> {
        let tournament = self.lot.tournament.0.checked_neg().filter(|id| *id > 0)?;
        let tournament = TournamentId(tournament);
        Some(MatchId { tournament, number: self.lot.number.into() })
    }

    /// The version whose trial this lease is for; `None` for a lot.
    pub fn version(&self) -> Option<VersionId> {
        let number = i32::try_from(self.lot.number.0).ok().map(VersionId);
        number.filter(|_| self.lot.tournament == TournamentId::TRIALS)
    }
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.lot, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_of_trials_lots_and_shadows_differ() {
        let trial = Lease::of_trial(VersionId(7), Attempt(2));
        assert_eq!((trial.version(), trial.to_string()), (Some(VersionId(7)), "0/7#2".to_owned()));
        let lot = LotId { tournament: TournamentId(1), number: LotNumber(7) };
        assert_eq!(Lease { lot, attempt: Attempt(2) }.version(), None);
        let id = MatchId { tournament: TournamentId(3), number: MatchNumber(0) };
        let shadow = Lease::of_shadow(id, Attempt(1));
        assert_eq!((shadow.shadow(), shadow.version()), (Some(id), None));
        assert_eq!((trial.shadow(), Lease { lot, attempt: Attempt(2) }.shadow()), (None, None));
    }

    #[test]
    fn match_names_round_trip() {
        let name = MatchName { tournament: "spring".to_owned(), number: MatchNumber(1207) };
        assert_eq!(name.to_string(), "spring/1207");
        assert_eq!("spring/1207".parse(), Ok(name));
        for text in ["", "3", "spring/", "/7", "spring/a", "spring/7/1"] {
            assert_eq!(text.parse::<MatchName>(), Err(MatchNameError(text.to_owned())));
        }
    }
}

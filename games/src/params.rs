//! Games by name, and their parameters.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::game::{Game, StartError, TurnPolicy};
use crate::name::BotName;
use crate::seed::Seed;
use crate::{MIXED_TURNS_RULES_VERSION, RULES_VERSION, bitwa, blackjack, gomoku, tricks, wojna};

/// One of the five games.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GameName {
    /// Declared war: a card game for four.
    Wojna,
    /// A board battle for two.
    Bitwa,
    /// A trump trick game for two.
    Tricks,
    /// Blackjack at tables of four.
    Blackjack,
    /// Five in a row for two, opened by Swap2.
    Gomoku,
}

/// A name that is no game's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no game `{0}`; the games are wojna, bitwa, tricks, blackjack and gomoku")]
pub struct UnknownGame(pub String);

impl GameName {
    /// All games, in the order of the documents.
    pub const ALL: [Self; 5] =
        [Self::Wojna, Self::Bitwa, Self::Tricks, Self::Blackjack, Self::Gomoku];

    /// The name as typed on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Wojna => "wojna",
            Self::Bitwa => "bitwa",
            Self::Tricks => "tricks",
            Self::Blackjack => "blackjack",
            Self::Gomoku => "gomoku",
        }
    }

    /// What the components of this game's [`crate::Score`] are called, the most important first.
    pub fn score_columns(self) -> &'static [&'static str] {
        match self {
            Self::Wojna | Self::Gomoku => &["points"],
            Self::Bitwa => &["wins-losses", "units", "strength"],
            Self::Tricks => &["points", "tricks"],
            Self::Blackjack => &["chips"],
        }
    }

    /// The parameters this game knows: name and meaning.
    pub fn parameters(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Wojna => wojna::PARAMETERS,
            Self::Bitwa => bitwa::PARAMETERS,
            Self::Tricks => tricks::PARAMETERS,
            Self::Blackjack => blackjack::PARAMETERS,
            Self::Gomoku => gomoku::PARAMETERS,
        }
    }
}

impl fmt::Display for GameName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for GameName {
    type Err = UnknownGame;

    fn from_str(text: &str) -> Result<Self, UnknownGame> {
        let named = Self::ALL.into_iter().find(|game| game.word() == text);
        named.ok_or_else(|| UnknownGame(text.to_string()))
    }
}

impl<'de> Deserialize<'de> for GameName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::clock::text(deserializer)
    }
}

/// The parameters of a match of one of the games.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Params {
    /// Of wojna.
    Wojna(wojna::Params),
    /// Of bitwa.
    Bitwa(bitwa::Params),
    /// Of tricks.
    Tricks(tricks::Params),
    /// Of blackjack.
    Blackjack(blackjack::Params),
    /// Of gomoku.
    Gomoku(gomoku::Params),
}

impl Params {
    /// The official parameters of a game.
    pub fn official(game: GameName) -> Self {
        match game {
            GameName::Wojna => Self::Wojna(wojna::Params::default()),
            GameName::Bitwa => Self::Bitwa(bitwa::Params::default()),
            GameName::Tricks => Self::Tricks(tricks::Params::default()),
            GameName::Blackjack => Self::Blackjack(blackjack::Params::default()),
            GameName::Gomoku => Self::Gomoku(gomoku::Params::default()),
        }
    }

    /// Reads the parameters of `game`; what is not given is official.
    ///
    /// # Errors
    /// On unknown keys and on values that mean nothing.
    pub fn read<'de, D: Deserializer<'de>>(game: GameName, from: D) -> Result<Self, D::Error> {
        Ok(match game {
            GameName::Wojna => Self::Wojna(wojna::Params::deserialize(from)?),
            GameName::Bitwa => Self::Bitwa(bitwa::Params::deserialize(from)?),
            GameName::Tricks => Self::Tricks(tricks::Params::deserialize(from)?),
            GameName::Blackjack => Self::Blackjack(blackjack::Params::deserialize(from)?),
            GameName::Gomoku => Self::Gomoku(gomoku::Params::deserialize(from)?),
        })
    }

    /// Whose parameters these are.
    pub fn game(&self) -> GameName {
        match self {
            Self::Wojna(_) => GameName::Wojna,
            Self::Bitwa(_) => GameName::Bitwa,
            Self::Tricks(_) => GameName::Tricks,
            Self::Blackjack(_) => GameName::Blackjack,
            Self::Gomoku(_) => GameName::Gomoku,
        }
    }

    /// How many seats a table has.
    pub fn seats(&self) -> RangeInclusive<usize> {
        match self {
            Self::Wojna(params) => params.seats(),
            Self::Blackjack(_) => blackjack::SEATS,
            Self::Bitwa(_) | Self::Tricks(_) | Self::Gomoku(_) => 2..=2,
        }
    }

    /// Starts a match between bots of these names, seat 1 first.
    ///
    /// # Errors
    /// If there are too few or too many names, or two of them are the same.
    pub fn start(&self, names: &[BotName], seed: Seed) -> Result<Box<dyn Game>, StartError> {
        self.check_names(names)?;
        Ok(match self {
            Self::Wojna(params) => Box::new(wojna::Match::start(params, names.len(), seed)),
            Self::Bitwa(params) => Box::new(bitwa::Match::start(params)),
            Self::Tricks(params) => Box::new(tricks::Match::start(params, seed)),
            Self::Blackjack(params) => {
                Box::new(blackjack::Match::start(params, names.len(), seed)?)
            }
            Self::Gomoku(params) => Box::new(gomoku::Match::start(params, names, seed)),
        })
    }

    /// The same match where each seat is asked by its [`TurnPolicy`], seat 1 first, by a version of
    /// the rules: one of [`Params::rules_version`], or [`RULES_VERSION`].
    ///
    /// # Errors
    /// As [`Params::start`], and if this version is another.
    pub fn start_by(
        &self,
        rules: &str,
        names: &[BotName],
        turns: &[TurnPolicy],
        seed: Seed,
    ) -> Result<Box<dyn Game>, StartError> {
        match (self, turns) {
            _ if rules == RULES_VERSION => self.start(names, seed),
            (Self::Tricks(params), &[first, second]) if rules == self.rules_version(turns) => {
                self.check_names(names)?;
                Ok(Box::new(tricks::Match::start(params, seed).with_turn_policies([first, second])))
            }
            _ => {
                let known = self.rules_version(turns);
                let error = format!("rules version {rules}; this program knows {known}");
                Err(StartError(error))
            }
        }
    }

    /// The version of the rules by which such seats play now.
    pub fn rules_version(&self, turns: &[TurnPolicy]) -> &'static str {
        match (self, turns) {
            (Self::Tricks(_), [first, second]) if first != second => MIXED_TURNS_RULES_VERSION,
            _ => RULES_VERSION,
        }
    }

    fn check_names(&self, names: &[BotName]) -> Result<(), StartError> {
        let (game, seats, given) = (self.game(), self.seats(), names.len());
        if !seats.contains(&given) {
            let (least, most) = (seats.start(), seats.end());
            let due = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            return Err(StartError(format!("a match of {game} takes {due} bots, not {given}")));
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(StartError(format!("two bots of one match are called `{name}`")));
            }
        }
        Ok(())
    }
}

//! The parameters of a match: a game, and its rules with these parameters.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::ops::RangeInclusive;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::info::Game;
use crate::match_state::{MatchState, StartError, TurnPolicy};
use crate::move_form::Grid;
use crate::name::BotName;
use crate::rules::{EpisodeRules, Rules};
use crate::seed::Seed;
use crate::value::{ParamsError, Value, Values};

/// The parameters of a match of a game. Clones share the rules and are cheap.
#[derive(Clone)]
pub struct Params {
    game: Game,
    rules: Arc<dyn Rules>,
}

impl Params {
    /// The official parameters of a game.
    ///
    /// # Panics
    /// If a parameter in the descriptor of the game has no default.
    pub fn official(game: &Game) -> Self {
        let rules = game.read(&Value::Table(Values::new()));
        let rules = rules.expect("every parameter has a default");
        Self { game: game.clone(), rules }
    }

    /// Reads the parameters of `game`. Missing ones have their official values.
    pub fn read<'de, D: Deserializer<'de>>(game: &Game, input: D) -> Result<Self, D::Error> {
        let rules = game.read(&Value::deserialize(input)?).map_err(D::Error::custom)?;
        Ok(Self { game: game.clone(), rules })
    }

    /// Parameters of `game` from its rules.
    pub fn new(game: &Game, rules: impl Rules + 'static) -> Self {
        Self { game: game.clone(), rules: Arc::new(rules) }
    }

    /// The same game with other rules.
    pub(crate) fn with_rules(&self, rules: Arc<dyn Rules>) -> Self {
        Self { game: self.game.clone(), rules }
    }

    /// The parameters with another value for `key`.
    pub fn with(&self, key: &str, value: impl Into<Value>) -> Result<Self, ParamsError> {
        let values = self.values().with(key, value);
        Ok(self.with_rules(self.game.read(&Value::Table(values))?))
    }

    /// The game.
    pub fn game(&self) -> &Game {
        &self.game
    }

    /// The values by key.
    pub fn values(&self) -> Values {
        self.rules.values()
    }

    /// The possible numbers of seats of a table.
    pub fn seats(&self) -> RangeInclusive<usize> {
        self.rules.seats()
    }

    /// The rules with these parameters.
    pub(crate) fn rules(&self) -> &dyn Rules {
        self.rules.as_ref()
    }

    /// The rules of episodes, in games that have them.
    pub(crate) fn episode_rules(&self) -> Option<&dyn EpisodeRules> {
        self.rules.episodes()
    }

    /// The number of rounds of an episode; `None` in games without episodes.
    pub fn rounds(&self) -> Option<u32> {
        self.rules.episodes().map(EpisodeRules::rounds)
    }

    /// The squares of the board, in games where people click on squares.
    pub fn grid(&self) -> Option<Grid> {
        self.rules.grid()
    }

    /// Starts a match between bots of these names, seat 1 first.
    ///
    /// # Errors
    /// If there are too few or too many names, or two of them are the same.
    pub fn start(&self, names: &[BotName], seed: Seed) -> Result<Box<dyn MatchState>, StartError> {
        self.check_names(names)?;
        self.rules.start(names, seed)
    }

    /// Starts a match by a version of the rules, with the [`TurnPolicy`] of each seat, seat 1
    /// first.
    ///
    /// # Errors
    /// If the version is neither [`Params::rules_version`] nor the game's version, or the names are
    /// not possible.
    pub fn start_by(
        &self,
        version: &str,
        names: &[BotName],
        turns: &[TurnPolicy],
        seed: Seed,
    ) -> Result<Box<dyn MatchState>, StartError> {
        if version == self.game.rules_version {
            return self.start(names, seed);
        }
        let supported = self.rules_version(turns);
        if version != supported {
            let error = format!("rules version {version}; this program knows {supported}");
            return Err(StartError(error));
        }
        self.check_names(names)?;
        self.rules.start_for(turns, names, seed)
    }

    /// The version of the rules for seats with these turn policies.
    pub fn rules_version(&self, turns: &[TurnPolicy]) -> &str {
        self.rules.version_for(turns).unwrap_or(&self.game.rules_version)
    }

    fn check_names(&self, names: &[BotName]) -> Result<(), StartError> {
        let seats = self.seats();
        if !seats.contains(&names.len()) {
            let game = &self.game;
            let expected = seat_counts(&seats);
            let bots = names.len();
            return Err(StartError(format!("a match of {game} takes {expected} bots, not {bots}")));
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(StartError(format!("two bots of the match have the name `{name}`")));
            }
        }
        Ok(())
    }
}

/// The possible numbers of seats as text: "2", or "1 to 4".
pub fn seat_counts(seats: &RangeInclusive<usize>) -> String {
    let least = seats.start();
    let most = seats.end();
    if least == most { format!("{least}") } else { format!("{least} to {most}") }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.game == other.game && self.values() == other.values()
    }
}

/// The capitalised name of the game, and the rules. The names of record files derive from this
/// text.
impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = self.game.name.chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        let name: String = capital.into_iter().chain(letters).collect();
        f.debug_tuple(&name).field(&self.rules).finish()
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.values().serialize(serializer)
    }
}

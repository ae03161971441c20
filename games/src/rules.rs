//! What a game does that cannot be written as data.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::ops::RangeInclusive;

use crate::bounds::Bounds;
use crate::match_state::{MatchState, StartError, TurnPolicy};
use crate::move_form::Grid;
use crate::name::BotName;
use crate::parameter::Written;
use crate::seed::Seed;
use crate::value::{ParamsError, Values};

/// The version of the rules of the built-in games, written into each record. It grows when the same
/// replies to the same seed would no longer give the same scores.
pub const RULES_VERSION: &str = "1";

/// The version of the rules in matches between a bot that is asked for all tables at once and one
/// that is not ([`TurnPolicy`]). Under [`RULES_VERSION`] both were asked for any.
pub const MIXED_TURNS_RULES_VERSION: &str = "2";

/// The rules of a game with the parameters of a match.
pub trait Rules: Send + Sync + fmt::Debug {
    /// Sets a parameter to what is written.
    fn set(&mut self, written: &Written<'_>) -> Result<(), ParamsError>;

    /// Looks whether the parameters agree with each other, once all are set.
    fn check(&self) -> Result<(), ParamsError> {
        Ok(())
    }

    /// The parameters. Setting them gives the same rules.
    fn values(&self) -> Values;

    /// How many seats a table has.
    fn seats(&self) -> RangeInclusive<usize>;

    /// Starts a match between bots of these names, seat 1 first: as many as there are seats, each
    /// another one.
    ///
    /// # Errors
    /// If the parameters do not fit so many bots.
    fn start(&self, names: &[BotName], seed: Seed) -> Result<Box<dyn MatchState>, StartError>;

    /// The version of the rules by which such seats play, where it is not the game's.
    fn version_for(&self, _turns: &[TurnPolicy]) -> Option<&'static str> {
        None
    }

    /// Starts a match by the version that [`Rules::version_for`] gives.
    fn start_for(
        &self,
        _turns: &[TurnPolicy],
        names: &[BotName],
        seed: Seed,
    ) -> Result<Box<dyn MatchState>, StartError> {
        self.start(names, seed)
    }

    /// What the scores can be when these seats forfeited, seat 1 first: as many as there can be.
    /// Nothing if no match of this game can end so.
    fn bounds(&self, forfeited: &[bool]) -> Option<Bounds>;

    /// Whether the components of a score, each within its bounds, agree with each other.
    fn agrees(&self, _score: &[i64]) -> bool {
        true
    }

    /// The rules of episodes, in games that have them.
    fn episodes(&self) -> Option<&dyn EpisodeRules> {
        None
    }

    /// The squares of the board, in games in which people play by clicking on one.
    fn grid(&self) -> Option<Grid> {
        None
    }
}

/// The rules of a game's episodes.
pub trait EpisodeRules {
    /// How many rounds an episode has.
    fn rounds(&self) -> u32;

    /// What each bot has when an episode begins.
    ///
    /// # Errors
    /// If the parameters are those of a single table.
    fn begin(&self) -> Result<Carried, StartError>;

    /// The rules of a table at which the seats begin with this, seat 1 first.
    fn at_table(&self, carried: &[Carried]) -> Arc<dyn Rules>;
}

/// What a bot carries from match to match of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The first component of its last score.
    pub score: i64,
    /// How many bad answers it has given so far.
    pub bad_answers: i64,
}

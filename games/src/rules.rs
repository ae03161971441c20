//! The rules of a game: its behaviour that cannot be data.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::ops::RangeInclusive;

use crate::bounds::Bounds;
use crate::match_state::{MatchState, StartError, TurnPolicy};
use crate::move_form::Grid;
use crate::name::BotName;
use crate::parameter::ParamInput;
use crate::seed::Seed;
use crate::value::{ParamsError, Values};

/// The version of the rules of the built-in games, in each record. It changes when the same replies
/// to the same seed would no longer give the same scores.
pub const RULES_VERSION: &str = "1";

/// The version of the rules in matches between bots with different [`TurnPolicy`]. Under
/// [`RULES_VERSION`] both bots have [`TurnPolicy::AnyTable`].
pub const MIXED_TURNS_RULES_VERSION: &str = "2";

/// The rules of a game with the parameters of a match.
pub trait Rules: Send + Sync + fmt::Debug {
    /// Sets a parameter to its input value.
    fn set(&mut self, input: &ParamInput<'_>) -> Result<(), ParamsError>;

    /// Checks that the parameters agree with each other, once all are set.
    fn check(&self) -> Result<(), ParamsError> {
        Ok(())
    }

    /// The values of the parameters. Setting them gives equal rules.
    fn values(&self) -> Values;

    /// The possible numbers of seats of a table.
    fn seats(&self) -> RangeInclusive<usize>;

    /// Starts a match between bots of these names, seat 1 first. The caller has checked that their
    /// number is possible and that they differ.
    ///
    /// # Errors
    /// If the parameters are for another number of bots.
    fn start(&self, names: &[BotName], seed: Seed) -> Result<Box<dyn MatchState>, StartError>;

    /// The version of the rules for seats with these turn policies; `None` if it is the game's
    /// version.
    fn version_for(&self, _turns: &[TurnPolicy]) -> Option<&'static str> {
        None
    }

    /// Starts a match by the rules of the version [`Rules::version_for`].
    fn start_for(
        &self,
        _turns: &[TurnPolicy],
        names: &[BotName],
        seed: Seed,
    ) -> Result<Box<dyn MatchState>, StartError> {
        self.start(names, seed)
    }

    /// The bounds of the scores, given for each seat whether it forfeited, seat 1 first. `None` if
    /// no match of this game can end with these forfeits.
    fn bounds(&self, forfeited: &[bool]) -> Option<Bounds>;

    /// Whether the components of a score are consistent. Each one is within its bounds.
    fn agrees(&self, _score: &[i64]) -> bool {
        true
    }

    /// The rules of episodes, in games that have them.
    fn episodes(&self) -> Option<&dyn EpisodeRules> {
        None
    }

    /// The squares of the board, in games where people click on squares.
    fn grid(&self) -> Option<Grid> {
        None
    }
}

/// The rules of a game's episodes.
pub trait EpisodeRules {
    /// The number of rounds of an episode.
    fn rounds(&self) -> u32;

    /// The score of each bot at the start of an episode.
    ///
    /// # Errors
    /// If the parameters are those of a single table.
    fn begin(&self) -> Result<CarriedScore, StartError>;

    /// The rules of a table whose seats begin with these carried scores, seat 1 first.
    fn at_table(&self, carried: &[CarriedScore]) -> Arc<dyn Rules>;
}

/// The score that a bot carries from match to match in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedScore {
    /// The first component of its last score.
    pub score: i64,
    /// The number of its bad replies so far.
    pub bad_answers: i64,
}

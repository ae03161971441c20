//! The kinds of plans in rounds.

use core::fmt;

use arbiter_games::Score;

use super::rounds::Rounds;
use super::{
    Bracket, GauntletPlan, Ladder, MatchBounds, PlannedMatch, ResultsError, StagePlan,
    SwissTournament,
};

/// A plan in rounds, at the beginning of a round.
#[derive(Clone, Debug)]
pub enum RoundPlan {
    /// Meetings of two: the loser is out.
    Knockout(Bracket),
    /// Meetings of bots with equal points.
    Swiss(SwissTournament),
    /// Candidates against a panel, in one round.
    Gauntlet(GauntletPlan),
    /// Meetings where they tell most about ratings.
    Ladder(Ladder),
    /// Several plans, each with the best bots of the one before.
    Stages(Box<StagePlan>),
}

impl RoundPlan {
    fn rounds(&self) -> &dyn Rounds {
        match self {
            Self::Knockout(bracket) => bracket,
            Self::Swiss(swiss) => swiss,
            Self::Gauntlet(gauntlet) => gauntlet,
            Self::Ladder(ladder) => ladder,
            Self::Stages(stages) => stages.as_ref(),
        }
    }

    /// The number of bots.
    pub fn bots(&self) -> usize {
        self.rounds().bots()
    }

    /// The number of seats of a match.
    pub fn seats(&self) -> usize {
        self.rounds().seats()
    }

    /// The matches that follow from the results so far, in order. Empty if the plan is over.
    pub fn matches(&self) -> Vec<PlannedMatch> {
        self.rounds().matches()
    }

    /// Whether no match follows.
    pub fn is_over(&self) -> bool {
        self.rounds().is_over()
    }

    /// Advances with the results of [`Self::matches`], in the same order: for each match the score
    /// of each seat, seat 1 first.
    ///
    /// # Errors
    /// If they are not the results of these matches. Then the plan is unchanged.
    pub fn finish(&mut self, results: &[Vec<Score>]) -> Result<(), ResultsError> {
        match self {
            Self::Knockout(bracket) => bracket.finish(results),
            Self::Swiss(swiss) => swiss.finish(results),
            Self::Gauntlet(gauntlet) => gauntlet.finish(results),
            Self::Ladder(ladder) => ladder.finish(results),
            Self::Stages(stages) => stages.finish(results),
        }
    }

    /// The rank of each bot by the results so far, in the order of the bots. Bots with the same
    /// rank share it, and the following ranks are skipped. In a knockout, bots that are still in
    /// share rank 1.
    pub fn ranks(&self) -> Vec<u32> {
        self.rounds().ranks()
    }

    /// The least and most matches of the whole plan.
    pub fn bounds(&self) -> MatchBounds {
        self.rounds().bounds()
    }
}

/// A summary in one line, for people.
impl fmt::Display for RoundPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Knockout(bracket) => bracket.fmt(f)?,
            Self::Swiss(swiss) => swiss.fmt(f)?,
            Self::Gauntlet(gauntlet) => gauntlet.fmt(f)?,
            Self::Ladder(ladder) => ladder.fmt(f)?,
            Self::Stages(stages) => stages.fmt(f)?,
        }
        write!(f, ", {}", self.bounds())
    }
}

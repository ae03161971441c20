//! Errors of schedules.

use thiserror::Error;

/// Checks the number of bots. `min` is the minimum for this kind of plan.
pub(crate) fn check_bots(bots: usize, min: usize, plan: &'static str) -> Result<(), ScheduleError> {
    if bots < min {
        Err(ScheduleError::TooFew { bots, min, plan })
    } else if bots > super::MAX_BOTS {
        Err(ScheduleError::TooMany { bots })
    } else {
        Ok(())
    }
}

/// Why a plan is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// There are too few bots for one match.
    #[error("too few bots for {plan}: {bots}; enter at least {min}")]
    TooFew {
        /// The number of bots.
        bots: usize,
        /// The minimum number of bots.
        min: usize,
        /// The kind of plan.
        plan: &'static str,
    },
    /// There are more bots than a plan can have.
    #[error("too many bots: {bots}; at most {} can be planned", super::MAX_BOTS)]
    TooMany {
        /// The number of bots.
        bots: usize,
    },
    /// There are too many bots for a counter for each pair.
    #[error(
        "too many bots to keep owners apart, or to change their plan: {bots}; at most {} are possible",
        super::bot::MAX_COUNTED_BOTS
    )]
    TooManyKnown {
        /// The number of bots, including those that left.
        bots: usize,
    },
    /// No table allows an exchange of bots.
    #[error(
        "the plan for {bots} bots cannot be changed for a bot that joins or leaves; make a new plan"
    )]
    NoRoom {
        /// The number of bots.
        bots: usize,
    },
    /// No bot of the panel of a gauntlet has entered.
    #[error("no bot of the panel has entered ({panel}); enter one of them")]
    NoPanel {
        /// The names of the panel.
        panel: String,
    },
    /// All bots of a gauntlet belong to the panel.
    #[error("all {bots} bots belong to the panel; enter a candidate")]
    NoCandidate {
        /// The number of bots.
        bots: usize,
    },
    /// A plan has more matches than can be kept in memory.
    #[error("{plan} has {matches} matches, and at most {max} are possible; {remedy}")]
    LargePlan {
        /// The plan.
        plan: String,
        /// The number of its matches.
        matches: u64,
        /// The maximum.
        max: u64,
        /// What to do.
        remedy: &'static str,
    },
}

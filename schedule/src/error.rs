//! What is wrong with a schedule.

use thiserror::Error;

/// Looks whether so many bots can be planned, by a plan that needs so many at least.
pub(crate) fn check_bots(
    bots: usize,
    fewest: usize,
    plan: &'static str,
) -> Result<(), ScheduleError> {
    if bots < fewest {
        Err(ScheduleError::TooFew { bots, fewest, plan })
    } else if bots > super::MOST_BOTS {
        Err(ScheduleError::TooMany { bots })
    } else {
        Ok(())
    }
}

/// Why there is no such plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// There are not enough bots for one match.
    #[error("too few bots for {plan}: {bots}; enter at least {fewest}")]
    TooFew {
        /// How many there are.
        bots: usize,
        /// How many it takes.
        fewest: usize,
        /// What they are too few for.
        plan: &'static str,
    },
    /// There are more bots than can be planned.
    #[error("too many bots: {bots}; at most {} can be planned", super::MOST_BOTS)]
    TooMany {
        /// How many there are.
        bots: usize,
    },
    /// There are more bots than can be counted pair by pair.
    #[error(
        "too many bots to keep owners apart, or to change their plan: {bots}; at most {} can be",
        super::bot::MOST_KNOWN
    )]
    TooManyKnown {
        /// How many there are, or were.
        bots: usize,
    },
    /// Not all pairs can meet exactly so many times.
    #[error(
        "meetings = {meetings}: of {bots} bots every pair can meet {least}, {}, {}, … times; \
        choose one of these, or a number of games instead", least * 2, least * 3
    )]
    Meetings {
        /// How many bots there are.
        bots: usize,
        /// The least number of meetings, of which all possible ones are multiples.
        least: u32,
        /// What was asked for.
        meetings: u32,
    },
    /// More matches than anybody wants.
    #[error("every pair would meet more than {most} times; ask for less")]
    TooMuch {
        /// The most meetings of a pair.
        most: u32,
    },
}

//! A plan of any kind.

use super::matches::Matches;
use super::{EpisodePlan, RoundPlan};

/// The plan of a schedule for given bots.
#[derive(Debug)]
pub enum Plan {
    /// Matches that can be listed in advance.
    Matches(Matches),
    /// Episodes, whose matches depend on earlier results.
    Episodes(EpisodePlan),
    /// Rounds that depend on earlier results, at the beginning of the first one.
    Rounds(RoundPlan),
}

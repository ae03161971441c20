//! Where a plan cannot have the number that its schedule requests, and what it has instead.
//!
//! An entered bot always plays, so a schedule that is impossible for some numbers of bots is not an
//! error. The plan then has the smallest possible number that is at least the requested one.

use core::fmt;

use super::foursomes::{planned_tables, rounded_meetings};
use super::{FoursomesConfig, Opponents, RosterHistory, Schedule};

/// A number that a plan has instead of the requested one. It is shown as one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// At tables of four every pair meets equally often, but more often than requested.
    Meetings {
        /// The requested number.
        requested: u32,
        /// The number of bots.
        bots: usize,
        /// The number of meetings of each pair.
        planned: u32,
    },
    /// At tables of four some pairs may meet more often than others.
    LeastMeetings {
        /// The requested number.
        requested: u32,
        /// The number of bots for which the first plan was made.
        first_bots: usize,
        /// The least number of meetings of a pair that may meet.
        least: u32,
        /// Why some pairs may meet more often.
        cause: UnevenCause,
    },
    /// The number of matches at tables of four.
    Games {
        /// The requested number.
        requested: u64,
        /// The number of bots.
        bots: usize,
        /// The number of matches in the plan.
        planned: u64,
    },
    /// The number of others that each bot meets.
    Opponents {
        /// The requested number.
        requested: Opponents,
        /// The number of bots.
        bots: usize,
        /// The number of others that each bot meets in the plan.
        planned: usize,
    },
}

/// Why pairs at tables of four may not all meet equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnevenCause {
    /// Bots joined or left.
    Changes,
    /// Bots of one owner do not meet.
    Owners,
    /// Both.
    ChangesAndOwners,
}

impl UnevenCause {
    /// The cause in a plan with this history, in which some bots have the same owner and are kept
    /// apart or not. `None` if all pairs meet equally often.
    fn of(history: &RosterHistory, are_kept_apart: bool) -> Option<Self> {
        match (history.steps.is_empty(), are_kept_apart) {
            (true, false) => None,
            (true, true) => Some(Self::Owners),
            (false, false) => Some(Self::Changes),
            (false, true) => Some(Self::ChangesAndOwners),
        }
    }

    /// The pairs that meet, and why some of them may meet more often, for people.
    fn texts(self) -> [&'static str; 2] {
        let of_different_owners = "every pair of bots without a common owner";
        match self {
            Self::Changes => ["every pair of bots", "bots joined or left"],
            Self::Owners => [of_different_owners, "owners are kept apart"],
            Self::ChangesAndOwners => {
                [of_different_owners, "bots joined or left and owners are kept apart"]
            }
        }
    }
}

impl Schedule {
    /// The number that a new plan for these bots has instead of the requested one. `None` if it has
    /// the requested one, or if none was requested.
    pub fn adjustment(&self, bots: usize) -> Option<Adjustment> {
        self.adjustment_of(&self.new_history(bots), false)
    }

    /// Like [`Self::adjustment`] for a plan with this history. `are_kept_apart` says whether some
    /// of its bots have the same owner and are kept apart.
    pub fn adjustment_of(
        &self,
        history: &RosterHistory,
        are_kept_apart: bool,
    ) -> Option<Adjustment> {
        let bots = history.base;
        match self {
            Self::Foursomes(FoursomesConfig::Meetings(number)) => {
                let requested = number.get();
                let planned = rounded_meetings(bots, requested);
                if let Some(cause) = UnevenCause::of(history, are_kept_apart) {
                    let least = planned;
                    let first_bots = bots;
                    return Some(Adjustment::LeastMeetings { requested, first_bots, least, cause });
                }
                (planned != requested).then_some(Adjustment::Meetings { requested, bots, planned })
            }
            // The number is for the bots at the start.
            Self::Foursomes(FoursomesConfig::Games(_)) if !history.steps.is_empty() => None,
            Self::Foursomes(FoursomesConfig::Games(number)) => {
                let requested = number.get();
                let planned = planned_tables(history, *number);
                (planned != requested).then_some(Adjustment::Games { requested, bots, planned })
            }
            Self::RoundRobin(rules) => {
                let requested = rules.opponents?;
                let planned = requested.among(bots);
                let is_exact = planned == requested.get() as usize;
                (!is_exact).then_some(Adjustment::Opponents { requested, bots, planned })
            }
            Self::Foursomes(FoursomesConfig::Least)
            | Self::Tables(_)
            | Self::Solo(_)
            | Self::Episodes(_)
            | Self::Knockout(_)
            | Self::Swiss(_)
            | Self::Gauntlet(_)
            | Self::Ladder(_) => None,
            // The first stage that cannot have its number.
            Self::Stages(stages) => {
                let parts = stages.list().iter().zip(stages.fields(bots));
                parts
                    .into_iter()
                    .find_map(|(stage, bots)| Self::from(stage.schedule).adjustment(bots))
            }
        }
    }

    /// Like [`Self::adjustment_of`] for a plan that is not made yet: it will have this history, or
    /// a new plan for its `bots` will be made instead.
    pub fn adjustment_of_next(
        &self,
        history: &RosterHistory,
        bots: usize,
        are_kept_apart: bool,
    ) -> Option<Adjustment> {
        let adjustment = self.adjustment_of(history, are_kept_apart)?;
        Some(match adjustment {
            Adjustment::LeastMeetings { requested, first_bots, least, cause } => {
                let least = least.min(rounded_meetings(bots, requested));
                Adjustment::LeastMeetings { requested, first_bots, least, cause }
            }
            _ => adjustment,
        })
    }
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Meetings { requested, bots, planned } => {
                write!(f, "every pair of bots meets {}", times(planned))?;
                write_meetings(f, requested, planned, bots, "")
            }
            Self::LeastMeetings { requested, first_bots, least, cause } => {
                let [pairs, cause] = cause.texts();
                write!(f, "{pairs} meets at least {}", times(least))?;
                write_meetings(f, requested, least, first_bots, "the first ")?;
                write!(f, ", and some may meet more often because {cause}")
            }
            Self::Games { requested, bots, planned } => {
                write!(f, "{planned} matches are planned instead of {requested}, ")?;
                if planned > requested {
                    write!(f, "so that each of the {bots} bots plays")
                } else {
                    write!(f, "because no more can be planned for {bots} bots")
                }
            }
            Self::Opponents { requested, bots, planned } => {
                write!(f, "every bot meets {planned} others instead of {requested}, because ")?;
                if planned < requested.get() as usize {
                    write!(f, "there are only {bots} bots")
                } else {
                    write!(f, "{bots} bots cannot all meet exactly {requested} others")
                }
            }
        }
    }
}

/// Compares the number of meetings in a plan with the requested one. `first` precedes the number of
/// bots.
fn write_meetings(
    f: &mut fmt::Formatter<'_>,
    requested: u32,
    planned: u32,
    bots: usize,
    first: &str,
) -> fmt::Result {
    if planned == requested {
        return f.write_str(", as requested");
    }
    let instead = if requested == 1 { times(1) } else { requested.to_string() };
    write!(f, " instead of {instead}, because ")?;
    if planned < requested {
        // Tournaments of former releases can have a larger number than is planned now.
        return f.write_str("no more meetings can be planned");
    }
    let exactly = times(requested);
    write!(f, "{first}{bots} bots at tables of four cannot all meet exactly {exactly}")
}

/// A number of meetings as text: `once`, `4 times`.
fn times(meetings: u32) -> String {
    if meetings == 1 { "once".to_owned() } else { format!("{meetings} times") }
}

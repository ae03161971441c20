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
    /// At tables of four some pairs meet more often than requested, because bots joined or left or
    /// owners are kept apart.
    LeastMeetings {
        /// The requested number.
        requested: u32,
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

impl Schedule {
    /// The number that a new plan for these bots has instead of the requested one. `None` if it has
    /// the requested one, or if none was requested.
    pub fn adjustment(self, bots: usize) -> Option<Adjustment> {
        self.adjustment_of_first(&self.new_history(bots))
    }

    /// Like [`Self::adjustment`] for the plan of the first bots of a history.
    pub fn adjustment_of_first(self, history: &RosterHistory) -> Option<Adjustment> {
        let bots = history.base;
        match self {
            Self::Foursomes(FoursomesConfig::Meetings(number)) => {
                let requested = number.get();
                let planned = rounded_meetings(bots, requested);
                (planned != requested).then_some(Adjustment::Meetings { requested, bots, planned })
            }
            Self::Foursomes(FoursomesConfig::Games(number)) => {
                let requested = number.get();
                let planned = planned_tables(history, number);
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
            | Self::Knockout(_) => None,
        }
    }

    /// Like [`Self::adjustment`] for a plan that was changed because bots joined or left, or that
    /// keeps owners apart.
    pub fn adjustment_of_changed(self, bots: usize) -> Option<Adjustment> {
        match self {
            Self::Foursomes(FoursomesConfig::Meetings(number)) => {
                Some(Adjustment::LeastMeetings { requested: number.get() })
            }
            // The number is for the bots at the start.
            Self::Foursomes(FoursomesConfig::Games(_)) => None,
            _ => self.adjustment(bots),
        }
    }
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meetings { requested, bots, planned } => write!(
                f,
                "meetings = {requested} is not possible with {bots} bots: every pair meets \
                 {planned} times"
            ),
            Self::LeastMeetings { requested } => write!(
                f,
                "meetings = {requested} is the least in this plan: some pairs meet more often"
            ),
            Self::Games { requested, bots, planned } => write!(
                f,
                "games = {requested} is not possible with {bots} bots: {planned} matches are \
                 planned"
            ),
            Self::Opponents { requested, bots, planned } => write!(
                f,
                "opponents = {requested} is not possible with {bots} bots: every bot meets \
                 {planned} others"
            ),
        }
    }
}

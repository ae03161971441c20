//! An incremental plan as a stream: first the remaining tables of the base's design, then the added
//! tables.

use std::sync::Arc;

use arbiter_games::Seed;

use super::incremental_planner::{IncrementalPlanner, tables_with_holders};
use super::{Foursomes, FoursomesConfig, MAX_COUNTED_BOTS, Table, check, same_owner};
use crate::{Bot, Claim, Member, Owner, RosterHistory, ScheduleError};

/// An incremental plan.
#[derive(Debug)]
pub(crate) struct IncrementalPlan {
    /// The number of bots.
    pub(crate) bots: usize,
    /// The number of bots of the base's design.
    base: usize,
    /// The number of meetings of each pair in whole designs of the base, and the number of tables
    /// beyond them.
    parts: (u32, u64),
    seed: Seed,
    /// The bot with each number of the design; `None` if it left.
    holders: Vec<Option<Bot>>,
    /// The owners of the bots; empty if owners do not matter.
    pub(crate) owners: Vec<Option<Owner>>,
    /// The number of tables of the design that remain.
    base_tables: u64,
    added: Vec<Table>,
    /// The number of tables that the last change added. It includes the tables that a new bot got
    /// from a bot that left.
    pub(crate) new_tables: u64,
    claim: Claim,
}

/// The tables of an incremental plan, one by one.
#[derive(Debug)]
pub struct IncrementalTables {
    plan: Arc<IncrementalPlan>,
    base: Foursomes,
    /// The number of added tables so far.
    added_tables: usize,
}

impl FoursomesConfig {
    /// The plan after a history of changes; `members` has one member for each place.
    ///
    /// # Errors
    /// As for [`FoursomesConfig::plan`] with the bots of the base, or if fewer than 4 bots remain
    /// after a change, or there are more than 5000 places.
    pub(crate) fn incremental_plan(
        self,
        history: &RosterHistory,
        members: &[Member],
        seed: Seed,
    ) -> Result<IncrementalPlan, ScheduleError> {
        let parts = self.parts(history)?;
        let bots = members.iter().filter(|member| member.bot.is_some()).count();
        check(bots)?;
        if history.places() > MAX_COUNTED_BOTS {
            return Err(ScheduleError::TooManyKnown { bots: history.places() });
        }
        let owners: Vec<_> = members.iter().map(|member| member.owner).collect();
        let has_owners = owners.iter().any(Option::is_some);
        let mut planner = IncrementalPlanner::new(
            history.base,
            parts,
            seed,
            if has_owners { &owners } else { &[] },
        );
        let mut present = history.base;
        for step in &history.steps {
            present = present + step.joined - step.left.len();
            check(present)?;
            planner.apply(step);
        }
        let claim = planner.claim();
        let bot =
            |place: Bot| members[usize::from(place)].bot.expect("a bot that left has no tables");
        let mut owners = if has_owners { vec![None; bots] } else { Vec::new() };
        for member in members.iter().filter(|_| has_owners) {
            if let Some(bot) = member.bot {
                owners[usize::from(bot)] = member.owner;
            }
        }
        let holders = planner.holders.iter().map(|holder| holder.map(bot)).collect();
        let added = planner.added.iter().map(|table| table.map(bot)).collect();
        Ok(IncrementalPlan {
            bots,
            base: history.base,
            parts,
            seed,
            holders,
            owners,
            base_tables: planner.kept_tables,
            added,
            new_tables: planner.new_tables,
            claim,
        })
    }
}

impl IncrementalPlan {
    /// All tables of the plan.
    pub(crate) fn tables(self: &Arc<Self>) -> IncrementalTables {
        let base = Foursomes::new(self.base, self.parts.0, self.parts.1, self.seed);
        IncrementalTables { plan: Arc::clone(self), base, added_tables: 0 }
    }
}

impl IncrementalTables {
    /// The total number of tables.
    pub fn matches(&self) -> u64 {
        self.plan.base_tables + self.plan.added.len() as u64
    }

    /// The claim of the plan.
    pub fn claim(&self) -> Claim {
        self.plan.claim.clone()
    }
}

impl Iterator for IncrementalTables {
    type Item = Table;

    fn next(&mut self) -> Option<Table> {
        let IncrementalPlan { holders, owners, added, .. } = &*self.plan;
        let mut base = tables_with_holders(&mut self.base, holders);
        if let Some(table) = base.find(|table| !same_owner::has_pair(owners, *table)) {
            return Some(table);
        }
        self.added_tables += 1;
        added.get(self.added_tables - 1).copied()
    }
}

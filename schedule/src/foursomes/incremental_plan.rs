//! A plan that has grown, as a stream: the tables left of the base's design, and then those that
//! were added.

use std::sync::Arc;

use arbiter_games::Seed;

use super::incremental_planner::{IncrementalPlanner, seated};
use super::{Foursomes, FoursomesConfig, MAX_COUNTED_BOTS, Table, check, same_owner};
use crate::{Bot, Claim, Member, Owner, RosterHistory, ScheduleError};

/// What of a plan does not follow from the number of its bots.
#[derive(Debug)]
pub(crate) struct IncrementalPlan {
    /// How many bots are in it.
    pub(crate) bots: usize,
    /// How many the design of the base is for.
    base: usize,
    /// How often each pair meets in whole designs of the base, and how many tables are beyond them.
    parts: (u32, u64),
    seed: Seed,
    /// Which bot has each number of the design; none if its bot left.
    holders: Vec<Option<Bot>>,
    /// Whose each bot is; empty if that makes no difference.
    pub(crate) owners: Vec<Option<Owner>>,
    /// How many tables of the design are left.
    kept: u64,
    added: Vec<Table>,
    /// How many tables were not there before the last step; those with a newcomer are among them.
    pub(crate) new_tables: u64,
    claim: Claim,
}

/// The tables of a plan that has grown, one by one.
#[derive(Debug)]
pub struct IncrementalTables {
    grown: Arc<IncrementalPlan>,
    base: Foursomes,
    added: usize,
}

impl FoursomesConfig {
    /// Grows a plan; there is a member for each place of the lineage.
    ///
    /// # Errors
    /// As for [`FoursomesConfig::plan`], for those who began; or if fewer than 4 bots are left, or there are
    /// more than 5000 places.
    pub(crate) fn incremental_plan(
        self,
        lineage: &RosterHistory,
        members: &[Member],
        seed: Seed,
    ) -> Result<IncrementalPlan, ScheduleError> {
        let parts = self.parts(lineage.base)?;
        let bots = members.iter().filter(|member| member.bot.is_some()).count();
        check(bots)?;
        if lineage.places() > MAX_COUNTED_BOTS {
            return Err(ScheduleError::TooManyKnown { bots: lineage.places() });
        }
        let owners: Vec<_> = members.iter().map(|member| member.owner).collect();
        let owned = owners.iter().any(Option::is_some);
        let mut growth =
            IncrementalPlanner::new(lineage.base, parts, seed, if owned { &owners } else { &[] });
        lineage.steps.iter().for_each(|step| growth.take(step));
        let claim = growth.claim();
        let bot = |place: Bot| members[usize::from(place)].bot.expect("who left has no tables");
        let mut owners = if owned { vec![None; bots] } else { Vec::new() };
        for member in members.iter().filter(|_| owned) {
            if let Some(bot) = member.bot {
                owners[usize::from(bot)] = member.owner;
            }
        }
        let holders = growth.holders.iter().map(|holder| holder.map(bot)).collect();
        let added = growth.added.iter().map(|table| table.map(bot)).collect();
        let (base, kept, new_tables) = (lineage.base, growth.kept, growth.new_tables);
        Ok(IncrementalPlan {
            bots,
            base,
            parts,
            seed,
            holders,
            owners,
            kept,
            added,
            new_tables,
            claim,
        })
    }
}

impl IncrementalPlan {
    /// The tables, from the first one on.
    pub(crate) fn tables(self: &Arc<Self>) -> IncrementalTables {
        let base = Foursomes::new(self.base, self.parts.0, self.parts.1, self.seed);
        IncrementalTables { grown: Arc::clone(self), base, added: 0 }
    }
}

impl IncrementalTables {
    /// How many tables there are in all.
    pub fn matches(&self) -> u64 {
        self.grown.kept + self.grown.added.len() as u64
    }

    /// What is promised.
    pub fn claim(&self) -> Claim {
        self.grown.claim.clone()
    }
}

impl Iterator for IncrementalTables {
    type Item = Table;

    fn next(&mut self) -> Option<Table> {
        let IncrementalPlan { holders, owners, added, .. } = &*self.grown;
        let mut base = seated(&mut self.base, holders);
        if let Some(table) = base.find(|table| !same_owner::has_pair(owners, *table)) {
            return Some(table);
        }
        self.added += 1;
        added.get(self.added - 1).copied()
    }
}

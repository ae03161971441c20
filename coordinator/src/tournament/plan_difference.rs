//! What a plan has that the plan before it has not, and the other way round.
//!
//! Both plans are read side by side. Two plans of the same schedule list their common matches in
//! nearly the same order, so only those matches are in memory that one plan has listed and the
//! other has not, or not yet.

use std::collections::HashMap;

use crate::db::matches::{Match, MatchKey};

/// Maximum number of matches in memory: about 200 MB.
const MAX_PENDING: usize = 1 << 20;

/// The difference of two plans.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlanDifference {
    /// The matches that only the plan before has.
    pub(super) gone: Vec<Match>,
    /// The matches that only the new plan has, in its order.
    pub(super) added: Vec<Match>,
}

/// Compares two plans. The matches of a plan are different, and numbered from 0. None if the plans
/// differ in too many matches, so that a comparison is not worth its memory.
pub(super) fn difference(
    before: impl Iterator<Item = Match>,
    after: impl Iterator<Item = Match>,
) -> Option<PlanDifference> {
    let mut before = before.fuse();
    let mut after = after.fuse();
    let mut gone: HashMap<MatchKey, Match> = HashMap::new();
    let mut added: HashMap<MatchKey, Match> = HashMap::new();
    loop {
        let [old, new] = [before.next(), after.next()];
        if old.is_none() && new.is_none() {
            break;
        }
        if let (Some(old), Some(new)) = (&old, &new)
            && old.has_key_of(new)
        {
            continue;
        }
        if let Some(old) = old {
            let key = old.key();
            if added.remove(&key).is_none() {
                gone.insert(key, old);
            }
        }
        if let Some(new) = new {
            let key = new.key();
            if gone.remove(&key).is_none() {
                added.insert(key, new);
            }
        }
        if gone.len() + added.len() > MAX_PENDING {
            return None;
        }
    }
    let in_order = |matches: HashMap<MatchKey, Match>| {
        let mut matches: Vec<_> = matches.into_values().collect();
        matches.sort_unstable_by_key(|planned| planned.number);
        matches
    };
    Some(PlanDifference { gone: in_order(gone), added: in_order(added) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arbiter_proto::ids::MatchNumber;
    use arbiter_ranking::Entrant;
    use proptest::prelude::*;

    use super::*;
    use crate::db::matches::Seats;

    fn plan(seats: &[[i32; 2]]) -> Vec<Match> {
        let planned = |(number, seats): (i64, &[i32; 2])| Match {
            number: MatchNumber(number),
            seed_key: i64::from(seats[0]),
            board: None,
            seats: Seats(seats.iter().copied().map(Entrant).collect()),
            carried: None,
            state_from: None,
            params: None,
        };
        (0..).zip(seats).map(planned).collect()
    }

    proptest! {
        #[test]
        fn the_difference_turns_one_plan_into_the_other(
            before in prop::collection::btree_set((1..9_i32, 1..9_i32), 0..40),
            after in prop::collection::btree_set((1..9_i32, 1..9_i32), 0..40),
            turn in 0..40_usize,
        ) {
            let list = |set: &BTreeSet<(i32, i32)>| {
                set.iter().map(|(one, two)| [*one, *two]).collect::<Vec<_>>()
            };
            let before = list(&before);
            let mut after = list(&after);
            let middle = turn % after.len().max(1);
            after.rotate_left(middle);
            let found = difference(plan(&before).into_iter(), plan(&after).into_iter()).unwrap();
            let without = |all: &[[i32; 2]], others: &[[i32; 2]]| {
                let all = plan(all).into_iter();
                let is_other = |planned: &Match| {
                    others.contains(&[planned.seats.0[0].0, planned.seats.0[1].0])
                };
                all.filter(|planned| !is_other(planned)).collect::<Vec<_>>()
            };
            prop_assert_eq!(found.gone, without(&before, &after));
            prop_assert_eq!(found.added, without(&after, &before));
        }
    }
}

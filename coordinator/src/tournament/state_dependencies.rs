//! Dependencies between matches through the files that bots leave: a match waits for the matches
//! whose files it begins with.
//!
//! A bot's files pass from each of its matches to its next one, or to its next one against the same
//! opponent. The next match is defined by the schedule, not by time, so it does not depend on the
//! number of workers.

use std::collections::HashMap;

use arbiter_proto::settings::StateScope;
use arbiter_schedule::{Bot, Schedule};

/// For each seat the number of the match whose files it begins with. None for a bot's first match.
pub(super) type Predecessors = Vec<Option<i64>>;

/// The latest match of each bot or pair. The matches of a schedule are added in order.
#[derive(Debug)]
pub(super) enum StateDependencies {
    /// The latest match of each bot.
    Bots(Vec<Option<i64>>),
    /// The latest match of each pair, and its number of later matches. A pair is removed after its
    /// last match.
    Pairs { meetings: u32, open: HashMap<[Bot; 2], (i64, u32)> },
}

impl StateDependencies {
    /// The state before the first match of a schedule for this many bots. None if bots leave no
    /// files.
    pub(super) fn new(state: StateScope, schedule: &Schedule, bots: usize) -> Option<Self> {
        if schedule.depends_on_results() {
            return None;
        }
        match (state, schedule) {
            (StateScope::Tournament, _) => Some(Self::Bots(vec![None; bots])),
            (StateScope::Pairing, Schedule::RoundRobin(rules)) => {
                Some(Self::Pairs { meetings: rules.meetings(), open: HashMap::new() })
            }
            // Tournament files do not allow the other combinations.
            (StateScope::Pairing | StateScope::None, _) => None,
        }
    }

    /// Adds the next match, and returns its predecessors.
    pub(super) fn add(&mut self, number: i64, seats: &[Bot]) -> Predecessors {
        match self {
            Self::Bots(last) => {
                let predecessor = |bot: &Bot| last[usize::from(*bot)].replace(number);
                seats.iter().map(predecessor).collect()
            }
            Self::Pairs { meetings, open } => {
                let mut pair = [seats[0], seats[1]];
                pair.sort_unstable();
                let (before, remaining) = match open.remove(&pair) {
                    Some((before, remaining)) => (Some(before), remaining - 1),
                    None => (None, *meetings - 1),
                };
                if remaining > 0 {
                    open.insert(pair, (number, remaining));
                }
                vec![before; seats.len()]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbiter_schedule::{RoundRobin, Sides};

    fn all(state: StateScope, rules: RoundRobin, matches: &[[Bot; 2]]) -> Vec<Predecessors> {
        let rules = Schedule::RoundRobin(rules);
        let mut dependencies = StateDependencies::new(state, &rules, 4).unwrap();
        (0..).zip(matches).map(|(number, seats)| dependencies.add(number, seats)).collect()
    }

    const MATCHES: [[Bot; 2]; 4] = [[0, 1], [2, 1], [1, 0], [1, 2]];

    #[test]
    fn files_pass_from_match_to_match() {
        let predecessors = all(StateScope::Tournament, RoundRobin::default(), &MATCHES);
        assert_eq!(
            predecessors,
            [[None, None], [None, Some(0)], [Some(1), Some(0)], [Some(2), Some(1)],]
        );
    }

    #[test]
    fn files_pass_between_matches_of_the_same_pair() {
        let both = RoundRobin { sides: Sides::Both, ..RoundRobin::default() };
        let predecessors = all(StateScope::Pairing, both, &MATCHES);
        assert_eq!(
            predecessors,
            [[None, None], [None, None], [Some(0), Some(0)], [Some(1), Some(1)]]
        );
    }

    #[test]
    fn without_state_there_are_no_dependencies() {
        let rules = Schedule::RoundRobin(RoundRobin::default());
        assert!(StateDependencies::new(StateScope::None, &rules, 4).is_none());
    }
}

//! Whose files a match begins with, and so for which matches it has to wait.
//!
//! A bot's files pass from each of its matches to its next one in the order of the schedule, or,
//! pair by pair, to the next one against the same opponent. That order is the schedule's and not
//! the clock's: it is the same with one worker and with a hundred.

use std::collections::HashMap;

use arbiter_proto::settings::StateScope;
use arbiter_schedule::{Bot, Schedule};

/// For each seat the number of the match before; none for a bot's first.
pub(super) type Before = Vec<Option<i64>>;

/// The last matches so far, as far as they matter.
#[derive(Debug)]
pub(super) enum Chain {
    /// The last match of each bot.
    Bots(Vec<Option<i64>>),
    /// The last match of each pair, and how many are still to come; forgotten after the last one.
    Pairs { meetings: u32, open: HashMap<[Bot; 2], (i64, u32)> },
}

impl Chain {
    /// Before the first match of a schedule for so many bots; nothing where no files pass.
    pub(super) fn new(state: StateScope, schedule: Schedule, bots: usize) -> Option<Self> {
        match (state, schedule) {
            (StateScope::Tournament, Schedule::RoundRobin(_) | Schedule::Foursomes(_)) => {
                Some(Self::Bots(vec![None; bots]))
            }
            (StateScope::Pairing, Schedule::RoundRobin(rules)) => {
                Some(Self::Pairs { meetings: rules.meetings(), open: HashMap::new() })
            }
            // What is left of pairings and episodes no file asks for.
            (StateScope::None | StateScope::Pairing, _) | (_, Schedule::Episodes(_)) => None,
        }
    }

    /// Takes the next match, and says what comes before it.
    pub(super) fn take(&mut self, number: i64, seats: &[Bot]) -> Before {
        match self {
            Self::Bots(last) => {
                let replace = |bot: &Bot| last[usize::from(*bot)].replace(number);
                seats.iter().map(replace).collect()
            }
            Self::Pairs { meetings, open } => {
                let mut pair = [seats[0], seats[1]];
                pair.sort_unstable();
                let (before, to_come) = match open.remove(&pair) {
                    Some((before, to_come)) => (Some(before), to_come - 1),
                    None => (None, *meetings - 1),
                };
                if to_come > 0 {
                    open.insert(pair, (number, to_come));
                }
                vec![before; seats.len()]
            }
        }
    }
}

/// The matches that are named, each once, in order.
pub(super) fn distinct(before: &Before) -> Vec<i64> {
    let mut matches: Vec<_> = before.iter().flatten().copied().collect();
    matches.sort_unstable();
    matches.dedup();
    matches
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbiter_schedule::{RoundRobin, Sides};

    fn before(state: StateScope, rules: RoundRobin, matches: &[[Bot; 2]]) -> Vec<Before> {
        let mut chain = Chain::new(state, Schedule::RoundRobin(rules), 4).unwrap();
        (0..).zip(matches).map(|(number, seats)| chain.take(number, seats)).collect()
    }

    const MATCHES: [[Bot; 2]; 4] = [[0, 1], [2, 1], [1, 0], [1, 2]];

    #[test]
    fn files_pass_from_match_to_match() {
        let found = before(StateScope::Tournament, RoundRobin::default(), &MATCHES);
        assert_eq!(found, [[None, None], [None, Some(0)], [Some(1), Some(0)], [Some(2), Some(1)],]);
        assert_eq!(distinct(&found[3]), [1, 2]);
        assert_eq!(distinct(&vec![Some(1), Some(1), None]), [1]);
    }

    #[test]
    fn or_from_meeting_to_meeting() {
        let both = RoundRobin { sides: Sides::Both, ..RoundRobin::default() };
        let found = before(StateScope::Pairing, both, &MATCHES);
        assert_eq!(found, [[None, None], [None, None], [Some(0), Some(0)], [Some(1), Some(1)]]);
    }

    #[test]
    fn or_not_at_all() {
        let rules = Schedule::RoundRobin(RoundRobin::default());
        assert!(Chain::new(StateScope::None, rules, 4).is_none());
    }
}

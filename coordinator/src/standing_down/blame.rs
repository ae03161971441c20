//! Whether the faults of an edition follow a bot around. Pure: no database, no clock.
//!
//! A fault alone accuses each bot of its match, and the worker. What tells them apart are the other
//! matches: a *suspect* is a bot that several faulty matches have in common, and no other bot. It is
//! blamed by a worker that plays well without suspects and fails much more often with this one, and
//! cleared by a worker that plays it without a fault. A worker that fails with all bots makes all of
//! them suspects, plays nothing well without suspects, and so blames none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arbiter_proto::ids::{Entrant, MatchNumber, WorkerId};

use crate::db::faults::Attempted;

/// A suspect was in so many different matches with faults, at least.
const MATCHES: usize = 2;
/// And in so many faulty attempts.
const FAULTS: usize = 3;
/// So many workers have to blame a bot, or all there are.
const WITNESSES: usize = 2;
/// A worker that played so many matches with a bot without a fault clears it.
const CLEARING: usize = 3;
/// A worker blames a bot if it fails so many times as often with it as without suspects.
const TIMES: usize = 4;
/// And in at least one of so many of its attempts with the bot.
const SHARE: usize = 10;

/// A bot that faults follow around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blamed {
    /// Its number in the edition.
    pub entrant: Entrant,
    /// How many attempts with it failed.
    pub faults: usize,
    /// In how many different matches.
    pub matches: usize,
    /// On how many workers.
    pub workers: usize,
}

impl fmt::Display for Blamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { faults, matches, workers, .. } = self;
        let plural = if *workers == 1 { "" } else { "s" };
        write!(
            f,
            "{faults} attempts at {matches} of its matches failed, on {workers} worker{plural}; \
             matches without it were played there"
        )
    }
}

/// The bots that these faults follow around, given the matches that were played meanwhile.
pub fn followed(faults: &[Attempted], played: &[Attempted]) -> Vec<Blamed> {
    let suspects = suspects(faults);
    let everywhere: BTreeSet<_> =
        faults.iter().chain(played).map(|attempt| attempt.worker).collect();
    let needed = WITNESSES.min(everywhere.len());
    let blamed = suspects.iter().filter_map(|entrant| {
        let against = |worker: &&WorkerId| {
            WorkerCounts::of(**worker, *entrant, &suspects, faults, played).blames()
        };
        let witnesses = everywhere.iter().filter(against).count();
        let clears = |worker: &&WorkerId| {
            WorkerCounts::of(**worker, *entrant, &suspects, faults, played).clears()
        };
        let cleared = everywhere.iter().filter(clears).count();
        (witnesses >= needed && witnesses > cleared).then(|| blamed(*entrant, faults))
    });
    blamed.collect()
}

fn blamed(entrant: Entrant, faults: &[Attempted]) -> Blamed {
    let own: Vec<_> = faults.iter().filter(|fault| fault.seats.0.contains(&entrant)).collect();
    let matches: BTreeSet<MatchNumber> = own.iter().map(|fault| fault.number).collect();
    let workers: BTreeSet<WorkerId> = own.iter().map(|fault| fault.worker).collect();
    Blamed { entrant, faults: own.len(), matches: matches.len(), workers: workers.len() }
}

/// The bots that several faulty matches have in common, each without another bot that has sat in all
/// of the same ones: first the one with the most, then the one with the most of what it does not
/// explain, and so on.
fn suspects(faults: &[Attempted]) -> BTreeSet<Entrant> {
    let mut suspects = BTreeSet::new();
    let mut unexplained: Vec<_> = faults.iter().collect();
    while let Some(entrant) = suspect(&unexplained) {
        suspects.insert(entrant);
        unexplained.retain(|fault| !fault.seats.0.contains(&entrant));
    }
    suspects
}

/// The bot that the most of these faulty matches have in common, if they are several.
fn suspect(faults: &[&Attempted]) -> Option<Entrant> {
    let mut attempts: BTreeMap<Entrant, Vec<&Attempted>> = BTreeMap::new();
    for fault in faults {
        for entrant in &fault.seats.0 {
            attempts.entry(*entrant).or_default().push(fault);
        }
    }
    let matches =
        |own: &[&Attempted]| own.iter().map(|fault| fault.number).collect::<BTreeSet<_>>().len();
    let alone = |entrant: Entrant, own: &[&Attempted]| {
        let mut others = own[0].seats.0.iter().filter(|other| **other != entrant);
        !others.any(|other| own.iter().all(|fault| fault.seats.0.contains(other)))
    };
    let suspected = attempts.iter().filter(|(entrant, own)| {
        own.len() >= FAULTS && matches(own) >= MATCHES && alone(**entrant, own)
    });
    let most = suspected.max_by_key(|(entrant, own)| (matches(own), Reverse(**entrant)));
    most.map(|(entrant, _)| *entrant)
}

/// What a worker made of its matches with a bot, and of those without suspects.
#[derive(Debug, Default)]
struct WorkerCounts {
    failed_with: usize,
    played_with: usize,
    failed_without: usize,
    played_without: usize,
}

impl WorkerCounts {
    fn of(
        worker: WorkerId,
        entrant: Entrant,
        suspects: &BTreeSet<Entrant>,
        faults: &[Attempted],
        played: &[Attempted],
    ) -> Self {
        let count = |attempts: &[Attempted]| {
            let here = attempts.iter().filter(|attempt| attempt.worker == worker);
            here.fold((0, 0), |(with, without), attempt| {
                let seats = &attempt.seats.0;
                let is_with = seats.contains(&entrant);
                let is_without = !seats.iter().any(|seat| suspects.contains(seat));
                (with + usize::from(is_with), without + usize::from(is_without))
            })
        };
        let (failed_with, failed_without) = count(faults);
        let (played_with, played_without) = count(played);
        Self { failed_with, played_with, failed_without, played_without }
    }

    fn blames(&self) -> bool {
        let with = self.failed_with + self.played_with;
        let without = self.failed_without + self.played_without;
        self.failed_with * SHARE >= with
            && self.failed_with > 0
            && self.played_without > 0
            && self.failed_with * without >= TIMES * self.failed_without * with
    }

    fn clears(&self) -> bool {
        self.failed_with == 0 && self.played_with >= CLEARING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::matches::Seats;

    /// Matches between each two of so many bots, by a worker: those that fail, and those that are
    /// played.
    fn everywhere(
        bots: i32,
        workers: i32,
        fails: impl Fn(i32, i32, i32) -> bool,
    ) -> (Vec<Attempted>, Vec<Attempted>) {
        let (mut faults, mut played) = (Vec::new(), Vec::new());
        let mut number = 0;
        for one in 0..bots {
            for other in one + 1..bots {
                number += 1;
                for worker in 0..workers {
                    let seats = Seats(vec![Entrant(one), Entrant(other)]);
                    let worker = WorkerId(worker);
                    let attempt = Attempted { worker, number: MatchNumber(number), seats };
                    let failed = fails(worker.0, one, other);
                    if failed { faults.push(attempt) } else { played.push(attempt) }
                }
            }
        }
        (faults, played)
    }

    fn blamed(bots: i32, workers: i32, fails: impl Fn(i32, i32, i32) -> bool) -> Vec<i32> {
        let (faults, played) = everywhere(bots, workers, fails);
        followed(&faults, &played).into_iter().map(|blamed| blamed.entrant.0).collect()
    }

    #[test]
    fn a_bot_that_fails_everywhere_is_blamed() {
        for workers in 2..4 {
            for bots in 3..8 {
                assert_eq!(blamed(bots, workers, |_, one, _| one == 0), [0], "{bots}, {workers}");
            }
        }
        assert_eq!(blamed(5, 1, |_, one, _| one == 0), [0], "where there is one worker");
    }

    #[test]
    fn two_such_bots_are_both_blamed() {
        for bots in 4..8 {
            assert_eq!(blamed(bots, 3, |_, one, _| one < 2), [0, 1], "{bots}");
        }
    }

    #[test]
    fn a_broken_worker_blames_no_bot() {
        for workers in 1..4 {
            for broken in 1..=workers {
                assert_eq!(blamed(6, workers, |worker, _, _| worker < broken), [0; 0]);
            }
        }
        // One that fails now and then, and with one of the bots by chance more often.
        assert_eq!(blamed(6, 2, |_, one, other| (one + other) % 2 == 0), [0; 0]);
    }

    #[test]
    fn workers_that_play_a_bot_well_clear_it() {
        assert_eq!(blamed(6, 5, |worker, one, _| worker < 2 && one == 0), [0; 0]);
        assert_eq!(blamed(6, 3, |worker, one, _| worker < 2 && one == 0), [0]);
    }

    /// Two bots that only meet each other cannot be told apart.
    #[test]
    fn the_only_pair_is_not_blamed() {
        assert_eq!(blamed(2, 3, |_, _, _| true), [0; 0]);
    }
}

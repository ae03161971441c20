//! Whether the faults of an edition follow a bot around. Pure: no database, no clock.
//!
//! A fault alone accuses each bot of its match, and the worker. What tells them apart are the other
//! matches: a *suspect* is a bot that several faulty matches have in common, and no other bot. It is
//! blamed by a worker that plays well without suspects and fails much more often with this one, and
//! cleared by a worker that plays it without a fault; it has to fail on several workers, where there
//! are several. A worker that fails with all bots makes all of
//! them suspects, plays nothing well without suspects, and so blames none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arbiter_proto::ids::{MatchNumber, WorkerId};
use arbiter_ranking::Entrant;

use crate::db::faults::Attempted;

/// A suspect was in so many different matches with faults, at least.
const MATCHES: usize = 2;
/// And in so many faulty attempts.
const FAULTS: usize = 3;
/// So many workers have to fail with it, or all there are.
const WORKERS: usize = 2;
/// A worker that played so many matches with a bot without a fault clears it.
const CLEARING: usize = 3;
/// A worker blames a bot if it fails so many times as often with it as without suspects.
const TIMES: usize = 4;
/// And in at least one of so many of its attempts with the bot.
const SHARE: usize = 10;

/// A bot that faults follow around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultyBot {
    /// Its number in the edition.
    pub entrant: Entrant,
    /// How many attempts with it failed.
    pub faults: usize,
    /// In how many different matches.
    pub matches: usize,
    /// On how many workers.
    pub workers: usize,
}

impl fmt::Display for FaultyBot {
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
pub fn attribute_faults(faults: &[Attempted], played: &[Attempted]) -> Vec<FaultyBot> {
    let suspects = suspects(faults);
    let everywhere: BTreeSet<_> =
        faults.iter().chain(played).map(|attempt| attempt.worker).collect();
    let needed = WORKERS.min(everywhere.len());
    let blamed = suspects.iter().filter_map(|entrant| {
        let counts = everywhere
            .iter()
            .map(|worker| WorkerCounts::of(*worker, *entrant, &suspects, faults, played));
        let counts: Vec<_> = counts.collect();
        let how_many = |is: fn(&WorkerCounts) -> bool| counts.iter().filter(|one| is(one)).count();
        let witnesses = how_many(WorkerCounts::blames);
        let failing = witnesses + how_many(WorkerCounts::fails_alone);
        let is_blamed = failing >= needed && witnesses > how_many(WorkerCounts::clears);
        is_blamed.then(|| blamed(*entrant, faults))
    });
    blamed.collect()
}

fn blamed(entrant: Entrant, faults: &[Attempted]) -> FaultyBot {
    let own: Vec<_> = faults.iter().filter(|fault| fault.seats.0.contains(&entrant)).collect();
    let matches: BTreeSet<MatchNumber> = own.iter().map(|fault| fault.number).collect();
    let workers: BTreeSet<WorkerId> = own.iter().map(|fault| fault.worker).collect();
    FaultyBot { entrant, faults: own.len(), matches: matches.len(), workers: workers.len() }
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
        self.fails()
            && self.played_without > 0
            && self.failed_with * without >= TIMES * self.failed_without * with
    }

    fn fails(&self) -> bool {
        self.failed_with > 0 && self.failed_with * SHARE >= self.failed_with + self.played_with
    }

    /// It fails with the bot, and has tried nothing without suspects: it says nothing against others.
    fn fails_alone(&self) -> bool {
        self.fails() && self.played_without == 0 && self.failed_without == 0
    }

    fn clears(&self) -> bool {
        self.failed_with == 0 && self.played_with >= CLEARING
    }
}

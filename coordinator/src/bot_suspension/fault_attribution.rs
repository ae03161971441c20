//! Attributes the faults of an edition to bots. Pure: no database, no clock.
//!
//! A single fault may be caused by any bot of its match, or by the worker. Other matches tell which:
//! a *suspect* is the only bot that several faulty matches have in common. A worker *blames* a
//! suspect if it plays well without suspects and fails much more often with this one; it *clears* a
//! suspect if it plays with it without a fault. A suspect must fail on several workers, if there are
//! several. A worker that fails with all bots makes all of them suspects. It plays no match without
//! suspects, so it blames none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arbiter_proto::ids::{MatchNumber, WorkerId};
use arbiter_ranking::Entrant;

use crate::db::faults::MatchAttempt;

/// Minimum number of different faulty matches of a suspect.
const MIN_MATCHES: usize = 2;
/// Minimum number of faulty attempts of a suspect.
const MIN_FAULTS: usize = 3;
/// Minimum number of workers that fail with a suspect, or all if there are fewer.
const MIN_WORKERS: usize = 2;
/// A worker clears a bot with which it played this many matches without a fault.
const CLEARING: usize = 3;
/// A worker blames a bot if it fails this many times as often with it as without suspects, ...
const TIMES: usize = 4;
/// ... and in at least one of this many attempts with it.
const SHARE: usize = 10;

/// A bot that causes faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultyBot {
    /// Its number in the edition.
    pub entrant: Entrant,
    /// The number of failed attempts with it.
    pub faults: usize,
    /// The number of different matches in which these attempts failed.
    pub matches: usize,
    /// The number of workers on which they failed.
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

/// The bots that cause these faults, given the matches that were played meanwhile.
pub fn attribute_faults(faults: &[MatchAttempt], played: &[MatchAttempt]) -> Vec<FaultyBot> {
    let suspects = suspects(faults);
    let everywhere: BTreeSet<_> =
        faults.iter().chain(played).map(|attempt| attempt.worker).collect();
    let needed = MIN_WORKERS.min(everywhere.len());
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

fn blamed(entrant: Entrant, faults: &[MatchAttempt]) -> FaultyBot {
    let own: Vec<_> = faults.iter().filter(|fault| fault.seats.0.contains(&entrant)).collect();
    let matches: BTreeSet<MatchNumber> = own.iter().map(|fault| fault.number).collect();
    let workers: BTreeSet<WorkerId> = own.iter().map(|fault| fault.worker).collect();
    FaultyBot { entrant, faults: own.len(), matches: matches.len(), workers: workers.len() }
}

/// The suspects: first the bot with the most faulty matches, then the bot with the most of those
/// that the first does not explain, and so on.
fn suspects(faults: &[MatchAttempt]) -> BTreeSet<Entrant> {
    let mut suspects = BTreeSet::new();
    let mut unexplained: Vec<_> = faults.iter().collect();
    while let Some(entrant) = suspect(&unexplained) {
        suspects.insert(entrant);
        unexplained.retain(|fault| !fault.seats.0.contains(&entrant));
    }
    suspects
}

/// The bot with the most of these faulty matches, if it is the only one in all of them.
fn suspect(faults: &[&MatchAttempt]) -> Option<Entrant> {
    let mut attempts: BTreeMap<Entrant, Vec<&MatchAttempt>> = BTreeMap::new();
    for fault in faults {
        for entrant in &fault.seats.0 {
            attempts.entry(*entrant).or_default().push(fault);
        }
    }
    let matches =
        |own: &[&MatchAttempt]| own.iter().map(|fault| fault.number).collect::<BTreeSet<_>>().len();
    let alone = |entrant: Entrant, own: &[&MatchAttempt]| {
        let mut others = own[0].seats.0.iter().filter(|other| **other != entrant);
        !others.any(|other| own.iter().all(|fault| fault.seats.0.contains(other)))
    };
    let suspected = attempts.iter().filter(|(entrant, own)| {
        own.len() >= MIN_FAULTS && matches(own) >= MIN_MATCHES && alone(**entrant, own)
    });
    let most = suspected.max_by_key(|(entrant, own)| (matches(own), Reverse(**entrant)));
    most.map(|(entrant, _)| *entrant)
}

/// The attempts of a worker with a bot, and without suspects.
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
        faults: &[MatchAttempt],
        played: &[MatchAttempt],
    ) -> Self {
        let count = |attempts: &[MatchAttempt]| {
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

    /// Whether it fails with the bot, and made no attempt without suspects.
    fn fails_alone(&self) -> bool {
        self.fails() && self.played_without == 0 && self.failed_without == 0
    }

    fn clears(&self) -> bool {
        self.failed_with == 0 && self.played_with >= CLEARING
    }
}

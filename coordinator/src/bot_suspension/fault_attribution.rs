//! Attributes faults to bots. Pure: no database, no clock.
//!
//! A single fault may be caused by any bot of its match, or by the worker. Other matches show the
//! cause. A *suspect* is the only bot that several faulty matches have in common. A worker *blames*
//! a suspect if its matches without suspects succeed and it fails much more often with this
//! suspect. It *clears* a suspect if it plays matches of the suspect without a fault. A suspect
//! must fail on several workers, if there are several. A worker that fails with all bots makes all
//! of them suspects. It plays no match without suspects, so it blames none.

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
/// Minimum number of workers that fail with a suspect. With fewer workers, all of them must fail.
const MIN_WORKERS: usize = 2;
/// Minimum number of matches without a fault by which a worker clears a bot.
const MIN_CLEAN_MATCHES: usize = 3;
/// A worker blames a bot if its fault rate with the bot is at least this many times its fault rate
/// without suspects, ...
const MIN_RATE_RATIO: usize = 4;
/// ... and if at least one in this many attempts with the bot fails.
const MAX_ATTEMPTS_PER_FAULT: usize = 10;

/// A bot that causes faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultyBot {
    /// The bot with its program.
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

/// The bots that cause these faults. `played` has the matches played in the same period.
pub fn attribute_faults(faults: &[MatchAttempt], played: &[MatchAttempt]) -> Vec<FaultyBot> {
    let suspects = suspects(faults);
    let workers: BTreeSet<_> = faults.iter().chain(played).map(|attempt| attempt.worker).collect();
    let min_failing = MIN_WORKERS.min(workers.len());
    let faulty_bots = suspects.iter().filter_map(|entrant| {
        let counts: Vec<_> = workers
            .iter()
            .map(|worker| WorkerCounts::of(*worker, *entrant, &suspects, faults, played))
            .collect();
        let workers_that = |condition: fn(&WorkerCounts) -> bool| {
            counts.iter().filter(|worker| condition(worker)).count()
        };
        let blaming = workers_that(WorkerCounts::blames);
        let failing = blaming + workers_that(WorkerCounts::fails_without_comparison);
        let is_faulty = failing >= min_failing && blaming > workers_that(WorkerCounts::clears);
        is_faulty.then(|| faulty_bot(*entrant, faults))
    });
    faulty_bots.collect()
}

/// Counts the faults of a bot.
fn faulty_bot(entrant: Entrant, faults: &[MatchAttempt]) -> FaultyBot {
    let faults: Vec<_> = faults.iter().filter(|fault| fault.seats.0.contains(&entrant)).collect();
    let matches: BTreeSet<MatchNumber> = faults.iter().map(|fault| fault.number).collect();
    let workers: BTreeSet<WorkerId> = faults.iter().map(|fault| fault.worker).collect();
    FaultyBot { entrant, faults: faults.len(), matches: matches.len(), workers: workers.len() }
}

/// The suspects. The first is the bot with the most faulty matches. Each next one has the most
/// faulty matches without an earlier suspect.
fn suspects(faults: &[MatchAttempt]) -> BTreeSet<Entrant> {
    let mut suspects = BTreeSet::new();
    let mut unexplained: Vec<_> = faults.iter().collect();
    while let Some(entrant) = next_suspect(&unexplained) {
        suspects.insert(entrant);
        unexplained.retain(|fault| !fault.seats.0.contains(&entrant));
    }
    suspects
}

/// The bot with the most of these faulty matches, if no other bot is in all of its faulty matches.
fn next_suspect(faults: &[&MatchAttempt]) -> Option<Entrant> {
    let mut attempts: BTreeMap<Entrant, Vec<&MatchAttempt>> = BTreeMap::new();
    for fault in faults {
        for entrant in &fault.seats.0 {
            attempts.entry(*entrant).or_default().push(fault);
        }
    }
    let matches =
        |faults: &[&MatchAttempt]| faults.iter().map(|f| f.number).collect::<BTreeSet<_>>().len();
    let is_only_common_bot = |entrant: Entrant, faults: &[&MatchAttempt]| {
        let mut others = faults[0].seats.0.iter().filter(|other| **other != entrant);
        !others.any(|other| faults.iter().all(|fault| fault.seats.0.contains(other)))
    };
    let candidates = attempts.iter().filter(|(entrant, faults)| {
        faults.len() >= MIN_FAULTS
            && matches(faults) >= MIN_MATCHES
            && is_only_common_bot(**entrant, faults)
    });
    let suspect = candidates.max_by_key(|(entrant, faults)| (matches(faults), Reverse(**entrant)));
    suspect.map(|(entrant, _)| *entrant)
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
            let attempts = attempts.iter().filter(|attempt| attempt.worker == worker);
            attempts.fold((0, 0), |(with, without), attempt| {
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
            && self.failed_with * without >= MIN_RATE_RATIO * self.failed_without * with
    }

    fn fails(&self) -> bool {
        self.failed_with > 0
            && self.failed_with * MAX_ATTEMPTS_PER_FAULT >= self.failed_with + self.played_with
    }

    /// Whether it fails with the bot, and made no attempt without suspects.
    fn fails_without_comparison(&self) -> bool {
        self.fails() && self.played_without == 0 && self.failed_without == 0
    }

    fn clears(&self) -> bool {
        self.failed_with == 0 && self.played_with >= MIN_CLEAN_MATCHES
    }
}

//! The plan of an edition, for the queue.
//!
//! Matches, lots and the order of lots are three streams of rows. Each is generated from the
//! schedule, which is deterministic. So the plan is never in memory as a whole.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arbiter_games::Seed;
use arbiter_proto::ids::{LotNumber, MatchNumber};
use arbiter_ranking::Entrant;
use arbiter_schedule::{
    Bot, CertificateError, Matches, NameKey, Participants, PlannedMatch, Schedule, ScheduleError,
    Sides, mix,
};

use super::state_dependencies::{StateDependencies, distinct};
use super::{TournamentFile, lot_size};
use crate::db::matches::{Match, Seats};
use crate::queue::{NewLot, Order, Plan};

/// Locked during the proof of a plan, because a proof may use
/// [`arbiter_schedule::MAX_PROOF_BYTES`] of memory.
static PROOF: Mutex<()> = Mutex::new(());

/// The domain tag that is mixed into seed keys.
const SEED_KEY: u64 = 3;

/// The plan of an edition whose matches can all be listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planner<'a> {
    file: &'a TournamentFile,
    field: &'a Participants,
    /// The names of the bots, in the order of entry.
    names: &'a [NameKey],
    seed: Seed,
    total: u64,
    /// Numbers in the scores of a match.
    score_len: i16,
}

impl<'a> Planner<'a> {
    /// Plans an edition for bots with these names. None for episodes, whose matches depend on
    /// results.
    pub(super) fn new(
        file: &'a TournamentFile,
        field: &'a Participants,
        names: &'a [NameKey],
        seed: Seed,
    ) -> Result<Option<Self>, ScheduleError> {
        let Some(matches) = listed(file, field, names, seed)? else { return Ok(None) };
        let total = matches.total();
        let score_len = score_len(file, matches.seats());
        Ok(Some(Self { file, field, names, seed, total, score_len }))
    }

    /// Whether files pass from match to match.
    pub(super) fn is_chained(&self) -> bool {
        self.dependencies().is_some()
    }

    /// The plan, for the queue.
    pub(super) fn plan(
        self,
    ) -> Plan<
        impl Iterator<Item = Match> + use<'a>,
        impl Iterator<Item = NewLot> + use<'a>,
        impl Iterator<Item = Order> + use<'a>,
    > {
        Plan { matches: self.matches(), lots: self.lots(), order: self.order(), open_ended: false }
    }

    /// Counts the matches and compares them with the guarantees of the schedule.
    ///
    /// # Errors
    /// The first broken guarantee.
    pub(super) fn prove(&self) -> Result<(), CertificateError> {
        let _guard = PROOF.lock().unwrap_or_else(PoisonError::into_inner);
        self.listed().prove(self.field)
    }

    fn listed(&self) -> Matches {
        match listed(self.file, self.field, self.names, self.seed) {
            Ok(Some(matches)) => matches,
            _ => unreachable!("it was planned before"),
        }
    }

    fn schedule(&self) -> impl Iterator<Item = (i64, PlannedMatch)> + use<> {
        (0..).zip(self.listed())
    }

    fn dependencies(&self) -> Option<StateDependencies> {
        StateDependencies::new(self.file.state, self.file.schedule, self.field.bots())
    }

    fn matches(self) -> impl Iterator<Item = Match> + use<'a> {
        let has_boards = self.file.boards.len() > 1;
        let mut seed_keys = self.seed_keys();
        let mut dependencies = self.dependencies();
        self.schedule().map(move |(number, planned)| Match {
            number: MatchNumber(number),
            seed_key: seed_keys.of(&planned),
            board: has_boards.then(|| index(planned.board)),
            seats: seats(planned.seats()),
            carried: None,
            state_from: dependencies.as_mut().map(|all| all.add(number, planned.seats())),
            params: None,
        })
    }

    fn seed_keys(&self) -> SeedKeys<'a> {
        let plays_both_sides =
            matches!(self.file.schedule, Schedule::RoundRobin(rules) if rules.sides == Sides::Both);
        let shared = plays_both_sides && self.file.game().official.shared_deals;
        let mut seed_keys = SeedKeys { names: self.names, shared, repeats: HashMap::new() };
        if matches!(self.file.schedule, Schedule::Foursomes(_)) {
            seed_keys.repeats = seed_keys.repeated(self.schedule().map(|(_, planned)| planned));
        }
        seed_keys
    }

    fn lots(self) -> impl Iterator<Item = NewLot> + use<'a> {
        let expected_ms = self.file.expected_ms();
        let chained = self.is_chained();
        let per_lot = if chained { 1 } else { lot_size::per_lot(self.total, expected_ms) };
        let predecessors = chained.then(|| self.predecessors());
        let mut blockers = predecessors.into_iter().flatten().map(|(_, before)| before.len());
        let total = i64::try_from(self.total).expect("no plan is that long");
        let step = usize::try_from(per_lot).expect("it is positive");
        (0..).zip((0..total).step_by(step)).map(move |(lot, first)| {
            let count = i64::from(per_lot).min(total - first);
            let count = i32::try_from(count).expect("it is at most per_lot");
            NewLot {
                number: LotNumber(lot),
                first_match: MatchNumber(first),
                count,
                expected_ms: lot_size::of_lot(count, expected_ms),
                score_len: self.score_len,
                blockers: blockers.next().map_or(0, |count| {
                    i16::try_from(count).expect("a match has at most one predecessor a seat")
                }),
                has_dependents: chained,
            }
        })
    }

    /// Each match with the matches that it waits for, if files pass between matches.
    fn predecessors(&self) -> impl Iterator<Item = (i64, Vec<i64>)> + use<> {
        let mut dependencies = self.dependencies();
        self.schedule().map(move |(number, planned)| {
            let before = dependencies.as_mut().map(|all| all.add(number, planned.seats()));
            (number, before.as_ref().map(distinct).unwrap_or_default())
        })
    }

    fn order(self) -> impl Iterator<Item = Order> + use<'a> {
        let predecessors = self.is_chained().then(|| self.predecessors());
        predecessors.into_iter().flatten().flat_map(|(number, before)| {
            let after = LotNumber(number);
            before.into_iter().map(move |before| Order { before: LotNumber(before), after })
        })
    }
}

/// The seed keys of matches: matches with the same key have the same seed.
///
/// A key depends on the bots, the board and the number of their meeting, so that a match has the
/// same seed as in the edition before. The two matches of a pair with exchanged seats have
/// different keys. In games with shared deals they have the same key, so that each bot gets both
/// hands once.
struct SeedKeys<'a> {
    names: &'a [NameKey],
    /// Whether the two matches of a pair with exchanged seats have the same key.
    shared: bool,
    /// Tables at which the same bots meet more than once, with the meetings so far.
    repeats: HashMap<u64, u64>,
}

impl SeedKeys<'_> {
    /// The tables of four that occur more than once.
    fn repeated(&self, tables: impl Iterator<Item = PlannedMatch>) -> HashMap<u64, u64> {
        let mut tables: Vec<_> = tables.map(|table| self.table(&table, true)).collect();
        tables.sort_unstable();
        let repeated = tables.windows(2).filter(|pair| pair[0] == pair[1]);
        repeated.map(|pair| (pair[0], 0)).collect()
    }

    /// A hash of the bots, board and meeting number of a table. The bots are in the order of their
    /// seats, or `sorted`.
    fn table(&self, planned: &PlannedMatch, sorted: bool) -> u64 {
        let mut names = [0; 4];
        let seats = planned.seats();
        for (name, bot) in names.iter_mut().zip(seats) {
            *name = self.names[usize::from(*bot)].0;
        }
        let names = &mut names[..seats.len()];
        if sorted {
            names.sort_unstable();
        }
        let prefix = [SEED_KEY, planned.board.into(), planned.leg.into()];
        mix(prefix.into_iter().chain(names.iter().copied()))
    }

    /// The seed key of the next match.
    fn of(&mut self, planned: &PlannedMatch) -> i64 {
        let is_foursome = planned.seats().len() > 2;
        let mut seed_key = self.table(planned, is_foursome || self.shared);
        if is_foursome && let Some(times) = self.repeats.get_mut(&seed_key) {
            if *times > 0 {
                seed_key = mix([seed_key, *times]);
            }
            *times += 1;
        }
        // The column is a bigint; keys are not negative.
        (seed_key >> 1).cast_signed()
    }
}

/// The matches of an edition, if they can all be listed.
pub(super) fn listed(
    file: &TournamentFile,
    field: &Participants,
    names: &[NameKey],
    seed: Seed,
) -> Result<Option<Matches>, ScheduleError> {
    if let Schedule::RoundRobin(rules) = file.schedule {
        return rules.among(names).map(|pairings| Some(Matches::Pairings(Box::new(pairings))));
    }
    Ok(match file.schedule.plan_for(field, seed)? {
        arbiter_schedule::Plan::Matches(matches) => Some(matches),
        arbiter_schedule::Plan::Episodes(_) => None,
    })
}

/// Numbers in the scores of a match with this many seats.
pub(super) fn score_len(file: &TournamentFile, seats: usize) -> i16 {
    i16::try_from(seats * file.game().columns.len()).expect("tables are small")
}

fn seats(bots: &[Bot]) -> Seats {
    Seats(bots.iter().map(|bot| Entrant((*bot).into())).collect())
}

fn index(board: u16) -> i16 {
    i16::try_from(board).expect("there are at most 1000 boards")
}

//! What an edition consists of, as the queue takes it.
//!
//! Matches, lots and the order of lots are three streams of rows, each made anew from the schedule,
//! which is the same each time: nothing is ever held as a whole.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arbiter_games::Seed;
use arbiter_proto::ids::{LotNumber, MatchNumber};
use arbiter_ranking::Entrant;
use arbiter_schedule::{
    Bot, CertificateError, Matches, NameKey, Participants, PlannedMatch, Schedule, ScheduleError,
    Sides, mix,
};

use super::state_dependencies::{Chain, distinct};
use super::{TournamentFile, lot_size};
use crate::db::matches::{Match, Seats};
use crate::queue::{NewLot, Order, Plan};

/// Held while a plan is proved, which may take [`arbiter_schedule::MAX_PROOF_BYTES`] of memory.
static PROOF: Mutex<()> = Mutex::new(());

/// What is mixed into a deal.
const DEAL: u64 = 3;

/// The plan of an edition whose matches can all be listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planner<'a> {
    file: &'a TournamentFile,
    field: &'a Participants,
    /// The names of the bots, in the order of their entrance.
    names: &'a [NameKey],
    seed: Seed,
    total: u64,
    /// Numbers in the scores of a match.
    width: i16,
}

impl<'a> Planner<'a> {
    /// Plans an edition for a field of bots with these names; nothing if its matches follow from one
    /// another.
    pub(super) fn new(
        file: &'a TournamentFile,
        field: &'a Participants,
        names: &'a [NameKey],
        seed: Seed,
    ) -> Result<Option<Self>, ScheduleError> {
        let Some(matches) = listed(file, field, names, seed)? else { return Ok(None) };
        let (total, width) = (matches.total(), width(file, matches.seats()));
        Ok(Some(Self { file, field, names, seed, total, width }))
    }

    /// Whether files pass from match to match.
    pub(super) fn is_chained(&self) -> bool {
        self.chain().is_some()
    }

    /// The plan, for the queue.
    pub(super) fn plan(
        self,
    ) -> Plan<
        impl Iterator<Item = Match> + use<'a>,
        impl Iterator<Item = NewLot> + use<'a>,
        impl Iterator<Item = Order> + use<'a>,
    > {
        Plan { matches: self.matches(), lots: self.lots(), order: self.order(), growing: false }
    }

    /// Counts the matches and compares them with what the plan promises.
    ///
    /// # Errors
    /// The first promise that is broken.
    pub(super) fn prove(&self) -> Result<(), CertificateError> {
        let _alone = PROOF.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn chain(&self) -> Option<Chain> {
        Chain::new(self.file.state, self.file.schedule, self.field.bots())
    }

    fn matches(self) -> impl Iterator<Item = Match> + use<'a> {
        let several = self.file.boards.len() > 1;
        let mut deals = self.deals();
        let mut chain = self.chain();
        self.schedule().map(move |(number, planned)| Match {
            number: MatchNumber(number),
            deal: deals.of(&planned),
            board: several.then(|| index(planned.board)),
            seats: seats(planned.seats()),
            carried: None,
            files_from: chain.as_mut().map(|chain| chain.take(number, planned.seats())),
            params: None,
        })
    }

    fn deals(&self) -> Deals<'a> {
        let both =
            matches!(self.file.schedule, Schedule::RoundRobin(rules) if rules.sides == Sides::Both);
        let shared = both && self.file.game().official.shared_deals;
        let mut deals = Deals { names: self.names, shared, again: HashMap::new() };
        if matches!(self.file.schedule, Schedule::Foursomes(_)) {
            deals.again = deals.repeated(self.schedule().map(|(_, planned)| planned));
        }
        deals
    }

    fn lots(self) -> impl Iterator<Item = NewLot> + use<'a> {
        let expected_ms = self.file.expected_ms();
        let chained = self.chain().is_some();
        let per_lot = if chained { 1 } else { lot_size::per_lot(self.total, expected_ms) };
        let chain = chained.then(|| self.before());
        let mut waits = chain.into_iter().flatten().map(|(_, before)| before.len());
        let total = i64::try_from(self.total).expect("no plan is that long");
        let step = usize::try_from(per_lot).expect("it is positive");
        (0..).zip((0..total).step_by(step)).map(move |(lot, first)| {
            let count = i64::from(per_lot).min(total - first);
            let count = i32::try_from(count).expect("it is at most per_lot");
            NewLot {
                number: LotNumber(lot),
                first: MatchNumber(first),
                count,
                expected_ms: lot_size::of_lot(count, expected_ms),
                width: self.width,
                waits: waits.next().map_or(0, |waits| {
                    i16::try_from(waits).expect("as many as there are seats at most")
                }),
                feeds: chained,
            }
        })
    }

    /// In an edition in which files pass: each match, and those it waits for.
    fn before(&self) -> impl Iterator<Item = (i64, Vec<i64>)> + use<> {
        let mut chain = self.chain();
        self.schedule().map(move |(number, planned)| {
            let before = chain.as_mut().map(|chain| chain.take(number, planned.seats()));
            (number, before.as_ref().map(distinct).unwrap_or_default())
        })
    }

    fn order(self) -> impl Iterator<Item = Order> + use<'a> {
        let chained = self.chain().is_some();
        let before = chained.then(|| self.before());
        before.into_iter().flatten().flat_map(|(number, before)| {
            let after = LotNumber(number);
            before.into_iter().map(move |before| Order { before: LotNumber(before), after })
        })
    }
}

/// Which matches have the same seed.
///
/// A deal follows from who meets, on which board and for which time, so that a match of an edition
/// has the seed that it had in the one before. Matches of a pair differ in it by their sides, too;
/// but in games that say so both have the same one, so that what one was lucky with in the first is
/// the other's in the second.
struct Deals<'a> {
    names: &'a [NameKey],
    /// Whether both matches of a pair have the same one.
    shared: bool,
    /// Tables at which the same bots meet more than once, and how often they did so far.
    again: HashMap<u64, u64>,
}

impl Deals<'_> {
    /// Those tables of four that are there more than once.
    fn repeated(&self, tables: impl Iterator<Item = PlannedMatch>) -> HashMap<u64, u64> {
        let mut tables: Vec<_> = tables.map(|table| self.table(&table, true)).collect();
        tables.sort_unstable();
        let twice = tables.windows(2).filter(|two| two[0] == two[1]);
        twice.map(|two| (two[0], 0)).collect()
    }

    /// Who meets where and for which time, mixed; in the order of their seats unless they are to be
    /// sorted.
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
        let turn = [DEAL, planned.board.into(), planned.leg.into()];
        mix(turn.into_iter().chain(names.iter().copied()))
    }

    /// The deal of the next match.
    fn of(&mut self, planned: &PlannedMatch) -> i64 {
        let four = planned.seats().len() > 2;
        let mut deal = self.table(planned, four || self.shared);
        if four && let Some(times) = self.again.get_mut(&deal) {
            if *times > 0 {
                deal = mix([deal, *times]);
            }
            *times += 1;
        }
        // A bigint that is not negative.
        (deal >> 1).cast_signed()
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

/// Numbers in the scores of a match of so many seats.
pub(super) fn width(file: &TournamentFile, seats: usize) -> i16 {
    i16::try_from(seats * file.game().columns.len()).expect("tables are small")
}

fn seats(bots: &[Bot]) -> Seats {
    Seats(bots.iter().map(|bot| Entrant((*bot).into())).collect())
}

fn index(board: u16) -> i16 {
    i16::try_from(board).expect("there are at most 1000 boards")
}

//! What an edition consists of, as the queue takes it.
//!
//! Matches, lots and the order of lots are three streams of rows, each made anew from the schedule,
//! which is the same each time: nothing is ever held as a whole.

use arbiter_games::{Params, Seed};
use arbiter_proto::ids::{Entrant, LotNumber, MatchNumber};

use super::chain::{Chain, distinct};
use super::{TournamentFile, cost};
use crate::db::matches::{Match, Seats};
use crate::queue::{NewLot, Order, Plan};
use crate::schedule::{self, Bot, Planned, Schedule, ScheduleError, Sides};

/// The plan of an edition whose matches can all be listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planner<'a> {
    file: &'a TournamentFile,
    bots: usize,
    seed: Seed,
    total: u64,
    /// Numbers in the scores of a match.
    width: i16,
}

impl<'a> Planner<'a> {
    /// Plans an edition of so many bots; nothing if its matches follow from one another.
    ///
    /// # Errors
    /// If there is no such schedule.
    pub(super) fn new(
        file: &'a TournamentFile,
        bots: usize,
        seed: Seed,
    ) -> Result<Option<Self>, ScheduleError> {
        let schedule::Plan::Matches(matches) = file.schedule.plan(bots, seed)? else {
            return Ok(None);
        };
        let (total, width) = (matches.total(), width(file, matches.seats()));
        Ok(Some(Self { file, bots, seed, total, width }))
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

    fn schedule(&self) -> impl Iterator<Item = (i64, Planned)> + use<> {
        match self.file.schedule.plan(self.bots, self.seed) {
            Ok(schedule::Plan::Matches(matches)) => (0..).zip(matches),
            _ => unreachable!("it was planned before"),
        }
    }

    fn chain(&self) -> Option<Chain> {
        Chain::new(self.file.state, self.file.schedule, self.bots)
    }

    fn matches(self) -> impl Iterator<Item = Match> + use<'a> {
        let several = self.file.boards.len() > 1;
        let deals = self.deals();
        let mut chain = self.chain();
        self.schedule().map(move |(number, planned)| Match {
            number: MatchNumber(number),
            deal: number / deals,
            board: several.then(|| index(planned.board)),
            seats: seats(planned.seats()),
            carried: None,
            files_from: chain.as_mut().map(|chain| chain.take(number, planned.seats())),
            params: None,
        })
    }

    /// How many matches after one another have the same deal.
    ///
    /// The two matches of a pair at wojna are dealt the same piles, so that what one was lucky
    /// with in the first is the other's in the second. At tricks each match has its deals both ways
    /// round already; at gomoku the seed has to differ; bitwa has no chance.
    fn deals(&self) -> i64 {
        let both =
            matches!(self.file.schedule, Schedule::RoundRobin(rules) if rules.sides == Sides::Both);
        if both && matches!(self.file.params, Params::Wojna(_)) { 2 } else { 1 }
    }

    fn lots(self) -> impl Iterator<Item = NewLot> + use<'a> {
        let expected_ms = self.file.expected_ms();
        let chained = self.chain().is_some();
        let per_lot = if chained { 1 } else { cost::per_lot(self.total, expected_ms) };
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
                expected_ms: cost::of_lot(count, expected_ms),
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

/// Numbers in the scores of a match of so many seats.
pub(super) fn width(file: &TournamentFile, seats: usize) -> i16 {
    i16::try_from(seats * file.game().score_columns().len()).expect("tables are small")
}

fn seats(bots: &[Bot]) -> Seats {
    Seats(bots.iter().map(|bot| Entrant((*bot).into())).collect())
}

fn index(board: u16) -> i16 {
    i16::try_from(board).expect("there are at most 1000 boards")
}

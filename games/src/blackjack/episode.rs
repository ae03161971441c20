//! An episode: several rounds, between which the bots are seated anew.
//!
//! Every bot starts with the same chips and carries them from round to round. Before each round
//! those who cannot pay an ante drop out; the others are shuffled and cut into tables, so that all
//! who are left play the same number of rounds ("A round"). The plan of a round follows from the
//! seed and the results so far alone: an episode taken up again with the same results goes on in
//! the same way.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::blackjack::params::{Params, PerSeat, SEATS};
use crate::blackjack::table::ANTE;
use crate::game::{Standing, StartError};
use crate::seed::Seed;

/// The stream of an episode's seed that seats the bots of the first round; those after it take
/// the streams that follow. No match is shuffled from any of them.
const SEATING: u64 = 1 << 32;
/// The most chips or bad answers a bot may start an episode with: whatever comes to them then, the
/// next match can be started with.
const MOST_START: i64 = 1_000_000_000_000;

/// A table of a round: one match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePlan {
    /// The round it belongs to, from 1.
    pub round: u32,
    /// The table's number in its round, from 1.
    pub table: u32,
    /// Who sits there, seat 1 first: positions in the episode's list of bots.
    pub bots: Vec<usize>,
    /// What the match is started with.
    pub params: Params,
}

/// An episode in progress.
#[derive(Clone, Debug)]
pub struct Episode {
    params: Params,
    seed: Seed,
    chips: Vec<i64>,
    bad_answers: Vec<i64>,
    /// The round being played, from 1.
    round: u32,
    /// Its tables that are not finished.
    tables: Vec<TablePlan>,
}

impl Episode {
    /// Seats so many bots for the first round.
    ///
    /// # Errors
    /// If the parameters give chips or bad answers seat by seat, or too many chips.
    pub fn new(bots: usize, params: &Params, seed: Seed) -> Result<Self, StartError> {
        let chips = start(&params.chips, "chips")?;
        let bad_answers = start(&params.bad_answers, "bad_answers")?;
        let mut episode = Self {
            params: params.clone(),
            seed,
            chips: vec![chips; bots],
            bad_answers: vec![bad_answers; bots],
            round: 1,
            tables: Vec::new(),
        };
        episode.tables = episode.seat();
        Ok(episode)
    }

    /// The tables of this round that are not finished, in any order they may be played; none once
    /// the episode is over.
    pub fn tables(&self) -> &[TablePlan] {
        &self.tables
    }

    /// Takes the result of a table of this round, seat 1 first. After the last one the bots are
    /// seated for the next round.
    ///
    /// # Panics
    /// If the table is not one of [`Episode::tables`], or had another number of seats.
    pub fn finish(&mut self, table: u32, standings: &[Standing]) {
        let found = self.tables.iter().position(|plan| plan.table == table);
        let plan = self.tables.remove(found.expect("a table is finished once, in its round"));
        assert_eq!(plan.bots.len(), standings.len(), "each seat has its standing");
        for (bot, standing) in plan.bots.into_iter().zip(standings) {
            self.chips[bot] = standing.score.0[0];
            self.bad_answers[bot] += i64::from(standing.bad_answers);
        }
        if self.tables.is_empty() && self.round < self.params.rounds.into() {
            self.round += 1;
            self.tables = self.seat();
        }
    }

    /// Each bot's chips so far; at the end, what the episode brings to the ranking.
    pub fn chips(&self) -> &[i64] {
        &self.chips
    }

    /// How many bad answers each bot has given so far.
    pub fn bad_answers(&self) -> &[i64] {
        &self.bad_answers
    }

    /// Shuffles those who can pay an ante, and cuts them into tables.
    fn seat(&self) -> Vec<TablePlan> {
        let mut bots: Vec<_> =
            (0..self.chips.len()).filter(|bot| self.chips[*bot] >= ANTE).collect();
        self.seed.dice(SEATING + u64::from(self.round) - 1).shuffle(&mut bots);
        let tables = (1..).zip(bots.chunks(*SEATS.end()));
        tables.map(|(table, bots)| self.plan(table, bots)).collect()
    }

    fn plan(&self, table: u32, bots: &[usize]) -> TablePlan {
        let params = Params {
            rounds: Params::default().rounds,
            chips: of(bots, &self.chips),
            bad_answers: of(bots, &self.bad_answers),
            ..self.params.clone()
        };
        TablePlan { round: self.round, table, bots: bots.to_vec(), params }
    }
}

/// The numbers of these bots as a parameter.
fn of(bots: &[usize], numbers: &[i64]) -> PerSeat {
    let numbers: Vec<_> = bots.iter().map(|bot| numbers[*bot]).collect();
    numbers.try_into().expect("an episode's chips and answers stay far below 10^18")
}

/// The number that all bots start with.
fn start(numbers: &PerSeat, what: &str) -> Result<i64, StartError> {
    numbers.for_all().filter(|number| *number <= MOST_START).ok_or_else(|| {
        StartError(format!(
            "{what} = {numbers}: in an episode it is one number for all bots, {MOST_START} at most"
        ))
    })
}

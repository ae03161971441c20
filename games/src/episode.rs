//! An episode: several rounds, between which the bots are seated anew.
//!
//! Every bot starts with the same score and carries it from round to round. Before each round
//! those drop out who have less than it takes to play on; the others are shuffled and cut into
//! tables, so that all who are left play the same number of rounds. The plan of a round follows
//! from the seed and the results so far alone: an episode taken up again with the same results
//! goes on in the same way.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::match_state::{SeatResult, StartError};
use crate::params::Params;
pub(crate) use crate::rules::{Carried, EpisodeRules};
use crate::seed::Seed;

/// The stream of an episode's seed that seats the bots of the first round; those after it take
/// the streams that follow. No match is shuffled from any of them.
const SEATING: u64 = 1 << 32;

/// A table of a round: one match.
#[derive(Clone, Debug, PartialEq)]
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
    rounds: u32,
    /// The least score with which a bot plays on.
    least: i64,
    seed: Seed,
    bots: Vec<Carried>,
    /// The round being played, from 1.
    round: u32,
    /// Its tables that are not finished.
    tables: Vec<TablePlan>,
}

impl Episode {
    /// Seats so many bots for the first round.
    pub(crate) fn new(bots: usize, params: &Params, seed: Seed) -> Result<Self, StartError> {
        let game = params.game();
        let Some((rules, info)) = params.episode_rules().zip(game.episodes.as_ref()) else {
            return Err(StartError(format!("{game} is not played in episodes")));
        };
        let mut episode = Self {
            params: params.clone(),
            rounds: rules.rounds(),
            least: info.least,
            seed,
            bots: vec![rules.begin()?; bots],
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
    pub fn finish(&mut self, table: u32, standings: &[SeatResult]) {
        let found = self.tables.iter().position(|plan| plan.table == table);
        let plan = self.tables.remove(found.expect("a table is finished once, in its round"));
        assert_eq!(plan.bots.len(), standings.len(), "each seat has its standing");
        for (bot, standing) in plan.bots.into_iter().zip(standings) {
            let carried = &mut self.bots[bot];
            carried.score = standing.score.0[0];
            carried.bad_answers += i64::from(standing.bad_answers);
        }
        if self.tables.is_empty() && self.round < self.rounds {
            self.round += 1;
            self.tables = self.seat();
        }
    }

    /// What each bot has so far; at the end, what the episode brings to the ranking.
    pub fn bots(&self) -> &[Carried] {
        &self.bots
    }

    /// Whether a bot has what it takes to play on.
    pub fn plays_on(&self, bot: usize) -> bool {
        self.bots[bot].score >= self.least
    }

    /// Shuffles those who play on, and cuts them into tables.
    fn seat(&self) -> Vec<TablePlan> {
        let mut bots: Vec<_> = (0..self.bots.len()).filter(|bot| self.plays_on(*bot)).collect();
        self.seed.dice(SEATING + u64::from(self.round) - 1).shuffle(&mut bots);
        let tables = (1..).zip(bots.chunks(*self.params.seats().end()));
        tables.map(|(table, bots)| self.plan(table, bots)).collect()
    }

    fn plan(&self, table: u32, bots: &[usize]) -> TablePlan {
        let carried: Vec<_> = bots.iter().map(|bot| self.bots[*bot]).collect();
        let rules = self.params.episode_rules().expect("the episode was begun by these rules");
        let params = self.params.with_rules(rules.at_table(&carried));
        TablePlan { round: self.round, table, bots: bots.to_vec(), params }
    }
}

impl Params {
    /// An episode of so many bots at the beginning of its first round.
    ///
    /// # Errors
    /// If the game is not played in episodes, or not with these parameters.
    pub fn episode(&self, bots: usize, seed: Seed) -> Result<Episode, StartError> {
        Episode::new(bots, self, seed)
    }
}

//! An episode: several rounds, with new tables drawn between them.
//!
//! Every bot starts with the same score and carries it from round to round. Before each round bots
//! below the minimum score drop out. The others are shuffled and split into tables, so that all
//! remaining bots play the same number of rounds. The plan of a round depends only on the seed and
//! the results so far: an episode resumed with the same results continues in the same way.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::match_state::{SeatResult, StartError};
use crate::params::Params;
pub(crate) use crate::rules::{Carried, EpisodeRules};
use crate::seed::Seed;

/// The stream of an episode's seed that draws the tables of the first round; later rounds use the
/// following streams. No match uses any of them.
const SEATING: u64 = 1 << 32;

/// A table of a round: one match.
#[derive(Clone, Debug, PartialEq)]
pub struct TablePlan {
    /// Its round, from 1.
    pub round: u32,
    /// The table's number in its round, from 1.
    pub table: u32,
    /// Its bots, seat 1 first, by their index in the episode's list.
    pub bots: Vec<usize>,
    /// The parameters of its match.
    pub params: Params,
}

/// An episode in progress.
#[derive(Clone, Debug)]
pub struct Episode {
    params: Params,
    rounds: u32,
    /// The minimum score to play on.
    min_score: i64,
    seed: Seed,
    bots: Vec<Carried>,
    /// The round being played, from 1.
    round: u32,
    /// Its unfinished tables.
    tables: Vec<TablePlan>,
}

impl Episode {
    /// Starts an episode of `bots` bots and draws the tables of the first round.
    pub(crate) fn new(bots: usize, params: &Params, seed: Seed) -> Result<Self, StartError> {
        let game = params.game();
        let Some((rules, info)) = params.episode_rules().zip(game.episodes.as_ref()) else {
            return Err(StartError(format!("{game} is not played in episodes")));
        };
        let mut episode = Self {
            params: params.clone(),
            rounds: rules.rounds(),
            min_score: info.min_score,
            seed,
            bots: vec![rules.begin()?; bots],
            round: 1,
            tables: Vec::new(),
        };
        episode.tables = episode.seat();
        Ok(episode)
    }

    /// The unfinished tables of this round, which may be played in any order; empty once the episode
    /// is over.
    pub fn tables(&self) -> &[TablePlan] {
        &self.tables
    }

    /// Records the result of a table of this round, seat 1 first. After the last table the next round
    /// is drawn.
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

    /// What each bot carries; at the end, what counts for the ranking.
    pub fn bots(&self) -> &[Carried] {
        &self.bots
    }

    /// Whether a bot has enough score to play on.
    pub fn plays_on(&self, bot: usize) -> bool {
        self.bots[bot].score >= self.min_score
    }

    /// Shuffles the bots that play on, and splits them into tables.
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
    /// An episode of `bots` bots at the beginning of its first round.
    ///
    /// # Errors
    /// If the game is not played in episodes, or not with these parameters.
    pub fn episode(&self, bots: usize, seed: Seed) -> Result<Episode, StartError> {
        Episode::new(bots, self, seed)
    }
}

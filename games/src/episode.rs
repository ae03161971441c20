//! An episode: several rounds, each with newly drawn tables.
//!
//! Every bot starts with the same score and carries it from round to round. Before each round, bots
//! below the minimum score drop out. The others are shuffled and split into tables, and each of
//! them plays one match of the round. The plan of a round depends only on the seed and the results
//! so far. So an episode can be resumed: the same results give the same later rounds.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::match_state::{SeatResult, StartError};
use crate::params::Params;
pub(crate) use crate::rules::{CarriedScore, EpisodeRules};
use crate::seed::Seed;

/// The stream of an episode's seed that draws the tables of the first round; later rounds use the
/// following streams. No match uses any of them.
const SEATING: u64 = 1 << 32;

/// A table of a round: one match.
#[derive(Clone, Debug, PartialEq)]
pub struct TablePlan {
    /// The number of the round, from 1.
    pub round: u32,
    /// The number of the table in its round, from 1.
    pub table: u32,
    /// The bots of the table, seat 1 first, by their index in the episode's list.
    pub bots: Vec<usize>,
    /// The parameters of the match.
    pub params: Params,
}

/// An episode in progress.
#[derive(Clone, Debug)]
pub struct Episode {
    params: Params,
    rounds: u32,
    /// The minimum score for the next round.
    min_score: i64,
    seed: Seed,
    bots: Vec<CarriedScore>,
    /// The round being played, from 1.
    round: u32,
    /// The unfinished tables of the round.
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
        episode.tables = episode.draw_tables();
        Ok(episode)
    }

    /// The unfinished tables of this round, which may be played in any order; empty once the
    /// episode is over.
    pub fn tables(&self) -> &[TablePlan] {
        &self.tables
    }

    /// Records the result of a table of this round, seat 1 first. After the last table, draws the
    /// tables of the next round.
    ///
    /// # Panics
    /// If the table is not one of [`Episode::tables`], or has another number of seats.
    pub fn finish(&mut self, table: u32, results: &[SeatResult]) {
        let position = self.tables.iter().position(|plan| plan.table == table);
        let position = position.expect("a table is finished once, in its round");
        let plan = self.tables.remove(position);
        assert_eq!(plan.bots.len(), results.len(), "each seat has one result");
        for (bot, result) in plan.bots.into_iter().zip(results) {
            let carried = &mut self.bots[bot];
            carried.score = result.score.0[0];
            carried.bad_answers += i64::from(result.bad_answers);
        }
        if self.tables.is_empty() && self.round < self.rounds {
            self.round += 1;
            self.tables = self.draw_tables();
        }
    }

    /// The present score of each bot. The final score counts for the ranking.
    pub fn bots(&self) -> &[CarriedScore] {
        &self.bots
    }

    /// Whether a bot has enough score for the next round.
    pub fn can_continue(&self, bot: usize) -> bool {
        self.bots[bot].score >= self.min_score
    }

    /// Shuffles the bots with enough score, and splits them into tables.
    fn draw_tables(&self) -> Vec<TablePlan> {
        let mut bots: Vec<_> = (0..self.bots.len()).filter(|bot| self.can_continue(*bot)).collect();
        self.seed.dice(SEATING + u64::from(self.round) - 1).shuffle(&mut bots);
        let tables = (1..).zip(bots.chunks(*self.params.seats().end()));
        tables.map(|(table, bots)| self.plan(table, bots)).collect()
    }

    fn plan(&self, table: u32, bots: &[usize]) -> TablePlan {
        let carried: Vec<_> = bots.iter().map(|bot| self.bots[*bot]).collect();
        let rules = self.params.episode_rules().expect("the episode began with these rules");
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

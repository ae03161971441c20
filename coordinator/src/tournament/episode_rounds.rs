//! Episodes: each round is planned from the results of the rounds before ([`super::rounds`]).
//!
//! All episodes have the same round at a time, so that the order of matches does not depend on the
//! speed of each episode.

use std::cmp::Reverse;

use arbiter_games::{Episode, SeatResult, Seed, TablePlan};
use arbiter_proto::ids::MatchNumber;
use arbiter_ranking::Entrant;
use arbiter_schedule::EpisodePlan;
use serde_json::{Map, Value};

use super::TournamentFile;
use super::file::of_match;
use super::rounds::scores;
use crate::db::matches::{Match, Seats};
use crate::db::results::SeatedResult;

/// All episodes of an edition, at the beginning of a round.
#[derive(Debug)]
pub(super) struct EpisodeRounds {
    episodes: Vec<Episode>,
    /// The tables of the round, each with its episode, in the order of their matches. Tables with
    /// the same number of seats are adjacent, since all matches of a lot have the same number of
    /// scores.
    tables: Vec<(usize, TablePlan)>,
    /// The round, from 1.
    round: u32,
    /// The last round.
    last: u32,
    /// The parameters that all matches share.
    common: Map<String, Value>,
}

impl EpisodeRounds {
    /// The first round.
    pub(super) fn new(
        file: &TournamentFile,
        plan: EpisodePlan,
        seed: Seed,
    ) -> Result<Self, String> {
        let episodes = plan.keys().map(|key| file.params.episode(plan.bots, seed.derive(&key)));
        let mut rounds = Self {
            episodes: episodes.collect::<Result<_, _>>().map_err(|error| error.to_string())?,
            tables: Vec::new(),
            round: 1,
            last: file.rounds(),
            common: file.settings().params,
        };
        rounds.collect_tables();
        Ok(rounds)
    }

    /// Collects the tables of the round.
    fn collect_tables(&mut self) {
        let tables = |(number, episode): (usize, &Episode)| {
            episode.tables().iter().map(move |table| (number, table.clone())).collect::<Vec<_>>()
        };
        self.tables = self.episodes.iter().enumerate().flat_map(tables).collect();
        self.tables.sort_by_key(|(_, table)| Reverse(table.bots.len()));
    }

    /// Advances to the next round with the results of this one, in the order of their matches.
    ///
    /// # Errors
    /// If a result has no score for each seat.
    pub(super) fn finish(&mut self, results: &[SeatedResult]) -> Result<(), String> {
        let tables = std::mem::take(&mut self.tables);
        // The tables of an episode finish in reverse order, because removing its last table is
        // cheapest.
        for ((episode, table), played) in tables.iter().zip(results).rev() {
            self.episodes[*episode].finish(table.table, &standings(played)?);
        }
        self.round += 1;
        self.collect_tables();
        Ok(())
    }

    /// Whether another round may follow.
    pub(super) fn is_open_ended(&self) -> bool {
        self.round < self.last && !self.tables.is_empty()
    }

    /// The matches of the round, numbered from `first`. Their seats hold the places of bots.
    pub(super) fn matches(&self, first: i64) -> impl Iterator<Item = Match> {
        (first..).zip(&self.tables).map(|(number, (episode, table))| {
            let carried = self.episodes[*episode].bots();
            let entrant = |bot: &usize| Entrant(i32::try_from(*bot).expect("at most 65536 bots"));
            Match {
                number: MatchNumber(number),
                seed_key: seed_key(*episode, table),
                board: None,
                seats: Seats(table.bots.iter().map(entrant).collect()),
                carried: (self.round > 1)
                    .then(|| table.bots.iter().map(|bot| carried[*bot].score).collect()),
                state_from: None,
                params: self.table_params(of_match(&table.params)),
            }
        })
    }

    /// The parameters in which a table differs from the common ones. None if there are none. A list
    /// with one value for each seat equals a common value if all its items are equal to that value.
    fn table_params(&self, params: Map<String, Value>) -> Option<Value> {
        let is_equal = |value: &Value, common: &Value| match value {
            Value::Array(items) => items.iter().all(|item| item == common),
            _ => value == common,
        };
        let is_common = |key: &str, value: &Value| {
            self.common.get(key).is_some_and(|common| is_equal(value, common))
        };
        let special: Map<_, _> =
            params.into_iter().filter(|(key, value)| !is_common(key, value)).collect();
        (!special.is_empty()).then_some(Value::Object(special))
    }
}

/// The seed key of a table: unique in the tournament, and the same for the same table of the next
/// edition.
fn seed_key(episode: usize, table: &TablePlan) -> i64 {
    let numbers = (i64::try_from(episode), table.round, table.table);
    let (Ok(episode), round, table) = numbers else {
        unreachable!("there are at most 1000 episodes");
    };
    // There are at most 1000 rounds, and at most 65536 bots at tables of two or more.
    (episode << 32) | (i64::from(round) << 16) | i64::from(table)
}

/// The episode, from 0, of the table with this seed key.
pub fn episode_of(seed_key: i64) -> i64 {
    seed_key >> 32
}

/// The round of an episode, from 0, of the table with this seed key.
pub fn round_of(seed_key: i64) -> u16 {
    let [.., high, low, _, _] = seed_key.to_be_bytes();
    u16::from_be_bytes([high, low])
}

/// The standing of each seat after a match.
fn standings(played: &SeatedResult) -> Result<Vec<SeatResult>, String> {
    let scores = scores(played)?;
    let bad = played.bad_answers.clone().unwrap_or_default();
    if !(bad.is_empty() || bad.len() == scores.len()) {
        return Err(format!("match {} has no bad replies for each seat", played.number));
    }
    let bad = bad.into_iter().chain(std::iter::repeat(0));
    let standing = |(score, bad)| SeatResult {
        score,
        forfeit: None,
        bad_answers: u32::try_from(bad).unwrap_or(0),
    };
    Ok(scores.into_iter().zip(bad).map(standing).collect())
}

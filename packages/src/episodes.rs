//! Episodes of a package: series of matches in which a bot carries its score from one match to the
//! next.
//!
//! A parameter gives the score of each seat at the beginning of a match. In an episode it is the
//! first component of each bot's last score. The rules learn nothing else of episodes.

use std::ops::RangeInclusive;

use arbiter_games::{EpisodeInfo, ParamInfo, ParamKind, Text};
use serde::Deserialize;

use crate::protocol::MAX_SCORE;

/// Maximum number of rounds of an episode.
const MAX_ROUNDS: i64 = 1000;

/// The section `[episodes]` of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageEpisodes {
    /// The key of the parameter for the number of rounds. Its default is the official number.
    pub rounds: Text,
    /// The key of the parameter for the score of each seat at the beginning of a match.
    pub score: Text,
    /// The key of the parameter for the bad replies of each seat earlier in the episode, if the
    /// rules count them.
    #[serde(default)]
    pub bad_answers: Option<Text>,
    /// The minimum score for the next round.
    pub least: i64,
    /// The column of the ranking for how seldom a bot ends an episode with less than `least`.
    pub column: Text,
}

impl PackageEpisodes {
    /// Checks the section against the parameters and the numbers of seats.
    ///
    /// # Errors
    /// The first mistake, with its remedy.
    pub(crate) fn check(
        &self,
        params: &[ParamInfo],
        seats: &RangeInclusive<usize>,
    ) -> Result<(), String> {
        if *seats.start() > 1 || *seats.end() < 2 {
            return Err("episodes: several bots share a table, and the last table of a round may \
                        have one only; write seats = [1, 4]"
                .to_owned());
        }
        if self.bad_answers.as_ref() == Some(&self.score) || self.rounds == self.score {
            return Err("episodes: name a different parameter for each key".to_owned());
        }
        let kind = |key: &str| {
            let param = params.iter().find(|param| param.key == key);
            let missing = || format!("episodes: there is no parameter `{key}`");
            param.map(|param| &param.kind).ok_or_else(missing)
        };
        match kind(&self.rounds)? {
            ParamKind::Integer(range) if *range.start() >= 1 && *range.end() <= MAX_ROUNDS => {}
            _ => {
                return Err(format!(
                    "episodes.rounds: params.{} needs type = \"integer\", and min and max from 1 \
                     to {MAX_ROUNDS}",
                    self.rounds
                ));
            }
        }
        for (key, least) in [(Some(&self.score), self.least), (self.bad_answers.as_ref(), 0)] {
            let Some(key) = key else { continue };
            match kind(key)? {
                ParamKind::PerSeat(range)
                    if *range.start() <= least && *range.end() >= MAX_SCORE => {}
                _ => {
                    return Err(format!(
                        "episodes: params.{key} needs type = \"per_seat\", min = {least} or less, \
                         and no max, because bots carry it from match to match"
                    ));
                }
            }
            let default = params.iter().find(|param| param.key == *key);
            let default = default.and_then(|param| param.default.as_ref()?.as_integer());
            if default.is_none_or(|default| default < i128::from(least)) {
                return Err(format!(
                    "episodes: the default of params.{key} must be one number for all bots, \
                     {least} or more"
                ));
            }
        }
        Ok(())
    }

    /// The episodes of the game.
    pub(crate) fn info(&self, params: &[ParamInfo]) -> EpisodeInfo {
        let rounds = params.iter().find(|param| param.key == self.rounds);
        let rounds = rounds.and_then(|param| param.default.as_ref()?.as_integer());
        EpisodeInfo {
            rounds_param: self.rounds.clone(),
            min_score: self.least,
            column: self.column.clone(),
            official_rounds: rounds
                .and_then(|rounds| rounds.try_into().ok())
                .expect("the default was checked to be from 1 to 1000"),
        }
    }
}

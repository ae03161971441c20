//! The stage and the round of each match of an edition, for lists of matches.

use std::collections::HashMap;
use std::sync::Arc;

use arbiter_proto::ids::{MatchName, MatchNumber};

use super::{BegunStage, EditionRounds, ShownRounds, StageKind, draw, to_u32};
use crate::db::editions::Edition;
use crate::service::{Caller, ErrorKind, Result, Service};

/// The stage of each match, and its round if the stage has several. Both count from 1. It is empty
/// if the schedule has no rounds that follow from results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::service) struct MatchRounds(HashMap<MatchNumber, (u32, Option<u32>)>);

impl MatchRounds {
    /// The stage and the round of a match.
    pub(in crate::service) fn of(&self, number: MatchNumber) -> Option<(u32, Option<u32>)> {
        self.0.get(&number).copied()
    }

    fn new(shown: &ShownRounds, rounds: &EditionRounds) -> Self {
        let mut all = HashMap::new();
        for (position, stage) in rounds.begun().iter().enumerate() {
            let number = to_u32(position + 1);
            for (game, round) in stage_rounds(shown, rounds, stage, position) {
                all.insert(game, (number, round));
            }
        }
        Self(all)
    }
}

/// The matches of a stage that are stored, each with its round.
fn stage_rounds(
    shown: &ShownRounds,
    rounds: &EditionRounds,
    stage: &BegunStage<'_>,
    position: usize,
) -> Vec<(MatchNumber, Option<u32>)> {
    if let StageKind::Knockout(bracket) = stage.plan {
        // Extra games belong to the round of their meeting.
        let drawn = draw(shown, rounds, stage, position, bracket).rounds;
        let games = drawn.iter().flat_map(|round| {
            let names = round.meetings.iter().flat_map(|meeting| &meeting.matches);
            names.map(|name| (name, Some(to_u32(round.round))))
        });
        let numbered =
            games.filter_map(|(name, round)| Some((name.parse::<MatchName>().ok()?.number, round)));
        return numbered.collect();
    }
    let has_rounds = matches!(stage.plan, StageKind::Swiss(_) | StageKind::Ladder(_));
    let games = (1..).zip(&stage.rounds).flat_map(|(index, round)| {
        let games = round.matches.iter().filter_map(|game| game.number);
        games.map(move |number| (number, has_rounds.then(|| to_u32(index))))
    });
    games.collect()
}

impl Service {
    /// The stage and the round of each match of an edition that the caller may see. Empty if the
    /// edition has too many matches to show its rounds.
    pub(in crate::service) async fn match_rounds(
        &self,
        caller: &Caller,
        tournament: &str,
        edition: &Edition,
    ) -> Result<Arc<MatchRounds>> {
        let shown = match self.edition_rounds(caller, tournament, Some(edition.number)).await {
            Ok(shown) => shown,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::FailedPrecondition | ErrorKind::PermissionDenied
                ) =>
            {
                return Ok(Arc::default());
            }
            Err(error) => return Err(error),
        };
        Ok(match shown.rounds.as_ref() {
            None => Arc::default(),
            Some(rounds) => Arc::new(MatchRounds::new(&shown, rounds)),
        })
    }
}

//! A match as input to a ranking.

use arbiter_games::{Forfeit, Game};

use crate::entrant::Entrant;

/// The entrants and results of one match.
#[derive(Clone, Copy, Debug)]
pub struct ScoredMatch<'a> {
    /// The entrants, seat 1 first.
    pub seats: &'a [Entrant],
    /// The scores of all seats, concatenated, seat 1 first.
    pub scores: &'a [i64],
    /// The score that each seat carried from earlier matches of its episode; empty if none is carried.
    pub carried: &'a [i64],
    /// Each seat's forfeit; empty if no seat forfeited.
    pub forfeits: &'a [Option<Forfeit>],
    /// Each seat's bad answers; empty if there were none.
    pub bad_answers: &'a [i32],
}

impl<'a> ScoredMatch<'a> {
    /// The entrants with their scores.
    pub(crate) fn entrant_scores(&self) -> impl Iterator<Item = (Entrant, &'a [i64])> + use<'a> {
        let components = self.scores.len() / self.seats.len().max(1);
        self.seats.iter().copied().zip(self.scores.chunks_exact(components.max(1)))
    }

    /// What a seat's score adds to the ranking of `game`: its components and, in games with episodes,
    /// -1 if the bot drops out of the episode.
    pub(crate) fn contribution(&self, game: &Game, seat: usize, score: &[i64]) -> Vec<i128> {
        let mut parts: Vec<i128> = score.iter().copied().map(i128::from).collect();
        if let (Some(carried), Some(first)) = (self.carried.get(seat), parts.first_mut()) {
            *first -= i128::from(*carried);
        }
        if let Some(episodes) = &game.episodes {
            // The bot drops out, so this happens at most once an episode.
            parts.push(if score.first() < Some(&episodes.min_score) { -1 } else { 0 });
        }
        parts
    }
}

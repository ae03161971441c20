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
    /// The score of each seat from earlier matches of its episode; empty without episodes.
    pub carried: &'a [i64],
    /// Each seat's forfeit; empty if no seat forfeited.
    pub forfeits: &'a [Option<Forfeit>],
    /// The number of bad replies of each seat; empty if there were none.
    pub bad_answers: &'a [i32],
}

impl<'a> ScoredMatch<'a> {
    /// The entrants with their scores.
    pub(crate) fn entrant_scores(&self) -> impl Iterator<Item = (Entrant, &'a [i64])> + use<'a> {
        let components = self.scores.len() / self.seats.len().max(1);
        self.seats.iter().copied().zip(self.scores.chunks_exact(components.max(1)))
    }

    /// The contribution of a seat's score to the ranking of `game`: its components and, in games
    /// with episodes, -1 if the bot drops out of the episode.
    pub(crate) fn contribution(&self, game: &Game, seat: usize, score: &[i64]) -> Vec<i128> {
        let mut parts: Vec<i128> = score.iter().copied().map(i128::from).collect();
        if let (Some(carried), Some(first)) = (self.carried.get(seat), parts.first_mut()) {
            *first -= i128::from(*carried);
        }
        if let Some(episodes) = &game.episodes {
            // A bot drops out at most once in an episode.
            parts.push(if score.first() < Some(&episodes.min_score) { -1 } else { 0 });
        }
        parts
    }
}

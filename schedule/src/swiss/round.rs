//! The pairing of a round, bracket by bracket.

use thiserror::Error;

use super::bracket;
use super::card::{Card, Extra, cards};
use super::colours;
use super::criteria::{Bracket, Rules};
use super::history::{Colour, Player};
use super::matching::Matcher;

/// The half points of a won round.
pub(super) const WIN: u32 = 2;

/// A Swiss tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swiss {
    /// The number of rounds.
    pub rounds: usize,
    /// The colour of the first player in the first round.
    pub initial: Colour,
}

/// Two players who meet. They are positions in the list of players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pairing {
    /// The player with the white pieces.
    pub white: usize,
    /// The player with the black pieces.
    pub black: usize,
}

/// The pairings of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairings {
    /// The pairs, from the players with the highest scores on.
    pub pairs: Vec<Pairing>,
    /// The player without an opponent, if the number of players is odd.
    pub bye: Option<usize>,
}

/// Why a round cannot be paired.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SwissError {
    /// No complete pairing keeps the absolute criteria.
    #[error(
        "round {round} cannot be paired: the {players} players have met too often; \
        play fewer rounds, or let more players take part"
    )]
    NoPairing {
        /// The round, from 1.
        round: usize,
        /// The number of players of the round.
        players: usize,
    },
}

/// No extra points.
struct NoExtra;

impl Extra for NoExtra {
    fn extra(&self, _player: usize, _round: usize) -> u32 {
        0
    }
}

impl Swiss {
    /// The pairings of the next round. The players are in the order of their pairing numbers.
    ///
    /// # Errors
    /// If no pairing keeps the rules that have no exception.
    pub fn next_round(&self, players: &[Player]) -> Result<Pairings, SwissError> {
        let played = players.first().map_or(0, |player| player.rounds.len());
        let win = WIN;
        let cards = cards(players, win, &NoExtra);
        let no_pairing = SwissError::NoPairing { round: played + 1, players: cards.len() };
        let is_last = played + 1 >= self.rounds;
        let half = (0..played).map(|_| win).sum::<u32>() / 2;
        let rules = Rules { top_above: is_last.then_some(half), bye_score: None };
        let refs: Vec<&Card> = cards.iter().collect();
        let rules = with_bye_score(rules, &refs).ok_or_else(|| no_pairing.clone())?;
        let mut pairings = Pairings::default();
        let mut remaining = refs;
        let mut moved = 0;
        while remaining.len() > 1 {
            let end = group_end(&remaining, moved);
            let next_end = group_end(&remaining, end);
            let bye_is_last =
                rules.bye_score.is_some_and(|score| score >= remaining[end - 1].score);
            let bracket =
                Bracket { rules: &rules, cards: &remaining, moved, end, next_end, bye_is_last };
            let pairs = bracket::pair(bracket).map_err(|_| no_pairing.clone())?;
            let mut paired = vec![false; remaining.len()];
            for (first, second) in pairs {
                paired[first] = true;
                paired[second] = true;
                pairings.pairs.push(self.pairing(remaining[first], remaining[second]));
            }
            moved = paired[..end].iter().filter(|paired| !**paired).count();
            let mut keep = paired.iter().map(|paired| !paired);
            remaining.retain(|_| keep.next().unwrap_or(true));
            if end == paired.len() {
                break;
            }
        }
        pairings.bye = remaining.first().map(|card| card.player);
        Ok(pairings)
    }

    /// A pair with colours.
    fn pairing(&self, first: &Card, second: &Card) -> Pairing {
        match colours::colour(first, second, self.initial) {
            Colour::White => Pairing { white: first.player, black: second.player },
            Colour::Black => Pairing { white: second.player, black: first.player },
        }
    }
}

/// The position after the last player with the score of the one at `start`.
fn group_end(cards: &[&Card], start: usize) -> usize {
    let Some(first) = cards.get(start) else { return start };
    start + cards[start..].iter().take_while(|card| card.score == first.score).count()
}

/// Finds the lowest score of a player that can be without an opponent; `None` if there is no
/// complete pairing.
fn with_bye_score(rules: Rules, cards: &[&Card]) -> Option<Rules> {
    if cards.len().is_multiple_of(2) {
        return Some(rules);
    }
    let mut scores: Vec<u32> =
        cards.iter().filter(|card| card.bye_allowed).map(|card| card.score).collect();
    scores.sort_unstable();
    scores.dedup();
    let mut tries = scores.into_iter().map(|score| Rules { bye_score: Some(score), ..rules });
    tries.find(|rules| {
        let mut matcher = Matcher::<i128>::new(cards.len() + 1, |first, second| {
            let fits = match cards.get(second) {
                Some(other) => rules.may_meet(cards[first], other),
                None => rules.may_sit_out(cards[first]),
            };
            fits.then_some(0)
        });
        matcher.start();
        matcher.solve().is_ok()
    })
}

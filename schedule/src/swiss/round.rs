//! The pairing of a round, bracket by bracket.

use std::collections::HashSet;

use thiserror::Error;

use super::bracket::{self, Pair};
use super::card::{Card, cards};
use super::colours;
use super::completion::{self, Rest};
use super::criteria::{Bracket, Rules};
use super::direct;
use super::double;
use super::history::{Colour, Forgotten, Player, Round, Variant};
use super::matching::NoMatching;
use super::outlook::{Below, Outlook};

/// A Swiss tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swiss {
    /// The number of rounds.
    pub rounds: usize,
    /// The colour of the first player in the first round.
    pub initial: Colour,
    /// What a round is.
    pub variant: Variant,
    /// The number of players at the top of the list with an accelerated start; 0 for none. See
    /// [`Swiss::accelerated_group`].
    pub accelerated: usize,
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
    /// The players have different numbers of rounds.
    #[error(
        "player {} has {rounds} rounds, player 1 has {expected}; \
        give each player one entry for each round, absent or not", player + 1
    )]
    UnequalRounds {
        /// The position of the player.
        player: usize,
        /// The number of the player's rounds.
        rounds: usize,
        /// The number of rounds of the first player.
        expected: usize,
    },
    /// A player met an opponent that does not exist.
    #[error(
        "player {} met player {}, but there are {players} players; correct the history",
        player + 1, opponent + 1
    )]
    UnknownOpponent {
        /// The position of the player.
        player: usize,
        /// The position of the opponent.
        opponent: usize,
        /// The number of players.
        players: usize,
    },
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

impl Swiss {
    /// The number of players with an accelerated start, of those of the first round: half of them,
    /// rounded up to an even number (FIDE's Baku acceleration).
    pub fn accelerated_group(players: usize) -> usize {
        2 * players.div_ceil(4)
    }

    /// The extra half points of a player in a round with an accelerated start, both counted from 0.
    /// The first half of the rounds is accelerated: a won game in its first half, then half of it.
    /// They count for the pairings alone.
    pub fn extra(&self, player: usize, round: usize) -> u32 {
        let accelerated = self.rounds.div_ceil(2);
        let full = accelerated.div_ceil(2);
        match round {
            _ if player >= self.accelerated => 0,
            _ if round < full => self.variant.win(),
            _ if round < accelerated => self.variant.win() / 2,
            _ => 0,
        }
    }

    /// The pairings of the next round. The players are in the order of their pairing numbers.
    ///
    /// # Errors
    /// If no pairing keeps the rules that have no exception, or the histories contradict each
    /// other.
    pub fn next_round(&self, players: &[Player]) -> Result<Pairings, SwissError> {
        self.next_round_without(players, Forgotten::default())
    }

    /// Like [`Self::next_round`], without a part of the players' history. If all of it is left out,
    /// there is always a pairing.
    ///
    /// # Errors
    /// As [`Self::next_round`].
    pub fn next_round_without(
        &self,
        players: &[Player],
        forgotten: Forgotten,
    ) -> Result<Pairings, SwissError> {
        check(players)?;
        let played = players.first().map_or(0, |player| player.rounds.len());
        let extra = |player, round| self.extra(player, round);
        let cards = cards(players, self.variant, forgotten, &extra);
        let no_pairing = SwissError::NoPairing { round: played + 1, players: cards.len() };
        let is_last = played + 1 >= self.rounds;
        if self.variant == Variant::Double {
            return double::pair(&cards, self.initial, is_last).map_err(|NoMatching| no_pairing);
        }
        let half = (0..played).map(|_| self.variant.win()).sum::<u32>() / 2;
        let rules = Rules { top_above: is_last.then_some(half), bye_score: None };
        let refs: Vec<&Card> = cards.iter().collect();
        let rules = with_bye_score(rules, &refs).ok_or_else(|| no_pairing.clone())?;
        let mut pairings = Pairings::default();
        let mut remaining = refs;
        let mut moved = 0;
        while remaining.len() > 1 {
            let end = group_end(&remaining, moved);
            let pairs = pair_bracket(&bracket_of(&rules, &remaining, moved, end));
            let pairs = pairs.map_err(|NoMatching| no_pairing.clone())?;
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

/// The bracket of the first `end` players. The first `moved` of them come from brackets above.
fn bracket_of<'a>(
    rules: &'a Rules,
    cards: &'a [&'a Card],
    moved: usize,
    end: usize,
) -> Bracket<'a> {
    let next_end = group_end(cards, end);
    let bye_is_last = rules.bye_score.is_some_and(|score| score >= cards[end - 1].score);
    Bracket { rules, cards, moved, end, next_end, exits: 0, exits_from: 0, bye_is_last }
}

/// The numbers of players below the next score group that an attempt looks at, before one that
/// looks at all.
const WINDOWS: [usize; 2] = [64, 512];

/// The most players of a bracket that is paired as if the next score group had an opponent for
/// everyone.
const MAX_ALONE: usize = 300;

/// How many of the lowest players in sight can be paired with those left out; one more if the
/// number in sight is odd.
const EXITS: usize = 8;

/// Pairs a bracket.
///
/// The pairing of a bracket depends on all players below, but nearly always only because all of
/// them must be paired, which is easy. So most attempts leave most of them out. If the result lets
/// the others be paired, it is the best of all: those left out can only forbid pairings. (A few of
/// the lowest players in sight may be paired with those left out, see [`EXITS`].)
fn pair_bracket(bracket: &Bracket<'_>) -> Result<Vec<Pair>, NoMatching> {
    let Bracket { rules, cards, end, next_end, bye_is_last, .. } = *bracket;
    if end == 1 {
        return Ok(Vec::new());
    }
    if let Some(pairs) = pair_directly(bracket) {
        return Ok(pairs);
    }
    if !bye_is_last && end <= MAX_ALONE {
        // Without a look at the next score group, as if it had an opponent for everyone.
        let alone = Bracket { cards: &cards[..end], next_end: end, exits: end, ..*bracket };
        if let Ok(pairs) = bracket::pair(alone) {
            let rest = rest(cards, end, &pairs);
            let moved = rest.len() - (cards.len() - end);
            let end = moved + next_end - end;
            if (Rest { rules, cards: &rest, moved, end }).completes_ideally() {
                return Ok(pairs);
            }
        }
    }
    for beyond in WINDOWS {
        let Some(window) = window(bracket, beyond) else { break };
        let Ok(pairs) = bracket::pair(window) else { continue };
        let rest = rest(cards, end, &pairs);
        let moved = rest.len() - (cards.len() - end);
        if (Rest { rules, cards: &rest, moved, end: 0 }).completes() {
            return Ok(pairs);
        }
    }
    bracket::pair(*bracket)
}

/// The most attempts to find a player who moves down and suits the players below best.
const MAX_MOVERS: usize = 30;

/// Pairs a bracket in which all criteria can be met as well as counting allows.
fn pair_directly(bracket: &Bracket<'_>) -> Option<Vec<Pair>> {
    let Bracket { rules, cards, end, next_end, bye_is_last, .. } = *bracket;
    let mut barred = HashSet::new();
    for _ in 0..MAX_MOVERS {
        let pairs = direct::pair(bracket, &barred)?;
        let rest = rest(cards, end, &pairs);
        let stays = rest.len() - (cards.len() - end);
        let moves = stays > 0 && !bye_is_last;
        let left = if moves { &rest[..] } else { &rest[stays..] };
        let next = next_end - end + usize::from(moves);
        let below = Below { rules, cards: left, moves, next };
        match below.outlook() {
            Outlook::Best => return Some(pairs),
            Outlook::Unclear => return None,
            Outlook::Worse => {
                let others = cards[..end].iter().filter(|card| below.bars(card));
                barred.extend(others.map(|card| card.player));
            }
        }
    }
    None
}

/// The players who are left after a bracket has been paired.
fn rest<'a>(cards: &[&'a Card], end: usize, pairs: &[Pair]) -> Vec<&'a Card> {
    let mut paired = vec![false; end];
    for (first, second) in pairs {
        paired[*first] = true;
        paired[*second] = true;
    }
    let left = (0..end).filter(|at| !paired[*at]).map(|at| cards[at]);
    left.chain(cards[end..].iter().copied()).collect()
}

/// The bracket without most of the players below the next score group. `None` if all matter.
fn window<'a>(bracket: &Bracket<'a>, beyond: usize) -> Option<Bracket<'a>> {
    let cards = bracket.cards;
    let mut start = bracket.next_end;
    let mut end = group_end(cards, start);
    while end < (bracket.next_end + beyond).min(cards.len()) {
        start = end;
        end = group_end(cards, start);
    }
    let lowest = cards[end - 1].score;
    let bye_is_inside = bracket.rules.bye_score.is_some_and(|score| score >= lowest);
    if bye_is_inside || end + beyond / 2 > cards.len() {
        return None;
    }
    let exits = EXITS + end % 2;
    Some(Bracket { cards: &cards[..end], exits, exits_from: start, ..*bracket })
}

/// Checks that the players have histories of the same length, with opponents that exist.
fn check(players: &[Player]) -> Result<(), SwissError> {
    let expected = players.first().map_or(0, |player| player.rounds.len());
    for (index, player) in players.iter().enumerate() {
        let rounds = player.rounds.len();
        if rounds != expected {
            return Err(SwissError::UnequalRounds { player: index, rounds, expected });
        }
        for round in &player.rounds {
            if let Round::Played { opponent, .. } | Round::Forfeit { opponent, .. } = *round
                && opponent >= players.len()
            {
                let players = players.len();
                return Err(SwissError::UnknownOpponent { player: index, opponent, players });
            }
        }
    }
    Ok(())
}

/// The position after the last player with the score of the one at `start`.
pub(super) fn group_end(cards: &[&Card], start: usize) -> usize {
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
    tries.find(|rules| completion::can_pair(rules, cards))
}

#[cfg(test)]
mod tests;

//! What the pairing of a round needs to know about each player.

use super::history::{Colour, Forgotten, Player, Round, Variant};

/// How much a player should get the preferred colour (C.04.3, 1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Strength {
    /// The player has no preference.
    None,
    /// The colours are balanced: the other colour than in the last game.
    Mild,
    /// The player had one colour once more than the other.
    Strong,
    /// The player had one colour at least twice more, or in the last two games.
    Absolute,
}

/// Who had the higher score in an earlier round (C.04.3, 1.4; C.04.5, 1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Float {
    /// The two players had equal scores, or there was no such round.
    None,
    /// The player had the higher score, or scored without a game in a round of single games.
    Down,
    /// The player had the lower score.
    Up,
}

/// A player who takes part in the round.
#[derive(Clone, Debug)]
pub(super) struct Card {
    /// The position in the list of players.
    pub(super) player: usize,
    /// The pairing number, from 0. Players who never took part have none.
    pub(super) number: usize,
    /// Half points, with those of an accelerated start.
    pub(super) score: u32,
    /// The preferred colour, if any. No player has one for a match of two games.
    pub(super) preference: Option<Colour>,
    pub(super) strength: Strength,
    /// How much more often the player had one colour than the other.
    pub(super) imbalance: usize,
    /// The colour of the last two games, if they had the same.
    pub(super) repeated: Option<Colour>,
    /// The colours of all games, the first one first.
    pub(super) colours: Vec<Colour>,
    /// The floats of the previous round and of the round before it.
    pub(super) floats: [Float; 2],
    /// Whether the player may get the pairing bye (C2).
    pub(super) bye_allowed: bool,
    /// The earlier opponents, sorted.
    opponents: Vec<usize>,
}

impl Card {
    /// Whether two players have met.
    pub(super) fn has_met(&self, other: &Self) -> bool {
        self.opponents.contains(&other.player)
    }

    /// The number of games played.
    pub(super) fn games(&self) -> usize {
        self.colours.len()
    }

    /// Whether both prefer the same colour.
    pub(super) fn wants_same(&self, other: &Self) -> bool {
        self.preference.is_some() && self.preference == other.preference
    }
}

/// The cards of all players of the next round, the best first: by score, then by pairing number.
/// `extra` gives the extra half points of a player before a round, both counted from 0.
pub(super) fn cards(
    players: &[Player],
    variant: Variant,
    forgotten: Forgotten,
    extra: &impl Fn(usize, usize) -> u32,
) -> Vec<Card> {
    let played = players.first().map_or(0, |player| player.rounds.len());
    let totals: Vec<Vec<u32>> =
        players.iter().map(|player| running_totals(player, variant)).collect();
    let score = |player: usize, round: usize| totals[player][round] + extra(player, round);
    let mut cards = Vec::new();
    let mut number = 0;
    for (index, player) in players.iter().enumerate() {
        if !player.plays && !player.rounds.iter().any(|round| round.is_paired()) {
            continue;
        }
        if player.plays {
            let float = |back: usize| match played.checked_sub(back) {
                Some(round) => float(player.rounds[round], index, round, variant, &score),
                None => Float::None,
            };
            cards.push(card(
                player,
                index,
                number,
                score(index, played),
                [float(1), float(2)],
                variant,
                forgotten,
            ));
        }
        number += 1;
    }
    cards.sort_by_key(|card| (std::cmp::Reverse(card.score), card.number));
    cards
}

/// The half points of a player before each round, and after the last one.
fn running_totals(player: &Player, variant: Variant) -> Vec<u32> {
    let mut total = 0;
    let after = player.rounds.iter().map(|round| {
        total += round.points(variant);
        total
    });
    std::iter::once(0).chain(after).collect()
}

/// The float of a player in a round. `score` gives the score of a player before a round.
fn float(
    round: Round,
    player: usize,
    number: usize,
    variant: Variant,
    score: &impl Fn(usize, usize) -> u32,
) -> Float {
    match round {
        Round::Played { opponent, .. } => {
            match score(player, number).cmp(&score(opponent, number)) {
                std::cmp::Ordering::Less => Float::Up,
                std::cmp::Ordering::Equal => Float::None,
                std::cmp::Ordering::Greater => Float::Down,
            }
        }
        _ if variant == Variant::Double => Float::None,
        Round::PairingBye | Round::Forfeit { won: true, .. } => Float::Down,
        Round::Absent { points } if points > 0 => Float::Down,
        Round::Forfeit { .. } | Round::Absent { .. } => Float::None,
    }
}

/// The card of a player.
fn card(
    player: &Player,
    index: usize,
    number: usize,
    score: u32,
    floats: [Float; 2],
    variant: Variant,
    forgotten: Forgotten,
) -> Card {
    let mut colours = Vec::new();
    let mut opponents = Vec::new();
    for (number, round) in player.rounds.iter().enumerate() {
        let Round::Played { opponent, colour, .. } = round else { continue };
        if !forgotten.colours {
            colours.push(*colour);
        }
        if number >= forgotten.meetings {
            opponents.push(*opponent);
        }
    }
    let whites = colours.iter().filter(|colour| **colour == Colour::White).count();
    let blacks = colours.len() - whites;
    let imbalance = whites.abs_diff(blacks);
    let rarer = if whites > blacks { Colour::Black } else { Colour::White };
    let last = colours.last().copied();
    let repeated = last.filter(|last| colours.iter().rev().nth(1) == Some(last));
    let strength = match imbalance {
        _ if variant == Variant::Double => Strength::None,
        2.. => Strength::Absolute,
        _ if repeated.is_some() => Strength::Absolute,
        1 => Strength::Strong,
        _ if last.is_some() => Strength::Mild,
        _ => Strength::None,
    };
    let preference = match imbalance {
        _ if variant == Variant::Double => None,
        2.. => Some(rarer),
        _ if repeated.is_some() => repeated.map(Colour::other),
        1 => Some(rarer),
        _ => last.map(Colour::other),
    };
    let mut remembered = player.rounds.iter().skip(forgotten.meetings);
    let bye_allowed = !remembered.any(|round| match round {
        Round::Played { .. } => false,
        Round::PairingBye => true,
        Round::Forfeit { .. } | Round::Absent { .. } => round.points(variant) >= variant.bye(),
    });
    Card {
        player: index,
        number,
        score,
        preference,
        strength,
        imbalance,
        repeated,
        colours,
        floats,
        bye_allowed,
        opponents,
    }
}

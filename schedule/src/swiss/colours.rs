//! Colours of pairs: which preferences a pair denies, and who gets which colour (C.04.3, 5).

use super::card::{Card, Strength};
use super::history::Colour;

/// Whether a pair gives a player a colour three times more than the other (C10).
pub(super) fn unbalances(first: &Card, second: &Card) -> bool {
    first.wants_same(second) && first.imbalance > 1 && second.imbalance > 1
}

/// Whether a pair gives a player the same colour three times in a row (C11).
pub(super) fn repeats_twice(first: &Card, second: &Card) -> bool {
    let absolute = |card: &Card| card.strength == Strength::Absolute;
    if !(first.wants_same(second) && absolute(first) && absolute(second)) {
        return false;
    }
    match first.imbalance.cmp(&second.imbalance) {
        std::cmp::Ordering::Equal => first.repeated.is_some() && first.repeated == second.repeated,
        std::cmp::Ordering::Less => first.repeated == first.preference.map(Colour::other),
        std::cmp::Ordering::Greater => second.repeated == second.preference.map(Colour::other),
    }
}

/// Whether a pair denies a player a strong preference (C13).
pub(super) fn denies_strong(first: &Card, second: &Card) -> bool {
    first.wants_same(second) && first.strength.min(second.strength) == Strength::Strong
}

/// The colour of the first player of a pair. `initial` is that of the first player in round 1.
pub(super) fn colour(first: &Card, second: &Card, initial: Colour) -> Colour {
    match (first.preference, second.preference) {
        (Some(colour), None) => return colour,
        (None, Some(colour)) => return colour.other(),
        (Some(colour), Some(other)) if colour != other => return colour,
        _ => {}
    }
    let first_is_higher = (first.score, second.number) > (second.score, first.number);
    let higher = if first_is_higher { first } else { second };
    let for_first = |colour: Colour| if first_is_higher { colour } else { colour.other() };
    let Some(wanted) = first.preference else {
        // Pairing numbers start at 0 here, so the odd ones of the rules are even.
        let odd = higher.number.is_multiple_of(2);
        return for_first(if odd { initial } else { initial.other() });
    };
    if let Some(first_wins) = stronger(first, second) {
        return if first_wins { wanted } else { wanted.other() };
    }
    let backwards = first.colours.iter().rev().zip(second.colours.iter().rev());
    if let Some((colour, _)) = backwards.into_iter().find(|(a, b)| a != b) {
        return colour.other();
    }
    for_first(wanted)
}

/// Whether the first player has the stronger preference; `None` if they are equal.
fn stronger(first: &Card, second: &Card) -> Option<bool> {
    let absolute = |card: &Card| card.strength == Strength::Absolute;
    let key = |card: &Card| {
        let imbalance = if absolute(card) { card.imbalance } else { 0 };
        (card.strength, imbalance)
    };
    match key(first).cmp(&key(second)) {
        std::cmp::Ordering::Less => Some(false),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(true),
    }
}

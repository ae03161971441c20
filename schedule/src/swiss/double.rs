//! The Double-Swiss system (FIDE Handbook C.04.5, in force from February 2026): each round is a
//! match of two games between the same players, with both colours.
//!
//! The player without an opponent is chosen first. Then the players with the highest score, and
//! players with lower scores who move up to them, form a bracket, in which all are paired; and so
//! on with the others. Colours decide nothing about who meets whom: they only tell who has White in
//! the first game.
//!
//! Three articles leave a choice, which is taken here as follows:
//!
//! - A criterion to minimise something is complied with by the least possible number, in the order
//!   of the criteria; the order of the sets (3.5.4) and of the pairings (3.6.3) decides the rest.
//! - The score group below should need as few players who move up as possible (C6). The article
//!   does not say what holds if more than one or none must move up; here fewer are better.
//! - A match that was forfeited makes no player a floater (1.5), gives no colour (1.6), and does
//!   not count as a match played (3.4.3).

mod identifier;
#[cfg(test)]
mod tests;
mod upfloaters;

use std::cmp::Reverse;

use super::card::{Card, Float};
use super::completion;
use super::criteria::Rules;
use super::history::Colour;
use super::matching::NoMatching;
use super::round::{Pairing, Pairings, group_end};

/// The rule that two players meet only once. (The cards prefer no colours.)
const RULES: Rules = Rules { top_above: None, bye_score: None };

/// A player of a bracket.
#[derive(Clone, Copy, Debug)]
struct Member<'a> {
    card: &'a Card,
    /// Whether the player moves up into the bracket.
    moves_up: bool,
}

/// The pairings of a round. The cards are the best first.
///
/// # Errors
/// If there are no pairings without a second meeting or a second bye.
pub(super) fn pair(cards: &[Card], initial: Colour, last: bool) -> Result<Pairings, NoMatching> {
    let mut open: Vec<&Card> = cards.iter().collect();
    let mut scores: Vec<u32> = open.iter().map(|card| card.score).collect();
    scores.dedup();
    let mut pairings = Pairings::default();
    if open.len() % 2 == 1 {
        let bye = bye(&open)?;
        pairings.bye = Some(open.remove(bye).player);
    } else if !completion::can_pair(&RULES, &open) {
        return Err(NoMatching);
    }
    while let Some(first) = open.first() {
        let below = scores.iter().copied().find(|score| *score < first.score);
        let end = group_end(&open, 0);
        let moving = upfloaters::choose(&open, end, below, last)?;
        let mut members: Vec<Member<'_>> =
            open[..end].iter().map(|card| Member { card, moves_up: false }).collect();
        members.extend(moving.iter().map(|at| Member { card: open[*at], moves_up: true }));
        members.sort_by_key(|member| member.card.number);
        for (top, bottom) in identifier::pair(&members, last)? {
            let first = members[top].card;
            let second = members[bottom].card;
            pairings.pairs.push(match colour(first, second, initial) {
                Colour::White => Pairing { white: first.player, black: second.player },
                Colour::Black => Pairing { white: second.player, black: first.player },
            });
        }
        let mut at = 0;
        open.retain(|_| {
            let stays = at >= end && !moving.contains(&at);
            at += 1;
            stays
        });
    }
    Ok(pairings)
}

/// The position of the player who has the bye (3.4): the first of these that leaves a pairing of
/// all others has the lowest score, then the most matches, then the highest pairing number.
fn bye(open: &[&Card]) -> Result<usize, NoMatching> {
    let mut order: Vec<usize> = (0..open.len()).filter(|at| open[*at].bye_allowed).collect();
    order.sort_by_key(|at| {
        let card = open[*at];
        (card.score, Reverse(card.games()), Reverse(card.number))
    });
    let leaves_a_pairing = |at: &usize| {
        let mut others = open.to_vec();
        others.remove(*at);
        completion::can_pair(&RULES, &others)
    };
    order.into_iter().find(leaves_a_pairing).ok_or(NoMatching)
}

/// Whether a player met one with another score in the previous round (1.5).
fn floated(card: &Card) -> bool {
    card.floats[0] != Float::None
}

/// The colour of the first player of a pair in the first game (Article 4). `initial` is that of the
/// first player in round 1.
fn colour(first: &Card, second: &Card, initial: Colour) -> Colour {
    let first_is_higher = (first.score, second.number) > (second.score, first.number);
    if first_is_higher {
        colour_of_higher(first, second, initial)
    } else {
        colour_of_higher(second, first, initial).other()
    }
}

/// The colour of the player of a pair with the higher score, or with the lower pairing number.
fn colour_of_higher(higher: &Card, lower: &Card, initial: Colour) -> Colour {
    let whites = |card: &Card| card.colours.iter().filter(|c| **c == Colour::White).count();
    match whites(higher).cmp(&whites(lower)) {
        std::cmp::Ordering::Less => return Colour::White,
        std::cmp::Ordering::Greater => return Colour::Black,
        std::cmp::Ordering::Equal => {}
    }
    let mut backwards = higher.colours.iter().rev().zip(lower.colours.iter().rev());
    if let Some((colour, _)) = backwards.find(|(a, b)| a != b) {
        return colour.other();
    }
    let alternate = higher.colours.last().map(|colour| colour.other());
    alternate.or(lower.colours.last().copied()).unwrap_or_else(|| {
        // Pairing numbers start at 0 here, so the odd ones of the rules are even.
        let odd = higher.number.is_multiple_of(2);
        if odd { initial } else { initial.other() }
    })
}

//! The pairing of a bracket (C.04.5, 3.6): of all pairings with the fewest opponents of upfloaters
//! who floated in the previous round (C8), the first one in the order of their identifiers.
//!
//! The identifier of a pairing lists the lower pairing number of each pair in ascending order, and
//! then the other number of each of these pairs. So each player in turn has a lower opponent if
//! possible, until half of the players have, and then each of these in turn has the highest
//! possible opponent.

use super::super::bracket::{Pair, choose_opponent, match_if_possible};
use super::super::criteria::bits;
use super::super::matching::{Matcher, NoMatching};
use super::super::sides::{Graph, Sides};
use super::super::weight::Weight;
use super::{Member, RULES, floated};

/// Pairs a bracket. The members are in the order of their pairing numbers.
pub(super) fn pair(members: &[Member<'_>], last: bool) -> Result<Vec<Pair>, NoMatching> {
    match pair_halves(members, last) {
        Some(pairs) => Ok(pairs),
        None => pair_thoroughly(members, last),
    }
}

/// Whether a pair is against C8.
fn repeats(first: &Member<'_>, second: &Member<'_>, last: bool) -> bool {
    let opponent = if first.moves_up { second } else { first };
    first.moves_up != second.moves_up && floated(opponent.card) && !last
}

/// The halves of a bracket.
struct Halves<'a> {
    upper: &'a [Member<'a>],
    lower: &'a [Member<'a>],
    last: bool,
}

impl Graph for Halves<'_> {
    fn places(&self) -> usize {
        self.lower.len()
    }

    fn fits(&self, upper: usize, lower: usize) -> bool {
        let first = &self.upper[upper];
        let second = &self.lower[lower];
        RULES.may_meet(first.card, second.card) && !repeats(first, second, self.last)
    }
}

/// Pairs the upper half with the lower half, if no pair has to be against C8.
pub(super) fn pair_halves(members: &[Member<'_>], last: bool) -> Option<Vec<Pair>> {
    let half = members.len() / 2;
    let (upper, lower) = members.split_at(half);
    let mut sides = Sides::new(Halves { upper, lower, last });
    sides.match_all()?;
    sides.order(half)?;
    Some(sides.mates().iter().enumerate().map(|(at, mate)| (at, half + mate)).collect())
}

/// Pairs a bracket by a look at all pairs.
pub(super) fn pair_thoroughly(members: &[Member<'_>], last: bool) -> Result<Vec<Pair>, NoMatching> {
    let size = members.len();
    let slot = bits(2 * size) + 1;
    let mut matcher = Matcher::<i128>::new(size, |higher, lower| {
        let first = &members[higher];
        let second = &members[lower];
        let fine = u64::from(!repeats(first, second, last));
        let meets = RULES.may_meet(first.card, second.card);
        meets.then(|| i128::ZERO.append(0, fine).append(slot, 0))
    });
    matcher.start();
    matcher.solve()?;
    let mut tops = Vec::new();
    for at in 0..size {
        if tops.len() == size / 2 {
            break;
        }
        if match_if_possible(&mut matcher, at, at + 1..size)? {
            tops.push(at);
            matcher.restrict(at, |other| other > at)?;
        } else {
            matcher.restrict(at, |other| other < at)?;
        }
    }
    let mut free: Vec<usize> = (0..size).filter(|at| !tops.contains(at)).collect();
    for bottom in &free {
        matcher.restrict(*bottom, |other| tops.contains(&other))?;
    }
    let mut pairs = Vec::new();
    for top in tops {
        let opponents: Vec<usize> = free.iter().copied().filter(|other| *other > top).collect();
        choose_opponent(&mut matcher, top, &opponents)?;
        let bottom = matcher.mate(top);
        matcher.settle(top)?;
        free.retain(|other| *other != bottom);
        pairs.push((top, bottom));
    }
    Ok(pairs)
}

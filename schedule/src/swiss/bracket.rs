//! The pairing of one bracket: of all pairings that meet the criteria best, the first one in the
//! order of C.04.3, 3 and 4.
//!
//! 1. A matching of maximum weight of all remaining players tells how well the criteria can be
//!    met: pairs inside the bracket and the next score group have weights, all other pairs have
//!    weight 0. They only guarantee that the rest of the round can be paired (C4).
//! 2. In a bracket with moved players, the highest of them are paired, each with the highest
//!    possible opponent.
//! 3. The others form the remainder: as few players as possible are exchanged between its upper and
//!    its lower half, those of the middle first; then each player of the upper half gets the
//!    highest possible opponent.
//!
//! Each choice keeps the weight of the matching: the choices before it are settled, and a choice is
//! tried by weights below all criteria.

use std::ops::Range;

use super::criteria::{Bracket, Criteria, bits};
use super::matching::{Matcher, NoMatching};
use super::weight::{Weight, Wide};

/// A pair: the positions of two players, the better first.
pub(super) type Pair = (usize, usize);

/// Pairs a bracket. All players without a pair move down, or one of them has the bye.
///
/// # Errors
/// If the remaining players of the round cannot be paired.
pub(super) fn pair(bracket: Bracket<'_>) -> Result<Vec<Pair>, NoMatching> {
    let criteria = Criteria::new(bracket);
    let exchange = 2 * bits(bracket.end) + 2 * bits(bracket.end + 2) + bits(bracket.end) + 1;
    let needed = criteria.bits() + exchange;
    if needed <= <i128 as Weight>::BITS {
        Pairing::<i128>::new(bracket, criteria).run()
    } else if needed <= Wide::<4>::BITS {
        Pairing::<Wide<4>>::new(bracket, criteria).run()
    } else {
        // More bits take players from about a hundred score groups that had no opponents there.
        assert!(needed <= Wide::<48>::BITS, "{needed} bits for the criteria of a bracket");
        Pairing::<Wide<48>>::new(bracket, criteria).run()
    }
}

/// The state of the pairing of a bracket.
struct Pairing<'a, W> {
    bracket: Bracket<'a>,
    criteria: Criteria<'a>,
    pairs: Vec<Pair>,
    weight: std::marker::PhantomData<W>,
}

/// Adds to an even weight, below all criteria.
fn raised<W: Weight>(weight: W, by: usize) -> W {
    weight.plus(W::ZERO.append(0, by as u64).append(1, 0))
}

/// Subtracts from an even weight, below all criteria.
fn lowered<W: Weight>(weight: W) -> W {
    weight.minus(W::ZERO.append(0, 1).append(1, 0))
}

impl<'a, W: Weight> Pairing<'a, W> {
    /// Starts with no pair.
    fn new(bracket: Bracket<'a>, criteria: Criteria<'a>) -> Self {
        Self { bracket, criteria, pairs: Vec::new(), weight: std::marker::PhantomData }
    }

    /// Finds all pairs of the bracket.
    fn run(mut self) -> Result<Vec<Pair>, NoMatching> {
        let bracket = self.bracket;
        let mut matcher = self.first_matching()?;
        let mut taken = vec![false; bracket.end];
        if bracket.moved > 0 {
            for moved in choose_moved(bracket, &mut matcher)? {
                let residents = bracket.moved..bracket.end;
                let opponents: Vec<usize> = residents.filter(|player| !taken[*player]).collect();
                choose_opponent(&mut matcher, moved, &opponents)?;
                let opponent = matcher.mate(moved);
                matcher.settle(moved)?;
                taken[moved] = true;
                taken[opponent] = true;
                self.pairs.push((moved, opponent));
            }
        }
        let remainder: Vec<usize> =
            (bracket.moved..bracket.end).filter(|player| !taken[*player]).collect();
        let paired = |player: &&usize| {
            let mate = matcher.mate(**player);
            (bracket.moved..**player).contains(&mate)
        };
        let pairs = remainder.iter().filter(paired).count();
        if pairs > 0 {
            self.pair_remainder(&taken, &remainder, pairs)?;
        }
        Ok(self.pairs)
    }

    /// The number of vertices: all players, and the bye or the exits.
    fn size(&self) -> usize {
        (self.bracket.cards.len() + self.bracket.exits).next_multiple_of(2)
    }

    /// A matching that meets the criteria best.
    fn first_matching(&mut self) -> Result<Matcher<W>, NoMatching> {
        loop {
            let slot = bits(self.bracket.end + 2) + 1;
            let criteria = &self.criteria;
            let mut matcher = Matcher::new(self.size(), |higher, lower| {
                let weight: Option<W> = criteria.weight(higher, lower);
                weight.map(|weight| weight.append(slot, 0))
            });
            matcher.start();
            matcher.solve()?;
            if !self.bracket.bye_is_last {
                return Ok(matcher);
            }
            let end = self.bracket.end;
            let unpaired = (0..end).filter(|player| {
                let mate = matcher.mate(*player);
                mate >= end || *player.max(&mate) < self.bracket.moved
            });
            if unpaired.count() == 1 {
                return Ok(matcher);
            }
            self.bracket.bye_is_last = false;
            self.criteria = Criteria::new(self.bracket);
        }
    }

    /// Pairs the remainder.
    fn pair_remainder(
        &mut self,
        taken: &[bool],
        remainder: &[usize],
        pairs: usize,
    ) -> Result<(), NoMatching> {
        let is_open = |vertex: &usize| !taken.get(*vertex).copied().unwrap_or(false);
        let vertices: Vec<usize> = (0..self.size()).filter(is_open).collect();
        let first = vertices.len() - vertices.iter().filter(|v| **v >= remainder[0]).count();
        let inside = Inside { first, length: remainder.len(), pairs };
        let mut matcher = self.remainder_matcher(&vertices, inside, None);
        matcher.start();
        matcher.solve()?;
        let mut upper = vec![false; remainder.len()];
        upper[..pairs].fill(true);
        let exchanged = (0..pairs).filter(|at| !inside.is_upper(&matcher, *at)).count();
        if exchanged > 0 {
            inside.exchange(&mut matcher, exchanged)?;
            for (at, upper) in upper.iter_mut().enumerate() {
                *upper = inside.is_upper(&matcher, at);
            }
            matcher = self.remainder_matcher(&vertices, inside, Some(&upper));
            matcher.start();
            matcher.solve()?;
        }
        let mut free: Vec<usize> = (0..remainder.len()).filter(|at| !upper[*at]).collect();
        for at in (0..remainder.len()).filter(|at| upper[*at]) {
            let lower = free.iter().filter(|other| **other > at);
            let opponents: Vec<usize> = lower.map(|other| first + other).collect();
            choose_opponent(&mut matcher, first + at, &opponents)?;
            let opponent = matcher.mate(first + at) - first;
            matcher.settle(first + at)?;
            free.retain(|other| *other != opponent);
            self.pairs.push((remainder[at], remainder[opponent]));
        }
        Ok(())
    }

    /// The graph for the remainder. `upper` says who is in the upper half, once that is decided.
    fn remainder_matcher(
        &self,
        vertices: &[usize],
        inside: Inside,
        upper: Option<&[bool]>,
    ) -> Matcher<W> {
        let criteria = &self.criteria;
        let exchange_bits = bits(inside.pairs);
        let place_bits = bits(inside.pairs * inside.length);
        let slot = bits(self.bracket.end + 2) + 1;
        Matcher::new(vertices.len(), |higher, lower| {
            let weight: W = criteria.weight(vertices[higher], vertices[lower])?;
            let position = |vertex: usize| {
                vertex.checked_sub(inside.first).filter(|position| *position < inside.length)
            };
            let weight = match (position(higher), position(lower)) {
                (Some(high), Some(low)) => {
                    if upper.is_some_and(|upper| !upper[high] || upper[low]) {
                        return None;
                    }
                    let in_place = u64::from(high < inside.pairs);
                    let place = (inside.length - high) as u64;
                    weight.append(exchange_bits, in_place).append(place_bits, place)
                }
                _ => weight.append(exchange_bits + place_bits, 0),
            };
            Some(weight.append(slot, 0))
        })
    }
}

/// The moved players that get an opponent in the bracket: of each score as many as the matching
/// has, and the highest of them.
fn choose_moved<W: Weight>(
    bracket: Bracket<'_>,
    matcher: &mut Matcher<W>,
) -> Result<Vec<usize>, NoMatching> {
    let mut chosen = Vec::new();
    let mut start = 0;
    for group in bracket.cards[..bracket.moved].chunk_by(|a, b| a.score == b.score) {
        let members = start..start + group.len();
        start = members.end;
        chosen.extend(choose_first(matcher, members, bracket.moved..bracket.end)?);
    }
    Ok(chosen)
}

/// The first vertices of a group that can be matched with some others: as many as the matching has.
pub(super) fn choose_first<W: Weight>(
    matcher: &mut Matcher<W>,
    members: Range<usize>,
    others: Range<usize>,
) -> Result<Vec<usize>, NoMatching> {
    let paired = |vertex: &usize| others.contains(&matcher.mate(*vertex));
    let mut needed = members.clone().filter(paired).count();
    let mut chosen = Vec::new();
    for vertex in members.clone() {
        if needed == 0 {
            break;
        }
        let must = members.end - vertex == needed;
        if !must && !match_if_possible(matcher, vertex, others.clone())? {
            continue;
        }
        needed -= 1;
        chosen.push(vertex);
        matcher.restrict(vertex, |other| others.contains(&other))?;
    }
    Ok(chosen)
}

/// Matches a vertex with one of some others, if that keeps the weight of the matching.
pub(super) fn match_if_possible<W: Weight>(
    matcher: &mut Matcher<W>,
    vertex: usize,
    others: Range<usize>,
) -> Result<bool, NoMatching> {
    if others.contains(&matcher.mate(vertex)) {
        return Ok(true);
    }
    if !matcher.may_match_any(vertex, |other| others.contains(&other)) {
        return Ok(false);
    }
    change_weights(matcher, vertex, others.clone(), |weight| raised(weight, 1));
    matcher.release(vertex);
    matcher.solve()?;
    let matched = others.contains(&matcher.mate(vertex));
    if !matched {
        change_weights(matcher, vertex, others, lowered);
    }
    Ok(matched)
}

/// Changes the weights of all edges from a vertex to some others.
fn change_weights<W: Weight>(
    matcher: &mut Matcher<W>,
    vertex: usize,
    others: impl Iterator<Item = usize>,
    change: impl Fn(W) -> W,
) {
    for other in others {
        if let Some(weight) = matcher.weight(vertex, other) {
            matcher.set_weight(vertex, other, change(weight));
        }
    }
}

/// Matches a vertex with the first possible of some others.
pub(super) fn choose_opponent<W: Weight>(
    matcher: &mut Matcher<W>,
    vertex: usize,
    opponents: &[usize],
) -> Result<(), NoMatching> {
    for &opponent in opponents {
        if opponent == matcher.mate(vertex) {
            return Ok(());
        }
        if matcher.may_match(vertex, opponent) {
            if matcher.swap(vertex, opponent) {
                return Ok(());
            }
            break;
        }
    }
    for (rank, &opponent) in opponents.iter().rev().enumerate() {
        change_weights(matcher, vertex, std::iter::once(opponent), |weight| raised(weight, rank));
    }
    matcher.release(vertex);
    matcher.solve()
}

/// Where the remainder is among the vertices.
#[derive(Clone, Copy, Debug)]
struct Inside {
    /// The vertex of its first player.
    first: usize,
    /// The number of its players.
    length: usize,
    /// The number of its pairs, so the number of players in the upper half.
    pairs: usize,
}

impl Inside {
    /// Whether the player at a position is matched with a lower player of the remainder.
    fn is_upper<W: Weight>(self, matcher: &Matcher<W>, at: usize) -> bool {
        self.below(at).contains(&matcher.mate(self.first + at))
    }

    /// The vertices of the players below a position.
    fn below(self, at: usize) -> Range<usize> {
        self.first + at + 1..self.first + self.length
    }

    /// Decides which players are exchanged between the halves: the lowest of the upper half and the
    /// highest of the lower half, as far as possible.
    fn exchange<W: Weight>(
        self,
        matcher: &mut Matcher<W>,
        exchanged: usize,
    ) -> Result<(), NoMatching> {
        let mut left = exchanged;
        for at in (0..self.pairs).rev() {
            if left == 0 {
                break;
            }
            let vertex = self.first + at;
            if self.is_upper(matcher, at) {
                let below = self.below(at);
                if !matcher.may_match_any(vertex, |other| !below.contains(&other)) {
                    continue;
                }
                change_weights(matcher, vertex, self.below(at), lowered);
                matcher.release(vertex);
                matcher.solve()?;
                if self.is_upper(matcher, at) {
                    change_weights(matcher, vertex, self.below(at), |weight| raised(weight, 1));
                    matcher.release(vertex);
                    matcher.solve()?;
                    continue;
                }
            }
            left -= 1;
            matcher.restrict(vertex, |other| !self.below(at).contains(&other))?;
        }
        let mut left = exchanged;
        for at in self.pairs..self.length {
            if left <= 1 {
                break;
            }
            let vertex = self.first + at;
            if !self.is_upper(matcher, at) {
                let below = self.below(at);
                if !matcher.may_match_any(vertex, |other| below.contains(&other)) {
                    continue;
                }
                change_weights(matcher, vertex, self.below(at), |weight| raised(weight, 1));
                matcher.release(vertex);
                matcher.solve()?;
                if !self.is_upper(matcher, at) {
                    change_weights(matcher, vertex, self.below(at), lowered);
                    continue;
                }
            }
            left -= 1;
            matcher.restrict(vertex, |other| self.below(at).contains(&other))?;
        }
        Ok(())
    }
}

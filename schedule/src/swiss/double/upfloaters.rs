//! The players who move up into a bracket (C.04.5, 3.5).
//!
//! A set of them is possible if its players and those with the highest score can be paired, and all
//! others too. As few as possible move up (C4), so each of them meets one with the highest score.
//! So a pairing of *all* players tells everything about a set, and the best set is that of a
//! matching of maximum weight: most pairs of two with the highest score (C4), fewest upfloaters
//! with the lowest scores (C5), most pairs inside the score group below (C6), and fewest who
//! floated in the previous round (C7). Of these sets, the first one in the order of the rules is
//! chosen player by player.
//!
//! Large fields need a shorter way. It looks at a few players only, and assumes that the others can
//! always be paired. So it can only find a set that is as good as the best one, or better but
//! impossible. If the set is possible, it is the best one.

use super::super::bracket::choose_first;
use super::super::card::Card;
use super::super::completion::{self, Rest};
use super::super::criteria::bits;
use super::super::matching::{Matcher, NoMatching};
use super::super::round::group_end;
use super::super::weight::{Weight, Wide};
use super::{RULES, floated};

/// The most players with the highest score that the shorter way looks at. For more of them, it
/// takes a few who may meet everyone.
const MAX_TOP: usize = 60;
const FREE_TOP: usize = 4;

/// The largest score group below that the shorter way looks at as a whole.
const MAX_NEXT: usize = 60;

/// The positions of the players who move up to the first `end` players. `below` is the next lower
/// score in the tournament.
pub(super) fn choose(
    open: &[&Card],
    end: usize,
    below: Option<u32>,
    last: bool,
) -> Result<Vec<usize>, NoMatching> {
    let quickly = |cards: &[&Card]| completion::can_pair_quickly(&RULES, cards);
    if end == open.len() || end.is_multiple_of(2) && quickly(&open[..end]) && quickly(&open[end..])
    {
        return Ok(Vec::new());
    }
    let all = Sight::all(open, end, below, last);
    if let Some(part) = all.part()
        && let Ok(chosen) = part.choose()
        && part.confirms(&chosen)
    {
        return Ok(chosen.moving);
    }
    all.choose().map(|chosen| chosen.moving)
}

/// The players that are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight<'a> {
    open: &'a [&'a Card],
    /// The number of players with the highest score, and of those of them in sight. If these are
    /// fewer, they may meet everyone.
    end: usize,
    tops: usize,
    /// The end of the score group below.
    next: usize,
    /// The end of the players in sight.
    visible: usize,
    /// From here on, players can also be paired with those out of sight.
    closed: usize,
    /// Whether this is the last round.
    last: bool,
}

/// The players who move up, and what becomes of the others.
#[derive(Debug)]
pub(super) struct Chosen {
    /// The positions of those who move up.
    pub(super) moving: Vec<usize>,
    /// The positions of those in sight who are paired with players out of sight.
    outside: Vec<usize>,
}

impl<'a> Sight<'a> {
    /// All players.
    pub(super) fn all(open: &'a [&'a Card], end: usize, below: Option<u32>, last: bool) -> Self {
        let has_next = open.get(end).map(|card| card.score) == below;
        let next = if has_next { group_end(open, end) } else { end };
        Self { open, end, tops: end, next, visible: open.len(), closed: open.len(), last }
    }

    /// A part of the players that is large enough for the shorter way: for each of its players who
    /// meets one out of sight, or moves up from there, another one in sight could do so, and would
    /// come first. `None` if that takes all players.
    pub(super) fn part(self) -> Option<Self> {
        let tops = if self.end > MAX_TOP { FREE_TOP + self.end % 2 } else { self.end };
        let closed = if self.next - self.end > MAX_NEXT { self.end } else { self.next };
        let games = self.open.iter().map(|card| card.games()).max().unwrap_or(0);
        let needed = tops + (closed - self.end) + games + 1;
        let able = |at: &usize| self.last || !floated(self.open[*at]);
        let visible = (closed..self.open.len()).filter(able).nth(needed)? + 1;
        Some(Self { tops, visible, closed, ..self })
    }

    /// Whether the players can be paired as a choice of this part of them assumes.
    pub(super) fn confirms(&self, chosen: &Chosen) -> bool {
        let moves = |at: &usize| chosen.moving.contains(at);
        let quickly = |cards: &[&Card]| completion::can_pair_quickly(&RULES, cards);
        let bracket = (0..self.end).chain(chosen.moving.iter().copied());
        let bracket: Vec<&Card> = bracket.map(|at| self.open[at]).collect();
        if self.has_free_tops() && !quickly(&bracket) {
            return false;
        }
        if self.closed == self.next {
            let outside = chosen.outside.iter().copied().chain(self.visible..self.open.len());
            let outside: Vec<&Card> = outside.map(|at| self.open[at]).collect();
            return quickly(&outside);
        }
        let rest = (self.end..self.open.len()).filter(|at| !moves(at));
        let cards: Vec<&Card> = rest.map(|at| self.open[at]).collect();
        let end = (self.end..self.next).filter(|at| !moves(at)).count();
        (Rest { rules: &RULES, cards: &cards, moved: 0, end }).completes_ideally()
    }

    /// The best choice.
    pub(super) fn choose(self) -> Result<Chosen, NoMatching> {
        let levels = u32::try_from(self.levels().len()).unwrap_or(u32::MAX);
        let counts = 2 * bits(self.end) + bits(self.next - self.end) + self.slot();
        let needed = levels.saturating_mul(bits(self.tops)).saturating_add(counts);
        if needed <= <i128 as Weight>::BITS {
            self.choose_with::<i128>()
        } else if needed <= Wide::<4>::BITS {
            self.choose_with::<Wide<4>>()
        } else {
            assert!(needed <= Wide::<48>::BITS, "{needed} bits for the criteria of upfloaters");
            self.choose_with::<Wide<48>>()
        }
    }

    /// The bits for the order of the sets.
    fn slot(&self) -> u32 {
        bits(2 * self.tops + 2) + 1
    }

    /// The position of a vertex that is a player with a lower score.
    fn lower(&self, vertex: usize) -> Option<usize> {
        let at = self.end + vertex.checked_sub(self.tops)?;
        (at < self.visible).then_some(at)
    }

    /// Whether only some of the players with the highest score are in sight.
    pub(super) fn has_free_tops(&self) -> bool {
        self.tops < self.end
    }

    /// The best choice, with weights that are wide enough.
    fn choose_with<W: Weight>(self) -> Result<Chosen, NoMatching> {
        let players = self.tops + self.visible - self.end;
        let exits = self.visible.saturating_sub(self.closed);
        let size = (players + exits).next_multiple_of(2);
        let levels = self.levels();
        let mut matcher = Matcher::<W>::new(size, |first, second| {
            let weight: W = self.weight(first, second, &levels)?;
            Some(weight.append(self.slot(), 0))
        });
        matcher.start();
        matcher.solve()?;
        let mut moving = Vec::new();
        let mut start = self.tops;
        for group in self.open[self.end..self.visible].chunk_by(|a, b| a.score == b.score) {
            let members = start..start + group.len();
            start = members.end;
            moving.extend(choose_first(&mut matcher, members, 0..self.tops)?);
        }
        let at = |vertex: usize| self.end + vertex - self.tops;
        let outside = (self.tops..players).filter(|vertex| matcher.mate(*vertex) >= players);
        Ok(Chosen {
            outside: outside.map(at).collect(),
            moving: moving.into_iter().map(at).collect(),
        })
    }

    /// The scores in sight below the highest one, the lowest first.
    fn levels(&self) -> Vec<u32> {
        let mut levels: Vec<u32> =
            self.open[self.end..self.visible].iter().rev().map(|card| card.score).collect();
        levels.dedup();
        levels
    }

    /// The weight of an edge.
    fn weight<W: Weight>(&self, first: usize, second: usize, levels: &[u32]) -> Option<W> {
        let is_top = first < self.tops;
        let free = self.has_free_tops();
        let pairs = bits(self.end);
        let level_bits = bits(self.tops);
        let inside = bits(self.next - self.end);
        let Some(lower) = self.lower(second) else {
            if second < self.tops {
                let meets = free || RULES.may_meet(self.open[first], self.open[second]);
                let below = level_bits * u32::try_from(levels.len()).ok()? + inside + pairs;
                return meets.then(|| W::ZERO.append(0, 1).append(below, 0));
            }
            let open = self.lower(first).is_none_or(|at| at >= self.closed);
            return (open && !is_top).then_some(W::ZERO);
        };
        let card = self.open[lower];
        if let Some(other) = self.lower(first) {
            let both_next = lower < self.next && self.closed >= self.next;
            let weight = W::ZERO.append(0, u64::from(both_next)).append(pairs, 0);
            return RULES.may_meet(self.open[other], card).then_some(weight);
        }
        if !(free || RULES.may_meet(self.open[first], card)) {
            return None;
        }
        let mut weight = W::ZERO;
        for level in levels {
            weight = weight.append(level_bits, u64::from(*level != card.score));
        }
        let fine = self.last || !floated(card);
        Some(weight.append(inside, 0).append(pairs, u64::from(fine)))
    }
}

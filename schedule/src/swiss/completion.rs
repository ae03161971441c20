//! Whether the rest of a round can be paired, found by pairing neighbours.

use super::card::Card;
use super::criteria::Rules;
use super::matching::Matcher;

/// The most players for which a quick answer must be certain.
pub(super) const MAX_EXACT: usize = 400;

/// Whether some players can all be paired, but for one who has the bye if their number is odd.
pub(super) fn can_pair(rules: &Rules, cards: &[&Card]) -> bool {
    if (Rest { rules, cards, moved: 0, end: 0 }).completes() {
        return true;
    }
    let mut matcher = Matcher::<i128>::new(cards.len().next_multiple_of(2), |first, second| {
        let fits = match cards.get(second) {
            Some(other) => rules.may_meet(cards[first], other),
            None => rules.may_sit_out(cards[first]),
        };
        fits.then_some(0)
    });
    matcher.start();
    matcher.solve().is_ok()
}

/// Whether some players can all be paired. "No" is certain for at most [`MAX_EXACT`] players.
pub(super) fn can_pair_quickly(rules: &Rules, cards: &[&Card]) -> bool {
    if cards.len() <= MAX_EXACT {
        can_pair(rules, cards)
    } else {
        (Rest { rules, cards, moved: 0, end: 0 }).completes()
    }
}

/// The players who are not paired yet, the best first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'a> {
    pub(super) rules: &'a Rules,
    pub(super) cards: &'a [&'a Card],
    /// The number of players that move down into the next bracket. They come first.
    pub(super) moved: usize,
    /// The number of players of the next bracket.
    pub(super) end: usize,
}

impl Rest<'_> {
    /// Whether all can be paired, so that the next bracket has as many pairs as its size allows,
    /// and all players that moved down have an opponent in it. "No" is not certain.
    pub(super) fn completes_ideally(&self) -> bool {
        let Some(mut open) = self.without_bye() else { return false };
        let below = open.split_off(open.partition_point(|at| *at < self.end));
        let size = open.len();
        let mut left = self.pair_neighbours(open);
        if (size - left.len()) / 2 != self.end / 2 || left.iter().any(|at| *at < self.moved) {
            return false;
        }
        left.extend(below);
        self.pair_neighbours(left).is_empty()
    }

    /// Whether all can be paired. "No" is not certain.
    pub(super) fn completes(&self) -> bool {
        self.without_bye().is_some_and(|open| self.pair_neighbours(open).is_empty())
    }

    /// All positions, without that of the lowest player who may have the bye, if one must.
    fn without_bye(&self) -> Option<Vec<usize>> {
        let mut open: Vec<usize> = (0..self.cards.len()).collect();
        if open.len() % 2 == 1 {
            let bye = open.iter().rposition(|at| self.rules.may_sit_out(self.cards[*at]))?;
            open.remove(bye);
        }
        Some(open)
    }

    /// Whether two players can be paired here: they may meet, and did not both move down.
    fn fits(&self, first: usize, second: usize) -> bool {
        first.max(second) >= self.moved
            && self.rules.may_meet(self.cards[first], self.cards[second])
    }

    /// Pairs each player with the next one who is free, and then those that are left by breaking
    /// up other pairs. Returns who cannot be paired so.
    fn pair_neighbours(&self, mut open: Vec<usize>) -> Vec<usize> {
        open.reverse();
        let mut pairs = Vec::new();
        let mut left = Vec::new();
        while let Some(first) = open.pop() {
            match open.iter().rposition(|second| self.fits(first, *second)) {
                Some(at) => pairs.push([first, open.remove(at)]),
                None => left.push(first),
            }
        }
        let mut index = 0;
        while index + 1 < left.len() {
            let found = (index + 1..left.len()).find_map(|other| {
                let fresh = self.break_up(&pairs, left[index], left[other])?;
                Some((other, fresh))
            });
            let Some((other, (broken, swapped))) = found else {
                index += 1;
                continue;
            };
            let [a, b] = pairs[broken];
            let second = left.remove(other);
            let first = left.remove(index);
            let new = if swapped { [[first, b], [second, a]] } else { [[first, a], [second, b]] };
            pairs[broken] = new[0];
            pairs.push(new[1]);
        }
        left
    }

    /// The last pair that can be broken up, so that its players meet two others, and whether the
    /// first of these meets the second of the pair.
    fn break_up(&self, pairs: &[[usize; 2]], first: usize, second: usize) -> Option<(usize, bool)> {
        pairs.iter().enumerate().rev().find_map(|(at, &[a, b])| {
            if self.fits(first, a) && self.fits(second, b) {
                Some((at, false))
            } else {
                (self.fits(first, b) && self.fits(second, a)).then_some((at, true))
            }
        })
    }
}

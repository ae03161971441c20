//! Whether a bracket that is paired without regard to the players below suits them best (C4, C8).
//!
//! If all players of a bracket are paired, or one of them has the bye, then the others only have to
//! be paired somehow. If one player moves down, the next bracket should get as many pairs as it can
//! get with *any* player of the bracket, and a pair for the player who moves down. No player can
//! do better there than one who may meet everyone. So a player who does as well is a best choice.

use super::card::Card;
use super::completion::{self, MAX_EXACT, Rest};
use super::criteria::Rules;
use super::matching::Matcher;

/// How good the pairing of a bracket is for the players below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// No pairing of the bracket is better.
    Best,
    /// A player who may meet everyone would do better than the one who moves down.
    Worse,
    /// The answer would take too long.
    Unclear,
}

/// The players who are not paired when a bracket is paired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Below<'a> {
    pub(super) rules: &'a Rules,
    /// The one who moves down, if there is one, and then those below, the best first.
    pub(super) cards: &'a [&'a Card],
    /// Whether one moves down.
    pub(super) moves: bool,
    /// The number of players of the next bracket, with the one who moves down.
    pub(super) next: usize,
}

impl Below<'_> {
    /// How good this is for the players below.
    pub(super) fn outlook(&self) -> Outlook {
        let rest = |moved, end| Rest { rules: self.rules, cards: self.cards, moved, end };
        let small = self.cards.len() <= MAX_EXACT;
        if !self.moves {
            let completes = completion::can_pair_quickly(self.rules, self.cards);
            return if completes { Outlook::Best } else { Outlook::Unclear };
        }
        if rest(1, self.next).completes_ideally() {
            return Outlook::Best;
        }
        if !small && 2 * self.next > MAX_EXACT {
            return Outlook::Unclear;
        }
        let Some(most) = self.best(true) else { return Outlook::Unclear };
        let mine = self.best(false).filter(|mine| mine.value == most.value);
        let Some(mine) = mine else { return Outlook::Worse };
        if small || self.leaves_a_pairing(&mine.left) { Outlook::Best } else { Outlook::Unclear }
    }

    /// Whether another player would do no better than the one who moves down: the other cannot meet
    /// those either whom that one cannot meet.
    pub(super) fn bars(&self, other: &Card) -> bool {
        let sight = &self.cards[1..self.sight()];
        let mut blocked = sight.iter().filter(|card| !self.rules.may_meet(self.cards[0], card));
        blocked.all(|card| !self.rules.may_meet(other, card))
    }

    /// The number of players that [`Self::best`] looks at: all, or those of the next bracket.
    fn sight(&self) -> usize {
        if self.cards.len() <= MAX_EXACT { self.cards.len() } else { self.next }
    }

    /// Whether the players below the next bracket can be paired with those that it leaves.
    fn leaves_a_pairing(&self, left: &[usize]) -> bool {
        let left = left.iter().map(|at| self.cards[*at]);
        let cards: Vec<&Card> = left.chain(self.cards[self.next..].iter().copied()).collect();
        (Rest { rules: self.rules, cards: &cards, moved: 0, end: 0 }).completes()
    }

    /// The best pairing of the next bracket: most pairs, and a pair for the one who moves down, who
    /// may meet everyone if `free`. `None` if not all players can be paired. If there are many
    /// players, those below the next bracket are left out.
    fn best(&self, free: bool) -> Option<Next> {
        let sight = self.sight();
        let all = sight == self.cards.len();
        let size = if all { sight.next_multiple_of(2) } else { 2 * sight };
        let weight = |higher: usize, lower: usize| {
            let pair = 2 + i128::from(self.moves && higher == 0);
            2 * if lower < self.next { pair } else { 0 }
        };
        let mut matcher = Matcher::<i128>::new(size, |higher, lower| {
            let Some(card) = self.cards.get(higher).filter(|_| higher < sight) else {
                return Some(0);
            };
            let fits = match self.cards.get(lower).filter(|_| lower < sight) {
                Some(other) => free && higher == 0 || self.rules.may_meet(card, other),
                None => !all || self.rules.may_sit_out(card),
            };
            fits.then(|| weight(higher, lower))
        });
        matcher.start();
        matcher.solve().ok()?;
        let next = 0..self.next;
        let pairs = next.clone().filter(|at| (at + 1..self.next).contains(&matcher.mate(*at)));
        let value = pairs.map(|at| weight(at, matcher.mate(at))).sum();
        let left = next.filter(|at| matcher.mate(*at) >= self.next).collect();
        Some(Next { value, left })
    }
}

/// A best pairing of the next bracket.
#[derive(Debug)]
struct Next {
    /// How good it is.
    value: i128,
    /// The positions of those that it leaves.
    left: Vec<usize>,
}

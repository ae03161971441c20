//! The least possible numbers of denied colour preferences in a bracket (C12, C13), and the pairs
//! that every pairing with these numbers consists of.
//!
//! If more players want one colour than there are others, some pairs must have two of them. Each
//! such pair denies one preference, so every pairing with the fewest denials has one of these
//! players in *every* pair. Among such pairs, one with a mild preference denies no strong one. The
//! proof is linear programming duality: each player gets a number, so that the numbers of two
//! players add up to at least what their pair is worth. They add up to exactly that in the pairs
//! below. So a pairing that has only such pairs is best, and every best pairing has only such
//! pairs.
//!
//! Two players with absolute preferences for the same colour never meet in a best pairing here: in
//! the last round, top scorers can do so, but then C10 or C11 count the pair before C12 and C13.

use super::card::{Card, Strength};
use super::colours;
use super::criteria::Rules;
use super::history::Colour;

/// Which pairs a best pairing can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shortage {
    /// All preferences can be met: no pair wants the same colour twice.
    None,
    /// Too many want this colour, but enough of them mildly: one of them is in each pair.
    Mild(Colour),
    /// As before, but too few want it mildly: each of those meets another who wants it.
    Strong(Colour),
}

/// How many players want which colour.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    all: usize,
    /// Those who want White, and those who want Black.
    wanting: [usize; 2],
    /// Those of them who want it mildly.
    mild: [usize; 2],
}

impl Count {
    /// Counts some players.
    pub(super) fn new(cards: &[&Card]) -> Self {
        let mut count = Self::default();
        for card in cards {
            count.all += 1;
            if let Some(colour) = card.preference {
                count.wanting[colour as usize] += 1;
                count.mild[colour as usize] += usize::from(card.strength == Strength::Mild);
            }
        }
        count
    }

    /// The count without one of the players.
    pub(super) fn without(mut self, card: &Card) -> Self {
        self.all -= 1;
        if let Some(colour) = card.preference {
            self.wanting[colour as usize] -= 1;
            self.mild[colour as usize] -= usize::from(card.strength == Strength::Mild);
        }
        self
    }
}

/// The pairs of a best pairing of a bracket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preferences<'a> {
    rules: &'a Rules,
    shortage: Shortage,
}

impl<'a> Preferences<'a> {
    /// Counts the preferences of all players of a bracket.
    pub(super) fn new(rules: &'a Rules, members: &[&Card]) -> Self {
        let count = Count::new(members);
        let [white, black] = count.wanting;
        let most = if white > black { Colour::White } else { Colour::Black };
        let wanting = white.max(black);
        let others = count.all - wanting;
        let shortage = if wanting <= others {
            Shortage::None
        } else if count.mild[most as usize] >= (wanting - others) / 2 {
            Shortage::Mild(most)
        } else {
            Shortage::Strong(most)
        };
        Self { rules, shortage }
    }

    /// Whether the colours of some of the players allow that all of them are in pairs of a best
    /// pairing, or all but one who stays. The answer "no" is certain.
    pub(super) fn can_pair(&self, count: Count) -> bool {
        let stays = count.all % 2;
        match self.shortage {
            Shortage::None => count.wanting.into_iter().max() <= Some(count.all.div_ceil(2)),
            Shortage::Mild(colour) => {
                let wanting = count.wanting[colour as usize];
                let others = count.all - wanting;
                let strong = wanting - count.mild[colour as usize];
                // The one who stays wants the colour strongly, if one does.
                wanting >= others + stays && 2 * strong <= count.all + stays
            }
            Shortage::Strong(colour) => {
                let strong = count.wanting[colour as usize] - count.mild[colour as usize];
                2 * strong >= count.all + stays
            }
        }
    }

    /// Whether a best pairing can have a pair, as far as colours tell. Depends on the preferred
    /// colours and their strengths alone.
    pub(super) fn suits(&self, a: &Card, b: &Card) -> bool {
        match self.shortage {
            Shortage::None => !a.wants_same(b),
            Shortage::Mild(colour) => {
                let wants = |card: &Card| card.preference == Some(colour);
                (wants(a) || wants(b)) && !colours::denies_strong(a, b)
            }
            Shortage::Strong(colour) => {
                let wants = |card: &Card| card.preference == Some(colour);
                let mildly = |card: &Card| wants(card) && card.strength == Strength::Mild;
                if mildly(a) || mildly(b) {
                    wants(a) && wants(b) && !(mildly(a) && mildly(b))
                } else {
                    wants(a) || wants(b)
                }
            }
        }
    }

    /// Whether a best pairing can have a pair.
    pub(super) fn fits(&self, a: &Card, b: &Card) -> bool {
        self.suits(a, b)
            && self.rules.may_meet(a, b)
            && !(self.rules.top_above.is_some()
                && (colours::unbalances(a, b) || colours::repeats_twice(a, b)))
    }

    /// Whether a player of a bracket with an odd number of players can be the one without a pair.
    pub(super) fn may_stay(&self, card: &Card) -> bool {
        match self.shortage {
            Shortage::None => true,
            Shortage::Mild(colour) => card.preference == Some(colour),
            Shortage::Strong(colour) => {
                card.preference == Some(colour) && card.strength != Strength::Mild
            }
        }
    }
}

//! Head-to-head results: the results of pairs of entrants in their common matches.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::Entrant;

use super::ScoredMatch;

/// The results of an entrant against one opponent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadToHead {
    /// Matches at the same table.
    pub matches: i64,
    /// Matches with a higher score than the opponent.
    pub won: i64,
    /// Matches with the same score.
    pub drawn: i64,
    /// Matches with a lower score.
    pub lost: i64,
    /// Sum of the first components of the entrant's scores.
    pub points_for: i128,
    /// Sum of the first components of the opponent's scores.
    pub points_against: i128,
}

impl HeadToHead {
    /// The same results from the opponent's side.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        Self {
            matches: self.matches,
            won: self.lost,
            drawn: self.drawn,
            lost: self.won,
            points_for: self.points_against,
            points_against: self.points_for,
        }
    }
}

/// The pairs to collect. A large edition has millions of pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairFilter {
    /// One entrant against all its opponents.
    One(Entrant),
    /// These entrants against each other.
    Among(BTreeSet<Entrant>),
}

impl PairFilter {
    /// The entrants that the filter names.
    pub fn entrants(&self) -> Vec<Entrant> {
        match self {
            Self::One(entrant) => vec![*entrant],
            Self::Among(entrants) => entrants.iter().copied().collect(),
        }
    }

    /// Whether the filter selects this pair.
    fn includes(&self, first: Entrant, second: Entrant) -> bool {
        match self {
            Self::One(entrant) => [first, second].contains(entrant),
            Self::Among(entrants) => entrants.contains(&first) && entrants.contains(&second),
        }
    }
}

/// The head-to-head results of the selected pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadToHeads {
    filter: PairFilter,
    /// The key is the pair, lower number first. The value is the result of the entrant with the
    /// lower number.
    by_pair: BTreeMap<(Entrant, Entrant), HeadToHead>,
}

impl HeadToHeads {
    /// An empty collection.
    pub fn new(filter: PairFilter) -> Self {
        Self { filter, by_pair: BTreeMap::new() }
    }

    /// Adds a match: a result for every pair of its entrants.
    pub fn add(&mut self, result: &ScoredMatch<'_>) {
        let mut scores: Vec<_> = result.entrant_scores().collect();
        scores.sort_by_key(|(entrant, _)| *entrant);
        for (index, (entrant, score)) in scores.iter().enumerate() {
            for (opponent, against) in &scores[index + 1..] {
                if !self.filter.includes(*entrant, *opponent) {
                    continue;
                }
                let pair = self.by_pair.entry((*entrant, *opponent)).or_default();
                pair.matches += 1;
                match score.cmp(against) {
                    Ordering::Greater => pair.won += 1,
                    Ordering::Equal => pair.drawn += 1,
                    Ordering::Less => pair.lost += 1,
                }
                pair.points_for += score.first().copied().map_or(0, i128::from);
                pair.points_against += against.first().copied().map_or(0, i128::from);
            }
        }
    }

    /// The results of `entrant` against `opponent`, if they have met.
    pub fn between(&self, entrant: Entrant, opponent: Entrant) -> Option<HeadToHead> {
        if entrant <= opponent {
            self.by_pair.get(&(entrant, opponent)).cloned()
        } else {
            self.by_pair.get(&(opponent, entrant)).map(HeadToHead::mirrored)
        }
    }
}

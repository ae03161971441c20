//! Head to head: what each two entrants made of their matches against each other.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::Entrant;

use super::Outcome;

/// What an entrant made of its matches against another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meeting {
    /// Matches at the same table.
    pub matches: i64,
    /// Those with the higher score.
    pub won: i64,
    /// Those with the same score.
    pub drawn: i64,
    /// Those with the lower score.
    pub lost: i64,
    /// The first numbers of its own scores, added.
    pub own: i128,
    /// The first numbers of the other's.
    pub other: i128,
}

impl Meeting {
    /// The same as the other sees it.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        let Self { won, lost, own, other, .. } = *self;
        Self { won: lost, lost: won, own: other, other: own, ..*self }
    }
}

/// Whose meetings are asked for: of all there may be millions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of one entrant, with whomever it met.
    One(Entrant),
    /// Those of these entrants with each other.
    Among(BTreeSet<Entrant>),
}

impl Whose {
    /// All who are named.
    pub fn entrants(&self) -> Vec<Entrant> {
        match self {
            Self::One(entrant) => vec![*entrant],
            Self::Among(entrants) => entrants.iter().copied().collect(),
        }
    }

    /// Whether the meetings of these two are asked for.
    fn include(&self, one: Entrant, other: Entrant) -> bool {
        match self {
            Self::One(entrant) => [one, other].contains(entrant),
            Self::Among(entrants) => entrants.contains(&one) && entrants.contains(&other),
        }
    }
}

/// What entrants made of their meetings, each two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meetings {
    whose: Whose,
    /// As seen by the entrant with the lower number, which stands first.
    by_pair: BTreeMap<(Entrant, Entrant), Meeting>,
}

impl Meetings {
    /// None yet.
    pub fn new(whose: Whose) -> Self {
        Self { whose, by_pair: BTreeMap::new() }
    }

    /// Adds a match: each two of its entrants met.
    pub fn add(&mut self, outcome: &Outcome<'_>) {
        let mut scored: Vec<_> = outcome.scored().collect();
        scored.sort_by_key(|(entrant, _)| *entrant);
        for (index, (entrant, score)) in scored.iter().enumerate() {
            for (other, against) in &scored[index + 1..] {
                if !self.whose.include(*entrant, *other) {
                    continue;
                }
                let meeting = self.by_pair.entry((*entrant, *other)).or_default();
                meeting.matches += 1;
                match score.cmp(against) {
                    Ordering::Greater => meeting.won += 1,
                    Ordering::Equal => meeting.drawn += 1,
                    Ordering::Less => meeting.lost += 1,
                }
                meeting.own += score.first().copied().map_or(0, i128::from);
                meeting.other += against.first().copied().map_or(0, i128::from);
            }
        }
    }

    /// What `entrant` made of its matches against `other`, if they have met.
    pub fn between(&self, entrant: Entrant, other: Entrant) -> Option<Meeting> {
        if entrant <= other {
            self.by_pair.get(&(entrant, other)).cloned()
        } else {
            self.by_pair.get(&(other, entrant)).map(Meeting::mirrored)
        }
    }
}

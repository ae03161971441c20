//! Plans of all kinds, as one stream of matches.

use super::foursomes::{self, Foursomes, GrownTables};
use super::{Bot, Broken, Claim, Counter, EpisodePlan, Field, Pairing, Pairings};

/// The most memory that a plan is proved in, in bytes: that of 10 000 bots in matches of two, or
/// 14 000 at tables of four. For more bots it is not counted who meets whom.
pub const MOST_PROOF_BYTES: usize = 100_000_000;

/// What a schedule comes to for a number of bots.
#[derive(Debug)]
pub enum Plan {
    /// Matches that can all be listed.
    Matches(Matches),
    /// Episodes, whose matches follow from one another.
    Episodes(EpisodePlan),
}

/// The matches of a plan, one by one, in O(n) memory.
#[derive(Debug)]
pub enum Matches {
    /// Matches of two.
    Pairings(Box<Pairings>),
    /// Tables of four.
    Foursomes(Box<Foursomes>),
    /// Tables of four of a field that has changed, or in which owners are kept apart.
    Grown(Box<GrownTables>),
}

/// A match that is to be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The board it is played on, from 0; always 0 where there is but one.
    pub board: u16,
    /// How many times a pair was planned before on this board, both sides taken as one; 0 at
    /// tables of four.
    pub leg: u32,
    bots: [Bot; foursomes::SEATS],
    seats: usize,
}

impl Planned {
    /// Who plays, seat 1 first.
    pub fn seats(&self) -> &[Bot] {
        &self.bots[..self.seats]
    }

    fn table(bots: foursomes::Table) -> Self {
        Self { board: 0, leg: 0, bots, seats: foursomes::SEATS }
    }
}

impl AsRef<[Bot]> for Planned {
    fn as_ref(&self) -> &[Bot] {
        self.seats()
    }
}

impl Matches {
    /// How many matches there are in all.
    pub fn total(&self) -> u64 {
        match self {
            Self::Pairings(pairings) => pairings.matches(),
            Self::Foursomes(foursomes) => foursomes.matches(),
            Self::Grown(grown) => grown.matches(),
        }
    }

    /// How many seats a match has.
    pub fn seats(&self) -> usize {
        match self {
            Self::Pairings(_) => 2,
            Self::Foursomes(_) | Self::Grown(_) => foursomes::SEATS,
        }
    }

    /// What the plan promises, to be proved by a [`Certificate`](super::Certificate).
    pub fn claim(&self) -> Claim {
        match self {
            Self::Pairings(pairings) => pairings.claim(),
            Self::Foursomes(foursomes) => foursomes.claim(),
            Self::Grown(grown) => grown.claim(),
        }
    }

    /// Goes through all matches and compares them with what the plan promises for its field. Where
    /// counting meetings would take more than [`MOST_PROOF_BYTES`], only seats and numbers of
    /// matches are compared.
    ///
    /// # Errors
    /// The first promise that is broken, or the first match that is impossible.
    pub fn prove(self, field: &Field) -> Result<(), Broken> {
        let claim = self.claim();
        self.prove_claim(field, &claim)
    }

    /// The same for another claim.
    pub(super) fn prove_claim(self, field: &Field, claim: &Claim) -> Result<(), Broken> {
        let (bots, seats) = (field.bots(), self.seats());
        let bytes = Counter::bytes(bots, seats, *claim.meetings.end());
        let mut counter = if bytes > MOST_PROOF_BYTES {
            Counter::without_meetings(bots, seats)
        } else {
            Counter::new(bots, seats, field.owners())
        };
        for planned in self {
            counter.add(planned.seats())?;
        }
        counter.finish().prove(claim)
    }
}

impl Iterator for Matches {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        match self {
            Self::Pairings(pairings) => {
                let pairing = pairings.next()?;
                let [one, two] = pairing.seats;
                let Pairing { board, leg, .. } = pairing;
                Some(Planned { board, leg, bots: [one, two, 0, 0], seats: 2 })
            }
            Self::Foursomes(foursomes) => foursomes.next().map(Planned::table),
            Self::Grown(grown) => grown.next().map(Planned::table),
        }
    }
}

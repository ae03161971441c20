//! The matches of a plan as a stream.

use super::foursomes::{self, Foursomes, IncrementalTables};
use super::tables::TableStream;
use super::{
    CertificateBuilder, CertificateError, Claim, Pairings, Participants, PlannedMatch, SoloMatches,
};

/// The maximum memory for a proof, in bytes: enough for 10 000 bots in matches of two, 14 000 at
/// tables of four, or 2 million pairs if only some pairs meet. With more bots the proof does not
/// count meetings.
pub const MAX_PROOF_BYTES: usize = 100_000_000;

/// The matches of a plan, one by one, in O(n) memory.
#[derive(Debug)]
pub enum Matches {
    /// Matches of two.
    Pairings(Box<Pairings>),
    /// Tables of four.
    Foursomes(Box<Foursomes>),
    /// Tables of four after bots joined or left, or with owners kept apart.
    Incremental(Box<IncrementalTables>),
    /// Tables of any number of seats.
    Tables(TableStream),
    /// Matches of one.
    Solo(SoloMatches),
}

impl Matches {
    /// The total number of matches.
    pub fn total(&self) -> u64 {
        match self {
            Self::Pairings(pairings) => pairings.matches(),
            Self::Foursomes(foursomes) => foursomes.matches(),
            Self::Incremental(tables) => tables.matches(),
            Self::Tables(tables) => tables.matches(),
            Self::Solo(solo) => solo.matches(),
        }
    }

    /// The number of seats of a match.
    pub fn seats(&self) -> usize {
        match self {
            Self::Pairings(_) => 2,
            Self::Foursomes(_) | Self::Incremental(_) => foursomes::SEATS,
            Self::Tables(tables) => tables.seats(),
            Self::Solo(_) => 1,
        }
    }

    /// The claim of the plan. A [`Certificate`](super::Certificate) can prove it.
    pub fn claim(&self) -> Claim {
        match self {
            Self::Pairings(pairings) => pairings.claim(),
            Self::Foursomes(foursomes) => foursomes.claim(),
            Self::Incremental(tables) => tables.claim(),
            Self::Tables(tables) => tables.claim(),
            Self::Solo(solo) => solo.claim(),
        }
    }

    /// Counts all matches and compares the counts with the plan's claim. If counting meetings would
    /// need more than [`MAX_PROOF_BYTES`], it compares only seats and numbers of matches.
    ///
    /// # Errors
    /// The first number that differs from the claim, or the first impossible match.
    pub fn prove(self, participants: &Participants) -> Result<(), CertificateError> {
        let claim = self.claim();
        self.prove_claim(participants, &claim)
    }

    /// Like [`Self::prove`] for another claim.
    pub(super) fn prove_claim(
        self,
        participants: &Participants,
        claim: &Claim,
    ) -> Result<(), CertificateError> {
        let bots = participants.bots();
        let seats = self.seats();
        let mut certificate = if CertificateBuilder::memory(claim, bots, seats) > MAX_PROOF_BYTES {
            CertificateBuilder::without_meetings(bots, seats)
        } else {
            CertificateBuilder::for_claim(claim, bots, seats, participants.owners())
        };
        for planned_match in self {
            certificate.add(planned_match.seats())?;
        }
        certificate.finish().prove(claim)
    }
}

impl Iterator for Matches {
    type Item = PlannedMatch;

    fn next(&mut self) -> Option<PlannedMatch> {
        match self {
            Self::Pairings(pairings) => pairings.next().map(PlannedMatch::from),
            Self::Foursomes(foursomes) => foursomes.next().map(PlannedMatch::table),
            Self::Incremental(tables) => tables.next().map(PlannedMatch::table),
            Self::Tables(tables) => {
                let bots = tables.next()?;
                Some(PlannedMatch::seated(bots, tables.seats()))
            }
            Self::Solo(solo) => solo.next().map(|(leg, bot)| PlannedMatch::new(0, leg, [bot])),
        }
    }
}

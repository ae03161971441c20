//! Certificates: facts about a list of matches, found by counting.
//!
//! A certificate does not depend on how the matches were planned: it counts the seats match by match.
//! It takes one byte for each pair of bots or, for matches of two, for each pair and side (four bytes
//! once a count exceeds 255): 50 or 100 MB for 10 000 bots.

mod counts;

use core::fmt;
use core::ops::RangeInclusive;

use thiserror::Error;

use self::counts::Counts;
use super::bot::have_same_owner;
use super::{Bot, Owner};

/// The counts of a list of matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The number of bots.
    pub bots: usize,
    /// The number of seats of each match.
    pub seats: usize,
    /// The number of matches.
    pub matches: u64,
    /// A number of meetings and how many pairs meet that often, rising. Pairs that should not meet
    /// are left out.
    pub meetings: Vec<(u32, u64)>,
    /// Pairs of one owner, where they are kept apart.
    pub same_owner: Option<SameOwnerPairs>,
    /// The fewest and the most matches of a bot.
    pub matches_of_bot: RangeInclusive<u32>,
    /// The fewest and the most times that a bot has a given seat.
    pub times_in_seat: RangeInclusive<u32>,
    /// The greatest difference between the numbers of times that a bot has each seat.
    pub seat_spread: u32,
    /// In matches of two: the greatest difference between how often each bot of a pair is first.
    pub side_spread: Option<u32>,
}

/// Pairs of bots of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SameOwnerPairs {
    /// The number of pairs.
    pub pairs: u64,
    /// The sum of their meetings.
    pub meetings: u64,
}

/// The claim that a plan makes about its matches. It holds for every bot and every pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The number of matches.
    pub matches: u64,
    /// How often a pair meets, unless it is kept apart.
    pub meetings: RangeInclusive<u32>,
    /// The maximum sum of the meetings of pairs of one owner, where they are kept apart.
    pub same_owner_meetings: Option<u64>,
    /// The maximum difference between two bots' numbers of matches; `None` claims nothing.
    pub match_spread: Option<u32>,
    /// The maximum difference between the numbers of times that a bot has each seat; `None` where
    /// chance decides.
    pub seat_spread: Option<u32>,
    /// The maximum difference between how often each bot of a pair is first.
    pub side_spread: Option<u32>,
}

/// Why a list of matches has no certificate, or does not meet a claim.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CertificateError {
    /// A match has the wrong number of seats.
    #[error("match {number} has {found} seats, not {due}")]
    SeatCount {
        /// The match, from 1.
        number: u64,
        /// Its number of seats.
        found: usize,
        /// The expected number of seats.
        due: usize,
    },
    /// A match has a bot that is not in the tournament.
    #[error("match {number}: there is no bot {bot}")]
    UnknownBot {
        /// The match, from 1.
        number: u64,
        /// The bot, from 1.
        bot: usize,
    },
    /// A bot has two seats of one match.
    #[error("match {number}: bot {bot} meets itself")]
    DuplicateBot {
        /// The match, from 1.
        number: u64,
        /// The bot, from 1.
        bot: usize,
    },
    /// A number is not as promised.
    #[error("{what}: {found}, not {due} as promised")]
    Claim {
        /// What was counted.
        what: &'static str,
        /// The counted number.
        found: String,
        /// The promised number.
        due: String,
    },
}

impl Certificate {
    /// Counts matches of `seats` seats between `bots` bots. Bots of one owner are counted apart;
    /// `owners` is empty if owners do not matter.
    ///
    /// # Errors
    /// If a match is impossible: wrong number of seats, or a bot that is unknown or has two seats.
    pub fn count<M: AsRef<[Bot]>>(
        bots: usize,
        seats: usize,
        owners: &[Option<Owner>],
        matches: impl IntoIterator<Item = M>,
    ) -> Result<Self, CertificateError> {
        let mut counter = CertificateBuilder::new(bots, seats, owners);
        matches.into_iter().try_for_each(|planned| counter.add(planned.as_ref()))?;
        Ok(counter.finish())
    }

    /// How often every pair meets, if all meet equally often.
    pub fn exact_meetings(&self) -> Option<u32> {
        match self.meetings[..] {
            [(times, _)] => Some(times),
            _ => None,
        }
    }

    /// The number of pairs that do not meet ⌊x⌋ or ⌈x⌉ times; x is the mean number of meetings.
    pub fn uneven_pairs(&self) -> u64 {
        let pairs: u64 = self.meetings.iter().map(|(_, pairs)| pairs).sum();
        let met: u64 = self.meetings.iter().map(|(times, pairs)| u64::from(*times) * pairs).sum();
        if pairs == 0 {
            return 0;
        }
        let near = met / pairs..=met.div_ceil(pairs);
        let uneven = self.meetings.iter().filter(|(times, _)| !near.contains(&(*times).into()));
        uneven.map(|(_, pairs)| pairs).sum()
    }

    /// Compares the counts with a claim.
    pub fn prove(&self, claim: &Claim) -> Result<(), CertificateError> {
        let broken =
            |what, found: String, due: String| Err(CertificateError::Claim { what, found, due });
        if self.matches != claim.matches {
            return broken("matches", self.matches.to_string(), claim.matches.to_string());
        }
        let mut meetings = self.meetings.iter();
        if let Some((times, _)) = meetings.find(|(times, _)| !claim.meetings.contains(times)) {
            return broken("meetings of a pair", times.to_string(), range(&claim.meetings));
        }
        let match_spread = self.matches_of_bot.end() - self.matches_of_bot.start();
        let same_owner_meetings = self.same_owner.map(|same_owner| same_owner.meetings);
        let at_most = |what, found: Option<u64>, most: Option<u64>| match (found, most) {
            (Some(found), Some(most)) if found > most => {
                broken(what, found.to_string(), format!("at most {most}"))
            }
            _ => Ok(()),
        };
        let differ = |what, found: Option<u32>, most: Option<u32>| {
            at_most(what, found.map(u64::from), most.map(u64::from))
        };
        at_most("meetings of bots of one owner", same_owner_meetings, claim.same_owner_meetings)?;
        differ("difference of two bots' matches", Some(match_spread), claim.match_spread)?;
        differ("difference of a bot's seats", Some(self.seat_spread), claim.seat_spread)?;
        differ("difference of a pair's sides", self.side_spread, claim.side_spread)
    }
}

/// A range as text: one number if its ends are equal.
fn range(numbers: &RangeInclusive<u32>) -> String {
    let least = numbers.start();
    let most = numbers.end();
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} bots, {} matches of {}", self.bots, self.matches, self.seats)?;
        let meetings =
            self.meetings.iter().map(|(times, pairs)| format!("{times} ({pairs} pairs)"));
        write!(f, "meetings of a pair: {}", meetings.collect::<Vec<_>>().join(", "))?;
        match (self.exact_meetings(), self.uneven_pairs()) {
            (Some(times), _) => writeln!(f, ": exactly λ = {times}")?,
            (None, 0) => writeln!(f, ": all ⌊x⌋ or ⌈x⌉")?,
            (None, uneven) => writeln!(f, ": {uneven} pairs are not ⌊x⌋ or ⌈x⌉")?,
        }
        if let Some(SameOwnerPairs { pairs, meetings }) = self.same_owner {
            writeln!(f, "pairs of one owner: {pairs}, which meet {meetings} times in all")?;
        }
        writeln!(f, "matches of a bot:   {}", range(&self.matches_of_bot))?;
        write!(f, "times in a seat:    {}", range(&self.times_in_seat))?;
        writeln!(f, ", of one bot within {}", self.seat_spread)?;
        if let Some(spread) = self.side_spread {
            writeln!(f, "sides of a pair:    within {spread}")?;
        }
        Ok(())
    }
}

/// Counts matches one by one for a [`Certificate`].
#[derive(Debug)]
pub struct CertificateBuilder {
    bots: usize,
    seats: usize,
    matches: u64,
    /// How often each pair meets; in matches of two, how often with each bot first. `None` if
    /// meetings are not counted.
    met: Option<Counts>,
    /// How often bot b has seat s, at `b · seats + s`.
    seated: Vec<u32>,
    /// The owners of the bots; empty if owners do not matter.
    owners: Vec<Option<Owner>>,
}

impl CertificateBuilder {
    /// Starts to count matches of `seats` seats between `bots` bots. Bots of one owner are counted
    /// apart; `owners` is empty if owners do not matter.
    pub fn new(bots: usize, seats: usize, owners: &[Option<Owner>]) -> Self {
        let met = Some(Counts::new(numbers(bots, seats)));
        Self { met, owners: owners.to_vec(), ..Self::without_meetings(bots, seats) }
    }

    /// Like [`Self::new`] without counting meetings: O(n) memory. The certificate then has no
    /// meetings, owners or sides of pairs, and proves no claim about them.
    pub fn without_meetings(bots: usize, seats: usize) -> Self {
        let seated = vec![0; bots * seats];
        Self { bots, seats, matches: 0, met: None, seated, owners: Vec::new() }
    }

    /// The bytes of memory that [`Self::new`] takes for meetings if a pair meets at most `most` times.
    pub fn bytes(bots: usize, seats: usize, most: u32) -> usize {
        let each = if most > u8::MAX.into() { size_of::<u32>() } else { size_of::<u8>() };
        numbers(bots, seats).saturating_mul(each)
    }

    /// Counts a match.
    pub fn add(&mut self, planned: &[Bot]) -> Result<(), CertificateError> {
        self.matches += 1;
        let number = self.matches;
        if planned.len() != self.seats {
            return Err(CertificateError::SeatCount {
                number,
                found: planned.len(),
                due: self.seats,
            });
        }
        for (seat, bot) in planned.iter().enumerate() {
            let bot = usize::from(*bot);
            if bot >= self.bots {
                return Err(CertificateError::UnknownBot { number, bot: bot + 1 });
            }
            self.seated[bot * self.seats + seat] += 1;
            for other in planned[..seat].iter().map(|other| usize::from(*other)) {
                let pair = match (self.seats, bot.max(other), bot.min(other)) {
                    (_, high, low) if high == low => {
                        return Err(CertificateError::DuplicateBot { number, bot: bot + 1 });
                    }
                    (2, ..) => other * self.bots + bot,
                    (_, high, low) => high * (high - 1) / 2 + low,
                };
                if let Some(met) = &mut self.met {
                    met.raise(pair);
                }
            }
        }
        Ok(())
    }

    /// The certificate of all counted matches.
    pub fn finish(self) -> Certificate {
        let (meetings, side_spread) = match (&self.met, self.seats) {
            (None, _) => (Vec::new(), None),
            (Some(met), 2) => {
                let (meetings, spread) = met.sides(self.bots);
                (meetings, Some(spread))
            }
            (Some(met), _) => {
                (met.histogram(|high, low| !have_same_owner(&self.owners, high, low)), None)
            }
        };
        let owned = self.met.as_ref().filter(|_| !self.owners.is_empty());
        let same_owner = owned.map(|met| {
            let met = met.histogram(|high, low| have_same_owner(&self.owners, high, low));
            let meetings = met.iter().map(|(times, pairs)| u64::from(*times) * pairs).sum();
            SameOwnerPairs { pairs: met.iter().map(|(_, pairs)| pairs).sum(), meetings }
        });
        let seats = || self.seated.chunks_exact(self.seats);
        let spread = |bot: &[u32]| ends(bot.iter().copied()).map_or(0, |(low, high)| high - low);
        let whole = |ends: Option<(u32, u32)>| ends.map_or(0..=0, |(low, high)| low..=high);
        Certificate {
            bots: self.bots,
            seats: self.seats,
            matches: self.matches,
            meetings,
            same_owner,
            matches_of_bot: whole(ends(seats().map(|bot| bot.iter().sum()))),
            times_in_seat: whole(ends(self.seated.iter().copied())),
            seat_spread: seats().map(spread).max().unwrap_or(0),
            side_spread,
        }
    }
}

/// How many numbers count the meetings: one for each pair or, in matches of two, one for each pair
/// and side.
fn numbers(bots: usize, seats: usize) -> usize {
    if seats == 2 { bots * bots } else { bots * bots.saturating_sub(1) / 2 }
}

/// The smallest and the greatest number.
fn ends(mut numbers: impl Iterator<Item = u32>) -> Option<(u32, u32)> {
    let first = numbers.next()?;
    Some(numbers.fold((first, first), |(low, high), number| (low.min(number), high.max(number))))
}

//! Certificates: counts of a list of matches.
//!
//! A certificate is independent of the planner: it counts the seats match by match. It needs one
//! byte for each pair of bots, or for each pair and side in matches of two (four bytes after a
//! count exceeds 255). This is 50 or 100 MB for 10 000 bots. If a plan claims that most pairs never
//! meet, only those that meet have counters: 7 MB for 10 000 bots with 64 opponents each.

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
    /// Pairs of a number of meetings and the number of bot pairs that meet this often, in ascending
    /// order. Bot pairs that should not meet are excluded.
    pub meetings: Vec<(u32, u64)>,
    /// The pairs of bots of one owner, if owners are kept apart.
    pub same_owner: Option<SameOwnerPairs>,
    /// In matches of two: the minimum and maximum number of others that a bot meets.
    pub opponents_of_bot: Option<RangeInclusive<u32>>,
    /// The minimum and maximum number of matches of a bot.
    pub matches_of_bot: RangeInclusive<u32>,
    /// The minimum and maximum number of times that a bot has a seat.
    pub times_in_seat: RangeInclusive<u32>,
    /// The maximum difference, over all bots, between the numbers of times that a bot has each
    /// seat.
    pub seat_spread: u32,
    /// In matches of two: the maximum difference, over all pairs, between the numbers of times that
    /// each bot of the pair has seat 1.
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
    /// In matches of two: the number of others that each bot meets. `None`: all of them.
    pub opponents: Option<usize>,
    /// The number of meetings of a pair that meets and is not kept apart.
    pub meetings: RangeInclusive<u32>,
    /// The maximum sum of the meetings of pairs of one owner, if owners are kept apart.
    pub same_owner_meetings: Option<u64>,
    /// The maximum difference between two bots' numbers of matches; `None` for no claim.
    pub match_spread: Option<u32>,
    /// The maximum difference between the numbers of times that a bot has each seat; `None` if
    /// seats are random.
    pub seat_spread: Option<u32>,
    /// The maximum difference between the numbers of times that each bot of a pair has seat 1.
    pub side_spread: Option<u32>,
}

/// Why a list of matches has no certificate, or does not meet a claim.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CertificateError {
    /// A match has the wrong number of seats.
    #[error("match {number} has {actual} seats, not {expected}")]
    SeatCount {
        /// The number of the match, from 1.
        number: u64,
        /// The number of seats of the match.
        actual: usize,
        /// The expected number of seats.
        expected: usize,
    },
    /// A match has a bot that is not in the tournament.
    #[error("match {number}: there is no bot {bot}")]
    UnknownBot {
        /// The number of the match, from 1.
        number: u64,
        /// The number of the bot, from 1.
        bot: usize,
    },
    /// A bot has two seats of one match.
    #[error("match {number}: bot {bot} meets itself")]
    DuplicateBot {
        /// The number of the match, from 1.
        number: u64,
        /// The number of the bot, from 1.
        bot: usize,
    },
    /// A count does not meet the claim.
    #[error("{quantity}: {actual}, not {expected} as promised")]
    Claim {
        /// The counted quantity.
        quantity: &'static str,
        /// The actual number.
        actual: String,
        /// The claimed number.
        expected: String,
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
        matches.into_iter().try_for_each(|table| counter.add(table.as_ref()))?;
        Ok(counter.finish())
    }

    /// The number of meetings of every pair; `None` if pairs differ.
    pub fn exact_meetings(&self) -> Option<u32> {
        match self.meetings[..] {
            [(times, _)] => Some(times),
            _ => None,
        }
    }

    /// The number of others that every bot meets, each of them equally often; `None` if bots or
    /// meetings differ, or if all pairs meet.
    pub fn exact_opponents(&self) -> Option<u32> {
        let opponents = self.opponents_of_bot.as_ref()?;
        let is_exact =
            matches!(self.meetings[..], [(0, _), _]) && opponents.start() == opponents.end();
        is_exact.then_some(*opponents.start())
    }

    /// How often pairs would meet in the most even plan: ⌊x⌋ to ⌈x⌉ times; x is the mean number of
    /// meetings. `None` if there are no pairs.
    pub fn even_meetings(&self) -> Option<RangeInclusive<u64>> {
        let pairs: u64 = self.meetings.iter().map(|(_, pairs)| pairs).sum();
        let total: u64 = self.meetings.iter().map(|(times, pairs)| u64::from(*times) * pairs).sum();
        (pairs > 0).then(|| total / pairs..=total.div_ceil(pairs))
    }

    /// The number of pairs that meet more or less often than in the most even plan.
    pub fn uneven_pairs(&self) -> u64 {
        let Some(even) = self.even_meetings() else { return 0 };
        let uneven = self.meetings.iter().filter(|(times, _)| !even.contains(&(*times).into()));
        uneven.map(|(_, pairs)| pairs).sum()
    }

    /// Compares the counts with a claim.
    pub fn prove(&self, claim: &Claim) -> Result<(), CertificateError> {
        let error = |quantity, actual: String, expected: String| {
            Err(CertificateError::Claim { quantity, actual, expected })
        };
        if self.matches != claim.matches {
            return error("matches", self.matches.to_string(), claim.matches.to_string());
        }
        let is_claimed = |times: &u32| {
            claim.meetings.contains(times) || claim.opponents.is_some() && *times == 0
        };
        let mut meetings = self.meetings.iter();
        if let Some((times, _)) = meetings.find(|(times, _)| !is_claimed(times)) {
            return error("meetings of a pair", times.to_string(), range(&claim.meetings));
        }
        if let (Some(actual), Some(claimed)) = (&self.opponents_of_bot, claim.opponents)
            && [*actual.start(), *actual.end()].map(|others| others as usize) != [claimed; 2]
        {
            return error("opponents of a bot", range(actual), claimed.to_string());
        }
        let match_spread = self.matches_of_bot.end() - self.matches_of_bot.start();
        let same_owner_meetings = self.same_owner.map(|same_owner| same_owner.meetings);
        let check_max = |quantity, actual: Option<u64>, max: Option<u64>| match (actual, max) {
            (Some(actual), Some(max)) if actual > max => {
                error(quantity, actual.to_string(), format!("at most {max}"))
            }
            _ => Ok(()),
        };
        let check_spread = |quantity, actual: Option<u32>, max: Option<u32>| {
            check_max(quantity, actual.map(u64::from), max.map(u64::from))
        };
        check_max("meetings of bots of one owner", same_owner_meetings, claim.same_owner_meetings)?;
        check_spread("difference of two bots' matches", Some(match_spread), claim.match_spread)?;
        check_spread("difference of a bot's seats", Some(self.seat_spread), claim.seat_spread)?;
        check_spread("difference of a pair's sides", self.side_spread, claim.side_spread)
    }
}

/// A range as text: one number if its ends are equal.
fn range(numbers: &RangeInclusive<u32>) -> String {
    let min = numbers.start();
    let max = numbers.end();
    if min == max { min.to_string() } else { format!("{min} to {max}") }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} bots, {} matches of {}", self.bots, self.matches, self.seats)?;
        let meetings =
            self.meetings.iter().map(|(times, pairs)| format!("{times} ({pairs} pairs)"));
        if self.seats > 1 {
            write!(f, "meetings of a pair: {}", meetings.collect::<Vec<_>>().join(", "))?;
            match (self.exact_meetings(), self.exact_opponents(), self.uneven_pairs()) {
                (Some(times), ..) => writeln!(f, ": exactly λ = {times}")?,
                (_, Some(number), _) => writeln!(f, ": every bot meets exactly {number} others")?,
                (None, None, 0) => writeln!(f, ": all ⌊x⌋ or ⌈x⌉")?,
                (None, None, uneven) => writeln!(f, ": {uneven} pairs are not ⌊x⌋ or ⌈x⌉")?,
            }
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
    /// The number of meetings of each pair; in matches of two, for each bot of the pair in seat 1.
    /// `None` if meetings are not counted.
    meetings: Option<Counts>,
    /// The number of times that bot b has seat s, at `b · seats + s`.
    seat_counts: Vec<u32>,
    /// The owners of the bots; empty if owners do not matter.
    owners: Vec<Option<Owner>>,
}

impl CertificateBuilder {
    /// Starts to count matches of `seats` seats between `bots` bots. Bots of one owner are counted
    /// apart; `owners` is empty if owners do not matter.
    pub fn new(bots: usize, seats: usize, owners: &[Option<Owner>]) -> Self {
        let meetings = Some(Counts::new(counters(bots, seats)));
        Self { meetings, owners: owners.to_vec(), ..Self::without_meetings(bots, seats) }
    }

    /// Starts to count matches for the comparison with this claim, in [`Self::memory`] bytes.
    pub fn for_claim(claim: &Claim, bots: usize, seats: usize, owners: &[Option<Owner>]) -> Self {
        if Self::sparse_memory(claim, bots) < Self::bytes(bots, seats, *claim.meetings.end()) {
            let meetings = Some(Counts::sparse(sides_that_meet(claim, bots)));
            Self { meetings, ..Self::without_meetings(bots, seats) }
        } else {
            Self::new(bots, seats, owners)
        }
    }

    /// The memory of [`Self::for_claim`] for meetings, in bytes, if the claim is true.
    pub fn memory(claim: &Claim, bots: usize, seats: usize) -> usize {
        Self::bytes(bots, seats, *claim.meetings.end()).min(Self::sparse_memory(claim, bots))
    }

    /// The memory of counters for only those pairs that meet, in bytes.
    fn sparse_memory(claim: &Claim, bots: usize) -> usize {
        match claim.opponents {
            Some(_) => sides_that_meet(claim, bots).saturating_mul(Counts::SPARSE_BYTES),
            None => usize::MAX,
        }
    }

    /// Like [`Self::new`] without counting meetings: O(n) memory. The certificate then has no
    /// meetings, owners or sides of pairs, and proves no claim about them.
    pub fn without_meetings(bots: usize, seats: usize) -> Self {
        let seat_counts = vec![0; bots * seats];
        Self { bots, seats, matches: 0, meetings: None, seat_counts, owners: Vec::new() }
    }

    /// The memory of [`Self::new`] for meetings, in bytes, if a pair meets at most `max_meetings`
    /// times.
    pub fn bytes(bots: usize, seats: usize, max_meetings: u32) -> usize {
        let counter_size =
            if max_meetings > u8::MAX.into() { size_of::<u32>() } else { size_of::<u8>() };
        counters(bots, seats).saturating_mul(counter_size)
    }

    /// Counts a match.
    pub fn add(&mut self, bots: &[Bot]) -> Result<(), CertificateError> {
        self.matches += 1;
        let number = self.matches;
        if bots.len() != self.seats {
            return Err(CertificateError::SeatCount {
                number,
                actual: bots.len(),
                expected: self.seats,
            });
        }
        for (seat, bot) in bots.iter().enumerate() {
            let bot = usize::from(*bot);
            if bot >= self.bots {
                return Err(CertificateError::UnknownBot { number, bot: bot + 1 });
            }
            self.seat_counts[bot * self.seats + seat] += 1;
            for other in bots[..seat].iter().map(|other| usize::from(*other)) {
                let pair = match (self.seats, bot.max(other), bot.min(other)) {
                    (_, high, low) if high == low => {
                        return Err(CertificateError::DuplicateBot { number, bot: bot + 1 });
                    }
                    (2, ..) => other * self.bots + bot,
                    (_, high, low) => high * (high - 1) / 2 + low,
                };
                if let Some(meetings) = &mut self.meetings {
                    meetings.increment(pair);
                }
            }
        }
        Ok(())
    }

    /// The certificate of all counted matches.
    pub fn finish(self) -> Certificate {
        let sides = self.meetings.as_ref().filter(|_| self.seats == 2);
        let sides = sides.map(|counts| counts.sides(self.bots));
        let opponents = sides.as_ref().map(|sides| ends(sides.opponents.iter().copied()));
        let side_spread = sides.as_ref().map(|sides| sides.spread);
        let meetings = match (sides, &self.meetings) {
            (Some(sides), _) => sides.meetings,
            (None, Some(counts)) => {
                counts.histogram(|high, low| !have_same_owner(&self.owners, high, low))
            }
            (None, None) => Vec::new(),
        };
        let counts = self.meetings.as_ref().filter(|_| !self.owners.is_empty());
        let same_owner = counts.map(|counts| {
            let histogram = counts.histogram(|high, low| have_same_owner(&self.owners, high, low));
            let meetings = histogram.iter().map(|(times, pairs)| u64::from(*times) * pairs).sum();
            SameOwnerPairs { pairs: histogram.iter().map(|(_, pairs)| pairs).sum(), meetings }
        });
        let seats = || self.seat_counts.chunks_exact(self.seats);
        let spread = |bot: &[u32]| ends(bot.iter().copied()).map_or(0, |(low, high)| high - low);
        let range = |ends: Option<(u32, u32)>| ends.map_or(0..=0, |(low, high)| low..=high);
        Certificate {
            bots: self.bots,
            seats: self.seats,
            matches: self.matches,
            meetings,
            same_owner,
            opponents_of_bot: opponents.map(range),
            matches_of_bot: range(ends(seats().map(|bot| bot.iter().sum()))),
            times_in_seat: range(ends(self.seat_counts.iter().copied())),
            seat_spread: seats().map(spread).max().unwrap_or(0),
            side_spread,
        }
    }
}

/// The number of counters for meetings: one for each pair, or one for each pair and side in matches
/// of two. Bots that play alone never meet.
fn counters(bots: usize, seats: usize) -> usize {
    match seats {
        1 => 0,
        2 => bots * bots,
        _ => bots * bots.saturating_sub(1) / 2,
    }
}

/// The number of pairs that meet, by the claim. If they meet more than once, each side counts.
fn sides_that_meet(claim: &Claim, bots: usize) -> usize {
    let opponents = claim.opponents.unwrap_or(bots);
    let sides = (*claim.meetings.end()).min(2) as usize;
    bots.saturating_mul(opponents) / 2 * sides
}

/// The minimum and maximum of the numbers.
fn ends(mut numbers: impl Iterator<Item = u32>) -> Option<(u32, u32)> {
    let first = numbers.next()?;
    Some(numbers.fold((first, first), |(low, high), number| (low.min(number), high.max(number))))
}

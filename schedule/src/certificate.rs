//! What is true of a list of matches, found by counting them.
//!
//! A certificate knows nothing of how matches were planned: it looks at who sits where, match by
//! match. It takes a byte for each pair of bots, or, for matches of two, for each pair and side
//! (four bytes once some number exceeds 255): 50 or 100 MB for 10 000 bots.

mod counts;

use core::fmt;
use core::ops::RangeInclusive;

use thiserror::Error;

use self::counts::Counts;
use super::bot::are_kin;
use super::{Bot, Owner};

/// What matches come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// How many bots there are.
    pub bots: usize,
    /// How many seats each match has.
    pub seats: usize,
    /// How many matches there are.
    pub matches: u64,
    /// How often pairs meet, rising, and how many pairs meet so often; without those that should
    /// not meet.
    pub meetings: Vec<(u32, u64)>,
    /// Pairs of one owner, where these should not meet.
    pub kin: Option<Kin>,
    /// The fewest and the most matches of a bot.
    pub matches_of_bot: RangeInclusive<u32>,
    /// The fewest and the most times that a bot is in some seat.
    pub times_in_seat: RangeInclusive<u32>,
    /// How many times more a bot is in one seat than in another, at most.
    pub seat_spread: u32,
    /// In matches of two: how many times more one of a pair is first than the other, at most.
    pub side_spread: Option<u32>,
}

/// Pairs of bots of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kin {
    /// How many there are.
    pub pairs: u64,
    /// How often they meet, all together.
    pub meetings: u64,
}

/// What is promised of matches. Everything holds for every bot and every pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// How many matches there are.
    pub matches: u64,
    /// How often a pair meets, if nothing keeps it apart.
    pub meetings: RangeInclusive<u32>,
    /// How often pairs of one owner meet at most, all together, where they should not.
    pub kin_meetings: Option<u64>,
    /// How many more matches one bot may have than another; nothing is promised where bots came
    /// and went.
    pub match_spread: Option<u32>,
    /// How many times more a bot may be in one seat than in another; nothing is promised where
    /// chance decides.
    pub seat_spread: Option<u32>,
    /// How many times more one of a pair may be first than the other.
    pub side_spread: Option<u32>,
}

/// Why matches are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    /// A match has another number of seats than the first.
    #[error("match {number} has {found} seats, not {due}")]
    Seats {
        /// Which match, from 1.
        number: u64,
        /// How many it has.
        found: usize,
        /// How many it should have.
        due: usize,
    },
    /// Somebody who is not in the tournament sits there.
    #[error("match {number}: there is no bot {bot}")]
    Stranger {
        /// Which match, from 1.
        number: u64,
        /// Who, from 1.
        bot: usize,
    },
    /// A bot sits there twice.
    #[error("match {number}: bot {bot} meets itself")]
    Itself {
        /// Which match, from 1.
        number: u64,
        /// Who, from 1.
        bot: usize,
    },
    /// A number is not as promised.
    #[error("{what}: {found}, not {due} as promised")]
    Promise {
        /// What was counted.
        what: &'static str,
        /// What was found.
        found: String,
        /// What was promised.
        due: String,
    },
}

impl Certificate {
    /// Counts matches of so many seats between bots of these owners, none of whom should meet
    /// another of the same owner; if there are no owners that makes no difference.
    ///
    /// # Errors
    /// If a match is impossible: it has other seats, or a bot that does not exist or sits there
    /// twice.
    pub fn count<M: AsRef<[Bot]>>(
        bots: usize,
        seats: usize,
        owners: &[Option<Owner>],
        matches: impl IntoIterator<Item = M>,
    ) -> Result<Self, Broken> {
        let mut counter = Counter::new(bots, seats, owners);
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

    /// Of pairs that do not meet ⌊x⌋ or ⌈x⌉ times, how many there are; x is how often pairs
    /// meet on average.
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

    /// Compares what was counted with what was promised.
    pub fn prove(&self, claim: &Claim) -> Result<(), Broken> {
        let broken = |what, found: String, due: String| Err(Broken::Promise { what, found, due });
        if self.matches != claim.matches {
            return broken("matches", self.matches.to_string(), claim.matches.to_string());
        }
        let mut meetings = self.meetings.iter();
        if let Some((times, _)) = meetings.find(|(times, _)| !claim.meetings.contains(times)) {
            return broken("meetings of a pair", times.to_string(), range(&claim.meetings));
        }
        let match_spread = self.matches_of_bot.end() - self.matches_of_bot.start();
        let kin_meetings = self.kin.map(|kin| kin.meetings);
        let at_most = |what, found: Option<u64>, most: Option<u64>| match (found, most) {
            (Some(found), Some(most)) if found > most => {
                broken(what, found.to_string(), format!("at most {most}"))
            }
            _ => Ok(()),
        };
        let differ = |what, found: Option<u32>, most: Option<u32>| {
            at_most(what, found.map(u64::from), most.map(u64::from))
        };
        at_most("meetings of bots of one owner", kin_meetings, claim.kin_meetings)?;
        differ("difference of two bots' matches", Some(match_spread), claim.match_spread)?;
        differ("difference of a bot's seats", Some(self.seat_spread), claim.seat_spread)?;
        differ("difference of a pair's sides", self.side_spread, claim.side_spread)
    }
}

/// A range for people, which is one number if its ends are equal.
fn range(numbers: &RangeInclusive<u32>) -> String {
    let (least, most) = (numbers.start(), numbers.end());
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
        if let Some(Kin { pairs, meetings }) = self.kin {
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

/// Counts matches one by one.
#[derive(Debug)]
pub struct Counter {
    bots: usize,
    seats: usize,
    matches: u64,
    /// How often each pair meets; in matches of two, how often with the one bot first. `None` if
    /// meetings are not counted.
    met: Option<Counts>,
    /// How often bot b is in seat s, at `b · seats + s`.
    seated: Vec<u32>,
    /// Whose the bots are; empty if that makes no difference.
    owners: Vec<Option<Owner>>,
}

impl Counter {
    /// Begins to count matches of so many seats between bots of these owners, none of whom should
    /// meet another of the same owner; if there are no owners that makes no difference.
    pub fn new(bots: usize, seats: usize, owners: &[Option<Owner>]) -> Self {
        let met = Some(Counts::new(numbers(bots, seats)));
        Self { met, owners: owners.to_vec(), ..Self::without_meetings(bots, seats) }
    }

    /// The same without counting who meets whom: O(n) memory. The certificate then says nothing of
    /// meetings, of owners and of the sides of pairs, and proves no claim about them.
    pub fn without_meetings(bots: usize, seats: usize) -> Self {
        let seated = vec![0; bots * seats];
        Self { bots, seats, matches: 0, met: None, seated, owners: Vec::new() }
    }

    /// How many bytes of memory [`Counter::new`] takes to count meetings if a pair meets at most
    /// `most` times.
    pub fn bytes(bots: usize, seats: usize, most: u32) -> usize {
        let each = if most > u8::MAX.into() { size_of::<u32>() } else { size_of::<u8>() };
        numbers(bots, seats).saturating_mul(each)
    }

    /// Counts a match.
    pub fn add(&mut self, planned: &[Bot]) -> Result<(), Broken> {
        self.matches += 1;
        let number = self.matches;
        if planned.len() != self.seats {
            return Err(Broken::Seats { number, found: planned.len(), due: self.seats });
        }
        for (seat, bot) in planned.iter().enumerate() {
            let bot = usize::from(*bot);
            if bot >= self.bots {
                return Err(Broken::Stranger { number, bot: bot + 1 });
            }
            self.seated[bot * self.seats + seat] += 1;
            for other in planned[..seat].iter().map(|other| usize::from(*other)) {
                let pair = match (self.seats, bot.max(other), bot.min(other)) {
                    (_, high, low) if high == low => {
                        return Err(Broken::Itself { number, bot: bot + 1 });
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

    /// What all matches come to.
    pub fn finish(self) -> Certificate {
        let (meetings, side_spread) = match (&self.met, self.seats) {
            (None, _) => (Vec::new(), None),
            (Some(met), 2) => {
                let (meetings, spread) = met.sides(self.bots);
                (meetings, Some(spread))
            }
            (Some(met), _) => (met.histogram(|high, low| !are_kin(&self.owners, high, low)), None),
        };
        let owned = self.met.as_ref().filter(|_| !self.owners.is_empty());
        let kin = owned.map(|met| {
            let met = met.histogram(|high, low| are_kin(&self.owners, high, low));
            let meetings = met.iter().map(|(times, pairs)| u64::from(*times) * pairs).sum();
            Kin { pairs: met.iter().map(|(_, pairs)| pairs).sum(), meetings }
        });
        let seats = || self.seated.chunks_exact(self.seats);
        let spread = |bot: &[u32]| ends(bot.iter().copied()).map_or(0, |(low, high)| high - low);
        let whole = |ends: Option<(u32, u32)>| ends.map_or(0..=0, |(low, high)| low..=high);
        Certificate {
            bots: self.bots,
            seats: self.seats,
            matches: self.matches,
            meetings,
            kin,
            matches_of_bot: whole(ends(seats().map(|bot| bot.iter().sum()))),
            times_in_seat: whole(ends(self.seated.iter().copied())),
            seat_spread: seats().map(spread).max().unwrap_or(0),
            side_spread,
        }
    }
}

/// How many numbers tell how often pairs meet: one for each pair, or, in matches of two, one for each
/// pair and side.
fn numbers(bots: usize, seats: usize) -> usize {
    if seats == 2 { bots * bots } else { bots * bots.saturating_sub(1) / 2 }
}

/// The least and the greatest.
fn ends(mut numbers: impl Iterator<Item = u32>) -> Option<(u32, u32)> {
    let first = numbers.next()?;
    Some(numbers.fold((first, first), |(low, high), number| (low.min(number), high.max(number))))
}

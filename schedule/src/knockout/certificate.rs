//! Certificates of brackets: what a bracket promises, checked on its matches.
//!
//! The matches of a knockout depend on its results, so they cannot be counted in advance. Two runs
//! are counted instead. In the first one the bot with the better number wins every game: its
//! meetings show the form of the bracket, and its matches are the fewest. In the second one all
//! scores are equal: its matches are the most.

use core::fmt;
use std::collections::BTreeMap;

use arbiter_games::Score;
use thiserror::Error;

use super::bracket::{Bracket, Fixture};
use crate::rounds::Rounds;
use crate::{Bot, MatchBounds, PlannedMatch};

/// The maximum number of byes whose bots are listed.
const MAX_LISTED: usize = 16;

/// The counts of two runs of a bracket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BracketCertificate {
    /// The number of bots.
    pub bots: usize,
    /// The number of rounds.
    pub rounds: usize,
    /// The bots without a match in the first round, the best number first.
    pub byes: Vec<Bot>,
    /// The number of matches of the first round, without extra games.
    pub first_round: u64,
    /// The fewest and most matches.
    pub matches: MatchBounds,
    /// The most matches of a bot: those of one that plays in every round.
    pub most_of_bot: u64,
    /// The maximum difference, over all meetings, between the numbers of times that each bot has
    /// seat 1.
    pub side_spread: u32,
}

/// The first promise that a bracket breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{quantity}: {actual}, not {expected} as promised")]
pub struct BracketError {
    /// The counted quantity.
    pub quantity: &'static str,
    /// The actual number.
    pub actual: u64,
    /// The promised number.
    pub expected: u64,
}

/// Fails unless both numbers are equal.
fn promise(quantity: &'static str, actual: u64, expected: u64) -> Result<(), BracketError> {
    if actual == expected { Ok(()) } else { Err(BracketError { quantity, actual, expected }) }
}

impl BracketCertificate {
    /// Counts two runs of a bracket before its first match, and compares them with its promises.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn prove(bracket: &Bracket) -> Result<Self, BracketError> {
        let best_of = bracket.rules().best_of.get();
        let bounds = bracket.bounds();
        let bots = bracket.bots();
        let mut numbers = vec![0; bots];
        for (number, bot) in (0..).zip(bracket.numbered()) {
            numbers[usize::from(*bot)] = number;
        }
        let by_number = |planned: &PlannedMatch| {
            let number = |bot: Bot| -numbers[usize::from(bot)];
            planned.seats().iter().map(|bot| Score(vec![number(*bot)])).collect()
        };
        let fewest = Run::of(bracket.clone(), by_number);
        let most = Run::of(bracket.clone(), |_| vec![Score(vec![0]); 2]);
        check_form(&fewest.bracket, &numbers)?;
        let first = fewest.bracket.rounds().first().map_or(&[][..], Vec::as_slice);
        let byes = byes(first, &numbers);
        promise("byes", byes.len() as u64, (bots.next_power_of_two() - bots) as u64)?;
        promise("fewest matches", fewest.matches, bounds.fewest)?;
        promise("most matches", most.matches, bounds.most)?;
        let side_spread = fewest.side_spread().max(most.side_spread());
        promise("difference of sides", side_spread.into(), (best_of % 2).into())?;
        let meetings = first.len() - byes.len();
        let rounds = fewest.bracket.rounds().len();
        Ok(Self {
            bots,
            rounds,
            byes,
            first_round: meetings as u64 * u64::from(best_of),
            matches: MatchBounds { fewest: fewest.matches, most: most.matches },
            most_of_bot: rounds as u64 * most.games_of_meeting(),
            side_spread,
        })
    }
}

/// The bots without a match in the first round, the best number first.
fn byes(first: &[Fixture], numbers: &[i64]) -> Vec<Bot> {
    let bye = |fixture: &Fixture| match fixture {
        Fixture::Bye(bot) => Some(*bot),
        Fixture::Meeting(_) => None,
    };
    let mut byes: Vec<_> = first.iter().filter_map(bye).collect();
    byes.sort_unstable_by_key(|bot| numbers[usize::from(*bot)]);
    byes
}

/// Checks a run in which the better number wins: byes go to the best numbers, and the sum of the
/// numbers of each meeting is the same in a round.
fn check_form(bracket: &Bracket, numbers: &[i64]) -> Result<(), BracketError> {
    let number = |bot: Bot| numbers[usize::from(bot)].unsigned_abs();
    let mut places = bracket.bots().next_power_of_two();
    for fixtures in bracket.rounds() {
        let last = places as u64 - 1;
        let best_bye = (places - bracket.bots().min(places)) as u64;
        places /= 2;
        for fixture in fixtures.iter().take(places) {
            match fixture {
                Fixture::Bye(bot) if number(*bot) < best_bye => {}
                Fixture::Bye(bot) => {
                    promise("the last number with a bye", number(*bot) + 1, best_bye)?;
                }
                Fixture::Meeting(meeting) => {
                    let sum = meeting.bots.map(number).iter().sum::<u64>();
                    promise("the sum of the numbers of a meeting", sum + 2, last + 2)?;
                }
            }
        }
    }
    Ok(())
}

/// A bracket that was played to its end.
struct Run {
    bracket: Bracket,
    matches: u64,
    /// How often each bot of a pair has seat 1, by the bots in seats 1 and 2.
    sides: BTreeMap<[Bot; 2], u32>,
}

impl Run {
    /// Plays all matches with these scores.
    fn of(mut bracket: Bracket, scores: impl Fn(&PlannedMatch) -> Vec<Score>) -> Self {
        let mut sides = BTreeMap::new();
        let mut matches = 0;
        while !bracket.is_over() {
            let planned = bracket.matches();
            for one in &planned {
                matches += 1;
                *sides.entry([one.seats()[0], one.seats()[1]]).or_insert(0) += 1;
            }
            let results: Vec<_> = planned.iter().map(&scores).collect();
            bracket.advance(&results);
        }
        Self { bracket, matches, sides }
    }

    /// The maximum number of games of a meeting.
    fn games_of_meeting(&self) -> u64 {
        let games = |fixture: &Fixture| match fixture {
            Fixture::Bye(_) => 0,
            Fixture::Meeting(meeting) => meeting.games.into(),
        };
        self.bracket.rounds().iter().flatten().map(games).max().unwrap_or(0)
    }

    /// The maximum difference, over all pairs, between the numbers of times that each bot of the
    /// pair has seat 1.
    fn side_spread(&self) -> u32 {
        let difference = |(seats, times): (&[Bot; 2], &u32)| {
            let others = self.sides.get(&[seats[1], seats[0]]).copied().unwrap_or(0);
            times.abs_diff(others)
        };
        self.sides.iter().map(difference).max().unwrap_or(0)
    }
}

impl fmt::Display for BracketCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bots, rounds, byes, matches, .. } = self;
        writeln!(f, "{bots} bots, {rounds} rounds, matches of 2")?;
        write!(f, "byes:               {}", byes.len())?;
        if (1..=MAX_LISTED).contains(&byes.len()) {
            let numbers: Vec<_> =
                byes.iter().map(|bot| (u32::from(*bot) + 1).to_string()).collect();
            write!(f, " (bots {})", numbers.join(", "))?;
        }
        writeln!(f, ", for the best numbers")?;
        writeln!(f, "first round:        {} matches", self.first_round)?;
        writeln!(f, "all rounds:         {} to {} matches", matches.fewest, matches.most)?;
        writeln!(f, "matches of a bot:   at most {}", self.most_of_bot)?;
        writeln!(f, "sides of a meeting: within {}", self.side_spread)
    }
}

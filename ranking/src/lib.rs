//! Rankings: sorted sums over matches. Pure: no database, no clock.
//!
//! Every tie-break of a game is a sum of small integers over matches, and tie-breaks are compared
//! from the left. A ranking is therefore a [`Tally`] for each entrant and a sort. Results may be
//! added in any order. Sums are exact. Only means are floating-point numbers. They do not affect
//! the ranking.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use arbiter_games::{Forfeit, Game};
use time::OffsetDateTime;

mod block_outcomes;
pub mod collusion;
mod confidence;
mod elo;
mod entrant;
mod head_to_head;
mod ratings;
pub mod residual;
mod scored_match;
mod sprt;
pub mod statistics;
mod u256;

pub use block_outcomes::BlockOutcomes;
pub use confidence::Mean;
pub use elo::{elo_of_result, result_of_elo};
pub use entrant::Entrant;
pub use head_to_head::{HeadToHead, HeadToHeads, PairFilter};
pub use ratings::{AVERAGE_RATING, FEW, PairResults, Rating, ratings};
pub use scored_match::ScoredMatch;
pub use sprt::{Decision, Hypotheses, LEAST_BLOCKS, SPRT_ERROR};
pub use u256::{ParseU256Error, U256};

/// The sums over the matches of one entrant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of matches.
    pub matches: i64,
    /// The sums of the components of the ranking.
    pub score: Vec<i128>,
    /// The sum of the squares of the first component, for the interval of its mean. It needs more
    /// bits than the scores: 43 squares of 2·10¹⁸ overflow an `i128`.
    pub squares: U256,
    /// Forfeits by kind, in the order of [`Forfeit::ALL`].
    pub forfeits: [i64; Forfeit::ALL.len()],
    /// The number of bad replies that were not forfeits.
    pub bad_answers: i64,
}

impl Tally {
    /// Adds one match.
    fn add(&mut self, parts: &[i128], forfeit: Option<Forfeit>, bad_answers: i32) {
        self.matches += 1;
        add_parts(&mut self.score, parts);
        let first = parts.first().copied().unwrap_or(0);
        self.squares = self.squares.saturating_add(U256::square(first));
        for (kind, count) in Forfeit::ALL.into_iter().zip(&mut self.forfeits) {
            *count += i64::from(forfeit == Some(kind));
        }
        self.bad_answers += i64::from(bad_answers);
    }

    /// Adds the sums of other matches.
    pub fn merge(&mut self, other: &Self) {
        self.matches += other.matches;
        add_parts(&mut self.score, &other.score);
        self.squares = self.squares.saturating_add(other.squares);
        for (count, added) in self.forfeits.iter_mut().zip(other.forfeits) {
            *count += added;
        }
        self.bad_answers += other.bad_answers;
    }

    /// Subtracts the sums of some of its matches.
    pub fn subtract(&mut self, other: &Self) {
        self.matches -= other.matches;
        let negated: Vec<_> = other.score.iter().map(|part| part.saturating_neg()).collect();
        add_parts(&mut self.score, &negated);
        self.squares = self.squares.saturating_sub(other.squares);
        for (count, removed) in self.forfeits.iter_mut().zip(other.forfeits) {
            *count -= removed;
        }
        self.bad_answers -= other.bad_answers;
    }

    /// The mean of the first component over `count` matches or episodes. None without matches.
    #[expect(clippy::cast_precision_loss, reason = "a mean is shown with a few digits")]
    pub fn mean_over(&self, count: i64) -> Option<f64> {
        let sum = self.score.first().copied().unwrap_or(0);
        (count > 0 && self.matches > 0).then(|| sum as f64 / count as f64)
    }

    /// The mean of the first component over the matches.
    pub fn mean(&self) -> Option<Mean> {
        Mean::of(self.matches, self.score.first().copied().unwrap_or(0), self.squares)
    }
}

/// Adds the components. Missing components count as 0.
fn add_parts(sum: &mut Vec<i128>, parts: &[i128]) {
    if sum.len() < parts.len() {
        sum.resize(parts.len(), 0);
    }
    for (sum, part) in sum.iter_mut().zip(parts) {
        // The bounds of reports exclude an overflow. Saturation only ensures that a leaderboard
        // never panics.
        *sum = sum.saturating_add(*part);
    }
}

/// The tallies of all entrants of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tallies {
    game: Game,
    by_entrant: BTreeMap<Entrant, Tally>,
    matches: i64,
}

impl Tallies {
    /// Tallies without matches.
    pub fn new(game: &Game) -> Self {
        Self { game: game.clone(), by_entrant: BTreeMap::new(), matches: 0 }
    }

    /// Adds a match.
    pub fn add(&mut self, result: &ScoredMatch<'_>) {
        self.matches += 1;
        for (seat, (entrant, score)) in result.entrant_scores().enumerate() {
            let forfeit = result.forfeits.get(seat).copied().flatten();
            let bad_answers = result.bad_answers.get(seat).copied().unwrap_or(0);
            let parts = result.contribution(&self.game, seat, score);
            self.by_entrant.entry(entrant).or_default().add(&parts, forfeit, bad_answers);
        }
    }

    /// The number of added matches.
    pub fn matches(&self) -> i64 {
        self.matches
    }

    /// The tally of each entrant that has played, by entrant.
    pub fn by_entrant(&self) -> &BTreeMap<Entrant, Tally> {
        &self.by_entrant
    }
}

/// An entrant to rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contestant {
    /// The entrant.
    pub entrant: Entrant,
    /// When its version was submitted.
    pub submitted_at: OffsetDateTime,
    /// Its tally.
    pub tally: Tally,
    /// Its rank by the plan, if results decide who meets whom, as in a knockout. Either all
    /// contestants have one or none. The sums then order only contestants with the same rank.
    pub plan_rank: Option<u32>,
    /// Whether it has a rank. A house bot may play without one.
    pub is_ranked: bool,
}

/// An entrant with its rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedContestant {
    /// The rank, from 1. Equal entrants share a rank, and the following ranks are skipped. None for
    /// an unranked contestant: the ranks of the others do not count it.
    pub rank: Option<usize>,
    /// Whether another entrant has the same rank.
    pub tied: bool,
    /// The entrant.
    pub contestant: Contestant,
}

/// Whether two contestants share a rank. Sums do not separate contestants that have the same rank
/// by the plan.
fn is_tied(game: &Game, a: &Contestant, b: &Contestant) -> bool {
    a.plan_rank == b.plan_rank && (a.plan_rank.is_some() || compare_sums(game, a, b).is_eq())
}

/// Compares the ranks by the sums: `Less` if `a` ranks higher.
fn compare_sums(game: &Game, a: &Contestant, b: &Contestant) -> Ordering {
    let sums = if game.ranking.by_mean {
        // Both means are multiplied by both numbers of matches, so the comparison is exact.
        let scale = |score: &[i128], matches: i64| -> Vec<i128> {
            let matches = i128::from(matches.max(1));
            score.iter().map(|part| part.saturating_mul(matches)).collect()
        };
        let a = &a.tally;
        let b = &b.tally;
        compare_parts(&scale(&b.score, a.matches), &scale(&a.score, b.matches))
    } else {
        compare_parts(&b.tally.score, &a.tally.score)
    };
    let earlier = || a.submitted_at.cmp(&b.submitted_at);
    if game.ranking.earlier_wins { sums.then_with(earlier) } else { sums }
}

/// Compares the components from the left. Missing components count as 0: an entrant without matches
/// has no components.
fn compare_parts(a: &[i128], b: &[i128]) -> Ordering {
    let part = |parts: &[i128], index: usize| parts.get(index).copied().unwrap_or(0);
    let differences = (0..a.len().max(b.len())).map(|index| part(a, index).cmp(&part(b, index)));
    differences.fold(Ordering::Equal, Ordering::then)
}

/// Ranks contestants by the plan, if it gives them ranks, and by the rules of `game`, the best
/// first. Contestants with equal sums keep their order. Unranked contestants stand at their places.
pub fn rank(game: &Game, mut contestants: Vec<Contestant>) -> Vec<RankedContestant> {
    contestants
        .sort_by(|a, b| a.plan_rank.cmp(&b.plan_rank).then_with(|| compare_sums(game, a, b)));
    let mut ranks = Vec::with_capacity(contestants.len());
    let mut ranked = 0;
    // How many contestants have each rank.
    let mut sharing = vec![0_usize; contestants.len() + 1];
    let mut previous: Option<(&Contestant, usize)> = None;
    for contestant in &contestants {
        if !contestant.is_ranked {
            ranks.push(None);
            continue;
        }
        ranked += 1;
        let shared = previous.filter(|(before, _)| is_tied(game, before, contestant));
        let rank = shared.map_or(ranked, |(_, rank)| rank);
        sharing[rank] += 1;
        ranks.push(Some(rank));
        previous = Some((contestant, rank));
    }
    let place = |(rank, contestant): (Option<usize>, Contestant)| {
        let tied = rank.is_some_and(|rank| sharing[rank] > 1);
        RankedContestant { rank, tied, contestant }
    };
    ranks.into_iter().zip(contestants).map(place).collect()
}

#[cfg(test)]
mod tests;

//! Collusion at tables: the search for bots that score more when a certain other bot is at the same
//! table. Pure: no database, no clock.
//!
//! A weak bot raises the scores of all other bots at its table, and some seats are better than
//! others. So every score is compared with the prediction of an additive model (`fit`): the bot's
//! strength, the effect of each other bot at the table, and the seat. The difference is the score's
//! residual.
//!
//! **Hypothesis.** For each ordered pair (A, B): A's residuals at tables with B are no greater than
//! at tables without B. The alternative is that A gains more from B than other bots do: B may lose
//! to A on purpose, or both may cooperate against the rest of the table.
//!
//! **Test.** The statistic is the sum of A's residuals at tables with B. It is compared with sums
//! over the same number of randomly drawn tables of A (`permutation`). The number in each stratum
//! (round of an episode) is also the same. Each p-value is exact (never too small, whatever the
//! distribution of A's scores) if A's residuals within a stratum are exchangeable. They are
//! exchangeable if the model holds, its effects are known, and B changes only the mean of A's
//! scores. The effects are estimated from all tables, so with few bots or few tables p-values are
//! approximate. The tests simulate how rarely honest bots are flagged, also if one bot makes all
//! scores at its tables more uncertain. Each table of three or more seats has its own seed, so each
//! table is one observation.
//!
//! **Selection.** Benjamini and Hochberg's procedure over all testable pairs (`select`) keeps the
//! expected share of false discoveries at [`FALSE_DISCOVERIES`]. If no bot colludes, this is the
//! probability that any pair is flagged.
//!
//! A flagged pair is a reason to read its records, not a proof: the same result is possible if
//! one style of play suits another style.

mod fit;
mod permutation;
mod select;
mod tables;

use crate::Entrant;
use arbiter_games::Seed;

use self::permutation::{Appearances, Budget};
pub use self::tables::{MAX_TABLES, Tables, TooManyTables};

/// The expected share of honest pairs among those that are flagged.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// The meaning of a flagged pair, for people.
pub const CLAIM: &str = "A flagged pair is a reason to read its records, not a proof: the bot scores \
    more with the partner at its table than strengths and seats predict. The cause may be collusion, \
    or one style that suits the other. About 5 % of the flagged pairs are expected to be chance. A \
    pair that is not flagged is not proved honest.";

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Collusion {
    /// The number of examined tables: those with three or more seats.
    pub tables: usize,
    /// The number of tested ordered pairs.
    pub tested: usize,
    /// The number of flagged pairs.
    pub flagged: usize,
    /// The pairs with the smallest p-values, the smallest first, up to the requested number.
    pub pairs: Vec<Pair>,
}

/// An ordered pair of bots.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The bot whose scores are compared.
    pub bot: Entrant,
    /// The bot whose presence is tested.
    pub partner: Entrant,
    /// The number of tables with both.
    pub together: usize,
    /// The bot's mean score at tables with the partner.
    pub mean_with: f64,
    /// The bot's mean score at tables without the partner.
    pub mean_without: f64,
    /// The bot's mean residual with the partner minus its mean residual without the partner, in
    /// points.
    pub difference: f64,
    /// The same difference for the partner at tables with the bot. Negative if the partner loses
    /// points to the bot.
    pub partner_difference: f64,
    /// The p-value of the pair.
    pub p: f64,
    /// The smallest share of false discoveries at which the pair would be flagged.
    pub q: f64,
    /// Whether `q` is at most [`FALSE_DISCOVERIES`].
    pub flagged: bool,
}

/// A pair's p-value, in few bytes, since there may be millions of pairs.
#[derive(Clone, Copy, Debug)]
struct TestedPair {
    bot: u32,
    partner: u32,
    p: f64,
}

#[expect(clippy::cast_precision_loss, reason = "all counts are far below 2^53")]
fn float(number: usize) -> f64 {
    number as f64
}

/// Tests all ordered pairs and returns the `limit` pairs with the smallest p-values.
///
/// The same tables in the same order and the same seed always give the same result.
pub fn analyze(tables: &Tables, seed: Seed, limit: usize) -> Collusion {
    let residuals = fit::residuals(tables);
    let appearances = Appearances::new(tables, &residuals);
    let mut budget = Budget::new(tables.bots(), FALSE_DISCOVERIES);
    let mut tested = Vec::new();
    for bot in 0..tables.bots() {
        appearances.test(bot, seed, &mut budget, &mut tested);
    }
    let qs = select::q_values(&mut tested);
    let flagged = qs.iter().filter(|q| **q <= FALSE_DISCOVERIES).count();
    let pair = |(tested_pair, q): (&TestedPair, &f64)| {
        let TestedPair { bot, partner, p } = *tested_pair;
        let comparison = appearances.compare(bot, partner);
        Pair {
            bot: tables.entrant(bot),
            partner: tables.entrant(partner),
            together: comparison.together,
            mean_with: comparison.mean_with,
            mean_without: comparison.mean_without,
            difference: comparison.difference,
            partner_difference: appearances.compare(partner, bot).difference,
            p,
            q: *q,
            flagged: *q <= FALSE_DISCOVERIES,
        }
    };
    let pairs = tested.iter().zip(&qs).take(limit).map(pair).collect();
    Collusion { tables: tables.len(), tested: tested.len(), flagged, pairs }
}

#[cfg(test)]
mod tests;

//! Matches with hostile replies, and with each forfeit at each request. No reply may make the rules
//! fail: otherwise a losing bot could prevent its defeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arbiter_games::{Dice, Forfeit, Seed};
use indicatif::ProgressBar;
use serde_json::{Value as Json, json};

use super::dialogue::RulesSupply;
use super::hostile;
use super::playout::{Ask, MatchPlan, Subject};
use super::playouts::{Sample, place, plans};
use super::pool;
use super::problem::Problem;

/// Maximum number of requests of one match at which a seat forfeits. They are spread evenly.
const MAX_FORFEITS: usize = 100;

/// How seldom a reply is hostile: the first match has only hostile replies, the second one in
/// two, and so on. Therefore some come early and some late.
const ONE_IN: [u32; 4] = [1, 2, 4, 8];

/// What the matches share.
#[derive(Debug)]
pub(super) struct Attacks<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) supply: Arc<RulesSupply>,
    pub(super) seed: Seed,
    /// Whether the rules list the legal replies. If not, the replies of `samples` take their place.
    pub(super) lists_legal: bool,
    pub(super) samples: &'a [Sample],
}

impl Attacks<'_> {
    /// Plays matches until `count` hostile replies were given.
    ///
    /// # Errors
    /// The first match in which the rules failed.
    pub(super) fn hostile(
        &self,
        count: usize,
        bar: &ProgressBar,
    ) -> Result<(String, Json), Problem> {
        let given = AtomicUsize::new(0);
        let plans = plans(&self.subject, self.seed, 1);
        let matches = pool::run(usize::MAX, |number| {
            if given.load(Ordering::Relaxed) >= count {
                return Ok(None);
            }
            let seed = self.seed.derive(&format!("hostile {number}"));
            let sample = (!self.lists_legal && !self.samples.is_empty())
                .then(|| &self.samples[number % self.samples.len()]);
            let plan = match sample {
                Some(sample) => sample.plan.clone(),
                None => MatchPlan { seed, ..plans[number % plans.len()].0.clone() },
            };
            let one_in = ONE_IN[number / plans.len() % ONE_IN.len()];
            let replies = self.settled(|supply| {
                let mut dice = seed.dice(1);
                let mut hostile = 0;
                let mut player = |ask: &Ask<'_>| {
                    let legal = self.legal(ask, sample)?;
                    let is_hostile = dice.below(one_in) == 0 || legal.is_empty();
                    hostile += usize::from(is_hostile);
                    Ok(Ok(reply(&mut dice, legal, is_hostile)))
                };
                self.subject.play(supply, &plan, &mut player)?;
                Ok(hostile)
            });
            let replies = replies.map_err(|problem| problem.in_match(place(number, &plan)))?;
            given.fetch_add(replies, Ordering::Relaxed);
            bar.set_position(given.load(Ordering::Relaxed).min(count) as u64);
            Ok(Some(replies))
        })?;
        let replies: usize = matches.iter().sum();
        let matches = matches.len();
        let text = format!("{replies} hostile replies in {matches} matches");
        Ok((text, json!({"replies": replies, "matches": matches})))
    }

    /// Repeats one match for each number of seats up to each of its requests, and lets the seat
    /// forfeit there in each way.
    ///
    /// # Errors
    /// The first match in which the rules failed.
    pub(super) fn forfeits(&self, bar: &ProgressBar) -> Result<(String, Json), Problem> {
        let mut cases = Vec::new();
        for seats in self.subject.descriptor.seats.clone() {
            let mut samples = self.samples.iter().filter(|sample| sample.plan.seats == seats);
            // Trial matches are shorter.
            let Some(first) = samples.next() else { continue };
            let sample = samples.find(|sample| sample.is_trial).unwrap_or(first);
            let asks = sample.replies.len();
            let chosen = asks.min(MAX_FORFEITS);
            for number in 0..chosen {
                let ask = number * asks / chosen;
                for forfeit in Forfeit::ALL {
                    cases.push((sample, ask, forfeit));
                }
            }
        }
        bar.set_length(cases.len() as u64);
        let played = pool::run(cases.len(), |number| {
            let (sample, at, forfeit) = cases[number];
            let played = self.settled(|supply| self.forfeit(supply, sample, at, forfeit));
            bar.inc(1);
            let place = || format!("{}, {forfeit} at request {}", place(0, &sample.plan), at + 1);
            played.map(Some).map_err(|problem| problem.in_match(place()))
        })?;
        let count = played.len();
        let kinds = Forfeit::ALL.map(Forfeit::as_str).join(", ");
        let asks = count / Forfeit::ALL.len();
        let text = format!("{count} matches: each of {kinds} at {asks} requests");
        Ok((text, json!({"forfeits": count})))
    }

    fn forfeit(
        &self,
        supply: &Arc<RulesSupply>,
        sample: &Sample,
        at: usize,
        forfeit: Forfeit,
    ) -> Result<(), Problem> {
        let mut dice = sample.plan.seed.dice(2);
        let mut player = |ask: &Ask<'_>| {
            if ask.number == at {
                return Ok(Err(forfeit));
            }
            if ask.number < at {
                return Ok(sample.replies[ask.number].clone());
            }
            let legal = self.legal(ask, Some(sample))?;
            let is_hostile = legal.is_empty();
            Ok(Ok(reply(&mut dice, legal, is_hostile)))
        };
        self.subject.play(supply, &sample.plan, &mut player).map(drop)
    }

    /// The legal replies, or the reply of a match that was played.
    fn legal(&self, ask: &Ask<'_>, sample: Option<&Sample>) -> Result<Vec<String>, Problem> {
        if self.lists_legal {
            return ask.legal();
        }
        let reply = sample.and_then(|sample| sample.replies.get(ask.number));
        Ok(reply.into_iter().flatten().cloned().collect())
    }

    /// Plays a match. If it fails with a program that has played other matches, plays it again with
    /// a new one: only that counts.
    fn settled<T>(
        &self,
        play: impl Fn(&Arc<RulesSupply>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let reused = self.supply.reuses();
        let result = play(&self.supply);
        if result.is_ok() || !reused {
            return result;
        }
        self.supply.stop_reuse();
        play(&self.supply)
    }
}

fn reply(dice: &mut Dice, mut legal: Vec<String>, is_hostile: bool) -> String {
    if is_hostile {
        return hostile::reply(dice, &legal);
    }
    legal.swap_remove(dice.index(legal.len()))
}

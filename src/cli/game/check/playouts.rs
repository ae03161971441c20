//! Random matches: each is played with legal replies, and its questions are asked again in another
//! environment.

use std::sync::Arc;
use std::time::Duration;

use arbiter_games::{Seed, Values};
use arbiter_packages::RulesHost;
use indicatif::ProgressBar;
use serde_json::Value as Json;

use super::dialogue::{Exchange, RulesSupply};
use super::house_bots::HouseBots;
use super::playout::{Ask, MatchPlan, Played, Players, Reply, Subject};
use super::pool;
use super::problem::{Problem, cut};

/// One trial match for this number of official ones.
const PER_TRIAL: usize = 5;

/// What the matches share.
#[derive(Debug)]
pub(super) struct Playouts<'a> {
    pub(super) subject: Subject<'a>,
    /// Starts the rules for each match.
    pub(super) supply: Arc<RulesSupply>,
    /// Starts the rules in another environment.
    pub(super) elsewhere: Arc<dyn RulesHost>,
    /// The bots that play if the rules do not list the legal replies.
    pub(super) bots: Option<&'a HouseBots>,
    pub(super) seed: Seed,
}

/// A match that was played.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) plan: MatchPlan,
    pub(super) is_trial: bool,
    pub(super) replies: Vec<Reply>,
    /// The first component of each seat's score.
    pub(super) points: Vec<i64>,
    pub(super) frames: usize,
    pub(super) largest_frame: usize,
    pub(super) frame_problem: Option<Problem>,
    /// What differs in another environment.
    pub(super) difference: Option<Problem>,
    /// The number of questions, without `legal`.
    pub(super) questions: usize,
    /// How long the answers to them took, without the first one.
    pub(super) thinking: Duration,
    /// How long the start and the first answer took.
    pub(super) start: Duration,
}

/// The matches to play: `count` official ones for each number of seats, and some with the trial
/// values.
pub(super) fn plans(subject: &Subject<'_>, seed: Seed, count: usize) -> Vec<(MatchPlan, bool)> {
    let descriptor = subject.descriptor;
    let trial = descriptor.trial.iter();
    let trial = trial.fold(Values::new(), |all, (key, value)| all.with(key, value.clone()));
    let mut plans = Vec::new();
    for seats in descriptor.seats.clone() {
        let trials = if descriptor.trial.is_empty() { 0 } else { count.div_ceil(PER_TRIAL) };
        for number in 0..count + trials {
            let is_trial = number >= count;
            let values = if is_trial { trial.clone() } else { Values::new() };
            let number = if is_trial { number - count } else { number };
            let seed = seed.derive(&format!("playout {seats} {is_trial} {number}"));
            plans.push((MatchPlan { seats, values, seed }, is_trial));
        }
    }
    plans
}

/// A match in words.
pub(super) fn place(number: usize, plan: &MatchPlan) -> String {
    let seats = plan.seats;
    let values = serde_json::to_value(&plan.values).unwrap_or(Json::Null);
    let is_official = plan.values.iter().next().is_none();
    let params = if is_official { String::new() } else { format!(", parameters {values}") };
    format!("match {} ({seats} seats{params}, seed {})", number + 1, plan.seed)
}

/// A player that chooses each legal reply with the same chance.
pub(super) fn random_player(seed: Seed) -> impl FnMut(&Ask<'_>) -> Result<Reply, Problem> {
    let mut dice = seed.derive("replies").dice(0);
    move |ask: &Ask<'_>| {
        let mut legal = ask.legal()?;
        if legal.is_empty() {
            let cause = "the rules list no legal replies to this request, although they do to \
                         others; list them always, or never and add house bots";
            return Err(Problem::new(cause));
        }
        Ok(Ok(legal.swap_remove(dice.index(legal.len()))))
    }
}

impl Playouts<'_> {
    /// Plays all matches.
    ///
    /// # Errors
    /// The first problem of the rules.
    pub(super) fn play(&self, count: usize, bar: &ProgressBar) -> Result<Vec<Sample>, Problem> {
        let plans = plans(&self.subject, self.seed, count);
        bar.set_length(plans.len() as u64);
        pool::run(plans.len(), |number| {
            let (plan, is_trial) = &plans[number];
            let sample = self.sample(number, plan, *is_trial);
            bar.inc(1);
            let in_match = |problem: Problem| problem.in_match(place(number, plan));
            sample.map(Some).map_err(in_match)
        })
    }

    fn sample(&self, number: usize, plan: &MatchPlan, is_trial: bool) -> Result<Sample, Problem> {
        let played = match self.bots {
            None => {
                let mut player = random_player(plan.seed);
                let players: &mut dyn Players = &mut player;
                self.subject.play(&self.supply, plan, players)?
            }
            Some(bots) => self.subject.play(&self.supply, plan, &mut bots.seat(plan.seats)?)?,
        };
        if let (None, Some(problem)) = (self.bots, &played.illegal) {
            return Err(problem.clone());
        }
        let in_match = |problem: Problem| problem.in_match(place(number, plan));
        let Played { results, replies, frames, largest_frame, frame_problem, dialogue, .. } =
            played;
        let held = dialogue.lock();
        let times: Vec<_> = held
            .exchanges
            .iter()
            .filter(|exchange| !exchange.is_legal())
            .map(|exchange| exchange.time)
            .collect();
        Ok(Sample {
            plan: plan.clone(),
            is_trial,
            replies: replies.into_iter().map(|(_, reply)| reply).collect(),
            points: results.iter().map(|result| result.score.0[0]).collect(),
            frames,
            largest_frame,
            frame_problem: frame_problem.map(in_match),
            difference: self.difference(plan.seed, &held.exchanges).map(in_match),
            questions: times.len(),
            thinking: times[1..].iter().sum(),
            start: held.start + times[0],
        })
    }

    /// Asks the same questions in another environment, without `legal`. Returns the first answer
    /// that is another one.
    fn difference(&self, seed: Seed, exchanges: &[Exchange]) -> Option<Problem> {
        let without: Vec<_> = exchanges.iter().filter(|exchange| !exchange.is_legal()).collect();
        let problem = self.first_difference(seed, &without)?;
        let all: Vec<_> = exchanges.iter().collect();
        if without.len() < all.len() && self.first_difference(seed, &all).is_none() {
            let cause = "the question `legal` changes the match: without it, the rules answer \
                         another line";
            return Some(problem.because(cause));
        }
        Some(problem)
    }

    fn first_difference(&self, seed: Seed, exchanges: &[&Exchange]) -> Option<Problem> {
        let failed = |cause: &str| format!("the rules fail in another environment: {cause}");
        let mut rules = match self.elsewhere.begin(seed) {
            Ok(rules) => rules,
            Err(cause) => return Some(Problem::new(failed(&cause))),
        };
        for exchange in exchanges {
            let first = exchange.answer.as_deref().unwrap_or_default();
            match rules.ask(&exchange.question) {
                Ok(second) if is_same(first, &second) => {}
                Ok(second) => {
                    let answer = Some(differing_part(&second, first));
                    let second = differing_part(first, &second);
                    let cause = format!(
                        "in another environment the rules answer: {second}; the seed must be the \
                         only source of chance: look for random, time, hash() and the order of sets"
                    );
                    return Some(Problem { cause, answer, ..Problem::at(exchange) });
                }
                Err(cause) => return Some(Problem::at(exchange).because(failed(&cause))),
            }
        }
        None
    }
}

/// Whether two answers say the same. The order of members and white space do not matter.
fn is_same(first: &str, second: &str) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Json>(text).ok();
    first == second || parsed(first).is_some_and(|value| parsed(second) == Some(value))
}

/// The other answer, from shortly before the difference on.
fn differing_part(first: &str, second: &str) -> String {
    let same = first.chars().zip(second.chars()).take_while(|(a, b)| a == b).count();
    match same.saturating_sub(60) {
        0 => cut(second),
        skipped => format!("…{}", cut(&second.chars().skip(skipped).collect::<String>())),
    }
}

/// Whether the rules list the legal replies to all requests of a match.
///
/// # Errors
/// How the rules failed.
pub(super) fn lists_legal(
    subject: &Subject<'_>,
    supply: &Arc<RulesSupply>,
    seed: Seed,
) -> Result<bool, Problem> {
    let mut is_unlisted = false;
    let mut dice = seed.dice(0);
    let mut player = |ask: &Ask<'_>| -> Result<Reply, Problem> {
        let mut legal = ask.legal()?;
        is_unlisted = legal.is_empty();
        if is_unlisted {
            return Err(Problem::new("this match is not continued"));
        }
        Ok(Ok(legal.swap_remove(dice.index(legal.len()))))
    };
    let seats = *subject.descriptor.seats.start();
    let plan = MatchPlan { seats, values: Values::new(), seed: seed.derive("playout") };
    match subject.play(supply, &plan, &mut player) {
        Ok(_) => Ok(true),
        Err(_) if is_unlisted => Ok(false),
        Err(problem) => Err(problem.in_match(place(0, &plan))),
    }
}

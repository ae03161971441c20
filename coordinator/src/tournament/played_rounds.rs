//! The rounds of a stored edition: the matches of each round with their numbers and results.
//!
//! The number of a match does not tell its round: a match of an earlier edition keeps its number,
//! and two bots can meet in several stages. So the plan is repeated round by round, and its matches
//! are looked up.

use arbiter_games::Score;
use arbiter_proto::ids::MatchNumber;
use arbiter_schedule::{Ladder, PlannedMatch, RoundPlan, StageRounds};

/// The rounds of an edition so far.
#[derive(Clone, Debug)]
pub struct PlayedRounds {
    /// The plan after all rounds that are over.
    pub plan: RoundPlan,
    /// The rounds that have begun, in their order. Extra games of a knockout are rounds, too.
    pub rounds: Vec<PlayedRound>,
}

/// A round that has begun.
#[derive(Clone, Debug)]
pub struct PlayedRound {
    /// Its stage, from 0; 0 without stages.
    pub stage: usize,
    /// Its matches, in the order of the plan.
    pub matches: Vec<RoundMatch>,
    /// The strength of each bot after a round of a ladder, in the order of the stage's bots. Empty
    /// for other schedules, and until the round is over.
    pub strengths: Vec<f64>,
}

/// A match of a round.
#[derive(Clone, Debug)]
pub struct RoundMatch {
    /// The match in the plan of the tournament.
    pub planned: PlannedMatch,
    /// Its number; `None` until it is stored.
    pub number: Option<MatchNumber>,
    /// The score of each seat; `None` until it is played.
    pub scores: Option<Vec<Score>>,
}

impl PlayedRounds {
    /// Before the first round.
    pub(super) fn new(plan: &RoundPlan) -> Self {
        Self { plan: plan.clone(), rounds: Vec::new() }
    }

    /// Adds the present round of a plan.
    pub(super) fn add(&mut self, plan: &RoundPlan, matches: Vec<RoundMatch>) {
        self.end_round(plan);
        let round = PlayedRound { stage: present_stage(plan), matches, strengths: Vec::new() };
        self.rounds.push(round);
    }

    /// Takes the plan after all rounds that are over. Its present round is added if it is missing.
    pub(super) fn finish(mut self, plan: RoundPlan, finished: usize) -> Self {
        if self.rounds.len() == finished {
            let unstored = |planned| RoundMatch { planned, number: None, scores: None };
            let matches: Vec<_> = plan.matches().into_iter().map(unstored).collect();
            if matches.is_empty() {
                self.end_round(&plan);
            } else {
                self.add(&plan, matches);
            }
        }
        Self { plan, ..self }
    }

    /// Stores the strengths after the last round, which is over in this plan.
    fn end_round(&mut self, plan: &RoundPlan) {
        if let Some(last) = self.rounds.last_mut()
            && let Some(ladder) = ladder(plan, last.stage)
        {
            last.strengths = ladder.strengths().to_vec();
        }
    }
}

/// The stage of the present round, from 0.
fn present_stage(plan: &RoundPlan) -> usize {
    match plan {
        RoundPlan::Stages(stages) => stages.started().len() - 1,
        RoundPlan::Knockout(_)
        | RoundPlan::Swiss(_)
        | RoundPlan::Gauntlet(_)
        | RoundPlan::Ladder(_) => 0,
    }
}

/// The ladder of a stage.
fn ladder(plan: &RoundPlan, stage: usize) -> Option<&Ladder> {
    match plan {
        RoundPlan::Ladder(ladder) => Some(ladder),
        RoundPlan::Stages(stages) => match &stages.started().get(stage)?.rounds {
            StageRounds::Ladder(ladder) => Some(ladder),
            StageRounds::Listed(_) | StageRounds::Knockout(_) | StageRounds::Swiss(_) => None,
        },
        RoundPlan::Knockout(_) | RoundPlan::Swiss(_) | RoundPlan::Gauntlet(_) => None,
    }
}

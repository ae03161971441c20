//! The stages of a plan, those that have begun and the others.

use arbiter_proto::v1;
use arbiter_schedule::{
    Bot, Bracket, Fixture, GauntletPlan, Ladder, ListedRound, RoundPlan, Rounds, Stage, StagePlan,
    StageRounds, StageSchedule, SwissTournament,
};

use super::to_u32;
use crate::tournament::played_rounds::{PlayedRound, PlayedRounds};

/// A stage that has begun: the only one of a schedule without stages.
#[derive(Debug)]
pub(in crate::service) struct BegunStage<'a> {
    /// The kind of its schedule, as in a tournament file.
    pub(in crate::service) kind: &'static str,
    /// Its plan. The bots in it are positions in `field`.
    pub(in crate::service) plan: StageKind<'a>,
    /// Its bots, in the order of entry or of their former ranks.
    pub(in crate::service) field: &'a [Bot],
    /// The number of bots that advance; `None` in the last stage.
    pub(super) advance: Option<usize>,
    /// The bots that advanced, the best first; empty until the stage is over.
    pub(super) advanced: &'a [Bot],
    /// Its rounds that have begun. Bots are those of the tournament.
    pub(in crate::service) rounds: Vec<&'a PlayedRound>,
}

/// The plan of a stage that has begun.
#[derive(Clone, Copy, Debug)]
pub(in crate::service) enum StageKind<'a> {
    /// All matches are known at its beginning.
    Listed(&'a ListedRound),
    /// Candidates against a panel.
    Gauntlet(&'a GauntletPlan),
    /// Meetings of two: the loser is out.
    Knockout(&'a Bracket),
    /// Meetings of bots with equal points.
    Swiss(&'a SwissTournament),
    /// Meetings where they tell most about ratings.
    Ladder(&'a Ladder),
}

impl<'a> StageKind<'a> {
    fn of_stage(rounds: &'a StageRounds) -> Self {
        match rounds {
            StageRounds::Listed(listed) => Self::Listed(listed),
            StageRounds::Knockout(bracket) => Self::Knockout(bracket),
            StageRounds::Swiss(swiss) => Self::Swiss(swiss),
            StageRounds::Ladder(ladder) => Self::Ladder(ladder),
        }
    }

    /// The plan in rounds.
    pub(in crate::service) fn rounds(self) -> &'a dyn Rounds {
        match self {
            Self::Listed(listed) => listed,
            Self::Gauntlet(gauntlet) => gauntlet,
            Self::Knockout(bracket) => bracket,
            Self::Swiss(swiss) => swiss,
            Self::Ladder(ladder) => ladder,
        }
    }

    /// The number of rounds of the whole stage.
    pub(super) fn round_count(self) -> usize {
        match self {
            Self::Listed(_) | Self::Gauntlet(_) => 1,
            Self::Knockout(bracket) => bracket.round_count(),
            Self::Swiss(swiss) => swiss.round_count(),
            Self::Ladder(ladder) => ladder.round_count(),
        }
    }

    /// The number of rounds that are over.
    pub(super) fn finished_rounds(self) -> usize {
        match self {
            Self::Listed(_) | Self::Gauntlet(_) => usize::from(self.rounds().is_over()),
            Self::Knockout(bracket) => {
                let is_over =
                    |round: &&Vec<Fixture>| round.iter().all(|fixture| fixture.winner().is_some());
                bracket.rounds().iter().filter(is_over).count()
            }
            Self::Swiss(swiss) => swiss.finished_rounds(),
            Self::Ladder(ladder) => ladder.finished_rounds(),
        }
    }
}

impl<'a> BegunStage<'a> {
    /// The stages that have begun. `bots` are all bots.
    pub(super) fn all(played: &'a PlayedRounds, bots: &'a [Bot]) -> Vec<Self> {
        let plan = &played.plan;
        let only = |kind, plan| Self {
            kind,
            plan,
            field: bots,
            advance: None,
            advanced: &[],
            rounds: played.rounds.iter().collect(),
        };
        match plan {
            RoundPlan::Knockout(bracket) => vec![only("knockout", StageKind::Knockout(bracket))],
            RoundPlan::Swiss(swiss) => vec![only("swiss", StageKind::Swiss(swiss))],
            RoundPlan::Gauntlet(gauntlet) => vec![only("gauntlet", StageKind::Gauntlet(gauntlet))],
            RoundPlan::Ladder(ladder) => vec![only("ladder", StageKind::Ladder(ladder))],
            RoundPlan::Stages(stages) => {
                (0..stages.started().len()).map(|index| Self::of(played, stages, index)).collect()
            }
        }
    }

    /// The stage with this position, from 0.
    fn of(played: &'a PlayedRounds, stages: &'a StagePlan, index: usize) -> Self {
        let started = &stages.started()[index];
        let next = stages.started().get(index + 1);
        Self {
            kind: started.stage.schedule.kind(),
            plan: StageKind::of_stage(&started.rounds),
            field: &started.field,
            advance: started.stage.advance.map(|advance| started.field.len().min(advance.into())),
            advanced: next.map_or(&[][..], |next| &next.field),
            rounds: played.rounds.iter().filter(|round| round.stage == index).collect(),
        }
    }

    /// The number of rounds that have begun.
    pub(super) fn begun_rounds(&self) -> usize {
        match self.plan {
            StageKind::Listed(_) | StageKind::Gauntlet(_) => 1,
            StageKind::Knockout(bracket) => bracket.rounds().len(),
            StageKind::Swiss(_) | StageKind::Ladder(_) => self.rounds.len(),
        }
    }

    /// The number of rounds whose meetings are listed.
    pub(super) fn listed_rounds(&self) -> usize {
        match self.plan {
            StageKind::Listed(_) | StageKind::Gauntlet(_) => 0,
            StageKind::Knockout(_) | StageKind::Swiss(_) | StageKind::Ladder(_) => {
                self.begun_rounds()
            }
        }
    }
}

/// The stages that have not begun, without their numbers.
pub(super) fn planned_stages(plan: &RoundPlan) -> Vec<v1::RoundsStage> {
    let RoundPlan::Stages(stages) = plan else { return Vec::new() };
    let mut field = plan.bots();
    let of_stage = |stage: &Stage| {
        let bots = field;
        let advance = stage.advance.map(|advance| bots.min(advance.into()));
        field = advance.unwrap_or(bots);
        v1::RoundsStage {
            kind: stage.schedule.kind().to_owned(),
            state: "planned".to_owned(),
            bots: to_u32(bots),
            advance: advance.map(to_u32),
            rounds: to_u32(round_count(&stage.schedule, bots)),
            ..v1::RoundsStage::default()
        }
    };
    let all: Vec<_> = stages.stages().iter().map(of_stage).collect();
    all.into_iter().skip(stages.started().len()).collect()
}

/// The number of rounds of a stage with this number of bots.
fn round_count(schedule: &StageSchedule, bots: usize) -> usize {
    match schedule {
        StageSchedule::RoundRobin(_) | StageSchedule::Foursomes(_) | StageSchedule::Tables(_) => 1,
        StageSchedule::Knockout(_) => bots.next_power_of_two().trailing_zeros() as usize,
        StageSchedule::Swiss(rules) => rules.round_count(bots),
        StageSchedule::Ladder(rules) => rules.rounds.get() as usize,
    }
}

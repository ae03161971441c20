//! Stages: several plans one after the other, each with the best bots of the one before.
//!
//! The first stage has all bots. When it is over, its `advance` best bots enter the next one, in
//! the order of their ranks; equal ranks are ordered by a draw from the tournament's seed. If there
//! are no more bots than that, all advance. So who advances follows from the results alone.
//!
//! A bot that is out is ranked after all bots that advance, in the order of its last stage.

mod plan;

use std::sync::Arc;

use arbiter_games::Seed;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::error::check_bots;
use super::ladder::LadderRules;
use super::listed_round::{ListedRound, Total, check_matches};
use super::matches::Matches;
use super::swiss::SwissRules;
use super::{
    FoursomesConfig, Knockout, MatchBounds, NameKey, RoundRobin, ScheduleError, Seeding, Tables,
    foursomes, ladder, round_robin, swiss,
};
pub use plan::{StagePlan, StageRounds, StartedStage};

/// The maximum number of stages.
pub const MAX_STAGES: usize = 16;

/// A stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Which bots meet, and how often.
    pub schedule: StageSchedule,
    /// The number of bots that enter the next stage. `None` in the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advance: Option<u16>,
    /// The scores with which bots begin.
    #[serde(default)]
    pub points: StartPoints,
}

/// The schedule of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StageSchedule {
    /// Matches of two: every bot against every other bot.
    RoundRobin(RoundRobin),
    /// Tables of four.
    Foursomes(FoursomesConfig),
    /// Tables of any number of seats.
    Tables(Tables),
    /// Meetings of two: the loser is out.
    Knockout(Knockout),
    /// Meetings of bots with equal points.
    Swiss(SwissRules),
    /// Meetings where they tell most about ratings.
    Ladder(LadderRules),
}

/// The scores with which the bots of a stage begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartPoints {
    /// None.
    #[default]
    New,
    /// Those of the former stage.
    Carried,
}

/// The stages of a tournament, from 2 to [`MAX_STAGES`]. They fit together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "StageList", into = "StageList")]
pub struct Stages(Vec<Stage>);

/// The form of [`Stages`] in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StageList {
    stages: Vec<Stage>,
}

/// Why stages do not fit together. Stages are numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StagesError {
    /// There are too few or too many stages.
    #[error("there must be 2 to {MAX_STAGES} stages, not {0}; for one, write [schedule]")]
    Count(usize),
    /// A stage before the last one does not say how many bots advance.
    #[error("stage {0} needs `advance`, the number of bots that enter stage {next}", next = .0 + 1)]
    NoAdvance(usize),
    /// The last stage says how many bots advance.
    #[error("stage {0} is the last one; leave out its `advance`")]
    LastAdvance(usize),
    /// Too few bots advance.
    #[error("stage {next} needs {min} or more bots", next = stage + 1)]
    FewAdvance {
        /// The stage.
        stage: usize,
        /// The number of bots that advance.
        advance: u16,
        /// The least number of bots of the next stage.
        min: usize,
    },
    /// More bots advance than have advanced before.
    #[error("only {field} bots play in this stage, so fewer must advance")]
    ManyAdvance {
        /// The stage.
        stage: usize,
        /// The number of bots that advance.
        advance: u16,
        /// The number of bots of the stage.
        field: u16,
    },
    /// Points cannot be carried into a stage.
    #[error(
        "points are carried only from and into round_robin, foursomes or tables; write \
         points = \"new\""
    )]
    Points(usize),
    /// The numbers of a stage cannot follow from this.
    #[error("seeding cannot be {seeding} in stage {stage}; write {remedy}")]
    Seeding {
        /// The stage.
        stage: usize,
        /// The seeding.
        seeding: Seeding,
        /// The possible words.
        remedy: &'static str,
    },
    /// The matches of stages have different numbers of seats.
    #[error("stage {stage} has matches of {seats}, and stage 1 of {first}; use the same number")]
    Seats {
        /// The stage.
        stage: usize,
        /// Its seats.
        seats: usize,
        /// The seats of the first stage.
        first: usize,
    },
}

impl TryFrom<StageList> for Stages {
    type Error = StagesError;

    fn try_from(list: StageList) -> Result<Self, StagesError> {
        Self::new(list.stages)
    }
}

impl From<Stages> for StageList {
    fn from(stages: Stages) -> Self {
        Self { stages: stages.0 }
    }
}

impl Stages {
    /// Stages in their order.
    ///
    /// # Errors
    /// If they do not fit together.
    pub fn new(stages: Vec<Stage>) -> Result<Self, StagesError> {
        if !(2..=MAX_STAGES).contains(&stages.len()) {
            return Err(StagesError::Count(stages.len()));
        }
        let mut field = u16::MAX;
        for (number, stage) in (1..).zip(&stages) {
            let next = stages.get(number);
            stage.check_start(number, number.checked_sub(2).map(|before| &stages[before]))?;
            let seats = stage.schedule.seats();
            let first = stages[0].schedule.seats();
            if seats != first {
                return Err(StagesError::Seats { stage: number, seats, first });
            }
            match (stage.advance, next) {
                (None, None) => {}
                (Some(_), None) => return Err(StagesError::LastAdvance(number)),
                (None, Some(_)) => return Err(StagesError::NoAdvance(number)),
                (Some(advance), Some(next)) => {
                    let min = next.schedule.min_bots();
                    if usize::from(advance) < min {
                        return Err(StagesError::FewAdvance { stage: number, advance, min });
                    }
                    if advance >= field {
                        return Err(StagesError::ManyAdvance { stage: number, advance, field });
                    }
                    field = advance;
                }
            }
        }
        Ok(Self(stages))
    }

    /// The stages in their order.
    pub fn list(&self) -> &[Stage] {
        &self.0
    }

    /// The number of seats of each match.
    pub fn seats(&self) -> usize {
        self.0[0].schedule.seats()
    }

    /// The smallest number of bots for which there is a plan.
    pub fn min_bots(&self) -> usize {
        self.0.iter().map(|stage| stage.schedule.min_bots()).max().unwrap_or(0)
    }

    /// The plan for bots of these names, in the order of entry.
    ///
    /// # Errors
    /// If there are too few or too many bots for one of the stages.
    pub fn among(&self, names: &[NameKey], seed: Seed) -> Result<StagePlan, ScheduleError> {
        check_bots(names.len(), self.min_bots(), "these stages")?;
        StagePlan::new(self, names, seed)
    }

    /// The least and most matches of all stages for this many bots.
    ///
    /// # Errors
    /// If one of the stages has no plan for its bots.
    pub(crate) fn bounds(&self, bots: usize, seed: Seed) -> Result<MatchBounds, ScheduleError> {
        let of_stage = |((number, stage), bots): ((usize, &Stage), usize)| {
            stage.schedule.bounds(number, bots, seed)
        };
        (1..).zip(&self.0).zip(self.fields(bots)).map(of_stage).sum()
    }

    /// The number of bots of each stage, if this many enter the first one.
    pub fn fields(&self, bots: usize) -> Vec<usize> {
        let mut field = bots;
        let of_stage = |stage: &Stage| {
            let own = field;
            field = stage.advance.map_or(field, |advance| field.min(advance.into()));
            own
        };
        self.0.iter().map(of_stage).collect()
    }
}

impl Stage {
    /// Compares what bots begin with, with the former stage.
    fn check_start(&self, number: usize, before: Option<&Self>) -> Result<(), StagesError> {
        let is_listed = |stage: &Self| stage.schedule.is_listed();
        if self.points == StartPoints::Carried
            && !(is_listed(self) && before.is_some_and(is_listed))
        {
            return Err(StagesError::Points(number));
        }
        match (self.schedule.seeding(), before) {
            (Some(seeding @ Seeding::Rank), None) => {
                let remedy = "draw or entry";
                Err(StagesError::Seeding { stage: number, seeding, remedy })
            }
            (Some(seeding @ Seeding::Entry), Some(_)) => {
                let remedy = "rank or draw";
                Err(StagesError::Seeding { stage: number, seeding, remedy })
            }
            _ => Ok(()),
        }
    }
}

impl StageSchedule {
    /// Its name in tournament files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RoundRobin(_) => "round_robin",
            Self::Foursomes(_) => "foursomes",
            Self::Tables(_) => "tables",
            Self::Knockout(_) => "knockout",
            Self::Swiss(_) => "swiss",
            Self::Ladder(_) => "ladder",
        }
    }

    /// The number of seats of each match.
    fn seats(&self) -> usize {
        match self {
            Self::RoundRobin(_) | Self::Knockout(_) | Self::Swiss(_) | Self::Ladder(_) => {
                round_robin::SEATS
            }
            Self::Foursomes(_) => foursomes::SEATS,
            Self::Tables(tables) => tables.seats.get(),
        }
    }

    /// The smallest number of bots for which there is a plan.
    fn min_bots(&self) -> usize {
        match self {
            Self::RoundRobin(_) | Self::Knockout(_) => round_robin::SEATS,
            Self::Foursomes(_) => foursomes::MIN_BOTS,
            Self::Tables(tables) => tables.seats.get(),
            Self::Swiss(_) => swiss::MIN_BOTS,
            Self::Ladder(_) => ladder::MIN_BOTS,
        }
    }

    /// Whether all its matches are known at its beginning.
    fn is_listed(&self) -> bool {
        matches!(self, Self::RoundRobin(_) | Self::Foursomes(_) | Self::Tables(_))
    }

    fn seeding(&self) -> Option<Seeding> {
        match self {
            Self::Knockout(rules) => Some(rules.seeding),
            Self::Swiss(rules) => Some(rules.seeding),
            Self::RoundRobin(_) | Self::Foursomes(_) | Self::Tables(_) | Self::Ladder(_) => None,
        }
    }

    /// The plan of a stage, numbered from 1, for bots of these names. `totals` are the scores with
    /// which they begin, if matches are listed.
    fn start(
        &self,
        stage: usize,
        names: &[NameKey],
        seed: Seed,
        totals: Vec<Total>,
    ) -> Result<StageRounds, ScheduleError> {
        let bots = names.len();
        let seed = seed.derive(&format!("schedule/stage/{stage}"));
        let matches = match *self {
            Self::Knockout(rules) => return rules.among(names).map(StageRounds::Knockout),
            Self::Swiss(rules) => return rules.among(names).map(StageRounds::Swiss),
            Self::Ladder(rules) => return rules.among(names).map(StageRounds::Ladder),
            Self::RoundRobin(rules) => Matches::Pairings(Box::new(rules.among(names)?)),
            Self::Foursomes(config) => Matches::Foursomes(Box::new(config.plan(bots, seed)?)),
            Self::Tables(tables) => Matches::Tables(Arc::new(tables.plan(bots, seed)?).stream()),
        };
        check_matches(|| format!("stage {stage}"), matches.total(), self.remedy())?;
        let seats = matches.seats();
        Ok(StageRounds::Listed(match self {
            Self::RoundRobin(_) => ListedRound::new(seats, matches, totals),
            _ => ListedRound::of_tables(seats, matches, totals),
        }))
    }

    /// How to get fewer matches, if they are listed.
    fn remedy(&self) -> &'static str {
        match self {
            Self::RoundRobin(_) => "write `opponents`, or fewer `legs`",
            Self::Foursomes(_) => "write `games`",
            _ => "write fewer `legs`",
        }
    }

    /// The least and most matches for this many bots.
    ///
    /// # Errors
    /// If there is no plan for them.
    fn bounds(&self, stage: usize, bots: usize, seed: Seed) -> Result<MatchBounds, ScheduleError> {
        let listed = match *self {
            Self::Knockout(rules) => return Ok(rules.bounds(bots)),
            Self::Swiss(rules) => return Ok(MatchBounds::exact(rules.matches(bots))),
            Self::Ladder(rules) => return Ok(MatchBounds::exact(rules.matches(bots))),
            Self::RoundRobin(rules) => rules.plan(bots, seed)?.matches(),
            Self::Foursomes(config) => config.plan(bots, seed)?.matches(),
            Self::Tables(tables) => Arc::new(tables.plan(bots, seed)?).stream().matches(),
        };
        check_matches(|| format!("stage {stage}"), listed, self.remedy())?;
        Ok(MatchBounds::exact(listed))
    }
}

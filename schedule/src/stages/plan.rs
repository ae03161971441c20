//! Stages in progress.

use core::fmt;
use std::collections::{HashMap, HashSet};

use arbiter_games::{Score, Seed};

use super::{Stage, Stages, StartPoints};
use crate::ladder::Ladder;
use crate::listed_round::{ListedRound, Total};
use crate::rounds::Rounds;
use crate::seeded_mix::mix;
use crate::shared_ranks::shared_ranks;
use crate::{Bot, Bracket, MatchBounds, NameKey, PlannedMatch, ScheduleError, SwissTournament};

/// A key of [`mix`], so that the order of equal bots is independent of other random choices.
const TIES: u64 = 10;

/// Stages when all planned matches are played.
#[derive(Clone, Debug)]
pub struct StagePlan {
    stages: Vec<Stage>,
    names: Vec<NameKey>,
    seed: Seed,
    /// The stages that were started, the present one last.
    started: Vec<StartedStage>,
    bounds: MatchBounds,
    /// How many legs the same bots played in former stages.
    former_legs: HashMap<Vec<Bot>, u32>,
    /// The same with those of the present stage.
    legs: HashMap<Vec<Bot>, u32>,
}

/// A stage that was started.
#[derive(Clone, Debug)]
pub struct StartedStage {
    /// The rules.
    pub stage: Stage,
    /// The bots of the stage, in the order of entry or of their former ranks.
    pub field: Vec<Bot>,
    /// The plan. Its bots are positions in the field.
    pub rounds: StageRounds,
}

/// The plan of a stage.
#[derive(Clone, Debug)]
pub enum StageRounds {
    /// All matches are known at its beginning.
    Listed(ListedRound),
    /// Meetings of two: the loser is out.
    Knockout(Bracket),
    /// Meetings of bots with equal points.
    Swiss(SwissTournament),
    /// Meetings where they tell most about ratings.
    Ladder(Ladder),
}

impl StageRounds {
    /// The plan in rounds.
    pub fn rounds(&self) -> &dyn Rounds {
        match self {
            Self::Listed(listed) => listed,
            Self::Knockout(bracket) => bracket,
            Self::Swiss(swiss) => swiss,
            Self::Ladder(ladder) => ladder,
        }
    }

    fn rounds_mut(&mut self) -> &mut dyn Rounds {
        match self {
            Self::Listed(listed) => listed,
            Self::Knockout(bracket) => bracket,
            Self::Swiss(swiss) => swiss,
            Self::Ladder(ladder) => ladder,
        }
    }

    /// The scores of each bot, if matches are listed.
    fn totals(&self) -> Option<&[Total]> {
        match self {
            Self::Listed(listed) => Some(listed.totals()),
            Self::Knockout(_) | Self::Swiss(_) | Self::Ladder(_) => None,
        }
    }
}

impl StartedStage {
    /// The bot with a number in the stage.
    fn bot(&self, local: Bot) -> Bot {
        self.field[usize::from(local)]
    }

    /// The matches of the present round, with bots of the tournament.
    fn matches(&self) -> impl Iterator<Item = PlannedMatch> {
        let matches = self.rounds.rounds().matches().into_iter();
        matches.map(|planned| planned.with_bots(|local| self.bot(local)))
    }

    /// The positions of the field, the best first. Bots with equal ranks are drawn anew at the end
    /// of each stage, which has this number.
    fn order(&self, stage: usize, names: &[NameKey]) -> Vec<usize> {
        let ranks = self.rounds.rounds().ranks();
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        let draw = |position: usize| {
            let name = names[usize::from(self.field[position])].0;
            mix([TIES, stage as u64, name])
        };
        order.sort_by_key(|position| (ranks[*position], draw(*position), *position));
        order
    }
}

impl StagePlan {
    /// The stages of these bots before the first match.
    pub(super) fn new(
        stages: &Stages,
        names: &[NameKey],
        seed: Seed,
    ) -> Result<Self, ScheduleError> {
        // The size of a later stage does not depend on its bots.
        let bounds = stages.bounds(names.len(), seed)?;
        let mut plan = Self {
            stages: stages.list().to_vec(),
            names: names.to_vec(),
            seed,
            started: Vec::new(),
            bounds,
            former_legs: HashMap::new(),
            legs: HashMap::new(),
        };
        plan.start(
            (0..=Bot::MAX).take(names.len()).collect(),
            vec![Total::default(); names.len()],
        )?;
        Ok(plan)
    }

    /// The stages that were started, the present one last.
    pub fn started(&self) -> &[StartedStage] {
        &self.started
    }

    /// The rules of all stages.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Starts the next stage.
    fn start(&mut self, field: Vec<Bot>, totals: Vec<Total>) -> Result<(), ScheduleError> {
        let stage = self.stages[self.started.len()];
        let names: Vec<_> = field.iter().map(|bot| self.names[usize::from(*bot)]).collect();
        let number = self.started.len() + 1;
        let rounds = stage.schedule.start(number, &names, self.seed, totals)?;
        self.former_legs.clone_from(&self.legs);
        self.started.push(StartedStage { stage, field, rounds });
        Ok(())
    }

    fn current(&self) -> &StartedStage {
        self.started.last().expect("the first stage was started")
    }

    /// Starts the next stage with the best bots of the present one, which is over.
    fn advance_bots(&mut self) {
        let Some(next) = self.stages.get(self.started.len()).copied() else { return };
        let current = self.current();
        let mut best = current.order(self.started.len(), &self.names);
        best.truncate(current.stage.advance.map_or(usize::MAX, usize::from));
        let field: Vec<_> = best.iter().map(|position| current.field[*position]).collect();
        let totals = match (next.points, current.rounds.totals()) {
            (StartPoints::Carried, Some(totals)) => {
                best.iter().map(|position| totals[*position].clone()).collect()
            }
            _ => vec![Total::default(); best.len()],
        };
        self.start(field, totals).expect("the size of each stage was checked at the beginning");
    }
}

impl Rounds for StagePlan {
    fn bots(&self) -> usize {
        self.names.len()
    }

    fn seats(&self) -> usize {
        self.current().rounds.rounds().seats()
    }

    /// Their legs follow those that the same bots played in former stages.
    fn matches(&self) -> Vec<PlannedMatch> {
        let with_leg = |planned: PlannedMatch| {
            let former = self.former_legs.get(&planned.sorted_bots()).copied().unwrap_or(0);
            planned.with_leg(former + planned.leg)
        };
        self.current().matches().map(with_leg).collect()
    }

    fn is_over(&self) -> bool {
        self.current().rounds.rounds().is_over()
    }

    fn advance(&mut self, results: &[Vec<Score>]) {
        for planned in self.matches() {
            let legs = self.legs.entry(planned.sorted_bots()).or_default();
            *legs = (*legs).max(planned.leg + 1);
        }
        let current = self.started.last_mut().expect("the first stage was started");
        let rounds = current.rounds.rounds_mut();
        rounds.advance(results);
        if rounds.is_over() {
            self.advance_bots();
        }
    }

    /// The bots of the present stage come first, in its order. The bots that are out follow, those
    /// of the last stage first.
    fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.names.len()];
        for (index, started) in self.started.iter().enumerate() {
            let next = self.started.get(index + 1).map_or(&[][..], |next| &next.field);
            let advanced: HashSet<_> = next.iter().copied().collect();
            let local = started.rounds.rounds().ranks();
            let is_out = |position: &usize| !advanced.contains(&started.field[*position]);
            let stay: Vec<usize> = (0..local.len()).filter(is_out).collect();
            let among =
                shared_ranks(stay.len(), |one, other| local[stay[one]].cmp(&local[stay[other]]));
            let before = u32::try_from(advanced.len()).expect("at most 65536 bots");
            for (position, rank) in stay.into_iter().zip(among) {
                ranks[usize::from(started.field[position])] = before + rank;
            }
        }
        ranks
    }

    fn bounds(&self) -> MatchBounds {
        self.bounds
    }
}

/// A summary in one line, for people.
impl fmt::Display for StagePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stages: ", self.stages.len())?;
        for (number, stage) in self.stages.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", then " };
            write!(f, "{separator}{}", stage.schedule.kind())?;
            if let Some(advance) = stage.advance {
                write!(f, " (the best {advance} advance)")?;
            }
        }
        Ok(())
    }
}

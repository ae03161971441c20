//! The `[schedule]` of a tournament file.

use std::sync::Arc;

use arbiter_games::Seed;
use serde::{Deserialize, Serialize};

use super::error::check_bots;
use super::foursomes::Foursomes;
use super::participants::HistoryPlan;
use super::swiss::{self, SwissRules};
use super::{
    Bot, Episodes, FoursomesConfig, Gauntlet, Knockout, LadderRules, MatchBounds, Matches, Member,
    NameKey, Participants, Plan, RosterHistory, RoundPlan, RoundRobin, ScheduleError, Solo,
    StageSchedule, Stages, Tables, foursomes, gauntlet, ladder, round_robin,
};

/// The `[schedule]` of a tournament: the pairings and the number of matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// Matches of two: every bot against every other bot.
    RoundRobin(RoundRobin),
    /// Tables of four.
    Foursomes(FoursomesConfig),
    /// Tables of any number of seats.
    Tables(Tables),
    /// Every bot plays alone.
    Solo(Solo),
    /// Episodes. Each round depends on the results of the previous round.
    Episodes(Episodes),
    /// Meetings of two: the loser is out.
    Knockout(Knockout),
    /// Meetings of bots with equal points.
    Swiss(SwissRules),
    /// Candidates against a panel.
    Gauntlet(Gauntlet),
    /// Meetings where they tell most about ratings.
    Ladder(LadderRules),
    /// Several schedules, each with the best bots of the one before.
    Stages(Stages),
}

impl From<StageSchedule> for Schedule {
    fn from(schedule: StageSchedule) -> Self {
        match schedule {
            StageSchedule::RoundRobin(rules) => Self::RoundRobin(rules),
            StageSchedule::Foursomes(config) => Self::Foursomes(config),
            StageSchedule::Tables(tables) => Self::Tables(tables),
            StageSchedule::Knockout(rules) => Self::Knockout(rules),
            StageSchedule::Swiss(rules) => Self::Swiss(rules),
            StageSchedule::Ladder(rules) => Self::Ladder(rules),
        }
    }
}

impl Schedule {
    /// The number of seats of each match. None for episodes, where it varies.
    pub fn table_seats(&self) -> Option<usize> {
        match self {
            Self::RoundRobin(_)
            | Self::Knockout(_)
            | Self::Swiss(_)
            | Self::Gauntlet(_)
            | Self::Ladder(_) => Some(2),
            Self::Foursomes(_) => Some(foursomes::SEATS),
            Self::Tables(tables) => Some(tables.seats.get()),
            Self::Solo(_) => Some(1),
            Self::Episodes(_) => None,
            Self::Stages(stages) => Some(stages.seats()),
        }
    }

    /// The plan for a number of bots. All random choices depend only on the tournament's seed.
    ///
    /// # Errors
    /// If there are too few or too many bots, or no such plan exists for them.
    pub fn plan(&self, bots: usize, seed: Seed) -> Result<Plan, ScheduleError> {
        let schedule_seed = Self::schedule_seed(seed);
        let names = || NameKey::of_numbers(seed, bots);
        Ok(match self {
            Self::RoundRobin(rules) => {
                Plan::Matches(Matches::Pairings(Box::new(rules.plan(bots, schedule_seed)?)))
            }
            Self::Foursomes(config) => {
                Plan::Matches(Matches::Foursomes(Box::new(config.plan(bots, schedule_seed)?)))
            }
            Self::Tables(tables) => {
                Plan::Matches(Matches::Tables(Arc::new(tables.plan(bots, schedule_seed)?).stream()))
            }
            Self::Solo(solo) => Plan::Matches(Matches::Solo(solo.plan(bots)?)),
            Self::Episodes(episodes) => Plan::Episodes(episodes.plan(bots)?),
            Self::Knockout(rules) => {
                Plan::Rounds(RoundPlan::Knockout(rules.plan(bots, schedule_seed)?))
            }
            Self::Swiss(rules) => Plan::Rounds(RoundPlan::Swiss(rules.among(&names())?)),
            Self::Gauntlet(rules) => Plan::Rounds(RoundPlan::Gauntlet(rules.plan(bots, seed)?)),
            Self::Ladder(rules) => Plan::Rounds(RoundPlan::Ladder(rules.among(&names())?)),
            Self::Stages(stages) => {
                Plan::Rounds(RoundPlan::Stages(Box::new(stages.among(&names(), seed)?)))
            }
        })
    }

    /// The plan for bots of these names, at the beginning of its first round. `seed` must be the
    /// seed that made the keys of the names. `None` if the schedule has no rounds that depend on
    /// earlier results, or if it has episodes.
    ///
    /// # Errors
    /// If there are too few or too many bots.
    pub fn rounds(
        &self,
        names: &[NameKey],
        seed: Seed,
    ) -> Result<Option<RoundPlan>, ScheduleError> {
        match self {
            Self::Knockout(rules) => Ok(Some(RoundPlan::Knockout(rules.among(names)?))),
            Self::Swiss(rules) => Ok(Some(RoundPlan::Swiss(rules.among(names)?))),
            Self::Gauntlet(rules) => Ok(Some(RoundPlan::Gauntlet(rules.among(names, seed)?))),
            Self::Ladder(rules) => Ok(Some(RoundPlan::Ladder(rules.among(names)?))),
            Self::Stages(stages) => {
                Ok(Some(RoundPlan::Stages(Box::new(stages.among(names, seed)?))))
            }
            Self::RoundRobin(_)
            | Self::Foursomes(_)
            | Self::Tables(_)
            | Self::Solo(_)
            | Self::Episodes(_) => Ok(None),
        }
    }

    /// The least and most matches for this many bots, if the schedule has rounds that depend on
    /// earlier results and no episodes. Of a gauntlet, if its panel has entered.
    ///
    /// # Errors
    /// If there are too few or too many bots.
    pub fn bounds(&self, bots: usize, seed: Seed) -> Result<Option<MatchBounds>, ScheduleError> {
        if self.depends_on_results() {
            check_bots(bots, self.min_bots(), "this schedule")?;
        }
        Ok(match self {
            Self::Knockout(rules) => Some(rules.bounds(bots)),
            Self::Swiss(rules) => Some(MatchBounds::exact(rules.matches(bots))),
            Self::Gauntlet(rules) => Some(MatchBounds::exact(rules.matches_among(bots))),
            Self::Ladder(rules) => Some(MatchBounds::exact(rules.matches(bots))),
            Self::Stages(stages) => Some(stages.bounds(bots, seed)?),
            Self::RoundRobin(_)
            | Self::Foursomes(_)
            | Self::Tables(_)
            | Self::Solo(_)
            | Self::Episodes(_) => None,
        })
    }

    /// Whether the schedule is planned in rounds: later matches depend on the results of earlier
    /// ones, or ranks follow from the plan.
    pub fn depends_on_results(&self) -> bool {
        match self {
            Self::Episodes(_)
            | Self::Knockout(_)
            | Self::Swiss(_)
            | Self::Gauntlet(_)
            | Self::Ladder(_)
            | Self::Stages(_) => true,
            Self::RoundRobin(_) | Self::Foursomes(_) | Self::Tables(_) | Self::Solo(_) => false,
        }
    }

    /// The plan for participants; `seed` must be the seed that created the participants.
    pub fn plan_for(&self, participants: &Participants, seed: Seed) -> Result<Plan, ScheduleError> {
        Ok(Plan::Matches(match participants.plan() {
            Some(HistoryPlan::FirstFoursomes(meetings, remainder)) => {
                let bots = participants.bots();
                let seed = Self::schedule_seed(seed);
                Matches::Foursomes(Box::new(Foursomes::new(bots, *meetings, *remainder, seed)))
            }
            Some(HistoryPlan::Foursomes(plan)) => Matches::Incremental(Box::new(plan.tables())),
            Some(HistoryPlan::Tables(plan)) => Matches::Tables(plan.stream()),
            None => return self.plan(participants.bots(), seed),
        }))
    }

    /// The smallest number of bots for which there is a plan.
    pub fn min_bots(&self) -> usize {
        match self {
            Self::RoundRobin(_) | Self::Knockout(_) => round_robin::SEATS,
            Self::Foursomes(_) => foursomes::MIN_BOTS,
            Self::Tables(tables) => tables.seats.get(),
            Self::Solo(_) | Self::Episodes(_) => 1,
            Self::Swiss(_) => swiss::MIN_BOTS,
            Self::Gauntlet(_) => gauntlet::MIN_BOTS,
            Self::Ladder(_) => ladder::MIN_BOTS,
            Self::Stages(stages) => stages.min_bots(),
        }
    }

    /// Whether a plan depends on the history of its bots: who began, joined and left. Other plans
    /// depend only on the present bots.
    pub fn has_history(&self) -> bool {
        matches!(self, Self::Foursomes(_) | Self::Tables(_))
    }

    /// The history of a new plan for these bots.
    pub fn new_history(&self, bots: usize) -> RosterHistory {
        match self {
            Self::Foursomes(config) => config.new_history(bots),
            _ => RosterHistory::new(bots),
        }
    }

    /// The participants after a history of changes, with a member for each place.
    ///
    /// # Errors
    /// If there are too few bots, or too many for a counter for each pair, or if no such plan
    /// exists for the bots of the base, or it has no room for a change.
    pub fn participants(
        &self,
        history: &RosterHistory,
        members: &[Member],
        seed: Seed,
    ) -> Result<Participants, ScheduleError> {
        let all_bots = (0..=Bot::MAX).map(Some);
        let is_unchanged = history.steps.is_empty()
            && members.iter().map(|member| member.bot).eq(all_bots.take(members.len()));
        match self {
            Self::Foursomes(config)
                if !is_unchanged || members.iter().any(|member| member.owner.is_some()) =>
            {
                Ok(config.incremental_plan(history, members, Self::schedule_seed(seed))?.into())
            }
            Self::Tables(tables) => {
                Ok(tables.plan_after(history, members, Self::schedule_seed(seed))?.into())
            }
            Self::Foursomes(config) => {
                Ok(Participants::first(history.base, config.parts(history)?))
            }
            _ => Ok(members.iter().filter(|member| member.bot.is_some()).count().into()),
        }
    }

    /// The seed of all random choices of a plan.
    fn schedule_seed(seed: Seed) -> Seed {
        seed.derive("schedule")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CertificateBuilder, CertificateError, Claim, MAX_BOTS, MAX_PROOF_BYTES, Sides};

    fn matches(schedule: &Schedule, bots: usize) -> Matches {
        match schedule.plan(bots, Seed::of_text("proved")) {
            Ok(Plan::Matches(matches)) => matches,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_false_claim_is_an_error() {
        for schedule in [
            &Schedule::Foursomes(FoursomesConfig::Least),
            &Schedule::RoundRobin(RoundRobin { sides: Sides::Balanced, ..RoundRobin::default() }),
        ] {
            let participants = Participants::from(13);
            assert_eq!(matches(schedule, 13).prove(&participants), Ok(()));
            let claim = matches(schedule, 13).claim();
            for claim in [
                Claim { matches: claim.matches + 1, ..claim.clone() },
                Claim { meetings: 2..=2, ..claim.clone() },
            ] {
                let outcome = matches(schedule, 13).prove_claim(&participants, &claim);
                assert!(matches!(outcome, Err(CertificateError::Claim { .. })), "{outcome:?}");
            }
            // Too few bots for the matches.
            let outcome = matches(schedule, 13).prove(&Participants::from(12));
            assert!(matches!(outcome, Err(CertificateError::UnknownBot { .. })), "{outcome:?}");
        }
    }

    /// A proof that does not count meetings still compares seats and numbers of matches.
    #[test]
    fn memory_of_a_proof_is_bounded() {
        assert_eq!(CertificateBuilder::bytes(10_000, 2, 2), MAX_PROOF_BYTES);
        assert!(CertificateBuilder::bytes(14_142, 4, 6) < MAX_PROOF_BYTES);
        assert!(CertificateBuilder::bytes(MAX_BOTS, 4, 6) > MAX_PROOF_BYTES);
        assert!(CertificateBuilder::bytes(5001, 2, 256) > MAX_PROOF_BYTES);
        let mut builder = CertificateBuilder::without_meetings(5, 4);
        builder.add(&[0, 1, 2, 3]).unwrap();
        builder.add(&[0, 1, 2, 4]).unwrap();
        assert_eq!(
            builder.add(&[0, 1, 2, 0]),
            Err(CertificateError::DuplicateBot { number: 3, bot: 1 })
        );
        let certificate = builder.finish();
        assert_eq!(
            (certificate.meetings.as_slice(), certificate.same_owner, certificate.side_spread),
            (&[][..], None, None)
        );
        let claim = Claim {
            matches: 3,
            seat_spread: Some(1),
            ..matches(&Schedule::Foursomes(FoursomesConfig::Least), 13).claim()
        };
        let error = certificate.prove(&claim).unwrap_err().to_string();
        assert!(error.contains("bots' matches"), "{error}");
    }
}

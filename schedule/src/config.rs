//! The `[schedule]` of a tournament file.

use arbiter_games::Seed;
use serde::{Deserialize, Serialize};

use super::{
    Bot, Episodes, Extent, Field, Lineage, Matches, Member, Plan, RoundRobin, ScheduleError,
};

/// Who plays whom how often: what `[schedule]` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// Matches of two, everybody against everybody.
    RoundRobin(RoundRobin),
    /// Tables of four.
    Foursomes(Extent),
    /// Episodes of rounds that follow from one another.
    Episodes(Episodes),
}

impl Schedule {
    /// The plan for so many bots. The seed is the tournament's; what chance decides here depends
    /// on nothing else.
    ///
    /// # Errors
    /// If there are too few bots, or too many, or if what is asked for is impossible with them.
    pub fn plan(self, bots: usize, seed: Seed) -> Result<Plan, ScheduleError> {
        let seed = Self::chance(seed);
        Ok(match self {
            Self::RoundRobin(rules) => {
                Plan::Matches(Matches::Pairings(Box::new(rules.plan(bots, seed)?)))
            }
            Self::Foursomes(extent) => {
                Plan::Matches(Matches::Foursomes(Box::new(extent.plan(bots, seed)?)))
            }
            Self::Episodes(episodes) => Plan::Episodes(episodes.plan(bots)?),
        })
    }

    /// The plan for a field, under the seed that it has grown with.
    pub fn plan_for(self, field: &Field, seed: Seed) -> Result<Plan, ScheduleError> {
        match field.tables() {
            Some(tables) => Ok(Plan::Matches(Matches::Grown(Box::new(tables)))),
            None => self.plan(field.bots(), seed),
        }
    }

    /// The field that has come to be like this, with a member for each place. Only foursomes grow:
    /// in other schedules nobody's coming changes the others' matches, and where they stand in the
    /// list is all there is to know.
    ///
    /// # Errors
    /// If there are too few bots, or too many to count their meetings pair by pair, or if what is
    /// asked for is impossible with those who began.
    pub fn grow(
        self,
        lineage: &Lineage,
        members: &[Member],
        seed: Seed,
    ) -> Result<Field, ScheduleError> {
        let numbered = (0..=Bot::MAX).map(Some);
        let begins = lineage.steps.is_empty()
            && members.iter().map(|member| member.bot).eq(numbered.take(members.len()));
        match self {
            Self::Foursomes(extent)
                if !begins || members.iter().any(|member| member.owner.is_some()) =>
            {
                Ok(extent.grow(lineage, members, Self::chance(seed))?.into())
            }
            _ => Ok(members.iter().filter(|member| member.bot.is_some()).count().into()),
        }
    }

    /// Where the chance of a plan comes from.
    fn chance(seed: Seed) -> Seed {
        seed.derive("schedule")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Broken, Claim, Counter, MOST_BOTS, MOST_PROOF_BYTES, Sides};

    fn matches(schedule: Schedule, bots: usize) -> Matches {
        match schedule.plan(bots, Seed::of_text("proved")) {
            Ok(Plan::Matches(matches)) => matches,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_broken_promise_is_found() {
        for schedule in [
            Schedule::Foursomes(Extent::Least),
            Schedule::RoundRobin(RoundRobin { sides: Sides::Balanced, ..RoundRobin::default() }),
        ] {
            let field = Field::from(13);
            assert_eq!(matches(schedule, 13).prove(&field), Ok(()));
            let kept = matches(schedule, 13).claim();
            for claim in [
                Claim { matches: kept.matches + 1, ..kept.clone() },
                Claim { meetings: 2..=2, ..kept.clone() },
            ] {
                let found = matches(schedule, 13).prove_claim(&field, &claim);
                assert!(matches!(found, Err(Broken::Promise { .. })), "{found:?}");
            }
            // Too few bots for the matches.
            let found = matches(schedule, 13).prove(&Field::from(12));
            assert!(matches!(found, Err(Broken::Stranger { .. })), "{found:?}");
        }
    }

    /// Seats and numbers of matches are compared whatever memory meetings would take.
    #[test]
    fn memory_is_bounded() {
        assert_eq!(Counter::bytes(10_000, 2, 2), MOST_PROOF_BYTES);
        assert!(Counter::bytes(14_142, 4, 6) < MOST_PROOF_BYTES);
        assert!(Counter::bytes(MOST_BOTS, 4, 6) > MOST_PROOF_BYTES);
        assert!(Counter::bytes(5001, 2, 256) > MOST_PROOF_BYTES);
        let mut counter = Counter::without_meetings(5, 4);
        counter.add(&[0, 1, 2, 3]).unwrap();
        counter.add(&[0, 1, 2, 4]).unwrap();
        assert_eq!(counter.add(&[0, 1, 2, 0]), Err(Broken::Itself { number: 3, bot: 1 }));
        let counted = counter.finish();
        assert_eq!(
            (counted.meetings.as_slice(), counted.kin, counted.side_spread),
            (&[][..], None, None)
        );
        let claim = Claim {
            matches: 3,
            seat_spread: Some(1),
            ..matches(Schedule::Foursomes(Extent::Least), 13).claim()
        };
        let found = counted.prove(&claim).unwrap_err().to_string();
        assert!(found.contains("bots' matches"), "{found}");
    }
}

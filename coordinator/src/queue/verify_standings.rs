//! Verifies that standings equal the sums of the results.

use std::fmt;

use arbiter_ranking::Entrant;
use arbiter_ranking::{HeadToHeads, PairFilter, Tallies, Tally};
use sqlx::Result;

use super::Queue;
use crate::db::editions::EditionScope;
use crate::db::results::{self, SeatedResult};
use crate::db::{self, standings};

/// A difference between standings and results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingDifference {
    /// The entrant.
    pub entrant: Entrant,
    /// The stored sums; `None` if the standings do not contain the entrant.
    pub stored: Option<Tally>,
    /// The sums of the results; `None` if the entrant has no results.
    pub computed: Option<Tally>,
}

impl fmt::Display for StandingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entrant, stored, computed } = self;
        let sums = |tally: &Option<Tally>| match tally {
            Some(tally) => format!("{:?} in {} matches", tally.score, tally.matches),
            None => "nothing".to_owned(),
        };
        let stored = sums(stored);
        let computed = sums(computed);
        write!(f, "entrant {entrant}: the standings have {stored}, the results give {computed}")
    }
}

impl Queue {
    /// Recomputes the sums of an edition from its counted results, and returns the differences from
    /// its standings.
    pub async fn verify_standings(&self, edition: EditionScope) -> Result<Vec<StandingDifference>> {
        let mut transaction = db::snapshot(self.pool()).await?;
        let game = db::editions::game(&mut *transaction, self.games(), edition.id).await?;
        let mut tallies = Tallies::new(&game);
        let add = |played: &SeatedResult| tallies.add(&played.outcome());
        results::each(&mut transaction, edition, true, add).await?;
        let stored = standings::of_edition(&mut *transaction, edition.id).await?;
        transaction.commit().await?;
        let computed = tallies.by_entrant();
        let mut entrants: Vec<_> = stored.keys().chain(computed.keys()).copied().collect();
        entrants.sort_unstable();
        entrants.dedup();
        let differing =
            entrants.into_iter().filter(|entrant| stored.get(entrant) != computed.get(entrant));
        let difference = |entrant| StandingDifference {
            entrant,
            stored: stored.get(&entrant).cloned(),
            computed: computed.get(&entrant).cloned(),
        };
        Ok(differing.map(difference).collect())
    }

    /// The head-to-head results of the entrants of an edition that pass the filter, from all
    /// results.
    pub async fn head_to_heads(
        &self,
        edition: EditionScope,
        filter: PairFilter,
    ) -> Result<HeadToHeads> {
        let entrants = filter.entrants();
        let mut head_to_heads = HeadToHeads::new(filter);
        let add = |played: &SeatedResult| head_to_heads.add(&played.outcome());
        results::each_of_entrants(self.pool(), edition, &entrants, add).await?;
        Ok(head_to_heads)
    }
}

//! Checks before lots are leased whether their matches are stored already, in tournaments where
//! bots leave files for later matches ([`lots::find_stored`]).

use arbiter_proto::ids::TournamentId;
use arbiter_ranking::Tallies;
use sqlx::{PgConnection, Result};

use super::{Queue, retry};
use crate::db::editions::EditionScope;
use crate::db::lots::{self, CheckedLot, LotState};
use crate::db::{absences, editions, results, standings};

/// Maximum number of steps along a chain of lots in one call, so that other tournaments do not wait
/// too long.
const MAX_PASSES: usize = 64;

impl Queue {
    /// Checks the lots of a tournament that can be checked, then those that wait for them, and so
    /// on. Returns the number of checked lots. Concurrent calls are safe.
    pub async fn check_stored(&self, tournament: TournamentId) -> Result<u64> {
        let mut checked = 0;
        for _ in 0..MAX_PASSES {
            let newly_checked = self.check_stored_once(tournament).await?;
            if newly_checked == 0 {
                break;
            }
            checked += newly_checked;
        }
        Ok(checked)
    }

    /// Checks the lots that can be checked now, without those that wait for them.
    pub(super) async fn check_stored_once(&self, tournament: TournamentId) -> Result<u64> {
        retry(|| self.check_some(tournament)).await
    }

    async fn check_some(&self, tournament: TournamentId) -> Result<u64> {
        let mut transaction = self.pool().begin().await?;
        let db = &mut *transaction;
        // While another transaction opens an edition, this one does nothing.
        if !absences::try_lock_shared(&mut *db, tournament).await? {
            return Ok(0);
        }
        let Some(edition) = editions::running(&mut *db, tournament).await? else { return Ok(0) };
        let checked = lots::find_stored(&mut *db, tournament).await?;
        if checked.is_empty() {
            return Ok(0);
        }
        let new = checked.iter().filter(|lot| lot.stored.is_none());
        let new: Vec<_> = new.map(|lot| lot.number).collect();
        if !new.is_empty() {
            lots::end_check(&mut *db, tournament, &new).await?;
        }
        let same: Vec<_> = checked.iter().copied().filter(|lot| lot.stored.is_some()).collect();
        if !same.is_empty() {
            self.substitute(db, edition.scope(), &same).await?;
        }
        transaction.commit().await?;
        Ok(checked.len() as u64)
    }

    /// Puts stored matches in the place of the matches of these lots.
    async fn substitute(
        &self,
        db: &mut PgConnection,
        edition: EditionScope,
        lots: &[CheckedLot],
    ) -> Result<()> {
        let tournament = edition.tournament;
        let stored: Vec<_> = lots.iter().filter_map(|lot| lot.stored).collect();
        let added: Vec<_> = lots.iter().map(|lot| lot.number).collect();
        // A lot that is being played may be reported or cancelled until it is locked.
        let states = lots::lock_lots(&mut *db, tournament, &stored).await?;
        let is_played = |state: LotState| matches!(state, LotState::Reported | LotState::Counted);
        let played = lots.iter().filter(|lot| {
            states.iter().any(|(number, state)| lot.stored == Some(*number) && is_played(*state))
        });
        let unblocks: Vec<_> = played.map(|lot| lot.number.0).collect();
        if !unblocks.is_empty() {
            lots::promote(&mut *db, tournament, &unblocks).await?;
        }
        lots::substitute(&mut *db, tournament, &added, &stored).await?;
        absences::end(&mut *db, edition, &stored).await?;
        let counted = states.iter().filter(|(_, state)| *state == LotState::Counted);
        let counted: Vec<_> = counted.map(|(number, _)| *number).collect();
        if counted.is_empty() {
            return Ok(());
        }
        let game = editions::game(&mut *db, self.games(), edition.id).await?;
        let mut tallies = Tallies::new(&game);
        for played in results::of_matches(&mut *db, tournament, &counted).await? {
            tallies.add(&played.outcome());
        }
        standings::add(&mut *db, edition.id, tallies.by_entrant()).await?;
        editions::count(&mut *db, edition.id, tallies.matches(), 0).await
    }
}

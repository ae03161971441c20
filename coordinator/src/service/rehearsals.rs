//! Starts rehearsals of tournaments.

use arbiter_proto::v1::{StartRehearsalRequest, Tournament};

use super::{Caller, Result, Service, game_packages};
use crate::access::Role;
use crate::tournament::rehearsal;

impl Service {
    /// Creates a rehearsal of a tournament, and starts its edition.
    pub(crate) async fn start_rehearsal(
        &self,
        caller: &Caller,
        StartRehearsalRequest { tournament }: StartRehearsalRequest,
    ) -> Result<Tournament> {
        let principal = caller.require(Role::Organiser)?;
        let original = self.tournament(&tournament).await?;
        game_packages::check_stored(&mut *self.pool.acquire().await?, &original).await?;
        let rehearsal =
            rehearsal::start(&self.queue, original.id, principal.id, self.now()).await?;
        self.dispatcher.news();
        self.changes.notify();
        self.tournament_message(rehearsal, caller).await
    }
}

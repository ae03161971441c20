//! What is going on: editions that are played, workers, the queue, tricks over HTTP.

use arbiter_proto::v1::Edition;

use super::{Caller, Result, Service};
use crate::access::Role;
use crate::db::active_leases::{self, Held};
use crate::db::tournaments::TournamentState;
use crate::db::workers::Worker;
use crate::db::{audit_log, tournaments, tricks_http, workers};

/// The workers, and what they play.
#[derive(Debug, Default)]
pub(crate) struct WorkersOverview {
    /// How many are known.
    pub(crate) known: usize,
    /// How many are connected.
    pub(crate) connected: usize,
    /// How many matches these can play at the same time.
    pub(crate) slots: i64,
    /// All of them, for organisers.
    pub(crate) workers: Vec<Worker>,
    /// What was leased through this coordinator and not ended, for organisers.
    pub(crate) held: Vec<Held>,
}

impl Service {
    /// The editions that are played, with the names of their tournaments.
    pub(crate) async fn running_editions(&self, caller: &Caller) -> Result<Vec<(String, Edition)>> {
        let mut running = Vec::new();
        for found in self.open_tournaments().await? {
            let name = found.name.clone();
            let found = self.described(found, caller).await?;
            let editions = found.editions.into_iter().filter(|edition| edition.state == "running");
            running.extend(editions.map(|edition| (name.clone(), edition)));
        }
        Ok(running)
    }

    pub(super) async fn open_tournaments(&self) -> Result<Vec<tournaments::Tournament>> {
        let mut found = tournaments::list(&self.pool).await?;
        found.retain(|tournament| tournament.state == TournamentState::Open);
        Ok(found)
    }

    /// The workers, and for organisers what they play.
    pub(crate) async fn workers_overview(&self, caller: &Caller) -> Result<WorkersOverview> {
        let workers = workers::list(&self.pool).await?;
        // A worker that is connected is seen several times in the time of a lease.
        let since = self.now() - self.lease;
        let connected = workers.iter().filter(|one| one.slots > 0 && one.seen_at >= since);
        let overview = WorkersOverview {
            known: workers.len(),
            connected: connected.clone().count(),
            slots: connected.map(|worker| i64::from(worker.slots)).sum(),
            ..WorkersOverview::default()
        };
        if !caller.organises() {
            return Ok(overview);
        }
        let leases: Vec<_> = self.playing.all().into_iter().collect();
        let held = active_leases::of_leases(&self.pool, &leases).await?;
        Ok(WorkersOverview { workers, held, ..overview })
    }

    /// Every worker that ever said hello, those heard of last first.
    pub(crate) async fn known_workers(&self, caller: &Caller) -> Result<Vec<Worker>> {
        caller.require(Role::Organiser)?;
        Ok(workers::list(&self.pool).await?)
    }

    /// The last changes of the audit log, the newest first.
    pub(crate) async fn latest_changes(&self, caller: &Caller) -> Result<Vec<audit_log::Change>> {
        caller.require(Role::Organiser)?;
        Ok(audit_log::latest(&self.pool).await?)
    }

    /// All players' records in tricks over HTTP, the best first.
    pub(crate) async fn tricks_records(&self) -> Result<Vec<tricks_http::Record>> {
        Ok(tricks_http::records(&self.pool).await?)
    }
}

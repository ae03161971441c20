//! The data of the overview pages: running editions, workers, changes, players of tricks over HTTP.

use arbiter_proto::ids::WorkerId;
use arbiter_proto::v1::Edition;

use super::{Caller, Result, Service};
use crate::access::Role;
use crate::db::lease_details::{self, LeaseDetails};
use crate::db::tournaments::TournamentState;
use crate::db::workers::Worker;
use crate::db::{audit_log, tournaments, tricks_http, worker_suspensions, workers};

/// Workers and their leases.
#[derive(Debug, Default)]
pub(crate) struct WorkersOverview {
    /// The number of registered workers.
    pub(crate) known: usize,
    /// The number of connected workers.
    pub(crate) connected: usize,
    /// The number of matches that the connected workers can play at the same time.
    pub(crate) slots: i64,
    /// All workers, for organisers.
    pub(crate) workers: Vec<Worker>,
    /// The workers that are connected, for organisers.
    pub(crate) connected_workers: Vec<WorkerId>,
    /// The workers that are suspended, for organisers.
    pub(crate) suspended: Vec<WorkerId>,
    /// Active leases of this coordinator, for organisers.
    pub(crate) held: Vec<LeaseDetails>,
}

impl Service {
    /// The running editions, with the names of their tournaments.
    pub(crate) async fn running_editions(&self, caller: &Caller) -> Result<Vec<(String, Edition)>> {
        let mut running = Vec::new();
        for row in self.open_tournaments().await? {
            let name = row.name.clone();
            let tournament = self.tournament_message(row, caller).await?;
            let editions =
                tournament.editions.into_iter().filter(|edition| edition.state == "running");
            running.extend(editions.map(|edition| (name.clone(), edition)));
        }
        Ok(running)
    }

    pub(super) async fn open_tournaments(&self) -> Result<Vec<tournaments::Tournament>> {
        let mut rows = tournaments::list(&self.pool).await?;
        rows.retain(|tournament| tournament.state == TournamentState::Open);
        Ok(rows)
    }

    /// The workers. For organisers also their leases.
    pub(crate) async fn workers_overview(&self, caller: &Caller) -> Result<WorkersOverview> {
        let workers = workers::list(&self.pool).await?;
        // A connected worker sends several signs of life during a lease.
        let since = self.now() - self.lease();
        let connected = workers.iter().filter(|row| row.slots > 0 && row.seen_at >= since);
        let overview = WorkersOverview {
            known: workers.len(),
            connected: connected.clone().count(),
            slots: connected.clone().map(|worker| i64::from(worker.slots)).sum(),
            ..WorkersOverview::default()
        };
        if !caller.is_organiser() {
            return Ok(overview);
        }
        let connected_workers = connected.map(|worker| worker.id).collect();
        let leases: Vec<_> = self.playing.all().into_iter().collect();
        let held = lease_details::of_leases(&self.pool, &leases).await?;
        let suspended = worker_suspensions::all(&self.pool).await?;
        let suspended = suspended.into_iter().map(|suspension| suspension.worker).collect();
        Ok(WorkersOverview { workers, connected_workers, suspended, held, ..overview })
    }

    /// Every worker that ever connected, last seen first.
    pub(crate) async fn known_workers(&self, caller: &Caller) -> Result<Vec<Worker>> {
        caller.require(Role::Organiser)?;
        Ok(workers::list(&self.pool).await?)
    }

    /// The latest entries of the audit log, newest first.
    pub(crate) async fn latest_changes(&self, caller: &Caller) -> Result<Vec<audit_log::Change>> {
        caller.require(Role::Organiser)?;
        Ok(audit_log::latest(&self.pool).await?)
    }

    /// The results of all players of tricks over HTTP, best first.
    pub(crate) async fn tricks_records(&self) -> Result<Vec<tricks_http::PlayerRecord>> {
        Ok(tricks_http::records(&self.pool).await?)
    }
}

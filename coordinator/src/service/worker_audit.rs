//! The audit of workers, for organisers: the results of checks of a share of their reports, and the
//! suspension and reinstatement of workers.

use std::collections::BTreeMap;

use arbiter_proto::ids::{MatchName, WorkerId};
use arbiter_proto::v1::{
    AuditDifference, AuditedWorker, ListWorkersRequest, ListWorkersResponse,
    ReinstateWorkerRequest, ReinstateWorkerResponse, SuspendWorkerRequest, SuspendWorkerResponse,
};
use serde_json::json;

use super::{Caller, ErrorKind, Result, Service, ServiceError, match_name, micros};
use crate::access::Role;
use crate::db::match_audits::{self, AuditCount, AuditKind, AuditState, Difference};
use crate::db::tournaments;
use crate::db::worker_stats::{self, ReportCounts};
use crate::db::worker_suspensions;
use crate::db::workers::{self, Worker};

/// The longest reason, in characters.
const MAX_REASON: usize = 1000;
/// Maximum number of workers that an error names.
const MAX_LISTED: usize = 20;

impl Service {
    /// Lists all workers with their audit in one tournament, or in all if the name is empty.
    pub(crate) async fn list_workers(
        &self,
        caller: &Caller,
        request: ListWorkersRequest,
    ) -> Result<ListWorkersResponse> {
        caller.require(Role::Organiser)?;
        let (tournament, selected) = match request.tournament.as_str() {
            "" => (None, tournaments::list(&self.pool).await?),
            name => {
                let row = self.tournament(name).await?;
                (Some(row.id), vec![row])
            }
        };
        let _permit = self.permit(caller).await?;
        let pool = &self.pool;
        let workers = workers::list(pool).await?;
        let reported = worker_stats::report_counts(pool, tournament).await?;
        let counts = match_audits::counts(pool, tournament).await?;
        let residuals = worker_stats::residuals(pool, tournament).await?;
        let suspended = worker_suspensions::all(pool).await?;
        let differences = match_audits::differences(pool, tournament).await?;
        let names: BTreeMap<_, _> =
            workers.iter().map(|worker| (worker.id, worker.name.clone())).collect();
        let by_id: BTreeMap<_, _> = selected.iter().map(|row| (row.id, row)).collect();
        let audited = |worker: Worker| {
            let mut message = message(&worker, &reported, &counts);
            let residual = residuals.iter().find(|(id, _)| *id == worker.id);
            message.residual_p = residual.map(|(_, p)| *p);
            if let Some(row) = suspended.iter().find(|row| row.worker == worker.id) {
                message.suspended_at_us = micros(row.at);
                message.suspended_reason.clone_from(&row.reason);
            }
            message
        };
        let named = |row: &Difference| {
            // The rows of deleted tournaments are removed in the background.
            let name = match_name(by_id.get(&row.id.tournament)?, row.id.number);
            let worker = names.get(&row.worker).cloned().unwrap_or_default();
            Some(difference(&name, worker, row))
        };
        Ok(ListWorkersResponse {
            workers: workers.into_iter().map(audited).collect(),
            differences: differences.iter().filter_map(named).collect(),
        })
    }

    /// Suspends a worker.
    pub(crate) async fn suspend_worker(
        &self,
        caller: &Caller,
        request: SuspendWorkerRequest,
    ) -> Result<SuspendWorkerResponse> {
        let principal = caller.require(Role::Organiser)?;
        let SuspendWorkerRequest { worker: name, reason } = &request;
        let length = reason.chars().count();
        if !(1..=MAX_REASON).contains(&length) {
            let error = format!("write a reason of 1 to {MAX_REASON} characters");
            return Err(ServiceError::invalid_argument(error));
        }
        let Worker { id: worker, name, .. } = &self.find_worker(name).await?;
        let worker = *worker;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        let suspended = worker_suspensions::suspend(&mut *db, worker, reason, self.now()).await;
        if suspended?.is_none() {
            let error = format!("worker `{name}` is already suspended");
            return Err(ServiceError::failed_precondition(error));
        }
        let detail = json!({ "reason": reason });
        self.commit_change(transaction, principal, "worker suspend", name, Some(detail)).await?;
        self.suspensions.add(worker, reason);
        self.changes.notify();
        Ok(SuspendWorkerResponse {})
    }

    /// Reinstates a suspended worker.
    pub(crate) async fn reinstate_worker(
        &self,
        caller: &Caller,
        request: ReinstateWorkerRequest,
    ) -> Result<ReinstateWorkerResponse> {
        let principal = caller.require(Role::Organiser)?;
        let Worker { id: worker, name, .. } = &self.find_worker(&request.worker).await?;
        let worker = *worker;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        let reason = worker_suspensions::reinstate(&mut *db, worker, self.now()).await?;
        let reason = reason.ok_or_else(|| {
            ServiceError::failed_precondition(format!("worker `{name}` is not suspended"))
        })?;
        let detail = json!({ "suspended for": reason });
        self.commit_change(transaction, principal, "worker reinstate", name, Some(detail)).await?;
        self.suspensions.refresh(&self.pool).await?;
        self.changes.notify();
        Ok(ReinstateWorkerResponse {})
    }

    /// The worker with this name, or else the only worker of the token with this name.
    pub(super) async fn find_worker(&self, name: &str) -> Result<Worker> {
        let name = name.trim();
        if let Some(worker) = workers::find(&self.pool, name).await? {
            return Ok(worker);
        }
        let mut of_token = workers::of_token(&self.pool, name).await?;
        if of_token.len() > 1 {
            let names = known_names(&of_token);
            return Err(ServiceError::invalid_argument(format!(
                "`{name}` is a token with several workers; name one of them: {names}"
            )));
        }
        if let Some(worker) = of_token.pop() {
            return Ok(worker);
        }
        let known = workers::list(&self.pool).await?;
        let hint = if known.is_empty() {
            "no worker has connected yet".to_owned()
        } else {
            format!("known workers: {}", known_names(&known))
        };
        let error = format!("there is no worker `{name}`; {hint}");
        Err(ServiceError::new(ErrorKind::NotFound, error))
    }
}

/// The names of workers in a message.
fn known_names(workers: &[Worker]) -> String {
    let names: Vec<_> =
        workers.iter().take(MAX_LISTED).map(|worker| worker.name.as_str()).collect();
    let more = workers.len().saturating_sub(MAX_LISTED);
    let suffix = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &suffix
}

/// A worker with its audit counts.
fn message(worker: &Worker, reported: &[ReportCounts], counts: &[AuditCount]) -> AuditedWorker {
    let count = |kind, states: &[AuditState]| -> i64 {
        let is_counted = |count: &&AuditCount| {
            count.worker == worker.id && count.kind == kind && states.contains(&count.state)
        };
        counts.iter().filter(is_counted).map(|count| count.matches).sum()
    };
    let recounts = |states: &[AuditState]| count(AuditKind::Recount, states);
    let shadows = |states: &[AuditState]| count(AuditKind::Shadow, states);
    let row = reported.iter().find(|row| row.worker == worker.id);
    let (matches, clock_forfeits) = row.map_or((0, 0), |row| (row.matches, row.clock_forfeits));
    let compared = [AuditState::Agreed, AuditState::Disagreed];
    AuditedWorker {
        name: worker.name.clone(),
        sandbox: worker.sandbox.clone(),
        build: worker.build.clone(),
        slots: worker.slots,
        last_seen_at_us: micros(worker.seen_at),
        matches,
        recounted: recounts(&compared),
        recounts_disagreed: recounts(&[AuditState::Disagreed]),
        unreadable: recounts(&[AuditState::Unreadable]),
        without_record: recounts(&[AuditState::Absent]),
        recounts_waiting: recounts(&[AuditState::Waiting]),
        shadows_chosen: shadows(&[
            AuditState::Waiting,
            AuditState::Leased,
            AuditState::Agreed,
            AuditState::Disagreed,
            AuditState::Skipped,
        ]),
        shadowed: shadows(&compared),
        shadows_disagreed: shadows(&[AuditState::Disagreed]),
        clock_forfeits,
        clock_forfeits_of_others: forfeits_of_others(worker.id, matches, reported),
        ..AuditedWorker::default()
    }
}

/// Clock forfeits of all other workers, scaled to this worker's number of matches.
#[expect(clippy::cast_precision_loss, reason = "pages show a few digits")]
fn forfeits_of_others(worker: WorkerId, matches: i64, reported: &[ReportCounts]) -> f64 {
    let others = reported.iter().filter(|row| row.worker != worker);
    let (all, clock) =
        others.fold((0, 0), |(all, clock), row| (all + row.matches, clock + row.clock_forfeits));
    if all == 0 { 0.0 } else { matches as f64 * clock as f64 / all as f64 }
}

fn difference(name: &MatchName, worker: String, row: &Difference) -> AuditDifference {
    AuditDifference {
        r#match: name.to_string(),
        worker,
        kind: row.kind.as_str().to_owned(),
        reason: row.reason.clone(),
    }
}

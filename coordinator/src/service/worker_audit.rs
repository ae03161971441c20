//! The audit of workers, for organisers: the results of checking a share of their reports;
//! suspension and reinstatement.

use std::collections::BTreeMap;

use arbiter_proto::ids::WorkerId;
use arbiter_proto::v1::{
    AuditDifference, AuditedWorker, ListWorkersRequest, ListWorkersResponse,
    ReinstateWorkerRequest, ReinstateWorkerResponse, SuspendWorkerRequest, SuspendWorkerResponse,
};
use serde_json::json;

use super::{Caller, Result, Service, ServiceError, micros};
use crate::access::Role;
use crate::db::match_audits::{self, AuditCount, AuditKind, AuditState, Difference};
use crate::db::suspensions;
use crate::db::worker_stats::{self, ReportCounts};
use crate::db::workers::{self, Worker};

/// The longest reason, in characters.
const MAX_REASON: usize = 1000;

impl Service {
    /// Lists all workers with their audit in one tournament, or in all if the name is empty.
    pub(crate) async fn list_workers(
        &self,
        caller: &Caller,
        request: ListWorkersRequest,
    ) -> Result<ListWorkersResponse> {
        caller.require(Role::Organiser)?;
        let tournament = match request.tournament.as_str() {
            "" => None,
            name => Some(self.tournament(name).await?.id),
        };
        let _permit = self.permit(caller).await?;
        let pool = &self.pool;
        let known = workers::list(pool).await?;
        let reported = worker_stats::report_counts(pool, tournament).await?;
        let counts = match_audits::counts(pool, tournament).await?;
        let residuals = worker_stats::residuals(pool, tournament).await?;
        let suspended = suspensions::all(pool).await?;
        let found = match_audits::differences(pool, tournament).await?;
        let names: BTreeMap<_, _> =
            known.iter().map(|worker| (worker.id, worker.name.clone())).collect();
        let audited = |worker: Worker| {
            let mut message = message(&worker, &reported, &counts);
            let residual = residuals.iter().find(|(id, _)| *id == worker.id);
            message.residual_p = residual.map(|(_, p)| *p);
            if let Some(found) = suspended.iter().find(|found| found.worker == worker.id) {
                message.suspended_at_us = micros(found.at);
                message.suspended_reason.clone_from(&found.reason);
            }
            message
        };
        Ok(ListWorkersResponse {
            workers: known.into_iter().map(audited).collect(),
            differences: found.iter().map(|found| difference(found, &names)).collect(),
        })
    }

    /// Suspends a worker.
    pub(crate) async fn suspend_worker(
        &self,
        caller: &Caller,
        request: SuspendWorkerRequest,
    ) -> Result<SuspendWorkerResponse> {
        let who = caller.require(Role::Organiser)?;
        let SuspendWorkerRequest { worker: name, reason } = &request;
        let length = reason.chars().count();
        if !(1..=MAX_REASON).contains(&length) {
            let error = format!("write a reason of 1 to {MAX_REASON} characters");
            return Err(ServiceError::invalid_argument(error));
        }
        let worker = self.worker_called(name).await?;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        let suspended = suspensions::suspend(&mut *db, worker, reason, self.now()).await;
        if suspended?.is_none() {
            let error = format!("worker `{name}` is already suspended");
            return Err(ServiceError::failed_precondition(error));
        }
        let detail = json!({ "reason": reason });
        self.record_change(&mut *db, who, "worker suspend", name, Some(&detail)).await?;
        transaction.commit().await?;
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
        let who = caller.require(Role::Organiser)?;
        let name = request.worker.as_str();
        let worker = self.worker_called(name).await?;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        let reason = suspensions::reinstate(&mut *db, worker, self.now()).await?;
        let reason = reason.ok_or_else(|| {
            ServiceError::failed_precondition(format!("worker `{name}` is not suspended"))
        })?;
        let detail = json!({ "suspended for": reason });
        self.record_change(&mut *db, who, "worker reinstate", name, Some(&detail)).await?;
        transaction.commit().await?;
        self.suspensions.refresh(&self.pool).await?;
        self.changes.notify();
        Ok(ReinstateWorkerResponse {})
    }

    async fn worker_called(&self, name: &str) -> Result<WorkerId> {
        let found = workers::find(&self.pool, name).await?;
        Ok(found.ok_or_else(|| ServiceError::missing("worker", name))?.id)
    }
}

/// A worker with its audit counts.
fn message(worker: &Worker, reported: &[ReportCounts], counts: &[AuditCount]) -> AuditedWorker {
    let count = |kind, states: &[AuditState]| -> i64 {
        let of = |count: &&AuditCount| {
            count.worker == worker.id && count.kind == kind && states.contains(&count.state)
        };
        counts.iter().filter(of).map(|count| count.matches).sum()
    };
    let recounts = |states: &[AuditState]| count(AuditKind::Recount, states);
    let shadows = |states: &[AuditState]| count(AuditKind::Shadow, states);
    let reported_by = reported.iter().find(|found| found.worker == worker.id);
    let (matches, clock_forfeits) =
        reported_by.map_or((0, 0), |found| (found.matches, found.clock_forfeits));
    let done = [AuditState::Agreed, AuditState::Disagreed];
    AuditedWorker {
        name: worker.name.clone(),
        sandbox: worker.sandbox.clone(),
        build: worker.build.clone(),
        slots: worker.slots,
        last_seen_at_us: micros(worker.seen_at),
        matches,
        recounted: recounts(&done),
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
        shadowed: shadows(&done),
        shadows_disagreed: shadows(&[AuditState::Disagreed]),
        clock_forfeits,
        clock_forfeits_of_others: forfeits_of_others(worker.id, matches, reported),
        ..AuditedWorker::default()
    }
}

/// Clock forfeits of all other workers, scaled to this worker's number of matches.
#[expect(clippy::cast_precision_loss, reason = "pages show a few digits")]
fn forfeits_of_others(worker: WorkerId, matches: i64, reported: &[ReportCounts]) -> f64 {
    let others = reported.iter().filter(|found| found.worker != worker);
    let (all, clock) = others
        .fold((0, 0), |(all, clock), found| (all + found.matches, clock + found.clock_forfeits));
    if all == 0 { 0.0 } else { matches as f64 * clock as f64 / all as f64 }
}

fn difference(found: &Difference, names: &BTreeMap<WorkerId, String>) -> AuditDifference {
    AuditDifference {
        r#match: found.id.to_string(),
        worker: names.get(&found.worker).cloned().unwrap_or_default(),
        kind: found.kind.as_str().to_owned(),
        reason: found.reason.clone(),
    }
}

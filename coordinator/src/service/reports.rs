//! Stores the reports of workers from all streams.

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trace::{Span, TraceParent};
use arbiter_proto::v1::{ReportResponse, ReportStatus};
use tokio::time::Instant;

use super::{Result, ServiceError, WorkerService};
use crate::boxed_future::BoxedFuture;
use crate::db::trials::Outcome;
use crate::db::{self, trace_contexts};
use crate::match_audit::shadow_play;
use crate::metrics::TimeLosses;
use crate::queue::{self, Failure, Report, ReportError};
use crate::tournament::AssignmentError;
use crate::tournament::report_check::{Implausible, LotCheck};

/// Maximum length of a stored reason, in characters.
const MAX_REASON: usize = 1000;

/// A report that is being stored.
type StoringReport = BoxedFuture<Result<ReportResponse>>;

/// A report under a lease.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) worker: WorkerId,
    pub(crate) lease: Lease,
    /// The trace of the lease, which the report continues.
    pub(crate) trace: Option<TraceParent>,
    /// The contents, or why they cannot be decoded.
    pub(crate) contents: Result<DeliveryContents, String>,
}

/// The contents of a [`Delivery`].
#[derive(Debug)]
pub(crate) enum DeliveryContents {
    /// Results of a lot or of a shadow match.
    Report(Report),
    /// The result of a trial, and the program that was built.
    Trial(Box<Outcome>, Vec<u8>),
}

impl WorkerService {
    /// Begins to store a report. Many of these futures exist at the same time, so each kind is
    /// boxed separately to use little memory.
    pub(crate) fn store_delivery(
        self,
        delivery: Delivery,
        check: Option<&LotCheck>,
        arrived: Instant,
    ) -> StoringReport {
        let Delivery { worker, lease, trace, contents } = delivery;
        let report = match contents {
            Ok(DeliveryContents::Report(report)) => report,
            Ok(DeliveryContents::Trial(outcome, program)) => {
                let span = Span::follow("trial stored", trace.as_ref());
                return Box::pin(async move {
                    self.store_trial(*outcome, program, arrived, span).await
                });
            }
            Err(error) => {
                let reason = format!("its report cannot be decoded: {error}");
                return Box::pin(async move { self.refuse(worker, lease, reason, arrived).await });
            }
        };
        if lease.shadow().is_some() {
            return Box::pin(async move { self.store_shadow(report, arrived).await });
        }
        let span = Span::follow("report stored", trace.as_ref());
        let is_checked = check.is_some();
        if let Some(Err(error)) = check.map(|check| check.check(&report)) {
            let reason = implausible_reason(&error);
            return Box::pin(async move { self.refuse(worker, lease, reason, arrived).await });
        }
        Box::pin(async move { self.store_lot(report, is_checked, arrived, span).await })
    }

    /// Stores the results of a lot.
    async fn store_lot(
        &self,
        report: Report,
        is_checked: bool,
        arrived: Instant,
        mut span: Span,
    ) -> Result<ReportResponse> {
        let worker = report.worker;
        let lease = report.lease;
        let refuse = |reason| Box::pin(self.refuse(worker, lease, reason, arrived));
        if !is_checked {
            match Box::pin(self.check_report(&report)).await {
                Ok(None) => {}
                Ok(Some(reason)) => return refuse(reason).await,
                Err(error) => return Ok(self.postpone(worker, lease, &error)),
            }
        }
        let matches = report.results.len();
        let losses = TimeLosses::of(&report.evidence);
        let status = match self.reporter.report(report).await {
            Ok(queue::ReportStatus::Malformed) => {
                return refuse("its report is not about its matches".to_owned()).await;
            }
            Ok(status) => status,
            Err(ReportError::Database(error)) if db::is_invalid_data(&error) => {
                return refuse(format!("its report cannot be stored: {error}")).await;
            }
            Err(ReportError::Stopped) => {
                return Err(ServiceError::unavailable(ReportError::Stopped.to_string()));
            }
            Err(error) => return Ok(self.postpone(worker, lease, &error)),
        };
        span.set("verdict", format!("{status:?}"));
        if status == queue::ReportStatus::Accepted {
            self.service.metrics().record_matches(matches, losses);
        }
        self.service.metrics().record_report(lease, status, arrived);
        tracing::debug!(%lease, verdict = ?status, trace_id = span.trace_id(), "reported");
        // Lots that depend on this one may be leased now.
        self.service.dispatcher.news();
        Ok(report_status(lease, status))
    }

    /// Checks a report of a lot that was assigned over another stream. Returns why it is refused.
    async fn check_report(&self, report: &Report) -> Result<Option<String>, sqlx::Error> {
        // The queue refuses an empty report.
        let Some(first) = report.results.first() else { return Ok(None) };
        let count = i32::try_from(report.results.len()).unwrap_or(i32::MAX);
        match self.assignments.lot_check(report.lease.lot, first.number, count).await {
            Ok(Some(check)) => {
                Ok(check.check(report).err().map(|error| implausible_reason(&error)))
            }
            // The lot no longer exists, so the queue refuses the report as late.
            Ok(None) => Ok(None),
            Err(AssignmentError::Database(cause) | AssignmentError::Edition(_, cause)) => {
                Err(cause)
            }
            Err(error) => Ok(Some(format!("its report cannot be used: {error}"))),
        }
    }

    /// Stores the result of a trial.
    async fn store_trial(
        &self,
        outcome: Outcome,
        program: Vec<u8>,
        arrived: Instant,
        mut span: Span,
    ) -> Result<ReportResponse> {
        let worker = outcome.worker;
        let lease = outcome.lease;
        // Errors of tracing are ignored, so a trace may have a gap.
        let parent = span.context();
        if let (None, Some(parent)) = (&outcome.verdict, &parent) {
            // This must happen before the version enters, because the trace of its first edition
            // continues this trace.
            drop(trace_contexts::update_version(self.service.queue.pool(), lease, parent).await);
        }
        match self.service.queue.end_trial(&outcome, &program, self.service.now()).await {
            Ok(status) => {
                if parent.is_some() {
                    drop(trace_contexts::delete_failed(self.service.queue.pool(), lease).await);
                }
                let verdict = outcome.verdict.as_deref().unwrap_or("passed");
                span.set("verdict", verdict.to_owned());
                let trace_id = span.trace_id();
                tracing::info!(%lease, verdict, ?status, trace_id, "trial finished");
                self.service.metrics().record_report(lease, status, arrived);
                self.service.changes.notify();
                Ok(report_status(lease, status))
            }
            Err(error) if db::is_invalid_data(&error) => {
                let reason = format!("its report cannot be stored: {error}");
                self.refuse(worker, lease, reason, arrived).await
            }
            Err(error) => Ok(self.postpone(worker, lease, &error)),
        }
    }

    /// Postpones a report that cannot be stored now. The worker keeps it and sends it again.
    pub(super) fn postpone(
        &self,
        worker: WorkerId,
        lease: Lease,
        error: &dyn std::error::Error,
    ) -> ReportResponse {
        tracing::warn!(%worker, %lease, %error, "cannot store a report now; its worker keeps it");
        self.service.metrics().deferred.inc();
        let reason = error.to_string().chars().take(MAX_REASON).collect();
        ReportResponse { lease: Some(lease.into()), status: ReportStatus::Postponed.into(), reason }
    }

    /// Compares a shadow match with the match that it repeats.
    pub(super) async fn store_shadow(
        &self,
        report: Report,
        arrived: Instant,
    ) -> Result<ReportResponse> {
        let worker = report.worker;
        let lease = report.lease;
        let pool = &self.service.pool;
        let now = self.service.now();
        let checked = shadow_play::check_report(pool, &self.assignments, &report, now).await;
        let status = match checked {
            Ok(status) => status,
            Err(error) => return Ok(self.postpone(worker, lease, &error)),
        };
        if status == queue::ReportStatus::Malformed {
            let reason = "its report is not about its match".to_owned();
            return self.refuse(worker, lease, reason, arrived).await;
        }
        // The report may have suspended a worker. If this refresh fails, the next periodic one
        // succeeds soon.
        drop(self.service.suspensions.refresh(pool).await);
        self.service.metrics().record_report(lease, status, arrived);
        Ok(report_status(lease, status))
    }

    /// Refuses a report that can never be stored. The attempt counts as failed.
    pub(super) async fn refuse(
        &self,
        worker: WorkerId,
        lease: Lease,
        reason: String,
        arrived: Instant,
    ) -> Result<ReportResponse> {
        tracing::error!(%worker, %lease, reason, "report refused");
        self.service.metrics().record_report(lease, queue::ReportStatus::Malformed, arrived);
        let reason: String = reason.chars().take(MAX_REASON).collect();
        let failure =
            Failure { lease, by: Some(worker), kind: FaultKind::Report, reason: reason.clone() };
        if let Err(error) = self.service.queue.fail(&[failure]).await {
            tracing::warn!(%lease, %error, "cannot record the fault; the lease will expire");
        }
        self.service.dispatcher.news();
        Ok(ReportResponse {
            lease: Some(lease.into()),
            status: ReportStatus::Refused.into(),
            reason,
        })
    }
}

/// The reason for refusing a report that fails its check.
fn implausible_reason(error: &Implausible) -> String {
    format!("its report is not plausible: {error}")
}

/// The status of a report, as a message.
pub(super) fn report_status(lease: Lease, status: queue::ReportStatus) -> ReportResponse {
    let code = match status {
        queue::ReportStatus::Accepted => ReportStatus::Accepted,
        queue::ReportStatus::Duplicate => ReportStatus::Duplicate,
        queue::ReportStatus::Late | queue::ReportStatus::Foreign => ReportStatus::Late,
        queue::ReportStatus::Malformed => ReportStatus::Refused,
    };
    ReportResponse { lease: Some(lease.into()), status: code.into(), reason: String::new() }
}

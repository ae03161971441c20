//! What becomes of the reports of workers, whichever stream they come over.

use std::pin::Pin;

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trace::{Span, TraceParent};
use arbiter_proto::v1::{ReportResponse, ReportStatus};
use tokio::time::Instant;

use super::{Result, ServiceError, WorkerService};
use crate::db::trials::Outcome;
use crate::db::{self, trace_contexts};
use crate::metrics::TimeLosses;
use crate::queue::{self, Failure, Report, ReportError};
use crate::tournament::HandoutError;
use crate::tournament::score_check::{Implausible, LotCheck};

/// The longest reason that is stored, in characters.
const REASON: usize = 1000;

/// Storing a report.
type Storing = Pin<Box<dyn Future<Output = Result<ReportResponse>> + Send>>;

/// What a worker delivers under a lease.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) worker: WorkerId,
    pub(crate) lease: Lease,
    /// Where the trace of what was leased goes on.
    pub(crate) trace: Option<TraceParent>,
    /// What it is, or why it means nothing.
    pub(crate) contents: Result<Contents, String>,
}

/// What a delivery holds.
#[derive(Debug)]
pub(crate) enum Contents {
    /// Results of a lot, or of a match that is played a second time.
    Report(Report),
    /// What a trial came to, and the program that was built.
    Trial(Box<Outcome>, Vec<u8>),
}

impl WorkerService {
    /// Begins to store what a worker delivers. There is a future of this for every report, so it holds
    /// no more than it needs for its kind.
    pub(crate) fn store(
        self,
        delivery: Delivery,
        check: Option<&LotCheck>,
        came: Instant,
    ) -> Storing {
        let Delivery { worker, lease, trace, contents } = delivery;
        let report = match contents {
            Ok(Contents::Report(report)) => report,
            Ok(Contents::Trial(outcome, program)) => {
                let span = Span::follow("trial stored", trace.as_ref());
                return Box::pin(
                    async move { self.end_trial(*outcome, program, came, span).await },
                );
            }
            Err(error) => {
                let reason = format!("its report means nothing: {error}");
                return Box::pin(async move { self.malformed(worker, lease, reason, came).await });
            }
        };
        if lease.shadow().is_some() {
            return Box::pin(async move { self.end_shadow(report, came).await });
        }
        let span = Span::follow("report stored", trace.as_ref());
        let is_checked = check.is_some();
        if let Some(Err(error)) = check.map(|check| check.check(&report)) {
            let reason = untrue(&error);
            return Box::pin(async move { self.malformed(worker, lease, reason, came).await });
        }
        Box::pin(async move { self.end_lot(report, is_checked, came, span).await })
    }

    /// Stores what the matches of a lot came to.
    async fn end_lot(
        &self,
        report: Report,
        is_checked: bool,
        came: Instant,
        mut span: Span,
    ) -> Result<ReportResponse> {
        let (worker, lease) = (report.worker, report.lease);
        let malformed = |reason| Box::pin(self.malformed(worker, lease, reason, came));
        if !is_checked {
            match Box::pin(self.implausible(&report)).await {
                Ok(None) => {}
                Ok(Some(reason)) => return malformed(reason).await,
                Err(error) => return Ok(self.postponed(worker, lease, &error)),
            }
        }
        let (matches, losses) = (report.results.len(), TimeLosses::of(&report.evidence));
        let stored = match self.reporter.report(report).await {
            Ok(queue::Verdict::Malformed) => {
                return malformed("its report does not tell of its matches".to_owned()).await;
            }
            Ok(stored) => stored,
            Err(ReportError::Database(error)) if db::is_refused(&error) => {
                return malformed(format!("its report cannot be stored: {error}")).await;
            }
            Err(ReportError::Stopped) => {
                return Err(ServiceError::unavailable(ReportError::Stopped.to_string()));
            }
            Err(error) => return Ok(self.postponed(worker, lease, &error)),
        };
        span.set("verdict", format!("{stored:?}"));
        if stored == queue::Verdict::Accepted {
            self.service.metrics().record_matches(matches, losses);
        }
        self.service.metrics().record_report(lease, stored, came);
        tracing::debug!(%lease, verdict = ?stored, trace_id = span.trace_id(), "reported");
        // What waited for this lot may be leased now.
        self.service.dispatcher.news();
        Ok(judged(lease, stored))
    }

    /// Why a report cannot be that of its lot, which was handed out elsewhere, if it cannot.
    async fn implausible(&self, report: &Report) -> Result<Option<String>, sqlx::Error> {
        // The queue says what is wrong with one that tells of nothing.
        let Some(first) = report.results.first() else { return Ok(None) };
        let count = i32::try_from(report.results.len()).unwrap_or(i32::MAX);
        match self.handout.check_of(report.lease.lot, first.number, count).await {
            Ok(Some(check)) => Ok(check.check(report).err().map(|error| untrue(&error))),
            // There is no such lot any more: the queue says that it is late.
            Ok(None) => Ok(None),
            Err(HandoutError::Database(_, cause)) => Err(cause),
            Err(error) => Ok(Some(format!("its report is of no use: {error}"))),
        }
    }

    /// Stores what a trial came to.
    async fn end_trial(
        &self,
        outcome: Outcome,
        program: Vec<u8>,
        came: Instant,
        mut span: Span,
    ) -> Result<ReportResponse> {
        let (worker, lease) = (outcome.worker, outcome.lease);
        // What fails with a trace costs it no more than a turn.
        let parent = span.context();
        if let (None, Some(parent)) = (&outcome.verdict, &parent) {
            // Before it enters: an edition that shows it goes on from here.
            drop(trace_contexts::move_version(self.service.queue.pool(), lease, parent).await);
        }
        match self.service.queue.end_trial(&outcome, &program, self.service.now()).await {
            Ok(stored) => {
                if parent.is_some() {
                    drop(trace_contexts::forget_failed(self.service.queue.pool(), lease).await);
                }
                let verdict = outcome.verdict.as_deref().unwrap_or("passed");
                span.set("verdict", verdict.to_owned());
                let trace_id = span.trace_id();
                tracing::info!(%lease, verdict, fate = ?stored, trace_id, "a trial is over");
                self.service.metrics().record_report(lease, stored, came);
                self.service.changes.tell();
                Ok(judged(lease, stored))
            }
            Err(error) if db::is_refused(&error) => {
                let reason = format!("its report cannot be stored: {error}");
                self.malformed(worker, lease, reason, came).await
            }
            Err(error) => Ok(self.postponed(worker, lease, &error)),
        }
    }

    /// A report that cannot be stored at present: the worker keeps it and sends it again.
    pub(super) fn postponed(
        &self,
        worker: WorkerId,
        lease: Lease,
        error: &dyn std::error::Error,
    ) -> ReportResponse {
        tracing::warn!(%worker, %lease, %error, "a report cannot be stored yet; it is postponed");
        self.service.metrics().deferred.inc();
        let reason = error.to_string().chars().take(REASON).collect();
        ReportResponse { lease: Some(lease.into()), status: ReportStatus::Postponed.into(), reason }
    }

    /// A report that will never be stored: the attempt has failed.
    pub(super) async fn malformed(
        &self,
        worker: WorkerId,
        lease: Lease,
        reason: String,
        came: Instant,
    ) -> Result<ReportResponse> {
        tracing::error!(%worker, %lease, reason, "a report is refused");
        self.service.metrics().record_report(lease, queue::Verdict::Malformed, came);
        let reason: String = reason.chars().take(REASON).collect();
        let told = reason.clone();
        let failure = Failure { lease, by: Some(worker), kind: FaultKind::Report, reason: told };
        if let Err(error) = self.service.queue.fail(&[failure]).await {
            tracing::warn!(%lease, %error, "its fault is not noted; the lease will run out");
        }
        self.service.dispatcher.news();
        Ok(ReportResponse {
            lease: Some(lease.into()),
            status: ReportStatus::Refused.into(),
            reason,
        })
    }
}

/// What is wrong with a report that cannot be that of its lot.
fn untrue(error: &Implausible) -> String {
    format!("its report cannot be true: {error}")
}

/// What became of a report, as a message.
pub(super) fn judged(lease: Lease, verdict: queue::Verdict) -> ReportResponse {
    let fate = match verdict {
        queue::Verdict::Accepted => ReportStatus::Accepted,
        queue::Verdict::Repeated => ReportStatus::Duplicate,
        queue::Verdict::Late | queue::Verdict::Foreign => ReportStatus::Late,
        queue::Verdict::Malformed => ReportStatus::Refused,
    };
    ReportResponse { lease: Some(lease.into()), status: fate.into(), reason: String::new() }
}

//! What becomes of a worker's greeting and of its reports, whichever stream they come over.

use std::pin::Pin;
use std::sync::Arc;

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{Lease, TokenId, WorkerId};
use arbiter_proto::trace::{Span, TraceParent};
use arbiter_proto::v1;
use arbiter_proto::v1::{Fate, Hello, Verdict};
use tokio::time::Instant;
use tonic::Status;

use super::super::Shared;
use super::super::status::database;
use super::REASON;
use crate::db::{self, suspensions, traces, workers};
use crate::metrics::TimeLosses;
use crate::queue::{self, Failure, Report, ReportError};
use crate::tournament::HandoutError;
use crate::tournament::score_check::{Implausible, LotCheck};
use crate::tournament::{report, trial};

/// Storing a report.
type Storing = Pin<Box<dyn Future<Output = Result<Verdict, Status>> + Send>>;

impl Shared {
    /// Takes note of a worker that says hello with this token, whose name is its own.
    pub(super) async fn greet(&self, token: TokenId, hello: &Hello) -> Result<WorkerId, Status> {
        let Hello { name, build, sandbox, .. } = hello;
        let greeted =
            workers::greet(self.queue.pool(), token, name, sandbox, build, self.now()).await;
        if let Some(worker) = greeted.map_err(database)? {
            return match suspensions::reason(self.queue.pool(), worker).await.map_err(database)? {
                Some(reason) => Err(suspended(&reason)),
                None => Ok(worker),
            };
        }
        tracing::warn!(%token, name, "refused: the worker's name belongs to another token");
        let owner = workers::owner(self.queue.pool(), name).await.map_err(database)?;
        let owner = owner.map_or_else(|| "TOKEN".to_owned(), |owner| owner.to_string());
        Err(Status::failed_precondition(format!(
            "worker name {name:?} belongs to another token: start this worker with another --name, \
             or free the name with `arbiter token revoke {owner}`"
        )))
    }

    /// Begins to store what a worker reports under a lease, whatever that is of. There is a future
    /// of this for every report, so it holds no more than it needs for its kind.
    pub(super) fn store(
        self: Arc<Self>,
        worker: WorkerId,
        lease: Lease,
        mut report: v1::Report,
        check: Option<&LotCheck>,
        came: Instant,
    ) -> Storing {
        let parent = TraceParent::carried(&report.trace);
        if let Some(tried) = report.trial.take() {
            let span = Span::follow("trial stored", parent.as_ref());
            return Box::pin(async move { self.end_trial(worker, lease, tried, came, span).await });
        }
        if lease.shadow().is_some() {
            return Box::pin(async move { self.end_shadow(worker, lease, report, came).await });
        }
        let span = Span::follow("report stored", parent.as_ref());
        let read = report::read(worker, report, self.now())
            .map_err(|error| format!("its report means nothing: {error}"))
            .and_then(|report| match check {
                Some(check) => {
                    check.check(&report).map(|()| report).map_err(|error| untrue(&error))
                }
                None => Ok(report),
            });
        let is_checked = check.is_some();
        Box::pin(async move {
            match read {
                Ok(report) => self.end_lot(report, is_checked, came, span).await,
                Err(reason) => Box::pin(self.malformed(worker, lease, reason, came)).await,
            }
        })
    }

    /// Stores what the matches of a lot came to.
    async fn end_lot(
        &self,
        report: Report,
        is_checked: bool,
        came: Instant,
        mut span: Span,
    ) -> Result<Verdict, Status> {
        let (worker, lease) = (report.worker, report.lease);
        let malformed = |reason| Box::pin(self.malformed(worker, lease, reason, came));
        if !is_checked {
            match Box::pin(self.implausible(&report)).await {
                Ok(None) => {}
                Ok(Some(reason)) => return malformed(reason).await,
                Err(error) => return Ok(self.postponed(worker, lease, &error)),
            }
        }
        let (matches, losses) = (report.results.len(), TimeLosses::of(&report));
        let stored = match self.reporter.report(report).await {
            Ok(queue::Verdict::Malformed) => {
                return malformed("its report does not tell of its matches".to_owned()).await;
            }
            Ok(stored) => stored,
            Err(ReportError::Database(error)) if db::is_refused(&error) => {
                return malformed(format!("its report cannot be stored: {error}")).await;
            }
            Err(ReportError::Stopped) => {
                return Err(Status::unavailable(ReportError::Stopped.to_string()));
            }
            Err(error) => return Ok(self.postponed(worker, lease, &error)),
        };
        span.set("verdict", format!("{stored:?}"));
        if stored == queue::Verdict::Accepted {
            self.queue.metrics().stored(matches, losses);
        }
        self.queue.metrics().judged(lease, stored, came);
        tracing::debug!(%lease, verdict = ?stored, trace_id = span.trace_id(), "reported");
        // What waited for this lot may be leased now.
        self.dispatcher.news();
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
            Err(HandoutError::Database { cause, .. }) => Err(cause),
            Err(error) => Ok(Some(format!("its report is of no use: {error}"))),
        }
    }

    /// Stores what a trial came to.
    async fn end_trial(
        &self,
        worker: WorkerId,
        lease: Lease,
        tried: v1::TrialReport,
        came: Instant,
        mut span: Span,
    ) -> Result<Verdict, Status> {
        let (outcome, program) = match trial::read(worker, lease, tried) {
            Ok(read) => read,
            Err(error) => {
                let reason = format!("its report means nothing: {error}");
                return self.malformed(worker, lease, reason, came).await;
            }
        };
        // What fails with a trace costs it no more than a turn.
        let parent = span.context();
        if let (None, Some(parent)) = (&outcome.verdict, &parent) {
            // Before it enters: an edition that shows it goes on from here.
            drop(traces::move_version(self.queue.pool(), lease, parent).await);
        }
        match self.queue.end_trial(&outcome, &program, self.now()).await {
            Ok(stored) => {
                if parent.is_some() {
                    drop(traces::forget_failed(self.queue.pool(), lease).await);
                }
                let verdict = outcome.verdict.as_deref().unwrap_or("passed");
                span.set("verdict", verdict.to_owned());
                let trace_id = span.trace_id();
                tracing::info!(%lease, verdict, fate = ?stored, trace_id, "a trial is over");
                self.queue.metrics().judged(lease, stored, came);
                self.changes.tell();
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
    pub(in crate::rpc) fn postponed(
        &self,
        worker: WorkerId,
        lease: Lease,
        error: &dyn std::error::Error,
    ) -> Verdict {
        tracing::warn!(%worker, %lease, %error, "a report cannot be stored yet; it is postponed");
        self.queue.metrics().postponed();
        let reason = error.to_string().chars().take(REASON).collect();
        Verdict { lease: Some(lease.into()), fate: Fate::Postponed.into(), reason }
    }

    /// A report that will never be stored: the attempt has failed.
    pub(in crate::rpc) async fn malformed(
        &self,
        worker: WorkerId,
        lease: Lease,
        reason: String,
        came: Instant,
    ) -> Result<Verdict, Status> {
        tracing::error!(%worker, %lease, reason, "a report is refused");
        self.queue.metrics().judged(lease, queue::Verdict::Malformed, came);
        let reason: String = reason.chars().take(REASON).collect();
        let told = reason.clone();
        let failure = Failure { lease, by: Some(worker), kind: FaultKind::Report, reason: told };
        if let Err(error) = self.queue.fail(&[failure]).await {
            tracing::warn!(%lease, %error, "its fault is not noted; the lease will run out");
        }
        self.dispatcher.news();
        Ok(Verdict { lease: Some(lease.into()), fate: Fate::Malformed.into(), reason })
    }
}

/// What is wrong with a report that cannot be that of its lot.
fn untrue(error: &Implausible) -> String {
    format!("its report cannot be true: {error}")
}

/// What a suspended worker is told: how its reports are judged is for organisers to see.
pub(super) fn suspended(reason: &str) -> Status {
    tracing::warn!(reason, "a suspended worker is refused");
    Status::failed_precondition(
        "this worker is suspended: it gets nothing to play, and its reports are refused; ask the \
         organiser (arbiter workers)",
    )
}

/// What became of a report, as a message.
pub(in crate::rpc) fn judged(lease: Lease, verdict: queue::Verdict) -> Verdict {
    let fate = match verdict {
        queue::Verdict::Accepted => Fate::Accepted,
        queue::Verdict::Repeated => Fate::Repeated,
        queue::Verdict::Late | queue::Verdict::Foreign => Fate::Late,
        queue::Verdict::Malformed => Fate::Malformed,
    };
    Verdict { lease: Some(lease.into()), fate: fate.into(), reason: String::new() }
}

//! Prometheus metrics, in the `OpenMetrics` text format.
//!
//! There are two kinds. Events are counted by atomics in this process and start at 0 with it. State
//! is read from the database (`database_collector.rs`): every coordinator reports the same values,
//! and they equal what SQL counts.
//!
//! Labels have few values: running tournaments, games, states and routes. No label names a bot or
//! an owner; workers are named for their audits alone.

mod database_collector;
mod request_metrics;

use sqlx::PgPool;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arbiter_games::{Forfeit, string_enum};
use arbiter_proto::ids::Lease;
use arbiter_proto::{labels, metrics};
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::database_clock::Clock;
use crate::db::forfeit_evidence::Evidence;
use crate::db::lots::ReportStatus;
use crate::leader_election::Leadership;

pub(crate) use database_collector::DatabaseCollector;
pub(crate) use request_metrics::{count_call, count_request};

/// The content type of the text once its end mark is appended.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of latency buckets, in seconds.
const LATENCY_BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// A bot that lost on time was idle if it used the processor for less than 1/2 of the wall-clock
/// time. Then the bot waited for something, or its machine was too busy.
const IDLE_BELOW: i64 = 2;

string_enum! {
    /// A refused operation on another worker's lease.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum LeaseOperation {
        /// Report its results.
        Report = "report",
        /// Extend its deadline.
        Renewal = "renewal",
        /// Return it unplayed.
        Return = "return",
        /// Report a fault.
        Fault = "fault",
    }
}

labels! {
    /// The kind of leased work: a lot, a trial or a shadow match.
    LeaseLabels { kind: &'static str }
    ReportLabels { kind: &'static str, status: &'static str }
    /// The operation on another worker's lease.
    OperationLabels { operation: &'static str }
    /// Whether the bot's processor was busy or idle.
    TimeLossLabels { cpu: &'static str }
    /// The background task.
    TaskLabels { task: &'static str }
}

metrics! {
    /// Events in this coordinator.
    pub struct Metrics {
        leases: Family<LeaseLabels, Counter> => "leases",
            "Leases that this coordinator created, sent or not";
        pub(crate) returned: Counter => "leases_returned",
            "Leases that workers returned unplayed, or that could not be sent";
        pub(crate) expired: Counter => "leases_expired", "Leases that expired";
        dispatch: Histogram = latencies() => "dispatch_duration" in Seconds,
            "From the moment a slot asked and work was available until the work was sent";
        reports: Family<ReportLabels, Counter> => "reports", "Reports by status";
        pub(crate) deferred: Counter => "reports_deferred",
            "Reports that could not be stored; their workers send them again";
        report: Histogram = latencies() => "report_duration" in Seconds,
            "From the arrival of a report until its status is known";
        refused_operations: Family<OperationLabels, Counter> => "lease_requests_refused",
            "Requests of workers about leases of other workers; they had no effect";
        pub(crate) bundles_refused: Counter => "bundles_refused",
            "Bundles that workers requested without a lease that needs them";
        matches_reported: Counter => "matches_reported", "Matches in accepted reports";
        time_losses: Family<TimeLossLabels, Counter> => "time_losses",
            "Losses on time in accepted reports; the processor was idle if the bot used it for \
            less than half of the time: the bot waited, or its machine kept it waiting";
        pub(crate) editions_opened: Counter => "editions_opened",
            "Editions that this coordinator opened after a change";
        pub(crate) editions_completed: Counter => "editions_completed",
            "Editions that this coordinator completed";
        pub(crate) editions_failed: Counter => "editions_failed",
            "Editions that could not be opened; the organiser sees the reason";
        failures: Family<TaskLabels, Counter> => "background_failures",
            "Failures of background tasks; they are retried";
        pub(crate) edition_reads: Counter => "edition_watch_reads",
            "Reads of editions for their watchers; one read serves all watchers of an edition";
        pub(crate) live_viewers: Gauge => "live_viewers", "Browsers with live updates";
        pub(crate) worker_streams: Gauge => "worker_streams",
            "Open streams of workers to this coordinator";
        leader: Gauge => "leader", "Whether this coordinator is the leader";
        clock_skew: Gauge<f64, AtomicU64> => "clock_skew" in Seconds,
            "How far this host's clock is ahead of the database's, which is authoritative";
    }
    with {
        requests: request_metrics::RequestMetrics,
        /// The state in the database.
        pub(crate) database: DatabaseCollector,
    }
}

impl Metrics {
    /// All metrics at 0.
    pub(crate) fn new() -> Self {
        let metrics = Self::default();
        metrics.create_series();
        metrics
    }

    /// Creates every series at 0: `rate` misses the first event of a series that appears with it.
    fn create_series(&self) {
        for kind in [LOT, TRIAL, SHADOW_MATCH] {
            drop(self.leases.get_or_create(&LeaseLabels { kind }));
            for status in ReportStatus::ALL.map(ReportStatus::as_str) {
                drop(self.reports.get_or_create(&ReportLabels { kind, status }));
            }
        }
        for operation in LeaseOperation::ALL.map(LeaseOperation::as_str) {
            drop(self.refused_operations.get_or_create(&OperationLabels { operation }));
        }
        for cpu in [IDLE, BUSY] {
            drop(self.time_losses.get_or_create(&TimeLossLabels { cpu }));
        }
        for task in BackgroundTask::ALL.map(BackgroundTask::as_str) {
            drop(self.failures.get_or_create(&TaskLabels { task }));
        }
    }

    /// Counts new leases.
    pub(crate) fn record_leases(&self, leases: &[Lease]) {
        for lease in leases {
            self.leases.get_or_create(&LeaseLabels { kind: kind(*lease) }).inc();
        }
    }

    /// Records how long a worker waited for available work.
    pub(crate) fn record_dispatch(&self, duration: Duration) {
        self.dispatch.observe(duration.as_secs_f64());
    }

    /// Counts a report by its status.
    pub(crate) fn record_report(&self, lease: Lease, status: ReportStatus, arrived: Instant) {
        let labels = ReportLabels { kind: kind(lease), status: status.as_str() };
        self.reports.get_or_create(&labels).inc();
        self.report.observe(arrived.elapsed().as_secs_f64());
    }

    /// Counts a request about another worker's lease.
    pub(crate) fn record_refused(&self, operation: LeaseOperation) {
        let labels = OperationLabels { operation: operation.as_str() };
        self.refused_operations.get_or_create(&labels).inc();
    }

    /// Counts the matches of an accepted report, and its losses on time.
    pub(crate) fn record_matches(&self, matches: usize, losses: TimeLosses) {
        self.matches_reported.inc_by(matches as u64);
        for (cpu, count) in [(IDLE, losses.idle), (BUSY, losses.busy)] {
            if count > 0 {
                self.time_losses.get_or_create(&TimeLossLabels { cpu }).inc_by(count);
            }
        }
    }

    /// Counts a failure of a background task.
    pub(crate) fn record_failure(&self, task: BackgroundTask) {
        self.failures.get_or_create(&TaskLabels { task: task.as_str() }).inc();
    }

    /// Appends the metrics of this process to a text.
    fn encode(&self, text: &mut String) -> fmt::Result {
        let mut registry = Registry::with_prefix("arbiter");
        self.register(&mut registry);
        self.requests.register(&mut registry);
        encode_registry(text, &registry)
    }
}

string_enum! {
    /// A background task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum BackgroundTask {
        Allocator = "allocator",
        Maintenance = "maintenance",
        Opener = "opener",
        Auditor = "auditor",
    }
}

/// How many bots of a report lost on time, by whether their processors were idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeLosses {
    idle: u64,
    busy: u64,
}

impl TimeLosses {
    /// Counts the losses on time in a report.
    pub(crate) fn of(evidence: &[Evidence]) -> Self {
        let mut losses = Self::default();
        for forfeit in
            evidence.iter().filter(|evidence| evidence.detail.starts_with(Forfeit::Clock.as_str()))
        {
            if forfeit.cpu_us.saturating_mul(IDLE_BELOW) < forfeit.wall_us {
                losses.idle += 1;
            } else {
                losses.busy += 1;
            }
        }
        losses
    }
}

/// Increments a gauge, and decrements it when dropped.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl GaugeGuard {
    /// Increments a gauge.
    pub(crate) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Metrics and readiness of a running coordinator, for operators.
#[derive(Clone, Debug)]
pub struct Observer(Arc<Sources>);

/// The sources that an [`Observer`] reads.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) pool: PgPool,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) leadership: Leadership,
    pub(crate) clock: Clock,
    /// The duration of a lease. A worker that was silent for longer is not connected.
    pub(crate) lease: time::Duration,
}

impl Observer {
    pub(crate) fn new(sources: Sources) -> Self {
        Self(Arc::new(sources))
    }

    /// Appends all metrics to a text. If the database does not respond, its metrics are missing and
    /// `arbiter_database_up` is 0.
    pub async fn encode(&self, text: &mut String) -> fmt::Result {
        let metrics = &self.0.metrics;
        metrics.leader.set(self.is_leader().into());
        metrics.clock_skew.set(self.0.clock.skew().as_seconds_f64());
        metrics.encode(text)?;
        metrics.database.encode(&self.0, text).await
    }

    /// Whether the database responds.
    pub async fn is_ready(&self) -> bool {
        crate::db::server_version(&self.0.pool).await.is_ok()
    }

    /// Whether this coordinator is the leader.
    pub(crate) fn is_leader(&self) -> bool {
        self.0.leadership.holds()
    }
}

const LOT: &str = "lot";
const TRIAL: &str = "trial";
const SHADOW_MATCH: &str = "shadow";
const IDLE: &str = "idle";
const BUSY: &str = "busy";

/// The `kind` label of a lease.
fn kind(lease: Lease) -> &'static str {
    match (lease.version(), lease.shadow()) {
        (Some(_), _) => TRIAL,
        (_, Some(_)) => SHADOW_MATCH,
        _ => LOT,
    }
}

fn latencies() -> Histogram {
    Histogram::new(LATENCY_BUCKETS)
}

//! Metrics of a worker in the `OpenMetrics` text format.
//!
//! All counters are 0 when the worker starts. A match costs a few atomic operations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arbiter_games::{Forfeit, Game, Micros, string_enum};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::level::Level;
use arbiter_proto::{labels, metrics, v1};
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::match_runner::MatchOutcome;
use crate::sandbox::Host;
use crate::spool::Spool;

/// Histogram buckets of match durations, in seconds.
const MATCH_BUCKETS: [f64; 12] =
    [0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0];
/// Histogram buckets of bot start-up times, in seconds.
const START_BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Histogram buckets of the used clock margin, in seconds. The official margin is 20 ms.
const MARGIN_BUCKETS: [f64; 9] = [0.0, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.05];

/// If a bot loses on time, its processor counts as idle if the bot used less than one half (1/2) of
/// the wall-clock time.
const BUSY_DIVISOR: i64 = 2;

labels! {
    GameLabels { game: String }
    ForfeitLabels { game: String, kind: &'static str }
    TimeLossLabels { processor: &'static str }
    JobLabels { kind: &'static str, outcome: &'static str }
    FaultLabels { kind: &'static str }
    ReportLabels { status: &'static str }
    SlotLabels { state: &'static str }
}

string_enum! {
    /// The state of a slot, as a metrics label.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum SlotActivity {
        Idle = "idle",
        Pausing = "pausing",
        Fetching = "fetching",
        Playing = "playing",
        Recovering = "recovering",
    }
}

string_enum! {
    /// How a job ended, as a metrics label.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum JobOutcomeLabel {
        /// Its report is in the spool.
        Reported = "reported",
        /// The stop signal ended it.
        Stopped = "stopped",
        /// A fault ended it.
        Failed = "failed",
    }
}

type DurationFamily = Family<GameLabels, Histogram, fn() -> Histogram>;

metrics! {
    /// Counters and histograms of events.
    struct Counters {
        matches: Family<GameLabels, Counter> => "matches", "Matches played to the end";
        match_time: DurationFamily = DurationFamily::new_with_constructor(|| Histogram::new(MATCH_BUCKETS))
            => "match" in Seconds, "Duration of matches";
        forfeits: Family<ForfeitLabels, Counter> => "forfeits", "Forfeits in matches";
        time_losses: Family<TimeLossLabels, Counter> => "time_losses",
            "Losses on time. processor=\"idle\": the bot used less than half of the time, because \
            it or the machine waited";
        starts: Histogram = Histogram::new(START_BUCKETS) => "bot_start" in Seconds,
            "Time to start a bot in its sandbox";
        margins: Histogram = Histogram::new(MARGIN_BUCKETS) => "margin_used" in Seconds,
            "Largest part of the clock's margin used by a reply of a match";
        slots: Family<SlotLabels, Gauge> => "slots", "Slots by state";
        jobs: Family<JobLabels, Counter> => "jobs", "Lots and trials by outcome";
        faults: Family<FaultLabels, Counter> => "faults", "Failed attempts by kind of fault";
        acknowledgements: Family<ReportLabels, Counter> => "report_acknowledgements",
            "Reports by the coordinator's response";
        leases_lost: Counter => "leases_lost", "Leases lost while their jobs ran";
        prepared: Counter => "jobs_prepared", "Jobs whose bundles were cached or fetched";
        connections: Counter => "connections", "Connections to the coordinator";
    }
}

metrics! {
    /// State of the worker.
    struct Gauges {
        strict: Gauge => "sandbox_strict",
            "Whether the sandbox gives all guarantees for official matches";
        prepared: Gauge<f64, AtomicU64> => "sandbox_prepare" in Seconds,
            "Duration of the sandbox's self-test at start";
        connected: Gauge => "connected", "Whether the worker is connected to a coordinator";
        reports: Gauge => "spool_reports", "Unacknowledged reports in the spool";
        bytes: Gauge => "spool" in Bytes, "Size of the unacknowledged reports";
        refused: Gauge => "refused_reports",
            "Refused reports in the spool's folder refused";
    }
}

/// The metrics of a worker.
#[derive(Debug)]
pub struct Metrics {
    spool: Arc<Spool>,
    level: Level,
    counters: Counters,
    gauges: Gauges,
}

impl Metrics {
    /// `prepare_seconds`: duration of the self-test of `host`.
    pub(crate) fn new(spool: Arc<Spool>, host: &Host, prepare_seconds: f64) -> Self {
        let level = host.level();
        let gauges = Gauges::default();
        gauges.strict.set(level.is_strict().into());
        gauges.prepared.set(prepare_seconds);
        let metrics = Self { spool, level, counters: Counters::default(), gauges };
        metrics.initialise_series();
        metrics
    }

    /// Creates every series with the value 0.
    fn initialise_series(&self) {
        for kind in ["lot", "trial"] {
            for outcome in
                [JobOutcomeLabel::Reported, JobOutcomeLabel::Stopped, JobOutcomeLabel::Failed]
            {
                drop(
                    self.counters
                        .jobs
                        .get_or_create(&JobLabels { kind, outcome: outcome.as_str() }),
                );
            }
        }
        for kind in [
            FaultKind::System,
            FaultKind::Unclean,
            FaultKind::Panic,
            FaultKind::Inputs,
            FaultKind::Rules,
        ] {
            drop(self.counters.faults.get_or_create(&FaultLabels { kind: kind.as_str() }));
        }
        for processor in ["idle", "busy"] {
            drop(self.counters.time_losses.get_or_create(&TimeLossLabels { processor }));
        }
        for status in ["accepted", "duplicate", "late", "refused"] {
            drop(self.counters.acknowledgements.get_or_create(&ReportLabels { status }));
        }
        self.set_slots([]);
    }

    /// Counts a finished match.
    pub(crate) fn record_match(&self, game: &Game, outcome: &MatchOutcome) {
        let labels = GameLabels { game: game.to_string() };
        self.counters.matches.get_or_create(&labels).inc();
        self.counters.match_time.get_or_create(&labels).observe(seconds(outcome.wall_time));
        self.counters.margins.observe(seconds(outcome.margin_used));
        outcome
            .startup_times
            .iter()
            .for_each(|start| self.counters.starts.observe(seconds(*start)));
        for (result, summary) in outcome.results.iter().zip(&outcome.seats) {
            let Some(forfeit) = result.forfeit else { continue };
            let kind = forfeit.as_str();
            let game = labels.game.clone();
            self.counters.forfeits.get_or_create(&ForfeitLabels { game, kind }).inc();
            if forfeit == Forfeit::Clock {
                let was_idle =
                    summary.spent.cpu.0.saturating_mul(BUSY_DIVISOR) < summary.spent.wall.0;
                let processor = if was_idle { "idle" } else { "busy" };
                self.counters.time_losses.get_or_create(&TimeLossLabels { processor }).inc();
            }
        }
    }

    /// Counts a finished job.
    pub(crate) fn record_job(&self, is_trial: bool, outcome: JobOutcomeLabel) {
        let kind = if is_trial { "trial" } else { "lot" };
        self.counters.jobs.get_or_create(&JobLabels { kind, outcome: outcome.as_str() }).inc();
    }

    /// Counts a failed attempt.
    pub(crate) fn record_fault(&self, kind: v1::FaultKind) {
        self.counters
            .faults
            .get_or_create(&FaultLabels { kind: FaultKind::from(kind).as_str() })
            .inc();
    }

    /// Counts the acknowledgement of a report.
    pub(crate) fn record_acknowledgement(&self, status: v1::ReportStatus) {
        let status = match status {
            v1::ReportStatus::Unspecified => "unknown",
            v1::ReportStatus::Accepted => "accepted",
            v1::ReportStatus::Duplicate => "duplicate",
            v1::ReportStatus::Late => "late",
            v1::ReportStatus::Refused => "refused",
            v1::ReportStatus::Postponed => "postponed",
        };
        self.counters.acknowledgements.get_or_create(&ReportLabels { status }).inc();
    }

    /// Counts a lost lease.
    pub(crate) fn record_lost_lease(&self) {
        self.counters.leases_lost.inc();
    }

    /// Counts a job whose inputs are complete.
    pub(crate) fn record_prepared_job(&self) {
        self.counters.prepared.inc();
    }

    /// Sets the gauges of slots by activity.
    pub(crate) fn set_slots(&self, slots: impl IntoIterator<Item = SlotActivity>) {
        let mut activity: BTreeMap<SlotActivity, i64> =
            SlotActivity::ALL.map(|activity| (activity, 0)).into();
        for slot in slots {
            *activity.entry(slot).or_default() += 1;
        }
        for (activity, count) in activity {
            self.counters.slots.get_or_create(&SlotLabels { state: activity.as_str() }).set(count);
        }
    }

    /// Records whether the worker is connected.
    pub(crate) fn set_connected(&self, connected: bool) {
        if connected {
            self.counters.connections.inc();
        }
        self.gauges.connected.set(connected.into());
    }

    /// Whether the worker is connected, so that it can receive jobs.
    pub fn is_connected(&self) -> bool {
        self.gauges.connected.get() == 1
    }

    /// Appends all metrics to `text`.
    pub fn encode(&self, text: &mut String) -> fmt::Result {
        let Gauges { reports, bytes, refused, .. } = &self.gauges;
        let (count, size) = self.spool.count_and_bytes();
        for (gauge, value) in
            [(reports, count), (bytes, size), (refused, self.spool.count_refused())]
        {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let mut registry = Registry::with_prefix("arbiter_worker");
        self.counters.register(&mut registry);
        let level = Info::new([("level", self.level.as_str())]);
        registry.register("sandbox", "Isolation level of bots", level);
        self.gauges.register(&mut registry);
        encode_registry(text, &registry)
    }
}

fn seconds(time: Micros) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no match takes hundreds of years")]
    let micros = time.0.max(0) as f64;
    micros / 1e6
}

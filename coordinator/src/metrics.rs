//! Figures for Prometheus, in the text of `OpenMetrics`.
//!
//! There are two kinds. What *happens* here is counted in this process, by atomics, and begins at
//! nothing when it starts. What there *is* comes from the database (`database_collector.rs`), whoever brought it
//! about: any coordinator says the same, and it is exactly what SQL counts.
//!
//! Labels take few values: names of tournaments that are being played, of games, of states, of
//! routes. No label names a bot, an owner or a worker.

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
use crate::db::evidence::Evidence;
use crate::db::lots::Verdict;
use crate::leader_election::Leadership;

pub(crate) use database_collector::DatabaseCollector;
pub(crate) use request_metrics::{count_call, count_request};

/// The type of the text, with the mark of its end behind it.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the times of what takes a moment, in seconds.
const MOMENTS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// A bot that used less of a processor than this part of the time that it lost by was waiting:
/// for something of its own, or for a machine that kept it waiting.
const BUSY: i64 = 2;

string_enum! {
    /// What a worker wanted with a lease of another one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Refused {
        /// To report it.
        Report = "report",
        /// To put off its deadline.
        Renewal = "renewal",
        /// To give it back.
        GiveBack = "give_back",
        /// To fail it.
        Fault = "fault",
    }
}

labels! {
    /// A lot, a trial or a second play.
    Of { of: &'static str }
    /// What became of a report of such.
    Judged { of: &'static str, verdict: &'static str }
    /// What a worker wanted with a lease of another one.
    Wanted { what: &'static str }
    /// Whether a bot that lost by the clock had used its processor.
    TimeLoss { processor: &'static str }
    /// Which work in the background.
    Work { work: &'static str }
}

metrics! {
    /// What happens in a coordinator, counted.
    pub struct Metrics {
        leases: Family<Of, Counter> => "leases",
            "Leases that this coordinator made, whether or not they could be handed out";
        pub(crate) given_back: Counter => "leases_given_back",
            "Leases that workers gave back, or that could not be sent";
        pub(crate) expired: Counter => "leases_expired", "Leases whose time ran out";
        handout: Histogram = moments() => "handout" in Seconds,
            "From the moment a slot asked, and something was there, until it was sent";
        reports: Family<Judged, Counter> => "reports", "Reports by what became of them";
        pub(crate) postponed: Counter => "reports_postponed",
            "Reports that could not be stored at present; their workers send them again";
        report: Histogram = moments() => "report" in Seconds,
            "From a report's arrival to its verdict";
        foreign: Family<Wanted, Counter> => "foreign_leases_refused",
            "What workers wanted with leases of other workers; it had no effect";
        pub(crate) bundles_refused: Counter => "bundles_refused",
            "Bundles that workers asked for without a lease that needs them";
        reported: Counter => "reported_matches", "Matches in accepted reports";
        time_losses: Family<TimeLoss, Counter> => "time_losses",
            "Forfeits by the clock in accepted reports; the processor was idle where the bot \
            used less than half of the time: it waited, or the machine kept it waiting";
        pub(crate) editions_opened: Counter => "editions_opened",
            "Editions that this coordinator opened because something changed";
        pub(crate) editions_completed: Counter => "editions_completed",
            "Editions that this coordinator made complete";
        pub(crate) editions_refused: Counter => "editions_refused",
            "Editions that could not be opened; the organiser is told why";
        failures: Family<Work, Counter> => "background_failures",
            "Rounds of work in the background that failed, and are tried again";
        pub(crate) edition_reads: Counter => "watched_edition_reads",
            "Times an edition was read for those who watch it, however many they are";
        pub(crate) viewers: Gauge => "live_viewers", "Browsers that watch something live";
        pub(crate) sessions: Gauge => "worker_streams", "Workers whose streams are open here";
        leader: Gauge => "leader", "Whether this coordinator does the upkeep of the database";
        clock_skew: Gauge<f64, AtomicU64> => "clock_skew" in Seconds,
            "How far this host's clock is ahead of the database's, which decides everything";
    }
    with {
        calls: request_metrics::RequestMetrics,
        /// What there is in the database, as it was read last.
        pub(crate) stock: DatabaseCollector,
    }
}

impl Metrics {
    /// All of them, each series at its beginning.
    pub(crate) fn new() -> Self {
        let metrics = Self::default();
        metrics.begin();
        metrics
    }

    /// Lets every series begin at nothing: one that appears with its first event hides that event
    /// from whoever asks for a rate.
    fn begin(&self) {
        for of in [OF_LOT, OF_TRIAL, OF_SHADOW] {
            drop(self.leases.get_or_create(&Of { of }));
            for verdict in Verdict::ALL {
                drop(self.reports.get_or_create(&Judged { of, verdict: verdict.as_str() }));
            }
        }
        for what in Refused::ALL {
            drop(self.foreign.get_or_create(&Wanted { what: what.as_str() }));
        }
        for processor in [IDLE, BUSY_WORD] {
            drop(self.time_losses.get_or_create(&TimeLoss { processor }));
        }
        for work in Background::ALL {
            drop(self.failures.get_or_create(&Work { work: work.as_str() }));
        }
    }

    /// Leases were made for those who asked.
    pub(crate) fn leased(&self, leases: &[Lease]) {
        for lease in leases {
            self.leases.get_or_create(&Of { of: of(*lease) }).inc();
        }
    }

    /// What was leased has been sent, so long after somebody asked and it was there.
    pub(crate) fn handed_out(&self, took: Duration) {
        self.handout.observe(took.as_secs_f64());
    }

    /// A report that came then was judged.
    pub(crate) fn judged(&self, lease: Lease, verdict: Verdict, came: Instant) {
        let judged = Judged { of: of(lease), verdict: verdict.as_str() };
        self.reports.get_or_create(&judged).inc();
        self.report.observe(came.elapsed().as_secs_f64());
    }

    /// A worker wanted something with a lease of another one.
    pub(crate) fn refused_foreign(&self, what: Refused) {
        self.foreign.get_or_create(&Wanted { what: what.as_str() }).inc();
    }

    /// Matches were stored, and so many bots had lost by the clock.
    pub(crate) fn stored(&self, matches: usize, losses: TimeLosses) {
        self.reported.inc_by(matches as u64);
        for (processor, count) in [(IDLE, losses.idle), (BUSY_WORD, losses.busy)] {
            if count > 0 {
                self.time_losses.get_or_create(&TimeLoss { processor }).inc_by(count);
            }
        }
    }

    /// A round of work in the background failed.
    pub(crate) fn failed(&self, work: Background) {
        self.failures.get_or_create(&Work { work: work.as_str() }).inc();
    }

    /// Writes what was counted.
    fn encode(&self, text: &mut String) -> fmt::Result {
        let mut registry = Registry::with_prefix("arbiter");
        self.register(&mut registry);
        self.calls.register(&mut registry);
        encode_registry(text, &registry)
    }
}

string_enum! {
    /// What goes on in the background.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Background {
        Allocator = "allocator",
        Maintenance = "upkeep",
        Opener = "opener",
        Auditor = "auditor",
    }
}

/// How many bots of a report lost by the clock, by whether they had used their processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeLosses {
    idle: u64,
    busy: u64,
}

impl TimeLosses {
    /// Those of a report.
    pub(crate) fn of(evidence: &[Evidence]) -> Self {
        let mut losses = Self::default();
        for found in
            evidence.iter().filter(|found| found.detail.starts_with(Forfeit::Clock.as_str()))
        {
            if found.cpu_us.saturating_mul(BUSY) < found.wall_us {
                losses.idle += 1;
            } else {
                losses.busy += 1;
            }
        }
        losses
    }
}

/// Something that is there, and counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Present(Gauge);

impl Present {
    /// One more in a gauge.
    pub(crate) fn enter(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Reads the figures of a running coordinator, for operators.
#[derive(Clone, Debug)]
pub struct Observer(Arc<Observed>);

/// What an [`Observer`] reads.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) pool: PgPool,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) leadership: Leadership,
    pub(crate) clock: Clock,
    /// How long a lease lasts: a worker that was not seen for so long is not connected.
    pub(crate) lease: time::Duration,
}

impl Observer {
    pub(crate) fn new(observed: Observed) -> Self {
        Self(Arc::new(observed))
    }

    /// Adds all figures to a text. Where the database does not answer those from it are missing,
    /// and `arbiter_database_up` is 0.
    pub async fn figures(&self, text: &mut String) -> fmt::Result {
        let metrics = &self.0.metrics;
        metrics.leader.set(self.leads().into());
        metrics.clock_skew.set(self.0.clock.skew().as_seconds_f64());
        metrics.encode(text)?;
        metrics.stock.encode(&self.0, text).await
    }

    /// Whether the database answers.
    pub async fn is_ready(&self) -> bool {
        crate::db::server_version(&self.0.pool).await.is_ok()
    }

    /// Whether this coordinator leads those of its database.
    pub(crate) fn leads(&self) -> bool {
        self.0.leadership.holds()
    }
}

const OF_LOT: &str = "lot";
const OF_TRIAL: &str = "trial";
const OF_SHADOW: &str = "shadow";
const IDLE: &str = "idle";
const BUSY_WORD: &str = "busy";

fn of(lease: Lease) -> &'static str {
    match (lease.version(), lease.shadow()) {
        (Some(_), _) => OF_TRIAL,
        (_, Some(_)) => OF_SHADOW,
        _ => OF_LOT,
    }
}

/// Times of what takes a moment.
fn moments() -> Histogram {
    Histogram::new(MOMENTS)
}

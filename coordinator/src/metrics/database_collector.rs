//! Metrics read from the database. Concurrent scrapes share one reading; the longer a reading
//! takes, the longer it is reused.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::EditionId;
use arbiter_proto::{labels, metrics};
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sqlx::{Error, PgConnection};
use time::OffsetDateTime;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::Sources;
use crate::db::editions::EditionState;
use crate::db::match_audits::{self, AuditKind, AuditState};
use crate::db::stats::{self, EditionStats, IncidentCounts};
use crate::db::{lots, worker_stats, worker_suspensions, workers};

/// A reading younger than this is reused.
const MIN_AGE: Duration = Duration::from_millis(500);
/// A reading is reused for this many times the time that it took, so that counting millions of
/// lots takes at most 1/20 of the database's time.
const REUSE_FACTOR: u32 = 20;
/// How long a reading may take. A scrape waits no longer.
const TIMEOUT: Duration = Duration::from_secs(8);
/// How long to wait after a failed reading.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// After this time since its end the sums of an edition no longer change.
const SETTLED: time::Duration = time::Duration::minutes(2);

/// The maximum number of workers with separate series.
const MAX_WORKERS: usize = 1000;

/// The states of trials.
const TRIALS: [&str; 5] = ["waiting", "leased", "passed", "failed", "aside"];

labels! {
    /// A running edition.
    EditionLabels { tournament: String, edition: i64 }
    /// The matches or lots of a tournament in a state.
    QueueLabels { tournament: String, state: &'static str }
    GameLabels { game: String }
    ForfeitLabels { game: String, kind: &'static str }
    KindLabels { kind: String }
    StateLabels { state: String }
    AuditLabels { worker: String, kind: &'static str, state: &'static str }
    WorkerLabels { worker: String }
}

/// Reads and caches metrics from the database.
#[derive(Debug, Default)]
pub(crate) struct DatabaseCollector(Mutex<CachedMetrics>);

/// The last reading.
#[derive(Debug, Default)]
struct CachedMetrics {
    reading: Option<Reading>,
    /// When the last reading failed, if it did.
    failed_at: Option<Instant>,
    /// Forfeits and bad replies of editions that are over.
    settled: BTreeMap<EditionId, IncidentCounts>,
}

/// Encoded metrics.
#[derive(Debug)]
struct Reading {
    at: Instant,
    duration: Duration,
    text: String,
}

impl DatabaseCollector {
    /// Appends the metrics to a text.
    pub(super) async fn encode(&self, sources: &Sources, text: &mut String) -> fmt::Result {
        // Concurrent scrapes wait for one reading.
        let mut cached = self.0.lock().await;
        let is_stale =
            |reading: &Reading| reading.at.elapsed() > MIN_AGE.max(reading.duration * REUSE_FACTOR);
        let must_wait = cached.failed_at.is_some_and(|failed| failed.elapsed() < RETRY_DELAY);
        if !must_wait && cached.reading.as_ref().is_none_or(is_stale) {
            cached.refresh(sources).await?;
        }
        let up = cached.failed_at.is_none();
        let mut registry = Registry::with_prefix("arbiter_database");
        PoolMetrics::read(sources, up).register(&mut registry);
        encode_registry(text, &registry)?;
        if let Some(reading) = cached.reading.as_ref().filter(|_| up) {
            text.push_str(&reading.text);
        }
        Ok(())
    }
}

metrics! {
    /// The connections to the database.
    struct PoolMetrics {
        up: Gauge => "up", "Whether the database responds";
        states: Family<StateLabels, Gauge> => "connections", "Connections to the database";
        max: Gauge => "connections_max", "Maximum number of connections";
    }
}

impl PoolMetrics {
    fn read(sources: &Sources, up: bool) -> Self {
        let pool = Self::default();
        pool.up.set(up.into());
        let size = i64::from(sources.pool.size());
        let idle = i64::try_from(sources.pool.num_idle()).unwrap_or(i64::MAX).min(size);
        for (state, count) in [("idle", idle), ("busy", size - idle)] {
            pool.states.get_or_create(&StateLabels { state: state.to_owned() }).set(count);
        }
        pool.max.set(sources.pool.options().get_max_connections().into());
        pool
    }
}

impl CachedMetrics {
    /// Reads the metrics, or records the failure.
    async fn refresh(&mut self, sources: &Sources) -> fmt::Result {
        let at = Instant::now();
        match timeout(TIMEOUT, self.read(sources)).await {
            Ok(Ok(metrics)) => {
                let mut text = String::new();
                let mut registry = Registry::with_prefix("arbiter");
                metrics.register(&mut registry);
                encode_registry(&mut text, &registry)?;
                self.reading = Some(Reading { at, duration: at.elapsed(), text });
                self.failed_at = None;
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot read metrics from the database");
                self.failed_at = Some(Instant::now());
            }
            // The sums of settled editions stay cached for the next reading.
            Err(_) => self.failed_at = Some(Instant::now()),
        }
        Ok(())
    }

    async fn read(&mut self, sources: &Sources) -> Result<DatabaseMetrics, Error> {
        let now = sources.clock.now();
        let metrics = DatabaseMetrics::default();
        let requested_at = Instant::now();
        let mut db = sources.pool.acquire().await?;
        metrics.connection_wait.set(requested_at.elapsed().as_secs_f64());
        let editions = stats::editions(&mut *db).await?;
        self.settled.retain(|id, _| editions.iter().any(|edition| edition.id == *id));
        for edition in &editions {
            metrics.edition(edition, self.incidents(&mut db, edition, now).await?);
            if edition.state == EditionState::Running {
                metrics.running(edition, &lots::census(&mut *db, edition.tournament).await?);
            }
        }
        for kind in FaultKind::ALL {
            drop(metrics.faults.get_or_create(&KindLabels { kind: kind.as_str().to_owned() }));
        }
        for (kind, count) in stats::faults(&mut *db).await? {
            metrics.faults.get_or_create(&KindLabels { kind }).inc_by(count.unsigned_abs());
        }
        for state in TRIALS {
            drop(metrics.trials.get_or_create(&StateLabels { state: state.to_owned() }));
        }
        for (state, count) in stats::trials(&mut *db).await? {
            metrics.trials.get_or_create(&StateLabels { state }).set(count);
        }
        metrics.audits(&mut db).await?;
        let since = now - sources.lease;
        let (known, connected, slots) = stats::workers(&mut *db, since).await?;
        metrics.workers.set(known);
        metrics.connected.set(connected);
        metrics.slots.set(slots);
        metrics.size.set(stats::bytes(&mut *db).await?);
        Ok(metrics)
    }

    /// Forfeits and bad replies of an edition. They are summed up once it is over, and then cached.
    async fn incidents(
        &mut self,
        db: &mut PgConnection,
        edition: &EditionStats,
        now: OffsetDateTime,
    ) -> Result<IncidentCounts, Error> {
        if let Some(incidents) = self.settled.get(&edition.id) {
            return Ok(*incidents);
        }
        let incidents = stats::incidents(db, edition.id).await?;
        if edition.ended_at.is_some_and(|ended| now - ended > SETTLED) {
            self.settled.insert(edition.id, incidents);
        }
        Ok(incidents)
    }
}

metrics! {
    /// The state in the database.
    struct DatabaseMetrics {
        planned: Family<EditionLabels, Gauge> => "edition_matches_planned",
            "Matches planned so far in a running edition";
        counted: Family<EditionLabels, Gauge> => "edition_matches_counted",
            "Matches in the standings of a running edition";
        matches: Family<QueueLabels, Gauge> => "queue_matches",
            "Matches of a tournament with a running edition by the state of their lots";
        lots: Family<QueueLabels, Gauge> => "queue_lots",
            "Lots of a tournament with a running edition by state";
        editions: Family<StateLabels, Gauge> => "editions", "Editions by state";
        counted_all: Family<GameLabels, Counter> => "matches_counted",
            "Matches in the standings of all editions; each edition counts its matches";
        forfeits: Family<ForfeitLabels, Counter> => "forfeits",
            "Forfeits in the standings of all editions";
        bad_answers: Family<GameLabels, Counter> => "bad_answers",
            "Bad answers without a forfeit, in the standings of all editions";
        faults: Family<KindLabels, Counter> => "faults",
            "Attempts at lots that failed without a bot's fault";
        trials: Family<StateLabels, Gauge> => "trials", "Trials of submitted versions by state";
        audits: Family<AuditLabels, Gauge> => "match_audits",
            "Audited matches, by the worker that reported them";
        false_time_losses: Family<WorkerLabels, Gauge> => "workers_false_time_losses",
            "Matches in which a bot lost on time, but not when another worker replayed them";
        residuals: Family<WorkerLabels, Gauge<f64, AtomicU64>> => "workers_residual_p_value",
            "Probability of a worker's results, if it is honest";
        suspended: Gauge => "workers_suspended", "Suspended workers";
        workers: Gauge => "workers_known", "Workers that have ever connected";
        connected: Gauge => "workers_connected", "Workers connected to any coordinator";
        slots: Gauge => "slots_connected", "Slots of connected workers";
        size: Gauge => "database_size" in Bytes, "Size of the database on disk";
        connection_wait: Gauge<f64, AtomicU64> => "database_connection_wait" in Seconds,
            "How long this reading waited for a connection to the database";
    }
}

impl DatabaseMetrics {
    fn edition(&self, edition: &EditionStats, incidents: IncidentCounts) {
        let state = edition.state.as_str().to_owned();
        self.editions.get_or_create(&StateLabels { state }).inc();
        let labels = GameLabels { game: edition.game.clone() };
        self.counted_all.get_or_create(&labels).inc_by(edition.counted.unsigned_abs());
        self.bad_answers.get_or_create(&labels).inc_by(incidents.bad_answers.unsigned_abs());
        let IncidentCounts { clock, illegal, gone, flood, .. } = incidents;
        let kinds = [("clock", clock), ("illegal", illegal), ("gone", gone), ("flood", flood)];
        for (kind, count) in kinds {
            let labels = ForfeitLabels { game: edition.game.clone(), kind };
            self.forfeits.get_or_create(&labels).inc_by(count.unsigned_abs());
        }
    }

    /// Adds the audits of the [`MAX_WORKERS`] workers that connected last.
    async fn audits(&self, db: &mut PgConnection) -> Result<(), Error> {
        let counts = match_audits::counts(&mut *db, None).await?;
        let residuals = worker_stats::residuals(&mut *db, None).await?;
        for row in workers::list(&mut *db).await?.into_iter().take(MAX_WORKERS) {
            let worker = row.name;
            for kind in [AuditKind::Recount, AuditKind::Shadow] {
                for state in [AuditState::Waiting, AuditState::Agreed, AuditState::Disagreed] {
                    let labels = AuditLabels {
                        worker: worker.clone(),
                        kind: kind.as_str(),
                        state: state.as_str(),
                    };
                    drop(self.audits.get_or_create(&labels));
                }
            }
            let worker_labels = WorkerLabels { worker: worker.clone() };
            let false_time_losses = self.false_time_losses.get_or_create(&worker_labels).clone();
            for count in counts.iter().filter(|count| count.worker == row.id) {
                let kind = count.kind.as_str();
                let state = count.state.as_str();
                let labels = AuditLabels { worker: worker.clone(), kind, state };
                self.audits.get_or_create(&labels).set(count.matches);
                false_time_losses.inc_by(count.false_time_losses);
            }
            if let Some((_, p)) = residuals.iter().find(|(id, _)| *id == row.id) {
                self.residuals.get_or_create(&worker_labels).set(*p);
            }
        }
        let suspended = worker_suspensions::all(&mut *db).await?.len();
        self.suspended.set(i64::try_from(suspended).unwrap_or(i64::MAX));
        Ok(())
    }

    fn running(&self, edition: &EditionStats, census: &[lots::Census]) {
        let tournament = edition.tournament_name.clone();
        let number = i64::from(edition.number);
        let labels = EditionLabels { tournament: tournament.clone(), edition: number };
        self.planned.get_or_create(&labels).set(edition.matches);
        self.counted.get_or_create(&labels).set(edition.counted);
        for lot in census {
            let tournament = tournament.clone();
            let state = lot.state.as_str();
            let labels = QueueLabels { tournament, state };
            self.matches.get_or_create(&labels).set(lot.matches);
            self.lots.get_or_create(&labels).set(lot.lots);
        }
    }
}

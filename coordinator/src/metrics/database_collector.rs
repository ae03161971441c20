//! What there is in the database, for whoever asks now and again: read for all who ask at a time,
//! and the less often the longer it takes.

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

use super::Observed;
use crate::db::editions::EditionState;
use crate::db::figures::{self, Counted, Wrongs};
use crate::db::match_audits::{self, AuditKind, AuditState};
use crate::db::{lots, suspensions, worker_figures, workers};

/// What was read stays true for so long, ...
const FRESH: Duration = Duration::from_millis(500);
/// ... or for so many times as long as it took to read: a database of millions of lots is not to be
/// busy with counting them.
const SHARE: u32 = 20;
/// How long the database may take to answer: whoever asks does not wait longer either.
const PATIENCE: Duration = Duration::from_secs(8);
/// So long nobody asks a database that did not answer.
const PAUSE: Duration = Duration::from_secs(2);
/// So long after its end nobody adds to the sums of an edition any more.
const SETTLED: time::Duration = time::Duration::minutes(2);

/// The most workers that have figures of their own.
const WORKERS: usize = 1000;

/// The states of trials.
const TRIALS: [&str; 5] = ["waiting", "leased", "passed", "failed", "aside"];

labels! {
    /// An edition that is being played.
    OfEdition { tournament: String, edition: i64 }
    /// What of it is in a state.
    InState { tournament: String, edition: i64, state: &'static str }
    OfGame { game: String }
    Forfeited { game: String, kind: &'static str }
    Kind { kind: String }
    State { state: String }
    Audited { worker: String, kind: &'static str, state: &'static str }
    OfWorker { worker: String }
}

/// What there is, as it was read last.
#[derive(Debug, Default)]
pub(crate) struct DatabaseCollector(Mutex<Shelf>);

/// What is kept between two readings.
#[derive(Debug, Default)]
struct Shelf {
    read: Option<Reading>,
    /// When it could not be read the last time.
    failed: Option<Instant>,
    /// What went wrong in editions that are over.
    settled: BTreeMap<EditionId, Wrongs>,
}

/// A reading.
#[derive(Debug)]
struct Reading {
    at: Instant,
    took: Duration,
    text: String,
}

impl DatabaseCollector {
    /// Adds what there is to a text.
    pub(super) async fn encode(&self, observed: &Observed, text: &mut String) -> fmt::Result {
        // Those who ask at the same time wait for one reading.
        let mut shelf = self.0.lock().await;
        let stale = |read: &Reading| read.at.elapsed() > FRESH.max(read.took * SHARE);
        let resting = shelf.failed.is_some_and(|failed| failed.elapsed() < PAUSE);
        if !resting && shelf.read.as_ref().is_none_or(stale) {
            shelf.read(observed).await?;
        }
        let up = shelf.failed.is_none();
        let mut registry = Registry::with_prefix("arbiter_database");
        Pool::of(observed, up).register(&mut registry);
        encode_registry(text, &registry)?;
        if let Some(read) = shelf.read.as_ref().filter(|_| up) {
            text.push_str(&read.text);
        }
        Ok(())
    }
}

metrics! {
    /// The connections to the database.
    struct Pool {
        up: Gauge => "up", "Whether the database answers";
        states: Family<State, Gauge> => "connections", "Connections to the database";
        allowed: Gauge => "connections_allowed", "Connections at most";
    }
}

impl Pool {
    fn of(observed: &Observed, up: bool) -> Self {
        let pool = Self::default();
        pool.up.set(up.into());
        let size = i64::from(observed.pool.size());
        let idle = i64::try_from(observed.pool.num_idle()).unwrap_or(i64::MAX).min(size);
        for (state, count) in [("idle", idle), ("busy", size - idle)] {
            pool.states.get_or_create(&State { state: state.to_owned() }).set(count);
        }
        pool.allowed.set(observed.pool.options().get_max_connections().into());
        pool
    }
}

impl Shelf {
    /// Reads what there is, or takes note that it cannot be read.
    async fn read(&mut self, observed: &Observed) -> fmt::Result {
        let at = Instant::now();
        match timeout(PATIENCE, self.look(observed)).await {
            Ok(Ok(figures)) => {
                let mut text = String::new();
                let mut registry = Registry::with_prefix("arbiter");
                figures.register(&mut registry);
                encode_registry(&mut text, &registry)?;
                self.read = Some(Reading { at, took: at.elapsed(), text });
                self.failed = None;
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "figures cannot be read");
                self.failed = Some(Instant::now());
            }
            // What was added up by now need not be added up again.
            Err(_) => self.failed = Some(Instant::now()),
        }
        Ok(())
    }

    async fn look(&mut self, observed: &Observed) -> Result<Figures, Error> {
        let now = observed.clock.now();
        let figures = Figures::default();
        let asked = Instant::now();
        let mut db = observed.pool.acquire().await?;
        figures.wait.set(asked.elapsed().as_secs_f64());
        let editions = figures::editions(&mut *db).await?;
        self.settled.retain(|id, _| editions.iter().any(|edition| edition.id == *id));
        for edition in &editions {
            figures.edition(edition, self.wrongs(&mut db, edition, now).await?);
            if edition.state == EditionState::Running {
                figures.running(edition, &lots::census(&mut *db, edition.id).await?);
            }
        }
        for kind in FaultKind::ALL {
            drop(figures.faults.get_or_create(&Kind { kind: kind.as_str().to_owned() }));
        }
        for (kind, count) in figures::faults(&mut *db).await? {
            figures.faults.get_or_create(&Kind { kind }).inc_by(count.unsigned_abs());
        }
        for state in TRIALS {
            drop(figures.trials.get_or_create(&State { state: state.to_owned() }));
        }
        for (state, count) in figures::trials(&mut *db).await? {
            figures.trials.get_or_create(&State { state }).set(count);
        }
        figures.audits(&mut db).await?;
        let since = now - observed.lease;
        let (known, connected, slots) = figures::workers(&mut *db, since).await?;
        figures.workers.set(known);
        figures.connected.set(connected);
        figures.slots.set(slots);
        figures.bytes.set(figures::bytes(&mut *db).await?);
        Ok(figures)
    }

    /// What went wrong in an edition: added up once, when it is over.
    async fn wrongs(
        &mut self,
        db: &mut PgConnection,
        edition: &Counted,
        now: OffsetDateTime,
    ) -> Result<Wrongs, Error> {
        if let Some(wrongs) = self.settled.get(&edition.id) {
            return Ok(*wrongs);
        }
        let wrongs = figures::wrongs(db, edition.id).await?;
        if edition.ended_at.is_some_and(|ended| now - ended > SETTLED) {
            self.settled.insert(edition.id, wrongs);
        }
        Ok(wrongs)
    }
}

metrics! {
    /// What was read.
    struct Figures {
        planned: Family<OfEdition, Gauge> => "edition_matches_planned",
            "Matches planned so far in a running edition";
        counted: Family<OfEdition, Gauge> => "edition_matches_counted",
            "Matches in the standings of a running edition";
        matches: Family<InState, Gauge> => "queue_matches",
            "Matches of a running edition by the state of their lots";
        lots: Family<InState, Gauge> => "queue_lots", "Lots of a running edition by state";
        editions: Family<State, Gauge> => "editions", "Editions by state";
        counted_all: Family<OfGame, Counter> => "matches_counted",
            "Matches in the standings of all editions, those taken over too";
        forfeits: Family<Forfeited, Counter> => "forfeits",
            "Forfeits in the standings of all editions";
        bad_answers: Family<OfGame, Counter> => "bad_answers",
            "Bad answers that were no forfeits, in the standings of all editions";
        faults: Family<Kind, Counter> => "faults",
            "Attempts at lots that failed through no bot's fault";
        trials: Family<State, Gauge> => "trials", "Trials of submitted versions by state";
        audits: Family<Audited, Gauge> => "match_audits",
            "Matches checked a second time, by the worker that reported them";
        false_time_losses: Family<OfWorker, Gauge> => "workers_false_time_losses",
            "Matches in which a bot lost by the clock and was in time when another worker \
            played them again";
        residuals: Family<OfWorker, Gauge<f64, AtomicU64>> => "workers_residual_p",
            "Probability of the results of a worker, if it is honest";
        suspended: Gauge => "workers_suspended", "Workers that are suspended";
        workers: Gauge => "workers_known", "Workers that have ever said hello";
        connected: Gauge => "workers_connected", "Workers that are connected to any coordinator";
        slots: Gauge => "slots_connected",
            "Matches that connected workers can play at the same time";
        bytes: Gauge => "database" in Bytes, "What the database takes up on its disk";
        wait: Gauge<f64, AtomicU64> => "database_wait" in Seconds,
            "How long these figures waited for a connection to the database";
    }
}

impl Figures {
    fn edition(&self, edition: &Counted, wrongs: Wrongs) {
        let state = edition.state.as_str().to_owned();
        self.editions.get_or_create(&State { state }).inc();
        let of = OfGame { game: edition.game.clone() };
        self.counted_all.get_or_create(&of).inc_by(edition.counted.unsigned_abs());
        self.bad_answers.get_or_create(&of).inc_by(wrongs.bad_answers.unsigned_abs());
        let Wrongs { clock, illegal, gone, flood, .. } = wrongs;
        let kinds = [("clock", clock), ("illegal", illegal), ("gone", gone), ("flood", flood)];
        for (kind, count) in kinds {
            let of = Forfeited { game: edition.game.clone(), kind };
            self.forfeits.get_or_create(&of).inc_by(count.unsigned_abs());
        }
    }

    /// What was found out about workers: of those that were connected last, [`WORKERS`] at most.
    async fn audits(&self, db: &mut PgConnection) -> Result<(), Error> {
        let counts = match_audits::counts(&mut *db, None).await?;
        let residuals = worker_figures::residuals(&mut *db, None).await?;
        for known in workers::list(&mut *db).await?.into_iter().take(WORKERS) {
            let worker = known.name;
            for kind in [AuditKind::Recount, AuditKind::Shadow] {
                for state in [AuditState::Waiting, AuditState::Agreed, AuditState::Disagreed] {
                    let of = Audited {
                        worker: worker.clone(),
                        kind: kind.as_str(),
                        state: state.as_str(),
                    };
                    drop(self.audits.get_or_create(&of));
                }
            }
            let of_worker = OfWorker { worker: worker.clone() };
            let false_time_losses = self.false_time_losses.get_or_create(&of_worker).clone();
            for count in counts.iter().filter(|count| count.worker == known.id) {
                let (kind, state) = (count.kind.as_str(), count.state.as_str());
                let of = Audited { worker: worker.clone(), kind, state };
                self.audits.get_or_create(&of).set(count.matches);
                false_time_losses.inc_by(count.false_time_losses);
            }
            if let Some((_, p)) = residuals.iter().find(|(id, _)| *id == known.id) {
                self.residuals.get_or_create(&of_worker).set(*p);
            }
        }
        let suspended = suspensions::all(&mut *db).await?.len();
        self.suspended.set(i64::try_from(suspended).unwrap_or(i64::MAX));
        Ok(())
    }

    fn running(&self, edition: &Counted, census: &[lots::Census]) {
        let (tournament, number) = (edition.tournament.clone(), i64::from(edition.number));
        let of = OfEdition { tournament: tournament.clone(), edition: number };
        self.planned.get_or_create(&of).set(edition.matches);
        self.counted.get_or_create(&of).set(edition.counted);
        for lot in census {
            let (tournament, state) = (tournament.clone(), lot.state.as_str());
            let within = InState { tournament, edition: number, state };
            self.matches.get_or_create(&within).set(lot.matches);
            self.lots.get_or_create(&within).set(lot.lots);
        }
    }
}

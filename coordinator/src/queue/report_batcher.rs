//! Many reports, one commit: what costs time is not a report but the disk's promise to keep it.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::{Queue, Report, UploadError, UploadedRecords};
use crate::db;
use crate::db::lots::Verdict;
use crate::record_store::RecordStore;

/// How long the first report of a batch waits for others.
const WAIT: Duration = Duration::from_millis(10);
/// So many lots are enough for a batch.
const LOTS: usize = 64;
/// So many may be in one that has to wait until it can be stored.
const MOST_LOTS: usize = 256;
/// So many matches are enough, whatever the lots.
const MATCHES: usize = 16_384;
/// So many bytes of records are enough: a batch is in memory twice while it is written.
const BYTES: usize = 32 << 20;
/// Reports that may wait for their batch before those who bring more must wait too.
const WAITING: usize = 4096;
/// Batches stored at the same time: one is written while the next is prepared.
const FLUSHES: usize = 3;

/// A report and who waits for its verdict.
#[derive(Debug)]
struct Job {
    report: Report,
    tell: oneshot::Sender<Result<Verdict, ReportError>>,
}

/// Why nothing is known of a report: it is to be repeated.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReportError {
    /// The database failed.
    #[error("cannot store a report: {0}")]
    Database(Arc<Error>),
    /// Its records cannot be kept.
    #[error("cannot keep the records of a report: {0}")]
    Records(Arc<UploadError>),
    /// The coordinator stops.
    #[error("the coordinator stops")]
    Stopped,
}

/// Takes reports, from anywhere.
#[derive(Clone, Debug)]
pub struct ReportSender {
    jobs: mpsc::Sender<Job>,
}

/// Gathers reports and stores them.
#[derive(Debug)]
pub struct ReportBatcher {
    queue: Queue,
    /// Where records are kept, if not in the database.
    store: Option<RecordStore>,
    jobs: mpsc::Receiver<Job>,
}

impl ReportSender {
    /// A reporter for a queue, and the collector that is to run beside it.
    pub fn new(queue: Queue) -> (Self, ReportBatcher) {
        let (sender, jobs) = mpsc::channel(WAITING);
        (Self { jobs: sender }, ReportBatcher { queue, store: None, jobs })
    }

    /// Stores a report together with others, and says what became of it once that is certain.
    ///
    /// # Errors
    /// If it is not: then the report is to be repeated.
    pub async fn report(&self, report: Report) -> Result<Verdict, ReportError> {
        let place = self.jobs.reserve().await.map_err(|_| ReportError::Stopped)?;
        let (tell, told) = oneshot::channel();
        place.send(Job { report, tell });
        told.await.map_err(|_| ReportError::Stopped)?
    }
}

impl ReportBatcher {
    /// The same, but that records are kept in a store, if there is one.
    #[must_use]
    pub fn with_store(self, store: Option<RecordStore>) -> Self {
        Self { store, ..self }
    }

    /// Stores what is reported, until every [`ReportSender`] is gone or `stop` says so: then no more is
    /// taken, and what came before is stored.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let free = Arc::new(Semaphore::new(FLUSHES));
        let mut flushes = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let first = tokio::select! {
                job = self.jobs.recv() => job,
                () = &mut stop, if !self.jobs.is_closed() => {
                    self.jobs.close();
                    continue;
                }
            };
            let Some(first) = first else { break };
            let (batch, permit) = self.gather(first, Arc::clone(&free)).await;
            let (queue, store) = (self.queue.clone(), self.store.clone());
            flushes.spawn(async move {
                flush(&queue, store.as_ref(), batch).await;
                drop(permit);
            });
            while flushes.try_join_next().is_some() {}
        }
        while flushes.join_next().await.is_some() {}
    }

    /// A batch that may be stored now: full, or as much as came in time.
    async fn gather(
        &mut self,
        first: Job,
        free: Arc<Semaphore>,
    ) -> (Batch, Option<OwnedSemaphorePermit>) {
        let deadline = Instant::now() + WAIT;
        let mut batch = Batch::of(first);
        while batch.has_room(LOTS) {
            let Ok(Some(job)) = timeout_at(deadline, self.jobs.recv()).await else { break };
            batch.add(job);
        }
        let mut turn = pin!(free.acquire_owned());
        loop {
            // While others are being stored, what comes goes with this one.
            tokio::select! {
                biased;
                permit = &mut turn => return (batch, permit.ok()),
                Some(job) = self.jobs.recv(), if batch.has_room(MOST_LOTS) => batch.add(job),
            }
        }
    }
}

/// Reports that are stored together, and who waits for their verdicts.
#[derive(Debug)]
struct Batch {
    reports: Vec<Report>,
    tell: Vec<oneshot::Sender<Result<Verdict, ReportError>>>,
    matches: usize,
    bytes: usize,
}

impl Batch {
    fn of(job: Job) -> Self {
        let mut batch = Self { reports: Vec::new(), tell: Vec::new(), matches: 0, bytes: 0 };
        batch.add(job);
        batch
    }

    fn add(&mut self, Job { report, tell }: Job) {
        self.matches += report.results.len();
        self.bytes += report.bytes();
        self.reports.push(report);
        self.tell.push(tell);
    }

    /// Whether more may be added to what should not be more than so many lots.
    fn has_room(&self, lots: usize) -> bool {
        self.reports.len() < lots && self.matches < MATCHES && self.bytes < BYTES
    }
}

/// Stores a batch. Where the database refuses it as a whole each report is stored by itself, so
/// that one that the database cannot take holds up no other.
async fn flush(queue: &Queue, store: Option<&RecordStore>, Batch { reports, tell, .. }: Batch) {
    let kept = match store {
        Some(store) => queue.keep(store, &reports, reports[0].at).await,
        None => Ok(UploadedRecords::default()),
    };
    let verdicts = match kept {
        Ok(kept) => store_batch(queue, &reports, &kept).await,
        Err(error) => {
            tracing::warn!(%error, "cannot keep records; their workers will repeat them");
            let error = ReportError::Records(Arc::new(error));
            reports.iter().map(|_| Err(error.clone())).collect()
        }
    };
    prolong(queue, &reports, &verdicts).await;
    for (tell, verdict) in tell.into_iter().zip(verdicts) {
        // A worker that has left will ask again.
        drop(tell.send(verdict));
    }
}

/// Stores a batch whose records are kept.
async fn store_batch(
    queue: &Queue,
    reports: &[Report],
    kept: &UploadedRecords,
) -> Vec<Result<Verdict, ReportError>> {
    match queue.report(reports, kept).await {
        Ok(verdicts) => verdicts.into_iter().map(Ok).collect(),
        Err(error @ Error::Database(_))
            if reports.len() > 1 && !db::is_away(&error) && !db::is_held(&error) =>
        {
            singly(queue, reports, kept).await
        }
        Err(error) => {
            let error = ReportError::Database(Arc::new(error));
            reports.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

/// Stores reports one by one. Where two cannot be stored at present it is not the reports' fault: the
/// others are left for later.
async fn singly(
    queue: &Queue,
    reports: &[Report],
    kept: &UploadedRecords,
) -> Vec<Result<Verdict, ReportError>> {
    let mut verdicts = Vec::with_capacity(reports.len());
    let mut postponed: Vec<Arc<Error>> = Vec::new();
    for report in reports {
        if let [_, last, ..] = &*postponed {
            verdicts.push(Err(ReportError::Database(Arc::clone(last))));
            continue;
        }
        let stored = queue.report(std::slice::from_ref(report), kept).await;
        verdicts.push(stored.map(|stored| stored[0]).map_err(|error| {
            let error = Arc::new(error);
            if !db::is_refused(&error) {
                postponed.push(Arc::clone(&error));
            }
            ReportError::Database(error)
        }));
    }
    verdicts
}

/// Renews the leases of reports that could not be stored. Their workers cannot while a transaction
/// that tries to store them has locked their lots, and that may have taken long.
async fn prolong(queue: &Queue, reports: &[Report], verdicts: &[Result<Verdict, ReportError>]) {
    let is_lost = |verdict: &&Result<_, ReportError>| match verdict {
        Err(ReportError::Database(error)) => !db::is_refused(error) && !db::is_away(error),
        Err(ReportError::Records(_)) => true,
        Ok(_) | Err(ReportError::Stopped) => false,
    };
    let mut leases: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (report, _) in reports.iter().zip(verdicts).filter(|(_, verdict)| is_lost(verdict)) {
        leases.entry(report.worker).or_default().push(report.lease);
    }
    for (worker, leases) in leases {
        // If this fails as well the worker renews them, as it does all the time.
        drop(queue.renew(Some(worker), &leases).await);
    }
}

//! Stores many reports in one commit: most of the cost of a report is the disk's flush.

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
use crate::db::lots::ReportStatus;
use crate::record_store::RecordStore;

/// How long the first report of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_millis(10);
/// A batch is stored once it has this many lots.
const FULL_LOTS: usize = 64;
/// Maximum number of lots in a batch that waits for earlier batches.
const MAX_LOTS: usize = 256;
/// Maximum number of matches in a batch.
const MAX_MATCHES: usize = 16_384;
/// Maximum size of records in a batch, in bytes. A batch is in memory twice while it is written.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of reports that wait for their batch. Further senders wait.
const QUEUE_LEN: usize = 4096;
/// Maximum number of batches that are stored at the same time.
const MAX_CONCURRENT_BATCHES: usize = 3;

/// A report, and where its status is sent.
#[derive(Debug)]
struct Job {
    report: Report,
    status: oneshot::Sender<Result<ReportStatus, ReportError>>,
}

/// Why the status of a report is unknown. The worker must send it again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReportError {
    /// The database failed.
    #[error("cannot store a report: {0}")]
    Database(Arc<Error>),
    /// Its records cannot be stored.
    #[error("cannot store the records of a report: {0}")]
    Records(Arc<UploadError>),
    /// The coordinator is stopping.
    #[error("the coordinator is stopping")]
    Stopped,
}

/// Sends reports to the batcher.
#[derive(Clone, Debug)]
pub struct ReportSender {
    jobs: mpsc::Sender<Job>,
}

/// Gathers reports into batches and stores them.
#[derive(Debug)]
pub struct ReportBatcher {
    queue: Queue,
    /// The record store, unless records are stored in the database.
    store: Option<RecordStore>,
    jobs: mpsc::Receiver<Job>,
}

impl ReportSender {
    /// A sender for a queue, and its batcher, which the caller must run.
    pub fn new(queue: Queue) -> (Self, ReportBatcher) {
        let (sender, jobs) = mpsc::channel(QUEUE_LEN);
        (Self { jobs: sender }, ReportBatcher { queue, store: None, jobs })
    }

    /// Stores a report together with others, and returns its status after the commit.
    ///
    /// # Errors
    /// If the status is unknown: the worker must send the report again.
    pub async fn report(&self, report: Report) -> Result<ReportStatus, ReportError> {
        let permit = self.jobs.reserve().await.map_err(|_| ReportError::Stopped)?;
        let (sender, status) = oneshot::channel();
        permit.send(Job { report, status: sender });
        status.await.map_err(|_| ReportError::Stopped)?
    }
}

impl ReportBatcher {
    /// Sets the record store.
    #[must_use]
    pub fn with_store(self, store: Option<RecordStore>) -> Self {
        Self { store, ..self }
    }

    /// Stores reports until all [`ReportSender`]s are dropped or `stop` completes. Reports that
    /// were sent before are still stored.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_BATCHES));
        let mut batches = JoinSet::new();
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
            let (batch, permit) = self.gather(first, Arc::clone(&permits)).await;
            let queue = self.queue.clone();
            let store = self.store.clone();
            batches.spawn(async move {
                flush(&queue, store.as_ref(), batch).await;
                drop(permit);
            });
            while batches.try_join_next().is_some() {}
        }
        while batches.join_next().await.is_some() {}
    }

    /// Gathers a batch until it is full or its time is over, and waits for a permit to store it.
    async fn gather(
        &mut self,
        first: Job,
        permits: Arc<Semaphore>,
    ) -> (Batch, Option<OwnedSemaphorePermit>) {
        let deadline = Instant::now() + BATCH_WAIT;
        let mut batch = Batch::of(first);
        while batch.has_room(FULL_LOTS) {
            let Ok(Some(job)) = timeout_at(deadline, self.jobs.recv()).await else { break };
            batch.add(job);
        }
        let mut acquiring = pin!(permits.acquire_owned());
        loop {
            // Reports that arrive while earlier batches are stored join this one.
            tokio::select! {
                biased;
                permit = &mut acquiring => return (batch, permit.ok()),
                Some(job) = self.jobs.recv(), if batch.has_room(MAX_LOTS) => batch.add(job),
            }
        }
    }
}

/// Reports that are stored together, and where their statuses are sent.
#[derive(Debug)]
struct Batch {
    reports: Vec<Report>,
    senders: Vec<oneshot::Sender<Result<ReportStatus, ReportError>>>,
    matches: usize,
    bytes: usize,
}

impl Batch {
    fn of(job: Job) -> Self {
        let mut batch = Self { reports: Vec::new(), senders: Vec::new(), matches: 0, bytes: 0 };
        batch.add(job);
        batch
    }

    fn add(&mut self, Job { report, status }: Job) {
        self.matches += report.results.len();
        self.bytes += report.bytes();
        self.reports.push(report);
        self.senders.push(status);
    }

    /// Whether a report may be added to a batch of at most this many lots.
    fn has_room(&self, max_lots: usize) -> bool {
        self.reports.len() < max_lots && self.matches < MAX_MATCHES && self.bytes < MAX_BYTES
    }
}

/// Stores a batch. If the database refuses it, each report is stored separately, so that an
/// invalid report does not affect the others.
async fn flush(queue: &Queue, store: Option<&RecordStore>, batch: Batch) {
    let Batch { reports, senders, .. } = batch;
    let uploaded = match store {
        Some(store) => queue.upload_records(store, &reports, reports[0].at).await,
        None => Ok(UploadedRecords::default()),
    };
    let statuses = match uploaded {
        Ok(uploaded) => store_batch(queue, &reports, &uploaded).await,
        Err(error) => {
            tracing::warn!(%error, "cannot store records; their workers will send them again");
            let error = ReportError::Records(Arc::new(error));
            reports.iter().map(|_| Err(error.clone())).collect()
        }
    };
    renew_unstored(queue, &reports, &statuses).await;
    for (sender, status) in senders.into_iter().zip(statuses) {
        // If the worker has disconnected, it sends its report again.
        drop(sender.send(status));
    }
}

/// Stores a batch whose records are uploaded.
async fn store_batch(
    queue: &Queue,
    reports: &[Report],
    uploaded: &UploadedRecords,
) -> Vec<Result<ReportStatus, ReportError>> {
    match queue.report(reports, uploaded).await {
        Ok(statuses) => statuses.into_iter().map(Ok).collect(),
        Err(error @ Error::Database(_))
            if reports.len() > 1 && !db::is_unavailable(&error) && !db::is_locked(&error) =>
        {
            store_separately(queue, reports, uploaded).await
        }
        Err(error) => {
            let error = ReportError::Database(Arc::new(error));
            reports.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

/// Stores reports one by one. After two transient failures the cause is the database, not the
/// reports, so the other reports get the same error.
async fn store_separately(
    queue: &Queue,
    reports: &[Report],
    uploaded: &UploadedRecords,
) -> Vec<Result<ReportStatus, ReportError>> {
    let mut statuses = Vec::with_capacity(reports.len());
    let mut transient: Vec<Arc<Error>> = Vec::new();
    for report in reports {
        if let [_, last, ..] = &*transient {
            statuses.push(Err(ReportError::Database(Arc::clone(last))));
            continue;
        }
        let stored = queue.report(std::slice::from_ref(report), uploaded).await;
        statuses.push(stored.map(|stored| stored[0]).map_err(|error| {
            let error = Arc::new(error);
            if !db::is_invalid_data(&error) {
                transient.push(Arc::clone(&error));
            }
            ReportError::Database(error)
        }));
    }
    statuses
}

/// Renews the leases of reports that could not be stored. Their workers could not renew them while
/// the failed transaction had locked their lots.
async fn renew_unstored(
    queue: &Queue,
    reports: &[Report],
    statuses: &[Result<ReportStatus, ReportError>],
) {
    let must_renew = |status: &&Result<_, ReportError>| match status {
        Err(ReportError::Database(error)) => {
            !db::is_invalid_data(error) && !db::is_unavailable(error)
        }
        Err(ReportError::Records(_)) => true,
        Ok(_) | Err(ReportError::Stopped) => false,
    };
    let mut leases: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (report, _) in reports.iter().zip(statuses).filter(|(_, status)| must_renew(status)) {
        leases.entry(report.worker).or_default().push(report.lease);
    }
    for (worker, leases) in leases {
        // If this fails, the worker's next renewal does it.
        drop(queue.renew(Some(worker), &leases).await);
    }
}

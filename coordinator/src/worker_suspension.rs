//! Suspension of workers that certainly or probably report false results. No coordinator gives a
//! suspended worker leases or accepts its reports.
//!
//! The table `suspensions` lists them. The transaction that stores a report checks the table. Each
//! coordinator also has a copy, [`Suspensions`], and ends the streams of suspended workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::WorkerId;
use serde_json::json;
use sqlx::{PgPool, Result};
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::db::{audit_log, worker_suspensions};

/// How often the suspensions are read, because another coordinator may have added one.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);

/// A worker that was suspended just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedWorker {
    /// The worker.
    pub worker: WorkerId,
    /// Its name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// Suspends a worker, and adds the suspension to the audit log. None if the worker is already
/// suspended.
pub(crate) async fn suspend(
    pool: &PgPool,
    worker: WorkerId,
    reason: &str,
    now: OffsetDateTime,
) -> Result<Option<SuspendedWorker>> {
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    let Some(name) = worker_suspensions::suspend(&mut *db, worker, reason, now).await? else {
        return Ok(None);
    };
    let detail = json!({ "reason": reason });
    audit_log::write(&mut *db, None, "worker suspend", &name, Some(&detail), now).await?;
    transaction.commit().await?;
    tracing::error!(%worker, name, reason, "worker suspended");
    Ok(Some(SuspendedWorker { worker, name, reason: reason.to_owned() }))
}

/// The suspended workers and the reasons, as this coordinator last read them.
#[derive(Clone, Debug, Default)]
pub struct Suspensions(Arc<watch::Sender<BTreeMap<WorkerId, String>>>);

impl Suspensions {
    /// Refreshes the suspensions repeatedly.
    pub(crate) async fn run(&self, pool: &PgPool) {
        let mut has_failed = false;
        loop {
            match self.refresh(pool).await {
                Ok(()) => has_failed = false,
                Err(error) if !has_failed => {
                    has_failed = true;
                    tracing::warn!(%error, "cannot read which workers are suspended; retrying");
                }
                Err(_) => {}
            }
            tokio::time::sleep(REFRESH_INTERVAL).await;
        }
    }

    /// Reads the suspensions.
    pub(crate) async fn refresh(&self, pool: &PgPool) -> Result<()> {
        let rows = worker_suspensions::all(pool).await?;
        let current: BTreeMap<_, _> =
            rows.into_iter().map(|row| (row.worker, row.reason)).collect();
        self.0.send_if_modified(|previous| {
            let is_changed = *previous != current;
            *previous = current;
            is_changed
        });
        Ok(())
    }

    /// Adds a worker that was suspended just now.
    pub(crate) fn add(&self, worker: WorkerId, reason: &str) {
        self.0.send_modify(|suspensions| drop(suspensions.insert(worker, reason.to_owned())));
    }

    /// The reason why a worker is suspended, if it is.
    pub(crate) fn reason(&self, worker: WorkerId) -> Option<String> {
        self.0.borrow().get(&worker).cloned()
    }

    /// Waits until a worker is suspended, and returns the reason.
    pub(crate) async fn wait(&self, worker: WorkerId) -> String {
        let mut receiver = self.0.subscribe();
        let suspensions = receiver.wait_for(|workers| workers.contains_key(&worker)).await;
        // The wait cannot fail: `self` holds the sender.
        suspensions.map_or_else(|_| String::new(), |workers| workers[&worker].clone())
    }
}

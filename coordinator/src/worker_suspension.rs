//! Suspended workers: proven or likely to report what was not played. They get no leases, and what
//! they report is refused, by every coordinator of the database.
//!
//! The database says who is suspended (`suspensions`): the transaction that stores a report
//! looks there. Sessions of workers are told by [`Suspensions`], which each coordinator reads again
//! and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::WorkerId;
use serde_json::json;
use sqlx::{PgPool, Result};
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::db::{audit_log, suspensions};

/// How often it is looked who is suspended: another coordinator may have done it.
const LOOK: Duration = Duration::from_millis(500);
/// A worker that was suspended just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedWorker {
    /// The worker.
    pub worker: WorkerId,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Suspends a worker, and notes it in the audit log; nothing if it is suspended already.
pub(crate) async fn suspend(
    pool: &PgPool,
    worker: WorkerId,
    reason: &str,
    now: OffsetDateTime,
) -> Result<Option<SuspendedWorker>> {
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    let Some(name) = suspensions::suspend(&mut *db, worker, reason, now).await? else {
        return Ok(None);
    };
    let detail = json!({ "reason": reason });
    audit_log::write(&mut *db, None, "worker suspend", &name, Some(&detail), now).await?;
    transaction.commit().await?;
    tracing::error!(%worker, name, reason, "suspended");
    Ok(Some(SuspendedWorker { worker, name, reason: reason.to_owned() }))
}

/// Who is suspended, as a coordinator knows it, and why.
#[derive(Clone, Debug, Default)]
pub struct Suspensions(Arc<watch::Sender<BTreeMap<WorkerId, String>>>);

impl Suspensions {
    /// Keeps it up to date.
    pub(crate) async fn run(&self, pool: &PgPool) {
        let mut failing = false;
        loop {
            match self.refresh(pool).await {
                Ok(()) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "cannot read which workers are suspended; retrying");
                }
                Err(_) => {}
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Reads who is suspended.
    pub(crate) async fn refresh(&self, pool: &PgPool) -> Result<()> {
        let found = suspensions::all(pool).await?;
        let found: BTreeMap<_, _> =
            found.into_iter().map(|known| (known.worker, known.reason)).collect();
        self.0.send_if_modified(|known| {
            let changed = *known != found;
            *known = found;
            changed
        });
        Ok(())
    }

    /// A worker was suspended just now.
    pub(crate) fn add(&self, worker: WorkerId, reason: &str) {
        self.0.send_modify(|known| drop(known.insert(worker, reason.to_owned())));
    }

    /// Why a worker is suspended, if it is.
    pub(crate) fn reason(&self, worker: WorkerId) -> Option<String> {
        self.0.borrow().get(&worker).cloned()
    }

    /// Waits until a worker is suspended, and says why.
    pub(crate) async fn wait(&self, worker: WorkerId) -> String {
        let mut known = self.0.subscribe();
        let found = known.wait_for(|known| known.contains_key(&worker)).await;
        // It cannot end: we hold the sender.
        found.map_or_else(|_| String::new(), |known| known[&worker].clone())
    }
}

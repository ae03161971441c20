//! Records that are kept outside of the database: stored before the transaction that counts their
//! matches, so that a record which is named is there.
//!
//! The records of an edition that were reported together are one object, a *pack*. It is announced
//! first: whatever happens in between, a pack that no record refers to is known, and taken away after
//! a while ([`FORGOTTEN`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use arbiter_proto::ids::{EditionId, Lease, MatchNumber, WorkerId};
use sqlx::Error;
use time::{Duration, OffsetDateTime};

use super::{Queue, Report, again};
use crate::db::record_objects::{self, PackId};
use crate::db::records::Slice;
use crate::record_store::{RecordStore, StoreError};

/// When a pack that was announced and is not used is one that nobody will use: an hour, and a report
/// is given up after minutes.
pub(crate) const FORGOTTEN: Duration = Duration::HOUR;

/// Where the records of some reports are, if they are not in the database.
#[derive(Clone, Debug, Default)]
pub struct UploadedRecords(HashMap<(Lease, WorkerId, MatchNumber), Slice>);

impl UploadedRecords {
    /// Where the record of a match of a report is, if not in the database.
    pub(super) fn find(&self, report: &Report, number: MatchNumber) -> Option<Slice> {
        self.0.get(&(report.lease, report.worker, number)).copied()
    }
}

/// Why records cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The database failed.
    #[error("cannot announce records: {0}")]
    Database(#[from] Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Queue {
    /// Keeps the records of reports in a store.
    ///
    /// # Errors
    /// If the store or the database fails: then the reports are to be repeated.
    pub async fn keep(
        &self,
        store: &RecordStore,
        reports: &[Report],
        now: OffsetDateTime,
    ) -> Result<UploadedRecords, UploadError> {
        let mut contents: BTreeMap<EditionId, Vec<u8>> = BTreeMap::new();
        let mut places = Vec::new();
        let mut named = HashSet::new();
        // As they are judged: of each worker the first under a lease that is in form.
        let kept = reports.iter().filter(|report| report.claim().is_some());
        for report in kept.filter(|report| named.insert((report.lease, report.worker))) {
            let edition = report.lease.lot.edition;
            for (number, bytes) in &report.records {
                let pack = contents.entry(edition).or_default();
                let place = (report.lease, report.worker, *number);
                places.push((place, size(pack.len()), size(bytes.len())));
                pack.extend_from_slice(bytes);
            }
        }
        let editions: Vec<_> = contents.keys().copied().collect();
        if editions.is_empty() {
            return Ok(UploadedRecords::default());
        }
        let begun = again(|| record_objects::begin(&self.pool, &editions, now)).await?;
        for (edition, pack) in &begun {
            let content = contents.remove(edition).unwrap_or_default();
            store.put(*edition, *pack, content).await?;
        }
        let begun: HashMap<EditionId, PackId> = begun.into_iter().collect();
        let slices = places.into_iter().filter_map(|(place, start, length)| {
            let (lease, ..) = place;
            let pack = *begun.get(&lease.lot.edition)?;
            Some((place, Slice { pack, start, length }))
        });
        Ok(UploadedRecords(slices.collect()))
    }
}

/// A size as the database has it.
fn size(bytes: usize) -> i32 {
    i32::try_from(bytes).expect("a batch of reports is far smaller than 2 GiB")
}

//! Uploads records to the record store before the transaction that stores their results. So every
//! record that the database refers to exists.
//!
//! The records of a tournament that were reported together form one object, a *pack*. The pack is
//! announced in the database before the upload. If no record refers to it later, it is removed
//! after [`UNUSED_AFTER`].

use std::collections::{BTreeMap, HashMap, HashSet};

use arbiter_proto::ids::{Lease, MatchNumber, TournamentId, WorkerId};
use sqlx::Error;
use time::{Duration, OffsetDateTime};

use super::{Queue, Report, retry};
use crate::db::record_objects::{self, PackId};
use crate::db::records::Slice;
use crate::record_store::{RecordStore, StoreError};

/// The age at which an unused pack is removed. Storing a report takes minutes at most, so the pack
/// will not be used later.
pub(crate) const UNUSED_AFTER: Duration = Duration::HOUR;

/// The positions of uploaded records in the record store.
#[derive(Clone, Debug, Default)]
pub struct UploadedRecords(HashMap<(Lease, WorkerId, MatchNumber), Slice>);

impl UploadedRecords {
    /// The position of a match's record, if it was uploaded.
    pub(super) fn find(&self, report: &Report, number: MatchNumber) -> Option<Slice> {
        self.0.get(&(report.lease, report.worker, number)).copied()
    }
}

/// Why records cannot be uploaded.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The database failed.
    #[error("cannot announce records: {0}")]
    Database(#[from] Error),
    /// The record store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Queue {
    /// Uploads the records of reports.
    ///
    /// # Errors
    /// If the store or the database fails: the workers must send the reports again.
    pub async fn upload_records(
        &self,
        store: &RecordStore,
        reports: &[Report],
        now: OffsetDateTime,
    ) -> Result<UploadedRecords, UploadError> {
        let mut contents: BTreeMap<TournamentId, Vec<u8>> = BTreeMap::new();
        let mut positions = Vec::new();
        let mut leases = HashSet::new();
        // As in `Queue::report`: the first well-formed report of each worker under a lease.
        let well_formed = reports.iter().filter(|report| report.claim().is_some());
        for report in well_formed.filter(|report| leases.insert((report.lease, report.worker))) {
            let tournament = report.lease.lot.tournament;
            for (number, bytes) in &report.records {
                let pack = contents.entry(tournament).or_default();
                let key = (report.lease, report.worker, *number);
                positions.push((key, size(pack.len()), size(bytes.len())));
                pack.extend_from_slice(bytes);
            }
        }
        let tournaments: Vec<_> = contents.keys().copied().collect();
        if tournaments.is_empty() {
            return Ok(UploadedRecords::default());
        }
        let announced = retry(|| record_objects::begin(&self.pool, &tournaments, now)).await?;
        for (tournament, pack) in &announced {
            let content = contents.remove(tournament).unwrap_or_default();
            store.put(*tournament, *pack, content).await?;
        }
        let packs: HashMap<TournamentId, PackId> = announced.into_iter().collect();
        let slices = positions.into_iter().filter_map(|(key, start, length)| {
            let (lease, ..) = key;
            let pack = *packs.get(&lease.lot.tournament)?;
            Some((key, Slice { pack, start, length }))
        });
        Ok(UploadedRecords(slices.collect()))
    }
}

/// A size in the type of the database's column.
fn size(bytes: usize) -> i32 {
    i32::try_from(bytes).expect("a batch of reports is far smaller than 2 GiB")
}

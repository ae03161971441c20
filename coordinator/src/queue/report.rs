//! Reports: their validation, and the transaction that stores them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arbiter_games::MAX_SEATS;
use arbiter_proto::ids::{Lease, MatchNumber, TournamentId, WorkerId};
use arbiter_proto::level::Level;
use sqlx::{PgConnection, Result};
use time::OffsetDateTime;

use super::{Queue, UploadedRecords, retry};
use crate::db::bot_state::{self, SavedState};
use crate::db::forfeit_evidence::{self, Evidence};
use crate::db::lots::{self, Claim, ReportStatus};
use crate::db::record_objects;
use crate::db::records::{self, Record};
use crate::db::results::{self, MatchResult};
use crate::metrics::LeaseOperation;

/// Maximum size of the files that a seat leaves for its next match, in bytes as they are sent:
/// 1 MiB. Workers enforce it, so a larger report is malformed.
pub const MAX_FILES_LEN: usize = 1 << 20;

/// What a worker delivers for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The lease.
    pub lease: Lease,
    /// The worker.
    pub worker: WorkerId,
    /// When the coordinator received it.
    pub at: OffsetDateTime,
    /// The results of all its matches, in order.
    pub results: Vec<MatchResult>,
    /// Compressed records of some of them, in order.
    pub records: Vec<(MatchNumber, Vec<u8>)>,
    /// The sandbox they were played in.
    pub level: Level,
    /// The files that seats, counted from 1, leave for their next matches, in the order of matches
    /// and seats.
    pub files: Vec<(MatchNumber, u8, Vec<u8>)>,
    /// The evidence of forfeits, in the order of matches and seats.
    pub evidence: Vec<Evidence>,
}

impl Report {
    /// The size of its records and files, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let records = self.records.iter().map(|(_, bytes)| bytes.len());
        records.chain(self.files.iter().map(|(.., bytes)| bytes.len())).sum()
    }

    /// What the report says about its lot, if it is well-formed: consecutive matches, scores of
    /// equal length, and possible values. The database compares the claim with the lot.
    pub(super) fn claim(&self) -> Option<Claim> {
        let first = self.results.first()?;
        let score_len = first.scores.len();
        let is_valid = (first.number.0..)
            .zip(&self.results)
            .all(|(number, result)| result.number.0 == number && is_valid(result, score_len));
        let claim = Claim {
            lease: self.lease,
            worker: self.worker,
            first_match: first.number,
            count: i32::try_from(self.results.len()).ok()?,
            score_len: i16::try_from(score_len).ok()?,
        };
        let is_valid = is_valid && self.records_are_valid() && self.files_are_valid();
        (is_valid && self.evidence_is_valid()).then_some(claim)
    }

    /// Whether the records belong to different matches of the report, and none is empty.
    fn records_are_valid(&self) -> bool {
        let ascending = self.records.is_sorted_by(|(a, _), (b, _)| a < b);
        let belongs = |(number, bytes): &(_, Vec<u8>)| self.has_match(*number) && !bytes.is_empty();
        ascending && self.records.iter().all(belongs)
    }

    /// Whether the files belong to different seats in matches of the report, and none is too large.
    fn files_are_valid(&self) -> bool {
        let ascending = self.files.is_sorted_by(|(a, one, _), (b, other, _)| (a, one) < (b, other));
        let belongs = |(number, seat, bytes): &(_, u8, Vec<u8>)| {
            self.has_match(*number)
                && (1..=MAX_SEATS).contains(seat)
                && (1..=MAX_FILES_LEN).contains(&bytes.len())
        };
        ascending && self.files.iter().all(belongs)
    }

    /// Whether the evidence belongs to different seats in matches of the report.
    fn evidence_is_valid(&self) -> bool {
        let key = |evidence: &Evidence| (evidence.number, evidence.seat);
        let belongs = |evidence: &Evidence| {
            self.has_match(evidence.number)
                && (1..=i16::from(MAX_SEATS)).contains(&evidence.seat)
                && evidence.wall_us >= 0
                && evidence.cpu_us >= 0
        };
        self.evidence.is_sorted_by(|a, b| key(a) < key(b)) && self.evidence.iter().all(belongs)
    }

    /// Whether the report contains a match.
    fn has_match(&self, number: MatchNumber) -> bool {
        self.results.binary_search_by_key(&number, |result| result.number).is_ok()
    }
}

/// Whether a result has scores of this length and possible values.
fn is_valid(result: &MatchResult, score_len: usize) -> bool {
    let of_seats = |length: usize| length == 0 || score_len.is_multiple_of(length);
    score_len > 0
        && result.scores.len() == score_len
        && result.wall_ms >= 0
        && of_seats(result.forfeits.len())
        && of_seats(result.bad_answers.len())
        && result.bad_answers.iter().all(|count| *count >= 0)
}

impl Queue {
    /// Stores reports in one transaction, and returns the status of each. Uploaded records are only
    /// referred to.
    ///
    /// # Errors
    /// If the database fails: all statuses are unknown, and the reports must be sent again.
    pub async fn report(
        &self,
        reports: &[Report],
        uploaded: &UploadedRecords,
    ) -> Result<Vec<ReportStatus>> {
        let claims: Vec<_> = reports.iter().map(Report::claim).collect();
        // A second report of a worker under the same lease is handled as if it arrived later.
        // Reports of different workers are all tried. At most one of them is from the holder.
        let mut leases = HashSet::new();
        let tried: Vec<_> = (0..reports.len())
            .filter_map(|index| Some((index, claims[index]?)))
            .filter(|(_, claim)| leases.insert((claim.lease, claim.worker)))
            .collect();
        let storing = retry(|| async {
            let mut transaction = self.pool.begin().await?;
            let accepted = store(&mut transaction, reports, &tried, uploaded).await?;
            transaction.commit().await?;
            Ok(accepted)
        });
        let (accepted, to_check) = storing.await?;
        for tournament in to_check {
            // The reports are stored already. Maintenance checks the lots that fail here.
            drop(self.check_stored_once(tournament).await);
        }
        let others: Vec<_> = (0..reports.len())
            .filter(|index| claims[*index].is_some() && !accepted.contains(index))
            .map(|index| (reports[index].lease, reports[index].worker))
            .collect();
        let statuses = match &*others {
            [] => HashMap::new(),
            others => lots::report_statuses(&self.pool, others).await?,
        };
        for ((lease, worker), _) in
            statuses.iter().filter(|(_, status)| **status == ReportStatus::Foreign)
        {
            self.refuse(LeaseOperation::Report, *worker, *lease);
        }
        let status = |index: usize| match claims[index] {
            None => ReportStatus::Malformed,
            Some(_) if accepted.contains(&index) => ReportStatus::Accepted,
            Some(claim) => {
                statuses.get(&(claim.lease, claim.worker)).copied().unwrap_or(ReportStatus::Late)
            }
        };
        Ok((0..reports.len()).map(status).collect())
    }
}

/// Stores the reports whose leases are valid, in the caller's transaction. Returns their indices,
/// and the tournaments with lots that can now be checked.
async fn store(
    db: &mut PgConnection,
    reports: &[Report],
    tried: &[(usize, Claim)],
    uploaded: &UploadedRecords,
) -> Result<(HashSet<usize>, Vec<TournamentId>)> {
    let claims: Vec<_> = tried.iter().map(|(_, claim)| *claim).collect();
    let reported = lots::mark_reported(&mut *db, &claims).await?;
    let reported_leases: HashSet<_> = reported.iter().map(|lot| (lot.lease, lot.worker)).collect();
    let is_accepted =
        |(_, claim): &&(usize, Claim)| reported_leases.contains(&(claim.lease, claim.worker));
    let accepted: HashSet<_> = tried.iter().filter(is_accepted).map(|(index, _)| *index).collect();
    if accepted.is_empty() {
        return Ok((accepted, Vec::new()));
    }
    let accepted_reports = accepted_reports(reports, tried, &accepted);
    let results = accepted_reports.clone().flat_map(|(tournament, report)| {
        report.results.iter().map(move |result| (tournament, report.level, result))
    });
    results::copy_in(&mut *db, results.collect::<Vec<_>>().into_iter()).await?;
    store_records(&mut *db, accepted_reports.clone(), uploaded).await?;
    let states: Vec<_> = accepted_reports.clone().flat_map(saved_states).collect();
    if !states.is_empty() {
        bot_state::insert(&mut *db, &states).await?;
    }
    let evidence: Vec<_> = accepted_reports
        .flat_map(|(tournament, report)| {
            report.evidence.iter().map(move |evidence| (tournament, evidence))
        })
        .collect();
    if !evidence.is_empty() {
        forfeit_evidence::insert(&mut *db, &evidence).await?;
    }
    let mut with_dependents: BTreeMap<TournamentId, Vec<i64>> = BTreeMap::new();
    for lot in reported.iter().filter(|lot| lot.has_dependents).map(|lot| lot.lease.lot) {
        with_dependents.entry(lot.tournament).or_default().push(lot.number.0);
    }
    let mut to_check = Vec::new();
    for (tournament, lots) in with_dependents {
        if lots::promote(&mut *db, tournament, &lots).await? > 0 {
            to_check.push(tournament);
        }
    }
    Ok((accepted, to_check))
}

/// The accepted reports, each with its tournament.
fn accepted_reports<'a>(
    reports: &'a [Report],
    tried: &[(usize, Claim)],
    accepted: &HashSet<usize>,
) -> impl Iterator<Item = (TournamentId, &'a Report)> + Clone {
    let accepted = tried.iter().filter(|(index, _)| accepted.contains(index));
    accepted.map(|(index, claim)| (claim.lease.lot.tournament, &reports[*index]))
}

/// Stores the records of accepted reports, or their positions in the record store.
async fn store_records<'a>(
    db: &mut PgConnection,
    reports: impl Iterator<Item = (TournamentId, &'a Report)>,
    uploaded: &UploadedRecords,
) -> Result<()> {
    let mut used = BTreeSet::new();
    let mut records = Vec::new();
    for (tournament, report) in reports {
        for (number, bytes) in &report.records {
            let record = match uploaded.find(report, *number) {
                Some(slice) => {
                    used.insert(slice.pack);
                    Record::InPack(slice)
                }
                None => Record::InDatabase(bytes.as_slice()),
            };
            records.push((tournament, *number, record));
        }
    }
    if !used.is_empty() {
        let used: Vec<_> = used.into_iter().collect();
        record_objects::mark_used(&mut *db, &used).await?;
    }
    if !records.is_empty() {
        records::copy_in(db, records.into_iter()).await?;
    }
    Ok(())
}

/// The files that seats left, from a report.
fn saved_states(
    (tournament, report): (TournamentId, &Report),
) -> impl Iterator<Item = SavedState<'_>> {
    report.files.iter().map(move |(number, seat, bytes)| SavedState {
        tournament,
        number: *number,
        seat: *seat,
        bytes,
    })
}

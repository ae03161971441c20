//! Decodes reports of trials.

use arbiter_proto::convert::{InvalidField, required};
use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trial::Measurements;
use arbiter_proto::v1;
use serde_json::json;

use crate::db::trials::Outcome;

/// The longest texts of a report that are stored, in characters.
const MAX_VERDICT: usize = 1000;
const MAX_EVIDENCE: usize = 10_000;
const MAX_LOG: usize = 80_000;
/// Warnings that are stored, at most.
const MAX_WARNINGS: usize = 50;

/// Decodes a report of a trial: its outcome, and the bundle that was built.
///
/// # Errors
/// If no correct worker sends such a report.
pub fn read(
    worker: WorkerId,
    lease: Lease,
    message: v1::TrialReport,
) -> Result<(Outcome, Vec<u8>), InvalidField> {
    let v1::TrialReport { passed, reason, evidence, log, measurements, warnings, program } =
        message;
    required("lease", lease.version())?;
    let figures: Measurements = serde_json::from_str(&measurements)
        .map_err(|_| InvalidField::Text { field: "measurements", value: measurements })?;
    let verdict = match (passed, truncate(&reason, MAX_VERDICT)) {
        (true, _) => None,
        (false, verdict) if verdict.is_empty() => return Err(InvalidField::Missing("reason")),
        (false, verdict) => Some(verdict),
    };
    let built = passed && !program.is_empty();
    let outcome = Outcome {
        lease,
        worker,
        verdict,
        evidence: truncate(&evidence, MAX_EVIDENCE),
        log: truncate(&log, MAX_LOG),
        figures: json!(figures),
        warnings: warnings
            .iter()
            .take(MAX_WARNINGS)
            .map(|line| truncate(line, MAX_VERDICT))
            .collect(),
        program: built.then(|| blake3::hash(&program).into()),
    };
    Ok((outcome, program))
}

/// The first `max` characters of a text, without zero bytes: the database stores none.
fn truncate(text: &str, max: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(max).collect()
}

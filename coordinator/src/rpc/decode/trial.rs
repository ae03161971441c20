//! Decodes reports of trials.

use arbiter_proto::convert::{InvalidField, required};
use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trial::Measurements;
use arbiter_proto::v1;
use serde_json::json;

use crate::db::trials::Outcome;
use crate::service::is_program_name;

/// The longest texts of a report that are stored, in characters.
const MAX_REASON: usize = 1000;
const MAX_EVIDENCE: usize = 10_000;
const MAX_LOG: usize = 80_000;
/// Maximum number of stored warnings.
const MAX_WARNINGS: usize = 50;

/// Decodes a report of a trial: its outcome, and the bundle that was built.
///
/// # Errors
/// If the report is malformed.
pub fn read(
    worker: WorkerId,
    lease: Lease,
    message: v1::TrialReport,
) -> Result<(Outcome, Vec<u8>), InvalidField> {
    let v1::TrialReport {
        passed,
        reason,
        evidence,
        log,
        measurements,
        warnings,
        program,
        missing_program,
    } = message;
    required("lease", lease.version())?;
    let decoded: Measurements = serde_json::from_str(&measurements)
        .map_err(|_| InvalidField::Text { field: "measurements", value: measurements })?;
    let failure_reason = match (passed, truncate(&reason, MAX_REASON)) {
        (true, _) => None,
        (false, reason) if reason.is_empty() => return Err(InvalidField::Missing("reason")),
        (false, reason) => Some(reason),
    };
    let has_program = passed && !program.is_empty();
    let outcome = Outcome {
        lease,
        worker,
        verdict: failure_reason,
        evidence: truncate(&evidence, MAX_EVIDENCE),
        log: truncate(&log, MAX_LOG),
        figures: json!(decoded),
        warnings: warnings
            .iter()
            .take(MAX_WARNINGS)
            .map(|line| truncate(line, MAX_REASON))
            .collect(),
        program: has_program.then(|| blake3::hash(&program).into()),
        missing_program: Some(missing_program)
            .filter(|program| !passed && is_program_name(program)),
    };
    Ok((outcome, program))
}

/// The first `max` characters of a text, without zero bytes: the database stores none.
fn truncate(text: &str, max: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(max).collect()
}

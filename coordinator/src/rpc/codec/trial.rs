//! What workers deliver of trials, from the message to what the queue takes.

use arbiter_proto::convert::{Meaningless, given};
use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trial::Measurements;
use arbiter_proto::v1;
use serde_json::json;

use crate::db::trials::Outcome;

/// The longest texts that are kept of a report, in characters.
const VERDICT: usize = 1000;
const EVIDENCE: usize = 10_000;
const LOG: usize = 80_000;
/// Warnings that are kept, at most.
const WARNINGS: usize = 50;

/// Reads what a worker says about a trial: its outcome, and the bundle that it built.
///
/// # Errors
/// If it cannot have been made by a worker of ours.
pub fn read(
    worker: WorkerId,
    lease: Lease,
    message: v1::TrialReport,
) -> Result<(Outcome, Vec<u8>), Meaningless> {
    let v1::TrialReport { passed, reason, evidence, log, measurements, warnings, program } =
        message;
    given("lease", lease.version())?;
    let figures: Measurements = serde_json::from_str(&measurements)
        .map_err(|_| Meaningless::Word { field: "measurements", value: measurements })?;
    let verdict = match (passed, cut(&reason, VERDICT)) {
        (true, _) => None,
        (false, verdict) if verdict.is_empty() => return Err(Meaningless::Missing("reason")),
        (false, verdict) => Some(verdict),
    };
    let built = passed && !program.is_empty();
    let outcome = Outcome {
        lease,
        worker,
        verdict,
        evidence: cut(&evidence, EVIDENCE),
        log: cut(&log, LOG),
        figures: json!(figures),
        warnings: warnings.iter().take(WARNINGS).map(|line| cut(line, VERDICT)).collect(),
        program: built.then(|| blake3::hash(&program).into()),
    };
    Ok((outcome, program))
}

/// The beginning of a text that came from elsewhere; the database takes no zero bytes.
fn cut(text: &str, most: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(most).collect()
}

//! Trials between coordinator and worker: what a worker is told, and what it delivers.

use arbiter_proto::convert::{Meaningless, given};
use arbiter_proto::ids::{Lease, VersionId, WorkerId};
use arbiter_proto::trace::{self, Span};
use arbiter_proto::trial::Figures;
use arbiter_proto::v1;
use serde_json::json;
use sqlx::{Error, PgPool};

use super::handout::seat;
use super::{FileError, TournamentFile};
use crate::db::entrants::Named;
use crate::db::trials::Outcome;
use crate::db::{bots, tournaments, traces};

/// House bots that a version is tried against, at most: those that were submitted first.
const OPPONENTS: usize = 4;

/// The longest texts that are kept of a report, in characters.
const VERDICT: usize = 1000;
const EVIDENCE: usize = 10_000;
const LOG: usize = 80_000;
/// Warnings that are kept, at most.
const WARNINGS: usize = 50;

/// Why a trial cannot be handed out.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The database failed.
    #[error("cannot read what version {version} is: {cause}")]
    Database {
        /// The version.
        version: VersionId,
        /// Why.
        #[source]
        cause: Error,
    },
    /// The file of the tournament was stored by another program.
    #[error("cannot read the settings for version {version}: {cause}")]
    Settings {
        /// The version.
        version: VersionId,
        /// What is wrong with them.
        #[source]
        cause: FileError,
    },
}

/// The message that hands out the trial of a version, whose lease holds for so many milliseconds
/// from now.
pub async fn message(
    pool: &PgPool,
    lease: Lease,
    version: VersionId,
    lease_ms: i64,
) -> Result<v1::Trial, TrialError> {
    let failed = |cause| TrialError::Database { version, cause };
    let subject = Named::of_version(pool, version).await.map_err(failed)?;
    let tournament = bots::tournament_of(pool, version).await.map_err(failed)?;
    let tournament = tournament.ok_or_else(|| failed(Error::RowNotFound))?;
    let tournament = tournaments::get(pool, tournament).await.map_err(failed)?;
    let tournament = tournament.ok_or_else(|| failed(Error::RowNotFound))?;
    let file = TournamentFile::from_json(&tournament.settings)
        .map_err(|cause| TrialError::Settings { version, cause })?;
    let mut settings = file.settings();
    if let Some(board) = file.boards.first() {
        settings.params.insert("board".to_owned(), json!(board));
    }
    let house = Named::of_house(pool, tournament.id).await.map_err(failed)?;
    let opponents = house.iter().filter(|named| named.bot != subject.bot).take(OPPONENTS);
    let mut span = Span::NONE;
    if trace::is_on() {
        let parent = traces::of_version(pool, version).await.map_err(failed)?;
        span = Span::follow("trial leased", parent.as_ref());
        span.set("version", i64::from(version.0));
    }
    Ok(v1::Trial {
        lease: Some(lease.into()),
        game: tournament.game,
        settings: json!(settings).to_string(),
        seed: tournament.seed.derive(&format!("trial/{version}")).0.to_vec(),
        subject: Some(v1::Seat { program: Vec::new(), ..seat(&subject) }),
        opponents: opponents.map(seat).collect(),
        lease_ms,
        trace: span.carried(),
    })
}

/// Reads what a worker says about a trial: its outcome, and the bundle that it built.
///
/// # Errors
/// If it cannot have been made by a worker of ours.
pub fn read(
    worker: WorkerId,
    lease: Lease,
    message: v1::TrialReport,
) -> Result<(Outcome, Vec<u8>), Meaningless> {
    let v1::TrialReport { passed, verdict, evidence, log, figures, warnings, program } = message;
    given("lease", lease.version())?;
    let figures: Figures = serde_json::from_str(&figures)
        .map_err(|_| Meaningless::Word { field: "figures", value: figures })?;
    let verdict = match (passed, cut(&verdict, VERDICT)) {
        (true, _) => None,
        (false, verdict) if verdict.is_empty() => return Err(Meaningless::Missing("verdict")),
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

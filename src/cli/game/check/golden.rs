//! Golden dialogues: records in `tests/` that must replay exactly.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbiter_games::Games;
use serde_json::{Value as Json, json};

use super::dialogue::{Dialogue, RulesSupply};
use super::playout::Subject;
use super::problem::Problem;

/// Replays all records of the package in this folder.
///
/// # Errors
/// The first record that the rules do not replay.
pub(super) fn check(
    subject: &Subject<'_>,
    package: &Path,
    supply: &Arc<RulesSupply>,
) -> Result<(String, Json), Problem> {
    let records = records(package);
    for path in &records {
        replay(subject, path, supply).map_err(|problem| {
            let path = path.strip_prefix(package).unwrap_or(path);
            problem.in_match(path.display().to_string())
        })?;
    }
    let text = match records.len() {
        0 => "no records in tests/: play some with `arbiter play`, option --record".to_owned(),
        1 => "1 record of tests/ replays exactly".to_owned(),
        count => format!("{count} records of tests/ replay exactly"),
    };
    Ok((text, json!({"records": records.len()})))
}

fn records(package: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = fs::read_dir(package.join("tests")) else { return BTreeSet::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
}

/// Checks that a record is by the present version of the rules.
fn check_version(subject: &Subject<'_>, record: &str) -> Result<(), Problem> {
    let header = record.lines().next().and_then(|line| serde_json::from_str::<Json>(line).ok());
    let Some(recorded) = header.as_ref().and_then(|header| header["rules"].as_str()) else {
        return Ok(());
    };
    let version = &subject.descriptor.version;
    if recorded == version {
        return Ok(());
    }
    Err(Problem::new(format!(
        "recorded with version {recorded} of the rules; the package has version {version}: if the \
         change is intended, remove the records of tests/ and record new matches with \
         arbiter play … --record mygame/tests"
    )))
}

/// Replays a record as if it was played with the present files of the package.
fn replay(subject: &Subject<'_>, path: &Path, supply: &Arc<RulesSupply>) -> Result<(), Problem> {
    let text = fs::read_to_string(path).map_err(|error| Problem::new(error.to_string()))?;
    let record = arbiter_replay::with_package(&text, subject.digest)
        .ok_or_else(|| Problem::new("not a record of a package, or it was edited"))?;
    check_version(subject, &text)?;
    let dialogue = Dialogue::default();
    let games = Games::built_in().with_game(&subject.game(supply, &dialogue));
    match arbiter_replay::verify(&games, record.as_bytes()) {
        Ok(_) => Ok(()),
        Err(difference) => Err(Problem::after(&dialogue, difference.to_string())),
    }
}

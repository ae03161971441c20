//! `arbiter verify PATH…`: replays records through the rules and derives exported matches again.

mod expectations;
mod plan_derivation;

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use arbiter_games::Games;
use arbiter_replay::{Difference, RecordedPackage, Verified};
use arbiter_worker::sandbox::{Host, Policy};
use clap::Args;
use serde_json::json;

use self::expectations::Expectations;
use self::plan_derivation::CheckedExport;
use super::play;
use crate::failure::Failure;
use crate::output::{broken_pipe, eprint_line, printable};
use crate::play::{game, progress, record_file, recorded_packages};

/// Verify records by replay; exit code 1 and the first difference if one is wrong.
#[derive(Debug, Args)]
#[command(
    after_help = "If a PATH is an export of a closed tournament (`arbiter tournament export`), its \
    matches are derived again from the published seed and the value of its beacon: pairings, \
    parameters and the seed of each match, compared with its record. The result of each record is \
    compared with matches.jsonl. The origin of the seed is printed. An edition played before the \
    beacon decided the seed fails if its tournament is closed.

Records of a game package are replayed by its rules. An export contains its packages; for other \
    records name the package with --game. Records without their package are not checked: the exit \
    code is 2 if no other record is wrong.

Examples:
  arbiter verify archive/finals
  arbiter verify records/ --game games/packages/connect4
  arbiter verify records/
  arbiter verify records/gomoku-1f2e3d4c-000001.jsonl --json"
)]
pub(super) struct Verify {
    /// Records (*.jsonl, or compressed: *.jsonl.zst), exports, or directories with either.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// A game package with which matches were played: its folder or packed file. May be given
    /// several times.
    #[arg(long, value_name = "DIR|FILE")]
    game: Vec<PathBuf>,
    /// Print one JSON object per record.
    #[arg(long)]
    json: bool,
}

/// The result of verifying a record.
type Checked = Result<Verified, Unverified>;

/// Why a record is not verified.
#[derive(Debug)]
enum Unverified {
    /// It is wrong.
    Wrong(Difference),
    /// It cannot be checked without its game package: which one, and how to give it.
    NotChecked(String),
}

impl<T: Into<Difference>> From<T> for Unverified {
    fn from(difference: T) -> Self {
        Self::Wrong(difference.into())
    }
}

impl Verify {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let mut inputs = Inputs::default();
        for path in &self.paths {
            let before = inputs.count();
            inputs
                .find_at(path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            if inputs.count() == before {
                let path = path.display();
                return Err(Failure::usage(format!(
                    "{path}: contains no records (*.jsonl or *.jsonl.zst)"
                )));
            }
        }
        let Inputs { records, exports } = inputs;
        let mut expectations = Expectations::default();
        let mut differences = 0;
        let mut print_result = Ok(());
        for export in &exports {
            // The settings of an export describe its package.
            let checked = plan_derivation::check(games, export)
                .map_err(|error| Failure::Negative(format!("{}: {error}", export.display())))?;
            print_result = print_result.and_then(|()| self.print_export(export, &checked));
            differences += checked.differences.len();
            expectations.add(export, checked.game, checked.expected);
        }
        let games = self.games(games, &records)?;
        let mut wrong_records = 0;
        let mut unchecked_records = 0;
        let mut missing_packages = HashSet::new();
        check_all(&games, &records, &expectations, |index, checked| {
            match checked {
                Ok(_) => {}
                Err(Unverified::Wrong(_)) => wrong_records += 1,
                Err(Unverified::NotChecked(cause)) => {
                    unchecked_records += 1;
                    if missing_packages.insert(cause.clone()) {
                        eprint_line(&format!("not checked: {cause}"));
                    }
                }
            }
            if print_result.is_ok() {
                print_result = self.print(&records[index], checked);
            }
        });
        print_result.or_else(broken_pipe)?;
        let count = records.len();
        if wrong_records > 0 {
            return Err(Failure::Negative(format!("{wrong_records} of {count} records are wrong")));
        }
        if differences > 0 {
            return Err(Failure::Negative(
                "the export does not follow from the published seed and its beacon".to_owned(),
            ));
        }
        if unchecked_records > 0 {
            return Err(Failure::Usage(format!(
                "{unchecked_records} of {count} records are not checked: name their game packages \
                 with --game"
            )));
        }
        Ok(())
    }

    /// The games of these records: `built_in`, and game packages.
    fn games(&self, built_in: &Games, records: &[PathBuf]) -> Result<Games, Failure> {
        let packages = recorded_packages::load_all(&self.game, records)?;
        if packages.is_empty() {
            return Ok(built_in.clone());
        }
        let host = Arc::new(Host::prepare(Policy::Auto)?);
        game::with_packages(built_in, &packages, &host, &play::stop_on_signals()?)
    }

    /// Prints the origin of an export's seed and whether its matches follow from it.
    fn print_export(&self, export: &Path, checked: &CheckedExport) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let path = export.display().to_string();
        let CheckedExport { expected, differences, seed_origin, not_derived, not_final, .. } =
            checked;
        if let Some(reason) = not_derived {
            eprint_line(&format!("{path}: the seeds of its matches are not checked: {reason}"));
        }
        if let Some(reason) = not_final {
            eprint_line(&format!("{path}: its seed is not final: {reason}"));
        }
        if self.json {
            let derived = not_derived.is_none().then_some(expected.len());
            let origin = json!({"path": path, "ok": differences.is_empty(), "derived": derived,
                "seed_origin": seed_origin, "not_derived": not_derived, "not_final": not_final});
            for difference in differences {
                let line = json!({"path": path, "ok": false, "difference": difference});
                writeln!(out, "{line}")?;
            }
            return writeln!(out, "{origin}");
        }
        writeln!(out, "{path}: {seed_origin}")?;
        for difference in differences {
            writeln!(out, "{path}: WRONG, {difference}")?;
        }
        if differences.is_empty() && not_derived.is_none() {
            let matches = expected.len();
            writeln!(out, "{path}: ok, {matches} matches follow from the published seed")?;
        }
        Ok(())
    }

    fn print(&self, path: &Path, checked: &Checked) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let path = path.display().to_string();
        match checked {
            Ok(verified) if self.json => {
                let scores: Vec<_> = verified.standings.iter().map(|seat| &seat.score).collect();
                let transcript = verified.transcript.to_string();
                let line = json!({"path": path, "ok": true, "scores": scores,
                    "transcript": transcript});
                writeln!(out, "{line}")
            }
            Err(Unverified::Wrong(difference)) if self.json => {
                let line = json!({"path": path, "ok": false,
                    "difference": difference.to_string()});
                writeln!(out, "{line}")
            }
            Err(Unverified::NotChecked(cause)) if self.json => {
                writeln!(out, "{}", json!({"path": path, "ok": null, "not_checked": cause}))
            }
            Ok(verified) => writeln!(out, "{path}: ok, {} lines", verified.lines),
            Err(Unverified::NotChecked(_)) => writeln!(out, "{path}: not checked"),
            Err(Unverified::Wrong(difference)) => writeln!(out, "{path}: WRONG, {difference}"),
        }
    }
}

/// The records and exports to verify.
#[derive(Debug, Default)]
struct Inputs {
    records: Vec<PathBuf>,
    /// The directories of exports.
    exports: Vec<PathBuf>,
}

impl Inputs {
    fn count(&self) -> usize {
        self.records.len() + self.exports.len()
    }

    /// Collects the records and exports at a path. For the record directory of an export, also adds
    /// the export.
    fn find_at(&mut self, path: &Path) -> io::Result<()> {
        let is_record_dir = path.file_name().is_some_and(|name| name == plan_derivation::RECORDS);
        let parent =
            path.parent().filter(|parent| is_record_dir && plan_derivation::is_export(parent));
        self.exports.extend(parent.map(Path::to_owned));
        find(path, self)
    }
}

/// Collects the file itself, or all records and exports below a directory, in order.
fn find(path: &Path, inputs: &mut Inputs) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        inputs.records.push(path.to_owned());
        return Ok(());
    }
    if metadata.is_dir() && plan_derivation::is_export(path) {
        inputs.exports.push(path.to_owned());
        let records = path.join(plan_derivation::RECORDS);
        return if records.is_dir() { find(&records, inputs) } else { Ok(()) };
    }
    if !metadata.is_dir() {
        return Err(io::Error::other("not a file or directory"));
    }
    let mut entries = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        // Follow symbolic links on the command line, not those found in directories.
        let metadata = fs::symlink_metadata(&entry)?;
        if metadata.is_dir() || (metadata.is_file() && record_file::is_record(&entry)) {
            find(&entry, inputs)?;
        }
    }
    Ok(())
}

/// Replays a record and compares its first line and result with its export. A record that names
/// another game than its export is wrong, even if the rules of that game are missing.
fn check(games: &Games, path: &Path, expectations: &Expectations) -> Checked {
    let package = record_file::open(path).and_then(RecordedPackage::read);
    // The replay reports records that cannot be read.
    if let Ok(Some(package)) = package {
        let missing = package.find(games).err();
        if let Some(problem) = expectations.package_difference(path, package) {
            return Err(Difference::Line { line: 1, problem: printable(&problem) }.into());
        }
        if let Some(cause) = missing {
            return Err(Unverified::NotChecked(printable(&cause)));
        }
    }
    if let Some(problem) = expectations.header_difference(games, path)? {
        return Err(Difference::Line { line: 1, problem }.into());
    }
    let verified = arbiter_replay::verify(games, record_file::open(path)?)?;
    match expectations.result_difference(path, &verified) {
        Some(problem) => Err(Difference::Line { line: verified.lines, problem }.into()),
        None => Ok(verified),
    }
}

/// Checks records on all cores and shows the results in the order of the records.
fn check_all(
    games: &Games,
    records: &[PathBuf],
    expectations: &Expectations,
    mut show: impl FnMut(usize, &Checked),
) {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel::<(usize, Checked)>();
    let bar = progress::bar(records.len(), "records");
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(records.len()) {
            let sender = sender.clone();
            let next = &next;
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = records.get(index) else { return };
                    let checked = check(games, path, expectations);
                    if sender.send((index, checked)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut in_order = progress::Reorder::new(0);
        for (index, checked) in receiver {
            bar.inc(1);
            for (index, checked) in in_order.push(index, checked) {
                bar.suspend(|| show(index, &checked));
            }
        }
    });
    bar.finish_and_clear();
}

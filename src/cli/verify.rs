//! `arbiter verify PATH…`: replays records through the rules.

use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use arbiter_worker::record::{self, Difference, Verified};
use clap::Args;
use serde_json::json;

use super::{Failure, broken_pipe};
use crate::play::progress;

/// Replay records through the rules; exit code 1 and the first difference if one is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter verify records/
  arbiter verify records/gomoku-1f2e3d4c-000001.jsonl --json")]
pub(super) struct Verify {
    /// Records, or directories with records (*.jsonl).
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print one JSON object a record.
    #[arg(long)]
    json: bool,
}

/// A record's path and what came of it.
type Checked = (usize, Result<Verified, Difference>);

impl Verify {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut records = Vec::new();
        for path in &self.paths {
            let before = records.len();
            find(path, &mut records)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            if records.len() == before {
                let path = path.display();
                return Err(Failure::usage(format!("{path}: no records (*.jsonl) in it")));
            }
        }
        let mut wrong = 0;
        let mut printed = Ok(());
        check_all(&records, |index, checked| {
            wrong += usize::from(checked.is_err());
            if printed.is_ok() {
                printed = self.print(&records[index], checked);
            }
        });
        printed.or_else(broken_pipe)?;
        match wrong {
            0 => Ok(()),
            _ => Err(Failure::Negative(format!("{wrong} of {} records are wrong", records.len()))),
        }
    }

    fn print(&self, path: &Path, checked: &Result<Verified, Difference>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let path = path.display().to_string();
        match checked {
            Ok(found) if self.json => {
                let scores: Vec<_> = found.standings.iter().map(|seat| &seat.score).collect();
                let transcript = found.transcript.to_string();
                let line = json!({"path": path, "ok": true, "scores": scores,
                    "transcript": transcript});
                writeln!(out, "{line}")
            }
            Err(difference) if self.json => {
                let line = json!({"path": path, "ok": false,
                    "difference": difference.to_string()});
                writeln!(out, "{line}")
            }
            Ok(found) => writeln!(out, "{path}: ok, {} lines", found.lines),
            Err(difference) => writeln!(out, "{path}: WRONG, {difference}"),
        }
    }
}

/// Collects records: the file itself, or every `*.jsonl` below a directory, in order.
fn find(path: &Path, records: &mut Vec<PathBuf>) -> io::Result<()> {
    let found = fs::metadata(path)?;
    if found.is_file() {
        records.push(path.to_owned());
        return Ok(());
    }
    if !found.is_dir() {
        return Err(io::Error::other("neither a record nor a directory"));
    }
    let entries: io::Result<Vec<_>> =
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries?;
    entries.sort();
    for entry in entries {
        // Links are followed where they are named, not where they are found.
        let found = fs::symlink_metadata(&entry)?;
        let record = entry.extension().is_some_and(|extension| extension == "jsonl");
        if found.is_dir() || (found.is_file() && record) {
            find(&entry, records)?;
        }
    }
    Ok(())
}

/// Checks records on all cores, and shows each result in the order of the records.
fn check_all(records: &[PathBuf], mut show: impl FnMut(usize, &Result<Verified, Difference>)) {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel::<Checked>();
    let bar = progress::bar(records.len(), "records");
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(records.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = records.get(index) else { return };
                    let checked = File::open(path)
                        .map_err(Difference::from)
                        .and_then(|file| record::verify(BufReader::new(file)));
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

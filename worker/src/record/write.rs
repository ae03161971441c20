//! Writing a record while its match is played.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use arbiter_games::{Micros, Seat, Standing};
use tempfile::NamedTempFile;

use super::line::{Header, Line, Over};
use super::transcript::TranscriptHash;
use crate::fault::{Context as _, Fault};
use crate::referee::{Event, Witness};
use crate::sandbox;

/// What is told about a record that cannot be written.
const FAILED: &str = "cannot write a record";

/// How the name of a record begins that is not complete.
const PREFIX: &str = ".record-";

/// A record being written. It appears under its name when it is complete, or not at all.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    /// Tells that somebody is at work on it.
    _lock: File,
    seal: blake3::Hasher,
}

impl Recorder {
    /// Begins a record that will appear at `path`, whose directory exists.
    ///
    /// # Errors
    /// A fault if the directory cannot be written to.
    pub fn create(path: PathBuf, header: &Header) -> Result<Self, Fault> {
        let directory = path.parent().unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(directory)
            .fault(FAILED)?;
        let lock = sandbox::hold(file.path()).fault(FAILED)?;
        let lock = lock.ok_or_else(|| Fault::new(FAILED, "another run removed it as it began"))?;
        let (file, seal) = (BufWriter::new(file), blake3::Hasher::new());
        let mut recorder = Self { path, file, _lock: lock, seal };
        recorder.line(&serde_json::to_string(header).fault(FAILED)?)?;
        Ok(recorder)
    }

    /// Removes the beginnings of records in `directory` whose writers were killed.
    pub fn sweep(directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let begun = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
            if begun && let Ok(Some(_lock)) = sandbox::hold(&entry.path()) {
                // What cannot be removed is in nobody's way: it is no record by its name.
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// Adds the end of a bot's standard error.
    ///
    /// # Errors
    /// A fault if the file cannot be written.
    pub fn stderr(&mut self, seat: Seat, bytes: &[u8], dropped: usize) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.event(&Line::Stderr { seat, text, dropped })
    }

    /// Closes the record with the result, and gives it its name.
    ///
    /// # Errors
    /// A fault if the file cannot be written.
    pub fn finish(
        mut self,
        standings: &[Standing],
        transcript: TranscriptHash,
    ) -> Result<(), Fault> {
        let over = Over::new(standings, transcript, self.seal.finalize());
        self.line(&serde_json::to_string(&over).fault(FAILED)?)?;
        let file = self.file.into_inner().fault(FAILED)?;
        file.persist(&self.path).fault(FAILED).map(drop::<File>)
    }

    fn event(&mut self, line: &Line) -> Result<(), Fault> {
        let text = line.to_json().fault(FAILED)?;
        self.line(&text)
    }

    fn line(&mut self, text: &str) -> Result<(), Fault> {
        for part in [text.as_bytes(), b"\n"] {
            self.seal.update(part);
            self.file.write_all(part).fault(FAILED)?;
        }
        Ok(())
    }
}

impl Over {
    /// The last line of a record whose other lines have the hash `seal`.
    pub(super) fn new(
        standings: &[Standing],
        transcript: TranscriptHash,
        seal: blake3::Hash,
    ) -> Self {
        let bad: Vec<_> = standings.iter().map(|standing| standing.bad_answers).collect();
        Self {
            over: true,
            scores: standings.iter().map(|standing| standing.score.clone()).collect(),
            forfeits: standings.iter().map(|standing| standing.forfeit).collect(),
            bad_answers: bad.iter().any(|count| *count > 0).then_some(bad),
            transcript: transcript.to_string(),
            seal: seal.to_string(),
        }
    }
}

impl Witness for Recorder {
    fn witness(&mut self, time: Micros, event: Event<'_>) -> Result<(), Fault> {
        self.event(&match event {
            Event::Sent { seat, text, .. } => Line::Sent { time, seat, text: text.to_owned() },
            Event::Replied { seat, reply, spent, .. } => {
                Line::Replied { time, seat, reply: reply.to_owned(), spent }
            }
            Event::Forfeited { seat, forfeit, spent, detail } => {
                Line::Forfeited { time, seat, forfeit, spent, detail: detail.to_owned() }
            }
            Event::Noted(note) => Line::Noted { time, note: note.clone() },
        })
    }
}

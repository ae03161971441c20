//! Writes a record while its match is played.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arbiter_games::{Micros, Seat, SeatResult};
use arbiter_replay::{Header, Line, Transcript, TranscriptHash, Writer};
use tempfile::NamedTempFile;

use crate::fault::{Context as _, Fault};
use crate::referee::{EventSink, MatchEvent};
use crate::sandbox;

/// The operation in the fault of a failed write.
const FAILED: &str = "cannot write a record";

/// File name prefix of incomplete records.
const PREFIX: &str = ".record-";

/// An incomplete record. A complete record gets its final name.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    writer: Writer<BufWriter<NamedTempFile>>,
    /// The lock that marks the file as in use.
    _lock: File,
}

impl Recorder {
    /// Creates a record for `path`, whose directory exists.
    pub fn create(path: PathBuf, header: &Header) -> Result<Self, Fault> {
        let directory = path.parent().unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(directory)
            .fault(FAILED)?;
        let lock = sandbox::try_lock_path(file.path())
            .fault(FAILED)?
            .ok_or_else(|| Fault::new(FAILED, "another run removed the new file"))?;

        let writer = Writer::new(BufWriter::new(file), header).fault(FAILED)?;
        Ok(Self { path, writer, _lock: lock })
    }

    /// Removes incomplete records in `directory` whose writers were killed.
    pub fn sweep(directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_incomplete = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
            if is_incomplete && let Ok(Some(_lock)) = sandbox::try_lock_path(&entry.path()) {
                // If this fails, the file has no effect: its name is not the name of a record.
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// Adds the last bytes of a bot's standard error.
    pub fn stderr(&mut self, seat: Seat, bytes: &[u8], dropped: usize) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.event(&Line::Stderr { seat, text, dropped })
    }

    /// Completes the record with the results, and gives it its final name.
    pub fn finish(self, standings: &[SeatResult], transcript: TranscriptHash) -> Result<(), Fault> {
        let buffer = self.writer.finish(standings, transcript).fault(FAILED)?;
        let file = buffer.into_inner().fault(FAILED)?;
        file.persist(&self.path).fault(FAILED).map(drop::<File>)
    }

    fn event(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        self.writer.line(line).fault(FAILED)
    }
}

impl EventSink for Recorder {
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        self.event(&match event {
            MatchEvent::Sent { seat, text, .. } => Line::Sent { time, seat, text: text.into() },
            MatchEvent::Replied { seat, reply, spent, .. } => {
                Line::Replied { time, seat, reply: reply.into(), spent }
            }
            MatchEvent::Forfeited { seat, forfeit, spent, detail } => {
                Line::Forfeited { time, seat, forfeit, spent, detail: detail.to_owned() }
            }
            MatchEvent::Noted(note) => Line::Noted { time, note: note.clone() },
        })
    }
}

impl EventSink for Transcript {
    fn on_event(&mut self, _time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        match event {
            MatchEvent::Sent { seat, text, tells_time: false } => self.sent(seat, text),
            MatchEvent::Replied { seat, reply, tells_time: false, .. } => self.replied(seat, reply),
            MatchEvent::Forfeited { seat, forfeit, .. } => self.forfeited(seat, forfeit),
            MatchEvent::Sent { .. } | MatchEvent::Replied { .. } | MatchEvent::Noted(_) => {}
        }
        Ok(())
    }
}

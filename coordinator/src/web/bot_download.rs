//! All records of a bot, its trials and its forfeits in one zip archive, for its owner and for
//! organisers.
//!
//! # Theory of operation
//!
//! One task fetches the parts one by one, as the service returns them to this caller: without the
//! private parts of other owners. A blocking thread packs them, and waits while the client has not
//! read the last chunks. So a download needs the memory of a few chunks and of one compressed
//! record at most. An error in the middle aborts the response, so that the client sees that the
//! archive is incomplete.

use std::fmt::Write as _;
use std::io::{self, Write};

use arbiter_packages::archive_writer::ZipStream;
use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{
    GetBotLogRequest, GetBotRequest, GetTrialRequest, LogEntry, TrialStatus, Version,
};
use arbiter_replay::unpack;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use super::csv_export::{csv_text, escape_formula};
use super::download;
use super::error::WebError;
use super::session::Session;
use crate::service::{ErrorKind, HeldRecord, ServiceError};

/// The matches of a page of the log, and of a download by default.
const PAGE: u32 = 1000;
/// Maximum number of matches in a download.
const MAX_MATCHES: usize = 20_000;
/// Maximum number of downloads at the same time.
const MAX_DOWNLOADS: usize = 4;
/// A chunk is sent when it reaches this size, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of chunks waiting to be sent.
const MAX_QUEUED_CHUNKS: usize = 2;

static PERMITS: Semaphore = Semaphore::const_new(MAX_DOWNLOADS);

/// The query string.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DownloadQuery {
    /// Any value but the empty one and `0`: all matches, not only the newest.
    all: String,
}

/// The archive.
pub(super) async fn download(
    session: Session,
    Path((tournament, bot)): Path<(String, String)>,
    Query(DownloadQuery { all }): Query<DownloadQuery>,
) -> Result<Response, WebError> {
    let permit = PERMITS.try_acquire().map_err(|_| {
        let message =
            format!("{MAX_DOWNLOADS} downloads are running; try again when one is complete");
        WebError::new(StatusCode::SERVICE_UNAVAILABLE, message)
    })?;
    let is_all = !matches!(&*all, "" | "0");
    let source = Source { session, tournament, bot };
    // The first page is fetched here, so that a refusal has its status.
    let log = source.page(0, false).await?;
    let file = format!("{}-{}.zip", source.tournament, source.bot);
    let (parts, packed_parts) = mpsc::channel(1);
    let (chunks, body) = mpsc::channel(MAX_QUEUED_CHUNKS);
    tokio::spawn(async move {
        if let Err(error) = source.send_all(&parts, log, is_all).await {
            // Sending fails if the client has disconnected.
            drop(parts.send(Part::Failed(error)).await);
        }
    });
    tokio::task::spawn_blocking(move || pack(packed_parts, chunks, permit));
    Ok(download::file(&file, "application/zip", Body::from_stream(ReceiverStream::new(body))))
}

/// A file of the archive.
enum Part {
    /// A text.
    Text(String, Bytes),
    /// A compressed record.
    Record(String, HeldRecord),
    /// The next file cannot be fetched.
    Failed(ServiceError),
}

/// The archive was not needed any more, or a part of it could not be fetched.
type Sent = Result<(), ServiceError>;

/// Where the parts come from.
struct Source {
    session: Session,
    tournament: String,
    bot: String,
}

impl Source {
    /// The log of the bot, from the match before this one; 0 stands for the newest match.
    async fn page(&self, before: u64, forfeits: bool) -> Result<Vec<LogEntry>, ServiceError> {
        let tournament = self.tournament.clone();
        let bot = self.bot.clone();
        let request = GetBotLogRequest { tournament, bot, limit: PAGE, forfeits, before };
        let Session { service, caller, .. } = &self.session;
        Ok(service.get_bot_log(caller, request).await?.entries)
    }

    /// Sends all parts. `first` is the first page of the log.
    async fn send_all(
        &self,
        parts: &mpsc::Sender<Part>,
        first: Vec<LogEntry>,
        is_all: bool,
    ) -> Sent {
        self.send_trials(parts).await?;
        let mut page = first;
        let mut forfeits = Vec::new();
        let mut counts = RecordCounts::default();
        while let Some(last) = page.last() {
            let before = number_of(last);
            for entry in &page {
                self.send_record(parts, &entry.r#match, &mut counts).await?;
            }
            let is_full = page.len() == PAGE as usize;
            forfeits.extend(page.into_iter().filter(|entry| entry.evidence.is_some()));
            counts.is_cut = is_full && (!is_all || counts.matches() >= MAX_MATCHES);
            if !is_full || counts.is_cut {
                break;
            }
            page = self.page(before, false).await?;
        }
        send(parts, Part::Text("forfeits.csv".to_owned(), forfeits_csv(&forfeits))).await?;
        let readme = self.readme(&counts);
        send(parts, Part::Text("README.txt".to_owned(), readme.into())).await
    }

    /// Sends what the trials of all versions showed.
    async fn send_trials(&self, parts: &mpsc::Sender<Part>) -> Sent {
        let Session { service, caller, .. } = &self.session;
        let request = GetBotRequest { tournament: self.tournament.clone(), bot: self.bot.clone() };
        for Version { number, .. } in service.get_bot(caller, request).await?.versions {
            let tournament = self.tournament.clone();
            let request = GetTrialRequest { tournament, bot: self.bot.clone(), number };
            let status = service.get_trial(caller, request).await?;
            let folder = format!("versions/{number}");
            let text = trial_text(&status).into();
            send(parts, Part::Text(format!("{folder}/trial.txt"), text)).await?;
            if !status.log.is_empty() {
                let log = status.log.into();
                send(parts, Part::Text(format!("{folder}/build.log"), log)).await?;
            }
        }
        Ok(())
    }

    /// Sends the record of a match, if there is one that the caller may read now.
    async fn send_record(
        &self,
        parts: &mpsc::Sender<Part>,
        name: &str,
        counts: &mut RecordCounts,
    ) -> Sent {
        let Session { service, caller, .. } = &self.session;
        match service.record(caller, name).await {
            Ok(record) => {
                counts.records += 1;
                let file = format!("records/{}.jsonl", name.replace('/', "-"));
                send(parts, Part::Record(file, record)).await
            }
            // The record is deleted or not stored yet, or the results are not public yet.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::FailedPrecondition
                        | ErrorKind::NotFound
                        | ErrorKind::PermissionDenied
                ) =>
            {
                counts.missing += 1;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn readme(&self, counts: &RecordCounts) -> String {
        let Self { tournament, bot, .. } = self;
        let RecordCounts { records, missing, is_cut } = counts;
        let mut text = format!(
            "Bot {bot} in tournament {tournament}.\n\n\
             records/*.jsonl    the records of {records} matches, the newest first in the archive;\n\
             \x20                  check them with: arbiter verify records\n\
             versions/N/        the trial of version N and the output of its build\n\
             forfeits.csv       forfeits and bad answers in these matches, with the reasons\n"
        );
        let mut add = |line: String| writeln!(text, "\n{line}").expect("writing to a string");
        if *missing > 0 {
            add(format!(
                "{missing} more matches have no record now: it was deleted, is not stored yet, or \
                 the results are not public yet."
            ));
        }
        if *is_cut {
            let matches = counts.matches();
            add(format!(
                "These are the newest {matches} matches. Add ?all=1 to the address to get up to \
                 {MAX_MATCHES}."
            ));
        }
        text
    }
}

/// How many records an archive has.
#[derive(Debug, Default)]
struct RecordCounts {
    records: usize,
    /// Matches without a record for this caller.
    missing: usize,
    /// Whether there are older matches.
    is_cut: bool,
}

impl RecordCounts {
    fn matches(&self) -> usize {
        self.records + self.missing
    }
}

/// Sends a part to the thread that packs.
async fn send(parts: &mpsc::Sender<Part>, part: Part) -> Sent {
    parts.send(part).await.map_err(|_| ServiceError::stopping())
}

/// The number of a match; 0 if it has none, which no match of a log is.
fn number_of(entry: &LogEntry) -> u64 {
    let name = entry.r#match.parse::<MatchName>();
    name.map_or(0, |name| name.number.0.unsigned_abs())
}

/// Forfeits and bad answers as CSV.
fn forfeits_csv(entries: &[LogEntry]) -> Bytes {
    csv_text(|table| {
        table.push(["match", "seat", "bots", "forfeit", "reason", "wall_us", "cpu_us"]);
        for entry in entries {
            let evidence = entry.evidence.clone().unwrap_or_default();
            table.push([
                entry.r#match.clone(),
                entry.seat.to_string(),
                escape_formula(&entry.bots.join(" ")),
                entry.forfeit.clone(),
                escape_formula(&evidence.detail),
                evidence.wall_us.to_string(),
                evidence.cpu_us.to_string(),
            ]);
        }
    })
}

/// What a trial showed, as text.
fn trial_text(status: &TrialStatus) -> String {
    let version = status.version.clone().unwrap_or_default();
    let mut text = format!("version {}: {}\n", version.number, version.state);
    let mut section = |title: &str, lines: &str| {
        if !lines.trim().is_empty() {
            write!(text, "\n{title}\n{lines}\n").expect("writing to a string");
        }
    };
    section("reason:", &version.reason);
    section("evidence:", &status.evidence);
    section("warnings:", &status.warnings.join("\n"));
    section("measurements:", &status.measurements);
    text
}

/// Packs the parts into chunks of a zip archive.
#[expect(clippy::needless_pass_by_value, reason = "the channel closes when this ends")]
fn pack(
    mut parts: mpsc::Receiver<Part>,
    chunks: mpsc::Sender<Result<Bytes, ServiceError>>,
    permit: SemaphorePermit<'static>,
) {
    let out = ChunkWriter { chunks: chunks.clone(), buffer: Vec::new() };
    let mut archive = ZipStream::new(out);
    let result = loop {
        match parts.blocking_recv() {
            None => break archive.finish().and_then(|mut out| out.send()),
            Some(Part::Failed(error)) => break Err(io::Error::other(error.message().to_owned())),
            Some(part) => {
                if let Err(error) = add(&mut archive, part) {
                    break Err(error);
                }
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "the download of a bot was aborted");
        // Sending fails if the client has disconnected.
        drop(chunks.blocking_send(Err(ServiceError::internal("the archive is incomplete"))));
    }
    drop(permit);
}

/// Adds a file to an archive.
fn add(archive: &mut ZipStream<ChunkWriter>, part: Part) -> io::Result<()> {
    match part {
        Part::Text(name, text) => {
            archive.begin(&name)?;
            archive.write_all(&text)
        }
        Part::Record(name, record) => {
            archive.begin(&name)?;
            io::copy(&mut unpack(&record)?, archive).map(drop)
        }
        Part::Failed(_) => Ok(()),
    }
}

/// Sends what is written in chunks, as fast as the client reads them.
struct ChunkWriter {
    chunks: mpsc::Sender<Result<Bytes, ServiceError>>,
    buffer: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    /// Small writes are collected: the library flushes often.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ChunkWriter {
    fn send(&mut self) -> io::Result<()> {
        let chunk = std::mem::take(&mut self.buffer);
        self.chunks.blocking_send(Ok(chunk.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

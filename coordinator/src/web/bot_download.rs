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
//!
//! A token can have one download at a time. A third task hands the chunks to the client and ends a
//! download that takes too long, or whose client does not read. The token is checked again and
//! again, so that its revocation ends the download.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arbiter_packages::archive_writer::ZipStream;
use arbiter_proto::ids::{MatchName, TokenId};
use arbiter_proto::state_words::version_state;
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
use tokio::time::{Instant, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;

use super::csv_export::{csv_text, escape_formula};
use super::error::WebError;
use super::session::Session;
use super::{download, layout};
use crate::access::Role;
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

/// Maximum time of a download.
const MAX_DURATION: Duration = Duration::from_secs(60 * 60);
/// Maximum time until the client has read the next chunk.
const MAX_STALL: Duration = Duration::from_secs(60);
/// The token is checked again after this number of matches.
const MATCHES_PER_CHECK: usize = 100;

static PERMITS: Semaphore = Semaphore::const_new(MAX_DOWNLOADS);
/// The tokens whose downloads are running.
static TOKENS: Mutex<BTreeSet<TokenId>> = Mutex::new(BTreeSet::new());

fn tokens() -> MutexGuard<'static, BTreeSet<TokenId>> {
    TOKENS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right of a token to a download, until it is dropped.
#[derive(Debug)]
struct Permit {
    token: TokenId,
    _place: SemaphorePermit<'static>,
}

impl Permit {
    fn take(token: TokenId) -> Result<Self, WebError> {
        let place = PERMITS.try_acquire().map_err(|_| {
            let message =
                format!("{MAX_DOWNLOADS} downloads are running; try again when one is complete");
            WebError::new(StatusCode::SERVICE_UNAVAILABLE, message)
        })?;
        if !tokens().insert(token) {
            let message = "another download with your token is running; wait until it is complete";
            return Err(WebError::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        Ok(Self { token, _place: place })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        tokens().remove(&self.token);
    }
}

/// A part of the archive, or why it is incomplete.
type Chunk = Result<Bytes, ServiceError>;

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
    let permit = Permit::take(session.caller.require(Role::Player)?.id)?;
    let is_all = !matches!(&*all, "" | "0");
    let source = Source { session, tournament, bot };
    // The first page is fetched here, so that a refusal has its status.
    let log = source.page(0, false).await?;
    let file = format!("{}-{}.zip", source.tournament, source.bot.replace('/', "-"));
    let (parts, packed_parts) = mpsc::channel(1);
    let (chunks, packed_chunks) = mpsc::channel(1);
    let (client, body) = mpsc::channel(MAX_QUEUED_CHUNKS);
    tokio::spawn(async move {
        if let Err(error) = source.send_all(&parts, log, is_all).await {
            // Sending fails if the client has disconnected.
            drop(parts.send(Part::Failed(error)).await);
        }
    });
    tokio::task::spawn_blocking(move || pack(packed_parts, chunks, permit));
    tokio::spawn(hand_over(packed_chunks, client, MAX_STALL));
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
            // Match 0 is the oldest, and a request for those before 0 would return the newest.
            let has_older = is_full && before > 0;
            counts.is_cut = has_older && (!is_all || counts.matches() >= MAX_MATCHES);
            if !has_older || counts.is_cut {
                break;
            }
            page = self.page(before, false).await?;
        }
        send(parts, Part::Text("forfeits.csv".to_owned(), forfeits_csv(&forfeits))).await?;
        let readme = self.readme(&counts, is_all);
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
        if counts.matches().is_multiple_of(MATCHES_PER_CHECK) {
            service.check_still_valid(caller).await?;
        }
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

    fn readme(&self, counts: &RecordCounts, is_all: bool) -> String {
        let Self { tournament, bot, .. } = self;
        let RecordCounts { records, missing, is_cut } = *counts;
        let matches = layout::count(records, "match", "matches");
        let mut text = format!(
            "Bot {bot} in tournament {tournament}.\n\n\
             records/*.jsonl    the records of {matches}, the newest first in the archive;\n\
             \x20                  check them with: arbiter verify records\n\
             versions/N/        the trial of version N and the output of its build\n\
             forfeits.csv       forfeits and bad replies in these matches, with the reasons\n"
        );
        let mut add = |line: String| writeln!(text, "\n{line}").expect("writing to a string");
        if missing > 0 {
            let matches = layout::count(missing, "more match has", "more matches have");
            add(format!(
                "{matches} no record now: it was deleted, is not stored yet, or the results are \
                 not public yet."
            ));
        }
        if is_cut {
            let matches = counts.matches();
            let remedy = if is_all {
                format!("For older ones: arbiter log {tournament} {bot} --download DIR --all")
            } else {
                format!("Add ?all=1 to the address to get up to {MAX_MATCHES}.")
            };
            add(format!("These are the newest {matches} matches. {remedy}"));
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

/// The number of a match; 0 if its name is not valid, so that the download ends.
fn number_of(entry: &LogEntry) -> u64 {
    let name = entry.r#match.parse::<MatchName>();
    name.map_or(0, |name| name.number.0.unsigned_abs())
}

/// Forfeits and bad replies as CSV.
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
    let mut text = format!("version {}: {}\n", version.number, version_state(&version.state));
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
fn pack(mut parts: mpsc::Receiver<Part>, chunks: mpsc::Sender<Chunk>, permit: Permit) {
    let client = chunks.clone();
    let out = ChunkWriter { chunks, buffer: Vec::new() };
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
        drop(client.blocking_send(Err(incomplete())));
    }
    drop(permit);
}

fn incomplete() -> ServiceError {
    ServiceError::internal("the archive is incomplete")
}

/// Hands the chunks to the client. The packing ends if the client does not read the next chunk
/// within `max_stall`, or all of them within [`MAX_DURATION`].
async fn hand_over(
    mut chunks: mpsc::Receiver<Chunk>,
    client: mpsc::Sender<Chunk>,
    max_stall: Duration,
) {
    let deadline = Instant::now() + MAX_DURATION;
    let to = &client;
    let all = timeout_at(deadline, async move {
        while let Some(chunk) = chunks.recv().await {
            // Sending fails if the client has disconnected.
            if !matches!(timeout(max_stall, to.send(chunk)).await, Ok(Ok(()))) {
                return false;
            }
        }
        true
    });
    if all.await != Ok(true) {
        // A client that reads again must see that the archive is incomplete.
        drop(client.send(Err(incomplete())).await);
    }
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
    chunks: mpsc::Sender<Chunk>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_one_download_at_a_time() {
        let first = Permit::take(TokenId(1)).unwrap();
        assert!(Permit::take(TokenId(1)).is_err());
        let second = Permit::take(TokenId(2)).unwrap();
        drop(first);
        let again = Permit::take(TokenId(1)).unwrap();
        drop((second, again));
        assert!(tokens().is_empty());
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_ends_its_download() {
        let (chunks, packed_chunks) = mpsc::channel(1);
        let (client, mut body) = mpsc::channel(1);
        tokio::spawn(hand_over(packed_chunks, client, Duration::from_millis(10)));
        for _ in 0..2 {
            chunks.send(Ok(Bytes::new())).await.unwrap();
        }
        chunks.closed().await;
        assert!(body.recv().await.unwrap().is_ok());
        assert!(body.recv().await.unwrap().is_err(), "the client sees that a part is missing");
        assert!(body.recv().await.is_none());
    }
}

//! A tournament's data as one archive: the CSV files of an edition, the settings, the certificate,
//! the leaderboards of all editions and, on request, the records that the caller may see.
//!
//! # Theory of operation
//!
//! The archive is a tar file compressed by gzip, because every system can open one, and because it
//! can be written while it is sent, in bounded memory. A tar file names the size of each file
//! before its bytes. So matches and records are produced twice: once to count their bytes, once to
//! send them. Both times they are the same, because only complete editions have archives. If they
//! are not, the download ends with an error. The same data gives the same bytes.

use std::io::Read as _;

use arbiter_packages::archive_writer::{GzipBuffer, TAR_BLOCK, tar_header};
use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{
    CertifyEditionRequest, GetTournamentRequest, LeaderboardRef, ListBotsRequest,
    ListMatchesRequest, Tournament,
};
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::csv_export::{bots_text, columns, match_chunks, ranking_chunks, statistics_text};
use super::error::{WebError, none_if};
use super::session::Session;
use super::{api, download};
use crate::db::editions::{Edition, EditionState};
use crate::service::{ErrorKind, HeldRecord, ServiceError};

const CONTENT_TYPE: &str = "application/gzip";
/// A chunk is sent when it reaches this size, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of chunks waiting to be sent.
const MAX_QUEUED_CHUNKS: usize = 2;

/// The query string of an archive.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ArchiveQuery {
    /// The edition's number. Default: the official edition.
    edition: Option<i32>,
    /// Whether to add records: 1 or 0.
    records: u8,
}

/// Why an archive is not written to its end.
#[derive(Debug)]
enum Interruption {
    /// The client closed the connection.
    Disconnected,
    Failed(ServiceError),
}

impl From<ServiceError> for Interruption {
    fn from(error: ServiceError) -> Self {
        Self::Failed(error)
    }
}

type Result<T> = std::result::Result<T, Interruption>;

/// The archive of a complete edition.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<ArchiveQuery>,
) -> std::result::Result<Response, WebError> {
    let contents = Contents::gather(session, tournament, query).await?;
    let folder = format!("{}-{}-data", contents.tournament.name, contents.edition.number);
    let (sender, chunks) = mpsc::channel(MAX_QUEUED_CHUNKS);
    let name = format!("{folder}.tar.gz");
    tokio::spawn(async move {
        let written_at = contents.edition.ended_at.unwrap_or(contents.edition.created_at);
        let mtime = u64::try_from(written_at.unix_timestamp()).unwrap_or_default();
        let mut archive = ArchiveWriter::new(folder, mtime, sender.clone());
        if let Err(Interruption::Failed(error)) = contents.write(&mut archive).await {
            // The client sees that the archive is incomplete.
            drop(sender.send(Err(error)).await);
        }
    });
    let body = Body::from_stream(ReceiverStream::new(chunks));
    Ok(download::file(&name, CONTENT_TYPE, body))
}

/// What an archive contains. Small files are in memory.
struct Contents {
    session: Session,
    tournament: Tournament,
    edition: Edition,
    /// Names and bytes of the small files, in their order.
    files: Vec<(&'static str, Bytes)>,
    with_records: bool,
}

impl Contents {
    async fn gather(
        session: Session,
        tournament: String,
        ArchiveQuery { edition, records }: ArchiveQuery,
    ) -> std::result::Result<Self, WebError> {
        let caller = &session.caller;
        let service = &session.service;
        let board = LeaderboardRef { tournament: tournament.clone(), edition };
        let (edition, board) = service.leaderboard(caller, board).await?;
        let number = edition.number;
        if edition.state != EditionState::Complete {
            let message = format!(
                "edition {number} of {tournament} is {}; only complete editions have archives, so \
                 download its matches.csv instead",
                edition.state.as_str()
            );
            return Err(WebError::new(StatusCode::CONFLICT, message));
        }
        let reference = LeaderboardRef { tournament: tournament.clone(), edition: Some(number) };
        let statistics = service.all_statistics(caller, reference).await;
        let statistics = none_if(&[ErrorKind::FailedPrecondition], statistics)?;
        let request = CertifyEditionRequest {
            tournament: tournament.clone(),
            edition: Some(number),
            ..CertifyEditionRequest::default()
        };
        let certificate = service.certify_edition(caller, request).await;
        let certificate = none_if(&[ErrorKind::FailedPrecondition], certificate)?;
        let request =
            GetTournamentRequest { tournament: tournament.clone(), edition: Some(number) };
        let tournament = service.get_tournament(caller, request).await?;
        let request = ListBotsRequest { tournament: tournament.name.clone() };
        let bots = service.list_bots(caller, request).await?.bots;
        let readme = readme(&tournament.name, number, &board.game.ranking_columns());
        let mut files = vec![
            ("README.txt", Bytes::from(readme)),
            ("tournament.json", api::tournament_json(tournament.clone())),
            ("bots.csv", bots_text(&bots)),
        ];
        files.extend(certificate.map(|found| ("certificate.json", api::certificate_json(found))));
        files
            .extend(statistics.map(|found| ("statistics.csv", statistics_text(&found.statistics))));
        Ok(Self { tournament, edition, files, with_records: records != 0, session })
    }

    async fn write(&self, archive: &mut ArchiveWriter) -> Result<()> {
        for (name, bytes) in &self.files {
            archive.file(name, bytes).await?;
        }
        self.write_leaderboards(archive).await?;
        self.write_matches(archive).await?;
        if self.with_records {
            self.write_records(archive).await?;
        }
        archive.finish().await
    }

    /// Writes the leaderboards of all complete editions that the caller may see.
    async fn write_leaderboards(&self, archive: &mut ArchiveWriter) -> Result<()> {
        for edition in self.tournament.editions.iter().rev() {
            if edition.state != EditionState::Complete.as_str() {
                continue;
            }
            let name = self.tournament.name.clone();
            let number = edition.number;
            let request = LeaderboardRef { tournament: name, edition: Some(number) };
            let found = self.session.service.leaderboard(&self.session.caller, request).await;
            let board = match found {
                Ok((_, board)) => board,
                Err(error) if error.kind() == ErrorKind::PermissionDenied => continue,
                Err(error) => return Err(error.into()),
            };
            let text: Vec<u8> = ranking_chunks(board).flatten().collect();
            archive.file(&format!("rankings/edition-{number}.csv"), &text).await?;
            if number == self.edition.number {
                archive.file("ranking.csv", &text).await?;
            }
        }
        Ok(())
    }

    fn all_matches(&self) -> ListMatchesRequest {
        ListMatchesRequest {
            tournament: self.tournament.name.clone(),
            edition: Some(self.edition.number),
            ..ListMatchesRequest::default()
        }
    }

    async fn write_matches(&self, archive: &mut ArchiveWriter) -> Result<()> {
        let mut size = 0;
        let mut chunks = match_chunks(&self.session, self.all_matches()).await?;
        while let Some(chunk) = chunks.next().await {
            size += chunk?.len() as u64;
            if archive.sender.is_closed() {
                return Err(Interruption::Disconnected);
            }
        }
        archive.begin("matches.csv", size).await?;
        let mut chunks = match_chunks(&self.session, self.all_matches()).await?;
        while let Some(chunk) = chunks.next().await {
            archive.write(&chunk?).await?;
        }
        archive.end().await
    }

    /// Writes the records that exist and that the caller may see.
    async fn write_records(&self, archive: &mut ArchiveWriter) -> Result<()> {
        let service = &self.session.service;
        let mut matches = service.list_matches(&self.session.caller, self.all_matches()).await?;
        while let Some(played) = matches.next().await {
            let name = played?.r#match;
            let record = match service.record(&self.session.caller, &name).await {
                Ok(record) => record,
                Err(error) if is_hidden(error.kind()) => continue,
                Err(error) => return Err(error.into()),
            };
            let number = name.parse::<MatchName>().map_err(ServiceError::from)?.number;
            let path = format!("records/{:06}.jsonl", number.0);
            write_record(archive, &path, &record).await?;
        }
        Ok(())
    }
}

/// Whether a record is missing or not for this caller.
fn is_hidden(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied | ErrorKind::Unauthenticated | ErrorKind::FailedPrecondition
    )
}

/// Writes the lines of a compressed record.
async fn write_record(archive: &mut ArchiveWriter, path: &str, record: &HeldRecord) -> Result<()> {
    let mut size = 0;
    // The first pass counts the bytes, the second one sends them.
    for is_sent in [false, true] {
        if is_sent {
            archive.begin(path, size).await?;
        }
        let mut lines = arbiter_replay::unpack(record).map_err(|_| unreadable(path))?;
        loop {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            let mut limited = lines.by_ref().take(CHUNK_BYTES as u64);
            limited.read_to_end(&mut chunk).map_err(|_| unreadable(path))?;
            if chunk.is_empty() {
                break;
            }
            if record.is_too_late() {
                let error = "the records were read too slowly; download the archive again";
                return Err(ServiceError::unavailable(error).into());
            }
            if is_sent {
                archive.write(&chunk).await?;
            } else {
                size += chunk.len() as u64;
            }
            tokio::task::yield_now().await;
        }
    }
    archive.end().await
}

fn unreadable(path: &str) -> ServiceError {
    ServiceError::internal(format!("the file {path} cannot be read"))
}

/// Writes a compressed tar file to a client, chunk by chunk.
struct ArchiveWriter {
    /// The folder of all files.
    folder: String,
    /// The time of all files, in seconds since 1970.
    mtime: u64,
    compressed: GzipBuffer,
    /// Bytes that the present file still lacks.
    missing: u64,
    /// Bytes of the present file until now.
    written: u64,
    sender: mpsc::Sender<std::result::Result<Bytes, ServiceError>>,
}

impl ArchiveWriter {
    fn new(
        folder: String,
        mtime: u64,
        sender: mpsc::Sender<std::result::Result<Bytes, ServiceError>>,
    ) -> Self {
        Self { folder, mtime, compressed: GzipBuffer::default(), missing: 0, written: 0, sender }
    }

    /// Writes a whole file.
    async fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.begin(name, bytes.len() as u64).await?;
        for chunk in bytes.chunks(CHUNK_BYTES) {
            self.write(chunk).await?;
        }
        self.end().await
    }

    /// Begins a file of this size, in bytes.
    async fn begin(&mut self, name: &str, size: u64) -> Result<()> {
        let path = format!("{}/{name}", self.folder);
        let header =
            tar_header(&path, size, self.mtime).expect("names of tournaments and files fit");
        self.missing = size;
        self.written = 0;
        self.compress(&header).await
    }

    /// Writes bytes of the present file.
    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let length = bytes.len() as u64;
        self.missing = self.missing.checked_sub(length).ok_or_else(changed)?;
        self.written += length;
        self.compress(bytes).await
    }

    /// Ends the present file.
    async fn end(&mut self) -> Result<()> {
        if self.missing > 0 {
            return Err(changed().into());
        }
        let tail = usize::try_from(self.written % TAR_BLOCK as u64).expect("it is below a block");
        self.compress(&[0; TAR_BLOCK][..(TAR_BLOCK - tail) % TAR_BLOCK]).await
    }

    /// Ends the archive.
    async fn finish(&mut self) -> Result<()> {
        self.compress(&[0; 2 * TAR_BLOCK]).await?;
        self.compressed.finish().expect("it ends once");
        self.send().await
    }

    async fn compress(&mut self, bytes: &[u8]) -> Result<()> {
        self.compressed.add(bytes).expect("the archive has not ended");
        if self.compressed.len() < CHUNK_BYTES {
            return if self.sender.is_closed() { Err(Interruption::Disconnected) } else { Ok(()) };
        }
        self.send().await
    }

    /// Sends what is compressed.
    async fn send(&mut self) -> Result<()> {
        let chunk = self.compressed.take();
        self.sender.send(Ok(chunk.into())).await.map_err(|_| Interruption::Disconnected)
    }
}

/// The error for data that was not the same twice.
fn changed() -> ServiceError {
    ServiceError::unavailable("the data changed during the download; download the archive again")
}

/// The text that explains the files of an archive.
fn readme(tournament: &str, edition: i32, components: &[&str]) -> String {
    let ranking = columns::describe(&columns::ranking(components));
    let matches = columns::describe(&columns::matches(components));
    let statistics = columns::describe(&columns::statistics());
    let bots = columns::describe(&columns::bots());
    format!(
        "Data of edition {edition} of the tournament {tournament}.\n\n\
         CSV files are UTF-8 with a header line. A name that a spreadsheet would read as a formula\n\
         has an apostrophe in front.\n\n\
         tournament.json   settings, title, hash of the seed, and the seed once it is published\n\
         certificate.json  how often bots meet and sit in each seat, if it can be counted\n\
         records/          the record of each match, by its number: only on request, and only\n                  \
         those that exist and that you may see\n\n\
         ranking.csv       the leaderboard of edition {edition}, a line for each bot\n\
         rankings/         the leaderboards of all complete editions\n\n{ranking}\n\
         matches.csv       the matches of edition {edition}, a line for each seat\n\n{matches}\n\
         statistics.csv    what the results show, a line for each bot; missing if the edition is\n                  \
         too large\n\n{statistics}\n\
         bots.csv          all bots of the tournament, a line for each\n\n{bots}"
    )
}

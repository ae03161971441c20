//! Downloads records from a coordinator; decompresses them as a stream, never whole in memory.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{GetRecordRequest, RecordPiece};
use arbiter_replay::{MAX_RECORD, MAX_WINDOW_LOG};
use tonic::{Code, Status, Streaming};
use zstd::stream::write::Decoder;

use super::client::Server;
use crate::failure::{Failure, without_temporary_path};

/// The file mode of a record, before the user's umask.
const MODE: u32 = 0o666;

/// A record that is being downloaded.
pub(super) struct RecordDownload {
    name: MatchName,
    pieces: Streaming<RecordPiece>,
}

/// Starts the download of a match's record. The inner error says that there is no record.
pub(super) async fn open(
    server: &Server,
    name: &MatchName,
) -> Result<Result<RecordDownload, Status>, Failure> {
    let request = GetRecordRequest { r#match: name.to_string() };
    match server.tournaments().get_record(request).await {
        Ok(pieces) => Ok(Ok(RecordDownload { name: name.clone(), pieces: pieces.into_inner() })),
        Err(status) if status.code() == Code::NotFound => Ok(Err(status)),
        Err(status) => Err(status.into()),
    }
}

/// Starts the download of a match's record. `None` if there is no record that the caller may see.
pub(super) async fn open_if_visible(
    server: &Server,
    name: &MatchName,
) -> Result<Option<RecordDownload>, Failure> {
    let request = GetRecordRequest { r#match: name.to_string() };
    match server.tournaments().get_record(request).await {
        Ok(pieces) => Ok(Some(RecordDownload { name: name.clone(), pieces: pieces.into_inner() })),
        Err(status)
            if matches!(
                status.code(),
                Code::NotFound
                    | Code::FailedPrecondition
                    | Code::PermissionDenied
                    | Code::Unauthenticated
            ) =>
        {
            Ok(None)
        }
        Err(status) => Err(status.into()),
    }
}

/// A writer that fails beyond the maximum size of a record.
struct BoundedWriter<W> {
    out: W,
    remaining: u64,
}

impl<W: Write> Write for BoundedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.remaining =
            self.remaining.checked_sub(count as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl RecordDownload {
    /// Writes it to `out`.
    pub(super) async fn copy(mut self, out: impl Write) -> Result<(), Failure> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Negative(format!("the record of {}: {error}", self.name)),
        };
        let mut decoder =
            Decoder::new(BoundedWriter { out, remaining: MAX_RECORD }).map_err(failed)?;
        decoder.window_log_max(MAX_WINDOW_LOG).map_err(failed)?;
        while let Some(piece) = self.pieces.message().await? {
            decoder.write_all(&piece.bytes).map_err(failed)?;
        }
        decoder.flush().map_err(failed)
    }

    /// Writes it to the file at `path`, which appears only when it is complete.
    pub(super) async fn save(self, path: &Path) -> Result<(), Failure> {
        let failed = |error: io::Error| {
            Failure::usage(format!("{}: {}", path.display(), without_temporary_path(&error)))
        };
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file =
            tempfile::Builder::new().permissions(Permissions::from_mode(MODE)).tempfile_in(folder);
        let file = file.map_err(failed)?;
        self.copy(file.as_file()).await?;
        file.persist(path).map(drop).map_err(|error| failed(error.error))
    }
}

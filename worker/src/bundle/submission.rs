//! Submissions: packs an author's sources into a bundle.
//!
//! A directory, a tar archive (plain, or compressed with gzip or Zstandard) and a zip archive of
//! the same files give the same bundle. Archives are unpacked into a temporary directory, with the
//! same checks as a bundle, and packed again from there.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Cursor, Read as _};
use std::path::{Path, PathBuf};

use arbiter_games::BotName;
use flate2::read::MultiGzDecoder;
use thiserror::Error;
use zip::ZipArchive;

use super::archive::MAX_PATH_LEN;
use super::extract::{self, Capped, Kind, Unpacker, invalid_archive};
use super::{Bundle, BundleError, LIMITS, MAX_UNPACKED};
use crate::bot::source_file::{self, FileKind, SourceDir, SourceDirError};
use crate::bot::{Bot, BotError, manifest};
use crate::bounded_read::read_at_most;

/// The mask of the file type in a Unix mode, and the type of a symbolic link.
const TYPE: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// Signature of the record at the end of a zip archive, its size, and its maximum size with a
/// comment, in bytes.
const END_MARK: &[u8] = b"PK\x05\x06";
const END_LENGTH: usize = 22;
const MAX_END_LEN: usize = 22 + 65_535;

/// Maximum number of such records: a packed program may contain zip archives itself.
const MAX_END_RECORDS: usize = 1000;

/// Signature and size of the record before it in a zip64 archive.
const LOCATOR_MARK: &[u8] = b"PK\x06\x07";
const LOCATOR_LENGTH: usize = 20;

/// Signature of an entry in a zip archive's directory, and the offset of the lengths of its name,
/// extra fields and comment, two bytes each.
const ENTRY_MARK: &[u8] = b"PK\x01\x02";
const ENTRY_LENGTHS: usize = 28;

/// Maximum sum of these lengths, in bytes.
const MAX_ENTRY_FIELDS_LEN: u32 = 8 << 10;

/// Maximum size of an archive file, in bytes. Our own compression may make it smaller.
const MAX_ARCHIVE: u64 = MAX_UNPACKED + (1 << 20);

/// Offset and signature in the first header of a tar archive.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");

/// A packed submission.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The name in the manifest.
    pub name: BotName,
    /// The packed files.
    pub bundle: Bundle,
}

/// Why a path cannot be submitted: one line with file, cause and remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}{cause}", path = path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default())]
pub struct SubmissionError {
    /// The path, unless the cause names it.
    path: Option<PathBuf>,
    cause: String,
}

impl From<BotError> for SubmissionError {
    fn from(error: BotError) -> Self {
        Self { path: None, cause: error.to_string() }
    }
}

/// The accepted archive formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveFormat {
    Tar,
    TarGz,
    TarZst,
    Zip,
}

impl ArchiveFormat {
    /// The format by a file's name.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
        let formats = [
            (".tar", Self::Tar),
            (".tar.gz", Self::TarGz),
            (".tgz", Self::TarGz),
            (".tar.zst", Self::TarZst),
            (".zip", Self::Zip),
        ];
        formats.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| format)
    }

    /// The format by the first bytes. Defaults to that of a bundle.
    pub(super) fn detect(bytes: &[u8]) -> Self {
        if bytes.get(TAR_MARK.0..).is_some_and(|rest| rest.starts_with(TAR_MARK.1)) {
            return Self::Tar;
        }
        let marks = [(&b"\x1f\x8b"[..], Self::TarGz), (b"PK\x03\x04", Self::Zip)];
        let matching = marks.into_iter().find(|(mark, _)| bytes.starts_with(mark));
        matching.map_or(Self::TarZst, |(_, format)| format)
    }
}

/// Repacks a submitted archive as a bundle. `scratch` is for temporary files.
pub(super) fn repack(
    bytes: &[u8],
    format: ArchiveFormat,
    scratch: &Path,
) -> Result<Bundle, BundleError> {
    if bytes.len() > LIMITS.packed {
        return Err(LIMITS.too_large_packed());
    }
    let to = tempfile::tempdir_in(scratch).map_err(BundleError::system(scratch))?;
    unpack(bytes, format, to.path())?;
    Bundle::of_source(&top(to.path()).map_err(BundleError::system(to.path()))?)
}

impl Submission {
    /// Packs a directory, an archive, an executable file, or a source file of a known language.
    /// Builds nothing.
    pub fn read(path: &Path) -> Result<Self, SubmissionError> {
        let to_error = |cause: String| SubmissionError { path: Some(path.to_owned()), cause };
        if path.is_dir() {
            return Self::directory(path, ToString::to_string, to_error);
        }
        let Some(format) = ArchiveFormat::of(path) else {
            return Self::file(path, to_error);
        };
        let to = tempfile::tempdir()
            .map_err(|error| to_error(format!("cannot create a temporary directory: {error}")))?;
        let bytes = read_at_most(path, MAX_ARCHIVE).map_err(BundleError::system(path));
        let result = bytes.and_then(|bytes| unpack(&bytes, format, to.path()));
        result.map_err(|error| to_error(error.to_string()))?;
        let top = top(to.path()).map_err(|error| to_error(error.to_string()))?;
        Self::directory(&top, |error| error.within(&top), to_error)
    }

    /// Packs an executable file, or a source file of a known language.
    fn file(
        path: &Path,
        to_error: impl Fn(String) -> SubmissionError,
    ) -> Result<Self, SubmissionError> {
        let kind = source_file::kind(path).map_err(|error| to_error(error.to_string()))?;
        if kind == FileKind::Program {
            let bot = Bot::load(path)?;
            let bundle = Bundle::of(&bot).map_err(|error| to_error(error.to_string()))?;
            return Ok(Self { name: bot.name, bundle });
        }
        let source = SourceDir::new(path).map_err(|error| match error {
            SourceDirError::Unsuitable(error) => {
                SubmissionError { path: None, cause: error.to_string() }
            }
            error => to_error(error.to_string()),
        })?;
        let bundle =
            Bundle::of_source(&source.path()).map_err(|error| to_error(error.to_string()))?;
        Ok(Self { name: source.name, bundle })
    }

    fn directory(
        path: &Path,
        format_error: impl Fn(&BotError) -> String,
        to_error: impl Fn(String) -> SubmissionError,
    ) -> Result<Self, SubmissionError> {
        let result = manifest::read(path);
        let manifest = result.map_err(|error| SubmissionError {
            path: to_error(String::new()).path.filter(|submitted| submitted != path),
            cause: format_error(&error),
        })?;
        let bundle = Bundle::of_source(path).map_err(|error| to_error(error.to_string()))?;
        Ok(Self { name: manifest.name, bundle })
    }
}

/// The directory with the files. Archives often contain one top directory.
pub(super) fn top(to: &Path) -> io::Result<PathBuf> {
    let entries: Vec<_> = fs::read_dir(to)?.collect::<Result<_, _>>()?;
    Ok(match &entries[..] {
        [only] if only.file_type()?.is_dir() => only.path(),
        _ => to.to_owned(),
    })
}

/// Unpacks an archive into the empty directory `to`.
fn unpack(bytes: &[u8], format: ArchiveFormat, to: &Path) -> Result<(), BundleError> {
    extract::unpack(bytes.len(), to, &LIMITS, |unpacker| match format {
        ArchiveFormat::Tar => unpacker.tar(bytes, true),
        ArchiveFormat::TarGz => unpacker.tar(MultiGzDecoder::new(bytes), true),
        ArchiveFormat::TarZst => unpacker.tar(extract::decoder(bytes)?, true),
        ArchiveFormat::Zip => zip(bytes, unpacker),
    })
}

/// Unpacks a zip archive.
fn zip(bytes: &[u8], unpacker: &mut Unpacker<'_>) -> Result<(), BundleError> {
    check_directory(bytes)?;
    let announced = entries_of_zip(bytes);
    let to_error = |error: zip::result::ZipError| invalid_archive(error.into());
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(to_error)?;
    if announced.is_some_and(|announced| announced != archive.len()) {
        return Err(BundleError::invalid("it has duplicate entries; pack it again"));
    }
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(to_error)?;
        let path = entry.name_raw().to_vec();
        let size = entry.size();
        let mode = entry.unix_mode().unwrap_or(0);
        let is_directory = entry.is_dir();
        let mut contents = Capped { inner: entry, remaining: unpacker.remaining };
        let kind = if is_directory {
            Kind::Directory
        } else if mode & TYPE == LINK {
            let mut target = Vec::new();
            let max = MAX_PATH_LEN as u64 + 1;
            contents.by_ref().take(max).read_to_end(&mut target).map_err(invalid_archive)?;
            Kind::Link(target)
        } else {
            Kind::File { size, is_executable: mode & 0o111 != 0 }
        };
        unpacker.one(path, kind, &mut contents)?;
    }
    Ok(())
}

/// Refuses a zip archive whose directory would need much memory or time. It runs before the library
/// opens the archive, because the library reads the whole directory and allocates memory for all
/// announced entries.
fn check_directory(bytes: &[u8]) -> Result<(), BundleError> {
    let mut entries = 0;
    let mut ends = 0;
    for offset in (0..bytes.len()).filter(|offset| bytes[*offset] == ENTRY_MARK[0]) {
        let rest = &bytes[offset..];
        if rest.starts_with(ENTRY_MARK) {
            entries += 1;
            let fields = rest.get(ENTRY_LENGTHS..ENTRY_LENGTHS + 6).unwrap_or_default();
            let lengths =
                fields.chunks_exact(2).map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 8);
            if lengths.sum::<u32>() > MAX_ENTRY_FIELDS_LEN {
                return Err(BundleError::invalid(
                    "one of its files has too long a name or comment; shorten it",
                ));
            }
        } else if rest.starts_with(END_MARK) {
            ends += 1;
            let locator = offset.checked_sub(LOCATOR_LENGTH).map(|before| &bytes[before..]);
            if locator.is_some_and(|before| before.starts_with(LOCATOR_MARK)) {
                return Err(BundleError::invalid(
                    "zip64 archives are larger than a bundle can be; pack it without zip64",
                ));
            }
        }
        if entries > LIMITS.entries || ends > MAX_END_RECORDS {
            return Err(LIMITS.too_many());
        }
    }
    Ok(())
}

/// The number of entries that a zip archive announces. Reading by name finds only the last of
/// several entries with the same name.
fn entries_of_zip(bytes: &[u8]) -> Option<usize> {
    let end = &bytes[bytes.len().saturating_sub(MAX_END_LEN)..];
    let record = end.windows(END_LENGTH).rposition(|window| window.starts_with(END_MARK))?;
    let count = u16::from_le_bytes([end[record + 10], end[record + 11]]);
    (count != u16::MAX).then_some(count.into())
}

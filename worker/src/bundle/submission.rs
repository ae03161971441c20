//! Submissions: a bot's sources in the form in which their author has them, made into a bundle.
//!
//! A directory, a tar archive (plain, or compressed by gzip or Zstandard) and a zip archive of the
//! same files give the same bundle. Archives are unpacked into a directory of our own, under the
//! same rules as the bundles of strangers, and packed anew from there.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Cursor, Read as _};
use std::path::{Path, PathBuf};

use arbiter_games::BotName;
use flate2::read::MultiGzDecoder;
use thiserror::Error;
use zip::ZipArchive;

use super::archive::LONGEST_PATH;
use super::extract::{self, Capped, Kind, Unpacking, no_archive};
use super::{Bundle, BundleError, CAPS, MAX_UNPACKED};
use crate::bot::{Bot, BotError, manifest};
use crate::bounded_read::read_at_most;

/// The file type in a Unix mode, and that of a symbolic link.
const TYPE: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// How the record begins that ends a zip archive, how long it is at least, and with its comment at
/// most, in bytes.
const END_MARK: &[u8] = b"PK\x05\x06";
const END_LENGTH: usize = 22;
const LONGEST_END: usize = 22 + 65_535;

/// How many such records there may be: a program that was packed may hold zip archives itself.
const MOST_ENDS: usize = 1000;

/// How the record begins that precedes it in an archive of the zip64 form, and how long it is.
const LOCATOR_MARK: &[u8] = b"PK\x06\x07";
const LOCATOR_LENGTH: usize = 20;

/// How each entry begins in the list at the end of a zip archive, and where it has the lengths of
/// its name, its extra fields and its comment, two bytes each.
const ENTRY_MARK: &[u8] = b"PK\x01\x02";
const ENTRY_LENGTHS: usize = 28;

/// What these may be together, in bytes.
const LONGEST_ENTRY: u32 = 8 << 10;

/// The largest archive that is read from a file, in bytes: it may be compressed better afterwards.
const MOST_ARCHIVE: u64 = MAX_UNPACKED + (1 << 20);

/// What stands in the first header of a tar archive, and where.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");

/// A bot as its author has it, ready to go.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The name in its manifest.
    pub name: BotName,
    /// Its files.
    pub bundle: Bundle,
}

/// Why a path cannot be submitted: one line that names the thing, the cause and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}{cause}", path = path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default())]
pub struct SubmissionError {
    /// What cannot be, unless the cause names it.
    path: Option<PathBuf>,
    cause: String,
}

impl From<BotError> for SubmissionError {
    fn from(error: BotError) -> Self {
        Self { path: None, cause: error.to_string() }
    }
}

/// The archives that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Tar,
    TarGz,
    TarZst,
    Zip,
}

impl Form {
    /// The form that a file's name promises.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
        let forms = [
            (".tar", Self::Tar),
            (".tar.gz", Self::TarGz),
            (".tgz", Self::TarGz),
            (".tar.zst", Self::TarZst),
            (".zip", Self::Zip),
        ];
        forms.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, form)| form)
    }

    /// The form that bytes have by their first ones; that of a bundle if by none.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        if bytes.get(TAR_MARK.0..).is_some_and(|rest| rest.starts_with(TAR_MARK.1)) {
            return Self::Tar;
        }
        let marks = [(&b"\x1f\x8b"[..], Self::TarGz), (b"PK\x03\x04", Self::Zip)];
        let found = marks.into_iter().find(|(mark, _)| bytes.starts_with(mark));
        found.map_or(Self::TarZst, |(_, form)| form)
    }
}

/// Packs an archive that was submitted as it is. It is unpacked in `scratch` meanwhile.
pub(super) fn pack_anew(bytes: &[u8], form: Form, scratch: &Path) -> Result<Bundle, BundleError> {
    if bytes.len() > CAPS.packed {
        return Err(CAPS.too_large_packed());
    }
    let to = tempfile::tempdir_in(scratch).map_err(BundleError::system(scratch))?;
    unpack(bytes, form, to.path())?;
    Bundle::of_source(&top(to.path()).map_err(BundleError::system(to.path()))?)
}

impl Submission {
    /// Packs what is at `path`: a directory, an archive of one, or an executable file. Nothing is
    /// built.
    ///
    /// # Errors
    /// `SubmissionError` if it is no bot, or none that may be submitted.
    pub fn read(path: &Path) -> Result<Self, SubmissionError> {
        let told = |cause: String| SubmissionError { path: Some(path.to_owned()), cause };
        if path.is_dir() {
            return Self::directory(path, ToString::to_string, told);
        }
        let Some(form) = Form::of(path) else {
            let bot = Bot::load(path)?;
            let bundle = Bundle::of(&bot).map_err(|error| told(error.to_string()))?;
            return Ok(Self { name: bot.name, bundle });
        };
        let to = tempfile::tempdir().map_err(|error| told(format!("no room: {error}")))?;
        let bytes = read_at_most(path, MOST_ARCHIVE).map_err(BundleError::system(path));
        let unpacked = bytes.and_then(|bytes| unpack(&bytes, form, to.path()));
        unpacked.map_err(|error| told(error.to_string()))?;
        let top = top(to.path()).map_err(|error| told(error.to_string()))?;
        Self::directory(&top, |error| error.within(&top), told)
    }

    fn directory(
        path: &Path,
        shown: impl Fn(&BotError) -> String,
        told: impl Fn(String) -> SubmissionError,
    ) -> Result<Self, SubmissionError> {
        let read = manifest::read(path);
        let manifest = read.map_err(|error| SubmissionError {
            path: told(String::new()).path.filter(|own| own != path),
            cause: shown(&error),
        })?;
        let bundle = Bundle::of_source(path).map_err(|error| told(error.to_string()))?;
        Ok(Self { name: manifest.name, bundle })
    }
}

/// The directory that was packed: archives often hold the one they were made of.
pub(super) fn top(to: &Path) -> io::Result<PathBuf> {
    let entries: Vec<_> = fs::read_dir(to)?.collect::<Result<_, _>>()?;
    Ok(match &entries[..] {
        [only] if only.file_type()?.is_dir() => only.path(),
        _ => to.to_owned(),
    })
}

/// Unpacks an archive into the empty directory `to`.
fn unpack(bytes: &[u8], form: Form, to: &Path) -> Result<(), BundleError> {
    extract::unpack(bytes.len(), to, &CAPS, |unpacking| match form {
        Form::Tar => unpacking.tar(bytes, true),
        Form::TarGz => unpacking.tar(MultiGzDecoder::new(bytes), true),
        Form::TarZst => unpacking.tar(extract::decoder(bytes)?, true),
        Form::Zip => zip(bytes, unpacking),
    })
}

/// Unpacks a zip archive.
fn zip(bytes: &[u8], unpacking: &mut Unpacking<'_>) -> Result<(), BundleError> {
    check_directory(bytes)?;
    let promised = entries_of_zip(bytes);
    let broken = |error: zip::result::ZipError| no_archive(error.into());
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    if promised.is_some_and(|promised| promised != archive.len()) {
        return Err(BundleError::invalid("some of its files are in there twice"));
    }
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(broken)?;
        let (path, size) = (entry.name_raw().to_vec(), entry.size());
        let mode = entry.unix_mode().unwrap_or(0);
        let directory = entry.is_dir();
        let mut contents = Capped { inner: entry, room: unpacking.room };
        let kind = if directory {
            Kind::Directory
        } else if mode & TYPE == LINK {
            let mut target = Vec::new();
            let most = LONGEST_PATH as u64 + 1;
            contents.by_ref().take(most).read_to_end(&mut target).map_err(no_archive)?;
            Kind::Link(target)
        } else {
            Kind::File { size, runs: mode & 0o111 != 0 }
        };
        unpacking.one(path, kind, &mut contents)?;
    }
    Ok(())
}

/// Refuses a zip archive whose directory would take much memory or time, before it is opened: the
/// library reads all of it at once, and makes room for as many entries as it promises.
fn check_directory(bytes: &[u8]) -> Result<(), BundleError> {
    let (mut entries, mut ends) = (0, 0);
    for at in (0..bytes.len()).filter(|at| bytes[*at] == ENTRY_MARK[0]) {
        let rest = &bytes[at..];
        if rest.starts_with(ENTRY_MARK) {
            entries += 1;
            let lengths = rest.get(ENTRY_LENGTHS..ENTRY_LENGTHS + 6).unwrap_or_default();
            let lengths =
                lengths.chunks_exact(2).map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 8);
            if lengths.sum::<u32>() > LONGEST_ENTRY {
                return Err(BundleError::invalid(
                    "one of its files has a name or a comment that is too long; shorten it",
                ));
            }
        } else if rest.starts_with(END_MARK) {
            ends += 1;
            let locator = at.checked_sub(LOCATOR_LENGTH).map(|before| &bytes[before..]);
            if locator.is_some_and(|before| before.starts_with(LOCATOR_MARK)) {
                return Err(BundleError::invalid(
                    "it is in the zip64 form, for more than a bundle can hold; pack it without",
                ));
            }
        }
        if entries > CAPS.entries || ends > MOST_ENDS {
            return Err(CAPS.too_many());
        }
    }
    Ok(())
}

/// How many entries a zip archive says it has, where it says so in the usual way: whoever reads it
/// by its names finds only the last of those that have the same.
fn entries_of_zip(bytes: &[u8]) -> Option<usize> {
    let end = &bytes[bytes.len().saturating_sub(LONGEST_END)..];
    let begins = end.windows(END_LENGTH).rposition(|window| window.starts_with(END_MARK))?;
    let count = u16::from_le_bytes([end[begins + 10], end[begins + 11]]);
    (count != u16::MAX).then_some(count.into())
}

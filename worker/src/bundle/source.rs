//! Submissions: a bot's sources in the form in which their author has them, made into a bundle.
//!
//! A directory, a tar archive (plain, or compressed by gzip or Zstandard) and a zip archive of the
//! same files give the same bundle. Archives are unpacked into a directory of our own, under the
//! same rules as the bundles of strangers, and packed anew from there.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use arbiter_games::BotName;
use flate2::read::MultiGzDecoder;
use tar::Archive;
use thiserror::Error;
use zip::ZipArchive;

use super::archive::LONGEST_PATH;
use super::extract::{Capped, Kind, Unpacking, WINDOW, no_archive};
use super::{Bundle, BundleError, CAPS};
use crate::bot::{Bot, BotError, manifest};

/// The file type in a Unix mode, and that of a symbolic link.
const TYPE: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// How the record begins that ends a zip archive, how long it is at least, and with its comment at
/// most, in bytes.
const END_MARK: &[u8] = b"PK\x05\x06";
const END_LENGTH: usize = 22;
const LONGEST_END: u64 = 22 + 65_535;

/// How each entry begins in the list at the end of a zip archive.
const ENTRY_MARK: &[u8] = b"PK\x01\x02";

/// What stands in the first header of a tar archive, and where.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");

/// How much of an archive is looked through at a time, in bytes.
const CHUNK: usize = 64 << 10;

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
    unpack(&mut Cursor::new(bytes), bytes.len(), form, to.path())?;
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
        unpack_file(path, form, to.path()).map_err(|error| told(error.to_string()))?;
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

/// Unpacks the archive at `path` into the empty directory `to`.
fn unpack_file(path: &Path, form: Form, to: &Path) -> Result<(), BundleError> {
    let failed = || BundleError::system(path);
    let mut file = File::open(path).map_err(failed())?;
    let packed = usize::try_from(file.metadata().map_err(failed())?.len()).unwrap_or(usize::MAX);
    unpack(&mut file, packed, form, to)
}

/// Unpacks an archive of so many bytes into the empty directory `to`.
fn unpack(
    file: &mut (impl Read + Seek),
    packed: usize,
    form: Form,
    to: &Path,
) -> Result<(), BundleError> {
    let room = Cell::new(Some(CAPS.room(packed)));
    let mut unpacking = Unpacking::new(to, &CAPS, packed, &room);
    let done = match form {
        Form::Tar => tar(Capped { inner: file, room: &room }, &mut unpacking),
        Form::TarGz => {
            tar(Capped { inner: MultiGzDecoder::new(file), room: &room }, &mut unpacking)
        }
        Form::TarZst => {
            let mut decoder = zstd::Decoder::new(file).map_err(no_archive)?;
            decoder.window_log_max(WINDOW).map_err(no_archive)?;
            tar(Capped { inner: decoder, room: &room }, &mut unpacking)
        }
        Form::Zip => zip(file, &room, &mut unpacking),
    };
    if room.get().is_none() {
        return Err(CAPS.too_large_for(packed));
    }
    done?;
    unpacking.link()
}

/// Unpacks a tar archive, whoever made it.
fn tar(from: impl Read, unpacking: &mut Unpacking<'_>) -> Result<(), BundleError> {
    for entry in Archive::new(from).entries().map_err(no_archive)? {
        let mut entry = entry.map_err(no_archive)?;
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            // What version control says about the archive as a whole.
            continue;
        }
        let path = entry.path_bytes().into_owned();
        unpacking.tar_entry(path, None, &mut entry)?;
    }
    Ok(())
}

/// Unpacks a zip archive.
fn zip(
    file: &mut (impl Read + Seek),
    room: &Cell<Option<u64>>,
    unpacking: &mut Unpacking<'_>,
) -> Result<(), BundleError> {
    if too_many_entries(file).map_err(no_archive)? {
        return Err(CAPS.too_many());
    }
    let promised = entries_of_zip(file).map_err(no_archive)?;
    let broken = |error: zip::result::ZipError| no_archive(error.into());
    let mut archive = ZipArchive::new(file).map_err(broken)?;
    if promised.is_some_and(|promised| promised != archive.len()) {
        return Err(BundleError::unfit("some of its files are in there twice"));
    }
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(broken)?;
        let (path, size) = (entry.name_raw().to_vec(), entry.size());
        let mode = entry.unix_mode().unwrap_or(0);
        let directory = entry.is_dir();
        let mut contents = Capped { inner: entry, room };
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

/// Whether a zip archive has more entries than a bundle may have, whatever it says: each takes
/// memory as soon as it is opened.
fn too_many_entries(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    let (mut marks, mut matched) = (0, 0);
    let mut buffer = vec![0; CHUNK];
    file.rewind()?;
    loop {
        let read = file.read(&mut buffer)?;
        for byte in &buffer[..read] {
            // The mark repeats nothing of its beginning, but for its first byte.
            matched = if *byte == ENTRY_MARK[matched] {
                matched + 1
            } else {
                usize::from(*byte == ENTRY_MARK[0])
            };
            if matched == ENTRY_MARK.len() {
                (marks, matched) = (marks + 1, 0);
            }
        }
        if read == 0 || marks > CAPS.entries {
            file.rewind()?;
            return Ok(marks > CAPS.entries);
        }
    }
}

/// How many entries a zip archive says it has, where it says so in the usual way: whoever reads it
/// by its names finds only the last of those that have the same.
fn entries_of_zip(file: &mut (impl Read + Seek)) -> io::Result<Option<usize>> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST_END)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    file.rewind()?;
    let begins = end.windows(END_LENGTH).rposition(|window| window.starts_with(END_MARK));
    let count = begins.map(|begins| u16::from_le_bytes([end[begins + 10], end[begins + 11]]));
    Ok(count.filter(|count| *count != u16::MAX).map(usize::from))
}

//! Unpacks untrusted archives.
//!
//! It reads only entries that [`super::archive`] writes: regular files, directories, symbolic links
//! and long names in the GNU format. It stores which paths it created and never trusts the disk. It
//! creates links last, so that no entry is written through a link, and then follows them to verify
//! that they stay inside.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use arbiter_packages::stays_within;
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::BundleError;
use super::archive::{ArchiveLimits, MAX_NAME_LEN, MAX_PATH_LEN, leads_outside};

/// Binary logarithm of the largest decompression window, in bytes. Our own archives need no more.
const MAX_WINDOW_LOG: u32 = 25;

/// Maximum size of an entry's PAX header, in bytes: a path, a link and some attributes.
const MAX_PAX_LEN: u64 = 64 << 10;

/// Size of a copy step, in bytes.
const CHUNK: usize = 64 << 10;

/// Unpacks `bytes` into the empty directory `to`.
pub(super) fn extract(bytes: &[u8], to: &Path, limits: &ArchiveLimits) -> Result<(), BundleError> {
    if bytes.len() > limits.packed {
        return Err(limits.too_large_packed());
    }
    unpack(bytes.len(), to, limits, |unpacker| unpacker.tar(decoder(bytes)?, false))
}

/// Unpacks an archive of `packed` bytes, read by `read`, into the empty directory `to`.
pub(super) fn unpack(
    packed: usize,
    to: &Path,
    limits: &ArchiveLimits,
    read: impl FnOnce(&mut Unpacker<'_>) -> Result<(), BundleError>,
) -> Result<(), BundleError> {
    let remaining = Cell::new(Some(limits.max_unpacked(packed)));
    let mut unpacker = Unpacker {
        to,
        limits,
        packed,
        remaining: &remaining,
        created: BTreeMap::new(),
        links: Vec::new(),
    };
    let result = read(&mut unpacker);
    if remaining.get().is_none() {
        return Err(limits.too_large_for(packed));
    }
    result?;
    unpacker.link()
}

/// A decoder of Zstandard.
pub(super) fn decoder(bytes: &[u8]) -> Result<impl Read, BundleError> {
    let mut decoder = zstd::Decoder::with_buffer(bytes).map_err(invalid_archive)?;
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(invalid_archive)?;
    Ok(decoder)
}

/// The error for bytes that are not an archive.
#[expect(clippy::needless_pass_by_value, reason = "the format that `map_err` takes")]
pub(super) fn invalid_archive(error: io::Error) -> BundleError {
    BundleError::invalid(format!("not a tar archive compressed with Zstandard: {error}"))
}

/// A reader with a size limit. `remaining` becomes `None` once the limit is exceeded.
pub(super) struct Capped<'a, R> {
    pub(super) inner: R,
    pub(super) remaining: &'a Cell<Option<u64>>,
}

impl<R: Read> Read for Capped<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.remaining
            .set(self.remaining.get().and_then(|remaining| remaining.checked_sub(count as u64)));
        self.remaining.get().map(|_| count).ok_or_else(|| io::ErrorKind::FileTooLarge.into())
    }
}

/// The kind of a created entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CreatedKind {
    Directory,
    Other,
}

/// The kind of an entry to create.
#[derive(Debug)]
pub(super) enum Kind {
    Directory,
    /// A file of `size` bytes, executable or not.
    File {
        size: u64,
        is_executable: bool,
    },
    /// A link with its target.
    Link(Vec<u8>),
    /// Another kind, which a bundle must not contain.
    Other,
}

/// Data about an entry from the headers before it.
#[derive(Debug, Default)]
struct Extended {
    path: Option<Vec<u8>>,
    /// The link's target.
    target: Option<Vec<u8>>,
    /// The entry's size in bytes.
    size: Option<u64>,
}

impl Extended {
    /// Reads a PAX header.
    fn pax(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), BundleError> {
        if entry.size() > MAX_PAX_LEN {
            let max = MAX_PAX_LEN >> 10;
            return Err(BundleError::invalid(format!(
                "one of its headers is larger than {max} KiB; pack it without extended attributes"
            )));
        }
        let mut header = Vec::new();
        entry.read_to_end(&mut header).map_err(invalid_archive)?;
        for extension in PaxExtensions::new(&header) {
            let extension = extension.map_err(invalid_archive)?;
            let value = extension.value_bytes();
            match extension.key_bytes() {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.target = Some(value.to_vec()),
                b"size" => {
                    let size = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    self.size = Some(size.unwrap_or(u64::MAX));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// An archive being unpacked.
pub(super) struct Unpacker<'a> {
    to: &'a Path,
    limits: &'a ArchiveLimits,
    /// Size of the packed archive, in bytes.
    packed: usize,
    pub(super) remaining: &'a Cell<Option<u64>>,
    created: BTreeMap<PathBuf, CreatedKind>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl Unpacker<'_> {
    /// Checks that `size` more bytes are within the limit.
    fn check_room(&self, size: u64) -> Result<(), BundleError> {
        match self.remaining.get() {
            Some(remaining) if size <= remaining => Ok(()),
            _ if size > self.limits.unpacked => Err(self.limits.too_large()),
            _ => Err(self.limits.too_large_for(self.packed)),
        }
    }

    /// Unpacks a tar archive. `pax`: accept PAX headers, which other programs write.
    ///
    /// Extension headers are read here, because the library reads them without a size limit.
    pub(super) fn tar(&mut self, inner: impl Read, pax: bool) -> Result<(), BundleError> {
        let mut archive = Archive::new(Capped { inner, remaining: self.remaining });
        let mut extended = Extended::default();
        for entry in archive.entries().map_err(invalid_archive)?.raw(true) {
            let mut entry = entry.map_err(invalid_archive)?;
            match entry.header().entry_type() {
                EntryType::GNULongName => extended.path = Some(self.long(&mut entry)?),
                EntryType::GNULongLink => extended.target = Some(self.long(&mut entry)?),
                // Written by version control systems.
                EntryType::XGlobalHeader if pax => self.check_room(entry.size())?,
                EntryType::XHeader if pax => {
                    self.check_room(entry.size())?;
                    extended.pax(&mut entry)?;
                }
                _ => self.tar_entry(std::mem::take(&mut extended), &mut entry)?,
            }
        }
        Ok(())
    }

    /// Unpacks one entry of a tar archive.
    fn tar_entry<R: Read>(
        &mut self,
        extended: Extended,
        entry: &mut Entry<'_, R>,
    ) -> Result<(), BundleError> {
        let path = extended.path.unwrap_or_else(|| entry.path_bytes().into_owned());
        let kind = match entry.header().entry_type() {
            EntryType::Directory => Kind::Directory,
            EntryType::Regular => {
                let is_executable = entry.header().mode().map_err(invalid_archive)? & 0o111 != 0;
                Kind::File { size: entry.size(), is_executable }
            }
            EntryType::Symlink => {
                let short_target = || entry.link_name_bytes().map(std::borrow::Cow::into_owned);
                Kind::Link(extended.target.or_else(short_target).unwrap_or_default())
            }
            _ => Kind::Other,
        };
        self.check_room(entry.size())?;
        if extended.size.is_some_and(|size| size != entry.size()) {
            return Err(BundleError::invalid("one of its entries has two sizes; pack it again"));
        }
        self.one(path, kind, entry)
    }

    /// Unpacks one entry with its contents.
    pub(super) fn one(
        &mut self,
        path: Vec<u8>,
        kind: Kind,
        contents: &mut impl Read,
    ) -> Result<(), BundleError> {
        let path = plain_path(path)?;
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        match kind {
            Kind::Directory => self.directory(&path),
            Kind::File { size, is_executable } => {
                self.claim(&path)?;
                self.file(contents, &path, size, is_executable)
            }
            Kind::Link(target) if self.limits.links => {
                self.claim(&path)?;
                let target = PathBuf::from(OsString::from_vec(target));
                if is_no_path(&target) || !stays_within(&path, &target) {
                    return Err(leads_outside(&path));
                }
                self.links.push((path, target));
                Ok(())
            }
            Kind::Link(_) | Kind::Other => {
                let why = "not a file, directory or link; remove it";
                Err(BundleError::invalid(format!("{}: {why}", path.display())))
            }
        }
    }

    /// Reads the long name of the next entry.
    fn long<R: Read>(&self, entry: &mut Entry<'_, R>) -> Result<Vec<u8>, BundleError> {
        self.check_room(entry.size())?;
        let mut name = Vec::new();
        let max = MAX_PATH_LEN as u64 + 1;
        entry.by_ref().take(max).read_to_end(&mut name).map_err(invalid_archive)?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }

    /// Creates a directory and its parents if necessary.
    fn directory(&mut self, path: &Path) -> Result<(), BundleError> {
        match self.created.get(path) {
            _ if path.as_os_str().is_empty() => return Ok(()),
            Some(CreatedKind::Directory) => return Ok(()),
            Some(CreatedKind::Other) => return Err(duplicate_entry(path)),
            None => {}
        }
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        self.count(path, CreatedKind::Directory)?;
        let full_path = self.to.join(path);
        fs::create_dir(&full_path).map_err(create_error(&full_path, path))
    }

    /// Reserves a path, which no other entry may have.
    fn claim(&mut self, path: &Path) -> Result<(), BundleError> {
        if self.created.contains_key(path) {
            return Err(duplicate_entry(path));
        }
        self.count(path, CreatedKind::Other)
    }

    fn count(&mut self, path: &Path, created: CreatedKind) -> Result<(), BundleError> {
        if self.created.len() == self.limits.entries {
            return Err(self.limits.too_many());
        }
        self.created.insert(path.to_owned(), created);
        Ok(())
    }

    fn file(
        &self,
        contents: &mut impl Read,
        path: &Path,
        size: u64,
        is_executable: bool,
    ) -> Result<(), BundleError> {
        let full_path = self.to.join(path);
        let to_error = || create_error(&full_path, path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(if is_executable { 0o755 } else { 0o644 });
        let mut file = options.open(&full_path).map_err(to_error())?;
        let mut buffer = vec![0; CHUNK];
        let mut unread = size;
        while unread > 0 {
            let max = usize::try_from(unread).map_or(CHUNK, |unread| unread.min(CHUNK));
            let count = contents.read(&mut buffer[..max]).map_err(invalid_archive)?;
            if count == 0 {
                return Err(invalid_archive(io::ErrorKind::UnexpectedEof.into()));
            }
            file.write_all(&buffer[..count]).map_err(to_error())?;
            unread = unread.saturating_sub(count as u64);
        }
        Ok(())
    }

    /// Creates the links, and verifies that their targets are inside.
    fn link(&self) -> Result<(), BundleError> {
        for (path, target) in &self.links {
            let full_path = self.to.join(path);
            symlink(target, &full_path).map_err(create_error(&full_path, path))?;
        }
        let top = fs::canonicalize(self.to).map_err(BundleError::system(self.to))?;
        for (path, _) in &self.links {
            let real = fs::canonicalize(self.to.join(path));
            if !real.is_ok_and(|real| real.starts_with(&top)) {
                return Err(leads_outside(path));
            }
        }
        Ok(())
    }
}

/// A path relative to the top, of plain names only. Empty for the top itself.
fn plain_path(bytes: Vec<u8>) -> Result<PathBuf, BundleError> {
    let path = PathBuf::from(OsString::from_vec(bytes));
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) if name.len() <= MAX_NAME_LEN => plain.push(name),
            Component::CurDir => {}
            _ => {
                return Err(BundleError::invalid(format!(
                    "{}: not a valid path inside the archive",
                    path.display()
                )));
            }
        }
    }
    let bytes = plain.as_os_str().as_encoded_bytes();
    if bytes.len() > MAX_PATH_LEN || bytes.contains(&0) {
        return Err(BundleError::invalid(format!(
            "{}: the path is too long or contains a NUL byte",
            plain.display()
        )));
    }
    Ok(plain)
}

fn duplicate_entry(path: &Path) -> BundleError {
    BundleError::invalid(format!("{}: duplicate entry; pack it again", path.display()))
}

/// Whether no file system accepts this link target.
fn is_no_path(target: &Path) -> bool {
    target.as_os_str().is_empty() || target.as_os_str().as_bytes().contains(&0)
}

/// The error when `full_path` cannot be created. A name that file systems reject is an error of the
/// archive. Every other error is one of the machine.
fn create_error(full_path: &Path, path: &Path) -> impl Fn(io::Error) -> BundleError {
    let full_path = full_path.to_owned();
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::NotADirectory => {
            BundleError::invalid(format!("{}: {error}", path.display()))
        }
        _ => BundleError::system(&full_path)(error),
    }
}

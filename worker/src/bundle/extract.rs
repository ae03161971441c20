//! Archives of strangers, unpacked.
//!
//! Only what [`super::archive`] writes is read: regular files, directories and symbolic links, long
//! names in the way of GNU tar, no other extension. Where something may be written follows from
//! what was unpacked before and from nothing that is on disk: links are made last, so that no
//! entry can be written through one, and are then followed to see where they really lead.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::BundleError;
use super::archive::{Caps, LONGEST_NAME, LONGEST_PATH, leads_out, stays_within};

/// The logarithm of the most memory that reading may take, in bytes: we ourselves never ask for
/// more.
const WINDOW: u32 = 25;

/// The largest PAX header of an entry, in bytes: a path, a link and some attributes.
const LONGEST_PAX: u64 = 64 << 10;

/// How much is copied at a time, in bytes.
const CHUNK: usize = 64 << 10;

/// Unpacks `bytes` into the directory `to`, which is empty.
pub(super) fn extract(bytes: &[u8], to: &Path, caps: &Caps) -> Result<(), BundleError> {
    if bytes.len() > caps.packed {
        return Err(caps.too_large_packed());
    }
    unpack(bytes.len(), to, caps, |unpacking| unpacking.tar(decoder(bytes)?, false))
}

/// Unpacks an archive of `packed` bytes, which `read` reads, into the directory `to`, which is empty.
pub(super) fn unpack(
    packed: usize,
    to: &Path,
    caps: &Caps,
    read: impl FnOnce(&mut Unpacking<'_>) -> Result<(), BundleError>,
) -> Result<(), BundleError> {
    let room = Cell::new(Some(caps.room(packed)));
    let (made, links) = (BTreeMap::new(), Vec::new());
    let mut unpacking = Unpacking { to, caps, packed, room: &room, made, links };
    let done = read(&mut unpacking);
    if room.get().is_none() {
        return Err(caps.too_large_for(packed));
    }
    done?;
    unpacking.link()
}

/// What was compressed by Zstandard.
pub(super) fn decoder(bytes: &[u8]) -> Result<impl Read, BundleError> {
    let mut decoder = zstd::Decoder::with_buffer(bytes).map_err(no_archive)?;
    decoder.window_log_max(WINDOW).map_err(no_archive)?;
    Ok(decoder)
}

/// What is said of bytes that cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
pub(super) fn no_archive(error: io::Error) -> BundleError {
    BundleError::invalid(format!("it is no tar archive compressed by Zstandard: {error}"))
}

/// Reads so much and no more. There is no room left once there was more.
pub(super) struct Capped<'a, R> {
    pub(super) inner: R,
    pub(super) room: &'a Cell<Option<u64>>,
}

impl<R: Read> Read for Capped<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.room.set(self.room.get().and_then(|room| room.checked_sub(count as u64)));
        self.room.get().map(|_| count).ok_or_else(|| io::ErrorKind::FileTooLarge.into())
    }
}

/// What an entry became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Directory,
    Other,
}

/// What an entry is to become.
#[derive(Debug)]
pub(super) enum Kind {
    Directory,
    /// A file of so many bytes, which may be executed or not.
    File {
        size: u64,
        runs: bool,
    },
    /// A link that says this.
    Link(Vec<u8>),
    /// Something that has no place in a bundle.
    Other,
}

/// What headers before an entry say about it.
#[derive(Debug, Default)]
struct Extended {
    path: Option<Vec<u8>>,
    /// What it links to.
    target: Option<Vec<u8>>,
    /// Its size in bytes.
    size: Option<u64>,
}

impl Extended {
    /// Reads a PAX header.
    fn pax(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), BundleError> {
        if entry.size() > LONGEST_PAX {
            let most = LONGEST_PAX >> 10;
            return Err(BundleError::invalid(format!(
                "a header of it is larger than {most} KiB; pack it without extended attributes"
            )));
        }
        let mut header = Vec::new();
        entry.read_to_end(&mut header).map_err(no_archive)?;
        for extension in PaxExtensions::new(&header) {
            let extension = extension.map_err(no_archive)?;
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
pub(super) struct Unpacking<'a> {
    to: &'a Path,
    caps: &'a Caps,
    /// How large the archive itself is, in bytes.
    packed: usize,
    pub(super) room: &'a Cell<Option<u64>>,
    made: BTreeMap<PathBuf, Made>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl Unpacking<'_> {
    /// Sees to it that there is room for so many bytes more.
    fn check_room(&self, size: u64) -> Result<(), BundleError> {
        match self.room.get() {
            Some(room) if size <= room => Ok(()),
            _ if size > self.caps.unpacked => Err(self.caps.too_large()),
            _ => Err(self.caps.too_large_for(self.packed)),
        }
    }

    /// Unpacks a tar archive: one of our own form, or one of those that others write, which may
    /// have PAX headers too.
    ///
    /// The headers that extend an entry are read here and not by the library, which reads them
    /// whole however long they are.
    pub(super) fn tar(&mut self, inner: impl Read, pax: bool) -> Result<(), BundleError> {
        let mut archive = Archive::new(Capped { inner, room: self.room });
        let mut extended = Extended::default();
        for entry in archive.entries().map_err(no_archive)?.raw(true) {
            let mut entry = entry.map_err(no_archive)?;
            match entry.header().entry_type() {
                EntryType::GNULongName => extended.path = Some(self.long(&mut entry)?),
                EntryType::GNULongLink => extended.target = Some(self.long(&mut entry)?),
                // What version control says about the archive as a whole.
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
                let runs = entry.header().mode().map_err(no_archive)? & 0o111 != 0;
                Kind::File { size: entry.size(), runs }
            }
            EntryType::Symlink => {
                let own = || entry.link_name_bytes().map(std::borrow::Cow::into_owned);
                Kind::Link(extended.target.or_else(own).unwrap_or_default())
            }
            _ => Kind::Other,
        };
        self.check_room(entry.size())?;
        if extended.size.is_some_and(|size| size != entry.size()) {
            return Err(BundleError::invalid("an entry of it has two sizes; pack it anew"));
        }
        self.one(path, kind, entry)
    }

    /// Unpacks one entry, whose contents are read from `contents`.
    pub(super) fn one(
        &mut self,
        path: Vec<u8>,
        kind: Kind,
        contents: &mut impl Read,
    ) -> Result<(), BundleError> {
        let path = place(path)?;
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        match kind {
            Kind::Directory => self.directory(&path),
            Kind::File { size, runs } => {
                self.claim(&path)?;
                self.file(contents, &path, size, runs)
            }
            Kind::Link(target) if self.caps.links => {
                self.claim(&path)?;
                let target = PathBuf::from(OsString::from_vec(target));
                if is_no_path(&target) || !stays_within(&path, &target) {
                    return Err(leads_out(&path));
                }
                self.links.push((path, target));
                Ok(())
            }
            Kind::Link(_) | Kind::Other => {
                let why = "neither a file nor a directory nor a link; leave it out";
                Err(BundleError::invalid(format!("{}: {why}", path.display())))
            }
        }
    }

    /// The long name that an entry of its own gives to the next one.
    fn long<R: Read>(&self, entry: &mut Entry<'_, R>) -> Result<Vec<u8>, BundleError> {
        self.check_room(entry.size())?;
        let mut name = Vec::new();
        let most = LONGEST_PATH as u64 + 1;
        entry.by_ref().take(most).read_to_end(&mut name).map_err(no_archive)?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }

    /// Makes a directory and those above it, where they are not there yet.
    fn directory(&mut self, path: &Path) -> Result<(), BundleError> {
        match self.made.get(path) {
            _ if path.as_os_str().is_empty() => return Ok(()),
            Some(Made::Directory) => return Ok(()),
            Some(Made::Other) => return Err(twice(path)),
            None => {}
        }
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        self.count(path, Made::Directory)?;
        let place = self.to.join(path);
        fs::create_dir(&place).map_err(unless_unfit(&place, path))
    }

    /// Takes a path that nothing has yet.
    fn claim(&mut self, path: &Path) -> Result<(), BundleError> {
        if self.made.contains_key(path) {
            return Err(twice(path));
        }
        self.count(path, Made::Other)
    }

    fn count(&mut self, path: &Path, made: Made) -> Result<(), BundleError> {
        if self.made.len() == self.caps.entries {
            return Err(self.caps.too_many());
        }
        self.made.insert(path.to_owned(), made);
        Ok(())
    }

    fn file(
        &self,
        contents: &mut impl Read,
        path: &Path,
        size: u64,
        runs: bool,
    ) -> Result<(), BundleError> {
        let place = self.to.join(path);
        let failed = || unless_unfit(&place, path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(if runs { 0o755 } else { 0o644 });
        let mut file = options.open(&place).map_err(failed())?;
        let (mut buffer, mut left) = (vec![0; CHUNK], size);
        while left > 0 {
            let most = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
            let count = contents.read(&mut buffer[..most]).map_err(no_archive)?;
            if count == 0 {
                return Err(no_archive(io::ErrorKind::UnexpectedEof.into()));
            }
            file.write_all(&buffer[..count]).map_err(failed())?;
            left = left.saturating_sub(count as u64);
        }
        Ok(())
    }

    /// Makes the links, and follows each.
    fn link(&self) -> Result<(), BundleError> {
        for (path, target) in &self.links {
            let place = self.to.join(path);
            symlink(target, &place).map_err(unless_unfit(&place, path))?;
        }
        let top = fs::canonicalize(self.to).map_err(BundleError::system(self.to))?;
        for (path, _) in &self.links {
            let real = fs::canonicalize(self.to.join(path));
            if !real.is_ok_and(|real| real.starts_with(&top)) {
                return Err(leads_out(path));
            }
        }
        Ok(())
    }
}

/// A path from the top, of plain names only; empty for the top itself.
fn place(bytes: Vec<u8>) -> Result<PathBuf, BundleError> {
    let path = PathBuf::from(OsString::from_vec(bytes));
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) if name.len() <= LONGEST_NAME => plain.push(name),
            Component::CurDir => {}
            _ => {
                return Err(BundleError::invalid(format!("{}: no path within it", path.display())));
            }
        }
    }
    let bytes = plain.as_os_str().as_encoded_bytes();
    if bytes.len() > LONGEST_PATH || bytes.contains(&0) {
        return Err(BundleError::invalid(format!("{}: no path for a file", plain.display())));
    }
    Ok(plain)
}

fn twice(path: &Path) -> BundleError {
    BundleError::invalid(format!("{}: it is in there twice", path.display()))
}

/// Whether a link's target is none that a file system could hold.
fn is_no_path(target: &Path) -> bool {
    target.as_os_str().is_empty() || target.as_os_str().as_bytes().contains(&0)
}

/// What it means that `place` cannot be made: what no file system takes is the archive's fault,
/// anything else is ours.
fn unless_unfit(place: &Path, path: &Path) -> impl Fn(io::Error) -> BundleError {
    let (place, path) = (place.to_owned(), path.to_owned());
    move |error| match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::NotADirectory => {
            BundleError::invalid(format!("{}: {error}", path.display()))
        }
        _ => BundleError::system(&place)(error),
    }
}

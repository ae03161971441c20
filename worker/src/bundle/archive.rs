//! Canonical archives: the same files give the same bytes.

use std::cell::Cell;
use std::fs;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use arbiter_packages::stays_within;
use tar::{Builder, EntryType, Header};

use super::BundleError;
use crate::bounded_read::{open_regular, read_at_most};

/// Maximum length of an entry's path and of a link's target, in bytes.
pub(super) const MAX_PATH_LEN: usize = 1024;

/// Maximum length of a file name, in bytes: the limit of file systems.
pub(super) const MAX_NAME_LEN: usize = 255;

/// Maximum ratio of unpacked to packed size, against archive bombs. The ratio of programs is much
/// lower.
const MAX_RATIO: u64 = 1000;

/// The ratio does not apply up to this unpacked size, in bytes.
const RATIO_FREE_SIZE: u64 = 32 << 20;

/// Limits of an archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArchiveLimits {
    /// Bytes, compressed.
    pub(super) packed: usize,
    /// Bytes as a tar archive, which adds 512 or more per entry.
    pub(super) unpacked: u64,
    /// Files, directories and links.
    pub(super) entries: usize,
    /// Whether there may be links.
    pub(super) links: bool,
}

impl ArchiveLimits {
    pub(super) fn too_large(&self) -> BundleError {
        let max = self.unpacked >> 20;
        BundleError::invalid(format!(
            "its files exceed {max} MiB in total; remove files that it does not need to run"
        ))
    }

    /// Maximum unpacked size of an archive of `packed` bytes.
    pub(super) fn max_unpacked(&self, packed: usize) -> u64 {
        self.unpacked.min(RATIO_FREE_SIZE.max((packed as u64).saturating_mul(MAX_RATIO)))
    }

    /// The error for an archive of `packed` bytes that unpacks to more.
    pub(super) fn too_large_for(&self, packed: usize) -> BundleError {
        if self.max_unpacked(packed) == self.unpacked {
            return self.too_large();
        }
        BundleError::invalid(format!(
            "it unpacks to more than {MAX_RATIO} times its size; remove sparse files"
        ))
    }

    pub(super) fn too_many(&self) -> BundleError {
        let max = self.entries;
        BundleError::invalid(format!(
            "it has more than {max} files and directories; remove those that it does not need to run"
        ))
    }

    pub(super) fn too_large_packed(&self) -> BundleError {
        let max = self.packed >> 20;
        BundleError::invalid(format!(
            "it is larger than {max} MiB compressed; remove files that it does not need to run"
        ))
    }
}

/// An entry to pack.
#[derive(Debug)]
pub(super) struct ArchiveEntry {
    /// Path relative to the top of the archive.
    pub(super) path: PathBuf,
    /// Kind and contents.
    pub(super) content: Content,
}

/// Kind and contents of an entry.
#[derive(Debug)]
pub(super) enum Content {
    Directory,
    File { data: Data, is_executable: bool },
    Link(PathBuf),
}

/// The contents of a file.
#[derive(Debug)]
pub(super) enum Data {
    Bytes(Vec<u8>),
    /// A file and its size in bytes. It is read in pieces while it is packed, to save memory.
    At(PathBuf, u64),
}

impl Data {
    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::At(_, size) => *size,
        }
    }

    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Self::At(path, _) => Box::new(open_regular(path)?),
        })
    }

    /// Reads all contents, at most `max` bytes.
    pub(super) fn read_at_most(&self, max: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::At(path, _) => read_at_most(path, max),
        }
    }
}

/// Lists all entries below `root` sorted by name, a directory before its contents. Skips the names
/// in `ignored` in every directory, and sockets, devices and FIFOs.
pub(super) fn list_entries(
    root: &Path,
    limits: &ArchiveLimits,
    ignored: &[&str],
) -> Result<Vec<ArchiveEntry>, BundleError> {
    let root = fs::canonicalize(root).map_err(BundleError::system(root))?;
    let mut lister = EntryLister { root: &root, limits, ignored, entries: Vec::new(), bytes: 0 };
    lister.enter(&root)?;
    Ok(lister.entries)
}

struct EntryLister<'a> {
    root: &'a Path,
    limits: &'a ArchiveLimits,
    ignored: &'a [&'a str],
    entries: Vec<ArchiveEntry>,
    bytes: u64,
}

impl EntryLister<'_> {
    fn enter(&mut self, directory: &Path) -> Result<(), BundleError> {
        let list = || fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>();
        let mut entries = list().map_err(BundleError::system(directory))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let full_path = entry.path();
            if self.ignored.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let to_error = || BundleError::system(&full_path);
            let kind = entry.file_type().map_err(to_error())?;
            if kind.is_dir() {
                self.push(&full_path, Content::Directory)?;
                self.enter(&full_path)?;
            } else if kind.is_file() {
                let metadata = entry.metadata().map_err(to_error())?;
                self.bytes += metadata.len();
                if self.bytes > self.limits.unpacked {
                    return Err(self.limits.too_large());
                }
                let is_executable = metadata.permissions().mode() & 0o111 != 0;
                let data = Data::At(full_path.clone(), metadata.len());
                self.push(&full_path, Content::File { data, is_executable })?;
            } else if kind.is_symlink() && self.limits.links {
                let target = fs::read_link(&full_path).map_err(to_error())?;
                self.push(&full_path, Content::Link(target))?;
            }
        }
        Ok(())
    }

    fn push(&mut self, full_path: &Path, content: Content) -> Result<(), BundleError> {
        if self.entries.len() == self.limits.entries {
            return Err(self.limits.too_many());
        }
        let path = full_path.strip_prefix(self.root).unwrap_or(full_path).to_owned();
        if path.as_os_str().len() > MAX_PATH_LEN {
            return Err(BundleError::invalid(format!("{}: the path is too long", path.display())));
        }
        if let Content::Link(target) = &content {
            let is_inside =
                fs::canonicalize(full_path).is_ok_and(|real| real.starts_with(self.root));
            if !is_inside || !stays_within(&path, target) {
                return Err(leads_outside(&path));
            }
        }
        self.entries.push(ArchiveEntry { path, content });
        Ok(())
    }
}

pub(super) fn leads_outside(path: &Path) -> BundleError {
    BundleError::invalid(format!(
        "{}: this link does not lead to a file in the bot's directory; put the file there, or \
         use a relative link",
        path.display()
    ))
}

/// A writer with a size limit. `remaining` becomes `None` once the limit is exceeded.
struct Capped<'a, W> {
    inner: W,
    remaining: &'a Cell<Option<u64>>,
}

impl<W: Write> Write for Capped<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let remaining = self.remaining.get().and_then(|old| old.checked_sub(bytes.len() as u64));
        self.remaining.set(remaining);
        remaining.ok_or(io::ErrorKind::FileTooLarge)?;
        self.inner.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Packs and compresses `entries`. Memory holds only the result and a piece of one file.
pub(super) fn write(
    entries: &[ArchiveEntry],
    level: i32,
    limits: &ArchiveLimits,
) -> Result<Vec<u8>, BundleError> {
    let packed = Cell::new(Some(limits.packed as u64));
    let unpacked = Cell::new(Some(limits.unpacked));
    let result = compress(entries, level, &packed, &unpacked);
    if unpacked.get().is_none() {
        return Err(limits.too_large());
    }
    if packed.get().is_none() {
        return Err(limits.too_large_packed());
    }
    let bytes = result?;
    if limits.unpacked - unpacked.get().unwrap_or_default() > limits.max_unpacked(bytes.len()) {
        return Err(limits.too_large_for(bytes.len()));
    }
    Ok(bytes)
}

fn compress(
    entries: &[ArchiveEntry],
    level: i32,
    packed: &Cell<Option<u64>>,
    unpacked: &Cell<Option<u64>>,
) -> Result<Vec<u8>, BundleError> {
    let to_error = || BundleError::system(Path::new("cannot create an archive"));
    let bytes = Capped { inner: Vec::new(), remaining: packed };
    let encoder = zstd::Encoder::new(bytes, level).map_err(to_error())?;
    let mut builder = Builder::new(Capped { inner: encoder, remaining: unpacked });
    for entry in entries {
        append(&mut builder, entry).map_err(BundleError::system(&entry.path))?;
    }
    let encoder = builder.into_inner().map_err(to_error())?.inner;
    Ok(encoder.finish().map_err(to_error())?.inner)
}

fn append(
    builder: &mut Builder<impl Write>,
    ArchiveEntry { path, content }: &ArchiveEntry,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    match content {
        Content::Directory => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            builder.append_data(&mut header, path, io::empty())
        }
        Content::File { data, is_executable } => {
            header.set_entry_type(EntryType::Regular);
            header.set_mode(if *is_executable { 0o755 } else { 0o644 });
            header.set_size(data.size());
            let mut contents = data.reader()?.take(data.size());
            builder.append_data(&mut header, path, &mut contents)?;
            match contents.limit() {
                0 => Ok(()),
                _ => Err(io::Error::other("the file became shorter while it was read; try again")),
            }
        }
        Content::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            builder.append_link(&mut header, path, target)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressing_in_pieces_and_at_once_gives_the_same_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let seed = arbiter_games::Seed::of_text("noise");
        let seeds: Vec<_> = (0..200).map(|part| seed.derive(&format!("{part}"))).collect();
        let noise = format!("{seeds:?}").repeat(40).into_bytes();
        let mut builder = Builder::new(Vec::new());
        let mut entries = Vec::new();
        for (name, bytes) in
            [("a", &noise[..]), ("b", &vec![0; 700_000]), ("c", &noise[9..]), ("d", b"")]
        {
            fs::write(directory.path().join(name), bytes).unwrap();
            let data = Data::At(directory.path().join(name), bytes.len() as u64);
            let content = Content::File { data, is_executable: false };
            let entry = ArchiveEntry { path: name.into(), content };
            append(&mut builder, &entry).unwrap();
            entries.push(entry);
        }
        let tar = builder.into_inner().unwrap();
        let limits =
            ArchiveLimits { packed: 64 << 20, unpacked: 64 << 20, entries: 9, links: false };
        for level in [3, 9] {
            let mut encoder = zstd::Encoder::new(Vec::new(), level).unwrap();
            encoder.write_all(&tar).unwrap();
            assert_eq!(write(&entries, level, &limits).unwrap(), encoder.finish().unwrap());
        }
        let small = ArchiveLimits { unpacked: 1 << 20, ..limits };
        assert!(write(&entries, 3, &small).unwrap_err().to_string().contains("exceed 1 MiB"));
        let small = ArchiveLimits { packed: 1000, ..limits };
        assert!(write(&entries, 3, &small).unwrap_err().to_string().contains("compressed"));
    }
}

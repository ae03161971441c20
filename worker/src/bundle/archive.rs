//! Canonical archives: the same files give the same bytes.

use std::cell::Cell;
use std::fs;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use tar::{Builder, EntryType, Header};

use super::BundleError;
use crate::bounded_read::{open_regular, read_at_most};

/// The longest path of an entry, and of what a link says, in bytes.
pub(super) const LONGEST_PATH: usize = 1024;

/// The longest name of a file, in bytes: what file systems allow.
pub(super) const LONGEST_NAME: usize = 255;

/// What is unpacked may be so many times as large as what is packed: no program is like that, and
/// bombs are.
const MOST_RATIO: u64 = 1000;

/// Up to this size nobody asks, in bytes.
const ANY_RATIO: u64 = 32 << 20;

/// What an archive may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    /// Bytes, compressed.
    pub(super) packed: usize,
    /// Bytes as a tar archive, which has 512 or more for each entry besides what is in it.
    pub(super) unpacked: u64,
    /// Files, directories and links.
    pub(super) entries: usize,
    /// Whether there may be links.
    pub(super) links: bool,
}

impl Caps {
    pub(super) fn too_large(&self) -> BundleError {
        let most = self.unpacked >> 20;
        BundleError::invalid(format!(
            "its files are larger than {most} MiB together; leave out what it does not need to run"
        ))
    }

    /// What an archive of so many bytes may be unpacked to.
    pub(super) fn room(&self, packed: usize) -> u64 {
        self.unpacked.min(ANY_RATIO.max((packed as u64).saturating_mul(MOST_RATIO)))
    }

    /// What is said of an archive of so many bytes that is larger when it is unpacked.
    pub(super) fn too_large_for(&self, packed: usize) -> BundleError {
        if self.room(packed) == self.unpacked {
            return self.too_large();
        }
        BundleError::invalid(format!(
            "it unpacks to more than {MOST_RATIO} times its size; leave out files that are empty \
             but for their length"
        ))
    }

    pub(super) fn too_many(&self) -> BundleError {
        let most = self.entries;
        BundleError::invalid(format!(
            "it has more than {most} files and directories; leave out what it does not need to run"
        ))
    }

    pub(super) fn too_large_packed(&self) -> BundleError {
        let most = self.packed >> 20;
        BundleError::invalid(format!(
            "it is larger than {most} MiB, compressed; leave out what it does not need to run"
        ))
    }
}

/// Something to be packed.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it is, from the top of the archive.
    pub(super) path: PathBuf,
    /// What it is.
    pub(super) content: Content,
}

/// What an entry is.
#[derive(Debug)]
pub(super) enum Content {
    Directory,
    File { data: Data, runs: bool },
    Link(PathBuf),
}

/// What a file holds.
#[derive(Debug)]
pub(super) enum Data {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What is in the file at this path, of so many bytes. It is read when it is packed, so that no
    /// more than a piece of it is in memory.
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

    /// All of it, if it is no more than so many bytes.
    pub(super) fn read_at_most(&self, most: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::At(path, _) => read_at_most(path, most),
        }
    }
}

/// Everything below `root` in the order of names, a directory before what is in it, but for what has
/// one of the names in `without`, wherever it is. Sockets, devices and FIFOs are no part of a program
/// and are left out.
pub(super) fn gather(root: &Path, caps: &Caps, without: &[&str]) -> Result<Vec<Item>, BundleError> {
    let root = fs::canonicalize(root).map_err(BundleError::system(root))?;
    let mut gatherer = Gatherer { root: &root, caps, without, items: Vec::new(), bytes: 0 };
    gatherer.enter(&root)?;
    Ok(gatherer.items)
}

struct Gatherer<'a> {
    root: &'a Path,
    caps: &'a Caps,
    without: &'a [&'a str],
    items: Vec<Item>,
    bytes: u64,
}

impl Gatherer<'_> {
    fn enter(&mut self, directory: &Path) -> Result<(), BundleError> {
        let list = || fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>();
        let mut entries = list().map_err(BundleError::system(directory))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let place = entry.path();
            if self.without.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let failed = || BundleError::system(&place);
            let kind = entry.file_type().map_err(failed())?;
            if kind.is_dir() {
                self.push(&place, Content::Directory)?;
                self.enter(&place)?;
            } else if kind.is_file() {
                let found = entry.metadata().map_err(failed())?;
                self.bytes += found.len();
                if self.bytes > self.caps.unpacked {
                    return Err(self.caps.too_large());
                }
                let runs = found.permissions().mode() & 0o111 != 0;
                let data = Data::At(place.clone(), found.len());
                self.push(&place, Content::File { data, runs })?;
            } else if kind.is_symlink() && self.caps.links {
                let target = fs::read_link(&place).map_err(failed())?;
                self.push(&place, Content::Link(target))?;
            }
        }
        Ok(())
    }

    fn push(&mut self, place: &Path, content: Content) -> Result<(), BundleError> {
        if self.items.len() == self.caps.entries {
            return Err(self.caps.too_many());
        }
        let path = place.strip_prefix(self.root).unwrap_or(place).to_owned();
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(BundleError::invalid(format!("{}: its path is too long", path.display())));
        }
        if let Content::Link(target) = &content {
            let real = fs::canonicalize(place).is_ok_and(|real| real.starts_with(self.root));
            if !real || !stays_within(&path, target) {
                return Err(leads_out(&path));
            }
        }
        self.items.push(Item { path, content });
        Ok(())
    }
}

/// Whether a link at `path` that says `target` leads to a place below the top, as far as its words
/// tell; a link on its way may still lead elsewhere.
pub(super) fn stays_within(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count() - 1;
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    target.as_os_str().len() <= LONGEST_PATH
}

pub(super) fn leads_out(path: &Path) -> BundleError {
    BundleError::invalid(format!(
        "{}: a link that leads nowhere in the bot's directory; put the file there, or link it by a \
         relative path",
        path.display()
    ))
}

/// Takes so many bytes and no more. There is no room left once there were more.
struct Capped<'a, W> {
    inner: W,
    room: &'a Cell<Option<u64>>,
}

impl<W: Write> Write for Capped<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.room.get().and_then(|room| room.checked_sub(bytes.len() as u64));
        self.room.set(left);
        left.ok_or(io::ErrorKind::FileTooLarge)?;
        self.inner.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The compressed archive of `items`. No more than that is in memory, and a piece of one file.
pub(super) fn write(items: &[Item], effort: i32, caps: &Caps) -> Result<Vec<u8>, BundleError> {
    let packed = Cell::new(Some(caps.packed as u64));
    let unpacked = Cell::new(Some(caps.unpacked));
    let written = compress(items, effort, &packed, &unpacked);
    if unpacked.get().is_none() {
        return Err(caps.too_large());
    }
    if packed.get().is_none() {
        return Err(caps.too_large_packed());
    }
    let bytes = written?;
    if caps.unpacked - unpacked.get().unwrap_or_default() > caps.room(bytes.len()) {
        return Err(caps.too_large_for(bytes.len()));
    }
    Ok(bytes)
}

fn compress(
    items: &[Item],
    effort: i32,
    packed: &Cell<Option<u64>>,
    unpacked: &Cell<Option<u64>>,
) -> Result<Vec<u8>, BundleError> {
    let failed = || BundleError::system(Path::new("cannot make an archive"));
    let bytes = Capped { inner: Vec::new(), room: packed };
    let encoder = zstd::Encoder::new(bytes, effort).map_err(failed())?;
    let mut builder = Builder::new(Capped { inner: encoder, room: unpacked });
    for item in items {
        append(&mut builder, item).map_err(BundleError::system(&item.path))?;
    }
    let encoder = builder.into_inner().map_err(failed())?.inner;
    Ok(encoder.finish().map_err(failed())?.inner)
}

fn append(builder: &mut Builder<impl Write>, Item { path, content }: &Item) -> io::Result<()> {
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
        Content::File { data, runs } => {
            header.set_entry_type(EntryType::Regular);
            header.set_mode(if *runs { 0o755 } else { 0o644 });
            header.set_size(data.size());
            let mut contents = data.reader()?.take(data.size());
            builder.append_data(&mut header, path, &mut contents)?;
            match contents.limit() {
                0 => Ok(()),
                _ => Err(io::Error::other("it became shorter while it was read; try again")),
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
    fn what_is_compressed_in_pieces_is_the_same_as_at_once() {
        let place = tempfile::tempdir().unwrap();
        let noise = arbiter_games::Seed::of_text("noise");
        let noise: Vec<_> = (0..200).map(|part| noise.derive(&format!("{part}"))).collect();
        let noise = format!("{noise:?}").repeat(40).into_bytes();
        let mut whole = Builder::new(Vec::new());
        let mut items = Vec::new();
        for (name, bytes) in
            [("a", &noise[..]), ("b", &vec![0; 700_000]), ("c", &noise[9..]), ("d", b"")]
        {
            fs::write(place.path().join(name), bytes).unwrap();
            let data = Data::At(place.path().join(name), bytes.len() as u64);
            let item = Item { path: name.into(), content: Content::File { data, runs: false } };
            append(&mut whole, &item).unwrap();
            items.push(item);
        }
        let whole = whole.into_inner().unwrap();
        let caps = Caps { packed: 64 << 20, unpacked: 64 << 20, entries: 9, links: false };
        for effort in [3, 9] {
            let mut encoder = zstd::Encoder::new(Vec::new(), effort).unwrap();
            encoder.write_all(&whole).unwrap();
            assert_eq!(write(&items, effort, &caps).unwrap(), encoder.finish().unwrap());
        }
        let small = Caps { unpacked: 1 << 20, ..caps };
        assert!(write(&items, 3, &small).unwrap_err().to_string().contains("larger than 1 MiB"));
        let small = Caps { packed: 1000, ..caps };
        assert!(write(&items, 3, &small).unwrap_err().to_string().contains("compressed"));
    }
}

//! Files that a bot leaves, from match to match.
//!
//! They are carried between a directory of the worker and the jail's, through a descriptor of the
//! latter: regular files and directories and nothing else, no link followed. Only what differs from
//! the bot's own files is kept, so that it means the same on every machine: with walls that lies
//! apart from them, without walls it is told by comparing.

use std::ffi::{CStr, OsStr};
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead as _, BufReader, Read, Seek as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::limits::Limits;
use super::syscalls;
use super::tree_removal::{self, remove_tree};
use super::workdir::BotSource;
use crate::bounded_read::open_regular;
use crate::fault::{Context as _, Fault};

/// Directories further down than this are not kept.
pub(crate) const MAX_STATE_DEPTH: usize = 16;

/// What has a longer path than this, in bytes, is not kept either: with a worker's own directories
/// in front it may be more than the system takes.
const LONGEST: usize = 1024;

/// What files take room by, in bytes.
const PAGE: usize = 4096;

/// How much of a file is in memory at a time, in bytes: whole pages.
const PIECE: usize = 16 * PAGE;

/// No more of what is not kept is paths.
const MAX_LISTED: usize = 10;

/// What was there and is not kept: what is neither a file nor a directory, cannot be read, changes
/// while it is read, is too deep, or more than may be.
#[derive(Debug, Default)]
pub struct SkippedFiles {
    /// Some of it, sorted.
    pub paths: Vec<PathBuf>,
    /// How much more there is.
    pub omitted: usize,
}

/// Puts what was kept at `from` into the jail directory `to`, whose user is `user`.
pub(super) fn restore(
    from: &Path,
    to: &OwnedFd,
    user: Option<u32>,
    limits: &Limits,
) -> Result<(), Fault> {
    let mut room = Room { bytes: limits.disk.0, files: limits.files };
    put(from, to, user, &mut room).fault("cannot bring back a bot's files")
}

/// What may still be brought back.
struct Room {
    bytes: u64,
    files: u64,
}

impl Room {
    /// Takes the room of a file of this length, or of a directory; whether there was enough.
    fn take(&mut self, length: u64) -> bool {
        let bytes = self.bytes.checked_sub(length.next_multiple_of(PAGE as u64));
        let (Some(bytes), Some(files)) = (bytes, self.files.checked_sub(1)) else { return false };
        (self.bytes, self.files) = (bytes, files);
        true
    }
}

fn put(from: &Path, to: &OwnedFd, user: Option<u32>, room: &mut Room) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, found) = (entry.file_name(), entry.metadata()?);
        let length = if found.is_file() { found.len() } else { 0 };
        // A bot leaves no more than fits: the worker that reported the rest made it up, and a fault
        // would speak against the bot.
        if !(found.is_dir() || found.is_file()) || !room.take(length) {
            continue;
        }
        make_way(to, &name, user, found.is_dir())?;
        if found.is_dir() {
            let mode = Mode::from_raw_mode(0o755);
            match syscalls::with_fs_user(user, || rustix::fs::mkdirat(to, &name, mode)) {
                Err(error) if error != Errno::EXIST => return Err(error.into()),
                _ => {}
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inner = rustix::fs::openat(to, &name, flags, Mode::empty())?;
            put(&entry.path(), &inner, user, room)?;
        } else {
            let kept = open_regular(&entry.path())?;
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(found.permissions().mode() & 0o755);
            let open = || rustix::fs::openat(to, &name, flags, mode);
            copy(&mut kept.take(found.len()), &File::from(syscalls::with_fs_user(user, open)?))?;
        }
    }
    Ok(())
}

/// Copies what is left to read into a new file, and tells its length. Where there is nothing but
/// zeros for a page, it gets a hole: what took no room takes none when it comes back.
fn copy(from: &mut impl Read, to: &File) -> io::Result<u64> {
    let (mut length, mut piece) = (0, Vec::with_capacity(PIECE));
    while from.by_ref().take(PIECE as u64).read_to_end(&mut piece)? > 0 {
        for (page, at) in piece.chunks(PAGE).zip((length..).step_by(PAGE)) {
            if page.iter().any(|byte| *byte != 0) {
                to.write_all_at(page, at)?;
            }
        }
        length += piece.len() as u64;
        piece.clear();
    }
    to.set_len(length)?;
    Ok(length)
}

/// Removes what stands in the way of something kept: the bot put it where a file of another kind,
/// or with other contents, is among its own.
fn make_way(to: &OwnedFd, name: &OsStr, user: Option<u32>, directory: bool) -> io::Result<()> {
    let Ok(found) = rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory if directory => Ok(()),
        FileType::Directory => tree_removal::remove_at(to.as_fd(), name).map(drop),
        _ => Ok(syscalls::with_fs_user(user, || rustix::fs::unlinkat(to, name, AtFlags::empty()))?),
    }
}

/// Takes what is in the jail directory `from` out to `to`, in place of what was kept there; what
/// cannot be kept. Where the bot's own files are in `from` too, as they came from `among`, they stay.
pub(super) fn capture(
    from: &OwnedFd,
    to: &Path,
    limits: &Limits,
    among: Option<&BotSource>,
) -> Result<SkippedFiles, Fault> {
    let take = || {
        let fresh = to.with_extension("new");
        remove_tree(&fresh)?;
        fs::create_dir(&fresh)?;
        let (bytes, files) = (limits.disk.0, limits.files);
        let mut taking = Taking { among, bytes, files, skipped: SkippedFiles::default() };
        taking.copy(from.as_fd(), Path::new(""), &fresh, MAX_STATE_DEPTH)?;
        // Between these two steps nothing is kept; a worker that dies there loses a state, and
        // never mixes two.
        remove_tree(to)?;
        fs::rename(&fresh, to)?;
        taking.skipped.paths.sort();
        Ok(taking.skipped)
    };
    let taken: io::Result<_> = take();
    taken.fault("cannot keep a bot's files")
}

/// What is being taken out, and what may still be kept.
struct Taking<'a> {
    among: Option<&'a BotSource>,
    bytes: u64,
    files: u64,
    skipped: SkippedFiles,
}

impl Taking<'_> {
    /// Copies what can be read; what the bot locked itself out of is not kept.
    fn copy(&mut self, from: impl AsFd, below: &Path, to: &Path, depth: usize) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(from, ".", flags, Mode::empty());
        let Ok((from, entries)) =
            opened.and_then(|from| Dir::read_from(&from).map(|entries| (from, entries)))
        else {
            self.skip(below);
            return Ok(());
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.skip(below);
                return Ok(());
            };
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let name = OsStr::from_bytes(bytes);
            let path = below.join(name);
            if !self.entry(&from, entry.file_name(), &path, &to.join(name), depth)? {
                self.skip(&path);
            }
        }
        Ok(())
    }

    /// Copies what is called `name` in the directory `from`; whether it could be.
    fn entry(
        &mut self,
        from: &OwnedFd,
        name: &CStr,
        path: &Path,
        target: &Path,
        depth: usize,
    ) -> io::Result<bool> {
        if self.files == 0 || path.as_os_str().len() > LONGEST {
            return Ok(false);
        }
        let found = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(found) = found else { return Ok(false) };
        let open = |flags: OFlags| {
            // A FIFO, if one were there, would make us wait for who writes to it.
            let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::openat(from, name, flags, Mode::empty())
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory if depth > 0 => match open(OFlags::PATH | OFlags::DIRECTORY) {
                Ok(inner) => self.directory(&inner, path, target, depth - 1),
                Err(_) => Ok(false),
            },
            FileType::RegularFile => match open(OFlags::RDONLY).map(File::from) {
                // Something else may have taken its place.
                Ok(file) if file.metadata().is_ok_and(|it| it.is_file()) => {
                    self.file(file, path, target, found.st_mode & 0o111 != 0)
                }
                _ => Ok(false),
            },
            // It stands for something that was removed from under it.
            FileType::CharacterDevice => Ok(found.st_rdev == 0),
            _ => Ok(false),
        }
    }

    fn skip(&mut self, path: &Path) {
        let SkippedFiles { paths, omitted } = &mut self.skipped;
        if paths.len() < MAX_LISTED {
            paths.push(path.to_owned());
        } else {
            *omitted += 1;
        }
    }

    fn directory(
        &mut self,
        from: impl AsFd,
        path: &Path,
        target: &Path,
        depth: usize,
    ) -> io::Result<bool> {
        if made(fs::create_dir(target))?.is_none() {
            return Ok(false);
        }
        self.files -= 1;
        self.copy(from, path, target, depth)?;
        let own = self.original(path).is_some_and(|own| own.is_dir());
        if own && fs::read_dir(target)?.next().is_none() {
            fs::remove_dir(target)?;
            self.files += 1;
        }
        Ok(true)
    }

    fn file(&mut self, mut file: File, path: &Path, target: &Path, runs: bool) -> io::Result<bool> {
        // A file with holes may be longer than all that fits.
        if file.metadata()?.len() > self.bytes {
            return Ok(false);
        }
        if self.original(path).is_some_and(|own| is(&own, &file, runs)) {
            return Ok(true);
        }
        file.rewind()?;
        let Some(kept) = made(File::create_new(target))? else { return Ok(false) };
        let length = copy(&mut (&file).take(self.bytes + 1), &kept)?;
        // It takes whole pages when it comes back, whatever it is full of.
        let Some(left) = self.bytes.checked_sub(length.next_multiple_of(PAGE as u64)) else {
            return fs::remove_file(target).map(|()| false);
        };
        (self.bytes, self.files) = (left, self.files - 1);
        // At level C linkers may not make a program what it is.
        let runs = runs || self.among.is_some() && is_program(&file)?;
        let mode = if runs { 0o755 } else { 0o644 };
        kept.set_permissions(Permissions::from_mode(mode)).map(|()| true)
    }

    /// Where the bot's own file of this path would be.
    fn original(&self, path: &Path) -> Option<PathBuf> {
        match self.among? {
            BotSource::Directory(own) => Some(own.join(path)),
            BotSource::File(own) => {
                (own.file_name() == Some(path.as_os_str())).then(|| own.clone())
            }
        }
    }
}

/// What was made, unless something of its name is there already: where a bot's process lives on (at
/// level C it may) and renames what is read, a name comes twice.
fn made<T>(made: io::Result<T>) -> io::Result<Option<T>> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        made => made.map(Some),
    }
}

/// Whether the kernel could execute this file.
fn is_program(file: &File) -> io::Result<bool> {
    let mut magic = [0; 4];
    let read = file.read_at(&mut magic, 0)?;
    Ok(magic[..read].starts_with(b"\x7FELF") || magic[..read].starts_with(b"#!"))
}

/// Whether `path` is a regular file with the contents of `file`, which may be executed or not.
fn is(path: &Path, file: &File, runs: bool) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let executable = found.permissions().mode() & 0o111 != 0;
    let same_length = file.metadata().is_ok_and(|other| other.len() == found.len());
    found.is_file() && executable == runs && same_length && is_same(path, file).unwrap_or(false)
}

/// Whether what is at `path` is what is left to read of `file`. A piece of each is in memory.
fn is_same(path: &Path, file: &File) -> io::Result<bool> {
    let mut own = BufReader::with_capacity(PIECE, open_regular(path)?);
    let mut other = BufReader::with_capacity(PIECE, file);
    loop {
        let (one, two) = (own.fill_buf()?, other.fill_buf()?);
        let length = one.len().min(two.len());
        if length == 0 || one[..length] != two[..length] {
            return Ok(one.is_empty() && two.is_empty());
        }
        own.consume(length);
        other.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Renames, removes and makes files and directories until it is told to stop.
    fn stir(directory: &Path, stop: &AtomicBool) {
        let name = |number: usize| directory.join(format!("{number}"));
        for round in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
            let (one, other) = (name(round % 40), name((round * 7 + 3) % 60));
            drop(fs::rename(&one, &other));
            drop(fs::remove_file(name(round * 11 % 60)));
            drop(fs::remove_dir(name(round * 13 % 60)));
            drop(fs::create_dir_all(name(round * 17 % 40).join("inner")));
            drop(fs::write(name(round * 19 % 40), b"left"));
        }
    }

    /// Where a process of the bot lives on, it cannot void a match by what it does to its files.
    #[test]
    fn files_that_change_while_they_are_kept_are_no_fault() {
        let scratch = tempfile::tempdir().unwrap();
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        fs::create_dir(&from).unwrap();
        let opened = OwnedFd::from(File::open(&from).unwrap());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| stir(&from, &stop));
            let taken =
                (0..60).try_for_each(|_| capture(&opened, &to, &Limits::OFFICIAL, None).map(drop));
            stop.store(true, Ordering::Relaxed);
            taken.unwrap();
        });
    }
}

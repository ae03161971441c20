//! Saves the files that a bot leaves, and restores them in its next match.
//!
//! Files are copied between a directory of the worker and the jail's, through a descriptor of the
//! latter: only regular files and directories, following no links. Only changes to the bot's original
//! files are saved, so that they mean the same on every machine. With namespaces the changes are in a
//! separate directory. Without, they are found by comparing.

use std::ffi::{CStr, OsStr};
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead as _, BufReader, Read, Seek as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::jail_config::Limits;
use super::syscalls;
use super::tree_removal::{self, remove_tree};
use super::workdir::BotSource;
use crate::bounded_read::open_regular;
use crate::fault::{Context as _, Fault};

/// Deeper directories are not saved.
pub(crate) const MAX_STATE_DEPTH: usize = 16;

/// Files with a longer path, in bytes, are not saved: with the path of the worker's own directory in
/// front, it may exceed the system's limit.
const MAX_PATH_LENGTH: usize = 1024;

/// The unit of disk space, in bytes.
const PAGE: usize = 4096;

/// How much of a file is in memory at a time, in bytes: whole pages.
const CHUNK: usize = 16 * PAGE;

/// The maximum number of skipped files that are listed.
const MAX_LISTED: usize = 10;

/// Files that were not saved: those that are neither a file nor a directory, cannot be read, change
/// while they are read, are too deep, or exceed the limits.
#[derive(Debug, Default)]
pub struct SkippedFiles {
    /// The first ones, sorted.
    pub paths: Vec<PathBuf>,
    /// The number of further ones.
    pub omitted: usize,
}

/// Restores the files saved in `from` into the jail directory `to`, as the user `user`.
pub(super) fn restore(
    from: &Path,
    to: &OwnedFd,
    user: Option<u32>,
    limits: &Limits,
) -> Result<(), Fault> {
    let mut quota = Quota { bytes: limits.disk.0, files: limits.files };
    restore_dir(from, to, user, &mut quota).fault("cannot restore a bot's files")
}

/// What may still be restored.
struct Quota {
    bytes: u64,
    files: u64,
}

impl Quota {
    /// Takes the space of a file of this length, or of a directory. Returns whether there was enough.
    fn take(&mut self, length: u64) -> bool {
        let bytes = self.bytes.checked_sub(length.next_multiple_of(PAGE as u64));
        let (Some(bytes), Some(files)) = (bytes, self.files.checked_sub(1)) else { return false };
        (self.bytes, self.files) = (bytes, files);
        true
    }
}

fn restore_dir(from: &Path, to: &OwnedFd, user: Option<u32>, quota: &mut Quota) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let found = entry.metadata()?;
        let length = if found.is_file() { found.len() } else { 0 };
        // A bot never saves more than fits: the worker that reported the rest made it up. Skip it: a
        // fault would count against the bot.
        if !(found.is_dir() || found.is_file()) || !quota.take(length) {
            continue;
        }
        remove_conflict(to, &name, user, found.is_dir())?;
        if found.is_dir() {
            let mode = Mode::from_raw_mode(0o755);
            match syscalls::with_fs_user(user, || rustix::fs::mkdirat(to, &name, mode)) {
                Err(error) if error != Errno::EXIST => return Err(error.into()),
                _ => {}
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inner = rustix::fs::openat(to, &name, flags, Mode::empty())?;
            restore_dir(&entry.path(), &inner, user, quota)?;
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

/// Copies the rest of `from` into a new file, and returns its length. Pages of zeros become holes, so
/// that the copy takes no more space than the original.
fn copy(from: &mut impl Read, to: &File) -> io::Result<u64> {
    let mut length = 0;
    let mut chunk = Vec::with_capacity(CHUNK);
    while from.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)? > 0 {
        for (page, at) in chunk.chunks(PAGE).zip((length..).step_by(PAGE)) {
            if page.iter().any(|byte| *byte != 0) {
                to.write_all_at(page, at)?;
            }
        }
        length += chunk.len() as u64;
        chunk.clear();
    }
    to.set_len(length)?;
    Ok(length)
}

/// Removes what conflicts with a saved file: the bot replaced an original file by one of another kind
/// or with other contents.
fn remove_conflict(
    to: &OwnedFd,
    name: &OsStr,
    user: Option<u32>,
    directory: bool,
) -> io::Result<()> {
    let Ok(found) = rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory if directory => Ok(()),
        FileType::Directory => tree_removal::remove_at(to.as_fd(), name).map(drop),
        _ => Ok(syscalls::with_fs_user(user, || rustix::fs::unlinkat(to, name, AtFlags::empty()))?),
    }
}

/// Saves the jail directory `from` in `to`, replacing what was saved before. Returns what was skipped.
/// If `from` also contains the original files, pass their source as `originals`; unchanged ones are not
/// saved.
pub(super) fn capture(
    from: &OwnedFd,
    to: &Path,
    limits: &Limits,
    originals: Option<&BotSource>,
) -> Result<SkippedFiles, Fault> {
    let take = || {
        let fresh = to.with_extension("new");
        remove_tree(&fresh)?;
        fs::create_dir(&fresh)?;
        let bytes = limits.disk.0;
        let files = limits.files;
        let mut capture = Capture { originals, bytes, files, skipped: SkippedFiles::default() };
        capture.copy(from.as_fd(), Path::new(""), &fresh, MAX_STATE_DEPTH)?;
        // Between these two steps nothing is saved. A worker that dies there loses a state, but never
        // mixes two.
        remove_tree(to)?;
        fs::rename(&fresh, to)?;
        capture.skipped.paths.sort();
        Ok(capture.skipped)
    };
    let taken: io::Result<_> = take();
    taken.fault("cannot save a bot's files")
}

/// A capture in progress, and what may still be saved.
struct Capture<'a> {
    originals: Option<&'a BotSource>,
    bytes: u64,
    files: u64,
    skipped: SkippedFiles,
}

impl Capture<'_> {
    /// Copies a directory. Files that the bot made unreadable are skipped.
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

    /// Copies the entry `name` of the directory `from`. Returns whether that was possible.
    fn entry(
        &mut self,
        from: &OwnedFd,
        name: &CStr,
        path: &Path,
        target: &Path,
        depth: usize,
    ) -> io::Result<bool> {
        if self.files == 0 || path.as_os_str().len() > MAX_PATH_LENGTH {
            return Ok(false);
        }
        let found = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(found) = found else { return Ok(false) };
        let open = |flags: OFlags| {
            // Without NONBLOCK, opening a FIFO would wait for a writer.
            let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::openat(from, name, flags, Mode::empty())
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory if depth > 0 => match open(OFlags::PATH | OFlags::DIRECTORY) {
                Ok(inner) => self.directory(&inner, path, target, depth - 1),
                Err(_) => Ok(false),
            },
            FileType::RegularFile => match open(OFlags::RDONLY).map(File::from) {
                // Another file may have replaced it meanwhile.
                Ok(file) if file.metadata().is_ok_and(|it| it.is_file()) => {
                    self.file(file, path, target, found.st_mode & 0o111 != 0)
                }
                _ => Ok(false),
            },
            // An overlay whiteout: it marks a deleted original file.
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
        if unless_exists(fs::create_dir(target))?.is_none() {
            return Ok(false);
        }
        self.files -= 1;
        self.copy(from, path, target, depth)?;
        let original = self.original(path).is_some_and(|original| original.is_dir());
        if original && fs::read_dir(target)?.next().is_none() {
            fs::remove_dir(target)?;
            self.files += 1;
        }
        Ok(true)
    }

    fn file(
        &mut self,
        mut file: File,
        path: &Path,
        target: &Path,
        is_executable: bool,
    ) -> io::Result<bool> {
        // A sparse file may be longer than the limit.
        if file.metadata()?.len() > self.bytes {
            return Ok(false);
        }
        if self.original(path).is_some_and(|original| is_same_file(&original, &file, is_executable))
        {
            return Ok(true);
        }
        file.rewind()?;
        let Some(kept) = unless_exists(File::create_new(target))? else { return Ok(false) };
        let length = copy(&mut (&file).take(self.bytes + 1), &kept)?;
        // When restored, it takes whole pages.
        let Some(left) = self.bytes.checked_sub(length.next_multiple_of(PAGE as u64)) else {
            return fs::remove_file(target).map(|()| false);
        };
        (self.bytes, self.files) = (left, self.files - 1);
        // At level C, linkers cannot set the mode of a program.
        let is_executable = is_executable || self.originals.is_some() && is_program(&file)?;
        let mode = if is_executable { 0o755 } else { 0o644 };
        kept.set_permissions(Permissions::from_mode(mode)).map(|()| true)
    }

    /// The path of the bot's original file for this path.
    fn original(&self, path: &Path) -> Option<PathBuf> {
        match self.originals? {
            BotSource::Directory(original) => Some(original.join(path)),
            BotSource::File(original) => {
                (original.file_name() == Some(path.as_os_str())).then(|| original.clone())
            }
        }
    }
}

/// The result, or none if the name exists already. A live process of the bot (possible at level C) may
/// rename files while they are read, so that a name comes twice.
fn unless_exists<T>(made: io::Result<T>) -> io::Result<Option<T>> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        made => made.map(Some),
    }
}

/// Whether the kernel can execute this file.
fn is_program(file: &File) -> io::Result<bool> {
    let mut magic = [0; 4];
    let read = file.read_at(&mut magic, 0)?;
    Ok(magic[..read].starts_with(b"\x7FELF") || magic[..read].starts_with(b"#!"))
}

/// Whether `path` is a regular file with the contents of `file` and the same executable bit.
fn is_same_file(path: &Path, file: &File, is_executable: bool) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let executable = found.permissions().mode() & 0o111 != 0;
    let same_length = file.metadata().is_ok_and(|other| other.len() == found.len());
    found.is_file()
        && executable == is_executable
        && same_length
        && has_same_contents(path, file).unwrap_or(false)
}

/// Whether the contents of `path` equal the rest of `file`. It keeps one chunk of each in memory.
fn has_same_contents(path: &Path, file: &File) -> io::Result<bool> {
    let mut original = BufReader::with_capacity(CHUNK, open_regular(path)?);
    let mut other = BufReader::with_capacity(CHUNK, file);
    loop {
        let one = original.fill_buf()?;
        let two = other.fill_buf()?;
        let length = one.len().min(two.len());
        if length == 0 || one[..length] != two[..length] {
            return Ok(one.is_empty() && two.is_empty());
        }
        original.consume(length);
        other.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Renames, removes and creates files and directories until `stop`.
    fn stir(directory: &Path, stop: &AtomicBool) {
        let name = |number: usize| directory.join(format!("{number}"));
        for round in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
            let one = name(round % 40);
            let other = name((round * 7 + 3) % 60);
            drop(fs::rename(&one, &other));
            drop(fs::remove_file(name(round * 11 % 60)));
            drop(fs::remove_dir(name(round * 13 % 60)));
            drop(fs::create_dir_all(name(round * 17 % 40).join("inner")));
            drop(fs::write(name(round * 19 % 40), b"left"));
        }
    }

    /// A live process of the bot cannot cause a fault by changing its files.
    #[test]
    fn files_that_change_during_capture_are_no_fault() {
        let scratch = tempfile::tempdir().unwrap();
        let from = scratch.path().join("from");
        let to = scratch.path().join("to");
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

//! Saves the files that a bot writes in a match, and restores them in its next match.
//!
//! This module copies files between a directory of the worker and the jail's directory. It opens
//! the jail's directory through a descriptor, copies only regular files and directories, and
//! follows no links. It saves only changes to the bot's original files, so that a saved state has
//! the same meaning on every machine. With namespaces the changes are in a separate directory.
//! Without namespaces, this module compares the files with the originals.

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

/// The maximum depth of saved directories.
pub(crate) const MAX_STATE_DEPTH: usize = 16;

/// The maximum length of a saved path, in bytes. The path of the worker's own directory precedes
/// it, and both together must not exceed the system's limit.
const MAX_PATH_LENGTH: usize = 1024;

/// The unit of disk space, in bytes.
const PAGE: usize = 4096;

/// The size of one read from a file, in bytes: whole pages.
const CHUNK: usize = 16 * PAGE;

/// The maximum number of skipped files that are listed.
const MAX_LISTED: usize = 10;

/// Files that were not saved: those that are neither a file nor a directory, cannot be read, change
/// while they are read, are too deep, or exceed the limits.
#[derive(Debug, Default)]
pub struct SkippedFiles {
    /// The first skipped files, sorted.
    pub paths: Vec<PathBuf>,
    /// The number of further skipped files.
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

/// The space that restored files may still use.
struct Quota {
    bytes: u64,
    files: u64,
}

impl Quota {
    /// Takes the space of a file of this length, or of a directory. Returns whether there was
    /// enough.
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
        let metadata = entry.metadata()?;
        let length = if metadata.is_file() { metadata.len() } else { 0 };
        // A worker never saves files over the limits. So a worker that reported such files invented
        // them. Skip them: a fault would count against the bot.
        if !(metadata.is_dir() || metadata.is_file()) || !quota.take(length) {
            continue;
        }
        remove_conflict(to, &name, user, metadata.is_dir())?;
        if metadata.is_dir() {
            let mode = Mode::from_raw_mode(0o755);
            match syscalls::with_fs_user(user, || rustix::fs::mkdirat(to, &name, mode)) {
                Err(error) if error != Errno::EXIST => return Err(error.into()),
                _ => {}
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inner = rustix::fs::openat(to, &name, flags, Mode::empty())?;
            restore_dir(&entry.path(), &inner, user, quota)?;
        } else {
            let saved_file = open_regular(&entry.path())?;
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(metadata.permissions().mode() & 0o755);
            let open = || rustix::fs::openat(to, &name, flags, mode);
            let jail_file = File::from(syscalls::with_fs_user(user, open)?);
            copy(&mut saved_file.take(metadata.len()), &jail_file)?;
        }
    }
    Ok(())
}

/// Copies the rest of `from` into a new file, and returns its length. Pages of zeros become holes,
/// so that the copy uses no more space than the original.
fn copy(from: &mut impl Read, to: &File) -> io::Result<u64> {
    let mut length = 0;
    let mut chunk = Vec::with_capacity(CHUNK);
    while from.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)? > 0 {
        for (page, offset) in chunk.chunks(PAGE).zip((length..).step_by(PAGE)) {
            if page.iter().any(|byte| *byte != 0) {
                to.write_all_at(page, offset)?;
            }
        }
        length += chunk.len() as u64;
        chunk.clear();
    }
    to.set_len(length)?;
    Ok(length)
}

/// Removes an original file that conflicts with a saved file: the bot replaced it by a file of
/// another kind or with other contents.
fn remove_conflict(
    to: &OwnedFd,
    name: &OsStr,
    user: Option<u32>,
    is_directory: bool,
) -> io::Result<()> {
    let Ok(stat) = rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory if is_directory => Ok(()),
        FileType::Directory => tree_removal::remove_at(to.as_fd(), name).map(drop),
        _ => Ok(syscalls::with_fs_user(user, || rustix::fs::unlinkat(to, name, AtFlags::empty()))?),
    }
}

/// Saves the jail directory `from` in `to`, and replaces the files saved before. Returns the
/// skipped files. If `from` also contains the original files, pass their source as `originals`:
/// unchanged originals are not saved.
pub(super) fn capture(
    from: &OwnedFd,
    to: &Path,
    limits: &Limits,
    originals: Option<&BotSource>,
) -> Result<SkippedFiles, Fault> {
    let save = || -> io::Result<_> {
        let fresh = to.with_extension("new");
        remove_tree(&fresh)?;
        fs::create_dir(&fresh)?;
        let bytes = limits.disk.0;
        let files = limits.files;
        let mut capture = Capture { originals, bytes, files, skipped: SkippedFiles::default() };
        capture.copy(from.as_fd(), Path::new(""), &fresh, MAX_STATE_DEPTH)?;
        // Between these two steps there is no saved state. A worker that dies there loses a state,
        // but never mixes two states.
        remove_tree(to)?;
        fs::rename(&fresh, to)?;
        capture.skipped.paths.sort();
        Ok(capture.skipped)
    };
    save().fault("cannot save a bot's files")
}

/// A capture in progress, and the space that it may still use.
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

    /// Copies the entry `name` of the directory `from`. Returns false if it must be skipped.
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
        let stat_result = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(stat) = stat_result else { return Ok(false) };
        let open = |flags: OFlags| {
            // Without NONBLOCK, opening a FIFO would wait for a writer.
            let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::openat(from, name, flags, Mode::empty())
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth > 0 => match open(OFlags::PATH | OFlags::DIRECTORY) {
                Ok(inner) => self.directory(&inner, path, target, depth - 1),
                Err(_) => Ok(false),
            },
            FileType::RegularFile => match open(OFlags::RDONLY).map(File::from) {
                // Another file may have replaced it meanwhile.
                Ok(file) if file.metadata().is_ok_and(|metadata| metadata.is_file()) => {
                    self.file(file, path, target, stat.st_mode & 0o111 != 0)
                }
                _ => Ok(false),
            },
            // An overlay whiteout: it marks a deleted original file.
            FileType::CharacterDevice => Ok(stat.st_rdev == 0),
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
        let is_original = self.original(path).is_some_and(|original| original.is_dir());
        if is_original && fs::read_dir(target)?.next().is_none() {
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
        let Some(saved_file) = unless_exists(File::create_new(target))? else { return Ok(false) };
        let length = copy(&mut (&file).take(self.bytes + 1), &saved_file)?;
        // The restored file uses whole pages.
        let Some(bytes) = self.bytes.checked_sub(length.next_multiple_of(PAGE as u64)) else {
            return fs::remove_file(target).map(|()| false);
        };
        self.bytes = bytes;
        self.files -= 1;
        // At level C, linkers cannot set the mode of a program.
        let is_executable = is_executable || self.originals.is_some() && is_program(&file)?;
        let mode = if is_executable { 0o755 } else { 0o644 };
        saved_file.set_permissions(Permissions::from_mode(mode)).map(|()| true)
    }

    /// The path of the bot's original file for the file at `path` of the jail.
    fn original(&self, path: &Path) -> Option<PathBuf> {
        match self.originals? {
            BotSource::Directory(original) => Some(original.join(path)),
            BotSource::File(original) => {
                (original.file_name() == Some(path.as_os_str())).then(|| original.clone())
            }
        }
    }
}

/// The result, or none if the name exists already. A live process of the bot (possible at level C)
/// may rename files while they are read, so that one name is listed twice.
fn unless_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        other => other.map(Some),
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
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    let original_is_executable = metadata.permissions().mode() & 0o111 != 0;
    let same_length = file.metadata().is_ok_and(|other| other.len() == metadata.len());
    metadata.is_file()
        && original_is_executable == is_executable
        && same_length
        && has_same_contents(path, file).unwrap_or(false)
}

/// Whether the contents of `path` equal the rest of `file`. Only one chunk of each is in memory.
fn has_same_contents(path: &Path, file: &File) -> io::Result<bool> {
    let mut original = BufReader::with_capacity(CHUNK, open_regular(path)?);
    let mut other = BufReader::with_capacity(CHUNK, file);
    loop {
        let original_bytes = original.fill_buf()?;
        let other_bytes = other.fill_buf()?;
        let length = original_bytes.len().min(other_bytes.len());
        if length == 0 || original_bytes[..length] != other_bytes[..length] {
            return Ok(original_bytes.is_empty() && other_bytes.is_empty());
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
    fn change_files(directory: &Path, stop: &AtomicBool) {
        let name = |number: usize| directory.join(format!("{number}"));
        for round in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
            let from = name(round % 40);
            let to = name((round * 7 + 3) % 60);
            drop(fs::rename(&from, &to));
            drop(fs::remove_file(name(round * 11 % 60)));
            drop(fs::remove_dir(name(round * 13 % 60)));
            drop(fs::create_dir_all(name(round * 17 % 40).join("inner")));
            drop(fs::write(name(round * 19 % 40), b"contents"));
        }
    }

    /// A live process of the bot cannot cause a fault by changing its files.
    #[test]
    fn files_that_change_during_capture_are_no_fault() {
        let scratch = tempfile::tempdir().unwrap();
        let from = scratch.path().join("from");
        let to = scratch.path().join("to");
        fs::create_dir(&from).unwrap();
        let directory = OwnedFd::from(File::open(&from).unwrap());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| change_files(&from, &stop));
            let result = (0..60)
                .try_for_each(|_| capture(&directory, &to, &Limits::OFFICIAL, None).map(drop));
            stop.store(true, Ordering::Relaxed);
            result.unwrap();
        });
    }
}

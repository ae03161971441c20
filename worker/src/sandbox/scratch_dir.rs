//! Temporary directories that are removed even if the process that created them is killed.
//!
//! A process removes its directories when it no longer needs them. While it lives, it has a lock on
//! each of them. If it is killed, the kernel releases the locks. So a directory without a lock has
//! no owner, and the next process that starts removes it. Locks protect unfinished files in the
//! same way.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};

use super::tree_removal;
use super::with_namespaces::{FIRST_UID, UID_COUNT};

/// The prefix of every directory's name; letters and digits follow.
const PREFIX: &str = "arbiter-scratch-";

/// How often to try again if another process removes the new directory as stale.
const ATTEMPTS: usize = 16;

/// A temporary directory, removed on drop or after its process has ended.
#[derive(Debug)]
pub struct ScratchDir {
    path: PathBuf,
    /// Whether the directory was removed already.
    removed: bool,
    /// The directory itself, locked.
    lock: File,
}

impl ScratchDir {
    /// Creates an empty directory among the system's temporary files, for this user only.
    pub fn new() -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let path = tempfile::Builder::new().prefix(PREFIX).tempdir()?.keep();
            if let Some(lock) = try_lock_path(&path)? {
                return Ok(Self { path, removed: false, lock });
            }
        }
        Err(io::Error::other("every new directory was removed by another process"))
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory with its contents.
    pub fn remove(&mut self) -> io::Result<()> {
        if !self.removed {
            remove_locked(&self.lock, &self.path)?;
            self.removed = true;
        }
        Ok(())
    }

    /// Removes the directories that killed processes of this user left, as far as possible.
    pub fn sweep() {
        let temp_dir = tempfile::env::temp_dir();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = rustix::fs::open(&temp_dir, flags, Mode::empty()) else { return };
        let Ok(entries) = fs::read_dir(&temp_dir) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let suffix = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            if suffix.is_some_and(|suffix| suffix.bytes().all(|c| c.is_ascii_alphanumeric())) {
                drop(remove_if_stale(directory.as_fd(), &name, &entry.path()));
            }
        }
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if !self.removed {
            drop(remove_locked(&self.lock, &self.path));
        }
    }
}

/// Whether `user` is this process's user or one of its bots'. Directories of other users are never
/// removed, especially not by root.
fn is_ours(user: u32) -> bool {
    let worker_user = rustix::process::geteuid();
    user == worker_user.as_raw()
        || worker_user.is_root() && (FIRST_UID..=FIRST_UID + UID_COUNT).contains(&user)
}

/// Removes a directory that no process has locked.
fn remove_if_stale(parent: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
    // Opening a directory changes its mode. So never open another user's directory.
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_ours(stat.st_uid) {
        return Ok(());
    }
    // A bot may have removed the permissions for itself and for us.
    let directory = tree_removal::open_directory(parent, &CString::new(name.as_bytes())?)?;
    match lock(directory.into(), path)? {
        Some(lock) if is_ours(lock.metadata()?.uid()) => remove_locked(&lock, path),
        _ => Ok(()),
    }
}

/// Removes a locked directory through its descriptor. Bots cannot change its parent.
fn remove_locked(lock: &File, path: &Path) -> io::Result<()> {
    tree_removal::empty_dir(lock.as_fd())?;
    fs::remove_dir(path)
}

/// Locks the file or directory at `path` for the lifetime of the returned file. Returns `None` if
/// another process has locked or removed it.
pub(crate) fn try_lock_path(path: &Path) -> io::Result<Option<File>> {
    // Do not wait for the other end of a FIFO, and do not follow links.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => Ok(None),
        other => lock(other?.into(), path),
    }
}

/// Locks the file opened at `path`, if it is still there.
fn lock(file: File, path: &Path) -> io::Result<Option<File>> {
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        other => other?,
    }
    // The process that had the lock before may have removed it.
    let locked_file = file.metadata()?;
    let at_path = fs::symlink_metadata(path);
    let is_same = at_path.is_ok_and(|at_path| {
        (at_path.dev(), at_path.ino()) == (locked_file.dev(), locked_file.ino())
    });
    Ok(is_same.then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_directories_are_not_swept() {
        let mut scratch = ScratchDir::new().unwrap();
        fs::write(scratch.path().join("file"), "x").unwrap();
        ScratchDir::sweep();
        assert!(scratch.path().join("file").exists());
        let path = scratch.path().to_owned();
        scratch.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn unlocked_directories_are_swept() {
        let unlocked = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap().keep();
        let other = tempfile::Builder::new().prefix("arbiter-scratch-my.").tempdir().unwrap();
        fs::write(unlocked.join("file"), "x").unwrap();
        ScratchDir::sweep();
        assert!(!unlocked.exists());
        assert!(other.path().exists(), "no scratch directory has a dot in its name");
    }
}

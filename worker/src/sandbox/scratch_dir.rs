//! Temporary directories that do not outlive the process that made them, however it ends.
//!
//! A directory is removed when its owner is done with it. A process that is killed cannot do that;
//! but while it lives it holds a lock on each of its directories, which the kernel takes from it at
//! its end. So a directory that can be locked is nobody's any more, and whoever starts next
//! removes it. Files that are not finished yet are held in the same way.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};

use super::namespaces::{FIRST_UID, UID_COUNT};
use super::tree_removal;

/// How the name of every directory of ours begins; letters and digits follow.
const PREFIX: &str = "arbiter-scratch-";

/// How often a new directory is made when another process takes it for an old one.
const ATTEMPTS: usize = 16;

/// A temporary directory, removed when this is dropped or its process has ended.
#[derive(Debug)]
pub struct ScratchDir {
    path: PathBuf,
    /// Whether there is nothing to be removed any more.
    removed: bool,
    /// The directory itself, locked.
    lock: File,
}

impl ScratchDir {
    /// A new, empty directory among the system's temporary files, for this user alone.
    pub fn new() -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let path = tempfile::Builder::new().prefix(PREFIX).tempdir()?.keep();
            if let Some(lock) = try_lock_path(&path)? {
                return Ok(Self { path, removed: false, lock });
            }
        }
        Err(io::Error::other("every new directory was removed by somebody else"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, with everything in it.
    pub fn remove(&mut self) -> io::Result<()> {
        if !self.removed {
            remove_held(&self.lock, &self.path)?;
            self.removed = true;
        }
        Ok(())
    }

    /// Removes what processes of this user left behind that were killed. What cannot be removed
    /// stays.
    pub fn sweep() {
        let place = tempfile::env::temp_dir();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = rustix::fs::open(&place, flags, Mode::empty()) else { return };
        let Ok(entries) = fs::read_dir(&place) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            if rest.is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_alphanumeric())) {
                drop(remove_if_left(directory.as_fd(), &name, &entry.path()));
            }
        }
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if !self.removed {
            drop(remove_held(&self.lock, &self.path));
        }
    }
}

/// Whether a directory of this user's belongs to `user`: him, or a bot of his. Into another user's
/// directories nobody is sent to remove things, least of all root.
fn is_ours(user: u32) -> bool {
    let own = rustix::process::geteuid();
    user == own.as_raw() || own.is_root() && (FIRST_UID..=FIRST_UID + UID_COUNT).contains(&user)
}

/// Removes a directory that no process holds.
fn remove_if_left(parent: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
    // Another user's directory is not to be opened with this user's rights, which changes its mode.
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_ours(found.st_uid) {
        return Ok(());
    }
    // A bot may have locked itself out, and us.
    let directory = tree_removal::open_directory(parent, &CString::new(name.as_bytes())?)?;
    match lock(directory.into(), path)? {
        Some(held) if is_ours(held.metadata()?.uid()) => remove_held(&held, path),
        _ => Ok(()),
    }
}

/// Removes a directory through the descriptor that it is held by. Its parent is not a bot's.
fn remove_held(held: &File, path: &Path) -> io::Result<()> {
    tree_removal::empty(held.as_fd())?;
    fs::remove_dir(path)
}

/// Locks the file or directory at `path` for as long as the result lives; none if another process
/// holds it, or has removed it.
pub(crate) fn try_lock_path(path: &Path) -> io::Result<Option<File>> {
    // Nobody is to make us wait for the other end of a pipe, or to lead us elsewhere.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => Ok(None),
        other => lock(other?.into(), path),
    }
}

/// Locks what was opened at `path`, if it is still there.
fn lock(file: File, path: &Path) -> io::Result<Option<File>> {
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        other => other?,
    }
    // The process that held it before may have removed it.
    let (held, there) = (file.metadata()?, fs::symlink_metadata(path));
    let same = there.is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino()));
    Ok(same.then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_holds_is_not_swept() {
        let mut held = ScratchDir::new().unwrap();
        fs::write(held.path().join("file"), "x").unwrap();
        ScratchDir::sweep();
        assert!(held.path().join("file").exists());
        let path = held.path().to_owned();
        held.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_nobody_holds_is_swept() {
        let left = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap().keep();
        let other = tempfile::Builder::new().prefix("arbiter-scratch-my.").tempdir().unwrap();
        fs::write(left.join("file"), "x").unwrap();
        ScratchDir::sweep();
        assert!(!left.exists());
        assert!(other.path().exists(), "this name is none of ours");
    }
}

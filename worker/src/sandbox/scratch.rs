//! Temporary directories that do not outlive the process that made them, however it ends.
//!
//! A directory is removed when its owner is done with it. A process that is killed cannot do that;
//! but while it lives it holds a lock on each of its directories, which the kernel takes from it at
//! its end. So a directory that can be locked is nobody's any more, and whoever starts next
//! removes it. Files that are not finished yet are held in the same way.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::walls::{FIRST_USER, USERS};

/// How the name of every directory of ours begins; letters and digits follow.
const PREFIX: &str = "arbiter-scratch-";

/// How often a new directory is made when another process takes it for an old one.
const ATTEMPTS: usize = 16;

/// A temporary directory, removed when this is dropped or its process has ended.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Whether there is nothing to be removed any more.
    removed: bool,
    _lock: File,
}

impl Scratch {
    /// A new, empty directory among the system's temporary files, for this user alone.
    ///
    /// # Errors
    /// If none can be made there.
    pub fn new() -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let path = tempfile::Builder::new().prefix(PREFIX).tempdir()?.keep();
            if let Some(lock) = hold(&path)? {
                return Ok(Self { path, removed: false, _lock: lock });
            }
        }
        Err(io::Error::other("every new directory was removed by somebody else"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, with everything in it.
    ///
    /// # Errors
    /// If something in it cannot be removed.
    pub fn remove(&mut self) -> io::Result<()> {
        if !self.removed {
            remove_tree(&self.path)?;
            self.removed = true;
        }
        Ok(())
    }

    /// Removes what processes of this user left behind that were killed. What cannot be removed
    /// stays.
    pub fn sweep() {
        let Ok(entries) = fs::read_dir(tempfile::env::temp_dir()) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let named = rest.is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_alphanumeric()));
            let ours = entry.metadata().is_ok_and(|found| found.is_dir() && is_ours(found.uid()));
            if named && ours {
                drop(remove_if_left(&entry.path()));
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.removed {
            drop(remove_tree(&self.path));
        }
    }
}

/// Whether a directory of this user's belongs to `user`: him, or a bot of his. Into another user's
/// directories nobody is sent to remove things, least of all root.
fn is_ours(user: u32) -> bool {
    let own = rustix::process::geteuid();
    user == own.as_raw() || own.is_root() && (FIRST_USER..=FIRST_USER + USERS).contains(&user)
}

/// Removes a directory that nobody holds.
fn remove_if_left(path: &Path) -> io::Result<()> {
    let held = match hold(path) {
        // A bot may have locked itself out, and us.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
            hold(path)?
        }
        other => other?,
    };
    held.map_or(Ok(()), |_lock| remove_tree(path))
}

/// Locks the file or directory at `path` for as long as the result lives; none if another process
/// holds it, or has removed it.
pub(crate) fn hold(path: &Path) -> io::Result<Option<File>> {
    // Nobody is to make us wait for the other end of a pipe, or to lead us elsewhere.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        other => File::from(other?),
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        other => other?,
    }
    // Who held it before may have removed it.
    let (held, there) = (file.metadata()?, fs::symlink_metadata(path));
    let same = there.is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino()));
    Ok(same.then_some(file))
}

/// Removes a directory, however deep it is and whatever modes its owner gave it: directories are
/// lifted to its top before they are emptied, so that neither the stack nor descriptors nor the
/// length of a path can run out.
fn remove_tree(root: &Path) -> io::Result<()> {
    let mut numbers = 0_u64..;
    fs::set_permissions(root, Permissions::from_mode(0o700))?;
    let mut found = true;
    while std::mem::take(&mut found) {
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            found = true;
            fs::set_permissions(entry.path(), Permissions::from_mode(0o700))?;
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    lift(&inner.path(), root, &mut numbers)?;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(entry.path())?;
        }
    }
    fs::remove_dir(root)
}

/// Moves a directory to the top, under a number that nothing there is called by.
fn lift(directory: &Path, top: &Path, numbers: &mut impl Iterator<Item = u64>) -> io::Result<()> {
    // To be moved, a directory must be writable itself: its parent is an entry of it.
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for number in numbers {
        let free = top.join(number.to_string());
        if fs::symlink_metadata(&free).is_err() {
            return fs::rename(directory, free);
        }
    }
    unreachable!("there are more numbers than files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_and_locked_directories_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        // Deeper than a path may be long: built from below, by lifting like the removal itself.
        for level in 0..3000 {
            let next = root.path().join("next");
            fs::create_dir(&next).unwrap();
            fs::write(next.join(format!("file{level}")), "x").unwrap();
            fs::rename(&home, next.join("d")).unwrap();
            fs::rename(&next, &home).unwrap();
        }
        fs::write(home.join("0"), "in the way").unwrap();
        fs::create_dir(home.join("locked")).unwrap();
        fs::write(home.join("locked/file"), "x").unwrap();
        fs::set_permissions(home.join("locked"), Permissions::from_mode(0o000)).unwrap();
        remove_tree(&home).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_somebody_holds_is_not_swept() {
        let mut held = Scratch::new().unwrap();
        fs::write(held.path().join("file"), "x").unwrap();
        Scratch::sweep();
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
        Scratch::sweep();
        assert!(!left.exists());
        assert!(other.path().exists(), "this name is none of ours");
    }
}

//! Removes directories that a bot wrote, even while a process of the bot is alive.
//!
//! Between two accesses to a path, a live process may redirect it: it may replace a directory by a
//! symbolic link. So this module refers to each file by an open directory and a name in it, and
//! follows no links. An open directory stays the same even if it is moved.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::syscalls;

/// The time limit for one directory. If it still grows after that, a live process writes to it.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Creates an empty directory, and removes an old one with its contents.
pub(crate) fn recreate_dir(directory: &Path) -> io::Result<()> {
    remove_tree(directory)?;
    std::fs::create_dir_all(directory)
}

/// Removes the directory, file or link at `path`. Returns whether there was one.
///
/// # Errors
/// If something in it cannot be removed, or another file system is mounted in it.
pub(crate) fn remove_tree(path: &Path) -> io::Result<bool> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty()) {
        Ok(parent) => remove_at(parent.as_fd(), name),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes `name` in the directory `parent`. Returns whether it existed.
pub(super) fn remove_at(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<bool> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => return Ok(true),
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::ISDIR) => {}
        Err(error) => return Err(error.into()),
    }
    let directory = open_directory(parent, &CString::new(name.as_bytes())?)?;
    empty_dir(directory.as_fd())?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    Ok(true)
}

/// Removes everything in the directory `top`, of any depth and with any modes. It moves directories
/// to `top` before it empties them, so that neither stack nor descriptors nor path length can run
/// out.
pub(super) fn empty_dir(top: BorrowedFd<'_>) -> io::Result<()> {
    make_accessible(top)?;
    let mut numbers = 0_u64..;
    let deadline = Instant::now() + TIME_LIMIT;
    loop {
        let mut is_empty = true;
        for name in entries(top)? {
            let name = name?;
            is_empty = false;
            if unlink_file(top, &name)? {
                continue;
            }
            let Some(inner) = if_unchanged(open_directory(top, &name))? else { continue };
            for child in entries(inner.as_fd())? {
                let child = child?;
                if !unlink_file(inner.as_fd(), &child)? {
                    move_to_top(inner.as_fd(), &child, top, &mut numbers)?;
                }
            }
            match rustix::fs::unlinkat(top, &name, AtFlags::REMOVEDIR) {
                // Something was added meanwhile: the next round removes it.
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() > deadline {
                let cause =
                    "the directory grows while it is removed: a live process of a bot writes to it";
                return Err(io::Error::new(io::ErrorKind::TimedOut, cause));
            }
        }
        if is_empty {
            return Ok(());
        }
    }
}

/// Opens the directory `name` of `parent` and gives its owner all permissions.
///
/// # Errors
/// If it is not a directory, or the root of another file system.
pub(super) fn open_directory(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let directory = match open_beneath(parent, name, flags) {
        // The owner is this process's user, but without read permission. Opening it as a path pins
        // it, so that the mode of this directory is changed and no other's.
        Err(Errno::ACCESS) => {
            let pinned = open_beneath(parent, name, OFlags::PATH)?;
            syscalls::chmod_path_fd(pinned.as_fd(), OWNER_ACCESS)?;
            open_beneath(parent, name, flags)?
        }
        other => other?,
    };
    make_accessible(directory.as_fd())?;
    Ok(directory)
}

/// The permissions that the owner needs to empty a directory.
const OWNER_ACCESS: u32 = 0o700;

fn make_accessible(directory: BorrowedFd<'_>) -> io::Result<()> {
    let mode = rustix::fs::fstat(directory)?.st_mode;
    if mode & OWNER_ACCESS != OWNER_ACCESS {
        rustix::fs::fchmod(directory, Mode::from_raw_mode(OWNER_ACCESS))?;
    }
    Ok(())
}

fn open_beneath(parent: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(parent, name, flags, Mode::empty(), resolve) {
        // Containers may refuse the call. Then a mount of the same file system is not detected.
        Err(Errno::NOSYS | Errno::PERM) => {
            let opened = rustix::fs::openat(parent, name, flags, Mode::empty())?;
            let device = rustix::fs::fstat(&opened)?.st_dev;
            let is_same_device = device == rustix::fs::fstat(parent)?.st_dev;
            if is_same_device { Ok(opened) } else { Err(Errno::XDEV) }
        }
        other => other,
    }
}

/// Unlinks `name`, unless it is a directory. Returns whether `name` no longer exists.
fn unlink_file(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns none if a directory was replaced or removed meanwhile.
fn if_unchanged<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    let changed = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(Errno::raw_os_error);
    match opened {
        Err(error) if error.raw_os_error().is_some_and(|code| changed.contains(&code)) => Ok(None),
        other => other.map(Some),
    }
}

/// Moves the directory `name` of `parent` to `top`, under an unused number.
fn move_to_top(
    parent: BorrowedFd<'_>,
    name: &CStr,
    top: BorrowedFd<'_>,
    numbers: &mut impl Iterator<Item = u64>,
) -> io::Result<()> {
    // A directory must be writable to be moved: its `..` entry changes.
    if if_unchanged(open_directory(parent, name))?.is_none() {
        return Ok(());
    }
    for number in numbers {
        match rustix::fs::renameat(parent, name, top, number.to_string()) {
            // It was removed meanwhile, or moved over a file that is removed as well.
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("a directory has fewer files than there are numbers")
}

/// The entries of a directory.
fn entries(directory: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = io::Result<CString>>> {
    let entries = Dir::read_from(directory)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_owned()));
    let is_child = |name: &io::Result<CString>| {
        !name.as_ref().is_ok_and(|name| matches!(name.to_bytes(), b"." | b".."))
    };
    Ok(names.filter(is_child))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    use rustix::fs::{CWD, RenameFlags};

    use super::*;

    #[test]
    fn deep_and_unreadable_directories_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("home");
        fs::create_dir(&tree).unwrap();
        // Longer than the maximum length of a path: built bottom-up, by moving.
        for level in 0..3000 {
            let next = root.path().join("next");
            fs::create_dir(&next).unwrap();
            fs::write(next.join(format!("file{level}")), "x").unwrap();
            fs::rename(&tree, next.join("d")).unwrap();
            fs::rename(&next, &tree).unwrap();
        }
        fs::write(tree.join("0"), "in the way").unwrap();
        for mode in [0o000, 0o200, 0o400, 0o600] {
            let locked = tree.join(format!("locked{mode}"));
            fs::create_dir_all(locked.join("inner")).unwrap();
            fs::write(locked.join("inner/file"), "x").unwrap();
            fs::set_permissions(locked.join("inner"), Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(locked, Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(&tree, Permissions::from_mode(0o000)).unwrap();
        assert!(remove_tree(&tree).unwrap());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        assert!(!remove_tree(&tree).unwrap());
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        let tree = root.path().join("home");
        fs::create_dir_all(victim.join("directory")).unwrap();
        fs::create_dir(&tree).unwrap();
        symlink(&victim, tree.join("link")).unwrap();
        symlink(&victim, root.path().join("entrance")).unwrap();
        assert!(remove_tree(&tree).unwrap());
        assert!(remove_tree(&root.path().join("entrance")).unwrap());
        assert!(victim.join("directory").exists());
    }

    /// A live process swaps directories for links to foreign files during the whole removal.
    #[test]
    fn swapping_directories_for_links_redirects_nothing() {
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        let tree = root.path().join("home");
        fs::create_dir_all(victim.join("inner")).unwrap();
        fs::set_permissions(&victim, Permissions::from_mode(0o755)).unwrap();
        for name in ["a", "inner/b"] {
            fs::write(victim.join(name), "not the bot's").unwrap();
        }
        let is_over = AtomicBool::new(false);
        let swaps = AtomicU64::new(0);
        let swap = || {
            while !is_over.load(Ordering::Relaxed) {
                let link = tree.join("link");
                let directory = tree.join("d");
                let result =
                    rustix::fs::renameat_with(CWD, &link, CWD, directory, RenameFlags::EXCHANGE);
                swaps.fetch_add(result.is_ok().into(), Ordering::Relaxed);
            }
        };
        thread::scope(|scope| {
            scope.spawn(swap);
            let mut removed = 0;
            while removed < 20 || swaps.load(Ordering::Relaxed) < 200 {
                let fresh = root.path().join("fresh");
                fs::create_dir_all(fresh.join("d/inner/inner")).unwrap();
                symlink(&victim, fresh.join("link")).unwrap();
                for file in 0..20 {
                    fs::write(fresh.join(format!("d/file{file}")), "x").unwrap();
                }
                fs::rename(&fresh, &tree).unwrap();
                remove_tree(&tree).unwrap();
                removed += 1;
            }
            is_over.store(true, Ordering::Relaxed);
        });
        for name in ["a", "inner/b"] {
            assert_eq!(fs::read(victim.join(name)).unwrap(), b"not the bot's");
        }
        assert_eq!(fs::metadata(&victim).unwrap().permissions().mode() & 0o777, 0o755);
    }
}

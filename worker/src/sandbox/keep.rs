//! Files that a bot leaves, from match to match.
//!
//! They are carried between a directory of the worker and the jail's own file system, through a
//! descriptor of the latter: regular files and directories and nothing else, no link followed.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::limits::Limits;
use super::sys;
use crate::fault::{Context as _, Fault};

/// Directories further down than this are not kept.
const DEEPEST: usize = 16;

/// Puts what was kept at `from` into the jail directory `to`, whose user is `user`.
pub(super) fn bring_back(
    from: &Path,
    to: &OwnedFd,
    user: Option<u32>,
    limits: &Limits,
) -> Result<(), Fault> {
    put(from, to, user, limits).fault("cannot bring back a bot's files")
}

fn put(from: &Path, to: &OwnedFd, user: Option<u32>, limits: &Limits) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, found) = (entry.file_name(), entry.metadata()?);
        if found.is_dir() {
            let mode = Mode::from_raw_mode(0o755);
            sys::acting_as(user, || rustix::fs::mkdirat(to, &name, mode))?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inner = rustix::fs::openat(to, &name, flags, Mode::empty())?;
            put(&entry.path(), &inner, user, limits)?;
        } else if found.is_file() && found.len() <= limits.disk.0 {
            let bytes = fs::read(entry.path())?;
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(found.permissions().mode() & 0o755);
            let open = || rustix::fs::openat(to, &name, flags, mode);
            let mut file = File::from(sys::acting_as(user, open)?);
            file.write_all(&bytes)?;
        }
    }
    Ok(())
}

/// Takes what is in the jail directory `from` out to `to`, in place of what was kept there.
pub(super) fn take_out(from: &OwnedFd, to: &Path, limits: &Limits) -> Result<(), Fault> {
    let take = || {
        let fresh = to.with_extension("new");
        remove(&fresh)?;
        fs::create_dir(&fresh)?;
        let mut room = Room { bytes: limits.disk.0, files: limits.files };
        copy(from.as_fd(), &fresh, DEEPEST, &mut room)?;
        // Between these two steps nothing is kept; a worker that dies there loses a state, and
        // never mixes two.
        remove(to)?;
        fs::rename(&fresh, to)
    };
    take().fault("cannot keep a bot's files")
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What may still be kept.
struct Room {
    bytes: u64,
    files: u64,
}

/// Copies what can be read; what the bot locked itself out of is not kept.
fn copy(from: impl AsFd, to: &Path, depth: usize, room: &mut Room) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(from) = rustix::fs::openat(from, ".", flags, Mode::empty()) else { return Ok(()) };
    for entry in Dir::read_from(&from)? {
        let entry = entry?;
        let bytes = entry.file_name().to_bytes();
        if matches!(bytes, b"." | b"..") || room.files == 0 {
            continue;
        }
        room.files -= 1;
        let target = to.join(std::ffi::OsStr::from_bytes(bytes));
        let found = rustix::fs::statat(&from, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
        let open = |flags: OFlags| {
            // A FIFO, if one were there, would make us wait for who writes to it.
            let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::openat(&from, entry.file_name(), flags, Mode::empty())
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory if depth > 0 => {
                let Ok(inner) = open(OFlags::PATH | OFlags::DIRECTORY) else { continue };
                fs::create_dir(&target)?;
                copy(&inner, &target, depth - 1, room)?;
            }
            FileType::RegularFile => {
                let Ok(file) = open(OFlags::RDONLY) else { continue };
                let mut contents = Vec::new();
                // A file with holes may be longer than all that fits.
                let length = File::from(file).take(room.bytes + 1).read_to_end(&mut contents)?;
                let Some(left) = room.bytes.checked_sub(length as u64) else { continue };
                room.bytes = left;
                fs::write(&target, contents)?;
                let runs = found.st_mode & 0o111 != 0;
                let mode = if runs { 0o755 } else { 0o644 };
                fs::set_permissions(&target, Permissions::from_mode(mode))?;
            }
            _ => {}
        }
    }
    Ok(())
}

//! Files that a bot leaves, from match to match.
//!
//! They are carried between a directory of the worker and the jail's, through a descriptor of the
//! latter: regular files and directories and nothing else, no link followed. Only what differs from
//! the bot's own files is kept, so that it means the same on every machine: with walls that lies
//! apart from them, without walls it is told by comparing.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::home::Source;
use super::limits::Limits;
use super::removal::{self, remove_tree};
use super::sys;
use crate::fault::{Context as _, Fault};

/// Directories further down than this are not kept.
pub(crate) const DEEPEST: usize = 16;

/// What has a longer path than this, in bytes, is not kept either: with a worker's own directories
/// in front it may be more than the system takes.
const LONGEST: usize = 1024;

/// What files take room by, in bytes.
const PAGE: usize = 4096;

/// No more of what is not kept is named.
const NAMED: usize = 10;

/// What was there and is not kept: what is neither a file nor a directory, cannot be read, is too
/// deep, or more than may be.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Some of it, sorted.
    pub named: Vec<PathBuf>,
    /// How much more there is.
    pub more: usize,
}

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
        if found.is_dir() || found.is_file() {
            make_way(to, &name, user, found.is_dir())?;
        }
        if found.is_dir() {
            let mode = Mode::from_raw_mode(0o755);
            match sys::acting_as(user, || rustix::fs::mkdirat(to, &name, mode)) {
                Err(error) if error != Errno::EXIST => return Err(error.into()),
                _ => {}
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inner = rustix::fs::openat(to, &name, flags, Mode::empty())?;
            put(&entry.path(), &inner, user, limits)?;
        } else if found.is_file() && found.len() <= limits.disk.0 {
            let bytes = fs::read(entry.path())?;
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(found.permissions().mode() & 0o755);
            let open = || rustix::fs::openat(to, &name, flags, mode);
            write(&File::from(sys::acting_as(user, open)?), &bytes)?;
        }
    }
    Ok(())
}

/// Writes a new file. Where it has nothing but zeros for a page, it gets a hole: what took no room
/// takes none when it comes back.
fn write(file: &File, bytes: &[u8]) -> io::Result<()> {
    for (page, at) in bytes.chunks(PAGE).zip((0..).step_by(PAGE)) {
        if page.iter().any(|byte| *byte != 0) {
            file.write_all_at(page, at)?;
        }
    }
    file.set_len(bytes.len() as u64)
}

/// Removes what stands in the way of something kept: the bot put it where a file of another kind,
/// or with other contents, is among its own.
fn make_way(to: &OwnedFd, name: &OsStr, user: Option<u32>, directory: bool) -> io::Result<()> {
    let Ok(found) = rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory if directory => Ok(()),
        FileType::Directory => removal::remove_at(to.as_fd(), name).map(drop),
        _ => Ok(sys::acting_as(user, || rustix::fs::unlinkat(to, name, AtFlags::empty()))?),
    }
}

/// Takes what is in the jail directory `from` out to `to`, in place of what was kept there; what
/// cannot be kept. Where the bot's own files are in `from` too, as they came from `among`, they stay.
pub(super) fn take_out(
    from: &OwnedFd,
    to: &Path,
    limits: &Limits,
    among: Option<&Source>,
) -> Result<LeftOut, Fault> {
    let take = || {
        let fresh = to.with_extension("new");
        remove_tree(&fresh)?;
        fs::create_dir(&fresh)?;
        let (bytes, files) = (limits.disk.0, limits.files);
        let mut taking = Taking { among, bytes, files, left_out: LeftOut::default() };
        taking.copy(from.as_fd(), Path::new(""), &fresh, DEEPEST)?;
        // Between these two steps nothing is kept; a worker that dies there loses a state, and
        // never mixes two.
        remove_tree(to)?;
        fs::rename(&fresh, to)?;
        taking.left_out.named.sort();
        Ok(taking.left_out)
    };
    let taken: io::Result<_> = take();
    taken.fault("cannot keep a bot's files")
}

/// What is being taken out, and what may still be kept.
struct Taking<'a> {
    among: Option<&'a Source>,
    bytes: u64,
    files: u64,
    left_out: LeftOut,
}

impl Taking<'_> {
    /// Copies what can be read; what the bot locked itself out of is not kept.
    fn copy(&mut self, from: impl AsFd, below: &Path, to: &Path, depth: usize) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(from) = rustix::fs::openat(from, ".", flags, Mode::empty()) else {
            self.leave_out(below);
            return Ok(());
        };
        for entry in Dir::read_from(&from)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let name = OsStr::from_bytes(bytes);
            let (path, target) = (below.join(name), to.join(name));
            if self.files == 0 || path.as_os_str().len() > LONGEST {
                self.leave_out(&path);
                continue;
            }
            let found = rustix::fs::statat(&from, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            let open = |flags: OFlags| {
                // A FIFO, if one were there, would make us wait for who writes to it.
                let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                rustix::fs::openat(&from, entry.file_name(), flags, Mode::empty())
            };
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory if depth > 0 => {
                    let Ok(inner) = open(OFlags::PATH | OFlags::DIRECTORY) else {
                        self.leave_out(&path);
                        continue;
                    };
                    fs::create_dir(&target)?;
                    self.files -= 1;
                    self.copy(&inner, &path, &target, depth - 1)?;
                    let own = self.original(&path).is_some_and(|own| own.is_dir());
                    if own && fs::read_dir(&target)?.next().is_none() {
                        fs::remove_dir(&target)?;
                        self.files += 1;
                    }
                }
                FileType::RegularFile => {
                    let file = open(OFlags::RDONLY).map(File::from).map_err(io::Error::from);
                    // Something else may have taken its place.
                    let is_file = |file: &File| file.metadata().is_ok_and(|it| it.is_file());
                    let Some(file) = file.ok().filter(is_file) else {
                        self.leave_out(&path);
                        continue;
                    };
                    self.file(file, &path, &target, found.st_mode & 0o111 != 0)?;
                }
                // It stands for something that was removed from under it.
                FileType::CharacterDevice if found.st_rdev == 0 => {}
                _ => self.leave_out(&path),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &Path) {
        let LeftOut { named, more } = &mut self.left_out;
        if named.len() < NAMED {
            named.push(path.to_owned());
        } else {
            *more += 1;
        }
    }

    fn file(&mut self, file: File, path: &Path, target: &Path, runs: bool) -> io::Result<()> {
        let mut contents = Vec::new();
        // A file with holes may be longer than all that fits.
        let length = file.take(self.bytes + 1).read_to_end(&mut contents)?;
        // It takes whole pages when it comes back, whatever it is full of.
        let room = length.next_multiple_of(PAGE) as u64;
        let Some(left) = self.bytes.checked_sub(room) else {
            self.leave_out(path);
            return Ok(());
        };
        if self.original(path).is_some_and(|own| is(&own, &contents, runs)) {
            return Ok(());
        }
        (self.bytes, self.files) = (left, self.files - 1);
        write(&File::create(target)?, &contents)?;
        // At level C linkers may not make a program what it is.
        let runs = runs || self.among.is_some() && is_program(&contents);
        let mode = if runs { 0o755 } else { 0o644 };
        fs::set_permissions(target, Permissions::from_mode(mode))
    }

    /// Where the bot's own file of this path would be.
    fn original(&self, path: &Path) -> Option<PathBuf> {
        match self.among? {
            Source::Directory(own) => Some(own.join(path)),
            Source::File(own) => (own.file_name() == Some(path.as_os_str())).then(|| own.clone()),
        }
    }
}

/// Whether the kernel could execute a file with these contents.
fn is_program(contents: &[u8]) -> bool {
    contents.starts_with(b"\x7FELF") || contents.starts_with(b"#!")
}

/// Whether `path` is a regular file with these contents, which may be executed or not.
fn is(path: &Path, contents: &[u8], runs: bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        let same = found.is_file() && found.len() == contents.len() as u64;
        let executable = found.permissions().mode() & 0o111 != 0;
        same && executable == runs && fs::read(path).is_ok_and(|bytes| bytes == contents)
    })
}

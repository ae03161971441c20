//! A bot's working directory: where its files come from, and the copy that it changes.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use rustix::fs::{Mode, OFlags};

use super::PROGRAM_WRITES;
use super::bot_state::{self, SkippedFiles};
use super::jail_config::Limits;
use super::scratch_dir::ScratchDir;

use crate::fault::{Context as _, Fault};

/// Where a bot's files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BotSource {
    /// A directory, with everything in it.
    Directory(PathBuf),
    /// A single program.
    File(PathBuf),
}

impl BotSource {
    /// The path of the directory or program.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::File(path) => path,
        }
    }

    /// Copies the files into the directory `to`.
    pub(crate) fn copy_into(&self, to: &Path) -> io::Result<()> {
        let _lock = PROGRAM_WRITES.read().unwrap_or_else(PoisonError::into_inner);
        match self {
            Self::Directory(from) => copy_tree(from, to),
            Self::File(from) => {
                let name = from.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
                fs::copy(from, to.join(name)).map(drop)
            }
        }
    }
}

/// Copies a directory's entries: directories, files with their modes, and links as links. Other
/// entries (sockets, devices, FIFOs) are not part of a program and are left out.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let source = entry.path();
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy_tree(&source, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

/// A bot's files, and where the files that it writes are saved.
#[derive(Debug)]
pub struct Workdir {
    pub(super) source: BotSource,
    /// The directory in which the bot's changes are saved for later matches; none if they are not
    /// saved.
    pub(super) state_dir: Option<PathBuf>,
    /// The copy that a bot without namespaces works in.
    copy: Option<ScratchDir>,
}

impl Workdir {
    /// The unchanged files of `source`, for one match.
    pub fn new(source: &BotSource) -> Result<Self, Fault> {
        fs::metadata(source.path()).fault("cannot find a bot's files")?;
        Ok(Self { source: source.clone(), state_dir: None, copy: None })
    }

    /// The files of `source` with the bot's changes from earlier matches, which are saved in the
    /// directory `path`.
    pub fn with_state(source: &BotSource, path: PathBuf) -> Result<Self, Fault> {
        fs::metadata(source.path()).fault("cannot find a bot's files")?;
        fs::create_dir_all(&path).fault("cannot create a directory for a bot")?;
        Ok(Self { source: source.clone(), state_dir: Some(path), copy: None })
    }

    /// Copies the files into a new directory, for a bot without namespaces.
    pub(super) fn create_copy(&mut self, limits: &Limits) -> Result<PathBuf, Fault> {
        let directory = ScratchDir::new().fault("cannot create a directory for a bot")?;
        let path = self.copy.insert(directory).path().to_owned();
        self.source.copy_into(&path).fault("cannot copy a bot's files")?;
        if let Some(state_dir) = &self.state_dir {
            let _lock = PROGRAM_WRITES.read().unwrap_or_else(PoisonError::into_inner);
            bot_state::restore(state_dir, &open(&path)?, None, limits)?;
        }
        Ok(path)
    }

    /// Saves the bot's changes to the copy, if the bot has a state directory. Returns the skipped
    /// files.
    pub(super) fn save_state(&self, limits: &Limits) -> Result<SkippedFiles, Fault> {
        match (&self.state_dir, &self.copy) {
            (Some(state_dir), Some(copy)) => {
                bot_state::capture(&open(copy.path())?, state_dir, limits, Some(&self.source))
            }
            _ => Ok(SkippedFiles::default()),
        }
    }

    /// Removes the copy. The caller may repeat the call after an error.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        self.copy.as_mut().map_or(Ok(()), ScratchDir::remove)?;
        self.copy = None;
        Ok(())
    }
}

/// Opens a bot's directory as a path descriptor.
fn open(path: &Path) -> Result<OwnedFd, Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).fault("cannot open a bot's directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_to_a_bots_files_are_saved_and_restored() {
        let root = tempfile::tempdir().unwrap();
        let originals = root.path().join("originals");
        let state = root.path().join("state");
        fs::create_dir_all(originals.join("data")).unwrap();
        for name in ["program", "data/model", "data/same", "becomes-directory"] {
            fs::write(originals.join(name), "as submitted").unwrap();
        }
        std::os::unix::fs::symlink("program", originals.join("link")).unwrap();
        let source = BotSource::Directory(originals.clone());
        let create_workdir = || {
            let mut workdir = Workdir::with_state(&source, state.clone()).unwrap();
            let work = workdir.create_copy(&Limits::OFFICIAL).unwrap();
            (workdir, work)
        };
        let (mut workdir, work) = create_workdir();
        fs::write(work.join("data/model"), "trained").unwrap();
        fs::write(work.join("new"), "new").unwrap();
        fs::remove_file(work.join("link")).unwrap();
        fs::write(work.join("link"), "no link any more").unwrap();
        fs::remove_file(work.join("becomes-directory")).unwrap();
        fs::create_dir(work.join("becomes-directory")).unwrap();
        fs::remove_file(work.join("program")).unwrap();
        workdir.save_state(&Limits::OFFICIAL).unwrap();
        workdir.remove().unwrap();
        assert!(!work.exists() && !state.join("program").exists());
        assert!(!state.join("data/same").exists(), "unchanged files are not saved");

        let (mut workdir, work) = create_workdir();
        let read = |name: &str| fs::read_to_string(work.join(name)).unwrap();
        assert_eq!((read("data/model"), read("new")), ("trained".to_owned(), "new".to_owned()));
        assert_eq!(read("link"), "no link any more");
        assert_eq!(read("program"), "as submitted", "deleted files come back");
        assert!(work.join("becomes-directory").is_dir());
        assert_eq!(fs::read_to_string(originals.join("data/model")).unwrap(), "as submitted");
        workdir.remove().unwrap();
    }
}

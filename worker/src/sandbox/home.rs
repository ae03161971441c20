//! A bot's files: where they come from, and where it works on them.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use rustix::fs::{Mode, OFlags};

use super::WRITING;
use super::keep::{self, LeftOut};
use super::limits::Limits;
use super::scratch::Scratch;

use crate::fault::{Context as _, Fault};

/// Where a bot's files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A directory, with everything in it.
    Directory(PathBuf),
    /// A single program.
    File(PathBuf),
}

impl Source {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::File(path) => path,
        }
    }

    /// Copies the files into the directory `to`.
    pub(crate) fn copy_into(&self, to: &Path) -> io::Result<()> {
        let _no_fork = WRITING.read().unwrap_or_else(PoisonError::into_inner);
        match self {
            Self::Directory(from) => copy_tree(from, to),
            Self::File(from) => {
                let name = from.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
                fs::copy(from, to.join(name)).map(drop)
            }
        }
    }
}

/// Copies a directory's entries: directories, files with their modes, links as links. Anything
/// else (sockets, devices, FIFOs) is no part of a program and is left out.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
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

/// A bot's files and what becomes of those that it writes.
#[derive(Debug)]
pub struct Home {
    pub(super) source: Source,
    /// Where what it writes is kept for a later match, if it is.
    pub(super) kept: Option<PathBuf>,
    /// The copy that a bot without walls works in.
    fresh: Option<Scratch>,
}

impl Home {
    /// The files of `source`, as they are, for one match.
    pub fn fresh(source: &Source) -> Result<Self, Fault> {
        fs::metadata(source.path()).fault("cannot find a bot's files")?;
        Ok(Self { source: source.clone(), kept: None, fresh: None })
    }

    /// The files of `source` with what the bot wrote in earlier matches, which is kept in the
    /// directory `path` from match to match.
    pub fn kept(source: &Source, path: PathBuf) -> Result<Self, Fault> {
        fs::metadata(source.path()).fault("cannot find a bot's files")?;
        fs::create_dir_all(&path).fault("cannot make a directory for a bot")?;
        Ok(Self { source: source.clone(), kept: Some(path), fresh: None })
    }

    /// Unpacks the files into a directory of their own, for a bot without walls.
    pub(super) fn unpack(&mut self, limits: &Limits) -> Result<PathBuf, Fault> {
        let directory = Scratch::new().fault("cannot make a directory for a bot")?;
        let path = self.fresh.insert(directory).path().to_owned();
        self.source.copy_into(&path).fault("cannot copy a bot's files")?;
        if let Some(kept) = &self.kept {
            let _no_fork = WRITING.read().unwrap_or_else(PoisonError::into_inner);
            keep::bring_back(kept, &open(&path)?, None, limits)?;
        }
        Ok(path)
    }

    /// Takes what the bot wrote out of what was unpacked, if it is kept; what cannot be.
    pub(super) fn keep(&self, limits: &Limits) -> Result<LeftOut, Fault> {
        match (&self.kept, &self.fresh) {
            (Some(kept), Some(fresh)) => {
                keep::take_out(&open(fresh.path())?, kept, limits, Some(&self.source))
            }
            _ => Ok(LeftOut::default()),
        }
    }

    /// Removes what was unpacked for one match. If something of it cannot be removed, that may be
    /// tried again.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        self.fresh.as_mut().map_or(Ok(()), Scratch::remove)?;
        self.fresh = None;
        Ok(())
    }
}

/// A descriptor of a bot's directory.
fn open(path: &Path) -> Result<OwnedFd, Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).fault("cannot open a bot's directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_bot_changes_among_its_own_files_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let (own, kept) = (root.path().join("own"), root.path().join("kept"));
        fs::create_dir_all(own.join("data")).unwrap();
        for name in ["program", "data/model", "data/same", "becomes-directory"] {
            fs::write(own.join(name), "as submitted").unwrap();
        }
        std::os::unix::fs::symlink("program", own.join("link")).unwrap();
        let source = Source::Directory(own.clone());
        let enter = || {
            let mut home = Home::kept(&source, kept.clone()).unwrap();
            let work = home.unpack(&Limits::OFFICIAL).unwrap();
            (home, work)
        };
        let (mut home, work) = enter();
        fs::write(work.join("data/model"), "trained").unwrap();
        fs::write(work.join("new"), "new").unwrap();
        fs::remove_file(work.join("link")).unwrap();
        fs::write(work.join("link"), "no link any more").unwrap();
        fs::remove_file(work.join("becomes-directory")).unwrap();
        fs::create_dir(work.join("becomes-directory")).unwrap();
        fs::remove_file(work.join("program")).unwrap();
        home.keep(&Limits::OFFICIAL).unwrap();
        home.remove().unwrap();
        assert!(!work.exists() && !kept.join("program").exists());
        assert!(!kept.join("data/same").exists(), "it has that already");

        let (mut home, work) = enter();
        let read = |name: &str| fs::read_to_string(work.join(name)).unwrap();
        assert_eq!((read("data/model"), read("new")), ("trained".to_owned(), "new".to_owned()));
        assert_eq!(read("link"), "no link any more");
        assert_eq!(read("program"), "as submitted", "what is deleted comes back");
        assert!(work.join("becomes-directory").is_dir());
        assert_eq!(fs::read_to_string(own.join("data/model")).unwrap(), "as submitted");
        home.remove().unwrap();
    }
}

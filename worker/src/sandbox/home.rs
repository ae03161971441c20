//! The directory a bot works in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use tempfile::TempDir;

use super::WRITING;
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
    /// Copies the files into the empty directory `to`.
    fn copy_into(&self, to: &Path) -> io::Result<()> {
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

/// A bot's own copy of its files, readable and writable, and its working directory.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    /// Removed at the end, unless it is kept for a later match.
    fresh: Option<TempDir>,
}

impl Home {
    /// A new copy of `source`, removed at the end of the match.
    ///
    /// # Errors
    /// A fault if the files cannot be copied.
    pub fn fresh(source: &Source) -> Result<Self, Fault> {
        let directory = tempfile::Builder::new().prefix("arbiter-").tempdir();
        let directory = directory.fault("cannot make a directory for a bot")?;
        source.copy_into(directory.path()).fault("cannot copy a bot's files")?;
        Ok(Self { path: directory.path().to_owned(), fresh: Some(directory) })
    }

    /// A copy of `source` at `path`, made when it is not there yet, kept from match to match.
    ///
    /// # Errors
    /// A fault if the files cannot be copied.
    pub fn kept(source: &Source, path: PathBuf) -> Result<Self, Fault> {
        if !path.exists() {
            fs::create_dir_all(&path).fault("cannot make a directory for a bot")?;
            source.copy_into(&path).fault("cannot copy a bot's files")?;
        }
        Ok(Self { path, fresh: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it if it was made for one match.
    pub(super) fn remove(&mut self) -> Result<(), Fault> {
        match self.fresh.take() {
            Some(directory) => directory.close().fault("cannot remove a bot's directory"),
            None => Ok(()),
        }
    }
}

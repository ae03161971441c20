//! The store of bots' files: one copy for each bot, which its jails mount.
//!
//! Bots can read a copy even if they cannot read the original. It belongs to the user who builds
//! jails. Jails mount it read-only, with a bot's changes in a separate directory.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::scratch_dir::ScratchDir;
use super::tree_removal::remove_tree;
use super::workdir::BotSource;
use crate::fault::{Context as _, Fault};

/// The store of one worker.
#[derive(Debug)]
pub(super) struct ProgramStore {
    directory: ScratchDir,
    /// The owner of the copies, if not this process's user.
    owner: Option<u32>,
    /// The fingerprint and the copy's name of each source.
    copies: Mutex<HashMap<PathBuf, (blake3::Hash, String)>>,
}

impl ProgramStore {
    /// Creates an empty store.
    pub(super) fn new(owner: Option<u32>) -> io::Result<Self> {
        let store = Self { directory: ScratchDir::new()?, owner, copies: Mutex::default() };
        fs::create_dir(store.path())?;
        store.chown(&store.path(), 0o755)?;
        Ok(store)
    }

    /// The directory with the copies. Its parent is accessible to this process's user only.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("programs")
    }

    /// The name of the copy of `source`. Copies it if it is new or has changed.
    pub(super) fn copy(&self, source: &BotSource) -> Result<String, Fault> {
        let fingerprint = fingerprint(source).fault("cannot read a bot's files")?;
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last_fingerprint, name)) = copies.get(source.path())
            && *last_fingerprint == fingerprint
        {
            return Ok(name.clone());
        }
        // Do not remove the old copy: a jail may use it.
        let name = fingerprint.to_hex()[..32].to_owned();
        let path = self.path().join(&name);
        if !path.exists() {
            // Rename the copy only when it is complete. A jail must never mount a partial copy.
            let unfinished = path.with_extension("new");
            let copy = || {
                fs::create_dir(&unfinished)?;
                source.copy_into(&unfinished)?;
                self.chown_tree(&unfinished)?;
                fs::rename(&unfinished, &path)
            };
            let result = copy();
            if result.is_err() {
                // Report the first error, not one of the removal.
                drop(remove_tree(&unfinished));
            }
            result.fault("cannot copy a bot's files")?;
        }
        copies.insert(source.path().to_owned(), (fingerprint, name.clone()));
        Ok(name)
    }

    /// Removes the copies of `source`. No jail may use one any more.
    pub(super) fn remove_copies(&self, source: &BotSource) {
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, name)) = copies.remove(source.path()) {
            // After a failure, the copy is removed with the whole store.
            drop(remove_tree(&self.path().join(name)));
        }
    }

    /// Gives all files below `path` to the owner. Bots may add files to directories, in their own
    /// overlay, but not change existing files.
    fn chown_tree(&self, path: &Path) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let path = entry.path();
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                self.chown_tree(&path)?;
            } else if metadata.is_file() {
                let is_executable = metadata.permissions().mode() & 0o111 != 0;
                self.chown(&path, if is_executable { 0o755 } else { 0o644 })?;
            }
        }
        self.chown(path, 0o777)
    }

    fn chown(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        lchown(path, self.owner, self.owner)
    }
}

/// A fingerprint of the names, sizes, modes and times of all files of a source.
fn fingerprint(source: &BotSource) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(source.path().as_os_str().as_encoded_bytes());
    hash_metadata(source.path(), &mut hasher)?;
    Ok(hasher.finalize())
}

fn hash_metadata(path: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let size = i64::try_from(metadata.size()).unwrap_or(i64::MAX);
    let inode = i64::try_from(metadata.ino()).unwrap_or(i64::MAX);
    for number in [metadata.mode().into(), size, inode, metadata.mtime(), metadata.mtime_nsec()] {
        hasher.update(&number.to_le_bytes());
    }
    if metadata.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_encoded_bytes());
            hash_metadata(&entry.path(), hasher)?;
        }
    }
    Ok(())
}

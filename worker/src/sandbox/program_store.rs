//! Copies of bots' files, one for each bot, from which its jails are furnished.
//!
//! The copy is readable whoever may read the original, belongs to the user who builds jails, and
//! is shown to bots read-only; what a bot changes is a change to its own directory.

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
    /// The user whom copies belong to, if not this process's.
    owner: Option<u32>,
    /// The copy of each source, with what the source looked like.
    copies: Mutex<HashMap<PathBuf, (blake3::Hash, String)>>,
}

impl ProgramStore {
    /// An empty store.
    pub(super) fn new(owner: Option<u32>) -> io::Result<Self> {
        let store = Self { directory: ScratchDir::new()?, owner, copies: Mutex::default() };
        fs::create_dir(store.path())?;
        store.hand_over(&store.path(), 0o755)?;
        Ok(store)
    }

    /// The directory with the copies. The one around it is for this process's user alone.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("programs")
    }

    /// The name of the copy of `source`, made if there is none of what the source is now.
    pub(super) fn copy(&self, source: &BotSource) -> Result<String, Fault> {
        let look = appearance(source).fault("cannot read a bot's files")?;
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, name)) = copies.get(source.path())
            && *known == look
        {
            return Ok(name.clone());
        }
        // An old copy stays: a jail may be using it.
        let name = look.to_hex()[..32].to_owned();
        let path = self.path().join(&name);
        if !path.exists() {
            // It has its name when it is whole: half a copy would be taken for the bot.
            let unfinished = path.with_extension("new");
            let copy = || {
                fs::create_dir(&unfinished)?;
                source.copy_into(&unfinished)?;
                self.hand_over_all(&unfinished)?;
                fs::rename(&unfinished, &path)
            };
            let copied = copy();
            if copied.is_err() {
                // The first failure is the one that matters.
                drop(remove_tree(&unfinished));
            }
            copied.fault("cannot copy a bot's files")?;
        }
        copies.insert(source.path().to_owned(), (look, name.clone()));
        Ok(name)
    }

    /// Removes the copies of `source`; no jail uses one any more.
    pub(super) fn remove_copies(&self, source: &BotSource) {
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, name)) = copies.remove(source.path()) {
            // What cannot be removed now goes with the whole store.
            drop(remove_tree(&self.path().join(name)));
        }
    }

    /// Gives everything below `path` to the owner. Bots may add to directories, in their own
    /// copies, but not change files.
    fn hand_over_all(&self, path: &Path) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let (path, found) = (entry.path(), entry.metadata()?);
            if found.is_dir() {
                self.hand_over_all(&path)?;
            } else if found.is_file() {
                let runs = found.permissions().mode() & 0o111 != 0;
                self.hand_over(&path, if runs { 0o755 } else { 0o644 })?;
            }
        }
        self.hand_over(path, 0o777)
    }

    fn hand_over(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        lchown(path, self.owner, self.owner)
    }
}

/// What tells whether a source was changed: names, sizes, modes and times of all its files.
fn appearance(source: &BotSource) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(source.path().as_os_str().as_encoded_bytes());
    look_at(source.path(), &mut hasher)?;
    Ok(hasher.finalize())
}

fn look_at(path: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    let size = i64::try_from(found.size()).unwrap_or(i64::MAX);
    let inode = i64::try_from(found.ino()).unwrap_or(i64::MAX);
    for number in [found.mode().into(), size, inode, found.mtime(), found.mtime_nsec()] {
        hasher.update(&number.to_le_bytes());
    }
    if found.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_encoded_bytes());
            look_at(&entry.path(), hasher)?;
        }
    }
    Ok(())
}

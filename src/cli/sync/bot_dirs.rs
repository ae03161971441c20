//! Scans the bot folders of a directory and packs the changed ones.
//!
//! An unchanged folder is not packed again. Its fingerprint is computed before and after packing.
//! If the two differ, the folder changed meanwhile (or the bot was being built) and the package may
//! be incomplete, so the next scan packs it again.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::cli::submit::PackedBot;
use crate::failure::Failure;

/// A directory with one folder per bot.
#[derive(Debug)]
pub(super) struct BotDirs {
    directory: PathBuf,
    /// Whether bots are built before they are packed.
    built: bool,
    /// The state of each folder, by name.
    folders: BTreeMap<String, Folder>,
    /// Whether the last scan was applied completely.
    pub(super) settled: bool,
}

/// A scanned folder.
#[derive(Clone, Debug)]
struct Folder {
    /// The fingerprint of its files; none if they changed while it was packed.
    fingerprint: Option<u64>,
    /// The packed bot, or why it cannot be packed.
    packed: Result<Rc<PackedBot>, String>,
}

/// The result of a scan.
#[derive(Debug)]
pub(super) struct Scan {
    /// The bots by name.
    pub(super) bots: BTreeMap<String, Rc<PackedBot>>,
    /// Folders without a usable bot, and why. The reason is empty if it was reported before.
    pub(super) invalid: Vec<(String, String)>,
    /// Whether something changed since the last applied scan.
    pub(super) changed: bool,
}

impl BotDirs {
    /// A directory that is not scanned yet. If `built`, its bots are built here before they are
    /// packed; otherwise their sources are packed.
    pub(super) fn new(directory: &Path, built: bool) -> Self {
        Self { directory: directory.to_owned(), built, folders: BTreeMap::new(), settled: false }
    }

    /// Scans the folders and packs the changed ones.
    pub(super) fn scan(&mut self) -> Result<Scan, Failure> {
        let directory = &self.directory;
        let failed = |error| Failure::usage(format!("{}: {error}", directory.display()));
        let names = names(directory).map_err(failed)?;
        if names.is_empty() {
            return Err(Failure::usage(format!(
                "{}: no bot folders found; nothing is withdrawn",
                directory.display()
            )));
        }
        let mut folders = BTreeMap::new();
        let mut invalid = Vec::new();
        let mut changed = !self.settled;
        for name in names {
            let path = self.directory.join(&name);
            let before = self.folders.remove(&name);
            let current = fingerprint(&path).ok();
            let (folder, is_reported) = match before {
                Some(before) if before.fingerprint.is_some() && before.fingerprint == current => {
                    (before, true)
                }
                before => {
                    changed = true;
                    let folder = pack(&path, current, self.built);
                    let same = before.is_some_and(|before| before.packed.err() == folder.error());
                    (folder, same)
                }
            };
            if let Some(why) = folder.error() {
                invalid.push((name.clone(), if is_reported { String::new() } else { why }));
            }
            folders.insert(name, folder);
        }
        // The remaining folders were removed.
        changed |= !self.folders.is_empty();
        self.folders = folders;
        let bots = self.bots(&mut invalid);
        Ok(Scan { bots, invalid, changed })
    }

    /// The bots by name. If several folders have the same bot name, none of them is sent.
    fn bots(&self, invalid: &mut Vec<(String, String)>) -> BTreeMap<String, Rc<PackedBot>> {
        let mut by_name: BTreeMap<String, Vec<(&String, &Rc<PackedBot>)>> = BTreeMap::new();
        for (name, folder) in &self.folders {
            if let Ok(packed) = &folder.packed {
                by_name.entry(packed.name.to_string()).or_default().push((name, packed));
            }
        }
        let mut bots = BTreeMap::new();
        for (name, packed) in by_name {
            if let [(_, package)] = packed[..] {
                bots.insert(name, Rc::clone(package));
                continue;
            }
            let folders: Vec<_> = packed.iter().map(|(folder, _)| folder.as_str()).collect();
            let why = format!("{} all contain a bot named {name}; rename", folders.join(", "));
            invalid.extend(folders.iter().map(|folder| ((*folder).to_owned(), why.clone())));
        }
        bots
    }
}

impl Folder {
    /// Why it cannot be packed, if it cannot.
    fn error(&self) -> Option<String> {
        self.packed.as_ref().err().cloned()
    }
}

/// Packs the bot in a folder with the fingerprint `before`.
fn pack(path: &Path, before: Option<u64>, built: bool) -> Folder {
    let result = if built { PackedBot::build(path) } else { PackedBot::from_source(path) };
    let packed = result.map(Rc::new).map_err(|failure| failure.message().to_owned());
    let after = fingerprint(path).ok();
    Folder { fingerprint: after.filter(|_| before == after), packed }
}

/// The names of the folders in a directory, without hidden ones.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Follow symbolic links.
        if !name.starts_with('.')
            && fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir())
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// A hash of the metadata of all files in a folder: it changes when a file changes.
fn fingerprint(folder: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let metadata = entry.metadata()?;
            entry.path().hash(&mut hasher);
            let times =
                (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec());
            (metadata.ino(), metadata.len(), metadata.mode(), times).hash(&mut hasher);
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(hasher.finish())
}

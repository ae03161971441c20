//! The folders of a directory, packed when they change.
//!
//! A folder that looks as it did when it was packed is not packed again. How it looks is taken
//! before and after: if that differs, somebody was writing (or the bot was being built), and what
//! was packed may be half of it, so it is packed again at the next look.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::cli::submit::Packed;
use crate::failure::Failure;

/// A directory with one folder a bot.
#[derive(Debug)]
pub(super) struct Folders {
    directory: PathBuf,
    /// Whether bots are built before they are packed.
    built: bool,
    /// What is known of each folder, by its name.
    known: BTreeMap<String, Known>,
    /// Whether everything that was seen has been dealt with.
    pub(super) settled: bool,
}

/// What is known of a folder.
#[derive(Clone, Debug)]
struct Known {
    /// How it looked; none if it changed while it was packed.
    looked: Option<u64>,
    /// What came of packing it.
    packed: Result<Rc<Packed>, String>,
}

/// What there is to see.
#[derive(Debug)]
pub(super) struct Look {
    /// The bots by their names.
    pub(super) bots: BTreeMap<String, Rc<Packed>>,
    /// Folders that hold no bot that could be sent, and why; for those told of before without it.
    pub(super) unfit: Vec<(String, String)>,
    /// Whether something differs from what was dealt with last.
    pub(super) news: bool,
}

impl Folders {
    /// The folders of a directory, none of them seen yet. Their bots are packed as they are, or
    /// `built` here.
    pub(super) fn new(directory: &Path, built: bool) -> Self {
        Self { directory: directory.to_owned(), built, known: BTreeMap::new(), settled: false }
    }

    /// Looks what there is, and packs what has changed.
    pub(super) fn look(&mut self) -> Result<Look, Failure> {
        let directory = &self.directory;
        let failed = |error| Failure::usage(format!("{}: {error}", directory.display()));
        let names = names(directory).map_err(failed)?;
        if names.is_empty() {
            return Err(Failure::usage(format!(
                "{}: there is no folder with a bot in it; nothing is withdrawn",
                directory.display()
            )));
        }
        let mut known = BTreeMap::new();
        let (mut unfit, mut news) = (Vec::new(), !self.settled);
        for name in names {
            let path = self.directory.join(&name);
            let before = self.known.remove(&name);
            let looks = appearance(&path).ok();
            let (now, told) = match before {
                Some(before) if before.looked.is_some() && before.looked == looks => (before, true),
                before => {
                    news = true;
                    let now = pack(&path, looks, self.built);
                    let told = before.is_some_and(|before| before.packed.err() == now.failure());
                    (now, told)
                }
            };
            if let Some(why) = now.failure() {
                unfit.push((name.clone(), if told { String::new() } else { why }));
            }
            known.insert(name, now);
        }
        // Those that are left were here before.
        news |= !self.known.is_empty();
        self.known = known;
        let bots = self.bots(&mut unfit);
        Ok(Look { bots, unfit, news })
    }

    /// The bots by their names; of two with the same name neither is sent.
    fn bots(&self, unfit: &mut Vec<(String, String)>) -> BTreeMap<String, Rc<Packed>> {
        let mut named: BTreeMap<String, Vec<(&String, &Rc<Packed>)>> = BTreeMap::new();
        for (folder, known) in &self.known {
            if let Ok(packed) = &known.packed {
                named.entry(packed.name.to_string()).or_default().push((folder, packed));
            }
        }
        let mut bots = BTreeMap::new();
        for (name, packed) in named {
            if let [(_, only)] = packed[..] {
                bots.insert(name, Rc::clone(only));
                continue;
            }
            let folders: Vec<_> = packed.iter().map(|(folder, _)| folder.as_str()).collect();
            let why = format!("{} all hold a bot called {name}; rename", folders.join(", "));
            unfit.extend(folders.iter().map(|folder| ((*folder).to_owned(), why.clone())));
        }
        bots
    }
}

impl Known {
    /// Why it holds no bot, if it does not.
    fn failure(&self) -> Option<String> {
        self.packed.as_ref().err().cloned()
    }
}

/// Packs the bot in a folder that looks so.
fn pack(path: &Path, before: Option<u64>, built: bool) -> Known {
    let packed = if built { Packed::new(path) } else { Packed::source(path) };
    let packed = packed.map(Rc::new).map_err(|failure| failure.message().to_owned());
    let after = appearance(path).ok();
    Known { looked: after.filter(|_| before == after), packed }
}

/// The names of the folders in a directory, hidden ones left out.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Also one that a link leads to.
        if !name.starts_with('.') && fs::metadata(entry.path()).is_ok_and(|found| found.is_dir()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// How a folder looks: everything of each file in it that changes when the file does.
fn appearance(folder: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let found = entry.metadata()?;
            entry.path().hash(&mut hasher);
            let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
            (found.ino(), found.len(), found.mode(), times).hash(&mut hasher);
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(hasher.finish())
}

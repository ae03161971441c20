//! Reads files of a packed package in memory, without unpacking it.
//!
//! A packed package is a tar archive compressed with Zstandard, as `arbiter game pack` writes it.
//! It is untrusted. Reading it takes at most 18 MiB of memory whatever it contains: 8 MiB to
//! decompress it, 8 MiB for bots, and its texts. Its time is limited with its unpacked size and the
//! number of its entries. Nothing of it runs, and no file is written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Entry, EntryType};
use thiserror::Error;

use crate::files_digest::FilesDigest;
use crate::game_toml::GAME_TOML;

/// The text for authors of bots.
pub const BOT_MD: &str = "BOT.md";

/// Maximum size of a descriptor, in bytes.
pub const MAX_DESCRIPTOR: u64 = 64 << 10;

/// Maximum size of the text for authors of bots, in bytes.
pub const MAX_BOT_MD: u64 = 64 << 10;

/// The folder of house bots.
pub const BOTS: &str = "bots";

/// Names that are not packed, in any directory: files of version control and of interpreters.
pub const IGNORED_NAMES: [&str; 6] = [".git", ".hg", ".jj", ".svn", "__pycache__", ".DS_Store"];

/// Names of the directories of builds, which a package does not include either.
pub const BUILD_NAMES: [&str; 2] = ["node_modules", "target"];

/// The folders at the top of a package that do not decide a match.
const BESIDE_RULES: [&str; 2] = [BOTS, "tests"];

/// Maximum size of the archive when it is decompressed, in bytes: that of bundles.
const MAX_UNPACKED: u64 = 256 << 20;

/// Maximum number of files, folders and links of the archive: that of bundles.
const MAX_ENTRIES: usize = 10_000;

/// Binary logarithm of the largest decompression window, in bytes. Packed packages need half of it.
const MAX_WINDOW_LOG: u32 = 23;

/// Maximum length of a path or of the target of a link, in bytes.
const MAX_PATH_LEN: u64 = 1024;

/// Maximum number of house bots that are read, maximum number of files of one, and the maximum size
/// of its paths and contents, in bytes. Larger bots are not offered.
const MAX_BOTS: usize = 32;
const MAX_BOT_FILES: usize = 64;
const MAX_BOT_SIZE: u64 = 256 << 10;

/// A file of a bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BotFile {
    /// The path in the bot's folder. It stays inside.
    pub path: String,
    /// The contents.
    pub contents: Vec<u8>,
    /// Whether it can be executed.
    pub is_executable: bool,
}

impl BotFile {
    /// A text file that cannot be executed.
    pub fn text(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), contents: text.into(), is_executable: false }
    }
}

/// Why an archive is no packed package.
#[derive(Debug, Error)]
pub enum PackageFilesError {
    /// It cannot be read.
    #[error("not a packed game package: {0}; make it with arbiter game pack")]
    Unreadable(#[from] io::Error),
    /// Its contents are not those of a packed package.
    #[error("not a packed game package: {0}; make it with arbiter game pack")]
    Invalid(String),
}

/// Files of a packed package.
#[derive(Debug, PartialEq, Eq)]
pub struct PackageFiles {
    /// The text of the descriptor.
    pub descriptor: String,
    /// The digest of the files that decide a match.
    pub digest: String,
    /// The text for authors of bots, if there is one: its first [`MAX_BOT_MD`] bytes. Bytes that
    /// are not UTF-8 are replaced.
    pub bot_md: Option<String>,
    /// The files of the house bots that are small enough for starter kits, bot by bot.
    pub bots: Vec<Vec<BotFile>>,
}

impl PackageFiles {
    /// Reads a packed package.
    ///
    /// # Errors
    /// If it is not one, or has no descriptor.
    pub fn read(packed: impl Read) -> Result<Self, PackageFilesError> {
        let mut decoder = zstd::Decoder::new(packed)?;
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        let mut archive = Archive::new(decoder.take(MAX_UNPACKED));
        let mut reader = PackageReader::default();
        // The library would read long names without a limit.
        for entry in archive.entries()?.raw(true) {
            reader.add(&mut entry?)?;
        }
        reader.finish()
    }
}

/// Whether a file of a package, named from its top, does not decide a match.
pub fn is_beside_rules(path: &Path) -> bool {
    let top = path.components().next();
    let is_beside = |name: &str| top == Some(Component::Normal(name.as_ref()));
    let is_text = path.components().count() == 1 && path.extension().is_some_and(|end| end == "md");
    BESIDE_RULES.into_iter().any(is_beside) || is_text
}

/// The name of the file of a packed package, from the name of the game and the version of its
/// rules.
pub fn packed_file(name: &str, version: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let version: String = version.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    format!("{name}-{version}.tar.zst")
}

/// A house bot that is being read.
#[derive(Debug, Default)]
struct HouseBot {
    files: Vec<BotFile>,
    /// The size of its paths and contents, in bytes.
    size: u64,
}

impl HouseBot {
    /// Reserves a file with a path and contents of this size in bytes. Returns whether it fits.
    fn reserve(&mut self, size: u64) -> bool {
        self.size = self.size.saturating_add(size);
        self.files.len() < MAX_BOT_FILES && self.size <= MAX_BOT_SIZE
    }
}

/// A package that is being read.
#[derive(Debug, Default)]
struct PackageReader {
    /// The number of files, folders and links so far.
    entries: usize,
    /// The path of the next entry, if it is long.
    long_path: Option<Vec<u8>>,
    /// The target of the next link, if it is long.
    long_target: Option<Vec<u8>>,
    /// The last file that decides a match.
    last: PathBuf,
    digest: FilesDigest,
    descriptor: Option<String>,
    bot_md: Option<String>,
    /// House bots by name; `None` for those that are too large or contain links.
    bots: BTreeMap<String, Option<HouseBot>>,
}

impl PackageReader {
    fn add(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), PackageFilesError> {
        match entry.header().entry_type() {
            EntryType::GNULongName => self.long_path = Some(read_name(entry)?),
            EntryType::GNULongLink => self.long_target = Some(read_name(entry)?),
            EntryType::Directory => {
                self.long_path = None;
                self.count()?;
            }
            EntryType::Regular => {
                let path = self.path(entry)?;
                self.add_file(&path, entry)?;
            }
            EntryType::Symlink => {
                let path = self.path(entry)?;
                let short_target = || entry.link_name_bytes().map(Cow::into_owned);
                let target = self.long_target.take().or_else(short_target).unwrap_or_default();
                self.add_link(&path, &target)?;
            }
            _ => return Err(invalid("it contains more than files, folders and links")),
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), PackageFilesError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            let error = format!("it contains more than {MAX_ENTRIES} files, folders and links");
            return Err(invalid(error));
        }
        Ok(())
    }

    /// The path of a file or link, which the digest contains as it is. So it has one form only, and
    /// no name that workers leave out.
    fn path(&mut self, entry: &Entry<'_, impl Read>) -> Result<String, PackageFilesError> {
        self.count()?;
        let path = self.long_path.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = String::from_utf8(path).ok().filter(|path| is_plain(path));
        let path = path.ok_or_else(|| {
            invalid("it contains a path that leads outside, is not UTF-8 or has needless parts")
        })?;
        if path.split('/').any(is_ignored) {
            return Err(invalid(format!("it contains {path}, which is not packed")));
        }
        Ok(path)
    }

    fn add_file(
        &mut self,
        path: &str,
        entry: &mut Entry<'_, impl Read>,
    ) -> Result<(), PackageFilesError> {
        let size = entry.size();
        let is_executable = entry.header().mode()? & 0o111 != 0;
        if self.decides_match(path)? {
            let mut descriptor = Vec::new();
            if path == GAME_TOML {
                entry.by_ref().take(MAX_DESCRIPTOR + 1).read_to_end(&mut descriptor)?;
                if descriptor.len() as u64 > MAX_DESCRIPTOR {
                    return Err(invalid(format!("{GAME_TOML} is larger than 64 KiB")));
                }
                let text = str::from_utf8(&descriptor);
                let text = text.map_err(|_| invalid(format!("{GAME_TOML} is not UTF-8")))?;
                self.descriptor = Some(text.to_owned());
            }
            let contents = descriptor.as_slice().chain(entry);
            return Ok(self.digest.add_file(path.as_bytes(), size, is_executable, contents)?);
        }
        if path == BOT_MD {
            let mut text = Vec::new();
            entry.by_ref().take(MAX_BOT_MD).read_to_end(&mut text)?;
            self.bot_md = Some(String::from_utf8_lossy(&text).into_owned());
        } else if let Some((bot, path)) = bot_path(path)
            && let Some(slot) = self.bot(bot)
            && let Some(bot) = slot
        {
            if bot.reserve(size.saturating_add(path.len() as u64)) {
                let mut contents = Vec::new();
                entry.read_to_end(&mut contents)?;
                contents.shrink_to_fit();
                bot.files.push(BotFile { path: path.to_owned(), contents, is_executable });
            } else {
                *slot = None;
            }
        }
        Ok(())
    }

    fn add_link(&mut self, path: &str, target: &[u8]) -> Result<(), PackageFilesError> {
        if !stays_within(Path::new(path), Path::new(OsStr::from_bytes(target))) {
            return Err(invalid(format!("its link {path} leads outside")));
        }
        if self.decides_match(path)? {
            self.digest.add_link(path.as_bytes(), target);
        } else if let Some((bot, _)) = bot_path(path)
            && let Some(bot) = self.bot(bot)
        {
            *bot = None;
        }
        Ok(())
    }

    /// Whether a file decides a match. Such files come in the order of the digest.
    fn decides_match(&mut self, path: &str) -> Result<bool, PackageFilesError> {
        if is_beside_rules(Path::new(path)) {
            return Ok(false);
        }
        let previous = std::mem::replace(&mut self.last, PathBuf::from(path));
        if self.last <= previous {
            return Err(invalid(format!("its file {path} is not in order")));
        }
        Ok(true)
    }

    /// The house bot of this name, unless there are too many.
    fn bot(&mut self, name: &str) -> Option<&mut Option<HouseBot>> {
        if self.bots.len() == MAX_BOTS && !self.bots.contains_key(name) {
            return None;
        }
        Some(self.bots.entry(name.to_owned()).or_insert_with(|| Some(HouseBot::default())))
    }

    fn finish(self) -> Result<PackageFiles, PackageFilesError> {
        Ok(PackageFiles {
            descriptor: self.descriptor.ok_or_else(|| invalid(format!("it has no {GAME_TOML}")))?,
            digest: self.digest.finish(),
            bot_md: self.bot_md,
            bots: self.bots.into_values().flatten().map(|bot| bot.files).collect(),
        })
    }
}

/// Whether a path consists of plain names, and has no needless parts such as `//`.
fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    path.split('/').all(is_name)
}

fn is_ignored(name: &str) -> bool {
    IGNORED_NAMES.contains(&name) || BUILD_NAMES.contains(&name)
}

/// Whether the text of a link at `path` to `target` stays below the top directory. Other links on
/// its path may still lead outside.
pub fn stays_within(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    target.as_os_str().len() as u64 <= MAX_PATH_LEN
}

/// The name of a house bot and the path in its folder, from a path in the package.
fn bot_path(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(BOTS)?.strip_prefix('/')?.split_once('/')
}

/// Reads the long path or target of the next entry.
fn read_name(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, PackageFilesError> {
    let mut name = Vec::new();
    entry.by_ref().take(MAX_PATH_LEN + 2).read_to_end(&mut name)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    if name.len() as u64 > MAX_PATH_LEN {
        return Err(invalid("it contains a path of more than 1024 bytes"));
    }
    Ok(name)
}

fn invalid(cause: impl Into<String>) -> PackageFilesError {
    PackageFilesError::Invalid(cause.into())
}

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::*;

    /// A packed package with these entries: kind, path, and contents or target.
    fn packed(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (kind, path, contents) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            header.set_size(0);
            // Paths that lead outside are refused by the library.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            if *kind == EntryType::Symlink {
                header.set_link_name(str::from_utf8(contents).unwrap()).unwrap();
                header.set_cksum();
                archive.append(&header, io::empty()).unwrap();
            } else {
                header.set_size(contents.len() as u64);
                header.set_cksum();
                archive.append(&header, *contents).unwrap();
            }
        }
        zstd::encode_all(archive.into_inner().unwrap().as_slice(), 1).unwrap()
    }

    const FILE: EntryType = EntryType::Regular;
    const LINK: EntryType = EntryType::Symlink;
    const GAME: (EntryType, &str, &[u8]) = (FILE, GAME_TOML, b"name = \"x\"");

    fn read(entries: &[(EntryType, &str, &[u8])]) -> Result<PackageFiles, String> {
        PackageFiles::read(packed(entries).as_slice()).map_err(|error| error.to_string())
    }

    #[test]
    fn texts_and_bots_are_read_and_do_not_change_the_digest() {
        let large = vec![b'x'; 300 << 10];
        let rules = (FILE, "rules.py", &b"rules"[..]);
        let bot_md = (FILE, BOT_MD, large.as_slice());
        let bot = (FILE, "bots/a/bot.py", &b"bot"[..]);
        let linked = (LINK, "bots/b/bot.py", &b"../a/bot.py"[..]);
        let heavy = (FILE, "bots/c/bot.py", large.as_slice());
        let files = read(&[bot_md, bot, linked, heavy, GAME, rules]).unwrap();
        assert_eq!(files.descriptor, "name = \"x\"");
        assert_eq!(files.bot_md.unwrap().len() as u64, MAX_BOT_MD);
        assert_eq!(files.bots, [[BotFile::text("bot.py", "bot")]]);
        assert_eq!(files.digest, read(&[GAME, rules]).unwrap().digest);
        let other = (FILE, "rules.py", &b"other"[..]);
        assert_ne!(files.digest, read(&[GAME, other]).unwrap().digest);
    }

    #[test]
    fn many_files_and_long_paths_are_limited_like_contents() {
        let bot = |count: usize, padding: usize| -> Vec<String> {
            let padding = "x".repeat(padding);
            (0..count).map(|index| format!("bots/a/{padding}{index:05}")).collect()
        };
        let read_bot = |paths: &[String], last: &[u8]| {
            let mut entries: Vec<_> =
                paths.iter().map(|path| (FILE, path.as_str(), &[][..])).collect();
            entries.extend([(FILE, "bots/a/last", last), GAME]);
            read(&entries)
        };
        let bots = |paths: &[String], last: &[u8]| read_bot(paths, last).unwrap().bots.len();
        assert_eq!(bots(&bot(MAX_BOT_FILES - 1, 0), b""), 1);
        assert_eq!(bots(&bot(MAX_BOT_FILES, 0), b""), 0, "a bot of many empty files");
        let padded = bot(MAX_BOT_FILES - 1, 80);
        let rest = vec![0; (256 << 10) - (MAX_BOT_FILES - 1) * 85 - "last".len()];
        assert_eq!(bots(&padded, &rest), 1);
        assert_eq!(bots(&padded, &[&rest[..], b"x"].concat()), 0, "paths count");
        assert_eq!(bots(&bot(MAX_ENTRIES - 2, 0), b""), 0);
        let error = read_bot(&bot(MAX_ENTRIES - 1, 0), b"").unwrap_err();
        assert!(error.contains("more than 10000 files"), "{error}");
    }

    #[test]
    fn other_archives_are_refused() {
        let outside = (FILE, "bots/a/../../../x", &b""[..]);
        let absolute = (FILE, "/x", &b""[..]);
        let early = (FILE, "a", &b""[..]);
        let device = (EntryType::Char, "z", &b""[..]);
        let doubled = (FILE, "lib//rules.py", &b""[..]);
        let cached = (FILE, "lib/__pycache__/rules.pyc", &b""[..]);
        let built = (FILE, "target", &b""[..]);
        let versioned = (LINK, "tests/.git", &b"x"[..]);
        let link_outside = (LINK, "lib/rules.py", &b"../../rules.py"[..]);
        let link_absolute = (LINK, "bots/a/bot.py", &b"/etc/passwd"[..]);
        let large = vec![b' '; 65 << 10];
        for (entries, cause) in [
            (&[GAME, outside][..], "leads outside"),
            (&[GAME, absolute], "leads outside"),
            (&[GAME, early], "not in order"),
            (&[GAME, GAME], "not in order"),
            (&[GAME, device], "more than files"),
            (&[GAME, doubled], "needless parts"),
            (&[GAME, cached], "not packed"),
            (&[GAME, built], "not packed"),
            (&[GAME, versioned], "not packed"),
            (&[GAME, link_outside], "leads outside"),
            (&[GAME, link_absolute], "leads outside"),
            (&[(FILE, GAME_TOML, large.as_slice())], "larger than 64 KiB"),
            (&[(FILE, GAME_TOML, b"\xff")], "not UTF-8"),
            (&[early], "it has no game.toml"),
        ] {
            let error = read(entries).unwrap_err();
            assert!(error.contains(cause) && error.contains("arbiter game pack"), "{error}");
        }
        assert!(PackageFiles::read(&b"no archive"[..]).is_err());
        let whole = packed(&[GAME]);
        assert!(PackageFiles::read(&whole[..whole.len() / 2]).is_err());
    }
}

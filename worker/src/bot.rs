//! Bots on disk: what is run, how it is spoken to, and the digest that identifies it.
//!
//! A bot is a directory with a `bot.toml`, a directory with a KotH `meta` file, or an executable
//! file.

pub(crate) mod manifest;

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

pub use arbiter_games::Protocol;
use arbiter_games::{BotName, Game};
use thiserror::Error;

use crate::bounded_read::open_regular;
use crate::sandbox::{BotSource, search_path};

pub(crate) use manifest::BOT_TOML;

/// A bot as submitted.
#[derive(Clone, Debug)]
pub struct Bot {
    /// Its name.
    pub name: BotName,
    /// Its files.
    pub source: BotSource,
    /// The program and its arguments; never empty.
    pub run: Vec<String>,
    /// How it is spoken to, if the manifest says.
    pub protocol: Option<Protocol>,
    /// Whether its standard error is kept with records.
    pub stderr: bool,
    /// What identifies it: the digest of its files.
    pub digest: String,
}

/// Who takes a seat: a bot, one that was submitted and cannot play, or a person.
#[derive(Clone, Debug)]
pub enum Contestant {
    /// A bot.
    Bot(Arc<Bot>),
    /// None: it forfeits what it is asked.
    Unplayable {
        /// What identifies it.
        digest: String,
        /// Why it cannot play, for its author.
        reason: String,
    },
    /// A person, who is seated by the [company](crate::match_runner::MatchHooks) of a match.
    Person,
}

/// What stands in records where a bot has a digest.
const PERSON: &str = "person";

impl Contestant {
    /// What identifies it.
    pub fn digest(&self) -> &str {
        match self {
            Self::Bot(bot) => &bot.digest,
            Self::Unplayable { digest, .. } => digest,
            Self::Person => PERSON,
        }
    }

    /// How it is spoken to in `game`; one that speaks otherwise, and so not at all, by default.
    pub fn protocol(&self, game: &Game) -> Protocol {
        let named = match self {
            Self::Bot(bot) => bot.protocol,
            Self::Unplayable { .. } | Self::Person => None,
        };
        let spoken = named.filter(|protocol| game.speaks(*protocol));
        spoken.unwrap_or(game.bots.protocol)
    }

    /// The same by the digest of what was submitted, where what is run was built from that.
    #[must_use]
    pub(crate) fn with_digest(&self, digest: blake3::Hash) -> Self {
        let digest = digest.to_string();
        match self {
            Self::Bot(bot) if bot.digest == digest => self.clone(),
            Self::Bot(bot) => Arc::new(Bot { digest, ..Bot::clone(bot) }).into(),
            Self::Unplayable { reason, .. } => Self::Unplayable { digest, reason: reason.clone() },
            Self::Person => Self::Person,
        }
    }

    /// Whether its standard error is kept with records.
    pub fn shows_stderr(&self) -> bool {
        matches!(self, Self::Bot(bot) if bot.stderr)
    }
}

impl From<Arc<Bot>> for Contestant {
    fn from(bot: Arc<Bot>) -> Self {
        Self::Bot(bot)
    }
}

/// Why a path is no bot: one line that names the thing, the cause and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {cause}", path = .path.display())]
pub struct BotError {
    path: PathBuf,
    cause: String,
}

impl BotError {
    fn new(path: &Path, cause: impl Into<String>) -> Self {
        Self { path: path.to_owned(), cause: cause.into() }
    }

    /// The same for somebody who knows the bot's files but not where they are on this machine.
    pub(crate) fn within(&self, directory: &Path) -> String {
        match self.path.strip_prefix(directory) {
            Ok(path) if !path.as_os_str().is_empty() => {
                format!("{}: {}", path.display(), self.cause)
            }
            _ => self.cause.clone(),
        }
    }
}

impl Bot {
    /// Reads the bot at `path`, building it first if its manifest says how and its program is
    /// missing or older than its sources.
    pub fn load(path: &Path) -> Result<Self, BotError> {
        let found = fs::metadata(path).map_err(|error| BotError::new(path, error.to_string()))?;
        if !found.is_dir() {
            return Self::load_file(path, &found);
        }
        let path = absolute(path)?;
        let manifest = manifest::read(&path)?;
        if let Some(build) = &manifest.build {
            build_if_stale(&path, &manifest.run[0], build)?;
        }
        check_program(&path, &manifest.run[0])?;
        check_links(&path)?;
        let digest = digest(&path).map_err(|error| BotError::new(&path, error.to_string()))?;
        let manifest::Manifest { name, run, protocol, stderr, build: _ } = manifest;
        Ok(Self { name, source: BotSource::Directory(path), run, protocol, stderr, digest })
    }

    /// Reads the bot that was unpacked into the directory `path` from the bundle with this digest,
    /// and built there if its manifest says how.
    pub fn unpacked(path: &Path, digest: blake3::Hash) -> Result<Self, BotError> {
        let path = absolute(path)?;
        let manifest::Manifest { name, run, protocol, stderr, build: _ } = manifest::read(&path)?;
        check_program(&path, &run[0])?;
        let (source, digest) = (BotSource::Directory(path), digest.to_string());
        Ok(Self { name, source, run, protocol, stderr, digest })
    }

    /// How the bot in the directory `path` is built, if it is.
    pub(crate) fn build_of(path: &Path) -> Result<Option<Vec<String>>, BotError> {
        Ok(manifest::read(path)?.build)
    }

    /// What [`Bot::load`] would have to run first to build the bot at `path`, for people; nothing
    /// if it is built, or there is no bot to build.
    pub fn build_due(path: &Path) -> Option<String> {
        let manifest = manifest::read(path).ok()?;
        let build = manifest.build?;
        is_stale(path, &manifest.run[0]).then(|| build.join(" "))
    }

    fn load_file(path: &Path, found: &fs::Metadata) -> Result<Self, BotError> {
        if !found.is_file() {
            return Err(BotError::new(path, "neither a directory nor a file"));
        }
        if found.permissions().mode() & 0o111 == 0 {
            let cause = format!("not executable; chmod +x {}", path.display());
            return Err(BotError::new(path, cause));
        }
        let path = absolute(path)?;
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let name = stem.parse().map_err(|error| BotError::new(&path, format!("{error}")))?;
        let run = vec![format!("./{file}")];
        let mut hasher = blake3::Hasher::new();
        let hashed = open_regular(&path).and_then(|file| io::copy(&mut &file, &mut hasher));
        hashed.map_err(|error| BotError::new(&path, error.to_string()))?;
        let digest = hasher.finalize().to_string();
        let source = BotSource::File(path);
        Ok(Self { name, source, run, protocol: None, stderr: false, digest })
    }
}

impl Bot {
    /// The same bot from a copy of its files in the empty directory `to`, so that all matches of a
    /// run play the files of which this is the digest.
    pub fn snapshot(mut self, to: &Path) -> Result<Self, BotError> {
        let failed = |error: io::Error| BotError::new(to, error.to_string());
        fs::create_dir(to).and_then(|()| self.source.copy_into(to)).map_err(failed)?;
        self.source = match &self.source {
            BotSource::Directory(_) => BotSource::Directory(to.to_owned()),
            BotSource::File(path) => BotSource::File(to.join(path.file_name().unwrap_or_default())),
        };
        Ok(self)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, BotError> {
    fs::canonicalize(path).map_err(|error| BotError::new(path, error.to_string()))
}

/// Checks that a program can be found and executed.
fn check_program(directory: &Path, program: &str) -> Result<(), BotError> {
    let executable = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some(found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let outside = Path::new(program).components().any(|part| part == Component::ParentDir);
    if outside {
        let cause = format!("its program {program} lies outside; a bot has its own directory only");
        return Err(BotError::new(directory, cause));
    }
    if program.contains('/') {
        let path = directory.join(program);
        return match executable(&path) {
            Some(true) => Ok(()),
            Some(false) => {
                let cause = format!("its program is not executable; chmod +x {program}");
                Err(BotError::new(directory, cause))
            }
            None => {
                let cause = format!("its program {program} is missing; build it, or correct `run`");
                Err(BotError::new(directory, cause))
            }
        };
    }
    if std::env::split_paths(&search_path())
        .any(|folder| executable(&folder.join(program)) == Some(true))
    {
        return Ok(());
    }
    let cause = format!(
        "its program `{program}` is not on the PATH; install it, or write ./{program} if it is \
         the bot's own"
    );
    Err(BotError::new(directory, cause))
}

/// Builds a bot whose program is missing or out of date. One process builds at a time: the others
/// wait, and then find it built.
fn build_if_stale(directory: &Path, program: &str, build: &[String]) -> Result<(), BotError> {
    let failed = |error: io::Error| BotError::new(directory, format!("cannot be locked: {error}"));
    let lock = fs::File::open(directory).map_err(failed)?;
    lock.lock().map_err(failed)?;
    if is_stale(directory, program) { run_build(directory, build) } else { Ok(()) }
}

/// Checks that no link leads out of the bot's directory: what it points to is not submitted.
fn check_links(directory: &Path) -> Result<(), BotError> {
    let failed = |error: io::Error| BotError::new(directory, error.to_string());
    let mut files = Vec::new();
    list(directory, &mut files).map_err(failed)?;
    for link in files.iter().filter(|file| file.is_symlink()) {
        if !fs::canonicalize(link).is_ok_and(|target| target.starts_with(directory)) {
            let cause = "a link that leads nowhere in the bot's directory; put the file there";
            return Err(BotError::new(link, cause));
        }
    }
    Ok(())
}

/// Whether the program is missing or older than a file beside it.
fn is_stale(directory: &Path, program: &str) -> bool {
    let Ok(built) = fs::metadata(directory.join(program)).and_then(|found| found.modified()) else {
        return true;
    };
    newest(directory).is_ok_and(|newest| newest > built)
}

/// The latest time any file in `directory` was changed.
fn newest(directory: &Path) -> io::Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = entry.metadata()?;
        let changed =
            if found.is_dir() { self::newest(&entry.path())? } else { found.modified()? };
        newest = newest.max(changed);
    }
    Ok(newest)
}

/// How much of a failed build's output is shown, in lines from its end.
const BUILD_LINES: usize = 12;

/// Runs a manifest's `build` in the bot's directory.
#[expect(
    clippy::disallowed_methods,
    reason = "the organiser of a local match builds a bot of his own, with his own tools"
)]
fn run_build(directory: &Path, build: &[String]) -> Result<(), BotError> {
    let shown = build.join(" ");
    let output = Command::new(&build[0])
        .args(&build[1..])
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| BotError::new(directory, format!("cannot build: {shown}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    let lines: Vec<_> = words.lines().collect();
    let end = lines[lines.len().saturating_sub(BUILD_LINES)..].join("\n");
    Err(BotError::new(directory, format!("cannot build: {shown}: {}\n{end}", output.status)))
}

/// The digest of a directory: BLAKE3 over its files in the order of their paths, each as the
/// path and the contents with their lengths in front (eight bytes, little endian), and whether
/// it may be executed (one byte).
fn digest(directory: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    list(directory, &mut files)?;
    files.sort();
    let mut hasher = blake3::Hasher::new();
    let part = |hasher: &mut blake3::Hasher, bytes: &[u8]| {
        hasher.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(bytes);
    };
    for path in files {
        let name = path.strip_prefix(directory).unwrap_or(&path);
        part(&mut hasher, name.as_os_str().as_encoded_bytes());
        let executable = if path.is_symlink() {
            part(&mut hasher, fs::read_link(&path)?.as_os_str().as_encoded_bytes());
            2
        } else {
            let file = open_regular(&path)?;
            let found = file.metadata()?;
            hasher.update(&found.len().to_le_bytes());
            io::copy(&mut file.take(found.len()), &mut hasher)?;
            u8::from(found.permissions().mode() & 0o111 != 0)
        };
        part(&mut hasher, &[executable]);
    }
    Ok(hasher.finalize().to_string())
}

/// Every file below `directory`.
fn list(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(&entry.path(), files)?;
        } else if kind.is_file() || kind.is_symlink() {
            files.push(entry.path());
        }
    }
    Ok(())
}

//! Loads bots from disk: command, protocol and digest.
//!
//! A bot is a directory with a `bot.toml`, a directory with a KotH `meta` file, an executable file,
//! or a source file of a known language.

pub(crate) mod manifest;
pub(crate) mod source_file;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

pub use arbiter_games::Protocol;
use arbiter_games::{BotName, Game};
use arbiter_packages::{FilesDigest, SourceFile};
use thiserror::Error;

use crate::bounded_read::open_regular;
use crate::sandbox::{BotSource, is_system_path, search_path};

pub(crate) use manifest::BOT_TOML;
use source_file::{FileKind, SourceDir};

/// A bot that can be run.
#[derive(Clone, Debug)]
pub struct Bot {
    /// The bot's name.
    pub name: BotName,
    /// The bot's files.
    pub source: BotSource,
    /// The program and its arguments; never empty.
    pub run: Vec<String>,
    /// The protocol, if the manifest names one.
    pub protocol: Option<Protocol>,
    /// Whether records include its standard error.
    pub stderr: bool,
    /// The digest of the files, which identifies the bot.
    pub digest: String,
    /// The files of a bot that was one source file, which last as long as the bot.
    _source_dir: Option<Arc<SourceDir>>,
}

/// The occupant of a seat.
#[derive(Clone, Debug)]
pub enum Contestant {
    /// A bot.
    Bot(Arc<Bot>),
    /// A submission that cannot play. It forfeits every request.
    Unplayable {
        /// The digest that identifies it.
        digest: String,
        /// Why it cannot play, for its author.
        reason: String,
    },
    /// A person. [`MatchHooks`](crate::match_runner::MatchHooks) provides the driver.
    Person,
}

/// The text in records in place of a person's digest.
const PERSON: &str = "person";

impl Contestant {
    /// The digest that identifies it.
    pub fn digest(&self) -> &str {
        match self {
            Self::Bot(bot) => &bot.digest,
            Self::Unplayable { digest, .. } => digest,
            Self::Person => PERSON,
        }
    }

    /// The contestant's protocol in `game`. It is the game's default if the manifest names none, or
    /// one that the game lacks.
    pub fn protocol(&self, game: &Game) -> Protocol {
        let protocol = match self {
            Self::Bot(bot) => bot.protocol,
            Self::Unplayable { .. } | Self::Person => None,
        };
        let supported = protocol.filter(|protocol| game.supports(*protocol));
        supported.unwrap_or(game.bots.protocol)
    }

    /// The same with the digest of the submission, if the program was built from it.
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

    /// Whether records include its standard error.
    pub fn shows_stderr(&self) -> bool {
        matches!(self, Self::Bot(bot) if bot.stderr)
    }
}

impl From<Arc<Bot>> for Contestant {
    fn from(bot: Arc<Bot>) -> Self {
        Self::Bot(bot)
    }
}

/// Why a path is not a bot: one line with file, cause and remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {cause}", path = .path.display())]
pub struct BotError {
    path: PathBuf,
    cause: String,
    /// A program that is not part of the files and that this machine lacks.
    missing_program: Option<String>,
}

impl BotError {
    pub(crate) fn new(path: &Path, cause: impl Into<String>) -> Self {
        Self { path: path.to_owned(), cause: cause.into(), missing_program: None }
    }

    /// Whether this machine lacks a program that is not part of the files. Another machine may have
    /// it.
    pub(crate) fn is_of_machine(&self) -> bool {
        self.missing_program.is_some()
    }

    /// The program that is not part of the files and that this machine lacks, if that is the error.
    pub(crate) fn missing_program(&self) -> Option<&str> {
        self.missing_program.as_deref()
    }

    /// The message with the path relative to the bot's directory.
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
    /// Loads the bot at `path`. Builds it first if its manifest has a build command and its program
    /// is missing or older than its sources. A source file becomes the bot that it is as a
    /// submission, and is built each time if its language needs that.
    pub fn load(path: &Path) -> Result<Self, BotError> {
        let metadata =
            fs::metadata(path).map_err(|error| BotError::new(path, error.to_string()))?;
        if metadata.is_dir() {
            return Self::load_directory(absolute(path)?);
        }
        if !metadata.is_file() {
            return Err(BotError::new(path, "neither a directory nor a file"));
        }
        let kind =
            source_file::kind(path).map_err(|error| BotError::new(path, error.to_string()))?;
        match kind {
            FileKind::Program => Self::load_program(path),
            FileKind::Source => Self::load_source(path),
            FileKind::Unknown => {
                let file = path.display();
                let endings = SourceFile::endings().collect::<Vec<_>>().join(", ");
                let cause = format!(
                    "not executable, and not a source file of a known language ({endings}); \
                     chmod +x {file} if it is a program, or unpack it if it is an archive"
                );
                Err(BotError::new(path, cause))
            }
        }
    }

    /// Loads the bot in the directory at the absolute `path`.
    fn load_directory(path: PathBuf) -> Result<Self, BotError> {
        let manifest = manifest::read(&path)?;
        if let Some(build) = &manifest.build {
            build_if_stale(&path, &manifest.run[0], build, |_| false)?;
        }
        check_program(&path, &manifest.run[0])?;
        check_links(&path)?;
        let digest = digest(&path).map_err(|error| BotError::new(&path, error.to_string()))?;
        let manifest::Manifest { name, run, protocol, stderr, build: _ } = manifest;
        let source = BotSource::Directory(path);
        Ok(Self { name, source, run, protocol, stderr, digest, _source_dir: None })
    }

    /// Loads the bot in the directory `path`, unpacked from the bundle with this digest and already
    /// built.
    pub fn unpacked(path: &Path, digest: blake3::Hash) -> Result<Self, BotError> {
        let path = absolute(path)?;
        let manifest::Manifest { name, run, protocol, stderr, build: _ } = manifest::read(&path)?;
        // The author sees the result, so no other path of this machine is looked at. Such a program
        // does not start in the sandbox.
        if !run[0].starts_with('/') || is_system_path(Path::new(&run[0])) {
            check_program(&path, &run[0])?;
        }
        let source = BotSource::Directory(path);
        let digest = digest.to_string();
        Ok(Self { name, source, run, protocol, stderr, digest, _source_dir: None })
    }

    /// The build command of the bot in the directory `path`.
    pub(crate) fn build_of(path: &Path) -> Result<Option<Vec<String>>, BotError> {
        Ok(manifest::read(path)?.build)
    }

    /// The build command that [`Bot::load`] would run for the bot at `path`. `None` if it is built
    /// or has no build.
    pub fn build_due(path: &Path) -> Option<String> {
        if path.is_file() {
            return source_file::build_command(path);
        }
        let manifest = manifest::read(path).ok()?;
        let build = manifest.build?;
        is_stale(path, &manifest.run[0], |_| false).then(|| build.join(" "))
    }

    /// Loads the bot in a source file, and builds it if its language needs that.
    fn load_source(path: &Path) -> Result<Self, BotError> {
        let source_dir =
            SourceDir::new(path).map_err(|error| BotError::new(path, error.cause()))?;
        let directory = absolute(&source_dir.path())?;
        // The author knows only the file, and not the directory.
        let bot = Self::load_directory(directory.clone()).map_err(|error| {
            let cause = match error.missing_program() {
                Some(program) => format!("its program {program} is not on the PATH; install it"),
                None => error.within(&directory),
            };
            BotError { path: path.to_owned(), cause, missing_program: error.missing_program }
        })?;
        Ok(Self { _source_dir: Some(Arc::new(source_dir)), ..bot })
    }

    fn load_program(path: &Path) -> Result<Self, BotError> {
        let path = absolute(path)?;
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let name = stem.parse().map_err(|error| BotError::new(&path, format!("{error}")))?;
        let run = vec![format!("./{file}")];
        let mut hasher = blake3::Hasher::new();
        let result = open_regular(&path).and_then(|file| io::copy(&mut &file, &mut hasher));
        result.map_err(|error| BotError::new(&path, error.to_string()))?;
        let digest = hasher.finalize().to_string();
        let source = BotSource::File(path);
        Ok(Self { name, source, run, protocol: None, stderr: false, digest, _source_dir: None })
    }
}

impl Bot {
    /// Copies the bot's files to the new directory `to`, so that all matches of a run use the files
    /// of this digest.
    pub fn snapshot(self, to: &Path) -> Result<Self, BotError> {
        let to_error = |error: io::Error| BotError::new(to, error.to_string());
        fs::create_dir(to).and_then(|()| self.source.copy_into(to)).map_err(to_error)?;
        let source = match &self.source {
            BotSource::Directory(_) => BotSource::Directory(to.to_owned()),
            BotSource::File(path) => BotSource::File(to.join(path.file_name().unwrap_or_default())),
        };
        Ok(Self { source, _source_dir: None, ..self })
    }
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf, BotError> {
    fs::canonicalize(path).map_err(|error| BotError::new(path, error.to_string()))
}

/// Checks that a program can be found and executed.
pub(crate) fn check_program(directory: &Path, program: &str) -> Result<(), BotError> {
    let is_executable = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some(metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    let is_outside = Path::new(program).components().any(|part| part == Component::ParentDir);
    if is_outside {
        let cause = format!("its program {program} lies outside; put it in this directory");
        return Err(BotError::new(directory, cause));
    }
    if program.contains('/') {
        let path = directory.join(program);
        return match is_executable(&path) {
            Some(true) => Ok(()),
            Some(false) => {
                let cause = format!("its program is not executable; chmod +x {program}");
                Err(BotError::new(directory, cause))
            }
            None => {
                let cause = format!("its program {program} is missing; build it, or correct `run`");
                let missing_program = program.starts_with('/').then(|| program.to_owned());
                Err(BotError { missing_program, ..BotError::new(directory, cause) })
            }
        };
    }
    if std::env::split_paths(&search_path())
        .any(|folder| is_executable(&folder.join(program)) == Some(true))
    {
        return Ok(());
    }
    let cause = format!(
        "its program `{program}` is not on the PATH; install it, or write ./{program} if it is \
         in this directory"
    );
    let missing_program = Some(program.to_owned());
    Err(BotError { missing_program, ..BotError::new(directory, cause) })
}

/// Builds a bot whose program is missing or out of date. A lock lets one process build at a time.
/// The others wait for the lock and then use the result.
/// `ignores` names the files that the program does not depend on.
pub(crate) fn build_if_stale(
    directory: &Path,
    program: &str,
    build: &[String],
    ignores: fn(&Path) -> bool,
) -> Result<(), BotError> {
    let to_error =
        |error: io::Error| BotError::new(directory, format!("cannot lock the directory: {error}"));
    let lock = fs::File::open(directory).map_err(to_error)?;
    lock.lock().map_err(to_error)?;
    if is_stale(directory, program, ignores) { run_build(directory, build) } else { Ok(()) }
}

/// Checks that no link points out of the bot's directory, because its target is not submitted.
fn check_links(directory: &Path) -> Result<(), BotError> {
    let to_error = |error: io::Error| BotError::new(directory, error.to_string());
    let mut files = Vec::new();
    list(directory, &mut files).map_err(to_error)?;
    for link in files.iter().filter(|file| file.is_symlink()) {
        if !fs::canonicalize(link).is_ok_and(|target| target.starts_with(directory)) {
            let cause =
                "this link does not lead to a file in the bot's directory; put the file there";
            return Err(BotError::new(link, cause));
        }
    }
    Ok(())
}

/// Whether the program is missing or older than a file beside it.
fn is_stale(directory: &Path, program: &str, ignores: fn(&Path) -> bool) -> bool {
    let Ok(build_time) =
        fs::metadata(directory.join(program)).and_then(|metadata| metadata.modified())
    else {
        return true;
    };
    newest(directory, Path::new(""), ignores).is_ok_and(|newest| newest > build_time)
}

/// The latest modification time of the files in the folder `below` of `directory`, without those
/// that are ignored by their paths.
fn newest(directory: &Path, below: &Path, ignores: fn(&Path) -> bool) -> io::Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(directory.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if ignores(&path) {
            continue;
        }
        let metadata = entry.metadata()?;
        let modified = if metadata.is_dir() {
            self::newest(directory, &path, ignores)?
        } else {
            metadata.modified()?
        };
        newest = newest.max(modified);
    }
    Ok(newest)
}

/// Number of lines from the end of a failed build's output in the error message.
const BUILD_LINES: usize = 12;

/// Runs a manifest's `build` in the bot's directory.
#[expect(
    clippy::disallowed_methods,
    reason = "a local run builds the user's own bot with the user's tools"
)]
fn run_build(directory: &Path, build: &[String]) -> Result<(), BotError> {
    let command = build.join(" ");
    let output = Command::new(&build[0])
        .args(&build[1..])
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            let cause = match error.kind() {
                io::ErrorKind::NotFound if !build[0].contains('/') => {
                    format!("`{}` is not on the PATH; install it", build[0])
                }
                _ => error.to_string(),
            };
            BotError::new(directory, format!("cannot build: {command}: {cause}"))
        })?;
    if output.status.success() {
        return Ok(());
    }
    let bytes = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    let end = lines[lines.len().saturating_sub(BUILD_LINES)..].join("\n");
    Err(BotError::new(directory, format!("cannot build: {command}: {}\n{end}", output.status)))
}

/// The digest of the files in a directory.
pub(crate) fn digest(directory: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    list(directory, &mut files)?;
    files.sort();
    let mut digest = FilesDigest::default();
    for path in files {
        let name = path.strip_prefix(directory).unwrap_or(&path).as_os_str().as_encoded_bytes();
        if path.is_symlink() {
            digest.add_link(name, fs::read_link(&path)?.as_os_str().as_encoded_bytes());
        } else {
            let file = open_regular(&path)?;
            let metadata = file.metadata()?;
            let is_executable = metadata.permissions().mode() & 0o111 != 0;
            digest.add_file(name, metadata.len(), is_executable, file)?;
        }
    }
    Ok(digest.finish())
}

/// Lists all files below `directory`.
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

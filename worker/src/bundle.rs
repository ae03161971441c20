//! Bundles: a bot's files as they are submitted, stored, fetched and unpacked again.
//!
//! A bundle is a tar archive compressed by Zstandard. It is canonical: the entries stand in the
//! order of their names, without times or owners, files have mode 644 or 755, and links lead to
//! places within. So the same files give the same bytes, and the BLAKE3 digest of the bytes is
//! what identifies a version.
//!
//! Whoever unpacks one was not there when it was made. [`unpack`] takes nothing on trust: it reads
//! no further than the caps allow, writes nowhere but below the given directory, and makes nothing
//! but directories, files and links that stay within.

mod archive;
mod bot_state;
mod extract;
mod submission;

use std::fs;
use std::io;
use std::path::Path;

use thiserror::Error;

use crate::bot::manifest::{self, Manifest};
use crate::bot::{BOT_TOML, Bot};
use crate::sandbox::{BotSource, recreate_dir};
use archive::{Caps, Content, Data, Item};

pub use bot_state::{MAX_STATE, MAX_STATE_UNPACKED, pack_state, unpack_state};
pub use submission::Submission;

/// The largest bundle, in bytes as it is submitted.
pub const MAX_BUNDLE: usize = 64 << 20;

/// What a bundle may be unpacked to, in bytes as a tar archive.
pub const MAX_UNPACKED: u64 = 256 << 20;

/// How many files, directories and links a bundle may hold.
pub const MAX_ENTRIES: usize = 10_000;

/// How hard a bundle is compressed: it is packed once and fetched by every worker.
const EFFORT: i32 = 9;

/// What is no part of a submission, wherever it is.
const LEFT_OUT: [&str; 6] = [".git", ".hg", ".jj", ".svn", "__pycache__", ".DS_Store"];

/// What a bundle may be.
const CAPS: Caps =
    Caps { packed: MAX_BUNDLE, unpacked: MAX_UNPACKED, entries: MAX_ENTRIES, links: true };

/// A bot as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    bytes: Vec<u8>,
    digest: blake3::Hash,
}

/// Why there is no bundle, or none that can be used.
#[derive(Debug, Error)]
pub enum BundleError {
    /// The files or the bytes are such that no worker would play them: their author's to mend.
    #[error("{0}")]
    Invalid(String),
    /// Something of this machine failed.
    #[error("{what}: {error}")]
    System {
        /// What was being done, naming the thing.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
}

impl BundleError {
    fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }

    fn system(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = path.display().to_string();
        |error| Self::System { what, error }
    }
}

impl Bundle {
    /// Packs a bot, which was loaded and so can be run: nothing of it is to be built any more. One
    /// that is a single file becomes a directory with a manifest.
    ///
    /// # Errors
    /// [`BundleError::Invalid`] if it has too many or too large files, or links that lead out.
    pub fn of(bot: &Bot) -> Result<Self, BundleError> {
        let mut items = match &bot.source {
            BotSource::Directory(path) => archive::gather(path, &CAPS, &[])?,
            BotSource::File(path) => single(bot, path)?,
        };
        for Item { path, content } in &mut items {
            if let Content::File { data, .. } = content
                && path == Path::new(BOT_TOML)
            {
                let read = data.read_at_most(manifest::MOST_MANIFEST);
                let text = read.map_err(BundleError::system(path))?;
                *data = Data::Bytes(manifest::once_built(&text).map_or(text, Into::into));
            }
        }
        Self::pack(&items)
    }

    /// Packs the files of a bot that is to be built where it is tried, as they are in a directory;
    /// what version control and interpreters keep for themselves is left out.
    ///
    /// # Errors
    /// [`BundleError::Invalid`] if they are too many or too large, or have links that lead out.
    pub(crate) fn of_source(path: &Path) -> Result<Self, BundleError> {
        Self::pack(&archive::gather(path, &CAPS, &LEFT_OUT)?)
    }

    fn pack(items: &[Item]) -> Result<Self, BundleError> {
        let bytes = archive::write(items, EFFORT, &CAPS)?;
        let digest = blake3::hash(&bytes);
        Ok(Self { bytes, digest })
    }

    /// What is submitted.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The BLAKE3 hash of the bytes: what identifies the version.
    pub fn digest(&self) -> blake3::Hash {
        self.digest
    }
}

/// The items of a bot that is a single file.
fn single(bot: &Bot, path: &Path) -> Result<Vec<Item>, BundleError> {
    let name = Path::new(path.file_name().unwrap_or_default()).to_owned();
    if name == Path::new(BOT_TOML) {
        return Err(BundleError::invalid(format!(
            "{}: a program cannot be called {BOT_TOML}; rename it",
            path.display()
        )));
    }
    let (name_of_it, run) = (bot.name.clone(), bot.run.clone());
    let manifest =
        Manifest { name: name_of_it, run, build: None, protocol: None, stderr: bot.stderr };
    let manifest = manifest.to_toml();
    let size = fs::metadata(path).map_err(BundleError::system(path))?.len();
    let program = Data::At(path.to_owned(), size);
    let mut items = vec![
        Item {
            path: BOT_TOML.into(),
            content: Content::File { data: Data::Bytes(manifest.into()), runs: false },
        },
        Item { path: name, content: Content::File { data: program, runs: true } },
    ];
    items.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(items)
}

/// Unpacks a bundle into the directory `to`, which is there and empty. After an error it is not
/// empty any more. What was submitted as it is, by a browser, may be any archive that
/// [`Submission::read`] takes, with the same result as if that had packed it.
///
/// # Errors
/// [`BundleError::Invalid`] if the bytes are no bundle, or one that would do harm.
pub fn unpack(bytes: &[u8], to: &Path) -> Result<(), BundleError> {
    let form = submission::Form::of_bytes(bytes);
    if form == submission::Form::TarZst {
        extract::extract(bytes, to, &CAPS)?;
        if submission::top(to).map_err(BundleError::system(to))? == to {
            return Ok(());
        }
        recreate_dir(to).map_err(BundleError::system(to))?;
    }
    let packed = submission::pack_anew(bytes, form, to)?;
    extract::extract(packed.bytes(), to, &CAPS)
}

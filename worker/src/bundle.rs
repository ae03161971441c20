//! Bundles: the packed files of a version, from its submission to a match.
//!
//! A bundle is a tar archive compressed with Zstandard. It is canonical: entries are sorted by
//! name and have no times or owners, files have mode 644 or 755, and links stay inside. So the same
//! files give the same bytes, and the BLAKE3 digest of the bytes identifies a version.
//!
//! Bundles are untrusted. [`unpack`] reads no more than the limits allow, writes only below the
//! given directory, and creates only directories, files and links that stay inside.

mod archive;
mod bot_state;
mod extract;
mod submission;

use std::fs;
use std::io;
use std::path::Path;

use arbiter_packages::{BUILD_NAMES, IGNORED_NAMES};
use thiserror::Error;

use crate::bot::manifest::{self, Manifest};
use crate::bot::{BOT_TOML, Bot};
use crate::sandbox::{BotSource, recreate_dir};
use archive::{ArchiveEntry, ArchiveLimits, Content, Data};

pub use bot_state::{MAX_STATE, MAX_STATE_UNPACKED, pack_state, unpack_state};
pub use submission::Submission;

/// Maximum size of a bundle as submitted, in bytes.
pub const MAX_BUNDLE: usize = 64 << 20;

/// Maximum size of an unpacked bundle, in bytes as a tar archive.
pub const MAX_UNPACKED: u64 = 256 << 20;

/// Maximum number of files, directories and links in a bundle.
pub const MAX_ENTRIES: usize = 10_000;

/// Zstandard level of bundles: each is packed once and fetched by every worker.
const ZSTD_LEVEL: i32 = 9;

/// Limits of a bundle.
const LIMITS: ArchiveLimits =
    ArchiveLimits { packed: MAX_BUNDLE, unpacked: MAX_UNPACKED, entries: MAX_ENTRIES, links: true };

/// The packed files of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    bytes: Vec<u8>,
    digest: blake3::Hash,
}

/// Why a bundle cannot be packed or unpacked.
#[derive(Debug, Error)]
pub enum BundleError {
    /// The files or bytes are invalid on every worker. Their author must fix them.
    #[error("{0}")]
    Invalid(String),
    /// An operation of this machine failed.
    #[error("{what}: {error}")]
    System {
        /// The file or operation.
        what: String,
        /// The cause.
        error: io::Error,
    },
}

impl BundleError {
    fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }

    pub(crate) fn system(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = path.display().to_string();
        |error| Self::System { what, error }
    }
}

impl Bundle {
    /// Packs a loaded bot, which needs no build. A bot of a single file becomes a directory with a
    /// manifest.
    ///
    /// # Errors
    /// [`BundleError::Invalid`] if it exceeds a limit or has links that lead outside.
    pub fn of(bot: &Bot) -> Result<Self, BundleError> {
        let mut entries = match &bot.source {
            BotSource::Directory(path) => archive::list_entries(path, &LIMITS, &[])?,
            BotSource::File(path) => single(bot, path)?,
        };
        for ArchiveEntry { path, content } in &mut entries {
            if let Content::File { data, .. } = content
                && path == Path::new(BOT_TOML)
            {
                let result = data.read_at_most(manifest::MAX_MANIFEST);
                let text = result.map_err(BundleError::system(path))?;
                *data = Data::Bytes(manifest::once_built(&text).map_or(text, Into::into));
            }
        }
        Self::pack(&entries)
    }

    /// Packs the sources in a directory, without files of version control and interpreters. The
    /// trial builds them.
    ///
    /// # Errors
    /// [`BundleError::Invalid`] if they exceed a limit or have links that lead outside.
    pub(crate) fn of_source(path: &Path) -> Result<Self, BundleError> {
        Self::pack(&archive::list_entries(path, &LIMITS, &IGNORED_NAMES)?)
    }

    /// Packs the files of a game package that `includes` accepts by their paths, without files of
    /// version control, interpreters and builds.
    ///
    /// # Errors
    /// [`BundleError::Invalid`] if they exceed a limit or have links that lead outside.
    pub(crate) fn of_package(
        path: &Path,
        includes: impl Fn(&Path) -> bool,
    ) -> Result<Self, BundleError> {
        let ignored = [&IGNORED_NAMES[..], &BUILD_NAMES].concat();
        let mut entries = archive::list_entries(path, &LIMITS, &ignored)?;
        entries.retain(|entry| includes(&entry.path));
        Self::pack(&entries)
    }

    fn pack(entries: &[ArchiveEntry]) -> Result<Self, BundleError> {
        let bytes = archive::write(entries, ZSTD_LEVEL, &LIMITS)?;
        let digest = blake3::hash(&bytes);
        Ok(Self { bytes, digest })
    }

    /// The packed bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The BLAKE3 hash of the bytes, which identifies the version.
    pub fn digest(&self) -> blake3::Hash {
        self.digest
    }
}

/// The entries of a bot that is a single file.
fn single(bot: &Bot, path: &Path) -> Result<Vec<ArchiveEntry>, BundleError> {
    let name = Path::new(path.file_name().unwrap_or_default()).to_owned();
    if name == Path::new(BOT_TOML) {
        return Err(BundleError::invalid(format!(
            "{}: a program cannot be called {BOT_TOML}; rename it",
            path.display()
        )));
    }
    let manifest = Manifest {
        name: bot.name.clone(),
        run: bot.run.clone(),
        build: None,
        protocol: None,
        stderr: bot.stderr,
    };
    let size = fs::metadata(path).map_err(BundleError::system(path))?.len();
    let program = Data::At(path.to_owned(), size);
    let mut entries = vec![
        ArchiveEntry {
            path: BOT_TOML.into(),
            content: Content::File {
                data: Data::Bytes(manifest.to_toml().into()),
                is_executable: false,
            },
        },
        ArchiveEntry { path: name, content: Content::File { data: program, is_executable: true } },
    ];
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// Unpacks a bundle into the empty directory `to`. After an error files may remain there. A browser
/// submits archives unchanged: `bytes` may be any archive that [`Submission::read`] accepts. The
/// result is the same as for the bundle of that archive.
///
/// # Errors
/// [`BundleError::Invalid`] if the bytes are not a valid bundle.
pub fn unpack(bytes: &[u8], to: &Path) -> Result<(), BundleError> {
    let format = submission::ArchiveFormat::detect(bytes);
    if format == submission::ArchiveFormat::TarZst {
        extract::extract(bytes, to, &LIMITS)?;
        if submission::top(to).map_err(BundleError::system(to))? == to {
            return Ok(());
        }
        recreate_dir(to).map_err(BundleError::system(to))?;
    }
    let bundle = submission::repack(bytes, format, to)?;
    extract::extract(bundle.bytes(), to, &LIMITS)
}

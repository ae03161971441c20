//! Loads game packages: a folder, or a packed file.
//!
//! The rules run from a copy of the files that decide a match: all files of the package but its
//! house bots, tests and texts. Therefore an edit during a run changes nothing, and the digest of
//! the copy identifies the rules: a better text for bot authors does not change it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbiter_games::GameInfo;
use arbiter_packages::{
    BOT_MD, BOTS, BUILD_NAMES, Carrier, Descriptor, GAME_TOML, MAX_BOT_MD, MAX_DESCRIPTOR,
    RulesHost, WasmRules, is_beside_rules,
};
use thiserror::Error;

use crate::bot::{self, BotError};
use crate::bounded_read::{read_at_most, read_text_at_most, within};
use crate::bundle::{Bundle, BundleError, MAX_BUNDLE, unpack};
use crate::rules_process::RulesProgram;
use crate::sandbox::{BotSource, Host, ScratchDir};
use crate::seat::StopSignal;

/// Maximum size of the rules as a WebAssembly module, in bytes.
const MAX_MODULE: u64 = 32 << 20;

/// Why a game package cannot be loaded.
#[derive(Debug, Error)]
pub enum PackageError {
    /// It is invalid on every machine. Its author must fix it.
    #[error(transparent)]
    Invalid(BotError),
    /// An operation of this machine failed, or it lacks the program of the rules. Another machine
    /// may load the package.
    #[error("{0}")]
    System(BotError),
}

impl PackageError {
    fn of_bundle(path: &Path) -> impl FnOnce(BundleError) -> Self {
        move |error| match error {
            BundleError::Invalid(cause) => Self::Invalid(BotError::new(path, cause)),
            BundleError::System { .. } => Self::System(BotError::new(path, error.to_string())),
        }
    }

    fn system(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System(BotError::new(path, error.to_string()))
    }
}

impl From<PackageError> for BotError {
    fn from((PackageError::Invalid(error) | PackageError::System(error)): PackageError) -> Self {
        error
    }
}

/// A game package on this machine.
#[derive(Clone, Debug)]
pub struct Package {
    /// What its author says about it.
    pub descriptor: Descriptor,
    /// The digest of the files that decide a match.
    pub digest: String,
    /// The folder of the package.
    path: PathBuf,
    /// The copy of the files that decide a match, and an unpacked package.
    scratch: Arc<ScratchDir>,
}

impl Package {
    /// Loads the package at `path`: a folder or a packed file. Builds the rules of a folder first
    /// if it has a build command and they are missing or older than a file beside them.
    pub fn load(path: &Path) -> Result<Self, BotError> {
        let failed = |error: String| BotError::new(path, error);
        if path.is_file() {
            let bytes = read_at_most(path, MAX_BUNDLE as u64);
            let bytes = bytes.map_err(|error| failed(error.to_string()))?;
            return Ok(Self::unpack(path, &bytes)?);
        }
        let folder = bot::absolute(path)?;
        let descriptor = read_descriptor(&folder)?;
        if let Some(build) = &descriptor.build {
            bot::build_if_stale(&folder, descriptor.carrier.program(), build, is_beside_build)?;
        }
        let scratch = ScratchDir::new().map_err(|error| failed(error.to_string()))?;
        Ok(Self::with_copy(folder, descriptor, scratch)?)
    }

    /// Loads a packed package, which errors call `name`.
    ///
    /// # Errors
    /// If the bytes are not a valid package, or it cannot be stored.
    pub fn unpack(name: &Path, bytes: &[u8]) -> Result<Self, PackageError> {
        let scratch = ScratchDir::new().map_err(PackageError::system(name))?;
        let folder = scratch.path().join("package");
        fs::create_dir(&folder).map_err(PackageError::system(name))?;
        unpack(bytes, &folder).map_err(PackageError::of_bundle(name))?;
        let descriptor = read_descriptor(&folder)?;
        Self::with_copy(folder, descriptor, scratch)
    }

    /// The package in a folder, with a copy of the files that decide a match.
    fn with_copy(
        folder: PathBuf,
        descriptor: Descriptor,
        scratch: ScratchDir,
    ) -> Result<Self, PackageError> {
        let rules = scratch.path().join("rules");
        let copy = || -> Result<(), BundleError> {
            let bundle = Bundle::of_package(&folder, |path| !is_beside_rules(path))?;
            fs::create_dir(&rules).map_err(BundleError::system(&rules))?;
            unpack(bundle.bytes(), &rules)
        };
        copy().map_err(PackageError::of_bundle(&folder))?;
        check_rules(&folder, &rules, &descriptor.carrier)?;
        let digest = bot::digest(&rules).map_err(PackageError::system(&folder))?;
        Ok(Self { descriptor, digest, path: folder, scratch: Arc::new(scratch) })
    }

    /// Whether there is a package at `path`: a folder with a descriptor, or a packed file.
    pub fn is_at(path: &Path) -> bool {
        path.is_file() || fs::symlink_metadata(path.join(GAME_TOML)).is_ok()
    }

    /// The folder of the package.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folders of its house bots, by name.
    pub fn house_bots(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path.join(BOTS)) else { return Vec::new() };
        let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        folders.retain(|path| path.is_dir());
        folders.sort();
        folders
    }

    /// The text of the descriptor.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn descriptor_text(&self) -> Result<String, BotError> {
        Ok(read_descriptor_text(&self.path)?)
    }

    /// The text for authors of bots, if there is one.
    pub fn bot_text(&self) -> Option<String> {
        let file = within(&self.path, BOT_MD).ok()?;
        read_text_at_most(&file, MAX_BOT_MD).ok()
    }

    /// Packs all files, with built rules. The same files give the same bytes.
    ///
    /// # Errors
    /// If they exceed a limit of bundles.
    pub fn pack(&self) -> Result<Bundle, BundleError> {
        Bundle::of_package(&self.path, |_| true)
    }

    /// The game. Its rules run until `stop`; a program runs in the sandbox of `host`.
    ///
    /// # Errors
    /// If the rules are a module that cannot run.
    pub fn game(&self, host: &Arc<Host>, stop: &Arc<StopSignal>) -> Result<GameInfo, BotError> {
        Ok(self.descriptor.game(&self.digest, self.rules(host, stop, &[])?))
    }

    /// The rules, like those of [`Package::game`]. `launcher` is a command that is put before the
    /// command of a program, such as `env`.
    ///
    /// # Errors
    /// If the rules are a module that cannot run.
    pub fn rules(
        &self,
        host: &Arc<Host>,
        stop: &Arc<StopSignal>,
        launcher: &[&str],
    ) -> Result<Arc<dyn RulesHost>, BotError> {
        let rules = self.scratch.path().join("rules");
        Ok(match &self.descriptor.carrier {
            Carrier::Run(argv) => Arc::new(RulesProgram {
                host: Arc::clone(host),
                source: BotSource::Directory(rules),
                argv: launcher.iter().map(ToString::to_string).chain(argv.clone()).collect(),
                stop: Arc::clone(stop),
                _files: Arc::clone(&self.scratch),
            }),
            Carrier::Wasm(file) => {
                let to_error = |cause: String| BotError::new(&self.path.join(file), cause);
                let bytes = read_at_most(&rules.join(file), MAX_MODULE)
                    .map_err(|error| to_error(error.to_string()))?;
                WasmRules::compile(&bytes).map_err(to_error)?
            }
        })
    }
}

fn read_descriptor_text(folder: &Path) -> Result<String, PackageError> {
    let text = within(folder, GAME_TOML).and_then(|file| read_text_at_most(&file, MAX_DESCRIPTOR));
    text.map_err(|error| {
        // A missing, irregular, large or binary file is the same on every machine.
        let is_invalid = matches!(
            error.kind(),
            ErrorKind::NotFound
                | ErrorKind::InvalidInput
                | ErrorKind::FileTooLarge
                | ErrorKind::InvalidData
        );
        let cause = BotError::new(&folder.join(GAME_TOML), error.to_string());
        if is_invalid { PackageError::Invalid(cause) } else { PackageError::System(cause) }
    })
}

fn read_descriptor(folder: &Path) -> Result<Descriptor, PackageError> {
    let text = read_descriptor_text(folder)?;
    let invalid = |cause: String| PackageError::Invalid(BotError::new(folder, cause));
    Descriptor::parse(&text).map_err(|error| invalid(error.to_string()))
}

/// Checks that the rules are among the files that are copied, or that this machine has their
/// program.
fn check_rules(folder: &Path, rules: &Path, carrier: &Carrier) -> Result<(), PackageError> {
    match carrier {
        Carrier::Run(argv) => bot::check_program(folder, &argv[0]).map_err(|error| {
            if error.is_of_machine() {
                PackageError::System(error)
            } else {
                PackageError::Invalid(error)
            }
        }),
        Carrier::Wasm(file) if rules.join(file).is_file() => Ok(()),
        Carrier::Wasm(file) => {
            let cause = "the rules are missing; build them, or correct `rules.wasm`";
            Err(PackageError::Invalid(BotError::new(&folder.join(file), cause)))
        }
    }
}

/// Whether the build does not depend on a file of a package, named from its top.
fn is_beside_build(path: &Path) -> bool {
    let is_output = path.file_name().is_some_and(|name| BUILD_NAMES.iter().any(|own| name == *own));
    is_output || is_beside_rules(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_that_this_machine_cannot_read_may_be_valid() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(GAME_TOML);
        let missing = read_descriptor(folder.path());
        assert!(matches!(missing, Err(PackageError::Invalid(_))), "{missing:?}");
        let too_large = vec![b'#'; usize::try_from(MAX_DESCRIPTOR).unwrap() + 1];
        for invalid in [&b"name = 1"[..], b"\xff", &too_large[..]] {
            fs::write(&file, invalid).unwrap();
            let result = read_descriptor(folder.path());
            assert!(matches!(result, Err(PackageError::Invalid(_))), "{result:?}");
        }
        // Nothing can be read below a file.
        let unreadable = read_descriptor(&file);
        assert!(matches!(unreadable, Err(PackageError::System(_))), "{unreadable:?}");
    }
}

//! `arbiter game pack`: packs a game package into one file.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use arbiter_worker::package::Package;
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::output::print;
use crate::play::game::load;

/// Pack a game package into one file, which can be used wherever its folder can.
///
/// Builds the rules first if they are missing or out of date. The same files give the same bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter game pack games/packages/connect4
  arbiter play connect4-1.tar.zst bots/one bots/two")]
pub(super) struct Pack {
    /// The folder of the package.
    #[arg(value_name = "DIR")]
    package: PathBuf,
    /// The file to write. By default NAME-VERSION.tar.zst in this directory.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Pack {
    pub(super) fn run(self) -> Result<(), Failure> {
        let package = load(&self.package)?;
        let bundle = package.pack().map_err(Failure::usage)?;
        let out = self.out.unwrap_or_else(|| default_file(&package));
        check_overwrite(&out, &package)?;
        write(&out, bundle.bytes())
            .map_err(|error| Failure::usage(format!("{}: {error}", out.display())))?;
        let Package { descriptor, digest, .. } = &package;
        let bytes = bundle.bytes().len();
        print(|output| {
            if self.json {
                return output.json(&json!({"file": out.display().to_string(), "bytes": bytes,
                    "name": descriptor.name, "version": descriptor.version, "digest": digest}));
            }
            let out = out.display();
            let version = &descriptor.version;
            let name = &descriptor.name;
            output.line(&format!("{out}: {name} version {version}, {bytes} bytes"))?;
            output.line(&format!("digest {digest}"))
        })
    }
}

/// The name of the file from those of the game and its version.
fn default_file(package: &Package) -> PathBuf {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let version = package.descriptor.version.chars();
    let version: String = version.map(|c| if is_plain(c) { c } else { '-' }).collect();
    PathBuf::from(format!("{}-{version}.tar.zst", package.descriptor.name))
}

/// Refuses to replace anything but an earlier file of the same game.
fn check_overwrite(out: &Path, package: &Package) -> Result<(), Failure> {
    if fs::symlink_metadata(out).is_err() {
        return Ok(());
    }
    let name = &package.descriptor.name;
    let other = Package::load(out).ok().filter(|_| out.is_file());
    if other.is_some_and(|other| other.descriptor.name == *name) {
        return Ok(());
    }
    let out = out.display();
    let cause = format!("{out} exists and is not a packed file of {name}");
    Err(Failure::usage(format!("{cause}; remove it, or choose another file with --out")))
}

/// Writes a file, so that it is never seen incomplete.
fn write(out: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.persist(out)?;
    Ok(())
}

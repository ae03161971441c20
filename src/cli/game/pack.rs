//! `arbiter game pack`: packs a game package into one file.

use std::path::PathBuf;

use arbiter_packages::{Descriptor, packed_file};
use clap::Args;
use serde_json::json;

use crate::cli::package_file::PackageFile;
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
        let file = PackageFile::pack(load(&self.package)?)?;
        let Descriptor { name, version, .. } = &file.package.descriptor;
        let out = self.out.unwrap_or_else(|| packed_file(name, version).into());
        file.save(&out)?;
        let digest = &file.package.digest;
        let bytes = file.bytes.len();
        print(|output| {
            if self.json {
                return output.json(&json!({"file": out.display().to_string(), "bytes": bytes,
                    "name": name, "version": version, "digest": digest}));
            }
            let out = out.display();
            output.line(&format!("{out}: {name} version {version}, {bytes} bytes"))?;
            output.line(&format!("digest {digest}"))
        })
    }
}

//! Packed game packages: downloaded from a coordinator, and written to files.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use arbiter_proto::settings::HexDigest;
use arbiter_proto::v1::GetPackageRequest;
use arbiter_worker::bundle_download::receive_bundle;
use arbiter_worker::package::Package;

use super::client::{Server, malformed_response};
use crate::failure::{Failure, without_temporary_path};
use crate::play::recorded_packages::file_name;

/// A game package with its packed files.
#[derive(Debug)]
pub(super) struct PackageFile {
    pub(super) package: Package,
    pub(super) bytes: Vec<u8>,
}

impl PackageFile {
    /// Packs a package.
    ///
    /// # Errors
    /// If its files exceed a limit.
    pub(super) fn pack(package: Package) -> Result<Self, Failure> {
        let bytes = package.pack().map_err(Failure::usage)?.bytes().to_vec();
        Ok(Self { package, bytes })
    }

    /// Downloads the package of a tournament that records name by this digest. Without a digest:
    /// the present one.
    pub(super) async fn download(
        server: &Server,
        tournament: &str,
        digest: Option<HexDigest>,
    ) -> Result<Self, Failure> {
        let tournament = tournament.to_owned();
        let wanted = digest.map(|digest| digest.0.as_bytes().to_vec()).unwrap_or_default();
        let request = GetPackageRequest { tournament, digest: wanted };
        let pieces = server.tournaments().get_package(request).await?.into_inner();
        let bytes = receive_bundle(pieces).await?;
        let package = Package::unpack(Path::new("the game package"), &bytes);
        let package = package.map_err(malformed_response)?;
        match digest {
            Some(digest) if digest.to_string() != package.digest => {
                let other = &package.digest;
                Err(malformed_response(format!("the game package of digest {other}, not {digest}")))
            }
            _ => Ok(Self { package, bytes }),
        }
    }

    /// The name of its file in an export.
    pub(super) fn name(&self) -> String {
        file_name(&self.package.descriptor.name, &self.package.digest)
    }

    /// Writes it to the file `out`, which is never seen incomplete. Replaces nothing but an earlier
    /// file of the same game.
    pub(super) fn save(&self, out: &Path) -> Result<(), Failure> {
        self.check_overwrite(out)?;
        self.write(out).map_err(|error| {
            Failure::usage(format!("{}: {}", out.display(), without_temporary_path(&error)))
        })
    }

    fn check_overwrite(&self, out: &Path) -> Result<(), Failure> {
        if fs::symlink_metadata(out).is_err() {
            return Ok(());
        }
        let name = &self.package.descriptor.name;
        let other = Package::load(out).ok().filter(|_| out.is_file());
        if other.is_some_and(|other| other.descriptor.name == *name) {
            return Ok(());
        }
        let out = out.display();
        let cause = format!("{out} exists and is not a packed file of {name}");
        Err(Failure::usage(format!("{cause}; remove it, or choose another file with --out")))
    }

    fn write(&self, out: &Path) -> io::Result<()> {
        let directory = match out.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&self.bytes)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(mode)?;
        file.persist(out)?;
        Ok(())
    }
}

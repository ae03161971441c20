//! The game packages with which recorded matches were played: named on the command line, or found
//! in the exports that hold the records.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use arbiter_replay::RecordedPackage;
use arbiter_worker::package::Package;

use super::game::load;
use super::record_file;
use crate::failure::Failure;

/// The folder of packages in an export.
pub(crate) const PACKAGES: &str = "packages";

/// The name of a package's file in an export.
pub(crate) fn file_name(game: &str, digest: &str) -> String {
    format!("{game}-{digest}.tar.zst")
}

/// Loads the packages at the paths `named`, and those that records need, from the exports that hold
/// the records. Packages that are not found are left out.
///
/// # Errors
/// If a package is not valid, or its file in an export was changed.
pub(crate) fn load_all(
    named: &[PathBuf],
    records: &[PathBuf],
) -> Result<Vec<(PathBuf, Package)>, Failure> {
    let loaded = named.iter().map(|path| Ok((path.clone(), load(path)?)));
    let mut packages = loaded.collect::<Result<Vec<_>, Failure>>()?;
    let mut searched = HashSet::new();
    for record in records {
        // The replay reports records that cannot be read.
        let Ok(Some(needed)) = record_file::open(record).and_then(RecordedPackage::read) else {
            continue;
        };
        let is_loaded = packages.iter().any(|(_, package)| package.digest == needed.digest);
        let folder = record.parent().unwrap_or(Path::new(""));
        if is_loaded || !searched.insert((folder, needed.clone())) {
            continue;
        }
        if let Some(path) = find_above(folder, &needed) {
            let package = load_unchanged(&path, &needed)?;
            packages.push((path, package));
        }
    }
    Ok(packages)
}

/// The file of a package in the export that holds a folder of records.
fn find_above(folder: &Path, needed: &RecordedPackage) -> Option<PathBuf> {
    let name = file_name(&needed.game, &needed.digest);
    // A record may be hostile: its names must not lead to another folder.
    if name.contains('/') {
        return None;
    }
    let folder = fs::canonicalize(Path::new(".").join(folder)).ok()?;
    let files = folder.ancestors().map(|above| above.join(PACKAGES).join(&name));
    files.into_iter().find(|file| file.is_file())
}

/// Loads the package in a file of an export.
fn load_unchanged(path: &Path, needed: &RecordedPackage) -> Result<Package, Failure> {
    let remedy = "export the tournament again, or name the package with --game";
    let package = load(path)
        .map_err(|failure| Failure::Negative(format!("{}; {remedy}", failure.message())))?;
    if package.digest == needed.digest {
        return Ok(package);
    }
    let path = path.display();
    let digest = &package.digest;
    let cause = format!("{path}: the file was changed, its package has the digest {digest}");
    Err(Failure::Negative(format!("{cause}; {remedy}")))
}

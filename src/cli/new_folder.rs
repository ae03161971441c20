//! Writes new folders: packages and bots to begin with.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use arbiter_packages::BotFile;

use crate::failure::Failure;

/// Writes files to a new folder.
///
/// # Errors
/// If the folder exists or cannot be written.
pub(super) fn write(
    folder: &Path,
    files: impl IntoIterator<Item = BotFile>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", folder.display()));
    fs::create_dir(folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let folder = folder.display();
            Failure::usage(format!("{folder} exists; choose another name, or remove it"))
        }
        _ => failed(error),
    })?;
    files.into_iter().try_for_each(|file| write_file(folder, &file)).map_err(failed)
}

fn write_file(folder: &Path, file: &BotFile) -> io::Result<()> {
    let path = folder.join(&file.path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&path, &file.contents)?;
    if file.is_executable {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

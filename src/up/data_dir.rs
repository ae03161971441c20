//! The data directory of `arbiter up` and `arbiter demo`.
//!
//! ```text
//! DATA/lock          locked by the running program
//! DATA/postgres/     the database: the cluster and its log
//! DATA/spool/        reports that are not yet acknowledged
//! DATA/cache/        unpacked bundles; may be deleted at any time
//! DATA/admin.token   the administrator's token; DATA/worker.token the worker's
//! ```

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use arbiter_coordinator::access::Role;

use crate::failure::Failure;

/// The lock file, which every data directory contains.
const LOCK: &str = "lock";
/// All entries of a data directory. A directory with other entries is never deleted.
const PARTS: [&str; 6] = [LOCK, "postgres", "spool", "cache", "admin.token", "worker.token"];

/// A locked data directory; dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Opens and locks `path`; creates it if missing.
    ///
    /// # Errors
    /// If it is unusable, contains other files, or another process uses it.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let to_failure = |error: io::Error| unusable(path, &error);
        if is_foreign(path).map_err(to_failure)? {
            return Err(Failure::Usage(format!(
                "--data {}: contains files that are not Arbiter's; use an empty directory",
                path.display()
            )));
        }
        fs::create_dir_all(path).map_err(to_failure)?;
        // As root, the database runs as another user, who must be able to enter.
        fs::set_permissions(path, Permissions::from_mode(0o711)).map_err(to_failure)?;
        let path = fs::canonicalize(path).map_err(to_failure)?;
        let lock = take_lock(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Deletes the data directory at `path`, if it exists.
    ///
    /// # Errors
    /// If another process uses it, or it contains other files.
    pub(crate) fn delete(path: &Path) -> Result<(), Failure> {
        if !path.exists() {
            return Ok(());
        }
        drop(Self::open(path)?);
        let to_failure = |error: io::Error| unusable(path, &error);
        for entry in fs::read_dir(path).map_err(to_failure)? {
            let name = entry.map_err(to_failure)?.file_name();
            if !PARTS.iter().any(|part| name == *part) {
                return Err(Failure::Usage(format!(
                    "--fresh: {} contains {}, which is not Arbiter's; nothing was deleted",
                    path.display(),
                    name.display()
                )));
            }
        }
        fs::remove_dir_all(path).map_err(to_failure)
    }

    /// The absolute path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of an entry.
    pub(crate) fn entry(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path of a role's token.
    pub(crate) fn token_file(&self, role: Role) -> PathBuf {
        self.entry(&format!("{role}.token"))
    }

    /// Reads the token of a role, if it is stored.
    pub(crate) fn token(&self, role: Role) -> Result<Option<String>, Failure> {
        let path = self.token_file(role);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&path, &error)),
        }
    }

    /// Stores the token of a role, readable only by this user.
    pub(crate) fn store_token(&self, role: Role, token: &str) -> Result<(), Failure> {
        let path = self.token_file(role);
        let temporary = path.with_extension("new");
        let write = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&temporary)?;
            writeln!(file, "{token}")?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error| unusable(&path, &error))
    }
}

/// Whether the directory has entries but no lock file, so it is not a data directory.
fn is_foreign(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(!path.join(LOCK).exists() && entries.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Locks a directory and writes this process id into the lock file.
fn take_lock(directory: &Path) -> Result<File, Failure> {
    let path = directory.join(LOCK);
    let to_failure = |error: io::Error| unusable(&path, &error);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut lock = options.open(&path).map_err(to_failure)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            lock.read_to_string(&mut holder).map_err(to_failure)?;
            return Err(Failure::Refused(format!(
                "--data {}: in use by process {}; stop it, or use another directory",
                directory.display(),
                holder.trim()
            )));
        }
        Err(TryLockError::Error(error)) => return Err(to_failure(error)),
    }
    lock.set_len(0).map_err(to_failure)?;
    writeln!(lock, "{}", std::process::id()).map_err(to_failure)?;
    Ok(lock)
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("{}: {error}; use another directory with --data", path.display()))
}

/// The default data directory.
pub(crate) fn default_path() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/arbiter");
    }
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    data.unwrap_or_default().join("arbiter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_locked_by_one_process() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("data");
        let data = DataDirectory::open(&path).unwrap();
        let Err(Failure::Refused(error)) = DataDirectory::open(&path) else { panic!("used twice") };
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        assert!(DataDirectory::delete(&path).is_err(), "the directory is in use");
        data.store_token(Role::Admin, "arb_1").unwrap();
        let mode = fs::metadata(data.token_file(Role::Admin)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(data);
        let data = DataDirectory::open(&path).unwrap();
        assert_eq!(data.token(Role::Admin).unwrap().as_deref(), Some("arb_1"));
        assert_eq!(data.token(Role::Worker).unwrap(), None);
        drop(data);
        DataDirectory::delete(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_with_other_files_is_never_deleted() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("thesis.tex"), "x").unwrap();
        assert!(DataDirectory::open(scratch.path()).is_err());
        assert!(DataDirectory::delete(scratch.path()).is_err());
        // Other programs have lock files too.
        fs::write(scratch.path().join(LOCK), "").unwrap();
        assert!(DataDirectory::delete(scratch.path()).is_err());
        assert!(scratch.path().join("thesis.tex").exists());
    }
}

//! The directory in which everything is kept from run to run.
//!
//! ```text
//! DATA/lock          held by the program that runs here
//! DATA/postgres/     the database: the cluster, and its log beside it
//! DATA/spool/        reports that are not acknowledged yet
//! DATA/cache/        unpacked bundles; may be deleted at any time
//! DATA/admin.token   lets its owner do everything; DATA/worker.token lets a worker in
//! ```

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use arbiter_coordinator::access::Role;

use crate::failure::Failure;

/// What every data directory has in it.
const LOCK: &str = "lock";
/// All that a data directory may have in it: a directory with anything else is never cleared away.
const PARTS: [&str; 6] = [LOCK, "postgres", "spool", "cache", "admin.token", "worker.token"];

/// A data directory that is ours as long as this lives.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Opens `path`, making it if there is none.
    ///
    /// # Errors
    /// If it cannot be used, or another program uses it.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| unusable(path, &error);
        if holds_something_else(path).map_err(failed)? {
            return Err(Failure::Usage(format!(
                "--data {}: it holds files that are not Arbiter's; name an empty directory",
                path.display()
            )));
        }
        fs::create_dir_all(path).map_err(failed)?;
        // The database runs as another user where we are root: it must get through.
        fs::set_permissions(path, Permissions::from_mode(0o711)).map_err(failed)?;
        let path = fs::canonicalize(path).map_err(failed)?;
        let lock = take_lock(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Clears `path` away, if a program ran there and none runs there now.
    ///
    /// # Errors
    /// If another program uses it, or it cannot be removed.
    pub(crate) fn clear(path: &Path) -> Result<(), Failure> {
        if !path.exists() {
            return Ok(());
        }
        drop(Self::open(path)?);
        let failed = |error: io::Error| unusable(path, &error);
        for entry in fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if !PARTS.iter().any(|part| name == *part) {
                return Err(Failure::Usage(format!(
                    "--fresh: {} holds {}, which is not Arbiter's; nothing was removed",
                    path.display(),
                    name.display()
                )));
            }
        }
        fs::remove_dir_all(path).map_err(failed)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A part of it.
    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where the token of a role is kept.
    pub(crate) fn token_file(&self, role: Role) -> PathBuf {
        self.part(&format!("{role}.token"))
    }

    /// The token of a role, if one is kept.
    pub(crate) fn token(&self, role: Role) -> Result<Option<String>, Failure> {
        let path = self.token_file(role);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&path, &error)),
        }
    }

    /// Keeps the token of a role, for its owner's eyes only.
    pub(crate) fn keep_token(&self, role: Role, token: &str) -> Result<(), Failure> {
        let path = self.token_file(role);
        let fresh = path.with_extension("new");
        let write = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&fresh)?;
            writeln!(file, "{token}")?;
            file.sync_all()?;
            fs::rename(&fresh, &path)
        };
        write().map_err(|error| unusable(&path, &error))
    }
}

/// Whether there is a directory that no program of ours has made.
fn holds_something_else(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(!path.join(LOCK).exists() && entries.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a directory this program's own.
fn take_lock(directory: &Path) -> Result<File, Failure> {
    let path = directory.join(LOCK);
    let failed = |error: io::Error| unusable(&path, &error);
    let mut options = OpenOptions::new();
    let mut lock = options.read(true).write(true).create(true).truncate(false).open(&path);
    let lock = lock.as_mut().map_err(|error| unusable(&path, error))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            lock.read_to_string(&mut holder).map_err(failed)?;
            return Err(Failure::Refused(format!(
                "--data {}: process {} runs there; stop it, or name another directory",
                directory.display(),
                holder.trim()
            )));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    lock.set_len(0).map_err(failed)?;
    writeln!(lock, "{}", std::process::id()).map_err(failed)?;
    lock.try_clone().map_err(failed)
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("{}: {error}; name another directory with --data", path.display()))
}

/// Where data are kept if nobody says where.
pub(crate) fn usual() -> PathBuf {
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
    fn a_directory_is_used_by_one_program_and_holds_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("data");
        let data = DataDirectory::open(&path).unwrap();
        let Err(Failure::Refused(said)) = DataDirectory::open(&path) else { panic!("used twice") };
        assert!(said.contains(&std::process::id().to_string()), "{said}");
        assert!(DataDirectory::clear(&path).is_err(), "it is in use");
        data.keep_token(Role::Admin, "arb_1").unwrap();
        let mode = fs::metadata(data.token_file(Role::Admin)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(data);
        let data = DataDirectory::open(&path).unwrap();
        assert_eq!(data.token(Role::Admin).unwrap().as_deref(), Some("arb_1"));
        assert_eq!(data.token(Role::Worker).unwrap(), None);
        drop(data);
        DataDirectory::clear(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn somebody_elses_directory_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("thesis.tex"), "x").unwrap();
        assert!(DataDirectory::open(scratch.path()).is_err());
        assert!(DataDirectory::clear(scratch.path()).is_err());
        // Other programs have locks too.
        fs::write(scratch.path().join(LOCK), "").unwrap();
        assert!(DataDirectory::clear(scratch.path()).is_err());
        assert!(scratch.path().join("thesis.tex").exists());
    }
}

//! The spool: reports on disk until the coordinator acknowledges them.
//!
//! A report contains the results of seconds or minutes of play, so it must survive a crash of the
//! worker. The worker writes it to disk before it sends it, and deletes it when the coordinator has
//! stored it or no longer needs it. Files are written atomically. Refused reports stay on disk with
//! the reason. Damaged and foreign files are moved to `aside` for the operator.
//!
//! ```text
//! SPOOL/name                  the worker's generated name
//! SPOOL/database              id of the database that the reports belong to
//! SPOOL/reports/3_8_2         the report of lease 3/8#2
//! SPOOL/refused/3_8_2         a report that the coordinator refused
//! SPOOL/refused/3_8_2.txt     the reason
//! SPOOL/aside/                damaged files and files that are not reports
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arbiter_proto::ids::{Attempt, Lease, LotId, LotNumber, TournamentId};
use arbiter_proto::v1;
use prost::Message as _;
use thiserror::Error;
use tracing::warn;

/// First bytes of a report file. The hash of the message follows, then the message.
const MAGIC: &[u8; 8] = b"ARBREP1\n";

/// Length of the hash, in bytes.
const HASH_LEN: usize = blake3::OUT_LEN;

/// File extension of the reason for a refusal.
const REASON_EXTENSION: &str = "txt";

/// Prefix of files that are still being written.
const TEMP_PREFIX: &str = ".new-";

/// Why a directory is not usable as a spool or cache.
#[derive(Debug, Error)]
pub enum SpoolError {
    /// Another worker has locked it.
    #[error("{0}: another worker uses this directory; give each its own --spool")]
    Taken(PathBuf),
    /// It cannot be read or written.
    #[error("{path}: {error}; choose another --spool", path = .path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

/// Unacknowledged reports in a directory that this worker has locked.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    pending: Mutex<BTreeSet<Lease>>,
    _lock: File,
}

impl Spool {
    /// Opens the spool in `directory`, and creates it if necessary.
    pub fn open(directory: &Path) -> Result<Self, SpoolError> {
        let lock = lock_directory(directory)?;
        let spool =
            Self { directory: directory.to_owned(), pending: Mutex::default(), _lock: lock };
        spool.load_existing().map_err(|error| unusable(directory, error))?;
        Ok(spool)
    }

    /// Default name of the worker: the host name with a random suffix, because a machine may have
    /// several workers. Stored in the spool, so that it stays the same.
    pub fn name(&self) -> Result<String, SpoolError> {
        let path = self.directory.join("name");
        let load_or_create = || -> io::Result<String> {
            match fs::read_to_string(&path) {
                Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let mut random = [0; 3];
            File::open("/dev/urandom")?.read_exact(&mut random)?;
            let machine = rustix::system::uname();
            let [a, b, c] = random;
            let name = format!("{}-{a:02x}{b:02x}{c:02x}", machine.nodename().to_string_lossy());
            write_file(&self.directory, &path, &[name.as_bytes(), b"\n"])?;
            Ok(name)
        };
        load_or_create().map_err(|error| unusable(&path, error))
    }

    /// Binds the spool to a database, and sets aside reports for another database. Leases are only
    /// numbers, and another database may use the same numbers for other lots.
    pub fn bind_to_database(&self, database: &str) {
        let path = self.directory.join("database");
        let previous = fs::read_to_string(&path).ok();
        if previous.as_deref() == Some(database) {
            return;
        }
        if previous.is_some() {
            for lease in std::mem::take(&mut *self.pending()) {
                self.set_aside(
                    &self.path(lease),
                    "the report is for another coordinator's database",
                );
            }
        }
        if let Err(error) = write_file(&self.directory, &path, &[database.as_bytes()]) {
            warn!(file = %path.display(), %error, "cannot write the id of the database");
        }
    }

    /// The leases of all reports, in order.
    pub fn leases(&self) -> Vec<Lease> {
        self.pending().iter().copied().collect()
    }

    /// Whether the spool has the report of a lease.
    pub fn contains(&self, lease: Lease) -> bool {
        self.pending().contains(&lease)
    }

    /// Number of reports, and their total size in bytes.
    pub fn count_and_bytes(&self) -> (u64, u64) {
        let leases = self.leases();
        let bytes = leases.iter().filter_map(|lease| fs::metadata(self.path(*lease)).ok());
        (leases.len() as u64, bytes.map(|file| file.len()).sum())
    }

    /// Stores a report. On return it is durable on disk.
    pub fn insert(&self, lease: Lease, report: &v1::Report) -> io::Result<()> {
        let bytes = report.encode_to_vec();
        let hash = blake3::hash(&bytes);
        write_file(&self.reports(), &self.path(lease), &[MAGIC, hash.as_bytes(), &bytes])?;
        self.pending().insert(lease);
        Ok(())
    }

    /// Reads the report of a lease. Sets a damaged one aside and returns `None`.
    pub fn read(&self, lease: Lease) -> Option<v1::Report> {
        let path = self.path(lease);
        match load(lease, &path) {
            Ok(report) => Some(report),
            Err(why) => {
                // An acknowledgement may have removed the report meanwhile. That is no error.
                if self.pending().remove(&lease) {
                    self.set_aside(&path, &why);
                }
                None
            }
        }
    }

    /// Deletes an acknowledged report. Returns whether the spool had it.
    pub fn remove(&self, lease: Lease) -> bool {
        let was_pending = self.pending().remove(&lease);
        if was_pending && let Err(error) = fs::remove_file(self.path(lease)) {
            // The next worker on this spool sends it again.
            warn!(%lease, %error, "cannot delete a report");
        }
        was_pending
    }

    /// Moves a report that the coordinator will never store to `refused`, with the reason. Returns
    /// its new path.
    ///
    /// # Errors
    /// If the move fails. Then the report stays in the spool, and is sent and refused again.
    pub fn move_to_refused(&self, lease: Lease, reason: &str) -> io::Result<PathBuf> {
        let refused = self.refused();
        fs::create_dir_all(&refused)?;
        let path = refused.join(file_name(lease));
        let reason_path = refused.join(format!("{}.{REASON_EXTENSION}", file_name(lease)));
        write_file(&refused, &reason_path, &[reason.as_bytes(), b"\n"])?;
        fs::rename(self.path(lease), &path)?;
        self.pending().remove(&lease);
        File::open(self.reports())?.sync_all()?;
        File::open(&refused)?.sync_all()?;
        Ok(path)
    }

    /// Number of refused reports.
    pub fn count_refused(&self) -> u64 {
        let Ok(entries) = fs::read_dir(self.refused()) else { return 0 };
        let is_report = |path: &Path| path.extension().is_none();
        entries.flatten().filter(|entry| is_report(&entry.path())).count() as u64
    }

    fn refused(&self) -> PathBuf {
        self.directory.join("refused")
    }

    /// Loads the reports on disk, and sets aside all other files.
    fn load_existing(&self) -> io::Result<()> {
        fs::create_dir_all(self.reports())?;
        for entry in fs::read_dir(self.reports())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(TEMP_PREFIX) {
                fs::remove_file(&path)?;
                continue;
            }
            let Some(lease) = parse_file_name(name) else {
                self.set_aside(&path, "the file name is not one of a report");
                continue;
            };
            match load(lease, &path) {
                Ok(_) => drop(self.pending().insert(lease)),
                Err(why) => self.set_aside(&path, &why),
            }
        }
        Ok(())
    }

    fn set_aside(&self, path: &Path, why: &str) {
        let aside = self.directory.join("aside");
        let move_file = || -> io::Result<()> {
            fs::create_dir_all(&aside)?;
            fs::rename(path, aside.join(path.file_name().unwrap_or_default()))
        };
        let to = aside.display();
        match move_file() {
            Ok(()) => warn!(file = %path.display(), why, "file set aside in {to}"),
            Err(error) => warn!(file = %path.display(), why, %error, "cannot move a file to {to}"),
        }
    }

    fn reports(&self) -> PathBuf {
        self.directory.join("reports")
    }

    fn path(&self, lease: Lease) -> PathBuf {
        self.reports().join(file_name(lease))
    }

    fn pending(&self) -> MutexGuard<'_, BTreeSet<Lease>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a directory if necessary, and locks it for this process while the returned file is open.
pub(crate) fn lock_directory(directory: &Path) -> Result<File, SpoolError> {
    let unusable = |error| unusable(directory, error);
    fs::create_dir_all(directory).map_err(unusable)?;
    let lock = File::open(directory).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(SpoolError::Taken(directory.to_owned())),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}

pub(crate) fn unusable(path: &Path, error: io::Error) -> SpoolError {
    SpoolError::Unusable { path: path.to_owned(), error }
}

/// Writes a file in `directory` atomically and durably.
fn write_file(directory: &Path, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(directory)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory)?.sync_all()
}

/// The file name of a lease's report.
fn file_name(lease: Lease) -> String {
    let Lease { lot: LotId { tournament, number }, attempt: Attempt(attempt) } = lease;
    format!("{tournament}_{number}_{attempt}")
}

/// The lease of a file name.
fn parse_file_name(name: &str) -> Option<Lease> {
    let [tournament, number, attempt] = name.split('_').collect::<Vec<_>>()[..] else {
        return None;
    };
    let lot = LotId {
        tournament: TournamentId(tournament.parse().ok()?),
        number: LotNumber(number.parse().ok()?),
    };
    Some(Lease { lot, attempt: Attempt(attempt.parse().ok()?) })
}

/// Reads a report, or returns why the file is invalid.
fn load(lease: Lease, path: &Path) -> Result<v1::Report, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let verify = || {
        let (hash, message) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<HASH_LEN>()?;
        (blake3::hash(message) == *hash).then_some(message)
    };
    let message = verify().ok_or("the file is damaged or not a report")?;
    let report = v1::Report::decode(message).map_err(|error| error.to_string())?;
    let own_lease = report.lease.and_then(|message| Lease::try_from(message).ok());
    if own_lease != Some(lease) {
        return Err("the lease of the report differs from the file name".to_owned());
    }
    Ok(report)
}

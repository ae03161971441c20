//! The spool: reports on disk, until the coordinator says what became of them.
//!
//! A report is what an attempt of seconds or minutes has come to, so it outlives its worker: it is
//! on disk before it is sent, under the name of its lease, and is deleted when the coordinator has
//! stored it or needs it no more. One that the coordinator can never store is kept with the reason. A
//! file appears under its name complete or not at all; one that is damaged nevertheless, or that is no
//! report, is set aside for people to look at.
//!
//! ```text
//! SPOOL/name                  what this worker is called, if nothing else was said
//! SPOOL/reports/3_-8_2        the report of lease 3/-8#2
//! SPOOL/refused/3_-8_2        a report that the coordinator refused,
//! SPOOL/refused/3_-8_2.txt    and why
//! SPOOL/aside/                what is no report
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arbiter_proto::ids::{Attempt, EditionId, Lease, LotId, LotNumber};
use arbiter_proto::v1;
use prost::Message as _;
use thiserror::Error;
use tracing::warn;

/// What every report on disk begins with; the hash of the rest follows, then the rest.
const MAGIC: &[u8; 8] = b"ARBREP1\n";

/// How long that hash is, in bytes.
const HASH: usize = blake3::OUT_LEN;

/// How the names of files end that say why a report was refused.
const REASON: &str = "txt";

/// How the names of files begin that are still being written.
const UNFINISHED: &str = ".new-";

/// Why a directory cannot be a spool.
#[derive(Debug, Error)]
pub enum SpoolError {
    /// Another worker has it.
    #[error("{0}: another worker uses this directory; give each its own --spool")]
    Taken(PathBuf),
    /// It cannot be used.
    #[error("{path}: {error}; choose another --spool", path = .path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Reports that nobody has acknowledged yet, in a directory that is this worker's alone.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    waiting: Mutex<BTreeSet<Lease>>,
    _lock: File,
}

impl Spool {
    /// Opens the spool in `directory`, which is made if it is not there.
    pub fn open(directory: &Path) -> Result<Self, SpoolError> {
        let lock = own(directory)?;
        let spool =
            Self { directory: directory.to_owned(), waiting: Mutex::default(), _lock: lock };
        spool.look().map_err(|error| unusable(directory, error))?;
        Ok(spool)
    }

    /// The worker's name where none is given: the machine's, with something that tells apart two
    /// workers of one machine. It stays the same for the same directory.
    pub fn name(&self) -> Result<String, SpoolError> {
        let path = self.directory.join("name");
        let named = || -> io::Result<String> {
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
            store(&self.directory, &path, &[name.as_bytes(), b"\n"])?;
            Ok(name)
        };
        named().map_err(|error| unusable(&path, error))
    }

    /// Says for which database the reports are. Those that wait for another one are set aside: its
    /// leases are only numbers, which may mean something else in this one.
    pub fn belong(&self, database: &str) {
        let path = self.directory.join("database");
        let before = fs::read_to_string(&path).ok();
        if before.as_deref() == Some(database) {
            return;
        }
        if before.is_some() {
            for lease in std::mem::take(&mut *self.waiting()) {
                self.set_aside(&self.path(lease), "it is for another coordinator's database");
            }
        }
        if let Err(error) = store(&self.directory, &path, &[database.as_bytes()]) {
            warn!(file = %path.display(), %error, "cannot be written");
        }
    }

    /// The leases whose reports are here, in order.
    pub fn leases(&self) -> Vec<Lease> {
        self.waiting().iter().copied().collect()
    }

    /// Whether the report of a lease is here.
    pub fn has(&self, lease: Lease) -> bool {
        self.waiting().contains(&lease)
    }

    /// How many reports are here, and how many bytes they take up.
    pub fn size(&self) -> (u64, u64) {
        let leases = self.leases();
        let bytes = leases.iter().filter_map(|lease| fs::metadata(self.path(*lease)).ok());
        (leases.len() as u64, bytes.map(|file| file.len()).sum())
    }

    /// Keeps a report under its lease. When this returns it survives everything but its disk.
    pub fn keep(&self, lease: Lease, report: &v1::Report) -> io::Result<()> {
        let bytes = report.encode_to_vec();
        let hash = blake3::hash(&bytes);
        store(&self.reports(), &self.path(lease), &[MAGIC, hash.as_bytes(), &bytes])?;
        self.waiting().insert(lease);
        Ok(())
    }

    /// The report of a lease, if it is still here and whole; it is set aside if it is not whole.
    pub fn read(&self, lease: Lease) -> Option<v1::Report> {
        let path = self.path(lease);
        match load(lease, &path) {
            Ok(report) => Some(report),
            Err(why) => {
                // Its verdict may have come in between: then there is nothing wrong.
                if self.waiting().remove(&lease) {
                    self.set_aside(&path, &why);
                }
                None
            }
        }
    }

    /// Deletes the report of a lease, of which it is known what became; whether it was here.
    pub fn forget(&self, lease: Lease) -> bool {
        let known = self.waiting().remove(&lease);
        if known && let Err(error) = fs::remove_file(self.path(lease)) {
            // It is sent again by the next worker to come here, and judged again.
            warn!(%lease, %error, "cannot delete a report");
        }
        known
    }

    /// Keeps the report of a lease for people to look at, because the coordinator will never store
    /// it for this reason; where it is now.
    ///
    /// # Errors
    /// If it cannot be moved: then it stays, is sent again, and is refused again.
    pub fn refuse(&self, lease: Lease, reason: &str) -> io::Result<PathBuf> {
        let refused = self.refused();
        fs::create_dir_all(&refused)?;
        let path = refused.join(name_of(lease));
        let told = refused.join(format!("{}.{REASON}", name_of(lease)));
        store(&refused, &told, &[reason.as_bytes(), b"\n"])?;
        fs::rename(self.path(lease), &path)?;
        self.waiting().remove(&lease);
        File::open(self.reports())?.sync_all()?;
        File::open(&refused)?.sync_all()?;
        Ok(path)
    }

    /// How many reports were refused.
    pub fn count_refused(&self) -> u64 {
        let Ok(entries) = fs::read_dir(self.refused()) else { return 0 };
        let is_report = |path: &Path| path.extension().is_none();
        entries.flatten().filter(|entry| is_report(&entry.path())).count() as u64
    }

    fn refused(&self) -> PathBuf {
        self.directory.join("refused")
    }

    /// Finds the reports that are here, and sets aside what is none.
    fn look(&self) -> io::Result<()> {
        fs::create_dir_all(self.reports())?;
        for entry in fs::read_dir(self.reports())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(UNFINISHED) {
                fs::remove_file(&path)?;
                continue;
            }
            let Some(lease) = lease_of(name) else {
                self.set_aside(&path, "no report has such a name");
                continue;
            };
            match load(lease, &path) {
                Ok(_) => drop(self.waiting().insert(lease)),
                Err(why) => self.set_aside(&path, &why),
            }
        }
        Ok(())
    }

    fn set_aside(&self, path: &Path, why: &str) {
        let aside = self.directory.join("aside");
        let moved = || {
            fs::create_dir_all(&aside)?;
            fs::rename(path, aside.join(path.file_name().unwrap_or_default()))
        };
        let moved: io::Result<()> = moved();
        let to = aside.display();
        match moved {
            Ok(()) => warn!(file = %path.display(), why, "a report is set aside in {to}"),
            Err(error) => warn!(file = %path.display(), why, %error, "cannot be set aside: {to}"),
        }
    }

    fn reports(&self) -> PathBuf {
        self.directory.join("reports")
    }

    fn path(&self, lease: Lease) -> PathBuf {
        self.reports().join(name_of(lease))
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<Lease>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a directory this process's own for as long as the file is open.
pub(crate) fn own(directory: &Path) -> Result<File, SpoolError> {
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

/// Writes a file of `directory` so that it is there whole, or not at all, whatever happens.
fn store(directory: &Path, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory)?.sync_all()
}

/// The name of the file for a lease's report.
fn name_of(lease: Lease) -> String {
    let Lease { lot: LotId { edition, number }, attempt: Attempt(attempt) } = lease;
    format!("{edition}_{number}_{attempt}")
}

/// The lease that a file's name stands for.
fn lease_of(name: &str) -> Option<Lease> {
    let [edition, number, attempt] = name.split('_').collect::<Vec<_>>()[..] else { return None };
    let lot = LotId {
        edition: EditionId(edition.parse().ok()?),
        number: LotNumber(number.parse().ok()?),
    };
    Some(Lease { lot, attempt: Attempt(attempt.parse().ok()?) })
}

/// The report in a file, or what is wrong with it.
fn load(lease: Lease, path: &Path) -> Result<v1::Report, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let whole = || {
        let (hash, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<HASH>()?;
        (blake3::hash(rest) == *hash).then_some(rest)
    };
    let rest = whole().ok_or("it is damaged, or something else")?;
    let report = v1::Report::decode(rest).map_err(|error| error.to_string())?;
    let own = report.lease.and_then(|message| Lease::try_from(message).ok()) == Some(lease);
    if own { Ok(report) } else { Err("it is of another lease than its name says".to_owned()) }
}

//! Cache of the bots that a worker plays. Each bundle is fetched once.
//!
//! The worker requests a bundle by its digest, verifies it, and unpacks it into a separate
//! directory. Concurrent requests for a bundle share one download. A bundle that cannot be unpacked
//! or run is cached as a contestant that forfeits, because it would fail on every worker. A failed
//! download is a fault.
//!
//! The directory belongs to this process and starts empty, so files on disk are not verified again.
//! Above a size limit, the cache evicts the least recently used bots that no match is using.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arbiter_proto::assignment::SeatAssignment;
use arbiter_proto::settings::GamePackage;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tracing::info;

use crate::bot::{Bot, Contestant};
use crate::build::{self, BuildOptions, BuildOutcome};
use crate::bundle::{self, BundleError};
use crate::bundle_download::download;
use crate::coordinator_clients::CoordinatorClients;
use crate::fault::Fault;
use crate::package::Package;
use crate::package_cache::{InputsError, PackageCache};
use crate::sandbox::{BotSource, Host, recreate_dir};
use crate::seat::StopSignal;
use crate::spool::{self, SpoolError};

/// Size limit of all bots on disk, in bytes. A sandbox with namespaces stores additional copies.
const MAX_SIZE: u64 = 4 << 30;

/// Cached bots by the digest of their bundles.
#[derive(Debug)]
pub(crate) struct BotCache {
    directory: PathBuf,
    host: Arc<Host>,
    state: Mutex<CacheState>,
    max_size: u64,
    packages: PackageCache,
    _lock: File,
}

#[derive(Debug, Default)]
struct CacheState {
    entries: HashMap<blake3::Hash, CacheEntry>,
    /// Logical clock: number of lookups.
    clock: u64,
}

/// A bot that is cached or being fetched.
#[derive(Debug)]
struct CacheEntry {
    cell: Arc<OnceCell<CachedBot>>,
    /// Logical time of the last use.
    last_used: u64,
}

/// A cached bot.
#[derive(Debug)]
struct CachedBot {
    contestant: Contestant,
    /// The bot's files, deleted on drop.
    files: TempDir,
    /// Size of the files, in bytes.
    size: u64,
}

impl BotCache {
    /// Locks `directory` and creates an empty cache in its subdirectory `bots`.
    pub(crate) fn open(directory: &Path, host: Arc<Host>) -> Result<Self, SpoolError> {
        let lock = spool::lock_directory(directory)?;
        let path = directory.join("bots");
        let directory = recreate_dir(&path)
            .and_then(|()| fs::canonicalize(&path))
            .map_err(|error| spool::unusable(&path, error))?;
        Ok(Self {
            directory,
            host,
            state: Mutex::default(),
            max_size: MAX_SIZE,
            packages: PackageCache::default(),
            _lock: lock,
        })
    }

    /// Returns the contestant of a bundle, and fetches it if necessary. The error is the reason of
    /// the failure, for the organiser.
    pub(crate) async fn get_or_fetch(
        &self,
        clients: &CoordinatorClients,
        digest: blake3::Hash,
    ) -> Result<Contestant, String> {
        let cell = {
            let mut state = self.state();
            state.clock += 1;
            let now = state.clock;
            let entry = state
                .entries
                .entry(digest)
                .or_insert_with(|| CacheEntry { cell: Arc::default(), last_used: now });
            entry.last_used = now;
            Arc::clone(&entry.cell)
        };
        let was_cached = cell.initialized();
        let bot = cell.get_or_try_init(|| self.fetch(clients, digest)).await?;
        let contestant = bot.contestant.clone();
        drop(cell);
        if !was_cached {
            self.evict_in_background();
        }
        Ok(contestant)
    }

    /// Fetches the inputs of a job: the contestants of `programs`, the packed bundle `subject`, and
    /// the game package.
    pub(crate) async fn fetch_inputs(
        &self,
        clients: &CoordinatorClients,
        programs: &[blake3::Hash],
        subject: Option<blake3::Hash>,
        package: Option<GamePackage>,
    ) -> Result<JobInputs, InputsError> {
        let mut inputs = JobInputs::default();
        if let Some(package) = package {
            inputs.package = Some(self.packages.get_or_fetch(clients, &package).await?);
        }
        for digest in programs {
            inputs.bots.insert(*digest, self.get_or_fetch(clients, *digest).await?);
        }
        if let Some(subject) = subject {
            inputs.subject = download(clients, subject).await?;
        }
        Ok(inputs)
    }

    async fn fetch(
        &self,
        clients: &CoordinatorClients,
        digest: blake3::Hash,
    ) -> Result<CachedBot, String> {
        let bytes = download(clients, digest).await?;
        let directory = self.directory.clone();
        let host = Arc::clone(&self.host);
        let task = tokio::task::spawn_blocking(move || unpack(&bytes, digest, &directory, &host));
        let bot = task.await.map_err(|error| error.to_string())??;
        if let Contestant::Unplayable { reason: why, .. } = &bot.contestant {
            info!(%digest, why, "unplayable bundle: the bot forfeits");
        }
        Ok(bot)
    }

    /// Removes the least recently used idle bots until the remaining ones fit the size limit.
    fn evict(&self) -> Vec<CacheEntry> {
        let mut state = self.state();
        let mut evicted = Vec::new();
        loop {
            let entries = state.entries.iter();
            let bots = entries.map(|(digest, entry)| (digest, entry, entry.cell.get()));
            let total: u64 = bots.clone().filter_map(|(.., bot)| bot).map(|bot| bot.size).sum();
            if total <= self.max_size {
                return evicted;
            }
            let idle = bots.filter(|(_, entry, bot)| {
                Arc::strong_count(&entry.cell) == 1 && bot.is_some_and(CachedBot::is_idle)
            });
            let oldest =
                idle.min_by_key(|(_, entry, _)| entry.last_used).map(|(digest, ..)| *digest);
            let Some(oldest) = oldest else { return evicted };
            evicted.extend(state.entries.remove(&oldest));
        }
    }

    /// Evicts bots beyond the size limit.
    fn evict_in_background(&self) {
        let evicted = self.evict();
        let host = Arc::clone(&self.host);
        if !evicted.is_empty() {
            // No lookup finds the evicted bots any more, so removal may run in the background.
            tokio::task::spawn_blocking(move || {
                for bot in evicted.iter().filter_map(|entry| entry.cell.get()) {
                    host.remove_copies(&BotSource::Directory(bot.files.path().to_owned()));
                }
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedBot {
    /// Whether no match uses it. Each match holds a reference.
    fn is_idle(&self) -> bool {
        match &self.contestant {
            Contestant::Bot(bot) => Arc::strong_count(bot) == 1,
            Contestant::Unplayable { .. } | Contestant::Person => true,
        }
    }
}

/// The bots of a job, and its game.
#[derive(Debug, Default)]
pub(crate) struct JobInputs {
    /// Contestants by the digests of their bundles.
    pub(crate) bots: HashMap<blake3::Hash, Contestant>,
    /// Bytes of the bundle under trial. Empty for a lot.
    pub(crate) subject: Vec<u8>,
    /// The game, if it is a package.
    pub(crate) package: Option<Arc<Package>>,
}

impl JobInputs {
    /// The contestant for a seat.
    pub(crate) fn contestant(&self, seat: &SeatAssignment) -> Result<Contestant, Fault> {
        let missing = || Fault::new("cannot seat a bot", "its bundle was not fetched");
        let contestant = self.bots.get(&seat.program).ok_or_else(missing)?;
        Ok(contestant.with_digest(seat.digest))
    }
}

/// Unpacks a bundle into a new directory in `directory`, builds it if necessary, and loads the bot.
fn unpack(
    bytes: &[u8],
    digest: blake3::Hash,
    directory: &Path,
    host: &Host,
) -> Result<CachedBot, String> {
    let to_error = |error: io::Error| format!("{}: {error}", directory.display());
    let files = tempfile::tempdir_in(directory).map_err(to_error)?;
    let unplayable = |why| Contestant::Unplayable { digest: digest.to_string(), reason: why };
    let contestant = match bundle::unpack(bytes, files.path()) {
        Ok(()) => match load_or_build(files.path(), digest, host)? {
            Ok(bot) => Contestant::Bot(Arc::new(bot)),
            Err(why) => unplayable(why),
        },
        Err(BundleError::Invalid(why)) => {
            recreate_dir(files.path()).map_err(to_error)?;
            unplayable(format!("its bundle cannot be unpacked: {why}"))
        }
        Err(error @ BundleError::System { .. }) => return Err(error.to_string()),
    };
    let size = size_of_tree(files.path()).map_err(to_error)?;
    Ok(CachedBot { contestant, files, size })
}

/// Loads the bot in `tree`, and builds it if no trial has built it. The inner error is a text for
/// the bot's author. An interpreter that this machine lacks is no mistake of the author: the trial
/// has found it on another machine.
fn load_or_build(
    tree: &Path,
    digest: blake3::Hash,
    host: &Host,
) -> Result<Result<Bot, String>, String> {
    // Nothing stops this build early. It ends at its time limit at the latest.
    let (stop, _stop_handle) =
        StopSignal::new_pair().map_err(|error| format!("cannot create a pipe: {error}"))?;
    let result = build::build(host, &stop, tree, &BuildOptions::default());
    Ok(match result.map_err(|fault| fault.to_string())? {
        Ok(Some(BuildOutcome { failure: Some(why), .. })) => Err(why),
        Ok(_) => match Bot::unpacked(tree, digest) {
            Err(error) if error.is_of_machine() => return Err(error.within(tree)),
            loaded => loaded.map_err(|error| error.within(tree)),
        },
        Err(error) => Err(error.within(tree)),
    })
}

/// Total size of the files below a directory, in bytes.
fn size_of_tree(directory: &Path) -> io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = fs::symlink_metadata(entry.path())?;
        total += if metadata.is_dir() { size_of_tree(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Bundle;
    use crate::sandbox::Policy;

    /// A bundle of some kilobytes.
    fn bundle(name: &str) -> Bundle {
        let directory = tempfile::tempdir().unwrap();
        let manifest = format!("name = \"{name}\"\nrun = [\"sh\", \"bot.sh\"]\n");
        fs::write(directory.path().join("bot.toml"), manifest).unwrap();
        fs::write(directory.path().join("bot.sh"), vec![b'#'; 4000]).unwrap();
        Bundle::of(&Bot::load(directory.path()).unwrap()).unwrap()
    }

    #[test]
    fn the_least_recently_used_idle_bots_are_evicted() {
        let directory = tempfile::tempdir().unwrap();
        let host = Arc::new(Host::prepare(Policy::Off).unwrap());
        let mut cache = BotCache::open(directory.path(), host).unwrap();
        cache.max_size = 10_000;
        let mut bots_in_use = Vec::new();
        let mut paths = Vec::new();
        for (last_used, name) in (0..).zip(["one", "two", "three", "four"]) {
            let bundle = bundle(name);
            let bot =
                unpack(bundle.bytes(), bundle.digest(), &cache.directory, &cache.host).unwrap();
            if name == "one" {
                bots_in_use.push(bot.contestant.clone());
            }
            paths.push(bot.files.path().to_owned());
            let entry = CacheEntry { cell: Arc::new(OnceCell::from(bot)), last_used };
            cache.state().entries.insert(bundle.digest(), entry);
        }
        assert_eq!(cache.evict().len(), 2);
        let exist: Vec<_> = paths.iter().map(|path| path.exists()).collect();
        assert_eq!(exist, [true, false, false, true]);
        cache.max_size = 0;
        assert_eq!(cache.evict().len(), 1, "the other bot is in use");
        bots_in_use.clear();
        assert_eq!(cache.evict().len(), 1);
        assert!(paths.iter().all(|path| !path.exists()));
    }
}

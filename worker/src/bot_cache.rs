//! The library: the bots that a worker plays, each fetched once.
//!
//! A bundle is asked for by its digest, checked against it, and unpacked into a directory of its
//! own; those who want the same bundle at the same time wait for one who fetches it. A bundle that
//! cannot be unpacked or run is kept all the same, as a contestant that forfeits: that is its
//! author's fault, on every worker. A bundle that cannot be had is a fault of ours.
//!
//! What is on disk is this process's alone and begins empty: it is never asked whether somebody
//! has changed it since. Above a size, bots that nobody plays are given up, the longest unused
//! first.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arbiter_proto::assignment::SeatAssignment;
use arbiter_proto::v1::FetchBundleRequest;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tonic::{Code, Status};
use tracing::{info, warn};

use crate::backoff::{self, Backoff};
use crate::bot::{Bot, Contestant};
use crate::build::{self, Built, Rules};
use crate::bundle::{self, BundleError, MOST_BUNDLE};
use crate::coordinator_clients::Callers;
use crate::fault::Fault;
use crate::sandbox::{BotSource, Host, recreate_dir};
use crate::seat::Stop;
use crate::spool::{self, SpoolError};

/// What all bots together may take up on disk, in bytes; a sandbox with walls has copies besides.
const ROOM: u64 = 4 << 30;

/// How often a bundle is asked for before the attempt that wants it has failed.
const TRIES: u32 = 8;

/// The bots of a worker.
#[derive(Debug)]
pub(crate) struct Library {
    directory: PathBuf,
    host: Arc<Host>,
    shelf: Mutex<Shelf>,
    room: u64,
    _lock: File,
}

#[derive(Debug, Default)]
struct Shelf {
    copies: HashMap<blake3::Hash, Copy>,
    /// How often something was taken out so far.
    taken: u64,
}

/// A bot that is here, or on its way.
#[derive(Debug)]
struct Copy {
    cell: Arc<OnceCell<Kept>>,
    /// When it was last taken out.
    taken: u64,
}

/// A bot that is here.
#[derive(Debug)]
struct Kept {
    contestant: Contestant,
    /// Its files, which go when this goes.
    files: TempDir,
    /// What it takes up on disk, in bytes.
    size: u64,
}

impl Library {
    /// An empty library in `directory`, of which the folder `bots` is its own.
    ///
    /// # Errors
    /// If another worker uses the directory, or it cannot be written.
    pub(crate) fn open(directory: &Path, host: Arc<Host>) -> Result<Self, SpoolError> {
        let lock = spool::own(directory)?;
        let directory = directory.join("bots");
        let made = recreate_dir(&directory).and_then(|()| fs::canonicalize(&directory));
        let directory = made.map_err(|error| spool::unusable(&directory, error))?;
        Ok(Self { directory, host, shelf: Mutex::default(), room: ROOM, _lock: lock })
    }

    /// The contestant whose bundle has this digest, fetched if it is not here.
    /// The error says why it cannot be had, for the organiser.
    pub(crate) async fn take(
        &self,
        callers: &Callers,
        digest: blake3::Hash,
    ) -> Result<Contestant, String> {
        let cell = {
            let mut shelf = self.shelf();
            shelf.taken += 1;
            let taken = shelf.taken;
            let copy = shelf.copies.entry(digest);
            let copy = copy.or_insert_with(|| Copy { cell: Arc::default(), taken });
            copy.taken = taken;
            Arc::clone(&copy.cell)
        };
        let fetched = cell.initialized();
        let kept = cell.get_or_try_init(|| self.fetch(callers, digest)).await?;
        let contestant = kept.contestant.clone();
        drop(cell);
        if !fetched {
            self.tidy();
        }
        Ok(contestant)
    }

    /// What a job takes: the contestants with these bundles, and the bundle of `subject` as it is.
    /// The error says why something of it cannot be had, for the organiser.
    pub(crate) async fn supply(
        &self,
        callers: &Callers,
        programs: &[blake3::Hash],
        subject: Option<blake3::Hash>,
    ) -> Result<Supplies, String> {
        let mut supplies = Supplies::default();
        for digest in programs {
            supplies.bots.insert(*digest, self.take(callers, *digest).await?);
        }
        if let Some(subject) = subject {
            supplies.subject = download(callers, subject).await?;
        }
        Ok(supplies)
    }

    async fn fetch(&self, callers: &Callers, digest: blake3::Hash) -> Result<Kept, String> {
        let bytes = download(callers, digest).await?;
        let (directory, host) = (self.directory.clone(), Arc::clone(&self.host));
        let unpacked =
            tokio::task::spawn_blocking(move || unpack(&bytes, digest, &directory, &host));
        let kept = unpacked.await.map_err(|error| error.to_string())??;
        if let Contestant::Unfit { why, .. } = &kept.contestant {
            info!(%digest, why, "a bundle that cannot play: it forfeits");
        }
        Ok(kept)
    }

    /// Takes out what has not been used for longest, as long as there is too much.
    fn surplus(&self) -> Vec<Copy> {
        let mut shelf = self.shelf();
        let mut surplus = Vec::new();
        loop {
            let here = shelf.copies.iter();
            let sizes = here.map(|(digest, copy)| (digest, copy, copy.cell.get()));
            let total: u64 =
                sizes.clone().filter_map(|(.., kept)| kept).map(|kept| kept.size).sum();
            if total <= self.room {
                return surplus;
            }
            let idle = sizes.filter(|(_, copy, kept)| {
                Arc::strong_count(&copy.cell) == 1 && kept.is_some_and(Kept::is_idle)
            });
            let oldest = idle.min_by_key(|(_, copy, _)| copy.taken).map(|(digest, ..)| *digest);
            let Some(oldest) = oldest else { return surplus };
            surplus.extend(shelf.copies.remove(&oldest));
        }
    }

    /// Makes room for what came.
    fn tidy(&self) {
        let (surplus, host) = (self.surplus(), Arc::clone(&self.host));
        if !surplus.is_empty() {
            // Nobody waits for it: what was taken out has no name any more.
            tokio::task::spawn_blocking(move || {
                for kept in surplus.iter().filter_map(|copy| copy.cell.get()) {
                    host.remove_copies(&BotSource::Directory(kept.files.path().to_owned()));
                }
            });
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Whether nobody plays it: all who do hold it.
    fn is_idle(&self) -> bool {
        match &self.contestant {
            Contestant::Bot(bot) => Arc::strong_count(bot) == 1,
            Contestant::Unfit { .. } | Contestant::Person => true,
        }
    }
}

/// What it takes to do a job.
#[derive(Debug, Default)]
pub(crate) struct Supplies {
    /// The contestants by the digests of the bundles that are run.
    pub(crate) bots: HashMap<blake3::Hash, Contestant>,
    /// The bundle that is to be tried, in a trial.
    pub(crate) subject: Vec<u8>,
}

impl Supplies {
    /// Who is to take a seat.
    pub(crate) fn contestant(&self, seat: &SeatAssignment) -> Result<Contestant, Fault> {
        let found = self.bots.get(&seat.program);
        let found =
            found.ok_or_else(|| Fault::new("cannot seat a bot", "its bundle is not here"))?;
        Ok(found.known_as(seat.digest))
    }
}

/// The bundle with this digest, asked for again and again where that may help.
async fn download(callers: &Callers, digest: blake3::Hash) -> Result<Vec<u8>, String> {
    let mut backoff = Backoff::new(&digest.to_string(), backoff::LEAST, backoff::MOST);
    for attempt in 1.. {
        match pieces(callers, digest).await {
            Ok(bytes) if bytes.len() > MOST_BUNDLE || blake3::hash(&bytes) == digest => {
                return Ok(bytes);
            }
            Ok(bytes) => {
                let found = blake3::hash(&bytes);
                return Err(format!("bundle {digest}: what came has the digest {found}"));
            }
            Err(status) if attempt >= TRIES || is_final(&status) => {
                return Err(format!("bundle {digest}: {}", status.message()));
            }
            Err(status) => {
                warn!(%digest, cause = status.message(), "cannot fetch a bundle; trying again");
                tokio::time::sleep(backoff.next()).await;
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// Whether asking again is useless.
fn is_final(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::NotFound
            | Code::InvalidArgument
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::Unimplemented
    )
}

/// A bundle as it comes; no more of it than what shows that it is too large.
async fn pieces(callers: &Callers, digest: blake3::Hash) -> Result<Vec<u8>, Status> {
    let request = FetchBundleRequest { digest: digest.as_bytes().to_vec() };
    let mut stream = callers.current().fetch_bundle(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(piece) = stream.message().await? {
        bytes.extend_from_slice(&piece.bytes);
        if bytes.len() > MOST_BUNDLE {
            break;
        }
    }
    Ok(bytes)
}

/// Unpacks a bundle into a directory of its own in `directory`, builds what is to be built, and
/// sees what it is.
fn unpack(
    bytes: &[u8],
    digest: blake3::Hash,
    directory: &Path,
    host: &Host,
) -> Result<Kept, String> {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    let files = tempfile::tempdir_in(directory).map_err(failed)?;
    let unfit = |why| Contestant::Unfit { digest: digest.to_string(), why };
    let contestant = match bundle::unpack(bytes, files.path()) {
        Ok(()) => match built(files.path(), digest, host)? {
            Ok(bot) => Contestant::Bot(Arc::new(bot)),
            Err(why) => unfit(why),
        },
        Err(BundleError::Unfit(why)) => {
            recreate_dir(files.path()).map_err(failed)?;
            unfit(format!("its bundle cannot be unpacked: {why}"))
        }
        Err(error @ BundleError::System { .. }) => return Err(error.to_string()),
    };
    let size = size(files.path()).map_err(failed)?;
    Ok(Kept { contestant, files, size })
}

/// The bot whose files are in `tree`, built if that was not done in a trial; or why there is none,
/// for its author.
fn built(tree: &Path, digest: blake3::Hash, host: &Host) -> Result<Result<Bot, String>, String> {
    // Its end is the end of the build's time: nobody waits for it any longer than that.
    let (stop, _cord) =
        Stop::with_cord().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let built = build::build(host, &stop, tree, &Rules::default());
    Ok(match built.map_err(|fault| fault.to_string())? {
        Ok(Some(Built { failure: Some(why), .. })) => Err(why),
        Ok(_) => Bot::unpacked(tree, digest).map_err(|error| error.within(tree)),
        Err(error) => Err(error.within(tree)),
    })
}

/// What the files in a directory hold, in bytes.
fn size(directory: &Path) -> io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = fs::symlink_metadata(entry.path())?;
        total += if found.is_dir() { size(&entry.path())? } else { found.len() };
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
    fn the_longest_unused_go_first_and_what_is_played_stays() {
        let directory = tempfile::tempdir().unwrap();
        let host = Arc::new(Host::prepare(Policy::Off).unwrap());
        let mut library = Library::open(directory.path(), host).unwrap();
        library.room = 10_000;
        let mut played = Vec::new();
        let mut places = Vec::new();
        for (taken, name) in (0..).zip(["one", "two", "three", "four"]) {
            let bundle = bundle(name);
            let kept =
                unpack(bundle.bytes(), bundle.digest(), &library.directory, &library.host).unwrap();
            if name == "one" {
                played.push(kept.contestant.clone());
            }
            places.push(kept.files.path().to_owned());
            let copy = Copy { cell: Arc::new(OnceCell::from(kept)), taken };
            library.shelf().copies.insert(bundle.digest(), copy);
        }
        assert_eq!(library.surplus().len(), 2);
        let there: Vec<_> = places.iter().map(|place| place.exists()).collect();
        assert_eq!(there, [true, false, false, true]);
        library.room = 0;
        assert_eq!(library.surplus().len(), 1, "one is being played");
        played.clear();
        assert_eq!(library.surplus().len(), 1);
        assert!(places.iter().all(|place| !place.exists()));
    }
}

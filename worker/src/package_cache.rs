//! Cache of the game packages that a worker plays. Each package is fetched once, also one
//! that cannot be played on any machine.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arbiter_proto::settings::{GamePackage, HexDigest};
use arbiter_proto::v1;
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::bundle_download::download;
use crate::coordinator_clients::CoordinatorClients;
use crate::fault::Fault;
use crate::package::{Package, PackageError};

/// Maximum number of packages in the cache. Those that are being played stay until their end.
const MAX_PACKAGES: usize = 16;

/// Why the inputs of a job are missing. The texts are for the organiser.
#[derive(Debug, Error)]
pub(crate) enum InputsError {
    /// They could not be fetched, or this machine cannot store or run them.
    #[error("{0}")]
    Fetch(String),
    /// The game package cannot be played on any machine.
    #[error("{}", Fault::Rules(.0.clone()))]
    Rules(String),
}

impl InputsError {
    pub(crate) fn kind(&self) -> v1::FaultKind {
        match self {
            Self::Fetch(_) => v1::FaultKind::Inputs,
            Self::Rules(_) => v1::FaultKind::Rules,
        }
    }
}

impl From<String> for InputsError {
    fn from(cause: String) -> Self {
        Self::Fetch(cause)
    }
}

/// A package, or why it cannot be played on any machine.
type Loaded = Result<Arc<Package>, String>;
type Cell = Arc<OnceCell<Loaded>>;

/// The packages that were used last, the newest at the end.
#[derive(Debug, Default)]
pub(crate) struct PackageCache(Mutex<Vec<(HexDigest, Cell)>>);

impl PackageCache {
    /// The package of a job, fetched if necessary.
    pub(crate) async fn get_or_fetch(
        &self,
        clients: &CoordinatorClients,
        source: &GamePackage,
    ) -> Result<Arc<Package>, InputsError> {
        let cell = self.cell(source.bundle);
        let loaded = cell.get_or_try_init(|| fetch(clients, source)).await?;
        let package = loaded.as_ref().map_err(|cause| InputsError::Rules(cause.clone()))?;
        let digest = &package.digest;
        // The organiser's program says which files decide a match; this worker saw them.
        if *digest != source.digest.to_string() {
            let cause = format!("the game package has the digest {digest}, not {}", source.digest);
            return Err(InputsError::Rules(cause));
        }
        Ok(Arc::clone(package))
    }

    /// The entry of a bundle, which becomes the newest one.
    fn cell(&self, bundle: HexDigest) -> Cell {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.iter().position(|(other, _)| *other == bundle);
        let entry = found.map_or_else(|| (bundle, Cell::default()), |index| entries.remove(index));
        let cell = Arc::clone(&entry.1);
        entries.push(entry);
        if entries.len() > MAX_PACKAGES {
            entries.remove(0);
        }
        cell
    }
}

async fn fetch(clients: &CoordinatorClients, source: &GamePackage) -> Result<Loaded, String> {
    let bytes = download(clients, source.bundle.0).await?;
    let unpacking =
        tokio::task::spawn_blocking(move || Package::unpack(Path::new("game package"), &bytes));
    let package = unpacking.await.map_err(|error| error.to_string())?;
    match package {
        Ok(package) => Ok(Ok(Arc::new(package))),
        Err(PackageError::Invalid(error)) => Ok(Err(error.to_string())),
        Err(PackageError::System(error)) => Err(error.to_string()),
    }
}

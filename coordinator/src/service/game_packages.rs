//! Game packages of tournaments: stores and replaces them, and hands them out.

use std::fs::File;
use std::io::Seek as _;

use arbiter_games::{Game, Games};
use arbiter_packages::{Descriptor, PackageFiles};
use arbiter_proto::convert::bytes32;
use arbiter_proto::ids::EditionId;
use arbiter_proto::settings::{GamePackage, HexDigest};
use arbiter_proto::v1::{BundlePiece, GetPackageRequest, PackageUpload, Tournament};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};

use super::received_bundle::{MAX_BUNDLE, ReceivedBundle, receive};
use super::{Caller, Result, Service, ServiceError, change};
use crate::access::Role;
use crate::cache::Cache;
use crate::db::{editions, packages, tournaments, versions};
use crate::game_package;
use crate::tournament::TournamentFile;
use crate::tournament::lifecycle;

/// Maximum size of all inspected packages, in bytes.
const MAX_INSPECTED: usize = 2 * MAX_BUNDLE;
/// A smaller package counts as one of this size, in bytes. So at most 32 files are open.
const MIN_WEIGHT: usize = 4 << 20;

/// A package that an organiser opened in the form of a new tournament, by its digest.
#[derive(Debug)]
pub(super) struct InspectedPackage {
    /// In bytes.
    size: u64,
    /// A temporary file with the packed package.
    file: Mutex<File>,
}

/// The packages that were inspected last. A package stays until a tournament is created with it, or
/// newer ones take its place.
pub(super) fn inspected_packages() -> Cache<[u8; 32], InspectedPackage> {
    Cache::weighted(MAX_INSPECTED, |package| {
        usize::try_from(package.size).unwrap_or(usize::MAX).max(MIN_WEIGHT)
    })
}

impl Service {
    /// Stores the package of a tournament, whose packed files arrive in pieces. Another package
    /// replaces the present one, so that the next edition is played by other rules.
    pub(crate) async fn set_package(
        &self,
        caller: &Caller,
        upload: &PackageUpload,
        pieces: impl Stream<Item = Result<Vec<u8>>>,
    ) -> Result<Tournament> {
        caller.require(Role::Organiser)?;
        self.tournament(&upload.tournament).await?;
        let package: GamePackage = serde_json::from_str(&upload.package)
            .map_err(|error| ServiceError::invalid_argument(format!("the package: {error}")))?;
        let bundle = receive(pieces).await?;
        if bundle.digest != *package.bundle.0.as_bytes() {
            let digest = package.bundle;
            let error = format!("the package has another digest than {digest}; send it again");
            return Err(ServiceError::invalid_argument(error));
        }
        self.store_package(caller, &upload.tournament, &package, bundle).await
    }

    /// Stores the package of a tournament from its packed files alone, like
    /// [`Service::set_package`].
    pub(crate) async fn upload_package(
        &self,
        caller: &Caller,
        tournament: &str,
        pieces: impl Stream<Item = Result<Vec<u8>>>,
    ) -> Result<Tournament> {
        caller.require(Role::Organiser)?;
        self.tournament(tournament).await?;
        let (package, bundle) = self.receive_package(caller, pieces).await?;
        self.store_package(caller, tournament, &package, bundle).await
    }

    /// Reads the descriptor and the digests of a package, whose packed files arrive in pieces. The
    /// files are kept for a new tournament, but not stored.
    pub(crate) async fn inspect_package(
        &self,
        caller: &Caller,
        pieces: impl Stream<Item = Result<Vec<u8>>>,
    ) -> Result<(Game, GamePackage)> {
        caller.require(Role::Organiser)?;
        let (package, bundle) = self.receive_package(caller, pieces).await?;
        let descriptor = Descriptor::parse(&package.descriptor)
            .map_err(|error| ServiceError::invalid_argument(error.to_string()))?;
        let game = game_package::find(self.games(), &descriptor.name, Some(&package));
        let game = game.map_err(|error| ServiceError::invalid_argument(error.to_string()))?;
        let ReceivedBundle { file, size, digest } = bundle;
        self.inspected.insert(digest, InspectedPackage { size, file: Mutex::new(file) });
        Ok((game, package))
    }

    /// Receives a packed package, and reads its descriptor and digests.
    async fn receive_package(
        &self,
        caller: &Caller,
        pieces: impl Stream<Item = Result<Vec<u8>>>,
    ) -> Result<(GamePackage, ReceivedBundle)> {
        let mut bundle = receive(pieces).await?;
        let permit = self.permit(caller).await?;
        let reading = tokio::task::spawn_blocking(move || {
            // The read keeps the permit, even if the request is dropped meanwhile.
            let _permit = permit;
            let files = PackageFiles::read(&bundle.file);
            bundle.file.rewind().map(|()| (files, bundle))
        });
        let read = reading.await.map_err(|_| ServiceError::stopping())?;
        let (files, bundle) = read.map_err(|error| {
            ServiceError::unavailable(format!("the temporary file cannot be read: {error}"))
        })?;
        let files = files.map_err(|error| ServiceError::invalid_argument(error.to_string()))?;
        let digest = HexDigest::try_from(files.digest)
            .map_err(|error| ServiceError::internal(error.to_string()))?;
        let package = GamePackage {
            bundle: HexDigest(bundle.digest.into()),
            digest,
            descriptor: files.descriptor,
        };
        Ok((package, bundle))
    }

    /// Makes a received bundle the package of a tournament.
    async fn store_package(
        &self,
        caller: &Caller,
        tournament: &str,
        package: &GamePackage,
        bundle: ReceivedBundle,
    ) -> Result<Tournament> {
        let principal = caller.require(Role::Organiser)?;
        let row = self.tournament(tournament).await?;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        let row = lifecycle::lock_open(db, row.id).await?;
        let settings = with_package(self.games(), &row, package)?;
        versions::copy_bundle_in(db, &bundle.digest, bundle.size, bundle.file).await?;
        packages::add(&mut *db, row.id, &bundle.digest).await?;
        if settings != row.settings {
            packages::replace_settings(db, row.id, &settings).await?;
            if !editions::of_tournament(&mut *db, row.id).await?.is_empty() {
                tournaments::mark_changed(&mut *db, row.id, self.now()).await?;
            }
        }
        let digests = |settings: &Value| json!({"package": settings["package"]["digest"]});
        let detail = change(digests(&row.settings), digests(&settings));
        self.commit_change(transaction, principal, "tournament package", &row.name, Some(detail))
            .await?;
        self.changes.notify();
        let row = self.tournament(tournament).await?;
        self.tournament_message(row, caller).await
    }

    /// The packed files of a tournament's package. Everybody may play a public game.
    pub(crate) async fn get_package(
        &self,
        _: &Caller,
        GetPackageRequest { tournament, digest }: GetPackageRequest,
    ) -> Result<impl Stream<Item = Result<BundlePiece>> + Send + use<>> {
        let row = self.tournament(&tournament).await?;
        let built_in = || {
            let error =
                format!("the game {} is built in, so {tournament} has no package", row.game);
            ServiceError::failed_precondition(error)
        };
        let package = package_of(&row)?.ok_or_else(built_in)?;
        let bundle = if digest.is_empty() {
            *package.bundle.0.as_bytes()
        } else {
            let wanted = HexDigest(bytes32("digest", &digest)?.into());
            let found = packages::find(&self.pool, row.id, wanted).await?;
            found.ok_or_else(|| ServiceError::missing("game package", wanted))?
        };
        let pieces = self.package_pieces(&row, bundle).await?;
        Ok(ReceiverStream::new(pieces).map(|piece| Ok(BundlePiece { bytes: piece? })))
    }

    /// The pieces of a packed package that a tournament uses or used.
    pub(super) async fn package_pieces(
        &self,
        row: &tournaments::Tournament,
        bundle: [u8; 32],
    ) -> Result<Receiver<Result<Vec<u8>, sqlx::Error>>> {
        let missing = || ServiceError::missing("game package", HexDigest(bundle.into()));
        if !packages::exists(&self.pool, row.id, &bundle).await? {
            return Err(missing());
        }
        self.bundles.stream(&self.pool, bundle).await?.ok_or_else(missing)
    }

    /// Whether a tournament still needs its game package before it can start. None if its game is
    /// built in.
    pub(crate) async fn lacks_package(&self, tournament: &str) -> Result<Option<bool>> {
        let row = self.tournament(tournament).await?;
        if package_of(&row)?.is_none() {
            return Ok(None);
        }
        is_missing(&mut *self.pool.acquire().await?, &row).await.map(Some)
    }

    /// Adds the package of a new tournament, if another tournament has it or an organiser opened it
    /// in the form. Otherwise it is sent later.
    pub(super) async fn add_known_package(
        &self,
        db: &mut PgConnection,
        row: &tournaments::Tournament,
    ) -> Result<()> {
        let Some(package) = package_of(row)? else { return Ok(()) };
        let digest = package.bundle.0.as_bytes();
        // It is forgotten only after another tournament has stored it, so this comes first.
        let inspected = self.inspected.get(digest, None);
        if !packages::is_package(&mut *db, digest).await? {
            let Some(inspected) = inspected else { return Ok(()) };
            // Copies of the file share its position, so it is locked.
            let mut file = inspected.file.lock().await;
            let copy = file.rewind().and_then(|()| file.try_clone());
            let copy = copy.map_err(|error| {
                ServiceError::unavailable(format!("the temporary file cannot be read: {error}"))
            })?;
            versions::copy_bundle_in(&mut *db, digest, inspected.size, copy).await?;
        }
        packages::add(db, row.id, digest).await?;
        Ok(())
    }

    /// Forgets the inspected package of a new tournament, which is stored now.
    pub(super) fn forget_inspected(&self, row: &tournaments::Tournament) -> Result<()> {
        if let Some(package) = package_of(row)? {
            self.inspected.remove(package.bundle.0.as_bytes());
        }
        Ok(())
    }

    /// The built-in games and the game of an edition.
    pub(crate) async fn games_of(&self, edition: EditionId) -> Result<Games> {
        let game = editions::game(&self.pool, self.games(), edition).await?;
        Ok(self.games().with_game(&game))
    }
}

/// The package that the editions of a tournament are played with.
pub(super) fn package_of(row: &tournaments::Tournament) -> Result<Option<GamePackage>> {
    game_package::of_settings(&row.settings)
        .map_err(|error| ServiceError::internal(error.to_string()))
}

/// Whether a tournament has a package that is not stored yet.
async fn is_missing(db: &mut PgConnection, row: &tournaments::Tournament) -> Result<bool> {
    let Some(package) = package_of(row)? else { return Ok(false) };
    Ok(!packages::exists(db, row.id, package.bundle.0.as_bytes()).await?)
}

/// Refuses to open an edition or to try a version before the package of its tournament is stored.
pub(super) async fn check_stored(
    db: &mut PgConnection,
    row: &tournaments::Tournament,
) -> Result<()> {
    if !is_missing(db, row).await? {
        return Ok(());
    }
    Err(ServiceError::failed_precondition(format!(
        "the game package of {} is missing; an organiser sends it with arbiter tournament package \
         {} DIR",
        row.name, row.name
    )))
}

/// The settings of a tournament with another package of its game.
fn with_package(
    games: &Games,
    row: &tournaments::Tournament,
    package: &GamePackage,
) -> Result<Value> {
    if row.settings.get("package").is_none() {
        let error = format!(
            "the tournament {} plays the built-in game {}, not a package",
            row.name, row.game
        );
        return Err(ServiceError::failed_precondition(error));
    }
    let mut settings = row.settings.clone();
    settings["package"] = json!(package);
    let file = TournamentFile::from_json(games, &settings)?;
    Ok(file.to_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_of_inspected_packages_are_open() {
        let inspected = inspected_packages();
        for number in 0..40 {
            let file = Mutex::new(tempfile::tempfile().unwrap());
            inspected.insert([number; 32], InspectedPackage { size: 1, file });
        }
        let is_open = |number: &u8| inspected.get(&[*number; 32], None).is_some();
        assert_eq!((0..40).filter(is_open).collect::<Vec<_>>(), (8..40).collect::<Vec<_>>());
    }
}

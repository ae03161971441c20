//! The text for authors of bots of a tournament's game, and starter kits.
//!
//! The text and the kits of a built-in game are part of the program, those of a game package are in
//! its packed files. Only a few files of a package are read, in memory and within limits
//! ([`PackageFiles`]). Nothing of a package is unpacked or run here.

use std::sync::Arc;

use arbiter_games::Game;
use arbiter_packages::{PackageFiles, Starter};
use arbiter_proto::settings::GamePackage;
use arbiter_proto::v1;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::game_packages::package_of;
use super::piece_reader::PieceReader;
use super::{Caller, PlayConditions, Result, Service, ServiceError};
use crate::cache::Cache;
use crate::db::tournaments::Tournament;
use crate::game_package;

/// Maximum number of cached guides of packages, and of built-in games. One of a package has at most
/// 2 MiB: a kit of at most 256 KiB for each of the seven languages, and the text.
const MAX_CACHED: usize = 16;

/// How to write a bot for the game of a tournament.
#[derive(Debug)]
pub(crate) struct GameGuide {
    /// The game.
    pub(crate) game: Game,
    /// The text and the starter kits.
    pub(crate) content: Arc<GuideContent>,
    /// The conditions of the tournament.
    pub(crate) conditions: PlayConditions,
}

/// The text for authors of bots, and starter kits.
#[derive(Debug)]
pub(crate) struct GuideContent {
    /// How to write a bot, in Markdown. It is not trusted if the game is a package.
    pub(crate) text: String,
    /// A starter kit for each language.
    pub(crate) starters: Vec<Starter>,
}

/// What is read of a package, or why its packed files cannot be read.
type PackageGuide = Result<Arc<GuideContent>>;

/// The guides of built-in games by name, and of packages by the digests of their packed files.
#[derive(Debug)]
pub(super) struct GuideCache {
    built_in: Cache<String, GuideContent>,
    packages: Cache<[u8; 32], OnceCell<PackageGuide>>,
}

impl Default for GuideCache {
    fn default() -> Self {
        Self { built_in: Cache::new(MAX_CACHED), packages: Cache::new(MAX_CACHED) }
    }
}

impl GuideCache {
    /// The guide of a package. If it is not known, it is read after a permit was obtained. Reads of
    /// one package share their result. If the request is dropped, the read continues: it keeps its
    /// permit, and its result is stored. An error of `read` itself is not stored.
    async fn get_or_read<P: Send + 'static>(
        &self,
        bundle: [u8; 32],
        permit: impl Future<Output = Result<P>>,
        read: impl Future<Output = Result<PackageGuide>> + Send + 'static,
    ) -> PackageGuide {
        let guide = self.packages.get_or_insert_with(bundle, OnceCell::new);
        if let Some(guide) = guide.get() {
            return guide.clone();
        }
        let permit = permit.await?;
        let reading = tokio::spawn(async move {
            let _permit = permit;
            guide.get_or_try_init(|| read).await.cloned()
        });
        reading.await.map_err(|_| ServiceError::stopping())??
    }
}

impl Service {
    /// How to write a bot for the game of a tournament.
    pub(crate) async fn game_guide(&self, caller: &Caller, tournament: &str) -> Result<GameGuide> {
        let row = self.tournament(tournament).await?;
        let (game, package) = self.game_and_package(&row)?;
        let conditions = self.play_conditions(&row).await?;
        let content = if let Some(package) = package {
            let bundle = *package.bundle.0.as_bytes();
            let read = self.clone().read_guide(row, bundle);
            self.guides.get_or_read(bundle, self.permit(caller), read).await?
        } else {
            self.guides.built_in.get_or_insert_with(game.name.to_string(), || GuideContent {
                text: game.guide.text.to_owned(),
                starters: Starter::of_game(&game),
            })
        };
        Ok(GameGuide { game, content, conditions })
    }

    /// The game of a tournament.
    pub(crate) async fn game_of(&self, tournament: &str) -> Result<Game> {
        Ok(self.game_and_package(&self.tournament(tournament).await?)?.0)
    }

    /// The title of the game of a tournament.
    pub(crate) fn game_title(&self, tournament: &v1::Tournament) -> String {
        let name = &tournament.game;
        // Settings may be long, so they are parsed only for packages: their title is there.
        self.games().find(name).map_or_else(
            |_| {
                let settings = serde_json::from_str(&tournament.settings).unwrap_or_default();
                self.title_in_settings(name, &settings)
            },
            |game| game.title.to_string(),
        )
    }

    /// The title of the game with this name in a tournament with these settings. If the game cannot
    /// be read, it is the name.
    pub(super) fn title_in_settings(&self, name: &str, settings: &Value) -> String {
        let package = game_package::of_settings(settings).ok().flatten();
        let game = game_package::find(self.games(), name, package.as_ref());
        game.map_or_else(|_| name.to_owned(), |game| game.title.to_string())
    }

    fn game_and_package(&self, row: &Tournament) -> Result<(Game, Option<GamePackage>)> {
        let package = package_of(row)?;
        let game = game_package::find(self.games(), &row.game, package.as_ref())
            .map_err(|error| ServiceError::internal(error.to_string()))?;
        Ok((game, package))
    }

    /// Reads the guide in the package of a tournament. An error of the outer result is one of this
    /// coordinator; the same read may succeed later.
    async fn read_guide(self, row: Tournament, bundle: [u8; 32]) -> Result<PackageGuide> {
        let mut reader = PieceReader::new(self.package_pieces(&row, bundle).await?);
        let reading = tokio::task::spawn_blocking(move || {
            let guide = PackageFiles::read(&mut reader).map(GuideContent::of_package);
            reader.failure.map_or(Ok(guide), Err)
        });
        let guide = reading.await.map_err(|_| ServiceError::stopping())??;
        Ok(guide.map(Arc::new).map_err(|error| {
            ServiceError::failed_precondition(format!("the game package cannot be read: {error}"))
        }))
    }
}

impl GuideContent {
    fn of_package(files: PackageFiles) -> Self {
        let starters = Starter::of_package(&files);
        Self { text: files.bot_md.unwrap_or_default(), starters }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{Semaphore, mpsc, oneshot};

    use super::*;

    const BUNDLE: [u8; 32] = [1; 32];

    fn unreadable() -> ServiceError {
        ServiceError::failed_precondition("not a package")
    }

    #[tokio::test]
    async fn a_read_outlives_its_request_with_its_permit_and_its_result() {
        let cache = Arc::new(GuideCache::default());
        let permits = Arc::new(Semaphore::new(1));
        let (begin, begun) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let request = tokio::spawn({
            let cache = Arc::clone(&cache);
            let permits = Arc::clone(&permits);
            async move {
                let permit = async { Ok(permits.acquire_owned().await.unwrap()) };
                let read = async {
                    begin.send(()).unwrap();
                    ended.await.unwrap();
                    Ok(Err(unreadable()))
                };
                cache.get_or_read(BUNDLE, permit, read).await.map(|_| ())
            }
        });
        begun.await.unwrap();
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert_eq!(permits.available_permits(), 0, "the read keeps its permit");
        end.send(()).unwrap();
        let _permit = permits.acquire().await.unwrap();
        let again = async { panic!("the package was read again") };
        let result = cache.get_or_read(BUNDLE, async { Ok(()) }, again).await;
        assert_eq!(result.unwrap_err(), unreadable(), "failures are cached");
    }

    #[tokio::test]
    async fn errors_of_this_coordinator_are_not_cached() {
        let cache = GuideCache::default();
        let free = || async { Ok(()) };
        let failed = async { Err(ServiceError::stopping()) };
        let result = cache.get_or_read(BUNDLE, free(), failed).await;
        assert_eq!(result.unwrap_err(), ServiceError::stopping());
        let result = cache.get_or_read(BUNDLE, free(), async { Ok(Err(unreadable())) }).await;
        assert_eq!(result.unwrap_err(), unreadable());
    }

    #[test]
    fn a_piece_that_cannot_be_read_is_no_error_of_the_package() {
        let (send, pieces) = mpsc::channel(1);
        send.try_send(Err(sqlx::Error::PoolTimedOut)).unwrap();
        let mut reader = PieceReader::new(pieces);
        assert!(PackageFiles::read(&mut reader).is_err());
        assert!(reader.failure.is_some());
    }
}

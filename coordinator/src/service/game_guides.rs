//! What authors of bots begin with: the text about a tournament's game, and starter kits.
//!
//! The text and the kits of a built-in game are part of the program, those of a game package are in
//! its packed files. Packages come from organisers, and still only a few of their files are read, in
//! memory and within limits ([`PackageFiles`]). Nothing of a package is unpacked or run here.

use std::io::{self, Read};
use std::sync::Arc;

use arbiter_games::Game;
use arbiter_packages::{PackageFiles, Starter};
use tokio::sync::mpsc::Receiver;

use super::game_packages::package_of;
use super::{Caller, Result, Service, ServiceError};
use crate::cache::Cache;
use crate::db::tournaments::Tournament;
use crate::game_package;

/// Maximum size of the cache of what packages contain, in bytes.
const MAX_CACHED: usize = 32 << 20;

/// What authors of bots begin with.
#[derive(Clone, Debug)]
pub(crate) struct GameGuide {
    /// The game.
    pub(crate) game: Game,
    /// How to write a bot, in Markdown. It is not trusted if the game is a package.
    pub(crate) text: String,
    /// A starter kit for each language.
    pub(crate) starters: Vec<Starter>,
}

/// The guides of packages, by the digests of their packed files.
#[derive(Clone, Debug)]
pub(super) struct GuideCache(Cache<[u8; 32], PackageGuide>);

/// The part of a guide that is read from a package.
#[derive(Clone, Debug)]
struct PackageGuide {
    text: String,
    starters: Vec<Starter>,
}

impl Default for GuideCache {
    fn default() -> Self {
        let weigh = |guide: &PackageGuide| {
            guide.text.len() + guide.starters.iter().map(Starter::size).sum::<usize>()
        };
        Self(Cache::weighted(MAX_CACHED, weigh))
    }
}

impl Service {
    /// What authors of bots for a tournament begin with.
    pub(crate) async fn game_guide(&self, caller: &Caller, tournament: &str) -> Result<GameGuide> {
        let row = self.tournament(tournament).await?;
        let package = package_of(&row)?;
        let game = game_package::find(self.games(), &row.game, package.as_ref())
            .map_err(|error| ServiceError::internal(error.to_string()))?;
        let Some(package) = package else {
            let text = game.guide.text.to_owned();
            let starters = Starter::of_game(&game);
            return Ok(GameGuide { game, text, starters });
        };
        let digest = *package.bundle.0.as_bytes();
        let guide = if let Some(guide) = self.guides.0.get(&digest, None) {
            guide
        } else {
            let guide = self.read_guide(caller, &row, digest).await?;
            self.guides.0.insert(digest, guide)
        };
        let PackageGuide { text, starters } = Arc::unwrap_or_clone(guide);
        Ok(GameGuide { game, text, starters })
    }

    /// Reads the guide in the package of a tournament.
    async fn read_guide(
        &self,
        caller: &Caller,
        tournament: &Tournament,
        bundle: [u8; 32],
    ) -> Result<PackageGuide> {
        let _permit = self.permit(caller).await?;
        let reader = PieceReader::new(self.package_pieces(tournament, bundle).await?);
        let reading = tokio::task::spawn_blocking(|| PackageFiles::read(reader));
        let files = reading.await.map_err(|_| ServiceError::stopping())?;
        let files = files.map_err(|error| {
            ServiceError::failed_precondition(format!("the game package cannot be read: {error}"))
        })?;
        let starters = Starter::of_package(&files);
        Ok(PackageGuide { text: files.bot_md.unwrap_or_default(), starters })
    }
}

/// Reads the pieces of a bundle one after the other, on a blocking thread.
struct PieceReader {
    pieces: Receiver<Result<Vec<u8>, sqlx::Error>>,
    current: io::Cursor<Vec<u8>>,
}

impl PieceReader {
    fn new(pieces: Receiver<Result<Vec<u8>, sqlx::Error>>) -> Self {
        Self { pieces, current: io::Cursor::default() }
    }
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.current.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match self.pieces.blocking_recv() {
                Some(piece) => self.current = io::Cursor::new(piece.map_err(io::Error::other)?),
                None => return Ok(0),
            }
        }
    }
}

//! Bundles on their way to workers, piece by piece: of each stream a piece or two are in memory,
//! however large the bundle is and however slowly it is fetched. Streams that need the same piece at
//! about the same time read it once.

use sqlx::{Error, PgPool};
use tokio::sync::{OnceCell, mpsc};

use crate::cache::Cache;
use crate::db::versions;

/// Bytes in a piece.
const PIECE: usize = 256 << 10;
/// Pieces that are kept for other streams: 32 MiB.
const KEPT: usize = 128;
/// Pieces of a stream that wait to be sent.
const AHEAD: usize = 1;

type Digest = [u8; 32];
/// Which piece: of which bundle, and its place there.
type Key = (Digest, usize);

/// Pieces that were read lately, or are being read.
#[derive(Clone, Debug)]
pub(super) struct BundlePieces(Cache<Key, OnceCell<Vec<u8>>>);

impl Default for BundlePieces {
    fn default() -> Self {
        Self(Cache::new(KEPT))
    }
}

impl BundlePieces {
    async fn read(&self, pool: &PgPool, digest: Digest, index: usize) -> Result<Vec<u8>, Error> {
        let piece = self.0.get_or_insert_with((digest, index), OnceCell::new);
        let read = || versions::bundle_piece(pool, &digest, index * PIECE, PIECE);
        piece.get_or_try_init(read).await.cloned()
    }

    /// The pieces of a bundle, in order; nothing if there is no such bundle.
    ///
    /// # Errors
    /// If the database fails. If it does later, that comes in the place of a piece.
    pub(super) async fn stream(
        &self,
        pool: &PgPool,
        digest: Digest,
    ) -> Result<Option<mpsc::Receiver<Result<Vec<u8>, Error>>>, Error> {
        let Some(size) = versions::bundle_size(pool, &digest).await? else { return Ok(None) };
        let (send, pieces) = mpsc::channel(AHEAD);
        let (all, pool) = (self.clone(), pool.clone());
        tokio::spawn(async move {
            for index in 0..size.div_ceil(PIECE) {
                // Not before there is room for it.
                let Ok(place) = send.reserve().await else { return };
                let piece = all.read(&pool, digest, index).await;
                let failed = piece.is_err();
                place.send(piece);
                if failed {
                    return;
                }
            }
        });
        Ok(Some(pieces))
    }
}

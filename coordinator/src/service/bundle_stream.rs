//! Streams bundles to workers. Each stream holds one or two pieces in memory, however large the
//! bundle is and however slow the worker. Streams that need the same piece at about the same time
//! share one read.

use sqlx::{Error, PgPool};
use tokio::sync::{OnceCell, mpsc};

use crate::cache::Cache;
use crate::db::versions;

/// Bytes in a piece.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces in the cache: 32 MiB.
const CACHED_PIECES: usize = 128;
/// Pieces of a stream that wait to be sent.
const MAX_BUFFERED: usize = 1;

type Digest = [u8; 32];
/// A piece: the digest of its bundle, and its index.
type Key = (Digest, usize);

/// A cache of pieces that are being read or were read recently.
#[derive(Clone, Debug)]
pub(super) struct BundlePieces(Cache<Key, OnceCell<Vec<u8>>>);

impl Default for BundlePieces {
    fn default() -> Self {
        Self(Cache::new(CACHED_PIECES))
    }
}

impl BundlePieces {
    async fn read(&self, pool: &PgPool, digest: Digest, index: usize) -> Result<Vec<u8>, Error> {
        let piece = self.0.get_or_insert_with((digest, index), OnceCell::new);
        let read = || versions::bundle_piece(pool, &digest, index * PIECE_BYTES, PIECE_BYTES);
        piece.get_or_try_init(read).await.cloned()
    }

    /// Streams the pieces of a bundle, in order. None if there is no such bundle. An error while
    /// reading takes the place of a piece and ends the stream.
    pub(super) async fn stream(
        &self,
        pool: &PgPool,
        digest: Digest,
    ) -> Result<Option<mpsc::Receiver<Result<Vec<u8>, Error>>>, Error> {
        let Some(size) = versions::bundle_size(pool, &digest).await? else { return Ok(None) };
        let (send, pieces) = mpsc::channel(MAX_BUFFERED);
        let cache = self.clone();
        let pool = pool.clone();
        tokio::spawn(async move {
            for index in 0..size.div_ceil(PIECE_BYTES) {
                // Read a piece only when there is room for it.
                let Ok(permit) = send.reserve().await else { return };
                let piece = cache.read(&pool, digest, index).await;
                let failed = piece.is_err();
                permit.send(piece);
                if failed {
                    return;
                }
            }
        });
        Ok(Some(pieces))
    }
}

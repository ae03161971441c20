//! Streams bundles to workers. Each stream has at most two pieces in memory, even if the bundle is
//! large or the worker is slow. Streams that need the same piece at about the same time share one
//! read.

use sqlx::{Error, PgPool};
use tokio::sync::{OnceCell, mpsc};

use crate::cache::Cache;
use crate::db::versions;

/// The size of a piece, in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum number of pieces in the cache: 32 MiB.
const CACHED_PIECES: usize = 128;
/// Maximum number of pieces of a stream that wait to be sent.
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

    /// Streams the pieces of a bundle, in order. None if there is no such bundle. If a piece cannot
    /// be read, the stream ends with the error.
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
                // A piece is read only when the channel has room for it.
                let Ok(permit) = send.reserve().await else { return };
                let piece = cache.read(&pool, digest, index).await;
                let has_failed = piece.is_err();
                permit.send(piece);
                if has_failed {
                    return;
                }
            }
        });
        Ok(Some(pieces))
    }
}

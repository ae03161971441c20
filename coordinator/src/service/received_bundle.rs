//! Receives bundles: submissions and game packages.
//!
//! The coordinator does not interpret submissions. It receives a bundle in pieces, writes them to a
//! temporary file, and copies the file to the database. It later sends the bundle to workers. This
//! crate cannot unpack archives: submissions are unpacked only in a worker's sandbox. Of a game
//! package, which an organiser brings, it reads the texts in memory (`game_guides`).

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::pin::pin;

use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt as _};

use super::{Result, ServiceError};

/// The largest bundle, in bytes.
pub(crate) const MAX_BUNDLE: usize = 64 << 20;
/// Maximum number of pieces of a bundle that wait to be written.
const MAX_BUFFERED: usize = 4;

/// A received bundle.
pub(super) struct ReceivedBundle {
    pub(super) file: File,
    /// In bytes.
    pub(super) size: u64,
    /// BLAKE3 of the contents.
    pub(super) digest: [u8; 32],
}

/// Receives a bundle into a temporary file without a name.
pub(super) async fn receive(
    pieces: impl Stream<Item = Result<Vec<u8>, ServiceError>>,
) -> Result<ReceivedBundle> {
    let (sender, receiver) = mpsc::channel(MAX_BUFFERED);
    let writer = tokio::task::spawn_blocking(move || write(receiver));
    let mut pieces = pin!(pieces);
    let mut size = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        size += piece.len();
        if size > MAX_BUNDLE {
            let error = format!(
                "the bundle is larger than {} MiB; remove files that are not needed",
                MAX_BUNDLE >> 20
            );
            return Err(ServiceError::resource_exhausted(error));
        }
        if sender.send(piece).await.is_err() {
            // The writer has failed. Its error is returned below.
            break;
        }
    }
    drop(sender);
    if size == 0 {
        return Err(ServiceError::invalid_argument(
            "the file is empty: choose the bot's source file or its archive",
        ));
    }
    let result = writer.await.map_err(io::Error::other).flatten();
    let (file, digest) = result.map_err(|error| {
        tracing::error!(%error, "cannot write a bundle to a temporary file");
        ServiceError::unavailable(
            "the coordinator cannot write the bundle to a temporary file; try again later",
        )
    })?;
    Ok(ReceivedBundle { file, size: size as u64, digest })
}

/// Writes pieces to a temporary file. Returns the rewound file and the digest of its contents.
fn write(mut pieces: mpsc::Receiver<Vec<u8>>) -> io::Result<(File, [u8; 32])> {
    let mut file = tempfile::tempfile()?;
    let mut hasher = blake3::Hasher::new();
    while let Some(piece) = pieces.blocking_recv() {
        hasher.update(&piece);
        file.write_all(&piece)?;
    }
    file.rewind()?;
    Ok((file, hasher.finalize().into()))
}

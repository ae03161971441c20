//! Downloads bundles: bots and game packages.

use arbiter_proto::v1::{BundlePiece, FetchBundleRequest};
use tonic::{Code, Status, Streaming};
use tracing::warn;

use crate::backoff::{self, Backoff};
use crate::bundle::MAX_BUNDLE;
use crate::coordinator_clients::CoordinatorClients;

/// Number of download attempts before the job fails.
const MAX_ATTEMPTS: u32 = 8;

/// Downloads a bundle, with retries.
pub(crate) async fn download(
    clients: &CoordinatorClients,
    digest: blake3::Hash,
) -> Result<Vec<u8>, String> {
    let mut backoff =
        Backoff::new(&digest.to_string(), backoff::MIN_RECONNECT, backoff::MAX_RECONNECT);
    for attempt in 1.. {
        match download_once(clients, digest).await {
            Ok(bytes) if bytes.len() > MAX_BUNDLE || blake3::hash(&bytes) == digest => {
                return Ok(bytes);
            }
            Ok(bytes) => {
                let actual = blake3::hash(&bytes);
                return Err(format!("bundle {digest}: the download has the digest {actual}"));
            }
            Err(status) if attempt >= MAX_ATTEMPTS || is_final(&status) => {
                return Err(format!("bundle {digest}: {}", status.message()));
            }
            Err(status) => {
                warn!(%digest, cause = status.message(), "cannot fetch a bundle; retrying");
                tokio::time::sleep(backoff.next()).await;
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// Whether a retry would fail the same way.
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

/// Downloads a bundle once.
async fn download_once(
    clients: &CoordinatorClients,
    digest: blake3::Hash,
) -> Result<Vec<u8>, Status> {
    let request = FetchBundleRequest { digest: digest.as_bytes().to_vec() };
    receive_bundle(clients.current().fetch_bundle(request).await?.into_inner()).await
}

/// Receives a bundle. Stops at the first piece beyond the size limit: the result is then longer
/// than [`MAX_BUNDLE`], and cannot be unpacked.
pub async fn receive_bundle(mut pieces: Streaming<BundlePiece>) -> Result<Vec<u8>, Status> {
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.message().await? {
        bytes.extend_from_slice(&piece.bytes);
        if bytes.len() > MAX_BUNDLE {
            break;
        }
    }
    Ok(bytes)
}

//! Uploads bundles in pieces, with a progress bar: submissions and game packages.

use std::iter;

use arbiter_worker::bundle::Bundle;
use indicatif::ProgressBar;
use tokio_stream::Stream;

use crate::play::progress;

/// Size of a piece in one message, in bytes.
const PIECE: usize = 256 << 10;

/// The requests that upload a bundle: `first`, and one for each piece. The bar shows how many
/// pieces were sent.
pub(super) fn requests<R: Send + 'static, F: Fn(Vec<u8>) -> R>(
    bundle: &Bundle,
    first: R,
    request: F,
) -> (impl Stream<Item = R> + Send + 'static + use<R, F>, ProgressBar) {
    let pieces = bundle.bytes().chunks(PIECE);
    let bar = progress::bar(pieces.len(), "pieces sent");
    let requests: Vec<_> =
        iter::once(first).chain(pieces.map(|piece| request(piece.to_vec()))).collect();
    let sent = bar.clone();
    let requests = iter::zip(0.., requests).map(move |(pieces, request)| {
        sent.set_position(pieces);
        request
    });
    (tokio_stream::iter(requests), bar)
}

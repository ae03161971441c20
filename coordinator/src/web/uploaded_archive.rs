//! Refuses an uploaded archive that cannot be a bot while it arrives, so that its author hears at
//! once what is missing, and not from a trial.
//!
//! Nothing is unpacked here: that is for the sandbox of a worker. Archives of tar and zip have the
//! names of their files uncompressed. Without the bytes of the name of a manifest there is no such
//! file. With them there may be one, and the trial finds out. The names in a compressed tar archive
//! are for the trial, too.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_stream::Stream;

use crate::service::ServiceError;

/// The pieces of a bundle.
pub(super) type BundlePieces<'a> =
    Pin<Box<dyn Stream<Item = Result<Vec<u8>, ServiceError>> + Send + 'a>>;

/// The endings of the names of archives.
pub(super) const ENDINGS: [&str; 6] = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst", ".zst"];

/// The first bytes of compressed archives: gzip and Zstandard.
const COMPRESSED_MARKS: [&[u8]; 2] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"];
/// The first bytes of a zip archive.
const ZIP_MARK: &[u8] = b"PK\x03\x04";
/// Offset and signature in the first header of a tar archive.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");
/// The number of bytes at the beginning of a file that tell its format.
pub(super) const HEAD_BYTES: usize = TAR_MARK.0 + TAR_MARK.1.len();

/// The names of manifests: Arbiter's, and that of KotH challenges.
const MANIFESTS: [&[u8]; 2] = [b"bot.toml", b"meta"];
/// The length of the longest of them.
const LONGEST: usize = 8;

/// What an uploaded file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UploadedFile {
    /// An archive with readable names.
    NamedArchive,
    /// An archive that hides its names.
    CompressedArchive,
    /// A file that is named like an archive and is none.
    Misnamed,
    /// Another file.
    Other,
}

impl UploadedFile {
    /// What a file of this name is that begins with these bytes: [`HEAD_BYTES`], or all of it.
    pub(super) fn detect(file: &str, head: &[u8]) -> Self {
        let is_tar = head.get(TAR_MARK.0..).is_some_and(|rest| rest.starts_with(TAR_MARK.1));
        let name = file.to_lowercase();
        if is_tar || head.starts_with(ZIP_MARK) {
            Self::NamedArchive
        } else if COMPRESSED_MARKS.iter().any(|mark| head.starts_with(mark)) {
            Self::CompressedArchive
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            Self::Misnamed
        } else {
            Self::Other
        }
    }
}

/// The error for a [`UploadedFile::Misnamed`] file.
pub(super) fn not_an_archive(file: &str) -> ServiceError {
    ServiceError::invalid_argument(format!(
        "`{file}` is named like an archive, but it is neither zip nor tar, gzip or Zstandard; pack \
         the bot's folder again, or choose a single source file"
    ))
}

/// The pieces of an archive with readable names. If none of the names can be that of a manifest, an
/// error follows the last piece.
pub(super) struct NamedArchive<'a> {
    pieces: BundlePieces<'a>,
    search: ManifestSearch,
}

impl<'a> NamedArchive<'a> {
    pub(super) fn new(pieces: BundlePieces<'a>) -> Self {
        Self { pieces, search: ManifestSearch::default() }
    }
}

impl Stream for NamedArchive<'_> {
    type Item = Result<Vec<u8>, ServiceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.pieces.as_mut().poll_next(context);
        match &next {
            Poll::Ready(Some(Ok(piece))) => self.search.push(piece),
            // The error is the last item.
            Poll::Ready(Some(Err(_))) => self.search.found = true,
            Poll::Ready(None) if !self.search.found => {
                self.search.found = true;
                return Poll::Ready(Some(Err(ServiceError::invalid_argument(
                    "not a bot: the archive has neither a `bot.toml` nor a `meta` file, so no \
                     worker knows how to start it; add a `bot.toml` with the bot's name and \
                     command to its folder and pack it again, or choose a single source file",
                ))));
            }
            Poll::Ready(None) | Poll::Pending => {}
        }
        next
    }
}

/// Searches pieces of a file for the name of a manifest.
#[derive(Debug, Default)]
struct ManifestSearch {
    found: bool,
    /// The end of the pieces so far, in which a name may begin.
    tail: Vec<u8>,
}

impl ManifestSearch {
    fn push(&mut self, piece: &[u8]) {
        if self.found {
            return;
        }
        self.tail.extend_from_slice(piece);
        self.found = MANIFESTS
            .iter()
            .any(|name| self.tail.windows(name.len()).any(|window| window == *name));
        self.tail.drain(..self.tail.len().saturating_sub(LONGEST - 1));
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;

    #[test]
    fn a_file_is_told_by_its_bytes_and_by_its_name() {
        let tar = [&[b'x'; 257][..], b"ustar\0"].concat();
        for (file, head, expected) in [
            ("a.zip", ZIP_MARK, UploadedFile::NamedArchive),
            ("a", &tar, UploadedFile::NamedArchive),
            ("a.zip", b"\x1f\x8b", UploadedFile::CompressedArchive),
            ("A.ZIP", b"PK", UploadedFile::Misnamed),
            ("a.tar", &tar[..257], UploadedFile::Misnamed),
            ("a.tgz", b"", UploadedFile::Misnamed),
            ("a.py", b"print()", UploadedFile::Other),
        ] {
            assert_eq!(UploadedFile::detect(file, head), expected, "{file}");
        }
    }

    /// The number of pieces that arrive, and whether the last one is an error.
    async fn arrive(pieces: &[&[u8]]) -> (usize, bool) {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(piece.to_vec())).collect();
        let archive = NamedArchive::new(Box::pin(tokio_stream::iter(pieces)));
        let arrived: Vec<_> = archive.collect().await;
        (arrived.len(), arrived.last().is_some_and(Result::is_err))
    }

    #[tokio::test]
    async fn an_archive_without_a_manifest_ends_with_an_error() {
        assert_eq!(arrive(&[b"x/bot.toml"]).await, (1, false));
        assert_eq!(arrive(&[b"x/bot", b".to", b"ml and more", b"last"]).await, (4, false));
        assert_eq!(arrive(&[b"meta"]).await, (1, false));
        assert_eq!(arrive(&[b"x/bot.", b"tom"]).await, (3, true));
        assert_eq!(arrive(&[]).await, (1, true));
    }
}

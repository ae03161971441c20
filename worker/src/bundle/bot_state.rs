//! Bot state: the files that a bot saves for its next match.
//!
//! State is packed like a bundle, but with smaller limits and without links. It is never truncated:
//! a bot whose files exceed a limit starts its next match without files, on every machine.

use std::path::Path;

use super::archive::{self, ArchiveLimits};
use super::{BundleError, extract};

/// Maximum size of packed state, in bytes.
pub const MAX_STATE: usize = 1 << 20;

/// Maximum size of unpacked state, in bytes as a tar archive.
pub const MAX_STATE_UNPACKED: u64 = 8 << 20;

/// Limits of state.
const LIMITS: ArchiveLimits =
    ArchiveLimits { packed: MAX_STATE, unpacked: MAX_STATE_UNPACKED, entries: 4096, links: false };

/// Zstandard level of state: it is packed after each match and read once.
const ZSTD_LEVEL: i32 = 3;

/// Packs the files in `directory`. Empty bytes if there are none.
///
/// # Errors
/// [`BundleError::Invalid`] if they exceed a limit.
pub fn pack_state(directory: &Path) -> Result<Vec<u8>, BundleError> {
    let entries = archive::list_entries(directory, &LIMITS, &[])?;
    if entries.is_empty() { Ok(Vec::new()) } else { archive::write(&entries, ZSTD_LEVEL, &LIMITS) }
}

/// Unpacks state into the empty directory `directory`.
pub fn unpack_state(bytes: &[u8], directory: &Path) -> Result<(), BundleError> {
    if bytes.is_empty() { Ok(()) } else { extract::extract(bytes, directory, &LIMITS) }
}

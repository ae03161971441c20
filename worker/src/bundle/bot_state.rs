//! The files that a bot left, on their way to its next match.
//!
//! They travel as an archive of the same form as a bundle, without links and far smaller. There is
//! no such thing as half a state: a bot that leaves more than fits is left with nothing, and begins
//! its next match as if it were the first. That is its own loss, the same on every machine.

use std::path::Path;

use super::archive::{self, Caps};
use super::{BundleError, extract};

/// The most that a bot may leave, in bytes as it travels.
pub const MAX_STATE: usize = 1 << 20;

/// The most that a bot may leave, in bytes as a tar archive.
pub const MAX_STATE_UNPACKED: u64 = 8 << 20;

/// What is left may be.
const CAPS: Caps =
    Caps { packed: MAX_STATE, unpacked: MAX_STATE_UNPACKED, entries: 4096, links: false };

/// How hard it is compressed: once a match, and read once.
const EFFORT: i32 = 3;

/// Packs what is in `directory`; nothing if nothing is.
///
/// # Errors
/// [`BundleError::Invalid`] if it does not fit: then none of it is kept.
pub fn pack_state(directory: &Path) -> Result<Vec<u8>, BundleError> {
    let items = archive::gather(directory, &CAPS, &[])?;
    if items.is_empty() { Ok(Vec::new()) } else { archive::write(&items, EFFORT, &CAPS) }
}

/// Unpacks what was left into `directory`, which is there and empty.
pub fn unpack_state(bytes: &[u8], directory: &Path) -> Result<(), BundleError> {
    if bytes.is_empty() { Ok(()) } else { extract::extract(bytes, directory, &CAPS) }
}

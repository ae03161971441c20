//! Random seeds for runs without `--seed`.

use std::fs::File;
use std::io::Read as _;

use crate::failure::Failure;

/// Draws a random seed text from the system.
pub(crate) fn draw_seed() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Failure::Negative(format!("/dev/urandom: {error}; give a --seed")))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

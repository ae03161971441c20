//! The seal of a record: the BLAKE3 hash of every byte before its last line.

use crate::piece_hasher::PieceHasher;

/// Computes a seal from the lines of a record, one after the other.
#[derive(Clone, Debug, Default)]
pub struct SealHasher(PieceHasher);

impl SealHasher {
    /// Adds a line, which is given without its newline.
    pub(crate) fn add_line(&mut self, text: &str) {
        self.0.update(text.as_bytes());
        self.0.update(b"\n");
    }

    /// Adds many lines, each with its newline.
    pub fn add_lines(&mut self, lines: &str) {
        self.0.update(lines.as_bytes());
    }

    /// The seal of the lines so far.
    pub fn seal(&self) -> blake3::Hash {
        self.0.hash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_has_the_newlines() {
        let mut hasher = SealHasher::default();
        hasher.add_line("a");
        hasher.add_lines("b\n\n");
        hasher.add_line("c");
        assert_eq!(hasher.seal(), blake3::hash(b"a\nb\n\nc\n"));
    }
}

//! The seal of a record: the BLAKE3 hash of every byte before its last line.

/// Lines are hashed in pieces of this size, in bytes: to hash many bytes at once takes a quarter of
/// the time.
const PIECE_BYTES: usize = 64 << 10;

/// Computes a seal from the lines of a record, one after the other.
#[derive(Clone, Debug, Default)]
pub struct SealHasher {
    hasher: blake3::Hasher,
    /// Lines that are not hashed yet.
    pending: Vec<u8>,
}

impl SealHasher {
    /// Adds a line, which is given without its newline.
    pub fn add_line(&mut self, text: &str) {
        self.pending.extend_from_slice(text.as_bytes());
        self.pending.push(b'\n');
        if self.pending.len() >= PIECE_BYTES {
            self.hash_pending();
        }
    }

    /// Adds many lines, each with its newline.
    pub fn add_lines(&mut self, lines: &str) {
        self.hash_pending();
        self.hasher.update(lines.as_bytes());
    }

    /// The seal of the lines so far.
    pub fn seal(&mut self) -> blake3::Hash {
        self.hash_pending();
        self.hasher.finalize()
    }

    fn hash_pending(&mut self) {
        self.hasher.update(&self.pending);
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_does_not_depend_on_the_pieces() {
        let lines = ["a", "", "b".repeat(PIECE_BYTES - 4).as_str(), "c", "d"].map(str::to_owned);
        let mut hasher = SealHasher::default();
        let mut text = Vec::new();
        for line in &lines {
            if line == "c" {
                hasher.add_lines("c\n");
            } else {
                hasher.add_line(line);
            }
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
            assert_eq!(hasher.clone().seal(), blake3::hash(&text));
        }
        assert_eq!(hasher.seal(), blake3::hash(&text));
    }
}

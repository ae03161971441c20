//! BLAKE3 of a text that arrives in parts. BLAKE3 takes a quarter of the time if it gets many of
//! its chunks at once, and the first one begins at a multiple of their size.

/// How much is hashed at once, in bytes: many chunks of BLAKE3, which have 1 KiB.
const PIECE_BYTES: usize = 64 << 10;

/// Hashes a text in pieces of one size.
#[derive(Clone, Debug, Default)]
pub(crate) struct PieceHasher {
    hasher: blake3::Hasher,
    /// The beginning of the next piece.
    pending: Vec<u8>,
}

impl PieceHasher {
    /// Adds a part of the text.
    pub(crate) fn update(&mut self, part: &[u8]) {
        if self.pending.len() + part.len() < PIECE_BYTES {
            self.pending.extend_from_slice(part);
            return;
        }
        let (first, rest) = part.split_at(PIECE_BYTES - self.pending.len());
        self.pending.extend_from_slice(first);
        self.hasher.update(&self.pending);
        let (pieces, rest) = rest.split_at(rest.len() - rest.len() % PIECE_BYTES);
        self.hasher.update(pieces);
        self.pending.clear();
        self.pending.extend_from_slice(rest);
    }

    /// The hash of the text so far.
    pub(crate) fn hash(&self) -> blake3::Hash {
        self.hasher.clone().update(&self.pending).finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_does_not_depend_on_the_parts() {
        let mut text = Vec::new();
        let mut hasher = PieceHasher::default();
        let lengths = [0, 1, PIECE_BYTES - 2, 1, 1, PIECE_BYTES, 3 * PIECE_BYTES - 1, 0, 7];
        for (byte, length) in (b'a'..).zip(lengths) {
            let part = vec![byte; length];
            hasher.update(&part);
            text.extend_from_slice(&part);
            assert_eq!(hasher.hash(), blake3::hash(&text));
        }
    }
}

//! The hash of what was said in a match.
//!
//! BLAKE3 over one entry for each line of the record that was said, answered or forfeited, in
//! order; requests that tell the time (`time_left`) and the answers to them are left out. An
//! entry is the seat's number (one byte), a direction (`>` said to the seat, `<` its answer, `!`
//! its forfeit; one byte), the length of the text in bytes (eight bytes, little endian), and the
//! text: the words without a final newline, the answer without its frame, the forfeit's kind.

use std::fmt;

use arbiter_games::{Forfeit, Seat};

/// The hash of a transcript; as text 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TranscriptHash(blake3::Hash);

impl TranscriptHash {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for TranscriptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// How much is hashed at once, in bytes: enough for BLAKE3 to work on several chunks abreast.
const BATCH: usize = 32 * 1024;

/// A transcript being hashed.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    hasher: blake3::Hasher,
    /// Entries that are not hashed yet.
    batch: Vec<u8>,
}

impl Transcript {
    /// The hash of everything so far.
    pub fn hash(&self) -> TranscriptHash {
        TranscriptHash(self.hasher.clone().update(&self.batch).finalize())
    }

    /// Adds what a seat was told.
    pub fn sent(&mut self, seat: Seat, text: &str) {
        self.entry(seat, b'>', text.as_bytes());
    }

    /// Adds what a seat answered.
    pub fn replied(&mut self, seat: Seat, reply: &[u8]) {
        self.entry(seat, b'<', reply);
    }

    /// Adds how a seat forfeited.
    pub fn forfeited(&mut self, seat: Seat, forfeit: Forfeit) {
        self.entry(seat, b'!', forfeit.as_str().as_bytes());
    }

    fn entry(&mut self, seat: Seat, direction: u8, text: &[u8]) {
        let length = u64::try_from(text.len()).expect("a text is shorter than 2^64 bytes");
        for part in [&[seat.number(), direction], &length.to_le_bytes()[..], text] {
            self.batch.extend_from_slice(part);
        }
        if self.batch.len() >= BATCH {
            self.hasher.update(&self.batch);
            self.batch.clear();
        }
    }
}

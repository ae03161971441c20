//! The hash of the dialogue of a match.
//!
//! The hash is BLAKE3 over one entry for each message, reply and forfeit of the record, in order.
//! Messages that contain the remaining time (`time_left`) and the replies to them have no entry. An
//! entry consists of:
//! - the seat's number (one byte);
//! - the direction: `>` message to the seat, `<` its reply, `!` its forfeit (one byte);
//! - the length of the text in bytes (eight bytes, little endian);
//! - the text: the message without its final newline, the reply without its framing, or the kind of
//!   forfeit.

use std::fmt;

use arbiter_games::{Forfeit, Seat};

use crate::piece_hasher::PieceHasher;

/// The hash of a transcript. As text: 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TranscriptHash(blake3::Hash);

impl TranscriptHash {
    /// The bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for TranscriptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// A transcript being hashed.
#[derive(Clone, Debug, Default)]
pub struct Transcript(PieceHasher);

impl Transcript {
    /// The hash of all entries so far.
    pub fn hash(&self) -> TranscriptHash {
        TranscriptHash(self.0.hash())
    }

    /// Adds a message to a seat.
    pub fn sent(&mut self, seat: Seat, text: &str) {
        self.entry(seat, b'>', text.as_bytes());
    }

    /// Adds a reply of a seat.
    pub fn replied(&mut self, seat: Seat, reply: &[u8]) {
        self.entry(seat, b'<', reply);
    }

    /// Adds a forfeit of a seat.
    pub fn forfeited(&mut self, seat: Seat, forfeit: Forfeit) {
        self.entry(seat, b'!', forfeit.as_str().as_bytes());
    }

    fn entry(&mut self, seat: Seat, direction: u8, text: &[u8]) {
        let length = u64::try_from(text.len()).expect("a text is shorter than 2^64 bytes");
        for part in [&[seat.number(), direction], &length.to_le_bytes()[..], text] {
            self.0.update(part);
        }
    }
}

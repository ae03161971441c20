//! Reads a record on another thread, while the caller replays what was read before. To decompress a
//! long record takes a third of the time of its replay.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The size of a piece, in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that wait to be read. They bound the memory.
const WAITING_PIECES: usize = 4;

/// Calls `read` with a reader of the text, which another thread reads ahead.
///
/// # Errors
/// If no thread can be started. Errors of `text` are errors of the reader.
pub fn read_ahead<T>(text: impl Read + Send, read: impl FnOnce(AheadReader) -> T) -> io::Result<T> {
    thread::scope(|scope| {
        let (sender, pieces) = sync_channel(WAITING_PIECES);
        let name = "record reader".to_owned();
        thread::Builder::new().name(name).spawn_scoped(scope, move || send(text, &sender))?;
        Ok(read(AheadReader { pieces, piece: Vec::new(), position: 0 }))
    })
}

/// Sends the pieces of a text until it ends, an error occurs or the receiver is gone.
fn send(mut text: impl Read, pieces: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let limit = u64::try_from(PIECE_BYTES).expect("it is small");
        let result = text.by_ref().take(limit).read_to_end(&mut piece);
        let is_last = !matches!(result, Ok(count) if count > 0);
        // What was read before an error comes first.
        if !piece.is_empty() && pieces.send(Ok(piece)).is_err() {
            return;
        }
        if let Err(error) = result {
            // The reader may have ended.
            drop(pieces.send(Err(error)));
        }
        if is_last {
            return;
        }
    }
}

/// A reader of a text that another thread reads.
#[derive(Debug)]
pub struct AheadReader {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    /// How much of the piece was consumed.
    position: usize,
}

impl Read for AheadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for AheadReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position == self.piece.len() {
            // Without a sender the text has ended.
            self.piece = self.pieces.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
            self.position = 0;
        }
        Ok(&self.piece[self.position..])
    }

    fn consume(&mut self, count: usize) {
        self.position += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of this many bytes, and then an error.
    struct Broken(usize);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("torn"));
            }
            let count = buffer.len().min(self.0).min(1000);
            buffer[..count].fill(b'a');
            self.0 -= count;
            Ok(count)
        }
    }

    #[test]
    fn the_text_arrives_whole() {
        for length in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, 9 * PIECE_BYTES + 7] {
            let text: Vec<_> = (0..=u8::MAX).cycle().take(length).collect();
            let read = read_ahead(&text[..], |mut reader| {
                let mut read = Vec::new();
                reader.read_to_end(&mut read).map(|_| read)
            });
            assert!(read.unwrap().unwrap() == text, "{length}");
        }
    }

    #[test]
    fn an_error_follows_what_was_read_before() {
        let length = 2 * PIECE_BYTES + 5;
        let (count, error) = read_ahead(Broken(length), |mut reader| {
            let mut text = Vec::new();
            let error = reader.read_to_end(&mut text).unwrap_err().to_string();
            (text.len(), error)
        })
        .unwrap();
        assert_eq!((count, error.as_str()), (length, "torn"));
    }

    #[test]
    fn a_reader_may_stop_early() {
        let endless = io::repeat(b'a');
        let line = |mut reader: AheadReader| reader.fill_buf().map(<[u8]>::len);
        assert_eq!(read_ahead(endless, line).unwrap().unwrap(), PIECE_BYTES);
    }
}

//! Reads bytes whose pieces arrive one after the other.

use std::io::{self, Cursor, Read};

use tokio::sync::mpsc::{self, Receiver};

use super::{Result, ServiceError};

/// Reads the pieces that a channel delivers. It waits for them, so it must not be read by a thread
/// that runs asynchronous tasks.
#[derive(Debug)]
pub(super) struct PieceReader<E> {
    pieces: Receiver<Result<Vec<u8>, E>>,
    current: Cursor<Vec<u8>>,
    /// Why a piece could not be read. The error of the reader contains it, too.
    pub(super) failure: Option<ServiceError>,
}

impl<E> PieceReader<E> {
    pub(super) fn new(pieces: Receiver<Result<Vec<u8>, E>>) -> Self {
        Self { pieces, current: Cursor::default(), failure: None }
    }

    /// A reader of one piece, which has arrived.
    pub(super) fn whole(bytes: Vec<u8>) -> Self {
        let (_, pieces) = mpsc::channel(1);
        Self { current: Cursor::new(bytes), ..Self::new(pieces) }
    }
}

impl<E: Into<ServiceError>> Read for PieceReader<E> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.current.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match self.pieces.blocking_recv() {
                Some(Ok(piece)) => self.current = Cursor::new(piece),
                Some(Err(error)) => {
                    let cause = error.into();
                    self.failure = Some(cause.clone());
                    return Err(io::Error::other(cause));
                }
                None => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_their_pieces_arrive() {
        let (sender, rest) = mpsc::channel(1);
        let mut pieces = PieceReader::new(rest);
        let read = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let result = pieces.read_to_end(&mut bytes);
            (bytes, result.map_err(|error| error.to_string()))
        });
        for piece in [&b"ab"[..], b"", b"c"] {
            sender.blocking_send(Ok(piece.to_vec())).unwrap();
        }
        sender.blocking_send(Err(ServiceError::unavailable("torn"))).unwrap();
        assert_eq!(read.join().unwrap(), (b"abc".to_vec(), Err("torn".to_owned())));
    }
}

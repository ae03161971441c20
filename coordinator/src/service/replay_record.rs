//! The record of a match for a replay. A long record is replayed while it is still being read from
//! the database, in pieces: to read it first would take a quarter of the time of its replay.

use std::io::{self, BufReader, Cursor, Read};
use std::ops::Range;

use arbiter_games::Games;
use arbiter_proto::ids::MatchId;
use arbiter_replay::{Difference, LineBlocks, Reader, RenderedChunks, ShownNames, Steps};
use sqlx::PgPool;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::records::{PublicRead, ReadableRecord, no_record_yet};
use super::{Caller, Result, Service};
use crate::db::records::{self, Record};

/// The size of a piece, in bytes. Most records have one.
const PIECE_BYTES: i32 = 256 << 10;

/// The record of a match for a replay, which shows only what its reader may see.
#[derive(Debug)]
pub(crate) struct ReplayRecord {
    pieces: Pieces,
    /// Whether the reader may see the private lines of each seat.
    visible: Vec<bool>,
    /// The share of a public reader.
    _share: Option<PublicRead>,
}

impl ReplayRecord {
    /// A record of which its reader may see the private lines of the visible seats.
    fn new(pieces: Pieces, visible: Vec<bool>, share: Option<PublicRead>) -> Self {
        Self { pieces, visible, _share: share }
    }

    /// A record that was read.
    #[cfg(test)]
    pub(crate) fn of(bytes: Vec<u8>, visible: &[bool]) -> Self {
        Self::new(Pieces::whole(bytes), visible.to_vec(), None)
    }

    /// Renders chunks of the replay with these names, like [`arbiter_replay::render_chunks()`].
    ///
    /// # Errors
    /// The first difference between the record and the rules.
    pub(crate) fn render_chunks(
        self,
        games: &Games,
        (requested, names): (Range<usize>, &ShownNames),
    ) -> Result<RenderedChunks, Difference> {
        let reader = Reader { names: Some(names), visible: Some(&self.visible) };
        arbiter_replay::render_chunks(games, lines(self.pieces)?, (requested, reader))
    }

    /// Draws steps of the replay, like [`arbiter_replay::steps()`].
    ///
    /// # Errors
    /// The first difference between the record and the rules.
    pub(crate) fn steps(self, games: &Games, requested: Range<usize>) -> Result<Steps, Difference> {
        let reader = Reader { names: None, visible: Some(&self.visible) };
        let steps = |lines| arbiter_replay::steps(games, lines, requested, reader);
        arbiter_replay::read_ahead(lines(self.pieces)?, steps)?
    }
}

/// All lines of a record, also those that the reader may not see.
fn lines(pieces: Pieces) -> io::Result<LineBlocks<impl Read + Send>> {
    arbiter_replay::unpack_from(BufReader::new(pieces)).map(LineBlocks::new)
}

/// Reads a compressed record whose pieces arrive one after the other.
#[derive(Debug)]
struct Pieces {
    piece: Cursor<Vec<u8>>,
    /// The pieces after it, and why there are no more.
    rest: mpsc::UnboundedReceiver<io::Result<Vec<u8>>>,
}

impl Pieces {
    /// The pieces that a channel delivers.
    fn of(rest: mpsc::UnboundedReceiver<io::Result<Vec<u8>>>) -> Self {
        Self { piece: Cursor::default(), rest }
    }

    /// A record of one piece.
    fn whole(bytes: Vec<u8>) -> Self {
        let (_, rest) = mpsc::unbounded_channel();
        Self { piece: Cursor::new(bytes), rest }
    }
}

/// Waits for the next piece, so it must not be called by a thread that runs asynchronous tasks.
impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.piece.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match self.rest.blocking_recv() {
                Some(piece) => self.piece = Cursor::new(piece?),
                None => return Ok(0),
            }
        }
    }
}

/// Reads a record of this size, in bytes, from the database. Keeps the permit of a public reader
/// until then. Ends early if the replay is gone.
async fn read_pieces(
    pool: PgPool,
    id: MatchId,
    size: i32,
    pieces: mpsc::UnboundedSender<io::Result<Vec<u8>>>,
    _permit: Option<OwnedSemaphorePermit>,
) {
    let mut start = 0;
    while start < size {
        let piece = match records::piece(&pool, id, start..start + PIECE_BYTES).await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(io::Error::other("it was deleted while it was read")),
            Err(error) => {
                tracing::error!(number = id.number.0, %error, "cannot read a piece of a record");
                Err(io::Error::other("the database failed while it was read"))
            }
        };
        let is_last = piece.is_err();
        if pieces.send(piece).is_err() || is_last {
            return;
        }
        start += PIECE_BYTES;
    }
}

impl Service {
    /// The record of a match for a replay, which may begin at once.
    pub(crate) async fn replay_record(
        &self,
        caller: &Caller,
        readable: ReadableRecord,
    ) -> Result<ReplayRecord> {
        let permit = self.permit_to_read(caller, &readable).await?;
        let ReadableRecord { tournament, id, visible } = &readable;
        let stored = records::find_size(&self.pool, *id).await?;
        let stored = stored.ok_or_else(|| no_record_yet(tournament, id.number))?;
        let (size, slice) = match stored {
            Record::InDatabase(size) => (size, None),
            Record::InPack(slice) => (slice.length, Some(slice)),
        };
        let share = self.share_of(&readable, usize::try_from(size).unwrap_or_default()).await?;
        let pieces = match slice {
            None => {
                let (sender, pieces) = mpsc::unbounded_channel();
                tokio::spawn(read_pieces(self.pool.clone(), *id, size, sender, permit));
                Pieces::of(pieces)
            }
            Some(slice) => {
                let record = Record::InPack(slice);
                Pieces::whole(self.fetch_record(tournament, id.number, record).await?)
            }
        };
        Ok(ReplayRecord::new(pieces, visible.clone(), share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_its_pieces_arrive() {
        let (sender, rest) = mpsc::unbounded_channel();
        let mut pieces = Pieces::of(rest);
        let read = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let result = pieces.read_to_end(&mut bytes);
            (bytes, result.map_err(|error| error.to_string()))
        });
        for piece in [&b"ab"[..], b"", b"c"] {
            sender.send(Ok(piece.to_vec())).unwrap();
        }
        sender.send(Err(io::Error::other("torn"))).unwrap();
        assert_eq!(read.join().unwrap(), (b"abc".to_vec(), Err("torn".to_owned())));
    }
}

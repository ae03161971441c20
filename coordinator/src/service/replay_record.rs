//! The record of a match for a replay. A long record is replayed while it is still being read from
//! the database, in pieces: to read it first would take a quarter of the time of its replay.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};
use std::ops::Range;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::ids::MatchId;
use arbiter_replay::{Difference, LineBlocks, Reader, RenderedChunks, ShownNames, Steps};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::records::{PublicRead, ReadableRecord, no_record_yet};
use super::{Caller, Result, Service, ServiceError, match_name};
use crate::db::records::{self, Record};
use crate::db::tournaments::Tournament;

/// The size of a piece, in bytes. Most records have one.
const PIECE_BYTES: i32 = 256 << 10;
/// How long a replay waits for a piece. It has a permit that others wait for.
const PIECE_TIMEOUT: Duration = Duration::from_secs(10);

/// The record of a match for a replay, which shows only what its reader may see.
#[derive(Debug)]
pub(crate) struct ReplayRecord {
    /// The name of the match.
    name: String,
    pieces: Pieces,
    /// Whether the reader may see the private lines of each seat.
    visible: Vec<bool>,
    /// The share of a public reader.
    _share: Option<PublicRead>,
}

impl ReplayRecord {
    /// A record of which its reader may see the private lines of the visible seats.
    #[cfg(test)]
    pub(crate) fn of(bytes: Vec<u8>, visible: &[bool]) -> Self {
        Self::of_pieces([Ok(bytes)], visible)
    }

    /// Like [`Self::of`], for a record in pieces.
    #[cfg(test)]
    pub(crate) fn of_pieces(
        pieces: impl IntoIterator<Item = Result<Vec<u8>>>,
        visible: &[bool],
    ) -> Self {
        let (sender, rest) = mpsc::unbounded_channel();
        for piece in pieces {
            sender.send(piece).expect("the channel is open");
        }
        let name = "cup/1".to_owned();
        Self { name, pieces: Pieces::of(rest), visible: visible.to_vec(), _share: None }
    }

    /// Renders chunks of the replay with these names, like [`arbiter_replay::render_chunks()`].
    ///
    /// # Errors
    /// Why the record cannot be read or replayed.
    pub(crate) fn render_chunks(
        self,
        games: &Games,
        (requested, names): (Range<usize>, &ShownNames),
    ) -> Result<RenderedChunks> {
        let reader = Reader { names: Some(names), visible: Some(&self.visible) };
        lines(self.pieces)
            .map_err(Difference::from)
            .and_then(|lines| arbiter_replay::render_chunks(games, lines, (requested, reader)))
            .map_err(|difference| failure(&self.name, reader, difference))
    }

    /// Draws steps of the replay, like [`arbiter_replay::steps()`].
    ///
    /// # Errors
    /// Why the record cannot be read or replayed.
    pub(crate) fn steps(self, games: &Games, requested: Range<usize>) -> Result<Steps> {
        let reader = Reader { names: None, visible: Some(&self.visible) };
        let steps = |lines| arbiter_replay::steps(games, lines, requested, reader);
        lines(self.pieces)
            .and_then(|lines| arbiter_replay::read_ahead(lines, steps))
            .unwrap_or_else(|error| Err(error.into()))
            .map_err(|difference| failure(&self.name, reader, difference))
    }
}

/// Why a replay failed, as its reader may see it. The log has the whole cause.
fn failure(name: &str, reader: Reader<'_>, difference: Difference) -> ServiceError {
    if let Difference::Unreadable(error) = &difference
        && let Some(cause) = error.get_ref().and_then(|cause| cause.downcast_ref::<ServiceError>())
    {
        return cause.clone();
    }
    tracing::error!(name, %difference, "cannot replay a record");
    cannot_replay(name, &reader.redact(difference))
}

/// The error of a record that cannot be replayed for this reason.
pub(crate) fn cannot_replay(name: &str, reason: &dyn fmt::Display) -> ServiceError {
    ServiceError::internal(format!("the record of match {name} cannot be replayed: {reason}"))
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
    rest: mpsc::UnboundedReceiver<Result<Vec<u8>>>,
}

impl Pieces {
    /// The pieces that a channel delivers.
    fn of(rest: mpsc::UnboundedReceiver<Result<Vec<u8>>>) -> Self {
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
                Some(piece) => self.piece = Cursor::new(piece.map_err(io::Error::other)?),
                None => return Ok(0),
            }
        }
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
        let size = records::find_size(&self.pool, readable.id).await?;
        let number = readable.id.number;
        let stored = size.ok_or_else(|| no_record_yet(&readable.tournament, number))?;
        let size = match stored {
            Record::InDatabase(size) => size,
            Record::InPack(slice) => slice.length,
        };
        let share = self.share_of(&readable, usize::try_from(size).unwrap_or_default()).await?;
        let ReadableRecord { tournament, id, visible } = readable;
        let name = match_name(&tournament, number).to_string();
        let pieces = match stored {
            Record::InDatabase(size) => {
                let (sender, pieces) = mpsc::unbounded_channel();
                let service = self.clone();
                tokio::spawn(async move {
                    let _permit = permit;
                    service.read_pieces(&tournament, id, size, sender).await;
                });
                Pieces::of(pieces)
            }
            Record::InPack(slice) => {
                let record = Record::InPack(slice);
                Pieces::whole(self.fetch_record(&tournament, number, record).await?)
            }
        };
        Ok(ReplayRecord { name, pieces, visible, _share: share })
    }

    /// Reads a record of this size, in bytes, from the database. Ends early if the replay is gone.
    async fn read_pieces(
        &self,
        tournament: &Tournament,
        id: MatchId,
        size: i32,
        pieces: mpsc::UnboundedSender<Result<Vec<u8>>>,
    ) {
        let mut start = 0;
        while start < size {
            let piece = records::piece(&self.pool, id, start..start + PIECE_BYTES);
            let piece = match timeout(PIECE_TIMEOUT, piece).await {
                Ok(Ok(Some(bytes))) => Ok(bytes),
                Ok(Ok(None)) => Err(no_record_yet(tournament, id.number)),
                Ok(Err(error)) => Err(error.into()),
                Err(_) => Err(ServiceError::unavailable(
                    "the database does not respond; try again in a moment",
                )),
            };
            let is_last = piece.is_err();
            if pieces.send(piece).is_err() || is_last {
                return;
            }
            start += PIECE_BYTES;
        }
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
        sender.send(Err(ServiceError::unavailable("torn"))).unwrap();
        assert_eq!(read.join().unwrap(), (b"abc".to_vec(), Err("torn".to_owned())));
    }
}

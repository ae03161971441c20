//! The record of a match for a replay. A long record is replayed while it is still being read from
//! the database, in pieces: to read it first would take a quarter of the time of its replay.

use std::fmt;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::ids::MatchId;
use arbiter_replay::{Difference, LineBlocks, Reader, RenderedChunks, ShownNames, Steps};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::piece_reader::PieceReader;
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
    pieces: PieceReader<ServiceError>,
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
        let pieces: Vec<_> = pieces.into_iter().collect();
        let (sender, rest) = mpsc::channel(pieces.len());
        for piece in pieces {
            sender.try_send(piece).expect("the channel has room");
        }
        let name = "cup/1".to_owned();
        Self { name, pieces: PieceReader::new(rest), visible: visible.to_vec(), _share: None }
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
fn lines(pieces: PieceReader<ServiceError>) -> io::Result<LineBlocks<impl Read + Send>> {
    arbiter_replay::unpack_from(BufReader::new(pieces)).map(LineBlocks::new)
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
                // It has room for all pieces, so the permit is free as soon as they are read.
                let (sender, pieces) =
                    mpsc::channel(usize::try_from(size / PIECE_BYTES).unwrap_or_default() + 1);
                let service = self.clone();
                tokio::spawn(async move {
                    let _permit = permit;
                    service.read_pieces(&tournament, id, size, sender).await;
                });
                PieceReader::new(pieces)
            }
            Record::InPack(slice) => {
                let record = Record::InPack(slice);
                PieceReader::whole(self.fetch_record(&tournament, number, record).await?)
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
        pieces: mpsc::Sender<Result<Vec<u8>>>,
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
            if pieces.send(piece).await.is_err() || is_last {
                return;
            }
            start += PIECE_BYTES;
        }
    }
}

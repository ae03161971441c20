//! Records of matches: who may read them, and how much memory their readers take.
//!
//! Organisers read whole records. Owners of bots in the match, and everyone if the tournament shows
//! its replays, read records without the private data of other owners ([`record_redaction`]). There
//! is a record only when its match is over, so a record of a game with hidden information helps no
//! bot in that match. While a tournament is frozen, only records of visible results can be read.
//!
//! A record is in memory while it is sent. Readers without a token could open many and read slowly.
//! So [`PublicReads`] limits the bytes of records on their way to readers who own no bot in the
//! match, and the time that each of these readers may take.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::ids::{MatchId, MatchName, MatchNumber};
use arbiter_proto::v1::{GetRecordRequest, RecordPiece};
use arbiter_ranking::Entrant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;

use super::concurrency_limit::ConcurrencyLimit;
use super::matches::find_bot;
use super::{Caller, ResponseStream, Result, Service, ServiceError, match_name};
use crate::db::records::{Record, Slice};
use crate::db::tournaments::{Replays, Tournament};
use crate::db::{editions, entrants, records};
use crate::record_redaction;
use crate::record_store::StoreError;

/// The size of a piece of a record, in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that wait until the client reads them.
const QUEUED_PIECES: usize = 2;

/// Bytes of records on their way to public readers.
const BUDGET: usize = 64 << 20;
/// Memory of a public reader besides the record, in bytes: the window of a decompressor.
const OVERHEAD: usize = 1 << 20;
/// The unit in which bytes are reserved.
const UNIT: usize = 1 << 10;
/// How long a public reader waits for its share before it is refused.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// How long a public reader may take at any speed.
const GRACE: Duration = Duration::from_secs(60);
/// The slowest average speed of a public reader after that, in bytes a second.
const RATE: usize = 64 << 10;

/// Limits what public readers of records take.
#[derive(Clone, Debug)]
pub(super) struct PublicReads {
    /// Records that are read at the same time.
    concurrent: ConcurrencyLimit,
    budget: Arc<Semaphore>,
    max_wait: Duration,
    grace: Duration,
    /// In bytes a second.
    rate: usize,
}

impl Default for PublicReads {
    fn default() -> Self {
        Self {
            concurrent: ConcurrencyLimit::default(),
            budget: Arc::new(Semaphore::new(BUDGET / UNIT)),
            max_wait: MAX_WAIT,
            grace: GRACE,
            rate: RATE,
        }
    }
}

impl PublicReads {
    /// Waits until there is room for a record of this size, in bytes.
    async fn share(&self, size: usize) -> Result<PublicRead> {
        let units = (size + OVERHEAD).div_ceil(UNIT).min(BUDGET / UNIT);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let reservation = Arc::clone(&self.budget).acquire_many_owned(units);
        let Ok(Ok(permit)) = timeout(self.max_wait, reservation).await else {
            return Err(ServiceError::resource_exhausted(
                "too many records are being read; try again in a moment",
            ));
        };
        let seconds = u64::try_from(size / self.rate).unwrap_or(u64::MAX);
        let deadline = Instant::now() + self.grace + Duration::from_secs(seconds);
        Ok(PublicRead { _permit: permit, deadline })
    }
}

/// The share of a public reader.
#[derive(Debug)]
pub(super) struct PublicRead {
    _permit: OwnedSemaphorePermit,
    /// When the reader must be done.
    deadline: Instant,
}

/// A compressed record in memory, with the share of its reader. Clones are the same record.
#[derive(Clone)]
pub(crate) struct HeldRecord(Arc<Held>);

struct Held {
    bytes: Vec<u8>,
    /// None for readers without limits.
    public: Option<PublicRead>,
}

impl fmt::Debug for HeldRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldRecord({} bytes)", self.0.bytes.len())
    }
}

impl AsRef<[u8]> for HeldRecord {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl Deref for HeldRecord {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl HeldRecord {
    fn new(bytes: Vec<u8>, public: Option<PublicRead>) -> Self {
        Self(Arc::new(Held { bytes, public }))
    }

    /// Whether its reader took too long.
    pub(crate) fn is_too_late(&self) -> bool {
        self.0.public.as_ref().is_some_and(|public| public.deadline <= Instant::now())
    }

    /// Its pieces. They end with an error if the reader takes too long.
    fn pieces(self) -> ResponseStream<RecordPiece> {
        let Some(deadline) = self.0.public.as_ref().map(|public| public.deadline) else {
            let begins = (0..self.len()).step_by(PIECE_BYTES);
            let piece = move |begin| {
                let end = self.len().min(begin + PIECE_BYTES);
                Ok(RecordPiece { bytes: self[begin..end].to_vec() })
            };
            return Box::pin(tokio_stream::iter(begins.map(piece)));
        };
        let (sender, pieces) = mpsc::channel(QUEUED_PIECES + 1);
        tokio::spawn(async move {
            // A reader that stalls gets the error when it reads again.
            let Ok(late) = sender.clone().reserve_owned().await else { return };
            for piece in self.chunks(PIECE_BYTES) {
                let piece = RecordPiece { bytes: piece.to_vec() };
                match timeout_at(deadline, sender.send(Ok(piece))).await {
                    Ok(Err(_)) => return,
                    Ok(Ok(())) if !self.is_too_late() => {}
                    Ok(Ok(())) | Err(_) => {
                        let error = "the record was read too slowly; read it again";
                        late.send(Err(ServiceError::unavailable(error)));
                        return;
                    }
                }
            }
        });
        Box::pin(ReceiverStream::new(pieces))
    }
}

/// The record of a match that a caller may read, at least in part.
#[derive(Debug)]
pub(crate) struct ReadableRecord {
    pub(super) tournament: Tournament,
    pub(super) id: MatchId,
    /// Whether the caller may see the private lines of each seat.
    pub(super) visible: Vec<bool>,
}

impl ReadableRecord {
    /// Whether its reader may see the private lines of no seat.
    fn is_public(&self) -> bool {
        !self.visible.contains(&true)
    }
}

/// A record and what its reader sees of it. Two readers with the same key see the same text: a
/// record never changes, and no other match gets its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordKey {
    pub(crate) id: MatchId,
    /// Whether the reader may see the private lines of each seat.
    pub(crate) visible: Vec<bool>,
}

impl Service {
    /// Fetches the record of a match from the database or the store.
    pub(super) async fn fetch_record(
        &self,
        tournament: &Tournament,
        number: MatchNumber,
        record: Record<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let Slice { pack, start, length } = match record {
            Record::InDatabase(bytes) => return Ok(bytes),
            Record::InPack(slice) => slice,
        };
        let start = u64::from(start.cast_unsigned());
        let range = start..start + u64::from(length.cast_unsigned());
        let fetched = match &self.store {
            Some(store) => store.get(tournament.id, pack, range).await,
            None => Err(StoreError::NotConfigured),
        };
        fetched.map_err(|error| {
            let name = match_name(tournament, number);
            tracing::error!(%name, %error, "cannot fetch a record");
            ServiceError::unavailable(format!(
                "the record of match {name} cannot be fetched; the log says why"
            ))
        })
    }

    /// The record of a match that the caller may see, in pieces.
    pub(crate) async fn get_record(
        &self,
        caller: &Caller,
        request: GetRecordRequest,
    ) -> Result<ResponseStream<RecordPiece>> {
        Ok(self.record(caller, &request.r#match).await?.pieces())
    }

    /// The compressed record of a match, as the caller may see it.
    pub(crate) async fn record(&self, caller: &Caller, name: &str) -> Result<HeldRecord> {
        let readable = self.readable_record(caller, name).await?;
        let permit = self.permit_to_read(caller, &readable).await?;
        let whole = self.stored_record(&readable.tournament, readable.id).await?;
        let (bytes, _permit) = if readable.visible.contains(&false) {
            redact(name, whole, readable.visible.clone(), permit).await?
        } else {
            (whole, permit)
        };
        let public = self.share_of(&readable, bytes.len()).await?;
        Ok(HeldRecord::new(bytes, public))
    }

    /// The key of a record, for which the record is not read.
    pub(crate) async fn record_key(&self, readable: &ReadableRecord) -> Result<RecordKey> {
        let ReadableRecord { tournament, id, visible } = readable;
        if !records::exists(&self.pool, *id).await? {
            return Err(no_record_yet(tournament, id.number));
        }
        Ok(RecordKey { id: *id, visible: visible.clone() })
    }

    /// The share of a reader of a record of this size, in bytes; `None` for one without limits.
    pub(super) async fn share_of(
        &self,
        readable: &ReadableRecord,
        size: usize,
    ) -> Result<Option<PublicRead>> {
        if !readable.is_public() {
            return Ok(None);
        }
        self.public_reads.share(size).await.map(Some)
    }

    /// Checks that the caller may see the record of a match, at least in part. Does not read it.
    pub(crate) async fn readable_record(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<ReadableRecord> {
        let name = &name.parse()?;
        let (tournament, id) = self.named_match(name).await?;
        let planned = self.planned_match(name, id).await?;
        if caller.is_organiser() {
            let visible = vec![true; planned.seats.0.len()];
            return Ok(ReadableRecord { tournament, id, visible });
        }
        let infos = entrants::of_seats(&self.pool, &planned.seats.0).await?;
        let owns = |entrant: &Entrant| {
            find_bot(&infos, *entrant).is_some_and(|bot| caller.is_owner(bot.owner))
        };
        let visible: Vec<_> = planned.seats.0.iter().map(owns).collect();
        if !visible.contains(&true)
            && let Some(reason) = why_hidden(&tournament)
        {
            return Err(refusal(caller, reason, name));
        }
        let visibility = self.visibility(&tournament, caller)?;
        if self.visible_results(&visibility, id.tournament, &[id.number]).await?.is_empty() {
            return Err(visibility.refusal());
        }
        Ok(ReadableRecord { tournament, id, visible })
    }

    /// The permit of a public reader to read a record; `None` for others.
    pub(super) async fn permit_to_read(
        &self,
        caller: &Caller,
        readable: &ReadableRecord,
    ) -> Result<Option<OwnedSemaphorePermit>> {
        if readable.is_public() {
            return self.public_reads.concurrent.acquire(caller).await;
        }
        Ok(None)
    }

    /// Whether everyone may see the record of a match. `anonymous` is a caller without a token.
    pub(crate) async fn shows_record(&self, anonymous: &Caller, name: &str) -> Result<bool> {
        let (tournament, id) = self.named_match(&name.parse()?).await?;
        let visibility = self.visibility(&tournament, anonymous)?;
        let visible = self.visible_results(&visibility, id.tournament, &[id.number]).await?;
        Ok(why_hidden(&tournament).is_none() && !visible.is_empty())
    }

    /// Why the public sees no replays of a tournament. None if it sees those of visible matches.
    pub(crate) async fn why_replays_are_hidden(
        &self,
        tournament: &str,
    ) -> Result<Option<&'static str>> {
        Ok(why_hidden(&self.tournament(tournament).await?))
    }

    /// The whole record of a match.
    async fn stored_record(&self, tournament: &Tournament, id: MatchId) -> Result<Vec<u8>> {
        let row = records::find(&self.pool, id).await?;
        let row = row.ok_or_else(|| no_record_yet(tournament, id.number))?;
        self.fetch_record(tournament, id.number, row).await
    }

    /// The games that the record of a match may name.
    pub(crate) async fn games_of_match(&self, name: &str) -> Result<Games> {
        let (_, id) = self.named_match(&name.parse()?).await?;
        self.games_of(editions::adding(&self.pool, id).await?).await
    }
}

/// Why the public may not see the records of a tournament's visible matches. None if it may.
fn why_hidden(tournament: &Tournament) -> Option<&'static str> {
    match tournament.presentation.replays {
        Replays::Never => Some("this tournament does not show replays"),
        Replays::AfterClose if !tournament.is_revealed() => {
            Some("replays are shown when the tournament is over")
        }
        Replays::AfterClose | Replays::Always => None,
    }
}

pub(super) fn no_record_yet(tournament: &Tournament, number: MatchNumber) -> ServiceError {
    let name = match_name(tournament, number);
    ServiceError::failed_precondition(format!("match {name} has no record yet"))
}

/// The error for a caller who has no bot in a match, and may not see its record for this reason.
fn refusal(caller: &Caller, reason: &str, name: &MatchName) -> ServiceError {
    match caller {
        // A login helps players only.
        Caller::Anonymous => ServiceError::unauthenticated(format!(
            "{reason}; players see those of their own bots after login"
        )),
        Caller::Rejected(error) => error.clone(),
        Caller::Known(_) => ServiceError::permission_denied(format!(
            "{reason}, and none of your bots plays in match {name}"
        )),
    }
}

/// Removes from a record the private data of the owners of other seats. Keeps the permit until
/// then, also if the request is dropped meanwhile.
async fn redact(
    name: &str,
    record: Vec<u8>,
    owned_seats: Vec<bool>,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>)> {
    let work = move || (record_redaction::redact(&record, &owned_seats), permit);
    let result = tokio::task::spawn_blocking(work).await;
    let (redacted, kept_permit) = result.map_err(|_| ServiceError::stopping())?;
    let bytes = redacted.map_err(|error| {
        tracing::error!(name, %error, "cannot read a record");
        let error = format!("the record of match {name} cannot be read; the log says why");
        ServiceError::internal(error)
    })?;
    Ok((bytes, kept_permit))
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;

    /// A public record of this size.
    async fn hold(reads: &PublicReads, size: usize) -> Result<HeldRecord> {
        Ok(HeldRecord::new(vec![7; size], Some(reads.share(size).await?)))
    }

    #[tokio::test]
    async fn public_readers_share_a_budget() {
        let reads = PublicReads { max_wait: Duration::ZERO, ..PublicReads::default() };
        let large = hold(&reads, BUDGET).await.unwrap();
        let refused = hold(&reads, 1).await.unwrap_err();
        assert!(refused.message().contains("try again"), "{refused}");
        let mut pieces = large.pieces();
        assert_eq!(pieces.next().await.unwrap().unwrap().bytes.len(), PIECE_BYTES);
        assert!(hold(&reads, 1).await.is_err(), "it is still being sent");
        let rest: Vec<_> = pieces.map(|piece| piece.unwrap().bytes.len()).collect().await;
        assert_eq!(rest.iter().sum::<usize>(), BUDGET - PIECE_BYTES);
        let small = hold(&reads, 1).await.unwrap();
        assert_eq!(small.pieces().collect::<Vec<_>>().await.len(), 1);
    }

    #[tokio::test]
    async fn a_slow_public_reader_gets_an_error() {
        let slow =
            PublicReads { grace: Duration::ZERO, rate: usize::MAX, ..PublicReads::default() };
        let record = hold(&slow, 8 * PIECE_BYTES).await.unwrap();
        assert!(record.is_too_late());
        let pieces: Vec<_> = record.pieces().collect().await;
        assert!(pieces.len() < 8, "{} pieces", pieces.len());
        assert!(pieces.last().unwrap().is_err());
        let budget = slow.budget;
        assert_eq!(budget.available_permits(), BUDGET / UNIT, "its share is free again");
    }
}

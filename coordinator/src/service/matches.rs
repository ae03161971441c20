//! Single matches: their state, results and records.

use std::sync::Arc;

use arbiter_games::Seed;
use arbiter_proto::ids::{EditionId, LotId, MatchId, MatchNumber};
use arbiter_proto::v1::{
    self, GetMatchRequest, GetRecordRequest, ListMatchesRequest, MatchSeat, MatchStatus,
    RecordPiece,
};
use arbiter_ranking::Entrant;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::bots::evidence_message;
use super::leaderboard_freeze::hide_result;
use super::{Caller, DefaultEdition, ResponseStream, Result, Service, ServiceError};
use crate::access::Role;
use crate::db::entrants::Roster;
use crate::db::matches::Seats;
use crate::db::played_matches::{self, PlayedMatch};
use crate::db::records::{Record, Slice, StoredRecord};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::db::{editions, faults, forfeit_evidence, matches, records, tournaments};
use crate::record_redaction;
use crate::record_store::StoreError;
use crate::tournament::lot_assignment::deal_seed;

/// The size of a piece of a record, in bytes.
const PIECE_BYTES: usize = 256 << 10;

impl Service {
    /// The state of a match.
    pub(crate) async fn get_match(
        &self,
        caller: &Caller,
        request: GetMatchRequest,
    ) -> Result<MatchStatus> {
        let id: MatchId = request.r#match.parse()?;
        let edition = editions::get(&self.pool, id.edition).await?;
        let edition = edition.ok_or_else(|| ServiceError::missing("match", id))?;
        let tournament = tournaments::get(&self.pool, edition.tournament).await?;
        let tournament = tournament.ok_or_else(|| ServiceError::missing("match", id))?;
        let rows = matches::range(&self.pool, id.edition, id.number, 1).await?;
        let planned = rows.into_iter().next().ok_or_else(|| ServiceError::missing("match", id))?;
        let roster = Roster::of(&self.pool, id.edition).await?;
        let played = played_matches::find(&self.pool, id).await?;
        // If the result is reused, the match that was played.
        let source = played.as_ref().and_then(PlayedMatch::source);
        let mut status = match played {
            Some(played) => played_match(id.edition, &roster, &played),
            None => MatchStatus {
                r#match: id.to_string(),
                seats: planned.seats.0.iter().map(|entrant| seat(&roster, *entrant)).collect(),
                params: planned.params.as_ref().map(ToString::to_string).unwrap_or_default(),
                ..MatchStatus::default()
            },
        };
        self.add_evidence(id, &planned.seats, &roster, caller, &mut status).await?;
        if !self.visibility(&tournament, caller)?.shows(&edition) {
            hide_result(&mut status);
        }
        let seed = published_seed(&tournament, edition.number);
        add_seed(seed, planned.seed_key, &mut status);
        status.tournament = tournament.name;
        if let Some(lot_row) = played_matches::lot(&self.pool, id).await? {
            let lot = LotId { edition: id.edition, number: lot_row.lot };
            let faults = faults::of_lot(&self.pool, lot).await?;
            lot_row.state.as_str().clone_into(&mut status.state);
            status.failed_leases = u32::try_from(faults.len()).unwrap_or(u32::MAX);
            if caller.is_organiser() {
                status.worker = match source {
                    Some(source) => self.worker_of(source).await?,
                    None => lot_row.worker.unwrap_or_default(),
                };
                status.faults = faults.into_iter().map(|fault| fault.reason).collect();
            }
        }
        Ok(status)
    }

    /// The name of the worker that played a match.
    async fn worker_of(&self, id: MatchId) -> Result<String> {
        let lot = played_matches::lot(&self.pool, id).await?;
        Ok(lot.and_then(|lot| lot.worker).unwrap_or_default())
    }

    /// Adds the reasons of forfeits that the caller may see.
    async fn add_evidence(
        &self,
        id: MatchId,
        seats: &Seats,
        roster: &Roster,
        caller: &Caller,
        status: &mut MatchStatus,
    ) -> Result<()> {
        let evidence = forfeit_evidence::of_matches(&self.pool, id.edition, &[id.number]).await;
        for evidence in evidence? {
            let index = usize::try_from(evidence.seat - 1).unwrap_or_default();
            let bot = seats.0.get(index).and_then(|entrant| roster.get(*entrant));
            let seat = status.seats.get_mut(index);
            if let (Some(bot), Some(seat)) = (bot, seat)
                && caller.may_inspect(bot.owner)
            {
                seat.evidence = Some(evidence_message(&evidence));
            }
        }
        Ok(())
    }

    /// Streams the played matches of an edition, in order.
    pub(crate) async fn list_matches(
        &self,
        caller: &Caller,
        ListMatchesRequest { tournament, edition, bot, after, limit }: ListMatchesRequest,
    ) -> Result<ResponseStream<MatchStatus>> {
        let board = v1::LeaderboardRef { tournament: tournament.clone(), edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Official, caller).await?;
        let seed = published_seed(&self.tournament(&tournament).await?, edition.number);
        let roster = Arc::new(Roster::of(&self.pool, edition.id).await?);
        let entrant = match bot.as_str() {
            "" => None,
            name => Some(roster.find(name).ok_or_else(|| ServiceError::missing("bot", name))?),
        };
        let limit = if limit == 0 { usize::MAX } else { limit as usize };
        let (sender, responses) = mpsc::channel(64);
        let service = self.clone();
        let caller = caller.clone();
        let edition = edition.id;
        let listing = MatchListing { service, caller, edition, roster, entrant, tournament, seed };
        let after = MatchNumber(after.unwrap_or(-1));
        tokio::spawn(async move {
            if let Err(error) = listing.send(after, limit, &sender).await {
                // This fails if the client has closed the stream.
                drop(sender.send(Err(error)).await);
            }
        });
        Ok(Box::pin(ReceiverStream::new(responses)))
    }

    /// Fetches a record from the database or the store.
    pub(super) async fn fetch_record(&self, id: MatchId, row: StoredRecord) -> Result<Vec<u8>> {
        let Slice { pack, start, length } = match row.record {
            Record::InDatabase(bytes) => return Ok(bytes),
            Record::InPack(slice) => slice,
        };
        let start = u64::from(start.cast_unsigned());
        let range = start..start + u64::from(length.cast_unsigned());
        let record = match &self.store {
            Some(store) => store.get(row.edition, pack, range).await,
            None => Err(StoreError::NotConfigured),
        };
        record.map_err(|error| {
            tracing::error!(%id, %error, "cannot fetch a record");
            ServiceError::unavailable(format!(
                "the record of match {id} cannot be fetched; the log says why"
            ))
        })
    }

    /// The record of a match, for organisers and for the owners of its bots.
    pub(crate) async fn get_record(
        &self,
        caller: &Caller,
        request: GetRecordRequest,
    ) -> Result<ResponseStream<RecordPiece>> {
        let record = self.record(caller, &request.r#match).await?;
        let pieces: Vec<_> = record
            .chunks(PIECE_BYTES)
            .map(|piece| Ok(RecordPiece { bytes: piece.to_vec() }))
            .collect();
        Ok(Box::pin(tokio_stream::iter(pieces)))
    }

    /// The compressed record of a match, for organisers and for the owners of its bots.
    pub(crate) async fn record(&self, caller: &Caller, id: &str) -> Result<Vec<u8>> {
        let principal = caller.require(Role::Player)?;
        let id: MatchId = id.parse()?;
        let rows = matches::range(&self.pool, id.edition, id.number, 1).await?;
        let planned = rows.into_iter().next().ok_or_else(|| ServiceError::missing("match", id))?;
        let edition = editions::get(&self.pool, id.edition).await?;
        let edition = edition.ok_or_else(|| ServiceError::missing("match", id))?;
        let roster = Roster::of(&self.pool, id.edition).await?;
        let owns = |entrant: &Entrant| {
            roster.get(*entrant).is_some_and(|named| named.owner == Some(principal.id.0))
        };
        let owned_seats: Vec<_> = planned.seats.0.iter().map(owns).collect();
        if !principal.is_organiser() {
            if !owned_seats.contains(&true) {
                let error = format!("none of your bots plays in match {id}");
                return Err(ServiceError::permission_denied(error));
            }
            let tournament = tournaments::of_edition(&self.pool, edition.id).await;
            self.visibility(&tournament?, caller)?.require(&edition)?;
        }
        let row = records::find(&self.pool, id).await?;
        let row = row.ok_or_else(|| {
            ServiceError::failed_precondition(format!("match {id} has no record yet"))
        })?;
        let record = self.fetch_record(id, row).await?;
        if principal.is_organiser() { Ok(record) } else { redact(id, record, owned_seats).await }
    }
}

/// Removes from a record the private data of the owners of other seats.
async fn redact(id: MatchId, record: Vec<u8>, owned_seats: Vec<bool>) -> Result<Vec<u8>> {
    let work = move || record_redaction::redact(&record, &owned_seats);
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|_| ServiceError::stopping())?.map_err(|error| {
        tracing::error!(%id, %error, "cannot read a record");
        ServiceError::internal(format!("the record of match {id} cannot be read; the log says why"))
    })
}

/// A stream of matches to a client.
struct MatchListing {
    service: Service,
    caller: Caller,
    edition: EditionId,
    roster: Arc<Roster>,
    /// Only matches of this entrant are sent, if there is one.
    entrant: Option<Entrant>,
    tournament: String,
    /// The seed of the edition, once it is published.
    seed: Option<Seed>,
}

impl MatchListing {
    /// Sends at most `limit` matches with numbers above `after`, page by page.
    async fn send(
        &self,
        mut after: MatchNumber,
        limit: usize,
        to: &mpsc::Sender<Result<MatchStatus>>,
    ) -> Result<()> {
        let mut sent_matches = 0;
        loop {
            // The permit is held only during the query, so a slow client does not block it.
            let permit = self.service.permit(&self.caller).await?;
            let page = played_matches::page(&self.service.pool, self.edition, after).await;
            drop(permit);
            let page = page?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.result.number;
            for played in &page {
                if self.entrant.is_some_and(|entrant| !played.seats.0.contains(&entrant)) {
                    continue;
                }
                let mut status = played_match(self.edition, &self.roster, played);
                status.tournament.clone_from(&self.tournament);
                add_seed(self.seed, played.seed_key, &mut status);
                if to.send(Ok(status)).await.is_err() {
                    return Ok(());
                }
                sent_matches += 1;
                if sent_matches == limit {
                    return Ok(());
                }
            }
        }
    }
}

/// The seed of an edition, once it is published.
fn published_seed(tournament: &Tournament, edition: i32) -> Option<Seed> {
    (tournament.state != TournamentState::Open).then(|| tournament.edition_seed(edition))
}

/// Adds the seed of a match, if the seed of its edition is published.
fn add_seed(edition: Option<Seed>, seed_key: i64, status: &mut MatchStatus) {
    if let Some(edition) = edition {
        status.seed = deal_seed(edition, seed_key).0.to_vec();
        status.seed_key = Some(seed_key);
    }
}

/// The bot in a seat.
fn seat(roster: &Roster, entrant: Entrant) -> MatchSeat {
    let bot = roster.get(entrant);
    MatchSeat {
        bot: bot.map(|bot| bot.name.clone()).unwrap_or_default(),
        version: bot.map_or(0, |bot| bot.version),
        ..MatchSeat::default()
    }
}

/// A played match, as a message.
fn played_match(edition: EditionId, roster: &Roster, played: &PlayedMatch) -> MatchStatus {
    let result = &played.result;
    let scored = |(index, entrant): (usize, &Entrant)| MatchSeat {
        score: played.score(index).to_vec(),
        forfeit: result.forfeit(index).map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
        bad_answers: result.bad_answers(index),
        ..seat(roster, *entrant)
    };
    MatchStatus {
        r#match: MatchId { edition, number: result.number }.to_string(),
        state: "reported".to_owned(),
        seats: played.seats.0.iter().enumerate().map(scored).collect(),
        params: played.params.as_ref().map(ToString::to_string).unwrap_or_default(),
        transcript: result.transcript.to_vec(),
        wall_ms: result.wall_ms,
        level: played.level.clone(),
        reused_from: played.source().map(|source| source.to_string()).unwrap_or_default(),
        ..MatchStatus::default()
    }
}

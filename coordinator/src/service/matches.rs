//! The matches of editions: their plan, state, results and records.

use arbiter_games::{Games, Seed};
use arbiter_proto::ids::{EditionId, LotId, MatchId, MatchName, MatchNumber};
use arbiter_proto::v1::{
    self, GetMatchRequest, GetRecordRequest, ListMatchesRequest, MatchSeat, MatchStatus,
    RecordPiece,
};
use arbiter_ranking::Entrant;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::bots::evidence_message;
use super::leaderboard_freeze::{Visibility, hide_players, hide_result};
use super::{
    Caller, DefaultEdition, ErrorKind, ResponseStream, Result, Service, ServiceError, match_name,
};
use crate::access::Role;
use crate::db::editions::{Edition, EditionScope, EditionState};
use crate::db::entrants::{EntrantInfo, Roster};
use crate::db::lots::LotState;
use crate::db::matches::{self, Match, Seats};
use crate::db::played_matches::{self, PlayedMatch};
use crate::db::records::{Record, Slice};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::db::{editions, entrants, faults, forfeit_evidence, records};
use crate::record_redaction;
use crate::record_store::StoreError;
use crate::tournament::lot_assignment::deal_seed;
use crate::tournament::stored_plan::{self, Positions};

/// The size of a piece of a record, in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// Planned matches of an edition, by number.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) edition: Edition,
    pub(crate) roster: Roster,
    pub(crate) matches: Vec<Match>,
}

impl Service {
    /// The state of a match.
    pub(crate) async fn get_match(
        &self,
        caller: &Caller,
        request: GetMatchRequest,
    ) -> Result<MatchStatus> {
        let name: MatchName = request.r#match.parse()?;
        let (tournament, id) = self.named_match(&name).await?;
        let planned = self.planned_match(&name, id).await?;
        let edition = self.adding_edition(id).await?;
        let infos = entrants::of_seats(&self.pool, &planned.seats.0).await?;
        let find = |entrant| find_bot(&infos, entrant);
        let mut status = match played_matches::find(&self.pool, id).await? {
            Some(played) => played_match(&name, find, &played),
            None => MatchStatus {
                r#match: name.to_string(),
                seats: planned.seats.0.iter().map(|entrant| seat(find(*entrant))).collect(),
                params: planned.params.as_ref().map(ToString::to_string).unwrap_or_default(),
                ..MatchStatus::default()
            },
        };
        self.add_evidence(id, &planned.seats, &infos, caller, &mut status).await?;
        let visibility = self.visibility(&tournament, caller)?;
        if self.visible_results(&visibility, id.tournament, &[id.number]).await?.is_empty() {
            hide_result(&mut status);
            let is_owner = infos.iter().any(|bot| caller.is_owner(bot.owner));
            if !is_owner && self.players_show_results(&tournament)? {
                hide_players(&mut status);
            }
        }
        add_seed(published_seed(&tournament, edition.number), planned.seed_key, &mut status);
        status.tournament = tournament.name;
        status.columns = self.columns_of(edition.id).await?;
        if let Some(lot_row) = played_matches::lot(&self.pool, id).await? {
            let lot = LotId { tournament: id.tournament, number: lot_row.lot };
            let faults = faults::of_lot(&self.pool, lot).await?;
            lot_row.state.as_str().clone_into(&mut status.state);
            status.failed_leases = u32::try_from(faults.len()).unwrap_or(u32::MAX);
            if caller.is_organiser() {
                status.worker = lot_row.worker.unwrap_or_default();
                status.faults = faults.into_iter().map(|fault| fault.reason).collect();
            }
        } else if status.state.is_empty() && edition.state != EditionState::Planning {
            // No edition needs it any more.
            LotState::Cancelled.as_str().clone_into(&mut status.state);
        }
        Ok(status)
    }

    async fn planned_match(&self, name: &MatchName, id: MatchId) -> Result<Match> {
        let rows = matches::range(&self.pool, id.tournament, id.number, 1).await?;
        rows.into_iter().next().ok_or_else(|| ServiceError::missing("match", name))
    }

    /// The numbers of played matches of a tournament, newest first: at most `limit`, from the match
    /// before `before` on. Whether the caller may see them is for the use case that reads them.
    pub(crate) async fn newest_matches(
        &self,
        tournament: &str,
        before: Option<MatchNumber>,
        limit: u32,
    ) -> Result<Vec<MatchNumber>> {
        let tournament = self.tournament(tournament).await?;
        Ok(played_matches::newest(&self.pool, tournament.id, before, limit).await?)
    }

    /// The number of the edition that added a match.
    pub(crate) async fn edition_of_match(&self, name: &str) -> Result<i32> {
        let (_, id) = self.named_match(&name.parse()?).await?;
        Ok(self.adding_edition(id).await?.number)
    }

    /// The games that the record of a match may name.
    pub(crate) async fn games_of_match(&self, name: &str) -> Result<Games> {
        let (_, id) = self.named_match(&name.parse()?).await?;
        self.games_of(editions::adding(&self.pool, id).await?).await
    }

    /// The names of the components of a match's scores.
    pub(crate) async fn score_columns(&self, name: &str) -> Result<Vec<String>> {
        let (_, id) = self.named_match(&name.parse()?).await?;
        self.columns_of(editions::adding(&self.pool, id).await?).await
    }

    pub(super) async fn columns_of(&self, edition: EditionId) -> Result<Vec<String>> {
        let game = editions::game(&self.pool, self.games(), edition).await?;
        Ok(game.columns.iter().map(ToString::to_string).collect())
    }

    /// The edition that added a match.
    async fn adding_edition(&self, id: MatchId) -> Result<Edition> {
        let edition = editions::adding(&self.pool, id).await?;
        let row = editions::get(&self.pool, edition).await?;
        row.ok_or_else(|| ServiceError::internal("the edition of the match is missing"))
    }

    /// Adds the reasons of forfeits that the caller may see. `bots` are those in the seats.
    async fn add_evidence(
        &self,
        id: MatchId,
        seats: &Seats,
        bots: &[EntrantInfo],
        caller: &Caller,
        status: &mut MatchStatus,
    ) -> Result<()> {
        let evidence = forfeit_evidence::of_matches(&self.pool, id.tournament, &[id.number]).await;
        for evidence in evidence? {
            let index = usize::try_from(evidence.seat - 1).unwrap_or_default();
            let bot = seats.0.get(index).and_then(|entrant| find_bot(bots, *entrant));
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
        request: ListMatchesRequest,
    ) -> Result<ResponseStream<MatchStatus>> {
        let ListMatchesRequest {
            tournament,
            edition,
            bot,
            after,
            limit,
            positions: with_positions,
        } = request;
        let board = v1::LeaderboardRef { tournament: tournament.clone(), edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Official, caller).await?;
        let row = self.tournament(&tournament).await?;
        let visibility = self.visibility(&row, caller)?;
        let roster = Roster::of(&self.pool, edition.id).await?;
        let entrant = match bot.as_str() {
            "" => None,
            name => Some(roster.find(name).ok_or_else(|| ServiceError::missing("bot", name))?),
        };
        let positions = if with_positions {
            let _permit = self.permit(caller).await?;
            let games = self.queue.games();
            Some(stored_plan::positions(&self.pool, games, &row, &edition).await?)
        } else {
            None
        };
        let limit = if limit == 0 { usize::MAX } else { limit as usize };
        let (sender, responses) = mpsc::channel(64);
        let listing = MatchListing {
            service: self.clone(),
            caller: caller.clone(),
            edition: edition.scope(),
            roster,
            entrant,
            seed: published_seed(&row, edition.number),
            tournament: row,
            positions,
            // All results of a complete edition are visible if the edition is.
            visibility: Some(visibility).filter(|_| edition.state != EditionState::Complete),
        };
        let after = MatchNumber(after.unwrap_or(-1));
        tokio::spawn(async move {
            if let Err(error) = listing.send(after, limit, &sender).await {
                // This fails if the client has closed the stream.
                drop(sender.send(Err(error)).await);
            }
        });
        Ok(Box::pin(ReceiverStream::new(responses)))
    }

    /// Planned matches of an edition. Without a number, of the newest edition.
    pub(crate) async fn planned_matches(
        &self,
        caller: &Caller,
        ListMatchesRequest { tournament, edition, bot, after, limit, .. }: ListMatchesRequest,
    ) -> Result<Planned> {
        let board = v1::LeaderboardRef { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Newest, caller).await?;
        let roster = Roster::of(&self.pool, edition.id).await?;
        let entrant = match bot.as_str() {
            "" => None,
            name => Some(roster.find(name).ok_or_else(|| {
                let error = format!("there is no bot `{name}` in edition {}", edition.number);
                ServiceError::new(ErrorKind::NotFound, error)
            })?),
        };
        let first = MatchNumber(after.map_or(0, |after| after.saturating_add(1)).max(0));
        let _permit = self.permit(caller).await?;
        let matches = matches::planned(&self.pool, edition.scope(), first, entrant, limit).await?;
        Ok(Planned { edition, roster, matches })
    }

    /// How often each bot of an edition has each seat.
    pub(crate) async fn seat_counts(
        &self,
        caller: &Caller,
        edition: &Edition,
    ) -> Result<Vec<(Entrant, Vec<i64>)>> {
        let _permit = self.permit(caller).await?;
        Ok(matches::seat_counts(&self.pool, edition.scope()).await?)
    }

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
    pub(crate) async fn record(&self, caller: &Caller, name: &str) -> Result<Vec<u8>> {
        let principal = caller.require(Role::Player)?;
        let name: MatchName = name.parse()?;
        let (tournament, id) = self.named_match(&name).await?;
        let planned = self.planned_match(&name, id).await?;
        let infos = entrants::of_seats(&self.pool, &planned.seats.0).await?;
        let owns = |entrant: &Entrant| {
            find_bot(&infos, *entrant).is_some_and(|bot| bot.owner == Some(principal.id.0))
        };
        let owned_seats: Vec<_> = planned.seats.0.iter().map(owns).collect();
        if !principal.is_organiser() {
            if !owned_seats.contains(&true) {
                let error = format!("none of your bots plays in match {name}");
                return Err(ServiceError::permission_denied(error));
            }
            let visibility = self.visibility(&tournament, caller)?;
            let visible = self.visible_results(&visibility, id.tournament, &[id.number]).await?;
            if visible.is_empty() {
                return Err(visibility.refusal());
            }
        }
        let row = records::find(&self.pool, id).await?;
        let row = row.ok_or_else(|| {
            ServiceError::failed_precondition(format!("match {name} has no record yet"))
        })?;
        let record = self.fetch_record(&tournament, id.number, row).await?;
        if principal.is_organiser() { Ok(record) } else { redact(&name, record, owned_seats).await }
    }
}

/// Removes from a record the private data of the owners of other seats.
async fn redact(name: &MatchName, record: Vec<u8>, owned_seats: Vec<bool>) -> Result<Vec<u8>> {
    let work = move || record_redaction::redact(&record, &owned_seats);
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|_| ServiceError::stopping())?.map_err(|error| {
        tracing::error!(%name, %error, "cannot read a record");
        let error = format!("the record of match {name} cannot be read; the log says why");
        ServiceError::internal(error)
    })
}

/// A stream of matches to a client.
struct MatchListing {
    service: Service,
    caller: Caller,
    edition: EditionScope,
    roster: Roster,
    /// Only matches of this entrant are sent, if there is one.
    entrant: Option<Entrant>,
    tournament: Tournament,
    /// The seed of the edition, once it is published. All its matches have this seed.
    seed: Option<Seed>,
    /// The position of each match in the schedule, if they are requested.
    positions: Option<Positions>,
    /// Only visible results are sent, if this is given.
    visibility: Option<Visibility>,
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
            for played in self.visible(page).await? {
                if self.entrant.is_some_and(|entrant| !played.seats.0.contains(&entrant)) {
                    continue;
                }
                if to.send(Ok(self.message(&played))).await.is_err() {
                    return Ok(());
                }
                sent_matches += 1;
                if sent_matches == limit {
                    return Ok(());
                }
            }
        }
    }

    /// Those of these matches whose results are visible.
    async fn visible(&self, mut page: Vec<PlayedMatch>) -> Result<Vec<PlayedMatch>> {
        let Some(visibility) = &self.visibility else { return Ok(page) };
        let numbers: Vec<_> = page.iter().map(|played| played.result.number).collect();
        let tournament = self.tournament.id;
        let visible = self.service.visible_results(visibility, tournament, &numbers).await?;
        page.retain(|played| visible.contains(&played.result.number));
        Ok(page)
    }

    fn message(&self, played: &PlayedMatch) -> MatchStatus {
        let number = played.result.number;
        let name = match_name(&self.tournament, number);
        let mut status = played_match(&name, |entrant| self.roster.get(entrant), played);
        status.tournament.clone_from(&self.tournament.name);
        status.position = self.positions.as_ref().and_then(|positions| positions.of(number));
        add_seed(self.seed, played.seed_key, &mut status);
        status
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

/// The bot of an entrant.
fn find_bot(bots: &[EntrantInfo], entrant: Entrant) -> Option<&EntrantInfo> {
    bots.iter().find(|bot| bot.entrant == entrant)
}

/// The seat of a bot.
fn seat(bot: Option<&EntrantInfo>) -> MatchSeat {
    MatchSeat {
        bot: bot.map(|bot| bot.name.clone()).unwrap_or_default(),
        version: bot.map_or(0, |bot| bot.version),
        owner: bot.and_then(|bot| bot.owner_name.clone()).unwrap_or_default(),
        ..MatchSeat::default()
    }
}

/// A played match, as a message. `find` finds the bots in its seats.
fn played_match<'a>(
    name: &MatchName,
    find: impl Fn(Entrant) -> Option<&'a EntrantInfo>,
    played: &PlayedMatch,
) -> MatchStatus {
    let result = &played.result;
    let scored = |(index, entrant): (usize, &Entrant)| MatchSeat {
        score: played.score(index).to_vec(),
        forfeit: result.forfeit(index).map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
        bad_answers: result.bad_answers(index),
        ..seat(find(*entrant))
    };
    MatchStatus {
        r#match: name.to_string(),
        state: "reported".to_owned(),
        seats: played.seats.0.iter().enumerate().map(scored).collect(),
        params: played.params.as_ref().map(ToString::to_string).unwrap_or_default(),
        transcript: result.transcript.to_vec(),
        wall_ms: result.wall_ms,
        level: played.level.clone(),
        block: Some(played.seed_key),
        board: played.board.map(i32::from),
        ..MatchStatus::default()
    }
}

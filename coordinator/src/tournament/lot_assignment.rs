//! The assignment of a lot to a worker: all data that the worker needs to play it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{Games, Seed};
use arbiter_proto::assignment::{MatchAssignment, SeatAssignment};
use arbiter_proto::convert::InvalidField;
use arbiter_proto::ids::{EditionId, LotId, LotNumber, MatchId, MatchNumber, TournamentId};
use arbiter_proto::trace::{self, Span, TraceParent};
use arbiter_proto::v1;
use arbiter_ranking::Entrant;
use serde_json::{Map, Value, json};
use sqlx::{Error, PgPool};

use super::TournamentFile;
use super::report_check::{Checker, LotCheck};
use crate::cache::SharedReads;
use crate::db::entrants::{EntrantInfo, Roster};
use crate::db::lots::LeasedLot;
use crate::db::matches::{self, Match};
use crate::db::trace_contexts::{self, Subject};
use crate::db::{editions, tournaments};
use crate::queue::Work;

mod bot_state;

use bot_state::Files;
pub use bot_state::{StateBudget, StateReservation};

/// Maximum number of editions in the cache: more than run at the same time.
const CACHED_EDITIONS: usize = 64;

/// Why a lot or a trial cannot be assigned.
#[derive(Debug, thiserror::Error)]
pub enum AssignmentError {
    /// The database cannot be read at present.
    #[error("the database failed: {0}")]
    Database(#[from] Error),
    /// The database failed to read an edition.
    #[error("cannot read edition {0}: {1}")]
    Edition(EditionId, #[source] Error),
    /// The stored data are missing or invalid, as described.
    #[error("{0}")]
    InvalidData(String),
}

/// The data that all lots of an edition share.
#[derive(Debug)]
struct EditionData {
    tournament: TournamentId,
    game: String,
    /// [`arbiter_proto::settings::Settings`] as JSON.
    settings: String,
    seed: Seed,
    boards: Vec<String>,
    board_key: String,
    checker: Checker,
    /// The bot of each entrant, or the error in its row. Each match copies its bots.
    seats: HashMap<Entrant, Result<SeatAssignment, String>>,
    /// The trace of the edition. The traces of its lots continue it.
    trace: Option<TraceParent>,
}

/// An assigned lot that waits to be sent.
#[derive(Debug)]
pub struct PreparedLot {
    /// Its message.
    pub lot: v1::Lot,
    /// The check of its report.
    pub check: LotCheck,
    /// The memory for bots' files. It is reserved until the message is sent.
    pub memory: Option<StateReservation>,
}

/// Builds the assignments of lots. It caches the data that the lots of an edition share.
#[derive(Debug)]
pub struct AssignmentBuilder {
    pool: PgPool,
    games: Games,
    editions: SharedReads<EditionId, EditionData>,
    state_budget: StateBudget,
}

impl AssignmentBuilder {
    /// A builder for the editions in this database, with these games.
    pub fn new(pool: PgPool, games: Games) -> Self {
        let state_budget = StateBudget::default();
        Self { pool, games, editions: SharedReads::new(CACHED_EDITIONS), state_budget }
    }

    /// The available games.
    pub fn games(&self) -> &Games {
        &self.games
    }

    /// The memory budget for bots' files on one worker stream.
    pub fn state_budget(&self) -> StateBudget {
        self.state_budget.for_stream()
    }

    /// The assignment of a lot. Waits for memory for the bots' files with which its matches begin.
    /// The lease ends `lease_ms` milliseconds from now.
    pub async fn assign_lot(
        &self,
        work: Work,
        lease_ms: i64,
        memory: &StateBudget,
    ) -> Result<PreparedLot, AssignmentError> {
        let start = Instant::now();
        let edition = self.edition_of(&work.lot).await?;
        let edition_data = self.edition_data(edition).await?;
        let files = Files::read(&self.pool, &work, memory).await?;
        // Only the wait for memory may take long.
        let wait_ms = match files.memory {
            Some(_) => i64::try_from(start.elapsed().as_millis()).unwrap_or(0),
            None => 0,
        };
        edition_data.lot(work, lease_ms - wait_ms, files)
    }

    /// The assignment of a lot whose data are in the cache and that needs no files.
    ///
    /// # Errors
    /// Returns the lot if data must be read. The inner errors are those of
    /// [`AssignmentBuilder::assign_lot`].
    pub fn try_assign_lot(
        &self,
        work: Work,
        lease_ms: i64,
    ) -> Result<Result<PreparedLot, AssignmentError>, Work> {
        let cached = work.lot.edition.and_then(|edition| self.editions.get(&edition));
        match cached {
            Some(edition_data) if !Files::are_needed(&work) => {
                Ok(edition_data.lot(work, lease_ms, Files::default()))
            }
            _ => Err(work),
        }
    }

    /// The report check of a lot that another coordinator assigned, or this one before a restart.
    /// The lot has `count` matches, beginning with `first`. None if there are no such matches or
    /// their tournament was deleted.
    pub async fn lot_check(
        &self,
        id: LotId,
        first: MatchNumber,
        count: i32,
    ) -> Result<Option<LotCheck>, AssignmentError> {
        let match_id = MatchId { tournament: id.tournament, number: first };
        let adding =
            async { self.edition_data(editions::adding(&self.pool, match_id).await?).await };
        let edition_data = match adding.await {
            Err(
                AssignmentError::Database(Error::RowNotFound)
                | AssignmentError::Edition(_, Error::RowNotFound),
            ) => return Ok(None),
            result => result?,
        };
        let matches = matches::range(&self.pool, id.tournament, first, count).await?;
        if matches.is_empty() {
            return Ok(None);
        }
        let check = edition_data.checker.lot(matches.iter());
        check.map(Some).map_err(|data| missing_data(id, &data))
    }

    /// The assignment of one match without files, with the game and the settings of its lot.
    pub async fn match_assignment(
        &self,
        edition: EditionId,
        planned: Match,
    ) -> Result<(String, String, MatchAssignment), AssignmentError> {
        let edition_data = self.edition_data(edition).await?;
        let tournament = edition_data.tournament;
        let lot = LotId { tournament, number: LotNumber(planned.number.0) };
        let assignment = edition_data.match_assignment(planned, &mut Files::default());
        let assignment = assignment.map_err(|data| missing_data(lot, &data))?;
        Ok((edition_data.game.clone(), edition_data.settings.clone(), assignment))
    }

    /// The edition that a lot is played for. A shadow match has the rules and the seed of the
    /// edition that added it.
    async fn edition_of(&self, lot: &LeasedLot) -> Result<EditionId, AssignmentError> {
        if let Some(edition) = lot.edition {
            return Ok(edition);
        }
        let LotId { tournament, .. } = lot.lease.lot;
        let id = lot.lease.shadow().unwrap_or(MatchId { tournament, number: lot.first_match() });
        match editions::adding(&self.pool, id).await {
            Err(Error::RowNotFound) => {
                Err(AssignmentError::InvalidData(format!("no edition has match {id}")))
            }
            edition => Ok(edition?),
        }
    }

    async fn edition_data(&self, edition: EditionId) -> Result<Arc<EditionData>, AssignmentError> {
        let read = EditionData::read(&self.pool, &self.games, edition);
        self.editions.get_or_read(edition, read).await
    }
}

impl EditionData {
    async fn read(
        pool: &PgPool,
        games: &Games,
        edition: EditionId,
    ) -> Result<Self, AssignmentError> {
        let edition_error = |cause| AssignmentError::Edition(edition, cause);
        let tournament = tournaments::of_edition(pool, edition).await.map_err(edition_error)?;
        let number = editions::number(pool, edition).await.map_err(edition_error)?;
        let file = TournamentFile::from_json(games, &tournament.settings).map_err(|cause| {
            let error = format!("cannot read the settings of edition {edition}: {cause}");
            AssignmentError::InvalidData(error)
        })?;
        let roster = Roster::of(pool, edition).await.map_err(edition_error)?;
        let trace = if trace::is_enabled() {
            trace_contexts::find(pool, Subject::Edition(edition)).await?
        } else {
            None
        };
        Ok(Self {
            tournament: tournament.id,
            trace,
            seed: tournament.edition_seed(number),
            game: tournament.game,
            settings: json!(file.settings()).to_string(),
            checker: Checker::new(&file),
            board_key: file.board_key().to_owned(),
            boards: file.boards,
            seats: roster
                .iter()
                .map(|(entrant, named)| (entrant, seat(named).map_err(|error| error.to_string())))
                .collect(),
        })
    }

    /// The assignment of a lot and the check of its report.
    fn lot(
        &self,
        work: Work,
        lease_ms: i64,
        mut files: Files,
    ) -> Result<PreparedLot, AssignmentError> {
        let Work { lot, matches } = work;
        let missing_data = |data: String| missing_data(lot.lease.lot, &data);
        let check = self.checker.lot(matches.iter());
        let matches = matches.into_iter().map(|planned| {
            let assignment = self.match_assignment(planned, &mut files).map_err(missing_data)?;
            Ok::<_, AssignmentError>(assignment.into())
        });
        let mut span = Span::follow("lot leased", self.trace.as_ref());
        span.set("lot", lot.lease.to_string());
        let lot = v1::Lot {
            lease: Some(lot.lease.into()),
            game: self.game.clone(),
            settings: self.settings.clone(),
            matches: matches.collect::<Result<_, _>>()?,
            lease_ms,
            expected_ms: lot.expected_ms.into(),
            trace: span.to_message(),
        };
        // The error of the assignment is more precise than that of the check, so it comes first.
        Ok(PreparedLot { lot, check: check.map_err(missing_data)?, memory: files.memory })
    }

    /// The assignment of one match.
    ///
    /// # Errors
    /// A description of the missing data.
    fn match_assignment(
        &self,
        planned: Match,
        files: &mut Files,
    ) -> Result<MatchAssignment, String> {
        let seats = (1..).zip(&planned.seats.0).map(|(number, entrant)| {
            let row = self.seats.get(entrant);
            let bot = row.ok_or_else(|| format!("entrant {entrant}"))?.clone();
            let bot = bot.map_err(|error| format!("bot at seat {number}: {error}"))?;
            Ok(SeatAssignment { files: files.take(planned.number, number), ..bot })
        });
        let seats = seats.collect::<Result<_, String>>()?;
        let mut params = match planned.params {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        if let Some(board) = planned.board {
            let text = usize::try_from(board).ok().and_then(|index| self.boards.get(index));
            let text = text.ok_or_else(|| format!("board {board}"))?;
            params.insert(self.board_key.clone(), json!(text));
        }
        let seed = deal_seed(self.seed, planned.seed_key);
        Ok(MatchAssignment { number: planned.number, seed, seats, params })
    }
}

/// A lot refers to missing data.
fn missing_data(lot: LotId, data: &str) -> AssignmentError {
    AssignmentError::InvalidData(format!("lot {lot} is inconsistent: there is no {data}"))
}

/// A bot in a seat, without files.
pub(super) fn seat(named: &EntrantInfo) -> Result<SeatAssignment, InvalidField> {
    SeatAssignment::new(&named.name, &named.digest, &named.program)
}

/// The seed of the matches with this seed key, in an edition with this seed.
pub fn deal_seed(edition: Seed, seed_key: i64) -> Seed {
    edition.derive(&format!("deal/{seed_key}"))
}

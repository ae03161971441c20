//! What a worker is told about a lot: everything it takes to play it.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{Games, Seed};
use arbiter_proto::assignment::{MatchAssignment, SeatAssignment};
use arbiter_proto::convert::Meaningless;
use arbiter_proto::ids::{EditionId, Lease, LotId, LotNumber, MatchNumber};
use arbiter_proto::trace::{self, Span, TraceParent};
use serde_json::{Map, Value, json};
use sqlx::{Error, PgPool};

use super::score_check::{Checker, LotCheck};
use super::{FileError, TournamentFile};
use crate::cache::Cache;
use crate::db::entrants::{Named, Roster};
use crate::db::matches::{self, Match};
use crate::db::{editions, tournaments, trace_contexts};
use crate::queue::Work;

mod bot_state;

use bot_state::Files;
pub use bot_state::{StateBudget, StateReservation};

/// Editions that are kept in mind; more than are ever played at the same time.
const EDITIONS: usize = 64;

/// Why a lot cannot be handed out.
#[derive(Debug, thiserror::Error)]
pub enum AssignmentError {
    /// The database failed.
    #[error("cannot read what edition {0} is about: {1}")]
    Database(EditionId, #[source] Error),
    /// The file of the tournament was stored by another program.
    #[error("cannot read the settings of edition {0}: {1}")]
    Settings(EditionId, #[source] FileError),
    /// A match names something that is not there.
    #[error("lot {0} makes no sense: there is no {1}")]
    Nonsense(LotId, String),
}

/// What all lots of an edition have in common.
#[derive(Debug)]
struct Constants {
    game: String,
    /// [`arbiter_proto::settings::Settings`] as JSON.
    settings: String,
    seed: Seed,
    boards: Vec<String>,
    board_key: String,
    checker: Checker,
    /// Who may be at a seat, entrant 0 first, or what is wrong with the row. It is read once an
    /// edition: matches only copy it.
    seats: Vec<Result<SeatAssignment, String>>,
    /// Where its trace goes on.
    trace: Option<TraceParent>,
}

/// A lot that is handed out.
#[derive(Clone, Debug, PartialEq)]
pub struct LotAssignment {
    /// Its lease.
    pub lease: Lease,
    /// The game.
    pub game: String,
    /// [`arbiter_proto::settings::Settings`] of all its matches, as JSON.
    pub settings: String,
    /// Its matches.
    pub matches: Vec<MatchAssignment>,
    /// How long the lease lasts from now, in milliseconds.
    pub lease_ms: i64,
    /// How long all matches take one after the other, about, in milliseconds.
    pub expected_ms: i64,
    /// Where its trace goes on; empty if it has none.
    pub trace: String,
}

/// A lot on its way to its worker.
#[derive(Debug)]
pub struct PreparedLot {
    /// What the worker is told.
    pub lot: LotAssignment,
    /// What its report is checked against.
    pub check: LotCheck,
    /// Held until the message is sent, where it is large.
    pub memory: Option<StateReservation>,
}

/// Says what workers are told of lots. What lots of an edition have in common is read once.
#[derive(Debug)]
pub struct AssignmentBuilder {
    pool: PgPool,
    games: Games,
    editions: Cache<EditionId, Constants>,
    state_budget: StateBudget,
}

impl AssignmentBuilder {
    /// For the editions of this database, of these games.
    pub fn new(pool: PgPool, games: Games) -> Self {
        let state_budget = StateBudget::default();
        Self { pool, games, editions: Cache::new(EDITIONS), state_budget }
    }

    /// The games of its editions.
    pub fn games(&self) -> &Games {
        &self.games
    }

    /// The memory of files that lots are handed out with over one stream.
    pub fn state_budget(&self) -> StateBudget {
        self.state_budget.for_stream()
    }

    /// What a worker is told of a lot, once there is memory for the files that its matches
    /// begin with. The lease ends `lease_ms` milliseconds from now.
    pub async fn assign_lot(
        &self,
        work: Work,
        lease_ms: i64,
        memory: &StateBudget,
    ) -> Result<PreparedLot, AssignmentError> {
        let begun = Instant::now();
        let edition = edition_of(work.lot.lease);
        let constants = self.constants(edition).await?;
        let files = Files::read(&self.pool, edition, &work, memory).await;
        let files = files.map_err(|cause| AssignmentError::Database(edition, cause))?;
        // Reading takes no time that counts, unless there has to be memory first.
        let waited = files.memory.is_some().then(|| begun.elapsed().as_millis());
        let waited = waited.and_then(|waited| i64::try_from(waited).ok()).unwrap_or(0);
        constants.lot(work, lease_ms - waited, files)
    }

    /// The same without waiting, if nothing has to be read for it.
    ///
    /// # Errors
    /// Gives the lot back for which something has to be read; the inner ones are those of
    /// [`AssignmentBuilder::assign_lot`].
    pub fn try_assign_lot(
        &self,
        work: Work,
        lease_ms: i64,
    ) -> Result<Result<PreparedLot, AssignmentError>, Work> {
        match self.editions.get(edition_of(work.lot.lease), None) {
            Some(constants) if !Files::are_needed(&work) => {
                Ok(constants.lot(work, lease_ms, Files::default()))
            }
            _ => Err(work),
        }
    }

    /// The check for the report of a lot that another coordinator handed out, or this one before it
    /// was restarted. The lot has `count` matches from `first` on. `None` if there are no such
    /// matches, or their tournament was dropped.
    pub async fn lot_check(
        &self,
        id: LotId,
        first: MatchNumber,
        count: i32,
    ) -> Result<Option<LotCheck>, AssignmentError> {
        let edition = id.edition;
        let failed = |cause| AssignmentError::Database(edition, cause);
        let constants = match self.constants(edition).await {
            Err(AssignmentError::Database(_, Error::RowNotFound)) => return Ok(None),
            constants => constants?,
        };
        let matches = matches::range(&self.pool, edition, first, count).await.map_err(failed)?;
        if matches.is_empty() {
            return Ok(None);
        }
        let check = constants.checker.lot(matches.iter());
        check.map(Some).map_err(|what| AssignmentError::Nonsense(id, what))
    }

    /// A match as workers are told of it, without files, with the game and the settings of its lot.
    pub async fn match_assignment(
        &self,
        edition: EditionId,
        planned: Match,
    ) -> Result<(String, String, MatchAssignment), AssignmentError> {
        let constants = self.constants(edition).await?;
        // A lot of one match is named after it.
        let lot = LotId { edition, number: LotNumber(-1 - planned.number.0) };
        let told = constants.one(planned, &mut Files::default());
        let told = told.map_err(|what| AssignmentError::Nonsense(lot, what))?;
        Ok((constants.game.clone(), constants.settings.clone(), told))
    }

    async fn constants(&self, edition: EditionId) -> Result<Arc<Constants>, AssignmentError> {
        if let Some(constants) = self.editions.get(edition, None) {
            return Ok(constants);
        }
        let constants = Constants::read(&self.pool, &self.games, edition).await?;
        Ok(self.editions.insert(edition, constants))
    }
}

/// The edition of what is leased, if it is a lot or a match that is played once more.
fn edition_of(lease: Lease) -> EditionId {
    lease.shadow().map_or(lease.lot.edition, |id| id.edition)
}

impl Constants {
    async fn read(
        pool: &PgPool,
        games: &Games,
        edition: EditionId,
    ) -> Result<Self, AssignmentError> {
        let failed = |cause| AssignmentError::Database(edition, cause);
        let tournament = tournaments::of_edition(pool, edition).await.map_err(failed)?;
        let number = editions::number(pool, edition).await.map_err(failed)?;
        let file = TournamentFile::from_json(games, &tournament.settings)
            .map_err(|cause| AssignmentError::Settings(edition, cause))?;
        let roster = Roster::of(pool, edition).await.map_err(failed)?;
        let trace = if trace::is_on() {
            trace_contexts::of_edition(pool, edition).await.map_err(failed)?
        } else {
            None
        };
        Ok(Self {
            trace,
            seed: tournament.edition_seed(number),
            game: tournament.game,
            settings: json!(file.settings()).to_string(),
            checker: Checker::new(&file),
            board_key: file.board_key().to_owned(),
            boards: file.boards,
            seats: roster
                .iter()
                .map(|(_, named)| seat(named).map_err(|why| why.to_string()))
                .collect(),
        })
    }

    /// The message that hands out a lot, and what its report is checked against.
    fn lot(
        &self,
        work: Work,
        lease_ms: i64,
        mut files: Files,
    ) -> Result<PreparedLot, AssignmentError> {
        let Work { lot, matches } = work;
        let nonsense = |what| AssignmentError::Nonsense(lot.lease.lot, what);
        let check = self.checker.lot(matches.iter());
        let matches =
            matches.into_iter().map(|planned| self.one(planned, &mut files).map_err(nonsense));
        let mut span = Span::follow("lot leased", self.trace.as_ref());
        span.set("lot", lot.lease.to_string());
        let lot = LotAssignment {
            lease: lot.lease,
            game: self.game.clone(),
            settings: self.settings.clone(),
            matches: matches.collect::<Result<_, _>>()?,
            lease_ms,
            expected_ms: lot.expected_ms.into(),
            trace: span.carried(),
        };
        // What is missing for a match is told by its message better than by its check.
        Ok(PreparedLot { lot, check: check.map_err(nonsense)?, memory: files.memory })
    }

    /// The message about one match; what is missing, if something is.
    fn one(&self, planned: Match, files: &mut Files) -> Result<MatchAssignment, String> {
        let seats = (1..).zip(&planned.seats.0).map(|(number, entrant)| {
            let known = usize::try_from(entrant.0).ok().and_then(|index| self.seats.get(index));
            let seat = known.ok_or_else(|| format!("entrant {entrant}"))?.clone();
            let seat = seat.map_err(|why| format!("bot at seat {number}: {why}"))?;
            Ok(SeatAssignment { files: files.take(planned.number, number), ..seat })
        });
        let seats = seats.collect::<Result<_, String>>()?;
        let mut params = match planned.params {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        if let Some(board) = planned.board {
            let there = usize::try_from(board).ok().and_then(|board| self.boards.get(board));
            let there = there.ok_or_else(|| format!("board {board}"))?;
            params.insert(self.board_key.clone(), json!(there));
        }
        let seed = deal_seed(self.seed, planned.deal);
        Ok(MatchAssignment { number: planned.number, seed, seats, params })
    }
}

/// A bot at a place, without files.
pub(super) fn seat(named: &Named) -> Result<SeatAssignment, Meaningless> {
    SeatAssignment::new(&named.name, &named.digest, &named.program)
}

/// The seed of the matches with this deal, in an edition with this seed.
pub fn deal_seed(edition: Seed, deal: i64) -> Seed {
    edition.derive(&format!("deal/{deal}"))
}

//! Tournaments: made, run and watched by organisers.

use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::{
    self, CancelTournamentRequest, CheckEditionRequest, CheckEditionResponse,
    CloseTournamentRequest, CreateTournamentRequest, Edition, EditionSource,
    GetEditionSourceRequest, GetTournamentRequest, ListTournamentsRequest, ListTournamentsResponse,
    LotCount, StartEditionRequest, Tournament,
};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{Caller, Result, Service, ServiceError, Which, beacon, change, micros};
use crate::access::Role;
use crate::db::editions::{self, EditionState};
use crate::db::lots::{self, Census};
use crate::db::tournaments::{self, TournamentState};
use crate::tournament::create::{self};
use crate::tournament::edition::{self, Opening, Running};
use crate::tournament::file::TournamentFile;
use crate::tournament::{Design, lineage, opener};

/// How an organiser ends a tournament.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// It is given up: nothing more is played.
    Cancel,
    /// Its official leaderboard is final, and its seed is published.
    Close,
}

impl Service {
    pub(crate) async fn create_tournament(
        &self,
        caller: &Caller,
        request: CreateTournamentRequest,
    ) -> Result<Tournament> {
        let who = caller.require(Role::Organiser)?;
        let file = TournamentFile::parse(self.queue.games(), &request.file)?;
        let mut transaction = self.pool.begin().await?;
        let made = create::create(&mut transaction, &file, self.now()).await?;
        let detail = change(&Value::Null, &json!({"settings": made.settings}));
        let (action, name) = ("tournament create", &made.name);
        self.note_in(&mut *transaction, who, action, name, Some(&detail)).await?;
        transaction.commit().await?;
        self.described(made, caller).await
    }

    pub(crate) async fn list_tournaments(
        &self,
        _: &Caller,
        _: ListTournamentsRequest,
    ) -> Result<ListTournamentsResponse> {
        let listed = tournaments::list(&self.pool).await?;
        let mut tournaments = Vec::new();
        for found in listed {
            let editions = if found.state == TournamentState::Open {
                editions::of_tournament(&self.pool, found.id).await?
            } else {
                Vec::new()
            };
            let mut running = Vec::new();
            for edition in editions.into_iter().filter(|one| one.state == EditionState::Running) {
                running.push(self.counted(edition, None).await?);
            }
            tournaments.push(message(found, running));
        }
        Ok(ListTournamentsResponse { tournaments })
    }

    pub(crate) async fn get_tournament(
        &self,
        caller: &Caller,
        request: GetTournamentRequest,
    ) -> Result<Tournament> {
        let found = self.tournament(&request.tournament).await?;
        self.described(found, caller).await
    }

    pub(crate) async fn start_edition(
        &self,
        caller: &Caller,
        StartEditionRequest { tournament, fresh }: StartEditionRequest,
    ) -> Result<Edition> {
        let who = caller.require(Role::Organiser)?;
        let tournament = self.tournament(&tournament).await?;
        let design = if fresh { Design::Fresh } else { Design::Grown };
        let opening = Opening::new(tournament.id, Running::Refuse);
        let opening = Opening { design, who: Some(who.id), ..opening };
        let opened = edition::open(&self.queue, opening, self.now()).await?;
        self.dispatcher.news();
        self.changes.tell();
        let official = editions::official(&self.pool, tournament.id).await?;
        self.counted(opened, official).await
    }

    pub(crate) async fn cancel_tournament(
        &self,
        caller: &Caller,
        request: CancelTournamentRequest,
    ) -> Result<Tournament> {
        self.end_tournament(caller, &request.tournament, Ending::Cancel).await
    }

    pub(crate) async fn close_tournament(
        &self,
        caller: &Caller,
        request: CloseTournamentRequest,
    ) -> Result<Tournament> {
        self.end_tournament(caller, &request.tournament, Ending::Close).await
    }

    /// Ends a tournament, and notes it in the audit log.
    async fn end_tournament(
        &self,
        caller: &Caller,
        name: &str,
        ending: Ending,
    ) -> Result<Tournament> {
        let who = caller.require(Role::Organiser)?;
        let found = self.tournament(name).await?;
        let mut transaction = self.pool.begin().await?;
        let before = standing_in(&mut transaction, &found).await?;
        let (id, now) = (found.id, self.now());
        let (ended, action) = match ending {
            Ending::Cancel => {
                (create::cancel(&mut transaction, id, now).await?, "tournament cancel")
            }
            Ending::Close => (create::close(&mut transaction, id, now).await?, "tournament close"),
        };
        let detail = change(&before, &standing_in(&mut transaction, &ended).await?);
        self.note_in(&mut *transaction, who, action, &ended.name, Some(&detail)).await?;
        transaction.commit().await?;
        self.changes.tell();
        self.described(ended, caller).await
    }

    pub(crate) async fn check_edition(
        &self,
        caller: &Caller,
        CheckEditionRequest { tournament, edition, records }: CheckEditionRequest,
    ) -> Result<CheckEditionResponse> {
        let found = self.tournament(&tournament).await?;
        // What counts of a tournament that is over is its official edition; a newer one may have
        // been cancelled.
        let which = match found.state {
            TournamentState::Open => Which::Newest,
            TournamentState::Closed | TournamentState::Cancelled => Which::Official,
        };
        let board = v1::LeaderboardRef { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), which, caller).await?;
        if records && !caller.organises() {
            let error = "the seeds of all records are compared for organisers";
            return Err(ServiceError::permission_denied(error));
        }
        let _turn = self.turn(caller).await?;
        let differences = self.queue.check(edition.id).await?;
        let matches = editions::counted(&self.pool, edition.id).await?;
        let mut differences: Vec<_> = differences.iter().map(ToString::to_string).collect();
        if editions::keeps_void(&mut *self.pool.acquire().await?, edition.id).await? {
            differences.push("a result counts that was declared void before".to_owned());
        }
        let number = edition.number;
        let mut checked = CheckEditionResponse {
            matches,
            differences,
            edition: number,
            ..CheckEditionResponse::default()
        };
        let tournament = tournaments::of_edition(&self.pool, edition.id).await?;
        self.check_seeds(&tournament, &edition, records, &mut checked).await?;
        Ok(checked)
    }

    pub(crate) async fn get_edition_source(
        &self,
        caller: &Caller,
        GetEditionSourceRequest { tournament, edition }: GetEditionSourceRequest,
    ) -> Result<EditionSource> {
        let found = self.tournament(&tournament).await?;
        let board = v1::LeaderboardRef { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), Which::Official, caller).await?;
        let _turn = self.turn(caller).await?;
        self.source_of(&found, &edition).await
    }
}

/// How a tournament and its newest edition stand, as the audit log tells it.
async fn standing_in(db: &mut PgConnection, tournament: &tournaments::Tournament) -> Result<Value> {
    let editions = editions::of_tournament(&mut *db, tournament.id).await?;
    let newest = editions.first().map(edition::state_of);
    let found = tournaments::get(&mut *db, tournament.id).await?;
    let state = found.map(|found| found.state.as_str());
    Ok(json!({"state": state, "newest": newest}))
}

/// An edition in short, where `official` is the official one.
fn outline(edition: &editions::Edition, official: Option<EditionId>) -> Edition {
    Edition {
        id: edition.id.0,
        number: edition.number,
        state: edition.state.as_str().to_owned(),
        official: official == Some(edition.id),
        matches: edition.matches,
        open_ended: edition.growing,
        counted: edition.counted,
        ..Edition::default()
    }
}

impl Service {
    /// A tournament with its editions.
    pub(super) async fn described(
        &self,
        found: tournaments::Tournament,
        caller: &Caller,
    ) -> Result<Tournament> {
        let sight = self.sight(&found, caller)?;
        let official = self.official(&found, &sight).await?;
        let mut described = Vec::new();
        for edition in editions::of_tournament(&self.pool, found.id).await? {
            // There may be one for each submission: those that are over are told of in short.
            let told = if described.is_empty() || edition.state == EditionState::Running {
                self.counted(edition, official).await?
            } else {
                outline(&edition, official)
            };
            described.push(told);
        }
        let mut connection = self.pool.acquire().await?;
        let due = opener::due(&mut connection, self.queue.games(), &found).await?;
        Ok(Tournament { next_edition_at_us: due.map_or(0, micros), ..message(found, described) })
    }

    /// The newest edition of a tournament.
    pub(super) async fn newest(
        &self,
        tournament: &tournaments::Tournament,
    ) -> Result<editions::Edition> {
        let all = editions::of_tournament(&self.pool, tournament.id).await?;
        all.into_iter().next().ok_or_else(|| {
            ServiceError::failed_precondition(format!(
                "tournament {name} has no edition yet; an organiser starts one: arbiter \
                 tournament start {name}",
                name = tournament.name
            ))
        })
    }

    /// An edition with its lots by state, where `official` is the official one.
    async fn counted(
        &self,
        edition: editions::Edition,
        official: Option<EditionId>,
    ) -> Result<Edition> {
        let census = lots::census(&self.pool, edition.id).await?;
        let (forecast, slots) = self.outlook(&edition, &census).await?;
        let descent = editions::lineage_of(&self.pool, edition.id).await?;
        let count = |Census { state, lots, matches }: Census| LotCount {
            state: state.as_str().to_owned(),
            lots,
            matches,
        };
        Ok(Edition {
            lots: census.into_iter().map(count).collect(),
            plan: descent.as_ref().map(lineage::told).unwrap_or_default(),
            eta_us: forecast.map(|forecast| micros(forecast.eta)),
            rate: forecast.map(|forecast| forecast.rate),
            slots,
            ..outline(&edition, official)
        })
    }

    /// How an edition stands, and whether it is over.
    pub(super) async fn state_of(
        &self,
        tournament: &tournaments::Tournament,
        edition: &editions::Edition,
        caller: &Caller,
    ) -> Result<(Edition, bool)> {
        let sight = self.sight(tournament, caller)?;
        let official = self.official(tournament, &sight).await?;
        let now = editions::get(&self.pool, edition.id).await?;
        let now = now.ok_or_else(|| ServiceError::missing("edition", edition.id))?;
        let over = matches!(now.state, EditionState::Complete | EditionState::Cancelled);
        Ok((self.counted(now, official).await?, over))
    }
}

/// An edition without what changes as time goes by although nothing happens.
pub(super) fn without_forecast(edition: Edition) -> Edition {
    Edition { eta_us: None, rate: None, ..edition }
}

/// A tournament as a message. Its seed is shown once it is over.
fn message(found: tournaments::Tournament, editions: Vec<Edition>) -> Tournament {
    let over = found.state != TournamentState::Open;
    Tournament {
        name: found.name,
        game: found.game,
        settings: found.settings.to_string(),
        state: found.state.as_str().to_owned(),
        seed_hash: found.seed_hash,
        seed: if over { found.seed.0.to_vec() } else { Vec::new() },
        created_at_us: micros(found.created_at),
        editions,
        last_error: found.trouble.unwrap_or_default(),
        next_edition_at_us: 0,
        beacon: found.beacon.as_ref().map(beacon::message),
    }
}

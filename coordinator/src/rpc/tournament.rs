//! Tournaments: made, run and watched by organisers.

use arbiter_proto::ids::{EditionId, LotId, MatchId};
use arbiter_proto::v1::tournament_service_server::TournamentService;
use arbiter_proto::v1::{
    self, Aside, CancelTournamentRequest, Certificate, CertifyEditionRequest, CheckEditionRequest,
    CheckEditionResponse, CloseTournamentRequest, CreateTournamentRequest, DropTournamentRequest,
    DropTournamentResponse, Edition, EditionEstimate, EditionSource, EstimateEditionRequest,
    FindCollusionRequest, FindCollusionResponse, GetEditionSourceRequest, GetMatchRequest,
    GetRecordRequest, GetTournamentRequest, GiveBeaconRequest, ListAsideRequest, ListAsideResponse,
    ListMatchesRequest, ListTournamentsRequest, ListTournamentsResponse, LotCount, MatchStatus,
    RecordPiece, RetryAsideRequest, RetryAsideResponse, StartEditionRequest, Tournament,
    VoidMatchesRequest, VoidMatchesResponse, WatchEditionRequest,
};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tonic::{Request, Response, Status};

use super::beacon;
use super::status::{database, match_id, missing};
use super::{Answers, Shared, Viewer, Which, change, micros};
use crate::access::Role;
use crate::db::editions::{self, EditionState};
use crate::db::lots::{self, Census};
use crate::db::tournaments::{self, TournamentState};
use crate::db::{faults, played};
use crate::queue::PlanError;
use crate::tournament::create::{self, CreateError, StateError};
use crate::tournament::edition::{self, OpenError, Running};
use crate::tournament::file::{FileError, TournamentFile};
use crate::tournament::{Design, lineage, opener};

#[tonic::async_trait]
impl TournamentService for Shared {
    async fn create_tournament(
        &self,
        request: Request<CreateTournamentRequest>,
    ) -> Result<Response<Tournament>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        let malformed = |error: FileError| Status::invalid_argument(error.to_string());
        let file = TournamentFile::parse(&request.get_ref().file).map_err(malformed)?;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let made = create::create_in(&mut transaction, &file, self.now()).await;
        let made = made.map_err(create_error)?;
        let detail = change(&Value::Null, &json!({"settings": made.settings}));
        let (action, name) = ("tournament create", &made.name);
        self.note_in(&mut *transaction, &who, action, name, Some(&detail)).await?;
        transaction.commit().await.map_err(database)?;
        self.described(made, &Viewer(Some(who))).await.map(Response::new)
    }

    async fn list_tournaments(
        &self,
        _: Request<ListTournamentsRequest>,
    ) -> Result<Response<ListTournamentsResponse>, Status> {
        let listed = tournaments::list(&self.pool).await.map_err(database)?;
        let mut tournaments = Vec::new();
        for found in listed {
            let editions = if found.state == TournamentState::Open {
                editions::of_tournament(&self.pool, found.id).await.map_err(database)?
            } else {
                Vec::new()
            };
            let mut running = Vec::new();
            for edition in editions.into_iter().filter(|one| one.state == EditionState::Running) {
                running.push(self.counted(edition, None).await?);
            }
            tournaments.push(message(found, running));
        }
        Ok(Response::new(ListTournamentsResponse { tournaments }))
    }

    async fn get_tournament(
        &self,
        request: Request<GetTournamentRequest>,
    ) -> Result<Response<Tournament>, Status> {
        let viewer = self.viewer(&request).await?;
        let found = self.tournament(&request.get_ref().tournament).await?;
        self.described(found, &viewer).await.map(Response::new)
    }

    async fn start_edition(
        &self,
        request: Request<StartEditionRequest>,
    ) -> Result<Response<Edition>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        let StartEditionRequest { tournament, fresh } = request.get_ref();
        let tournament = self.tournament(tournament).await?;
        let design = if *fresh { Design::Fresh } else { Design::Grown };
        let (queue, id) = (&self.queue, tournament.id);
        let (running, now) = (Running::Refuse, self.now());
        let opened = edition::open_for(queue, id, running, design, Some(who.id), now).await;
        let opened = opened.map_err(open_error)?;
        self.dispatcher.news();
        self.changes.tell();
        let official = editions::official(&self.pool, tournament.id).await.map_err(database)?;
        self.counted(opened, official).await.map(Response::new)
    }

    async fn estimate_edition(
        &self,
        request: Request<EstimateEditionRequest>,
    ) -> Result<Response<EditionEstimate>, Status> {
        self.admit(&request, Role::Organiser).await?;
        self.estimate(request.get_ref()).await.map(Response::new)
    }

    async fn certify_edition(
        &self,
        request: Request<CertifyEditionRequest>,
    ) -> Result<Response<Certificate>, Status> {
        let viewer = self.viewer(&request).await?;
        self.certify(request.into_inner(), &viewer).await.map(Response::new)
    }

    type WatchEditionStream = Answers<Edition>;

    async fn watch_edition(
        &self,
        request: Request<WatchEditionRequest>,
    ) -> Result<Response<Self::WatchEditionStream>, Status> {
        self.watch_one(request).await.map(Response::new)
    }

    async fn cancel_tournament(
        &self,
        request: Request<CancelTournamentRequest>,
    ) -> Result<Response<Tournament>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        let found = self.tournament(&request.get_ref().tournament).await?;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let before = standing_in(&mut transaction, &found).await?;
        let ended = create::cancel_in(&mut transaction, found.id, self.now()).await;
        let ended = ended.map_err(end_error)?;
        let detail = change(&before, &standing_in(&mut transaction, &ended).await?);
        let (action, name) = ("tournament cancel", &ended.name);
        self.note_in(&mut *transaction, &who, action, name, Some(&detail)).await?;
        transaction.commit().await.map_err(database)?;
        self.changes.tell();
        self.described(ended, &Viewer(Some(who))).await.map(Response::new)
    }

    async fn close_tournament(
        &self,
        request: Request<CloseTournamentRequest>,
    ) -> Result<Response<Tournament>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        let found = self.tournament(&request.get_ref().tournament).await?;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let before = standing_in(&mut transaction, &found).await?;
        let ended = create::close_in(&mut transaction, found.id, self.now()).await;
        let ended = ended.map_err(end_error)?;
        let detail = change(&before, &standing_in(&mut transaction, &ended).await?);
        let (action, name) = ("tournament close", &ended.name);
        self.note_in(&mut *transaction, &who, action, name, Some(&detail)).await?;
        transaction.commit().await.map_err(database)?;
        self.changes.tell();
        self.described(ended, &Viewer(Some(who))).await.map(Response::new)
    }

    async fn give_beacon(
        &self,
        request: Request<GiveBeaconRequest>,
    ) -> Result<Response<Tournament>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        let given = self.take_beacon(&who, request.get_ref()).await?;
        self.described(given, &Viewer(Some(who))).await.map(Response::new)
    }

    async fn drop_tournament(
        &self,
        request: Request<DropTournamentRequest>,
    ) -> Result<Response<DropTournamentResponse>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        self.drop_named(&who, &request.get_ref().tournament).await.map(Response::new)
    }

    async fn check_edition(
        &self,
        request: Request<CheckEditionRequest>,
    ) -> Result<Response<CheckEditionResponse>, Status> {
        let viewer = self.viewer(&request).await?;
        let CheckEditionRequest { tournament, edition, records } = request.into_inner();
        let found = self.tournament(&tournament).await?;
        // What counts of a tournament that is over is its official edition; a newer one may have
        // been cancelled.
        let which = match found.state {
            TournamentState::Open => Which::Newest,
            TournamentState::Closed | TournamentState::Cancelled => Which::Official,
        };
        let board = v1::Board { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), which, &viewer).await?;
        if records && !viewer.organises() {
            let error = "the seeds of all records are compared for organisers";
            return Err(Status::permission_denied(error));
        }
        let _turn = self.turns.take(&viewer).await?;
        let differences = self.queue.check(edition.id).await.map_err(database)?;
        let matches = editions::counted(&self.pool, edition.id).await.map_err(database)?;
        let mut differences: Vec<_> = differences.iter().map(ToString::to_string).collect();
        if editions::keeps_void(&mut *self.pool.acquire().await.map_err(database)?, edition.id)
            .await
            .map_err(database)?
        {
            differences.push("a result counts that was declared void before".to_owned());
        }
        let number = edition.number;
        let mut checked = CheckEditionResponse {
            matches,
            differences,
            edition: number,
            ..CheckEditionResponse::default()
        };
        let tournament = tournaments::of_edition(&self.pool, edition.id).await.map_err(database)?;
        self.check_seeds(&tournament, &edition, records, &mut checked).await?;
        Ok(Response::new(checked))
    }

    async fn get_edition_source(
        &self,
        request: Request<GetEditionSourceRequest>,
    ) -> Result<Response<EditionSource>, Status> {
        let viewer = self.viewer(&request).await?;
        let GetEditionSourceRequest { tournament, edition } = request.into_inner();
        let found = self.tournament(&tournament).await?;
        let board = v1::Board { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), Which::Official, &viewer).await?;
        let _turn = self.turns.take(&viewer).await?;
        self.source_of(&found, &edition).await.map(Response::new)
    }

    async fn list_aside(
        &self,
        request: Request<ListAsideRequest>,
    ) -> Result<Response<ListAsideResponse>, Status> {
        let viewer = self.viewer(&request).await?;
        let tournament = self.tournament(&request.get_ref().tournament).await?;
        let mut listed = Vec::new();
        for edition in editions::of_tournament(&self.pool, tournament.id).await.map_err(database)? {
            if edition.state == EditionState::Running {
                listed.extend(self.aside(edition.id, &viewer).await?);
            }
        }
        Ok(Response::new(ListAsideResponse { aside: listed }))
    }

    async fn retry_aside(
        &self,
        request: Request<RetryAsideRequest>,
    ) -> Result<Response<RetryAsideResponse>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        let id = match_id(&request.get_ref().r#match)?;
        let standing = played::lot(&self.pool, id).await.map_err(database)?;
        let standing = standing.ok_or_else(|| missing("match", id))?;
        let lot = LotId { edition: id.edition, number: standing.lot };
        let mut transaction = self.pool.begin().await.map_err(database)?;
        if !lots::requeue(&mut *transaction, lot).await.map_err(database)? {
            let error = format!("match {id} is not set aside");
            return Err(Status::failed_precondition(error));
        }
        let of = tournaments::of_edition(&mut *transaction, id.edition).await.map_err(database)?;
        let subject = format!("{} {id}", of.name);
        let detail = change(&json!({"state": "aside"}), &json!({"state": "pending"}));
        self.note_in(&mut *transaction, &who, "match retry", &subject, Some(&detail)).await?;
        transaction.commit().await.map_err(database)?;
        self.dispatcher.news();
        Ok(Response::new(RetryAsideResponse {}))
    }

    async fn void_matches(
        &self,
        request: Request<VoidMatchesRequest>,
    ) -> Result<Response<VoidMatchesResponse>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        self.void(&who, request.into_inner()).await.map(Response::new)
    }

    async fn find_collusion(
        &self,
        request: Request<FindCollusionRequest>,
    ) -> Result<Response<FindCollusionResponse>, Status> {
        self.admit(&request, Role::Organiser).await?;
        self.collusion(&request.into_inner()).await.map(Response::new)
    }

    async fn get_match(
        &self,
        request: Request<GetMatchRequest>,
    ) -> Result<Response<MatchStatus>, Status> {
        let viewer = self.viewer(&request).await?;
        let id = match_id(&request.get_ref().r#match)?;
        self.status_of(id, &viewer).await.map(Response::new)
    }

    type ListMatchesStream = Answers<MatchStatus>;

    async fn list_matches(
        &self,
        request: Request<ListMatchesRequest>,
    ) -> Result<Response<Self::ListMatchesStream>, Status> {
        let viewer = self.viewer(&request).await?;
        self.matches(request.into_inner(), viewer).await.map(Response::new)
    }

    type GetRecordStream = Answers<RecordPiece>;

    async fn get_record(
        &self,
        request: Request<GetRecordRequest>,
    ) -> Result<Response<Self::GetRecordStream>, Status> {
        let who = self.admit(&request, Role::Player).await?;
        let id = match_id(&request.get_ref().r#match)?;
        self.record(&who, id).await.map(Response::new)
    }
}

/// How a tournament and its newest edition stand, as the audit log tells it.
async fn standing_in(
    db: &mut PgConnection,
    tournament: &tournaments::Tournament,
) -> Result<Value, Status> {
    let editions = editions::of_tournament(&mut *db, tournament.id).await.map_err(database)?;
    let newest = editions.first().map(edition::state_of);
    let found = tournaments::get(&mut *db, tournament.id).await.map_err(database)?;
    let state = found.map(|found| found.state.word());
    Ok(json!({"state": state, "newest": newest}))
}

/// An edition in short, where `official` is the official one.
fn outline(edition: &editions::Edition, official: Option<EditionId>) -> Edition {
    Edition {
        id: edition.id.0,
        number: edition.number,
        state: edition.state.word().to_owned(),
        official: official == Some(edition.id),
        matches: edition.matches,
        growing: edition.growing,
        counted: edition.counted,
        ..Edition::default()
    }
}

impl Shared {
    /// A tournament with its editions.
    pub(super) async fn described(
        &self,
        found: tournaments::Tournament,
        viewer: &Viewer,
    ) -> Result<Tournament, Status> {
        let sight = self.sight(&found, viewer)?;
        let official = self.official(&found, &sight).await?;
        let mut described = Vec::new();
        for edition in editions::of_tournament(&self.pool, found.id).await.map_err(database)? {
            // There may be one for each submission: those that are over are told of in short.
            let told = if described.is_empty() || edition.state == EditionState::Running {
                self.counted(edition, official).await?
            } else {
                outline(&edition, official)
            };
            described.push(told);
        }
        let mut connection = self.pool.acquire().await.map_err(database)?;
        let due = opener::due(&mut connection, &found).await.map_err(database)?;
        Ok(Tournament { due_us: due.map_or(0, micros), ..message(found, described) })
    }

    /// The newest edition of a tournament.
    pub(super) async fn newest(
        &self,
        tournament: &tournaments::Tournament,
    ) -> Result<editions::Edition, Status> {
        let all = editions::of_tournament(&self.pool, tournament.id).await.map_err(database)?;
        all.into_iter().next().ok_or_else(|| {
            Status::failed_precondition(format!(
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
    ) -> Result<Edition, Status> {
        let census = lots::census(&self.pool, edition.id).await.map_err(database)?;
        let (forecast, slots) = self.outlook(&edition, &census).await?;
        let descent = editions::lineage_of(&self.pool, edition.id).await.map_err(database)?;
        let count = |Census { state, lots, matches }: Census| LotCount {
            state: state.word().to_owned(),
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
        viewer: &Viewer,
    ) -> Result<(Edition, bool), Status> {
        let sight = self.sight(tournament, viewer)?;
        let official = self.official(tournament, &sight).await?;
        let now = editions::get(&self.pool, edition.id).await.map_err(database)?;
        let now = now.ok_or_else(|| missing("edition", edition.id))?;
        let over = matches!(now.state, EditionState::Complete | EditionState::Cancelled);
        Ok((self.counted(now, official).await?, over))
    }

    /// The matches of an edition that were set aside, and for organisers why.
    async fn aside(&self, edition: EditionId, viewer: &Viewer) -> Result<Vec<Aside>, Status> {
        let mut aside = Vec::new();
        for id in lots::aside(&self.pool, edition).await.map_err(database)? {
            let number = lots::first(&self.pool, id).await.map_err(database)?;
            let mut faults = faults::of_lot(&self.pool, id).await.map_err(database)?;
            faults.retain(|_| viewer.organises());
            aside.push(Aside {
                r#match: MatchId { edition, number }.to_string(),
                reasons: faults.into_iter().map(|fault| fault.reason).collect(),
            });
        }
        Ok(aside)
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
        state: found.state.word().to_owned(),
        seed_hash: found.seed_hash,
        seed: if over { found.seed.0.to_vec() } else { Vec::new() },
        created_at_us: micros(found.created_at),
        editions,
        trouble: found.trouble.unwrap_or_default(),
        due_us: 0,
        beacon: found.beacon.as_ref().map(beacon::message),
    }
}

fn create_error(error: CreateError) -> Status {
    match error {
        CreateError::Database(error) => database(error),
        CreateError::Taken { .. } => Status::already_exists(error.to_string()),
        CreateError::BeaconIsPast { .. } => Status::failed_precondition(error.to_string()),
        CreateError::Chance(_) => Status::internal(error.to_string()),
    }
}

pub(super) fn end_error(error: StateError) -> Status {
    match error {
        StateError::Database(error) => database(error),
        other => Status::failed_precondition(other.to_string()),
    }
}

pub(super) fn open_error(error: OpenError) -> Status {
    match error {
        OpenError::Database(error)
        | OpenError::State(StateError::Database(error))
        | OpenError::Plan(PlanError::Database { cause: error, .. }) => database(error),
        other => Status::failed_precondition(other.to_string()),
    }
}

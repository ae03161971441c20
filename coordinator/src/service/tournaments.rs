//! Tournaments and their editions: creates, starts, ends, deletes, checks and shows them.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::{
    self, CancelTournamentRequest, CheckEditionRequest, CheckEditionResponse,
    CloseTournamentRequest, CreateTournamentRequest, DeleteTournamentRequest,
    DeleteTournamentResponse, Edition, EditionSource, GetEditionSourceRequest,
    GetTournamentRequest, ListTournamentsRequest, ListTournamentsResponse, LotCount,
    StartEditionRequest, Tournament,
};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgExecutor};
use time::OffsetDateTime;
use tokio::sync::OwnedSemaphorePermit;

use super::entry_state::{EntryState, cancel_notice};
use super::leaderboard_freeze::{entry_rules, freeze_notice};
use super::{
    Caller, DefaultEdition, Result, Service, ServiceError, beacon, change, game_packages, micros,
};
use crate::access::Role;
use crate::db::editions::{self, EditionState};
use crate::db::lots::{self, Census, LotState};
use crate::db::tournaments::{self, Presentation, TournamentState};
use crate::tournament::file::TournamentFile;
use crate::tournament::lifecycle;
use crate::tournament::open_edition::{self, IfRunning, OpenRequest};
use crate::tournament::{PlanMode, auto_edition, plan_history, rounds};

/// Maximum age of [`Service::new_bot_outlook`] while an edition is running. Reading it takes all
/// bots of the tournament.
pub(super) const OUTLOOK_MAX_AGE: Duration = Duration::from_secs(5);

/// How an organiser ends a tournament.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The tournament is abandoned: no more matches are played.
    Cancel,
    /// The official leaderboard is final, and the seed is published.
    Close,
}

impl Service {
    pub(crate) async fn create_tournament(
        &self,
        caller: &Caller,
        request: CreateTournamentRequest,
    ) -> Result<Tournament> {
        let principal = caller.require(Role::Organiser)?;
        let file = TournamentFile::parse(self.queue.games(), &request.file)?;
        let mut transaction = self.pool.begin().await?;
        let created = lifecycle::create(&mut transaction, &file, self.now()).await?;
        self.add_known_package(&mut transaction, &created).await?;
        let Presentation { title, replays, .. } = &created.presentation;
        let after = json!({"settings": created.settings, "title": title, "replays": replays});
        let detail = change(Value::Null, after);
        let name = &created.name;
        self.commit_change(transaction, principal, "tournament create", name, Some(detail)).await?;
        self.forget_inspected(&created)?;
        self.tournament_message(created, caller).await
    }

    pub(crate) async fn list_tournaments(
        &self,
        _: &Caller,
        _: ListTournamentsRequest,
    ) -> Result<ListTournamentsResponse> {
        let rows = tournaments::list(&self.pool).await?;
        let mut tournaments = Vec::new();
        for row in rows {
            let editions = if row.state == TournamentState::Open {
                editions::of_tournament(&self.pool, row.id).await?
            } else {
                Vec::new()
            };
            let mut running = Vec::new();
            for edition in editions {
                if edition.state == EditionState::Running {
                    running.push(self.edition_message(edition, None).await?);
                }
            }
            let listed = message(row, running, self.now());
            tournaments.push(Tournament { description: String::new(), ..listed });
        }
        Ok(ListTournamentsResponse { tournaments })
    }

    pub(crate) async fn get_tournament(
        &self,
        caller: &Caller,
        request: GetTournamentRequest,
    ) -> Result<Tournament> {
        let mut row = self.tournament(&request.tournament).await?;
        if request.edition.is_some() {
            let default = DefaultEdition::Official;
            let edition =
                self.edition_or_default(&self.pool, &row, request.edition, default, None).await?;
            row = tournaments::of_edition(&self.pool, edition.id).await?;
        }
        self.tournament_message(row, caller).await
    }

    pub(crate) async fn start_edition(
        &self,
        caller: &Caller,
        StartEditionRequest { tournament, fresh }: StartEditionRequest,
    ) -> Result<Edition> {
        let principal = caller.require(Role::Organiser)?;
        let tournament = self.tournament(&tournament).await?;
        game_packages::check_stored(&mut *self.pool.acquire().await?, &tournament).await?;
        let mode = if fresh { PlanMode::Fresh } else { PlanMode::Incremental };
        let request = OpenRequest {
            mode,
            token: Some(principal.id),
            ..OpenRequest::new(tournament.id, IfRunning::Refuse)
        };
        let edition = open_edition::open(&self.queue, request, self.now()).await?;
        self.dispatcher.news();
        self.changes.notify();
        let official = editions::official(&self.pool, tournament.id).await?;
        self.edition_message(edition, official).await
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

    /// Ends a tournament and records it in the audit log.
    async fn end_tournament(
        &self,
        caller: &Caller,
        name: &str,
        ending: Ending,
    ) -> Result<Tournament> {
        let principal = caller.require(Role::Organiser)?;
        let row = self.tournament(name).await?;
        let mut transaction = self.pool.begin().await?;
        let before = audit_state(&mut transaction, &row).await?;
        let id = row.id;
        let now = self.now();
        let (ended, action) = match ending {
            Ending::Cancel => {
                (lifecycle::cancel(&mut transaction, id, now).await?, "tournament cancel")
            }
            Ending::Close => {
                (lifecycle::close(&mut transaction, id, now).await?, "tournament close")
            }
        };
        let detail = change(before, audit_state(&mut transaction, &ended).await?);
        self.commit_change(transaction, principal, action, &ended.name, Some(detail)).await?;
        self.changes.notify();
        self.tournament_message(ended, caller).await
    }

    /// Deletes a tournament that has ended.
    pub(crate) async fn delete_tournament(
        &self,
        caller: &Caller,
        request: DeleteTournamentRequest,
    ) -> Result<DeleteTournamentResponse> {
        let principal = caller.require(Role::Organiser)?;
        let name = request.tournament.as_str();
        let id = self.tournament(name).await?.id;
        let mut transaction = self.pool.begin().await?;
        let deleted = lifecycle::delete(&mut transaction, id, self.now()).await?;
        let editions = editions::of_tournament(&mut *transaction, deleted.id).await?;
        let census = lots::census(&mut *transaction, deleted.id).await?;
        let counted = census.iter().filter(|count| count.state == LotState::Counted);
        let matches: i64 = counted.map(|count| count.matches).sum();
        let editions = u32::try_from(editions.len()).unwrap_or(u32::MAX);
        let detail = json!({
            "id": deleted.id.0, "game": deleted.game, "state": deleted.state.as_str(),
            "editions": editions, "matches": matches,
        });
        self.commit_change(transaction, principal, "tournament drop", name, Some(detail)).await?;
        self.cleaner.wake();
        self.changes.notify();
        Ok(DeleteTournamentResponse { editions, matches })
    }

    pub(crate) async fn check_edition(
        &self,
        caller: &Caller,
        CheckEditionRequest { tournament, edition, records }: CheckEditionRequest,
    ) -> Result<CheckEditionResponse> {
        let row = self.tournament(&tournament).await?;
        // If the tournament is over, its official edition is final. A newer one may be cancelled.
        let default = match row.state {
            TournamentState::Open => DefaultEdition::Newest,
            TournamentState::Closed | TournamentState::Cancelled => DefaultEdition::Official,
        };
        let board = v1::LeaderboardRef { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), default, caller).await?;
        if records && !caller.is_organiser() {
            let error = "only organisers may compare the seeds of all records";
            return Err(ServiceError::permission_denied(error));
        }
        let permit = Arc::new(self.permit(caller).await?);
        let (matches, mut differences) =
            self.check_standings(&row, &edition, Arc::clone(&permit)).await?;
        if editions::keeps_void_result(&mut *self.pool.acquire().await?, edition.id).await? {
            differences.push("a voided result still counts".to_owned());
        }
        let number = edition.number;
        let mut response = CheckEditionResponse {
            matches,
            differences,
            edition: number,
            ..CheckEditionResponse::default()
        };
        let tournament = tournaments::of_edition(&self.pool, edition.id).await?;
        self.check_seeds(&tournament, &edition, records, &mut response).await?;
        Ok(response)
    }

    pub(crate) async fn get_edition_source(
        &self,
        caller: &Caller,
        GetEditionSourceRequest { tournament, edition }: GetEditionSourceRequest,
    ) -> Result<EditionSource> {
        let row = self.tournament(&tournament).await?;
        let board = v1::LeaderboardRef { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Official, caller).await?;
        let _permit = self.permit(caller).await?;
        self.edition_source(&row, &edition).await
    }
}

impl Service {
    /// Compares the standings of an edition with its results. Returns the number of matches in the
    /// standings, and the differences. The permit is kept until the rounds are repeated, also if
    /// the client goes away.
    async fn check_standings(
        &self,
        tournament: &tournaments::Tournament,
        edition: &editions::Edition,
        permit: Arc<Option<OwnedSemaphorePermit>>,
    ) -> Result<(i64, Vec<String>)> {
        let is_replaced = edition.state == EditionState::Cancelled
            && self.newest(&self.pool, tournament).await?.id != edition.id;
        if is_replaced {
            // Its standings ended with it, and its matches were played later, for other editions.
            return Ok((0, Vec::new()));
        }
        let differences = self.queue.verify_standings(edition.scope()).await?;
        let mut differences: Vec<_> = differences.iter().map(ToString::to_string).collect();
        let queue = self.queue.clone();
        let id = edition.id;
        let compare = async move {
            let differences = rounds::rank_differences(&queue, id).await;
            drop(permit);
            differences
        };
        differences.extend(rounds::replay_aside(compare).await?);
        let matches = editions::counted(&self.pool, edition.id).await?;
        Ok((matches, differences))
    }
}

/// The state of a tournament and its newest edition, as in the audit log.
async fn audit_state(db: &mut PgConnection, tournament: &tournaments::Tournament) -> Result<Value> {
    let newest = editions::newest(&mut *db, tournament.id).await?;
    let audited = newest.as_ref().map(open_edition::audit_state);
    let row = tournaments::get(&mut *db, tournament.id).await?;
    let state = row.map(|row| row.state.as_str());
    Ok(json!({"state": state, "newest": audited}))
}

/// An edition without lots, plan and estimate. `official` is the official edition of its
/// tournament.
fn edition_summary(edition: &editions::Edition, official: Option<EditionId>) -> Edition {
    Edition {
        id: edition.id.0,
        number: edition.number,
        state: edition.state.as_str().to_owned(),
        official: official == Some(edition.id),
        matches: edition.matches,
        open_ended: edition.open_ended,
        counted: edition.counted,
        ..Edition::default()
    }
}

impl Service {
    /// A tournament with its editions.
    pub(super) async fn tournament_message(
        &self,
        row: tournaments::Tournament,
        caller: &Caller,
    ) -> Result<Tournament> {
        let visibility = self.visibility(&row, caller)?;
        let last_complete = self.official(&self.pool, &row, &visibility).await?;
        let official = last_complete.filter(|_| row.has_official_edition());
        let mut messages = Vec::new();
        for edition in editions::of_tournament(&self.pool, row.id).await? {
            // There may be an edition for each submission, so only the newest and the running one
            // get a plan and an estimate.
            let message = if messages.is_empty() || edition.state == EditionState::Running {
                self.edition_message(edition, official).await?
            } else {
                edition_summary(&edition, official)
            };
            messages.push(message);
        }
        let mut connection = self.pool.acquire().await?;
        let due = auto_edition::due_at(&mut connection, self.queue.games(), &row).await?;
        // A request that waits for a second connection while it holds one can wait for ever.
        drop(connection);
        let is_running = messages.iter().any(|edition| edition.state == "running");
        let outlook = self.new_bot_outlook(&row, is_running).await?;
        Ok(Tournament {
            announcements: self.announcements(&row).await?,
            rehearsals: tournaments::rehearsals(&self.pool, &row).await?,
            next_edition_at_us: due.map_or(0, micros),
            new_bot_outlook: outlook.unwrap_or_default(),
            ..message(row, messages, self.now())
        })
    }

    /// What the next edition will lack if one more bot enters. While an edition `is_running`, this
    /// may be as old as [`OUTLOOK_MAX_AGE`].
    async fn new_bot_outlook(
        &self,
        tournament: &tournaments::Tournament,
        is_running: bool,
    ) -> Result<Option<String>> {
        if tournament.state != TournamentState::Open || tournament.rehearsal.is_some() {
            return Ok(None);
        }
        let known = self.new_bot_outlooks.get(&tournament.id, Some(OUTLOOK_MAX_AGE));
        if let Some(known) = known.filter(|_| is_running) {
            return Ok(Option::clone(&known));
        }
        let mut db = self.pool.acquire().await?;
        let games = self.queue.games();
        let outlook = self.entry_outlook.with_new_bot(&mut db, games, tournament, None).await?;
        self.new_bot_outlooks.insert(tournament.id, outlook.clone());
        Ok(outlook)
    }

    /// The newest edition of a tournament.
    pub(super) async fn newest(
        &self,
        db: impl PgExecutor<'_>,
        tournament: &tournaments::Tournament,
    ) -> Result<editions::Edition> {
        editions::newest(db, tournament.id).await?.ok_or_else(|| {
            ServiceError::failed_precondition(format!(
                "tournament {name} has no edition yet; an organiser starts one: arbiter \
                 tournament start {name}",
                name = tournament.name
            ))
        })
    }

    /// An edition. `official` is the official edition of its tournament. Only the running edition
    /// gets lots by state: the queue is that of the tournament, and holds what this edition needs.
    pub(super) async fn edition_message(
        &self,
        edition: editions::Edition,
        official: Option<EditionId>,
    ) -> Result<Edition> {
        let census = if edition.state == EditionState::Running {
            lots::census(&self.pool, edition.tournament).await?
        } else {
            Vec::new()
        };
        let (estimate, slots) = self.completion_estimate(&edition, &census).await?;
        let row = tournaments::get(&self.pool, edition.tournament).await?;
        let plan = self.plan_summary(row.as_ref(), &edition).await?;
        // Played lots may be those of earlier editions.
        let is_waiting =
            |count: &Census| !matches!(count.state, LotState::Counted | LotState::Cancelled);
        let count = |Census { state, lots, matches }: Census| LotCount {
            state: state.as_str().to_owned(),
            lots,
            matches,
        };
        Ok(Edition {
            lots: census.into_iter().filter(is_waiting).map(count).collect(),
            plan: plan.unwrap_or_default(),
            eta_us: estimate.map(|estimate| micros(estimate.eta)),
            rate: estimate.map(|estimate| estimate.rate),
            slots,
            cancel_notice: row.as_ref().map(cancel_notice).unwrap_or_default(),
            freeze_notice: row.map(|row| freeze_notice(&row, self.now())).unwrap_or_default(),
            ..edition_summary(&edition, official)
        })
    }

    /// How the plan of an edition was made, and the number that it has instead of a requested one.
    /// It is decided when the edition opens.
    async fn plan_summary(
        &self,
        row: Option<&tournaments::Tournament>,
        edition: &editions::Edition,
    ) -> Result<Option<String>> {
        if let Some(summary) = self.plan_summaries.get(&edition.id, None) {
            return Ok(Option::clone(&summary));
        }
        // The attempt to open an edition reports an error of the file.
        let file =
            row.and_then(|row| TournamentFile::from_json(self.queue.games(), &row.settings).ok());
        let Some(file) = file else { return Ok(None) };
        let mut db = self.pool.acquire().await?;
        let summary = plan_history::summary(&mut db, &file, edition.id).await?;
        if edition.state != EditionState::Planning {
            self.plan_summaries.insert(edition.id, summary.clone());
        }
        Ok(summary)
    }

    /// The state of an edition, and whether it is over.
    pub(super) async fn edition_state(
        &self,
        tournament: &tournaments::Tournament,
        edition: &editions::Edition,
        caller: &Caller,
    ) -> Result<(Edition, bool)> {
        let visibility = self.visibility(tournament, caller)?;
        let last_complete = self.official(&self.pool, tournament, &visibility).await?;
        let official = last_complete.filter(|_| tournament.has_official_edition());
        let row = editions::get(&self.pool, edition.id).await?;
        let row = row.ok_or_else(|| ServiceError::missing("edition", edition.id))?;
        let is_over = matches!(row.state, EditionState::Complete | EditionState::Cancelled);
        Ok((self.edition_message(row, official).await?, is_over))
    }
}

/// An edition without the fields that change even if no match is played.
pub(super) fn without_estimate(edition: Edition) -> Edition {
    Edition { eta_us: None, rate: None, ..edition }
}

/// A tournament as a message. Its seed is public once it is over. Settings that cannot be read say
/// nothing about entry.
fn message(
    row: tournaments::Tournament,
    editions: Vec<Edition>,
    now: OffsetDateTime,
) -> Tournament {
    let is_over = row.state != TournamentState::Open;
    let rules = entry_rules(&row).ok();
    let entry = EntryState::of(&row, now).ok();
    let revision = row.revision().to_vec();
    let freeze_notice = freeze_notice(&row, now);
    Tournament {
        closes_at_us: rules.and_then(|rules| rules.closes).map(|closes| micros(closes.0)),
        freeze_at_us: rules.and_then(|rules| rules.freeze).map(|freeze| micros(freeze.0)),
        entry_open: entry.is_some_and(EntryState::is_open),
        entry: entry.map(|entry| entry.text(&row)).unwrap_or_default(),
        freeze_notice,
        revision,
        announcements: Vec::new(),
        rehearsal_of: row.rehearsal.map(|rehearsal| rehearsal.original).unwrap_or_default(),
        rehearsals: Vec::new(),
        name: row.name,
        game: row.game,
        settings: row.settings.to_string(),
        state: row.state.as_str().to_owned(),
        ended_at_us: row.ended_at.map(micros),
        seed_hash: row.seed_hash,
        seed: if is_over { row.seed.0.to_vec() } else { Vec::new() },
        created_at_us: micros(row.created_at),
        editions,
        last_error: row.last_error.unwrap_or_default(),
        next_edition_at_us: 0,
        new_bot_outlook: String::new(),
        beacon: row.beacon.as_ref().map(beacon::message),
        title: row.presentation.title.unwrap_or_default(),
        description: row.presentation.description.unwrap_or_default(),
        replays: row.presentation.replays.to_string(),
    }
}

//! Opens an edition: fixes the newest versions, plans their schedule, and stores what differs from
//! the edition before.
//!
//! This is one transaction: after a crash an edition exists as a whole or not at all. It runs on a
//! separate thread, because plans are computed while they are stored. It continues if the client
//! disconnects.

use std::collections::HashSet;

use arbiter_games::{Games, Seed};
use arbiter_proto::ids::{BotId, EditionId, TokenId, TournamentId, VersionId};
use arbiter_proto::trace::{self, Span};
use arbiter_ranking::Entrant;
use arbiter_schedule::{CertificateError, NameKey, ScheduleError};
use serde_json::{Value, json};
use sqlx::{Error, PgConnection, Result};
use time::OffsetDateTime;
use tokio::runtime::Handle;

use super::chained_matches::ChainedMatches;
use super::edition_matches::{self, EditionMatches};
use super::lifecycle::{self, LifecycleError};
use super::plan_difference::{PlanDifference, difference};
use super::plan_history::{self, PlanMode, PlannedField};
use super::planner::Planner;
use super::rounds::Rounds;
use super::{FileError, TournamentFile};
use crate::db::editions::{self, Edition, EditionScope, EditionState};
use crate::db::entrants::Roster;
use crate::db::matches::{self, Match};
use crate::db::tournaments::{self, Tournament};
use crate::db::trace_contexts::{self, Subject};
use crate::db::{
    self, absences, audit_log, edition_triggers, invalidated_matches, partitions, plan_histories,
    versions,
};
use crate::queue::{PlanError, Queue};

/// How a running edition affects the opening of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IfRunning {
    /// The new edition is refused.
    Refuse,
    /// The new edition replaces the running one as soon as the new one can be played.
    Replace,
}

/// Why an edition cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The tournament has ended, or an edition runs.
    #[error(transparent)]
    State(#[from] LifecycleError),
    /// The schedule is impossible with these bots.
    #[error("cannot plan {0}: {1}")]
    Schedule(String, #[source] ScheduleError),
    /// The stored tournament file is not valid for this release.
    #[error("cannot read the settings of {0}: {1}")]
    Settings(String, #[source] FileError),
    /// The plan is not as balanced as its schedule guarantees.
    #[error(
        "cannot start {0}: its plan breaks a guarantee of its schedule ({1}); make a new plan with \
         `arbiter tournament start {0} --fresh`, or change the schedule"
    )]
    Broken(String, #[source] CertificateError),
    /// The queue refuses the plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The database failed.
    #[error("cannot open an edition: {0}")]
    Database(#[from] Error),
    /// The coordinator is stopping.
    #[error("the coordinator is stopping")]
    Stopped,
}

impl OpenError {
    /// The schedule of a tournament is impossible.
    pub(super) fn schedule(tournament: &Tournament, cause: ScheduleError) -> Self {
        Self::Schedule(tournament.name.clone(), cause)
    }
}

/// A request to open an edition.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest {
    /// The tournament.
    pub tournament: TournamentId,
    /// What happens if an edition runs.
    pub if_running: IfRunning,
    /// Whether a plan of tables extends the plan before.
    pub mode: PlanMode,
    /// The token of the request, for the audit log.
    pub token: Option<TokenId>,
}

impl OpenRequest {
    /// Requests an edition that extends the plan of the edition before. The request has no token.
    pub fn new(tournament: TournamentId, if_running: IfRunning) -> Self {
        Self { tournament, if_running, mode: PlanMode::Incremental, token: None }
    }
}

/// Opens an edition over the newest version of each bot that is not withdrawn, and starts it.
///
/// # Errors
/// If the tournament has ended, another edition runs and must not be replaced, or there are too few
/// bots.
pub async fn open(
    queue: &Queue,
    request: OpenRequest,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let queue = queue.clone();
    let runtime = Handle::current();
    let work = move || runtime.block_on(open_here(&queue, request, now));
    tokio::task::spawn_blocking(work).await.map_err(|_| OpenError::Stopped)?
}

async fn open_here(
    queue: &Queue,
    OpenRequest { tournament, if_running, mode, token }: OpenRequest,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let mut transaction = queue.pool().begin().await?;
    let db = &mut *transaction;
    db::lift_time_limits(&mut *db).await?;
    let tournament = lifecycle::lock_open(db, tournament).await?;
    // Changes after this statement may be missing from the edition, so their triggers remain for
    // the next edition.
    let changes = edition_triggers::of_tournament(&mut *db, tournament.id).await?;
    let running = editions::running(&mut *db, tournament.id).await?;
    let newest = editions::newest(&mut *db, tournament.id).await?;
    if let (IfRunning::Refuse, Some(running)) = (if_running, &running) {
        let name = tournament.name;
        let number = running.number;
        return Err(LifecycleError::Runs { name, number }.into());
    }
    let edition = open_locked(db, queue.games(), &tournament, running.as_ref(), mode, now).await?;
    edition_triggers::delete(&mut *db, &changes).await?;
    if token.is_some() {
        let subject = format!("{} {}", tournament.name, edition.number);
        let detail = json!({
            "before": newest.map(|edition| audit_state(&edition)), "after": audit_state(&edition),
            "fresh": mode == PlanMode::Fresh,
        });
        audit_log::write(&mut *db, token, "tournament start", &subject, Some(&detail), now).await?;
    }
    transaction.commit().await?;
    analyze(queue, &edition).await;
    Ok(edition)
}

/// Updates the statistics of Postgres' query planner for the tables of a new edition. This is not
/// part of the transaction that opens it, which would block all other `ANALYZE` until its end.
pub(super) async fn analyze(queue: &Queue, edition: &Edition) {
    // Few new rows change no statistics.
    if edition.end_match - edition.first_match < edition.first_match / 10 {
        return;
    }
    let tournament = edition.tournament;
    let result =
        async { partitions::analyze(&mut *queue.pool().acquire().await?, tournament).await };
    // If it fails, autovacuum analyzes the tables later.
    if let Err(error) = result.await {
        tracing::debug!(edition = %edition.id, %error, "cannot analyze the tables of an edition");
    }
}

/// The state of an edition, for the audit log.
pub(crate) fn audit_state(edition: &Edition) -> Value {
    let Edition { number, state, matches, counted, .. } = edition;
    json!({"edition": number, "state": state.as_str(), "matches": matches, "counted": counted})
}

/// Plans an edition, starts it, and replaces the running edition `before`. The caller has begun the
/// transaction and locked the tournament.
pub(super) async fn open_locked(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    before: Option<&Edition>,
    mode: PlanMode,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let Tournament { id, name, .. } = tournament;
    let file = read_settings(games, tournament)?;
    let versions: Vec<_> = versions::newest(&mut *db, *id).await?;
    let bots: Vec<_> = versions.iter().map(|version| version.bot).collect();
    let version_ids: Vec<_> = versions.into_iter().map(|version| version.id).collect();
    let mut span = trace(db, &version_ids, before).await?;
    db::limit_pause(&mut *db, db::MAX_PLANNING_PAUSE).await?;
    let entry = plan_history::next(db, tournament, &file, &bots, mode).await?;
    let edition = insert_edition(db, *id, &file, &version_ids, now).await?;
    span.set("tournament", name.clone());
    span.set("edition", i64::from(edition.0));
    if let Some(parent) = span.context() {
        trace_contexts::store(&mut *db, Subject::Edition(edition), &parent).await?;
    }
    if let Some(history) = &entry.history {
        plan_histories::set(&mut *db, edition, &json!(history)).await?;
    }
    let before_this = editions::newest_before(&mut *db, edition).await?;
    let seed = tournament.next_seed();
    let opening = Opening { db, tournament, file: &file, seed, before: before_this };
    opening.store_matches(&entry, edition).await?;
    if let Some(before) = before {
        editions::cancel(&mut *db, before.id, now).await?;
    }
    editions::start(&mut *db, edition).await?;
    tournaments::set_last_error(&mut *db, *id, None).await?;
    partitions::attach_matches(&mut *db, *id).await?;
    Ok(editions::get(&mut *db, edition).await?.ok_or(Error::RowNotFound)?)
}

/// An edition that is being opened.
struct Opening<'a> {
    db: &'a mut PgConnection,
    tournament: &'a Tournament,
    file: &'a TournamentFile,
    /// The seed of the edition.
    seed: Seed,
    /// The edition before it.
    before: Option<Edition>,
}

impl Opening<'_> {
    /// Stores the matches of the edition, and its first standings.
    async fn store_matches(
        mut self,
        entry: &PlannedField,
        edition: EditionId,
    ) -> Result<(), OpenError> {
        let tournament = self.tournament;
        let field = Field::of(&mut *self.db, edition, self.seed).await?;
        let planner = Planner::new(self.file, &entry.field, &field.names, self.seed)
            .map_err(|cause| OpenError::schedule(tournament, cause))?;
        let Some(planner) = planner else {
            let rounds = Rounds::new(self.file, &field.names, self.seed)
                .map_err(|cause| PlanError::Invalid(edition, cause))?;
            rounds.store_ranks(&mut *self.db, edition, &field.entrants).await?;
            let matches = with_entrants(rounds.matches().into_iter(), &field.entrants);
            let matches: Vec<_> = matches.collect();
            return self.store_all(edition, matches.into_iter(), rounds.is_open_ended()).await;
        };
        let former = self.former_plan(entry, &field).await?;
        if !former.as_ref().is_some_and(|former| former.has_same_bots) {
            let broken = |cause| OpenError::Broken(tournament.name.clone(), cause);
            planner.prove().map_err(broken)?;
        }
        let matches = || with_entrants(planner.matches(), &field.entrants);
        if planner.is_chained() {
            return self.store_chained(edition, matches(), former.is_some()).await;
        }
        let difference = match &former {
            Some(former) => former.difference(self.file, self.seed, planner, &field),
            None => None,
        };
        match difference {
            Some(difference) => self.store_difference(edition, difference, matches).await,
            None => self.store_all(edition, matches(), false).await,
        }
    }

    /// The plan of the edition before, if it can be compared: it has the same seed and rules, and
    /// its matches are still in the queue.
    async fn former_plan(
        &mut self,
        entry: &PlannedField,
        field: &Field,
    ) -> Result<Option<FormerPlan>, OpenError> {
        let Some(before) = &self.before else { return Ok(None) };
        if before.rules != self.file.game().rules_identity()
            || self.tournament.edition_seed(before.number) != self.seed
            || before.state == EditionState::Cancelled
        {
            return Ok(None);
        }
        let db = &mut *self.db;
        let former = (self.tournament, self.seed);
        let planned = match plan_history::of_edition(db, former, self.file, before.id).await {
            // A plan that is impossible now was made by another program.
            Err(OpenError::Schedule(..)) => return Ok(None),
            planned => planned?,
        };
        let its_field = Field::of(db, before.id, self.seed).await?;
        let has_same_bots = its_field.bots == field.bots && planned.history == entry.history;
        Ok(Some(FormerPlan { planned, field: its_field, has_same_bots }))
    }

    /// Prevents that results are counted and rounds are added until the edition is open, and reads
    /// the edition before again: this may have happened since it was read. Returns the scope of the
    /// edition.
    async fn lock(&mut self, edition: EditionId) -> Result<EditionScope> {
        // From here on the coordinator computes little between two statements.
        db::limit_pause(&mut *self.db, db::MAX_PAUSE).await?;
        absences::lock(&mut *self.db, self.tournament.id).await?;
        if let Some(before) = &mut self.before {
            *before = editions::get(&mut *self.db, before.id).await?.ok_or(Error::RowNotFound)?;
        }
        // Its matches are numbered after those of rounds that were added meanwhile.
        editions::begin_after_stored(&mut *self.db, edition).await
    }

    /// Stores the matches that only this edition has, and takes out those that only the edition
    /// before has. Lists all matches of the edition if the plan before is not the stored one.
    async fn store_difference<M: Iterator<Item = Match>>(
        mut self,
        edition: EditionId,
        difference: PlanDifference,
        matches: impl FnOnce() -> M,
    ) -> Result<(), OpenError> {
        let scope = self.lock(edition).await?;
        let before = self.before.as_ref().ok_or(Error::RowNotFound)?;
        let tournament = self.tournament.id;
        let game = self.file.game();
        let scope = EditionScope { from: before.from_match, ..scope };
        let PlanDifference { gone, mut added } = difference;
        let void = invalidated_matches::of_edition(&mut *self.db, before.scope()).await?;
        let again = matches::of_numbers(&mut *self.db, tournament, &void).await?;
        if !again.is_empty() {
            let gone: HashSet<_> = gone.iter().map(Match::key).collect();
            added.extend(again.into_iter().filter(|void| !gone.contains(&void.key())));
        }
        let members =
            edition_matches::continue_from(&mut *self.db, game, scope, before, &gone, &void)
                .await?;
        let Some(members) = members else {
            tracing::warn!(%edition, "the plan before is not the stored one; comparing all matches");
            return self.store_all(edition, matches(), false).await;
        };
        let mut adding = EditionMatches::new(&mut *self.db, self.file, scope, members).await?;
        adding.add(&mut *self.db, added.into_iter()).await?;
        Ok(adding.finish(self.db, false).await?)
    }

    /// Stores all matches, those of earlier editions by looking up each.
    async fn store_all(
        mut self,
        edition: EditionId,
        matches: impl Iterator<Item = Match>,
        is_open_ended: bool,
    ) -> Result<(), OpenError> {
        let mut scope = self.lock(edition).await?;
        let db = self.db;
        if let Some(before) = &self.before {
            absences::begin_all(&mut *db, scope, before.scope()).await?;
            scope.from = scope.end;
        }
        let mut adding = EditionMatches::new(&mut *db, self.file, scope, 0).await?;
        adding.add(&mut *db, matches).await?;
        adding.finish(&mut *db, is_open_ended).await?;
        if self.before.is_some() {
            edition_matches::drop_unneeded(db, scope, is_open_ended).await?;
        }
        Ok(())
    }

    /// Stores matches that pass files to each other.
    async fn store_chained(
        mut self,
        edition: EditionId,
        matches: impl Iterator<Item = Match>,
        is_comparable: bool,
    ) -> Result<(), OpenError> {
        let scope = self.lock(edition).await?;
        let db = self.db;
        let game = self.file.game();
        let before = self.before.as_ref().filter(|_| is_comparable);
        let void = match before {
            Some(before) => invalidated_matches::of_edition(&mut *db, before.scope()).await?,
            None => Vec::new(),
        };
        let former = before.map(Edition::scope);
        let chained = ChainedMatches::new(&mut *db, matches, former, &void, scope.end).await?;
        match (before, &self.before) {
            (Some(before), _) => {
                let gone = &chained.gone;
                edition_matches::continue_without(&mut *db, game, scope, before, gone, true)
                    .await?;
            }
            (None, Some(other)) => {
                absences::begin_all(&mut *db, scope, other.scope()).await?;
                edition_matches::drop_unneeded(&mut *db, scope, true).await?;
            }
            (None, None) => {}
        }
        let checks = editions::has_comparable(&mut *db, scope).await?;
        Ok(chained.store(db, self.file, scope, checks).await?)
    }
}

/// The bots of an edition, in the order of its schedule.
struct Field {
    bots: Vec<BotId>,
    entrants: Vec<Entrant>,
    names: Vec<NameKey>,
}

impl Field {
    async fn of(db: &mut PgConnection, edition: EditionId, seed: Seed) -> Result<Self> {
        let roster = Roster::of(db, edition).await?;
        Ok(Self {
            bots: roster.iter().map(|(_, named)| named.bot).collect(),
            entrants: roster.iter().map(|(entrant, _)| entrant).collect(),
            names: roster.iter().map(|(_, named)| NameKey::of(seed, &named.name)).collect(),
        })
    }
}

/// The plan of the edition before.
struct FormerPlan {
    planned: PlannedField,
    field: Field,
    /// Whether the plans differ only in the versions of bots.
    has_same_bots: bool,
}

impl FormerPlan {
    /// The difference to the plan of a new edition. None if it is not worth its memory.
    fn difference(
        &self,
        file: &TournamentFile,
        seed: Seed,
        planner: Planner<'_>,
        field: &Field,
    ) -> Option<PlanDifference> {
        if self.has_same_bots {
            let pairs = self.field.entrants.iter().zip(&field.entrants);
            let changed: Vec<_> = pairs.map(|(before, after)| before != after).collect();
            let affected = planner.matches_of(&changed);
            let gone = with_entrants(affected.iter().cloned(), &self.field.entrants).collect();
            let added = with_entrants(affected.into_iter(), &field.entrants).collect();
            return Some(PlanDifference { gone, added });
        }
        let former = Planner::new(file, &self.planned.field, &self.field.names, seed);
        // A plan that is impossible now was made by another program.
        let Ok(Some(former)) = former else { return None };
        let former = with_entrants(former.matches(), &self.field.entrants);
        difference(former, with_entrants(planner.matches(), &field.entrants))
    }
}

/// Matches whose seats hold places in the schedule, with the entrants of these places.
pub(super) fn with_entrants(
    planned: impl Iterator<Item = Match>,
    entrants: &[Entrant],
) -> impl Iterator<Item = Match> {
    planned.map(|mut planned| {
        for seat in &mut planned.seats.0 {
            let place = usize::try_from(seat.0).expect("a place is not negative");
            *seat = entrants[place];
        }
        planned
    })
}

/// Begins the trace span of an edition, and ends the trace of the replaced edition. The span
/// continues the traces of versions that no earlier edition includes.
async fn trace(
    db: &mut PgConnection,
    versions: &[VersionId],
    before: Option<&Edition>,
) -> Result<Span> {
    if !trace::is_enabled() {
        return Ok(Span::NONE);
    }
    if let Some(before) = before {
        let parent = trace_contexts::take_edition(&mut *db, before.id).await?;
        drop(Span::since("edition replaced", parent.as_ref(), before.created_at.into()));
    }
    let parents = trace_contexts::take_versions(db, versions).await?;
    Ok(Span::join("edition opened", &parents))
}

/// Reads the stored tournament file.
pub(super) fn read_settings(
    games: &Games,
    tournament: &Tournament,
) -> Result<TournamentFile, OpenError> {
    TournamentFile::from_json(games, &tournament.settings)
        .map_err(|cause| OpenError::Settings(tournament.name.clone(), cause))
}

/// Inserts an edition with these versions.
async fn insert_edition(
    db: &mut PgConnection,
    tournament: TournamentId,
    file: &TournamentFile,
    versions: &[VersionId],
    now: OffsetDateTime,
) -> Result<EditionId> {
    let components = file.game().columns.len();
    let components = i16::try_from(components).expect("a score has a few numbers");
    let rules = file.game().rules_identity();
    let edition = editions::create(&mut *db, tournament, components, false, rules, now).await?;
    editions::enter(&mut *db, edition, versions).await?;
    Ok(edition)
}

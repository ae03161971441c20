//! Rounds that depend on the results of the rounds before: episodes, knockouts.
//!
//! The first round is planned when the edition opens. When every planned match is counted, the next
//! round is planned. It depends only on the tournament's seed, its bots and the results, so any
//! coordinator may plan it, also after a crash. The matches of a round, their lots, the ranks that
//! follow from the plan and whether more matches follow are stored in one transaction.

use std::collections::{BTreeMap, HashMap, HashSet};

use arbiter_games::{Games, Score, Seed};
use arbiter_proto::ids::{EditionId, MatchNumber};
use arbiter_ranking::Entrant;
use arbiter_schedule::{NameKey, Plan, PlannedMatch, RoundPlan};
use sqlx::{Error, PgConnection, PgTransaction};
use tokio::runtime::Handle;

use super::TournamentFile;
use super::edition_matches::EditionMatches;
use super::episode_rounds::EpisodeRounds;
use super::open_edition::with_entrants;
use super::planner::{SeedKeys, match_of};
use super::played_rounds::{PlayedRounds, RoundMatch};
use crate::background;
use crate::db::editions::Edition;
use crate::db::entrants::Roster;
use crate::db::matches::{self, Match};
use crate::db::results::{self, SeatedResult};
use crate::db::tournaments::Tournament;
use crate::db::{self, absences, editions, plan_ranks, tournaments};
use crate::queue::{PlanError, Queue};

/// The plan of an edition at the beginning of a round.
#[derive(Debug)]
pub(super) struct Rounds<'a> {
    kind: Kind<'a>,
    /// The number of rounds before this one.
    finished: u32,
    /// The place of the round's first match in the plan.
    first: i64,
}

#[derive(Debug)]
enum Kind<'a> {
    Episodes(EpisodeRounds),
    Plan { plan: RoundPlan, seed_keys: SeedKeys<'a> },
}

impl<'a> Rounds<'a> {
    /// The first round for bots of these names.
    ///
    /// # Errors
    /// If the plan is impossible, or does not depend on results.
    pub(super) fn new(
        file: &TournamentFile,
        names: &'a [NameKey],
        seed: Seed,
    ) -> Result<Self, String> {
        let rounds = file.schedule.rounds(names, seed).map_err(|error| error.to_string())?;
        let kind = if let Some(plan) = rounds {
            Kind::Plan { plan, seed_keys: SeedKeys::of_rounds(file, names) }
        } else {
            let plan = file.schedule.plan(names.len(), seed).map_err(|error| error.to_string())?;
            let Plan::Episodes(plan) = plan else {
                return Err("the schedule does not depend on results".to_owned());
            };
            Kind::Episodes(EpisodeRounds::new(file, plan, seed)?)
        };
        Ok(Self { kind, finished: 0, first: 0 })
    }

    /// The matches of the round, numbered by their places in the plan. Their seats hold the places
    /// of bots.
    pub(super) fn matches(&self) -> Vec<Match> {
        match &self.kind {
            Kind::Episodes(episodes) => episodes.matches(self.first).collect(),
            Kind::Plan { plan, seed_keys } => {
                let matches = (self.first..).zip(plan.matches());
                let planned = |(number, planned): (i64, PlannedMatch)| {
                    match_of(MatchNumber(number), &planned, seed_keys.of_unrepeated(&planned))
                };
                matches.map(planned).collect()
            }
        }
    }

    /// Advances to the next round with the results of this one, in the order of their matches.
    ///
    /// # Errors
    /// If they are not the results of these matches.
    pub(super) fn finish(&mut self, results: &[SeatedResult]) -> Result<(), String> {
        let planned = self.matches();
        if planned.len() != results.len() {
            let round = self.finished + 1;
            return Err(format!("round {round} is not over"));
        }
        let differs = |(planned, played): &(&Match, &SeatedResult)| planned.seats != played.seats;
        if let Some((planned, _)) = planned.iter().zip(results).find(differs) {
            return Err(format!("match {} was planned for other bots", planned.number));
        }
        match &mut self.kind {
            Kind::Episodes(episodes) => episodes.finish(results)?,
            Kind::Plan { plan, .. } => {
                let scores: Vec<_> = results.iter().map(scores).collect::<Result<_, _>>()?;
                plan.finish(&scores).map_err(|error| error.to_string())?;
            }
        }
        self.first += i64::try_from(planned.len()).expect("no round is that long");
        self.finished += 1;
        Ok(())
    }

    /// Whether more matches may follow after this round.
    pub(super) fn is_open_ended(&self) -> bool {
        match &self.kind {
            Kind::Episodes(episodes) => episodes.is_open_ended(),
            Kind::Plan { plan, .. } => !plan.is_over(),
        }
    }

    /// The ranks of the bots by the results so far, if the plan decides them.
    pub(super) fn ranks(&self) -> Option<Vec<u32>> {
        match &self.kind {
            Kind::Episodes(_) => None,
            Kind::Plan { plan, .. } => Some(plan.ranks()),
        }
    }

    /// The plan, unless it has episodes.
    fn plan(&self) -> Option<&RoundPlan> {
        match &self.kind {
            Kind::Episodes(_) => None,
            Kind::Plan { plan, .. } => Some(plan),
        }
    }

    /// The plan, unless it has episodes.
    fn into_plan(self) -> Option<RoundPlan> {
        match self.kind {
            Kind::Episodes(_) => None,
            Kind::Plan { plan, .. } => Some(plan),
        }
    }

    /// The ranks of these entrants by the results so far, if the plan decides them.
    fn ranks_of(&self, entrants: &[Entrant]) -> Option<BTreeMap<Entrant, u32>> {
        self.ranks().map(|ranks| entrants.iter().copied().zip(ranks).collect())
    }

    /// Stores the ranks of the entrants of an edition, if the plan decides them.
    pub(super) async fn store_ranks(
        &self,
        db: &mut PgConnection,
        edition: EditionId,
        entrants: &[Entrant],
    ) -> sqlx::Result<()> {
        let Some(ranks) = self.ranks_of(entrants) else { return Ok(()) };
        plan_ranks::set(db, edition, &ranks).await
    }
}

/// Runs a replay of rounds on a thread for blocking work: the pairings of a large round take long
/// to compute. The replay ends even if the returned future is dropped.
///
/// # Errors
/// Those of the replay and of [`background::aside`].
pub(crate) async fn replay_aside<T: Send + 'static>(
    replay: impl Future<Output = sqlx::Result<T>> + Send + 'static,
) -> sqlx::Result<T> {
    let runtime = Handle::current();
    background::aside(move || runtime.block_on(replay)).await
}

/// The score of each seat of a match.
pub(super) fn scores(played: &SeatedResult) -> Result<Vec<Score>, String> {
    let seats = played.seats.0.len();
    let components = played.scores.len() / seats.max(1);
    if components == 0 || played.scores.len() != components * seats {
        return Err(format!("match {} has no score for each seat", played.number));
    }
    Ok(played.scores.chunks_exact(components).map(|score| Score(score.to_vec())).collect())
}

/// Plans the next round of an edition if all planned matches are counted. Returns whether this call
/// planned it. If there are several concurrent calls, only one plans it.
pub async fn plan_next_round(queue: &Queue, edition: EditionId) -> sqlx::Result<bool> {
    let pool = queue.pool();
    let Some(planned) = editions::matches_if_round_ended(pool, edition).await? else {
        return Ok(false);
    };
    // The replay is long, so it comes before any row is locked.
    let replay = {
        let queue = queue.clone();
        Box::pin(async move { NextRound::of(&queue, edition, planned).await })
    };
    let Some(next) = replay_aside(replay).await? else { return Ok(false) };
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    db::lift_time_limits(&mut *db).await?;
    absences::lock(&mut *db, next.edition.tournament).await?;
    // If another coordinator has planned this round in the meantime, the number of matches has
    // changed.
    if !editions::lock(&mut *db, edition, planned).await? {
        // The check locked the row of the edition, and leases skip locked rows.
        transaction.rollback().await?;
        return Ok(false);
    }
    next.add(db).await?;
    transaction.commit().await?;
    Ok(true)
}

/// The next round of an edition whose planned matches are all counted.
struct NextRound {
    edition: Edition,
    file: TournamentFile,
    /// Its matches, with entrants in their seats.
    matches: Vec<Match>,
    /// The ranks after the round before, if the plan decides them.
    ranks: Option<BTreeMap<Entrant, u32>>,
    /// Whether more matches may follow after it.
    is_open_ended: bool,
}

impl NextRound {
    /// The round after the first `planned` matches of an edition. `None` if it has more by now.
    async fn of(queue: &Queue, edition: EditionId, planned: i64) -> sqlx::Result<Option<Self>> {
        let mut transaction = replay_snapshot(queue).await?;
        let db = &mut *transaction;
        let edition = editions::get(&mut *db, edition).await?.ok_or(Error::RowNotFound)?;
        if edition.matches != planned {
            return Ok(None);
        }
        let id = edition.id;
        let tournament = tournaments::of_edition(&mut *db, id).await?;
        let file = TournamentFile::from_json(queue.games(), &tournament.settings)
            .map_err(|error| inconsistent(id, &error.to_string()))?;
        let field = StoredField::of(&mut *db, &tournament, &edition).await?;
        let rounds = field.replay(db, &file, &edition, planned, &HashSet::new(), |_, _| {}).await?;
        if rounds.first < planned {
            return Err(inconsistent(id, &format!("round {} is not over", rounds.finished + 1)));
        }
        let matches = with_entrants(rounds.matches().into_iter(), &field.entrants).collect();
        let ranks = rounds.ranks_of(&field.entrants);
        let is_open_ended = rounds.is_open_ended();
        Ok(Some(Self { edition, file, matches, ranks, is_open_ended }))
    }

    /// Adds it to its edition, which is locked.
    async fn add(self, db: &mut PgConnection) -> sqlx::Result<()> {
        let Self { edition, file, matches, ranks, is_open_ended } = self;
        if let Some(ranks) = ranks {
            plan_ranks::set(&mut *db, edition.id, &ranks).await?;
        }
        let mut adding = EditionMatches::new(&mut *db, &file, edition.scope(), 0).await?;
        adding.add(&mut *db, matches.into_iter()).await?;
        adding.finish(db, is_open_ended).await.map_err(|error| match error {
            PlanError::Database(cause) => cause,
            PlanError::Invalid(_, reason) => inconsistent(edition.id, &reason),
        })
    }
}

/// A snapshot for a replay of rounds, which pauses while it computes pairings.
async fn replay_snapshot(queue: &Queue) -> sqlx::Result<PgTransaction<'static>> {
    let mut transaction = db::snapshot(queue.pool()).await?;
    db::lift_time_limits(&mut *transaction).await?;
    db::limit_pause(&mut *transaction, db::MAX_PLANNING_PAUSE).await?;
    Ok(transaction)
}

fn inconsistent(edition: EditionId, reason: &str) -> Error {
    Error::Decode(format!("cannot plan the next round of edition {edition}: {reason}").into())
}

/// The bots of a stored edition, in the order of its schedule.
struct StoredField {
    seed: Seed,
    entrants: Vec<Entrant>,
    names: Vec<NameKey>,
}

impl StoredField {
    async fn of(
        db: &mut PgConnection,
        tournament: &Tournament,
        edition: &Edition,
    ) -> sqlx::Result<Self> {
        let roster = Roster::of(&mut *db, edition.id).await?;
        let seed = tournament.edition_seed(edition.number);
        Ok(Self {
            seed,
            entrants: roster.iter().map(|(entrant, _)| entrant).collect(),
            names: roster.iter().map(|(_, named)| NameKey::of(seed, &named.name)).collect(),
        })
    }

    /// The plan of an edition after all its rounds that are over without the `missing` results and
    /// lie within its first `until` matches. Calls `visit` at the beginning of each stored round,
    /// with its matches.
    async fn replay(
        &self,
        db: &mut PgConnection,
        file: &TournamentFile,
        edition: &Edition,
        until: i64,
        missing: &HashSet<MatchNumber>,
        mut visit: impl FnMut(&Rounds<'_>, &[StoredMatch]),
    ) -> sqlx::Result<Rounds<'_>> {
        let inconsistent = |reason: String| inconsistent(edition.id, &reason);
        let mut rounds = Rounds::new(file, &self.names, self.seed).map_err(inconsistent)?;
        while rounds.first < edition.matches {
            let round = rounds.matches().into_iter();
            let round = with_entrants(round, &self.entrants).collect::<Vec<_>>();
            let Some(last) = round.last().map(|last| last.number.0) else { break };
            if last >= edition.matches {
                break;
            }
            let stored = stored_matches(db, edition, &round, &self.entrants).await?;
            visit(&rounds, &stored);
            let mut results: Vec<_> =
                stored.into_iter().filter_map(|stored| stored.result).collect();
            results.retain(|played| !missing.contains(&played.number));
            if last >= until || results.len() < round.len() {
                break;
            }
            rounds.finish(&results).map_err(inconsistent)?;
        }
        Ok(rounds)
    }
}

/// The plan of a stored edition after all its rounds whose results are counted. None if its matches
/// do not depend on results, or if it has episodes.
pub async fn stored_plan(
    db: &mut PgConnection,
    games: &Games,
    edition: &Edition,
) -> sqlx::Result<Option<RoundPlan>> {
    plan_without(db, games, edition, &HashSet::new()).await
}

/// Like [`stored_plan`], without the `missing` results.
async fn plan_without(
    db: &mut PgConnection,
    games: &Games,
    edition: &Edition,
    missing: &HashSet<MatchNumber>,
) -> sqlx::Result<Option<RoundPlan>> {
    let Some((file, field, _)) = round_schedule(db, games, edition).await? else { return Ok(None) };
    let until = counted_matches(edition);
    let rounds = field.replay(db, &file, edition, until, missing, |_, _| {}).await?;
    Ok(rounds.into_plan())
}

/// The rounds of a stored edition so far. None if its matches do not depend on results, or if it
/// has episodes.
///
/// # Errors
/// If the plan differs from the stored matches.
pub async fn played_rounds(
    db: &mut PgConnection,
    games: &Games,
    edition: &Edition,
) -> sqlx::Result<Option<PlayedRounds>> {
    let Some((file, field, first)) = round_schedule(db, games, edition).await? else {
        return Ok(None);
    };
    let mut played = PlayedRounds::new(&first);
    let mut is_valid = Ok(());
    let visit = |rounds: &Rounds<'_>, stored: &[StoredMatch]| {
        let Some(plan) = rounds.plan() else { return };
        match round_matches(plan, stored) {
            Ok(matches) => played.add(plan, matches),
            Err(reason) => is_valid = Err(inconsistent(edition.id, &reason)),
        }
    };
    let until = counted_matches(edition);
    let rounds = field.replay(db, &file, edition, until, &HashSet::new(), visit).await?;
    is_valid?;
    let finished = rounds.finished as usize;
    Ok(rounds.into_plan().map(|plan| played.finish(plan, finished)))
}

/// The number of matches within which a round of an edition can be over. The next round is planned
/// when all results are counted. Until then the last round is not over.
fn counted_matches(edition: &Edition) -> i64 {
    if edition.open_ended { edition.matches - 1 } else { edition.matches }
}

/// The matches of the present round of a plan, with what is stored of them.
fn round_matches(plan: &RoundPlan, stored: &[StoredMatch]) -> Result<Vec<RoundMatch>, String> {
    let matches = plan.matches().into_iter().zip(stored);
    let with_scores = |(planned, stored): (PlannedMatch, &StoredMatch)| {
        let scores = stored.result.as_ref().map(scores).transpose()?;
        Ok(RoundMatch { planned, number: stored.number, scores })
    };
    matches.map(with_scores).collect()
}

/// The file, the bots and the first round of a stored edition. None if its matches do not depend on
/// results, or if it has episodes.
async fn round_schedule(
    db: &mut PgConnection,
    games: &Games,
    edition: &Edition,
) -> sqlx::Result<Option<(TournamentFile, StoredField, RoundPlan)>> {
    let tournament = tournaments::of_edition(&mut *db, edition.id).await?;
    let file = TournamentFile::from_json(games, &tournament.settings)
        .map_err(|error| inconsistent(edition.id, &error.to_string()))?;
    let field = StoredField::of(&mut *db, &tournament, edition).await?;
    let first = file.schedule.rounds(&field.names, field.seed);
    let first = first.map_err(|error| inconsistent(edition.id, &error.to_string()))?;
    Ok(first.map(|first| (file, field, first)))
}

/// The ranks of the entrants of an edition by its rounds that are over without the `missing`
/// results. With all results they are the ranks that are stored when the next round is planned.
/// None if its plan decides no ranks.
pub(crate) async fn ranks_without(
    db: &mut PgConnection,
    games: &Games,
    edition: &Edition,
    missing: &HashSet<MatchNumber>,
) -> sqlx::Result<Option<BTreeMap<Entrant, u32>>> {
    let Some(plan) = plan_without(&mut *db, games, edition, missing).await? else {
        return Ok(None);
    };
    let roster = Roster::of(&mut *db, edition.id).await?;
    Ok(Some(roster.iter().map(|(entrant, _)| entrant).zip(plan.ranks()).collect()))
}

/// Compares the stored ranks of an edition with those that follow from its plan and results.
/// Returns a description of each difference. Repeats all rounds, so it may compute for long.
pub async fn rank_differences(queue: &Queue, edition: EditionId) -> sqlx::Result<Vec<String>> {
    let mut transaction = replay_snapshot(queue).await?;
    let db = &mut *transaction;
    let edition = editions::get(&mut *db, edition).await?.ok_or(Error::RowNotFound)?;
    let stored = plan_ranks::of_edition(&mut *db, edition.id).await?;
    let computed = ranks_without(db, queue.games(), &edition, &HashSet::new()).await?;
    let computed = computed.unwrap_or_default();
    let mut entrants: Vec<_> = stored.keys().chain(computed.keys()).copied().collect();
    entrants.sort_unstable();
    entrants.dedup();
    let differing =
        entrants.into_iter().filter(|entrant| stored.get(entrant) != computed.get(entrant));
    let text = |rank: Option<&u32>| rank.map_or("none".to_owned(), u32::to_string);
    let difference = |entrant: Entrant| {
        let stored = text(stored.get(&entrant));
        let computed = text(computed.get(&entrant));
        format!("entrant {entrant}: its stored rank is {stored}, the results give {computed}")
    };
    Ok(differing.map(difference).collect())
}

/// What is stored of a planned match.
#[derive(Debug)]
struct StoredMatch {
    /// Its number; `None` if the edition does not have it.
    number: Option<MatchNumber>,
    /// Its result, with the places of bots in the seats; `None` until it is played.
    result: Option<SeatedResult>,
}

/// What is stored of planned matches of an edition, in their order.
async fn stored_matches(
    db: &mut PgConnection,
    edition: &Edition,
    planned: &[Match],
    entrants: &[Entrant],
) -> sqlx::Result<Vec<StoredMatch>> {
    let stored = matches::same_seats(&mut *db, edition.scope(), planned).await?;
    let numbers: Vec<_> = stored.iter().map(|stored| stored.number).collect();
    let results = results::of_matches(&mut *db, edition.tournament, &numbers).await?;
    let mut by_number: HashMap<_, _> =
        results.into_iter().map(|played| (played.number, played)).collect();
    let by_key: HashMap<_, _> = stored.iter().map(|stored| (stored.key(), stored.number)).collect();
    let places: HashMap<_, _> = entrants.iter().copied().zip((0..).map(Entrant)).collect();
    let mut result = |number: MatchNumber| {
        let mut played = by_number.remove(&number)?;
        for seat in &mut played.seats.0 {
            *seat = *places.get(seat)?;
        }
        Some(played)
    };
    let stored = |planned: &Match| {
        let number = by_key.get(&planned.key()).copied();
        StoredMatch { number, result: number.and_then(&mut result) }
    };
    Ok(planned.iter().map(stored).collect())
}

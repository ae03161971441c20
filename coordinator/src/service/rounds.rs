//! The rounds of an edition for people: its stages, and the standings and meetings of a stage.
//!
//! A schedule without stages is shown as one stage. What is shown follows from the plan and the
//! results alone (`played_rounds`), so it can show rounds that are not planned yet, and those
//! before the present one.

mod meetings;
mod stage;
mod standings;

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::{self, GetRoundsRequest, GetRoundsResponse};
use arbiter_schedule::Bot;
use tokio::runtime::Handle;

pub(super) use self::meetings::pair;
use self::stage::planned_stages;
pub(super) use self::stage::{BegunStage, StageKind};
use super::{Caller, DefaultEdition, Result, Service, ServiceError};
use crate::cache::Cache;
use crate::db::editions::{Edition, EditionState};
use crate::db::entrants::Roster;
use crate::db::tournaments::Tournament;
use crate::tournament::played_rounds::PlayedRounds;
use crate::tournament::rounds;

/// Maximum number of matches of an edition whose rounds are shown. All are read, and those of a
/// round are on one page.
const MAX_SHOWN_MATCHES: i64 = 20_000;
/// Maximum number of editions in the cache, each with less than 10 MB.
const MAX_CACHED_EDITIONS: usize = 4;
/// How long the rounds of an edition that is not complete are taken from the cache.
const MAX_AGE: Duration = Duration::from_secs(2);

/// The rounds of editions, and whether the edition was complete. `None` if it has no rounds.
pub(super) type RoundsCache = Cache<(EditionId, bool), Option<EditionRounds>>;

/// An empty cache.
pub(super) fn empty_cache() -> RoundsCache {
    Cache::new(MAX_CACHED_EDITIONS)
}

/// The rounds of an edition, and its bots.
#[derive(Debug)]
pub(super) struct EditionRounds {
    /// All bots.
    bots: Vec<Bot>,
    /// Their names.
    names: Vec<String>,
    played: PlayedRounds,
}

/// An edition whose rounds a caller may see.
#[derive(Debug)]
pub(super) struct ShownRounds {
    pub(super) tournament: Tournament,
    pub(super) edition: Edition,
    /// `None` if the schedule has no rounds.
    pub(super) rounds: Arc<Option<EditionRounds>>,
}

impl EditionRounds {
    fn new(roster: &Roster, played: PlayedRounds) -> Self {
        let bots = (0..=Bot::MAX).take(played.plan.bots()).collect();
        let names = roster.iter().map(|(_, named)| named.name.clone()).collect();
        Self { bots, names, played }
    }

    /// The name of a bot.
    pub(super) fn name(&self, bot: Bot) -> String {
        self.names.get(usize::from(bot)).cloned().unwrap_or_default()
    }

    fn names(&self, bots: &[Bot]) -> Vec<String> {
        bots.iter().map(|bot| self.name(*bot)).collect()
    }

    /// The stages that have begun: at least one.
    pub(super) fn begun(&self) -> Vec<BegunStage<'_>> {
        BegunStage::all(&self.played, &self.bots)
    }
}

impl ShownRounds {
    /// The position of a stage among those that have begun; by default the last one. Stages are
    /// numbered from 1.
    pub(super) fn position(
        &self,
        number: Option<u32>,
        rounds: &EditionRounds,
        default: usize,
    ) -> Result<usize> {
        let begun = rounds.begun().len();
        let all = begun + planned_stages(&rounds.played.plan).len();
        match number.map(|number| number as usize) {
            None => Ok(default),
            Some(number @ 1..) if number <= begun => Ok(number - 1),
            Some(number @ 1..) if number <= all => Err(ServiceError::failed_precondition(format!(
                "stage {number} of {} has not begun; the last one that has is stage {begun}",
                self.tournament.name
            ))),
            Some(number) => {
                Err(ServiceError::missing("stage", format!("{number} of {}", self.tournament.name)))
            }
        }
    }
}

impl Service {
    /// The rounds of an edition; by default of the newest one.
    ///
    /// # Errors
    /// If the schedule has no rounds, if the edition is too large to show, or if there is no such
    /// stage or round.
    pub(crate) async fn get_rounds(
        &self,
        caller: &Caller,
        request: GetRoundsRequest,
    ) -> Result<GetRoundsResponse> {
        let shown = self.edition_rounds(caller, &request.tournament, request.edition).await?;
        let Some(rounds) = shown.rounds.as_ref() else {
            return Err(ServiceError::failed_precondition(format!(
                "the schedule of {} has no rounds that follow from results; look at its schedule \
                 and its leaderboard instead",
                request.tournament
            )));
        };
        let begun = rounds.begun();
        let position = shown.position(request.stage, rounds, begun.len() - 1)?;
        let stage = &begun[position];
        let listed = stage.listed_rounds();
        let round = selected_round(request.round, listed, stage)?;
        let counted = stage.plan.finished_rounds().min(match stage.plan {
            StageKind::Swiss(_) | StageKind::Ladder(_) => round,
            _ => usize::MAX,
        });
        let columns = self.columns_of(shown.edition.id).await?;
        let trf = if request.trf { trf(&shown, rounds, stage, position)? } else { String::new() };
        Ok(GetRoundsResponse {
            edition: shown.edition.number,
            stages: stage_messages(rounds, &begun, &shown.edition),
            stage: to_u32(position + 1),
            round: to_u32(round),
            counted_rounds: to_u32(counted),
            standings: standings::standings(rounds, stage, counted, columns.len()),
            rounds: meetings::rounds(&shown, rounds, stage, position),
            columns,
            trf,
        })
    }

    /// The rounds of an edition that the caller may see.
    pub(super) async fn edition_rounds(
        &self,
        caller: &Caller,
        tournament: &str,
        edition: Option<i32>,
    ) -> Result<ShownRounds> {
        let row = self.tournament(tournament).await?;
        let board = v1::LeaderboardRef { tournament: tournament.to_owned(), edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Newest, caller).await?;
        // Matches of a cancelled edition may still be played while the leaderboard is frozen.
        self.require_results(&edition, caller).await?;
        if edition.matches > MAX_SHOWN_MATCHES {
            let matches = edition.matches;
            return Err(ServiceError::failed_precondition(format!(
                "edition {} has {matches} matches; rounds of at most {MAX_SHOWN_MATCHES} are \
                 shown, so look at its leaderboard instead",
                edition.number
            )));
        }
        let is_complete = edition.state == EditionState::Complete;
        let key = (edition.id, is_complete);
        let cached = self.rounds.get(&key, (!is_complete).then_some(MAX_AGE));
        let rounds = if let Some(rounds) = cached {
            rounds
        } else {
            let _permit = self.permit(caller).await?;
            self.rounds.insert(key, self.replay_rounds(&edition).await?)
        };
        Ok(ShownRounds { tournament: row, edition, rounds })
    }

    /// Repeats the plan of an edition. The pairings of a large round take long to compute.
    async fn replay_rounds(&self, edition: &Edition) -> Result<Option<EditionRounds>> {
        let pool = self.pool.clone();
        let games = self.games().clone();
        let edition = edition.clone();
        let replay = async move {
            let mut db = pool.acquire().await?;
            let played = rounds::played_rounds(&mut db, &games, &edition).await?;
            let roster = Roster::of(&mut *db, edition.id).await?;
            Ok::<_, sqlx::Error>(played.map(|played| EditionRounds::new(&roster, played)))
        };
        let runtime = Handle::current();
        let replayed = tokio::task::spawn_blocking(move || runtime.block_on(replay)).await;
        Ok(replayed.map_err(|_| ServiceError::stopping())??)
    }
}

/// The selected round of a stage with so many rounds, from 1; by default the last one that is over.
/// 0 if the stage lists no rounds.
fn selected_round(number: Option<u32>, listed: usize, stage: &BegunStage<'_>) -> Result<usize> {
    let Some(number) = number else {
        return Ok(stage.plan.finished_rounds().max(1).min(listed));
    };
    match number as usize {
        _ if listed == 0 => Err(ServiceError::failed_precondition(format!(
            "a {} has one round, so none can be selected; leave out `round`",
            stage.kind
        ))),
        round @ 1.. if round <= listed => Ok(round),
        round @ 1.. if round <= stage.plan.round_count() => Err(ServiceError::failed_precondition(
            format!("round {round} has not begun; the last one that has is round {listed}"),
        )),
        round => Err(ServiceError::missing("round", round)),
    }
}

/// The report of a stage in TRF16.
fn trf(
    shown: &ShownRounds,
    rounds: &EditionRounds,
    stage: &BegunStage<'_>,
    position: usize,
) -> Result<String> {
    let number = position + 1;
    let StageKind::Swiss(swiss) = stage.plan else {
        return Err(ServiceError::failed_precondition(format!(
            "stage {number} is a {}, and TRF16 reports only Swiss tournaments; select a stage of \
             the kind swiss",
            stage.kind
        )));
    };
    let title =
        format!("{}, edition {}, stage {number}", shown.tournament.name, shown.edition.number);
    let report = swiss.trf(&title, &rounds.names(stage.field));
    report.map_err(|error| ServiceError::failed_precondition(error.to_string()))
}

/// All stages: those that have begun, then the others.
fn stage_messages(
    rounds: &EditionRounds,
    begun: &[BegunStage<'_>],
    edition: &Edition,
) -> Vec<v1::RoundsStage> {
    let is_cancelled = edition.state == EditionState::Cancelled;
    let state = |stage: &BegunStage<'_>| match stage.plan.rounds().is_over() {
        true => "over",
        false if is_cancelled => "cancelled",
        false => "running",
    };
    let message = |stage: &BegunStage<'_>| v1::RoundsStage {
        kind: stage.kind.to_owned(),
        state: state(stage).to_owned(),
        bots: to_u32(stage.field.len()),
        advance: stage.advance.map(to_u32),
        advanced: rounds.names(stage.advanced),
        rounds: to_u32(stage.plan.round_count()),
        finished_rounds: to_u32(stage.plan.finished_rounds()),
        ..v1::RoundsStage::default()
    };
    let mut stages: Vec<_> = begun.iter().map(message).collect();
    stages.extend(planned_stages(&rounds.played.plan));
    for (number, stage) in (1..).zip(&mut stages) {
        stage.number = number;
    }
    stages
}

/// A number for a message.
pub(super) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

//! The rounds of an edition for people: its stages, and the standings and meetings of a stage.
//!
//! A schedule without stages is shown as one stage. What is shown follows from the plan and the
//! results alone (`played_rounds`), so it can show rounds that are not planned yet, and those
//! before the present one.

mod match_rounds;
mod meetings;
mod stage;
mod standings;

use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::{self, GetRoundsRequest, GetRoundsResponse};
use arbiter_schedule::Bot;
use sqlx::PgPool;
use tokio::sync::Mutex;

pub(super) use self::match_rounds::MatchRounds;
pub(super) use self::meetings::pair;
use self::stage::planned_stages;
pub(super) use self::stage::{BegunStage, StageKind};
use super::bracket::draw;
use super::{Bracket, Caller, DefaultEdition, Result, Service, ServiceError};
use crate::cache::Cache;
use crate::db::editions::{self, Edition, EditionState};
use crate::db::entrants::{EntrantInfo, Roster};
use crate::db::tournaments::Tournament;
use crate::tournament::played_rounds::PlayedRounds;
use crate::tournament::rounds::{self, replay_aside};

/// Maximum number of matches of an edition whose rounds are shown. All are read, and those of a
/// round are on one page.
const MAX_SHOWN_MATCHES: i64 = 20_000;
/// Maximum number of editions in the cache, each with less than 10 MB.
const MAX_CACHED_EDITIONS: usize = 4;
/// How long the rounds of an edition that is being played are taken from the cache.
const MAX_AGE: Duration = Duration::from_secs(2);
/// The same for a cancelled edition: only other editions still play some of its matches.
const MAX_CANCELLED_AGE: Duration = Duration::from_secs(60);
/// Maximum number of editions whose rounds are computed once for all waiting requests. Of more, the
/// rounds may be computed twice.
const MAX_COMPUTED_EDITIONS: usize = 256;

/// The rounds of editions.
#[derive(Clone, Debug)]
pub(super) struct RoundsCache {
    /// By edition and its state. `None` if the edition has no rounds.
    ready: Cache<(EditionId, &'static str), Option<EditionRounds>>,
    /// Locked while the rounds of an edition are computed.
    computing: Cache<EditionId, Mutex<()>>,
}

impl Default for RoundsCache {
    fn default() -> Self {
        Self {
            ready: Cache::new(MAX_CACHED_EDITIONS),
            computing: Cache::new(MAX_COMPUTED_EDITIONS),
        }
    }
}

impl RoundsCache {
    /// The rounds of an edition, if they are new enough.
    fn get(&self, edition: &Edition) -> Option<Arc<Option<EditionRounds>>> {
        let max_age = match edition.state {
            EditionState::Complete => None,
            EditionState::Cancelled => Some(MAX_CANCELLED_AGE),
            EditionState::Planning | EditionState::Running => Some(MAX_AGE),
        };
        self.ready.get(&(edition.id, edition.state.as_str()), max_age)
    }
}

/// The rounds of an edition, and its bots.
#[derive(Debug)]
pub(super) struct EditionRounds {
    /// All bots.
    bots: Vec<Bot>,
    /// Their names.
    names: Vec<String>,
    /// Whether each has a rank. A house bot may play without one.
    ranked: Vec<bool>,
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
    fn new(roster: &Roster, ranks_house_bots: bool, played: PlayedRounds) -> Self {
        let bots = (0..=Bot::MAX).take(played.plan.bots()).collect();
        let names = roster.iter().map(|(_, named)| named.name.clone()).collect();
        let is_ranked = |bot: &EntrantInfo| ranks_house_bots || bot.owner.is_some();
        let ranked = roster.iter().map(|(_, named)| is_ranked(named)).collect();
        Self { bots, names, ranked, played }
    }

    /// Whether a bot has a rank.
    fn is_ranked(&self, bot: Bot) -> bool {
        self.ranked.get(usize::from(bot)).copied().unwrap_or(true)
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
                let owner = format!("tournament {}", self.tournament.name);
                Err(ServiceError::missing_in(owner, "stage", number))
            }
        }
    }
}

impl Service {
    /// The rounds of an edition; by default of the newest one whose results are visible.
    ///
    /// # Errors
    /// If the schedule has no rounds, if the edition is too large to show, or if there is no such
    /// stage or round.
    pub(crate) async fn get_rounds(
        &self,
        caller: &Caller,
        request: GetRoundsRequest,
    ) -> Result<GetRoundsResponse> {
        Ok(self.rounds_with_bracket(caller, request).await?.0)
    }

    /// Like [`Service::get_rounds`], with the bracket if the stage is a knockout.
    pub(crate) async fn rounds_with_bracket(
        &self,
        caller: &Caller,
        request: GetRoundsRequest,
    ) -> Result<(GetRoundsResponse, Option<Bracket>)> {
        let shown = self.edition_rounds(caller, &request.tournament, request.edition).await?;
        let Some(rounds) = shown.rounds.as_ref() else {
            return Err(ServiceError::failed_precondition(format!(
                "the schedule of {} has no rounds that follow from results; look at its schedule \
                 and its leaderboard instead",
                request.tournament
            )));
        };
        let columns = self.columns_of(shown.edition.id).await?;
        // A response may have all matches of the edition.
        let _permit = self.permit(caller).await?;
        let begun = rounds.begun();
        let position = shown.position(request.stage, rounds, begun.len() - 1)?;
        let stage = &begun[position];
        let round = selected_round(request.round, stage.listed_rounds(), stage)?;
        let counted = stage.plan.finished_rounds().min(match stage.plan {
            StageKind::Swiss(_) | StageKind::Ladder(_) => round,
            _ => usize::MAX,
        });
        let bracket = match stage.plan {
            StageKind::Knockout(bracket) => Some(draw(&shown, rounds, stage, position, bracket)),
            _ => None,
        };
        let report = trf(&shown, rounds, stage, position);
        let response = GetRoundsResponse {
            edition: shown.edition.number,
            stages: stage_messages(rounds, &begun, &shown.edition),
            stage: to_u32(position + 1),
            round: to_u32(round),
            counted_rounds: to_u32(counted),
            standings: standings::standings(rounds, stage, counted, columns.len()),
            rounds: match &bracket {
                Some(bracket) => meetings::bracket_rounds(bracket),
                None => meetings::round(&shown, rounds, stage, round).into_iter().collect(),
            },
            columns,
            has_report: report.is_ok(),
            trf: if request.trf { report? } else { String::new() },
        };
        Ok((response, bracket))
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
        // While the leaderboard is frozen, the official edition is the newest visible one.
        let default = match self.visibility(&row, caller)?.frozen {
            None => DefaultEdition::Newest,
            Some(_) => DefaultEdition::Official,
        };
        let (edition, _) = self.edition_of(Some(board), default, caller).await?;
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
        let rounds = match self.rounds.get(&edition) {
            Some(rounds) => rounds,
            None => self.replay_rounds(caller, &edition).await?,
        };
        Ok(ShownRounds { tournament: row, edition, rounds })
    }

    /// Repeats the plan of an edition, once for all waiting requests. The lock and the permit are
    /// kept until the plan is repeated, also if the client goes away.
    async fn replay_rounds(
        &self,
        caller: &Caller,
        edition: &Edition,
    ) -> Result<Arc<Option<EditionRounds>>> {
        let cache = self.rounds.clone();
        let lock = cache.computing.get_or_insert_with(edition.id, Mutex::default);
        let computing = lock.lock_owned().await;
        if let Some(rounds) = cache.get(edition) {
            return Ok(rounds);
        }
        let permit = self.permit(caller).await?;
        let pool = self.pool.clone();
        let games = self.games().clone();
        let edition = edition.clone();
        let replay = async move {
            let rounds = read_rounds(&pool, &games, &edition).await;
            let key = (edition.id, edition.state.as_str());
            let rounds = rounds.map(|rounds| cache.ready.insert(key, rounds));
            drop((permit, computing));
            rounds
        };
        Ok(replay_aside(replay).await?)
    }
}

/// Repeats the plan of an edition. `None` if it has no rounds.
async fn read_rounds(
    pool: &PgPool,
    games: &Games,
    edition: &Edition,
) -> sqlx::Result<Option<EditionRounds>> {
    let mut db = pool.acquire().await?;
    let played = rounds::played_rounds(&mut db, games, edition).await?;
    let roster = Roster::of(&mut *db, edition.id).await?;
    let ranks_house_bots = editions::ranks_house_bots(&mut *db, edition.id).await?;
    Ok(played.map(|played| EditionRounds::new(&roster, ranks_house_bots, played)))
}

/// The selected round of a stage with this number of rounds, from 1; by default the last one that
/// is over. 0 if the stage lists no rounds.
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
        begun_rounds: to_u32(stage.begun_rounds()),
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

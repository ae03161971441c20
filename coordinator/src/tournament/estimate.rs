//! When an edition will be complete, and what the next one would come to, before anything starts.
//!
//! A forecast divides what is left by a rate. The rate is what was played in the last minutes; where
//! nothing was yet, it is what the connected workers can play: as many matches at a time as they
//! have slots, each as long as matches of the tournament took so far, or are expected to take.

use std::collections::HashMap;

use arbiter_games::Games;
use arbiter_proto::ids::{BotId, EditionId};
use arbiter_proto::settings::StateScope;
use arbiter_schedule::{Claim, NameKey, Participants, Plan, PlannedMatch};
use sqlx::PgConnection;
use time::{Duration, OffsetDateTime};

use super::lot_size::per_lot;
use super::plan_history::{self, Entry, PlanMode};
use super::planner::listed;
use super::{OpenError, TournamentFile};
use crate::db::estimates::{self, Means};
use crate::db::progress_samples::Pace;
use crate::db::tournaments::Tournament;
use crate::db::versions::{self, Version};
use crate::db::{bots, editions};

/// How long an edition must have been watched before it is judged by its pace.
const LONG_ENOUGH: Duration = Duration::seconds(15);
/// What a match takes in the database besides its record and its lot, with indexes, in bytes: some 120
/// for the match and 170 for the result, measured over 200 000 of them.
const ROWS: f64 = 290.0;
/// What a lot takes, in bytes: some 150, and as much again for the room that its changes leave.
const LOT: f64 = 300.0;
/// What a record takes besides its bytes: its row and those of its pieces, in bytes and as a part.
const RECORD: (f64, f64) = (100.0, 1.05);
/// The longest time that is forecast.
const LONGEST: Duration = Duration::days(36_500);

/// When something is over, as things stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletionEstimate {
    /// Matches in a second.
    pub rate: f64,
    /// When the last one is played.
    pub eta: OffsetDateTime,
}

impl CompletionEstimate {
    /// When so many matches are played, by the pace of those before, or by so many slots if there
    /// is none; a match takes so many milliseconds. Nothing if nobody plays.
    pub fn new(
        left: u64,
        pace: Option<Pace>,
        slots: u32,
        match_ms: f64,
        now: OffsetDateTime,
    ) -> Option<Self> {
        let rate = pace.and_then(|pace| rate(pace, now));
        let rate = rate.unwrap_or_else(|| f64::from(slots) * 1000.0 / match_ms.max(1.0));
        if rate <= 0.0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a forecast is not exact")]
        let seconds = (left as f64 / rate).min(LONGEST.as_seconds_f64());
        Some(Self { rate, eta: now.checked_add(Duration::seconds_f64(seconds))? })
    }
}

/// Matches in a second, if they were counted for long enough.
fn rate(pace: Pace, now: OffsetDateTime) -> Option<f64> {
    let time = now - pace.before_at;
    let played = pace.played - pace.before;
    #[expect(clippy::cast_precision_loss, reason = "a forecast is not exact")]
    let rate = played as f64 / time.as_seconds_f64();
    (time >= LONG_ENOUGH && played > 0).then_some(rate)
}

/// What an edition would come to.
#[derive(Clone, Debug, PartialEq)]
pub struct EditionEstimate {
    /// Bots that are entered.
    pub bots: usize,
    /// Matches; at most so many where they follow from results.
    pub matches: u64,
    /// Of these, at most so many that were not played by the same programs before.
    pub to_play: u64,
    /// How long a match takes, in milliseconds.
    pub match_ms: f64,
    /// Whether that was measured in this tournament.
    pub measured: bool,
    /// What the database would grow by, in bytes.
    pub bytes: u64,
    /// How the plan comes to be, where plans grow.
    pub plan: Option<String>,
}

/// The next edition of a tournament, as it would be planned now.
#[derive(Debug)]
pub struct NextEdition {
    file: TournamentFile,
    tournament: Tournament,
    entered: Vec<Version>,
    names: Vec<NameKey>,
    entry: Entry,
}

impl NextEdition {
    /// Plans it, and stores nothing.
    pub async fn plan(
        db: &mut PgConnection,
        games: &Games,
        tournament: Tournament,
        mode: PlanMode,
    ) -> Result<Self, OpenError> {
        let file = settings(games, &tournament)?;
        let entered = versions::newest(&mut *db, tournament.id).await?;
        let bots: Vec<_> = entered.iter().map(|version| version.bot).collect();
        let seed = tournament.next_seed();
        let entry = plan_history::next(db, (tournament.id, seed), &file, &bots, mode).await?;
        let entry = entry.map_err(|cause| unplanned(&tournament, cause))?;
        let all = bots::list(&mut *db, tournament.id).await?;
        let all: HashMap<_, _> = all.iter().map(|bot| (bot.id, &bot.name)).collect();
        let key = |bot: &BotId| all.get(bot).map(|name| NameKey::of(seed, name));
        let names = bots.iter().filter_map(key).collect();
        Ok(Self { file, tournament, entered, names, entry })
    }

    /// Whom it is planned for.
    pub fn field(&self) -> &Participants {
        &self.entry.field
    }

    /// How its plan comes to be, where plans grow.
    pub fn summary(&self) -> Option<String> {
        self.entry.descent.as_ref().map(plan_history::PlanHistory::summary)
    }

    /// Its matches.
    pub fn matches(&self) -> Result<Plan, OpenError> {
        let Self { file, tournament, names, entry, .. } = self;
        let failed = |cause| unplanned(tournament, cause);
        let seed = tournament.next_seed();
        match listed(file, &entry.field, names, seed).map_err(failed)? {
            Some(matches) => Ok(Plan::Matches(matches)),
            None => file.schedule.plan_for(&entry.field, seed).map_err(failed),
        }
    }

    /// What it would come to.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate is not exact, and sizes are positive"
    )]
    pub async fn estimate(&self, db: &mut PgConnection) -> Result<EditionEstimate, OpenError> {
        let means = estimates::means(&mut *db, self.tournament.id).await?;
        let (matches, to_play) = match self.matches()? {
            Plan::Matches(plan) => {
                let (total, known) = (plan.total(), self.known(db).await?);
                let new = self.unknown(plan, known);
                // Where files pass, a match that changes changes those after it.
                let alone = self.file.state == StateScope::None || new == 0;
                (total, if alone { new } else { total })
            }
            Plan::Episodes(plan) => {
                let most = plan.max_matches(self.file.rounds());
                (most, most)
            }
        };
        let record = means.record.unwrap_or(self.file.record_bytes() as f64);
        let record = RECORD.0 + RECORD.1 * record;
        let rows = ROWS + LOT / f64::from(per_lot(matches, self.file.expected_ms()));
        Ok(EditionEstimate {
            bots: self.entered.len(),
            matches,
            to_play,
            match_ms: match_ms(&means, &self.file),
            measured: means.wall_ms.is_some(),
            bytes: (matches as f64 * rows + to_play as f64 * record) as u64,
            plan: self.summary(),
        })
    }

    /// How often which of the entered programs met, by their numbers and by board.
    async fn known(&self, db: &mut PgConnection) -> Result<HashMap<Key, i64>, OpenError> {
        let programs: HashMap<_, Vec<u16>> =
            (0..).zip(&self.entered).fold(HashMap::new(), |mut all, (number, version)| {
                all.entry(version.digest.as_slice()).or_default().push(number);
                all
            });
        let mut known = HashMap::new();
        for met in estimates::met(db, self.tournament.id).await? {
            // Where two bots are the same program, it does not matter here who of them it was.
            let first = |digest: &Vec<u8>| Some(*programs.get(digest.as_slice())?.first()?);
            let seats: Option<Vec<_>> = met.digests.iter().map(first).collect();
            if let Some(seats) = seats {
                *known.entry((met.board.unwrap_or(0), seats)).or_default() += met.times;
            }
        }
        Ok(known)
    }

    /// How many of these matches are not known.
    fn unknown(
        &self,
        plan: impl Iterator<Item = PlannedMatch>,
        mut known: HashMap<Key, i64>,
    ) -> u64 {
        let mut alike: HashMap<&[u8], u16> = HashMap::new();
        let same: Vec<u16> = (0..)
            .zip(&self.entered)
            .map(|(number, version)| *alike.entry(version.digest.as_slice()).or_insert(number))
            .collect();
        let new = plan.filter(|planned| {
            let board = i16::try_from(planned.board).unwrap_or(i16::MAX);
            let seats = planned.seats().iter().map(|bot| same[usize::from(*bot)]).collect();
            match known.get_mut(&(board, seats)) {
                Some(times) if *times > 0 => {
                    *times -= 1;
                    false
                }
                _ => true,
            }
        });
        new.count() as u64
    }
}

/// A board, and who meets there.
type Key = (i16, Vec<u16>);

/// What a stored edition promises of its matches, and how its plan came to be.
#[derive(Debug)]
pub struct PlanGuarantees {
    /// Whom it was planned for.
    pub field: Participants,
    /// What is promised; nothing of episodes, which follow from results.
    pub claim: Option<Claim>,
    /// How many seats a match has.
    pub seats: usize,
    /// How its plan came to be, where plans grow.
    pub plan: Option<String>,
}

/// What the schedule promises of an edition that is stored.
pub async fn plan_guarantees(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    edition: EditionId,
) -> Result<PlanGuarantees, OpenError> {
    let file = settings(games, tournament)?;
    let seed = tournament.edition_seed(editions::number(&mut *db, edition).await?);
    let entry = plan_history::of_edition(db, (tournament.id, seed), &file, edition).await?;
    let Entry { field, descent } = entry.map_err(|cause| unplanned(tournament, cause))?;
    let plan = file.schedule.plan_for(&field, seed);
    let (claim, seats) = match plan.map_err(|cause| unplanned(tournament, cause))? {
        Plan::Matches(matches) => (Some(matches.claim()), matches.seats()),
        Plan::Episodes(_) => (None, 0),
    };
    Ok(PlanGuarantees { field, claim, seats, plan: descent.map(|descent| descent.summary()) })
}

/// How long a match of a tournament takes, in milliseconds, and how many there are at most.
pub async fn typical(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    bots: usize,
) -> Result<(f64, Option<u64>), OpenError> {
    let file = settings(games, tournament)?;
    let means = estimates::means(db, tournament.id).await?;
    let most = match file.schedule.plan_for(&bots.into(), tournament.seed) {
        Ok(Plan::Episodes(plan)) => Some(plan.max_matches(file.rounds())),
        _ => None,
    };
    Ok((match_ms(&means, &file), most))
}

#[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
fn match_ms(means: &Means, file: &TournamentFile) -> f64 {
    means.wall_ms.unwrap_or(file.expected_ms() as f64)
}

fn settings(games: &Games, tournament: &Tournament) -> Result<TournamentFile, OpenError> {
    TournamentFile::from_json(games, &tournament.settings)
        .map_err(|cause| OpenError::Settings(tournament.name.clone(), cause))
}

fn unplanned(tournament: &Tournament, cause: arbiter_schedule::ScheduleError) -> OpenError {
    OpenError::Schedule(tournament.name.clone(), cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn pace(played: i64, seconds: i64) -> Pace {
        Pace { played, before: 100, before_at: NOW - Duration::seconds(seconds) }
    }

    fn seconds(forecast: Option<CompletionEstimate>) -> Option<i64> {
        forecast.map(|forecast| (forecast.eta - NOW).whole_seconds())
    }

    #[test]
    fn a_pace_counts_once_it_is_known() {
        // 120 matches in a minute, and 600 are left.
        assert_eq!(
            seconds(CompletionEstimate::new(600, Some(pace(220, 60)), 1, 1000.0, NOW)),
            Some(300)
        );
        // Nothing was played yet, or for a moment only: 4 slots, each half a match a second.
        for early in [Some(pace(100, 60)), Some(pace(220, 5)), None] {
            assert_eq!(seconds(CompletionEstimate::new(600, early, 4, 2000.0, NOW)), Some(300));
        }
    }

    #[test]
    fn without_workers_nothing_is_forecast() {
        assert_eq!(CompletionEstimate::new(600, None, 0, 1000.0, NOW), None);
        assert_eq!(seconds(CompletionEstimate::new(0, None, 1, 1000.0, NOW)), Some(0));
        assert!(CompletionEstimate::new(u64::MAX, None, 1, f64::MAX, NOW).is_some());
    }
}

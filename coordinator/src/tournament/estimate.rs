//! Estimates when an edition will be complete, and the size and cost of the next one.
//!
//! The time left is the number of remaining matches divided by a rate. The rate is measured over
//! the last minutes. Before there is a measurement, the rate follows from the slots of the
//! connected workers and the mean or expected time of a match.

use std::collections::HashMap;

use arbiter_games::{Games, Seed};
use arbiter_proto::ids::{BotId, EditionId};
use arbiter_proto::settings::StateScope;
use arbiter_proto::v1::EditionEstimate;
use arbiter_schedule::{
    Adjustment, Claim, NameKey, Participants, Plan, PlannedMatch, RoundPlan, Schedule,
};
use sqlx::PgConnection;
use time::{Duration, OffsetDateTime};

use super::lot_size::per_lot;
use super::open_edition::read_settings;
use super::plan_history::{self, PlanMode, PlannedField};
use super::planner::listed;
use super::{OpenError, TournamentFile};
use crate::db::editions::Edition;
use crate::db::entrants::Roster;
use crate::db::estimate_inputs::{self, Means};
use crate::db::progress_samples::Pace;
use crate::db::tournaments::Tournament;
use crate::db::versions::{self, Version};
use crate::db::{bots, editions};

/// The shortest sample of progress that gives a rate.
const MIN_SAMPLE: Duration = Duration::seconds(15);
/// The size of a match in the database without its record and its lot, with indexes, in bytes:
/// about 120 for the match and 170 for the result, measured over 200 000 matches.
const MATCH_BYTES: f64 = 290.0;
/// The size of a lot, in bytes: about 150, and another 150 for dead rows of its updates.
const LOT_BYTES: f64 = 300.0;
/// The size of the rows of a record, in bytes, without its contents.
const RECORD_OVERHEAD_BYTES: f64 = 100.0;
/// The size of a stored record relative to its contents.
const RECORD_FACTOR: f64 = 1.05;
/// The longest estimate of time.
const MAX_TIME: Duration = Duration::days(36_500);

/// Why the balance of episodes is not counted.
pub const EPISODES: &str = "each round of an episode depends on the results of the round before, \
    so its plan does not guarantee how often pairs meet";

/// Why the balance of rounds is not counted, and what is known about them.
pub fn not_certified(plan: &RoundPlan) -> String {
    format!("results decide who meets after the first round; {plan}")
}

/// The estimated completion of an edition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletionEstimate {
    /// Matches per second.
    pub rate: f64,
    /// When the last match ends.
    pub eta: OffsetDateTime,
}

impl CompletionEstimate {
    /// Estimates when `left` more matches will have been played. The rate follows from the progress
    /// so far, or else from the number of slots and the time of a match. None if there is neither
    /// progress nor a slot.
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
        #[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
        let seconds = (left as f64 / rate).min(MAX_TIME.as_seconds_f64());
        Some(Self { rate, eta: now.checked_add(Duration::seconds_f64(seconds))? })
    }
}

/// Matches per second, if the sample is long enough.
fn rate(pace: Pace, now: OffsetDateTime) -> Option<f64> {
    let time = now - pace.before_at;
    let played = pace.played - pace.before;
    #[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
    let rate = played as f64 / time.as_seconds_f64();
    (time >= MIN_SAMPLE && played > 0).then_some(rate)
}

/// The next edition of a tournament, as it would be planned at present.
#[derive(Debug)]
pub struct NextEdition {
    file: TournamentFile,
    tournament: Tournament,
    versions: Vec<Version>,
    names: Vec<NameKey>,
    entry: PlannedField,
    /// The newest edition.
    before: Option<Edition>,
    /// The number that the plan has instead of the requested one.
    adjustment: Option<Adjustment>,
}

impl NextEdition {
    /// Plans the next edition without storing anything.
    pub async fn plan(
        db: &mut PgConnection,
        games: &Games,
        tournament: Tournament,
        mode: PlanMode,
    ) -> Result<Self, OpenError> {
        let file = read_settings(games, &tournament)?;
        let versions = versions::newest(&mut *db, tournament.id).await?;
        let bots: Vec<_> = versions.iter().map(|version| version.bot).collect();
        let seed = tournament.next_seed();
        let entry = plan_history::next(db, &tournament, &file, &bots, mode).await?;
        let rows = bots::list(&mut *db, tournament.id).await?;
        let bot_names: HashMap<_, _> = rows.iter().map(|bot| (bot.id, &bot.name)).collect();
        let key = |bot: &BotId| bot_names.get(bot).map(|name| NameKey::of(seed, name));
        let names = bots.iter().filter_map(key).collect();
        let before = editions::newest(&mut *db, tournament.id).await?;
        let history = entry.history.as_ref();
        let adjustment = plan_history::adjustment(db, tournament.id, &file, &bots, history).await?;
        Ok(Self { file, tournament, versions, names, entry, before, adjustment })
    }

    /// The participants.
    pub fn field(&self) -> &Participants {
        &self.entry.field
    }

    /// How the plan is made, at tables, and the number that it has instead of the requested one.
    pub fn summary(&self) -> Option<String> {
        let rules = self.file.game().rules_identity();
        let history = self.entry.history.as_ref();
        plan_history::summary_of(history, self.adjustment, self.before.as_ref(), rules)
    }

    /// The matches of the edition.
    pub fn matches(&self) -> Result<Plan, OpenError> {
        let Self { file, tournament, names, entry, .. } = self;
        let to_error = |cause| OpenError::schedule(tournament, cause);
        let seed = tournament.next_seed();
        if let Some(rounds) = file.schedule.rounds(names, seed).map_err(to_error)? {
            return Ok(Plan::Rounds(rounds));
        }
        match listed(file, &entry.field, names, seed).map_err(to_error)? {
            Some(matches) => Ok(Plan::Matches(matches)),
            None => file.schedule.plan_for(&entry.field, seed).map_err(to_error),
        }
    }

    /// Estimates the size and cost of the edition. The estimate has no slots and no time of
    /// completion.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "an estimate is not exact, and an edition has less than 2^32 bots and 2^63 matches"
    )]
    pub async fn estimate(&self, db: &mut PgConnection) -> Result<EditionEstimate, OpenError> {
        let means = estimate_inputs::means(&mut *db, self.tournament.id).await?;
        let mut summary = self.summary();
        let (matches, to_play) = match self.matches()? {
            Plan::Matches(plan) => {
                let total = plan.total();
                let played = self.played_matches(db).await?;
                let new = self.count_new(plan, played);
                // If bots leave files for later matches, a new match changes the matches after it.
                let reuses_others = self.file.state == StateScope::None || new == 0;
                (total, if reuses_others { new } else { total })
            }
            Plan::Rounds(rounds) => {
                summary = Some(rounds.to_string());
                let most = rounds.bounds().most;
                let is_known = matches!(rounds, RoundPlan::Gauntlet(_));
                let to_play = if is_known {
                    let played = self.played_matches(db).await?;
                    self.count_new(rounds.matches().into_iter(), played)
                } else {
                    // Who meets whom follows from results, so nothing is known to be played.
                    most
                };
                (most, to_play)
            }
            Plan::Episodes(episodes) => {
                let most = episodes.max_matches(self.file.rounds());
                (most, most)
            }
        };
        let record = means.record.unwrap_or(self.file.record_bytes() as f64);
        let record = RECORD_OVERHEAD_BYTES + RECORD_FACTOR * record;
        let rows = MATCH_BYTES + LOT_BYTES / f64::from(per_lot(matches, self.file.expected_ms()));
        Ok(EditionEstimate {
            bots: self.versions.len() as u32,
            matches: matches as i64,
            to_play: to_play as i64,
            match_ms: match_ms(&means, &self.file),
            measured: means.wall_ms.is_some(),
            bytes: (matches as f64 * rows + to_play as f64 * record) as i64,
            plan: summary.unwrap_or_default(),
            ..EditionEstimate::default()
        })
    }

    /// How often the entered programs played each other, by board and seats.
    async fn played_matches(&self, db: &mut PgConnection) -> Result<HashMap<Key, i64>, OpenError> {
        let programs: HashMap<_, Vec<u16>> =
            (0..).zip(&self.versions).fold(HashMap::new(), |mut all, (number, version)| {
                all.entry(version.digest.as_slice()).or_default().push(number);
                all
            });
        let mut played = HashMap::new();
        for row in estimate_inputs::lineups(db, self.tournament.id).await? {
            // Bots with the same program are equivalent, so each seat names the first of them.
            let first_bot = |digest: &Vec<u8>| Some(*programs.get(digest.as_slice())?.first()?);
            let seats: Option<Vec<_>> = row.digests.iter().map(first_bot).collect();
            if let Some(seats) = seats {
                *played.entry((row.board.unwrap_or(0), seats)).or_default() += row.times;
            }
        }
        Ok(played)
    }

    /// How many of these matches were not played before.
    fn count_new(
        &self,
        plan: impl Iterator<Item = PlannedMatch>,
        mut played: HashMap<Key, i64>,
    ) -> u64 {
        let mut first_bots: HashMap<&[u8], u16> = HashMap::new();
        let equivalents: Vec<u16> = (0..)
            .zip(&self.versions)
            .map(|(number, version)| *first_bots.entry(version.digest.as_slice()).or_insert(number))
            .collect();
        let new = plan.filter(|planned| {
            let board = i16::try_from(planned.board).unwrap_or(i16::MAX);
            let seats = planned.seats().iter().map(|bot| equivalents[usize::from(*bot)]).collect();
            match played.get_mut(&(board, seats)) {
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

/// A board and the bots in its seats.
type Key = (i16, Vec<u16>);

/// The guarantees of a stored edition's schedule, and the history of its plan.
#[derive(Debug)]
pub struct PlanGuarantees {
    /// The participants.
    pub field: Participants,
    /// The guarantees; the reason if there are none, because matches depend on results.
    pub claim: Result<Claim, String>,
    /// The number of seats of a match. 0 for episodes, where it varies.
    pub seats: usize,
    /// How the plan was made, at tables, and the number that it has instead of the requested one.
    pub plan: Option<String>,
}

/// The guarantees of a stored edition's schedule.
pub async fn plan_guarantees(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    edition: EditionId,
) -> Result<PlanGuarantees, OpenError> {
    let file = read_settings(games, tournament)?;
    let seed = tournament.edition_seed(editions::number(&mut *db, edition).await?);
    let PlannedField { field, .. } =
        plan_history::of_edition(db, (tournament, seed), &file, edition).await?;
    let roster = Roster::of(&mut *db, edition).await?;
    let names: Vec<_> = roster.iter().map(|(_, named)| NameKey::of(seed, &named.name)).collect();
    let rounds = file.schedule.rounds(&names, seed);
    let plan = match rounds.map_err(|cause| OpenError::schedule(tournament, cause))? {
        Some(rounds) => Ok(Plan::Rounds(rounds)),
        None => file.schedule.plan_for(&field, seed),
    };
    let (claim, seats) = match plan.map_err(|cause| OpenError::schedule(tournament, cause))? {
        Plan::Matches(matches) => (Ok(matches.claim()), matches.seats()),
        Plan::Episodes(_) => (Err(EPISODES.to_owned()), 0),
        Plan::Rounds(rounds) => (Err(not_certified(&rounds)), rounds.seats()),
    };
    let summary = plan_history::summary(db, &file, edition).await?;
    Ok(PlanGuarantees { field, claim, seats, plan: summary })
}

/// The time of a match, in milliseconds, and the maximum number of matches if results decide it.
pub async fn typical(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    bots: usize,
) -> Result<(f64, Option<u64>), OpenError> {
    let file = read_settings(games, tournament)?;
    let means = estimate_inputs::means(db, tournament.id).await?;
    Ok((match_ms(&means, &file), max_matches(&file, bots, tournament.seed)))
}

/// The maximum number of matches, if results decide the number.
fn max_matches(file: &TournamentFile, bots: usize, seed: Seed) -> Option<u64> {
    if let Schedule::Episodes(episodes) = &file.schedule {
        return Some(episodes.plan(bots).ok()?.max_matches(file.rounds()));
    }
    file.schedule.bounds(bots, seed).ok()?.map(|bounds| bounds.most)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
fn match_ms(means: &Means, file: &TournamentFile) -> f64 {
    means.wall_ms.unwrap_or(file.expected_ms() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn pace(played: i64, seconds: i64) -> Pace {
        Pace { played, before: 100, before_at: NOW - Duration::seconds(seconds) }
    }

    fn seconds(estimate: Option<CompletionEstimate>) -> Option<i64> {
        estimate.map(|estimate| (estimate.eta - NOW).whole_seconds())
    }

    #[test]
    fn the_rate_is_used_once_the_sample_is_long_enough() {
        // 120 matches were played in a minute, and 600 are left.
        assert_eq!(
            seconds(CompletionEstimate::new(600, Some(pace(220, 60)), 1, 1000.0, NOW)),
            Some(300)
        );
        // Without matches, or with a short sample, 4 slots play half a match a second each.
        for early in [Some(pace(100, 60)), Some(pace(220, 5)), None] {
            assert_eq!(seconds(CompletionEstimate::new(600, early, 4, 2000.0, NOW)), Some(300));
        }
    }

    #[test]
    fn without_workers_there_is_no_estimate() {
        assert_eq!(CompletionEstimate::new(600, None, 0, 1000.0, NOW), None);
        assert_eq!(seconds(CompletionEstimate::new(0, None, 1, 1000.0, NOW)), Some(0));
        assert!(CompletionEstimate::new(u64::MAX, None, 1, f64::MAX, NOW).is_some());
    }
}

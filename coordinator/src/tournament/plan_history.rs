//! The participants of an edition and, at tables, the history of its plan. Bots that stay in the
//! tournament keep the tables of earlier plans.
//!
//! The history of an edition depends on the history of the edition before and on the entered bots.
//! If an earlier step had the same bots, its plan is used again. Otherwise the plan is extended by
//! a step with the bots that left and joined. A new plan is made instead if an organiser requests
//! it, or if there are so few bots that another one would meet others too often. The same happens
//! if the extended plan has as many new matches as a new plan, or more than twice as many matches
//! in all.

use std::collections::{HashMap, HashSet};

use arbiter_games::Seed;
use arbiter_proto::ids::{BotId, EditionId, TournamentId};
use arbiter_schedule::foursomes::MAX_COUNTED_BOTS;
use arbiter_schedule::{
    Adjustment, Bot, Member, Owner, Participants, Plan, RosterChange, RosterHistory, Schedule,
    ScheduleError,
};
use serde::{Deserialize, Serialize};
use sqlx::{Error, PgConnection};

use super::plan_derivation::EditionSource;
use super::{OpenError, TournamentFile};
use crate::db::editions::Edition;
use crate::db::tournaments::Tournament;
use crate::db::{bots, editions, plan_histories};

/// The history of a plan of tables, stored with an edition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanHistory {
    /// The bot of each place.
    bots: Vec<BotId>,
    /// The number of first bots, and the bots that joined and left since.
    #[serde(flatten)]
    lineage: RosterHistory,
    /// Why its first plan was made.
    fresh: FreshReason,
}

/// Why a new plan was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreshReason {
    /// There was no plan before.
    First,
    /// An organiser requested it.
    Asked,
    /// There are so few bots that another one would meet them too often.
    Few,
    /// In the earlier plan some bots had no match. Former releases made such plans.
    Sparse,
    /// The new plan has no more new matches than the extended plan, or less than half as many in
    /// all.
    Cheaper,
    /// There are too many bots to count the meetings of each pair.
    Many,
}

impl FreshReason {
    /// The reason, for people.
    fn reason(self) -> &'static str {
        match self {
            Self::First => "the first plan",
            Self::Asked => "an organiser requested it",
            Self::Few => "the earlier plan had too few bots to change it",
            Self::Sparse => "some bots had no match in the earlier plan",
            Self::Cheaper => "an extended plan would have needed more matches",
            Self::Many => "there are too many bots to extend a plan",
        }
    }
}

/// How an edition uses the plan of the edition before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlanMode {
    /// The plan before is extended.
    #[default]
    Incremental,
    /// A new plan is made.
    Fresh,
}

/// The participants of an edition, and the history of its plan.
#[derive(Clone, Debug)]
pub(super) struct PlannedField {
    pub(super) field: Participants,
    /// The history of the plan, at tables.
    pub(super) history: Option<PlanHistory>,
}

/// The participants of the next edition. The entered bots are numbered in the order of `entered`.
pub(super) async fn next(
    db: &mut PgConnection,
    tournament: &Tournament,
    file: &TournamentFile,
    entered: &[BotId],
    mode: PlanMode,
) -> Result<PlannedField, OpenError> {
    if !file.schedule.has_history() {
        return Ok(PlannedField { field: entered.len().into(), history: None });
    }
    let previous = match mode {
        PlanMode::Fresh => None,
        PlanMode::Incremental => plan_histories::of_newest(&mut *db, tournament.id).await?,
    };
    let previous = previous.and_then(|stored| serde_json::from_value(stored).ok());
    let owners = owners(db, tournament.id, file).await?;
    let seed = tournament.next_seed();
    let planner = HistoryPlanner { schedule: &file.schedule, seed, owners, entered };
    planner.next(previous, mode).map_err(|cause| OpenError::schedule(tournament, cause))
}

/// The participants of a stored edition with this seed, for the proof of its guarantees.
pub(super) async fn of_edition(
    db: &mut PgConnection,
    (tournament, seed): (&Tournament, Seed),
    file: &TournamentFile,
    edition: EditionId,
) -> Result<PlannedField, OpenError> {
    let entrants = editions::entrants(&mut *db, edition).await?;
    let entered: Vec<_> = entrants.into_iter().map(|entrant| entrant.bot).collect();
    let stored = plan_histories::of_edition(&mut *db, edition).await?;
    let Some(stored) = stored.filter(|_| file.schedule.has_history()) else {
        return Ok(PlannedField { field: entered.len().into(), history: None });
    };
    let history: PlanHistory =
        serde_json::from_value(stored).map_err(|error| Error::Decode(Box::new(error)))?;
    let owners = owners(db, tournament.id, file).await?;
    let planner = HistoryPlanner { schedule: &file.schedule, seed, owners, entered: &entered };
    let field = planner.field(&history).map_err(|cause| OpenError::schedule(tournament, cause))?;
    Ok(PlannedField { field, history: Some(history) })
}

/// The participants of an edition, from its published source.
pub(super) fn field_of(
    source: &EditionSource,
    file: &TournamentFile,
) -> Result<Participants, String> {
    let Some(stored) = source.lineage.as_ref().filter(|_| file.schedule.has_history()) else {
        return Ok(source.entrants.into());
    };
    let history = PlanHistory::deserialize(stored)
        .map_err(|error| format!("cannot read the lineage: {error}"))?;
    let (entered, owners) = source.field();
    if !history.is_complete() || !history.has_present(&entered) {
        return Err("the lineage is not a history of the bots of the edition".to_owned());
    }
    let planner =
        HistoryPlanner { schedule: &file.schedule, seed: source.seed, owners, entered: &entered };
    planner.field(&history).map_err(|error| error.to_string())
}

/// The owners of bots, if the tournament keeps them apart.
async fn owners(
    db: &mut PgConnection,
    tournament: TournamentId,
    file: &TournamentFile,
) -> sqlx::Result<HashMap<BotId, Owner>> {
    if !file.submissions.separate_owners {
        return Ok(HashMap::new());
    }
    let bots = bots::list(&mut *db, tournament).await?.into_iter();
    Ok(bots.filter_map(|bot| Some((bot.id, Owner(bot.owner?)))).collect())
}

/// Continues the history of a plan.
struct HistoryPlanner<'a> {
    schedule: &'a Schedule,
    seed: Seed,
    /// The owners of bots; empty if the tournament does not keep them apart.
    owners: HashMap<BotId, Owner>,
    entered: &'a [BotId],
}

impl HistoryPlanner<'_> {
    fn next(
        &self,
        previous: Option<PlanHistory>,
        mode: PlanMode,
    ) -> Result<PlannedField, ScheduleError> {
        let extended = match previous {
            None if mode == PlanMode::Fresh => Err(FreshReason::Asked),
            None => Err(FreshReason::First),
            Some(previous) => self.extend(previous),
        };
        let fresh = match extended {
            Ok(entry) => return Ok(entry),
            Err(reason) => reason,
        };
        let bots = self.entered.to_vec();
        let history = PlanHistory { lineage: self.schedule.new_history(bots.len()), bots, fresh };
        Ok(PlannedField { field: self.field(&history)?, history: Some(history) })
    }

    /// The extended plan, or why a new one is made.
    fn extend(&self, previous: PlanHistory) -> Result<PlannedField, FreshReason> {
        let (history, is_extended) = self.continued(previous)?;
        let field = self.field(&history).map_err(|_| FreshReason::Few)?;
        if is_extended && self.is_new_plan_cheaper(&field) {
            return Err(FreshReason::Cheaper);
        }
        Ok(PlannedField { field, history: Some(history) })
    }

    /// The history that continues this one, and whether it has a new step. Otherwise an earlier
    /// step had the same bots. The error says why a new plan is made.
    fn continued(&self, previous: PlanHistory) -> Result<(PlanHistory, bool), FreshReason> {
        if let Schedule::Foursomes(config) = self.schedule
            && !config.seats_all(&previous.lineage)
        {
            return Err(FreshReason::Sparse);
        }
        let entered: HashSet<_> = self.entered.iter().copied().collect();
        if let Some(steps) = previous.steps_with(&entered) {
            let lineage = previous.lineage.before(steps);
            let bots = previous.bots[..lineage.places()].to_vec();
            return Ok((PlanHistory { bots, lineage, ..previous }, false));
        }
        let present = previous.present(&previous.lineage);
        let mut left = previous.lineage.present();
        left.retain(|place| !entered.contains(&previous.bot(*place)));
        let mut bots = previous.bots;
        let places = bots.len();
        bots.extend(self.entered.iter().filter(|bot| !present.contains(bot)));
        let joined = bots.len() - places;
        if bots.len() > MAX_COUNTED_BOTS {
            return Err(FreshReason::Many);
        }
        // Bots that do not replace a bot that left need new tables.
        if joined > left.len() && !self.has_room(&previous.lineage, present.len()) {
            return Err(FreshReason::Few);
        }
        let lineage = previous.lineage.after(RosterChange { left, joined });
        Ok((PlanHistory { bots, lineage, fresh: previous.fresh }, true))
    }

    /// Whether a new bot can meet the `others` as often as the first bots met, so that each pair of
    /// others meets at most once more. Only foursomes need this: at other tables a bot takes places
    /// of others.
    fn has_room(&self, lineage: &RosterHistory, others: usize) -> bool {
        let Schedule::Foursomes(config) = self.schedule else { return true };
        let Ok(base) = config.first_plan(lineage, self.seed) else { return false };
        let pairs = lineage.base * (lineage.base - 1) / 2;
        let meetings = (6 * base.matches()).div_ceil(pairs as u64);
        others > 4 && 2 * meetings < others as u64
    }

    /// Whether a new plan has no more new matches than the extended plan, or less than half as many
    /// matches in all.
    fn is_new_plan_cheaper(&self, extended: &Participants) -> bool {
        let total =
            |participants: &Participants| match self.schedule.plan_for(participants, self.seed) {
                Ok(Plan::Matches(matches)) => Some(matches.total()),
                _ => None,
            };
        let (Some(new), Some(all)) = (total(&self.entered.len().into()), total(extended)) else {
            return false;
        };
        extended.new_tables().is_some_and(|tables| tables >= new) || all > 2 * new
    }

    /// The participants with this history.
    fn field(&self, history: &PlanHistory) -> Result<Participants, ScheduleError> {
        let numbers: HashMap<_, _> = self.entered.iter().copied().zip(0..=Bot::MAX).collect();
        let mut members: Vec<_> = history.bots.iter().map(|bot| self.member(*bot)).collect();
        for place in history.lineage.present() {
            let place = usize::from(place);
            members[place].bot = numbers.get(&history.bots[place]).copied();
        }
        let bots = self.entered.len();
        if members.iter().filter(|member| member.bot.is_some()).count() < bots {
            return Err(ScheduleError::TooMany { bots });
        }
        self.schedule.participants(&history.lineage, &members, self.seed)
    }

    /// A member with the owner of this bot, not yet present in the edition.
    fn member(&self, bot: BotId) -> Member {
        Member { bot: None, owner: self.owners.get(&bot).copied() }
    }
}

/// How the plan of an edition was made, and the number that it has instead of the requested one,
/// one line for people. None if it has no history and every requested number.
pub async fn summary(
    db: &mut PgConnection,
    file: &TournamentFile,
    edition: EditionId,
) -> Result<Option<String>, Error> {
    let entrants = editions::entrants(&mut *db, edition).await?;
    let bots: Vec<_> = entrants.into_iter().map(|entrant| entrant.bot).collect();
    let stored = plan_histories::of_edition(&mut *db, edition).await?;
    let history = stored.and_then(|stored| PlanHistory::deserialize(stored).ok());
    let before = editions::newest_before(&mut *db, edition).await?;
    let edition = editions::get(&mut *db, edition).await?.ok_or(Error::RowNotFound)?;
    let adjustment = adjustment(db, edition.tournament, file, &bots, history.as_ref()).await?;
    Ok(summary_of(history.as_ref(), adjustment, before.as_ref(), &edition.rules))
}

/// Like [`summary`] for a plan with this history. `rules` are those of the edition, and `before` is
/// the edition before it.
pub(super) fn summary_of(
    history: Option<&PlanHistory>,
    adjustment: Option<Adjustment>,
    before: Option<&Edition>,
    rules: &str,
) -> Option<String> {
    let adjustment = adjustment.map(|adjustment| adjustment.to_string());
    let parts = history.map(|history| history.summary(before, rules)).into_iter().chain(adjustment);
    Some(parts.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// The number that the plan for these bots has instead of the requested one; with this history, or
/// a new plan.
pub(super) async fn adjustment(
    db: &mut PgConnection,
    tournament: TournamentId,
    file: &TournamentFile,
    bots: &[BotId],
    history: Option<&PlanHistory>,
) -> sqlx::Result<Option<Adjustment>> {
    let owners = owners(db, tournament, file).await?;
    let bots = history.map_or(bots, |history| &history.bots);
    let new = file.schedule.new_history(bots.len());
    let lineage = history.map_or(&new, |history| &history.lineage);
    Ok(file.schedule.adjustment_of(lineage, have_common_owner(&owners, bots)))
}

/// Whether some of these bots have the same owner. `owners` is empty if they are not kept apart.
fn have_common_owner(owners: &HashMap<BotId, Owner>, bots: &[BotId]) -> bool {
    let mut seen = HashSet::new();
    !bots.iter().filter_map(|bot| owners.get(bot)).all(|owner| seen.insert(*owner))
}

/// The number that the next edition of these bots will have instead of the requested one, without
/// planning it. `newest` is the newest edition so far.
pub(super) async fn next_adjustment(
    db: &mut PgConnection,
    tournament: &Tournament,
    file: &TournamentFile,
    entered: &[BotId],
    newest: Option<EditionId>,
) -> Result<Option<Adjustment>, Error> {
    let previous = match newest.filter(|_| file.schedule.has_history()) {
        Some(newest) => plan_histories::of_edition(&mut *db, newest).await?,
        None => None,
    };
    let previous = previous.and_then(|stored| PlanHistory::deserialize(stored).ok());
    let seed = tournament.next_seed();
    let owners = owners(db, tournament.id, file).await?;
    let planner = HistoryPlanner { schedule: &file.schedule, seed, owners, entered };
    let continued = previous.and_then(|previous| planner.continued(previous).ok());
    let Some((PlanHistory { bots, lineage, .. }, _)) = continued else {
        let new = file.schedule.new_history(entered.len());
        let are_kept_apart = have_common_owner(&planner.owners, entered);
        return Ok(file.schedule.adjustment_of(&new, are_kept_apart));
    };
    let are_kept_apart = have_common_owner(&planner.owners, &bots);
    Ok(file.schedule.adjustment_of_next(&lineage, entered.len(), are_kept_apart))
}

impl PlanHistory {
    /// The bot of each place.
    pub(super) fn bots(&self) -> &[BotId] {
        &self.bots
    }

    /// Whether each place has one bot, which leaves at most once and after it joined.
    fn is_complete(&self) -> bool {
        let RosterHistory { base, steps, .. } = &self.lineage;
        let mut places = *base;
        let mut left = HashSet::new();
        let are_possible = steps.iter().all(|step| {
            let can_leave = |place: &Bot| usize::from(*place) < places && left.insert(*place);
            let is_possible = step.left.is_sorted() && step.left.iter().all(can_leave);
            places = places.saturating_add(step.joined);
            is_possible
        });
        are_possible && places == self.bots.len()
    }

    /// Whether these bots are present after all steps, each in one place. The history must be
    /// complete.
    fn has_present(&self, bots: &[BotId]) -> bool {
        self.lineage.present().len() == bots.len()
            && self.present(&self.lineage) == bots.iter().copied().collect()
    }

    /// The number of its steps after which exactly these bots were present; the greatest one, if
    /// there are several. Takes the steps back one by one.
    fn steps_with(&self, bots: &HashSet<BotId>) -> Option<usize> {
        let is_one = |place: &Bot| bots.contains(&self.bot(*place));
        let present = self.lineage.present();
        let mut shared = present.iter().filter(|place| is_one(place)).count();
        let mut present = present.len();
        let mut places = self.bots.len();
        for (steps, step) in self.lineage.steps.iter().enumerate().rev() {
            if present == bots.len() && shared == bots.len() {
                return Some(steps + 1);
            }
            let joined = &self.bots[places - step.joined..places];
            places -= step.joined;
            present = present + step.left.len() - step.joined;
            shared += step.left.iter().filter(|place| is_one(place)).count();
            shared -= joined.iter().filter(|bot| bots.contains(bot)).count();
        }
        (present == bots.len() && shared == bots.len()).then_some(0)
    }

    /// The same history with other ids of its bots.
    pub(super) fn renamed(self, new_id: impl Fn(BotId) -> BotId) -> Self {
        Self { bots: self.bots.into_iter().map(new_id).collect(), ..self }
    }

    /// The bot of a place.
    fn bot(&self, place: Bot) -> BotId {
        self.bots[usize::from(place)]
    }

    /// The bots that are present after some of its steps.
    fn present(&self, lineage: &RosterHistory) -> HashSet<BotId> {
        lineage.present().into_iter().map(|place| self.bot(place)).collect()
    }

    /// A summary, one line for people. `rules` are those of the edition, and `before` is the
    /// edition before it.
    fn summary(&self, before: Option<&Edition>, rules: &str) -> String {
        let steps = &self.lineage.steps;
        let joined: usize = steps.iter().map(|step| step.joined).sum();
        let left: usize = steps.iter().map(|step| step.left.len()).sum();
        let base = self.lineage.base;
        let plan = match steps[..] {
            [] => format!("new plan: {}", self.fresh.reason()),
            _ => format!("extends a plan for {base} bots: {joined} joined, {left} left"),
        };
        if before.is_none_or(|before| before.rules == rules) {
            return plan;
        }
        let changed = "the rules changed";
        // The tables are those of the former rules.
        let has_same_plan = steps.is_empty() && self.fresh == FreshReason::First;
        if has_same_plan { changed.to_owned() } else { format!("{changed}; {plan}") }
    }
}

#[cfg(test)]
mod tests {
    use arbiter_games::Games;
    use arbiter_schedule::{FoursomesConfig, TableSeats, Tables};
    use serde_json::{Value, json};

    use super::super::plan_derivation::SourceBot;
    use super::*;

    /// The participants of an edition whose published source has this history. Bots are numbers:
    /// the first `entrants` take part.
    fn participants(
        schedule: &Schedule,
        entrants: usize,
        (bots, base, steps): (&[usize], usize, &Value),
    ) -> Result<Participants, String> {
        let text = "name = \"cup\"\ngame = \"wojna\"\n";
        let file = TournamentFile::parse(&Games::built_in(), text).unwrap();
        let bot = |number: usize| SourceBot { name: format!("b{number}"), owner: 0 };
        let source = EditionSource {
            edition: 1,
            seed: Seed::of_text("forged"),
            entrants,
            bots: (0..bots.len()).map(bot).collect(),
            lineage: Some(json!({ "bots": bots, "base": base, "steps": steps, "fresh": "first" })),
        };
        field_of(&source, &TournamentFile { schedule: schedule.clone(), ..file })
    }

    /// Former releases planned the requested number of tables, also if some bots had no match.
    #[test]
    fn a_stored_edition_keeps_its_number_of_tables() {
        let schedule = Schedule::Foursomes(FoursomesConfig::new(None, Some(2)).unwrap());
        let bots: Vec<_> = (0..12).collect();
        let stored = participants(&schedule, 12, (&bots, 12, &json!([]))).unwrap();
        match schedule.plan_for(&stored, Seed::of_text("forged")).unwrap() {
            Plan::Matches(matches) => assert_eq!((matches.total(), matches.count()), (2, 2)),
            other => panic!("{other:?}"),
        }
        // A new edition is not limited by it: all its bots play.
        let entered: Vec<_> = (0..12).map(BotId).collect();
        let seed = Seed::of_text("forged");
        let owners = HashMap::new();
        let planner = HistoryPlanner { schedule: &schedule, seed, owners, entered: &entered };
        let stored = json!({ "bots": bots, "base": 12, "steps": [], "fresh": "first" });
        let stored = PlanHistory::deserialize(stored).unwrap();
        let next = planner.next(Some(stored), PlanMode::Incremental).unwrap().history.unwrap();
        let now = json!(next);
        assert_eq!((&now["first_tables"], &now["fresh"]), (&json!(3), &json!("sparse")));
        let again = PlanHistory::deserialize(now).unwrap();
        let again = planner.next(Some(again), PlanMode::Incremental).unwrap().history.unwrap();
        assert_eq!(again, next);
    }

    #[test]
    fn a_forged_history_is_an_error() {
        let bots: Vec<_> = (0..17).collect();
        let twice: Vec<_> = (0..16).chain([15]).collect();
        let all_replaced: Vec<_> = (16..28).chain(0..16).collect();
        let all: Vec<_> = (0..12).collect();
        let [joins, leaves] =
            [json!({ "left": [], "joined": 5 }), json!({ "left": [16], "joined": 0 })];
        let seats = TableSeats::try_from(4).unwrap();
        for schedule in
            [Schedule::Tables(Tables::of(seats)), Schedule::Foursomes(FoursomesConfig::Least)]
        {
            let plan = |entrants, bots: &[usize], base, steps: Value| {
                participants(&schedule, entrants, (bots, base, &steps))
            };
            let plan_of_16 = plan(16, &bots, 12, json!([joins, leaves])).unwrap();
            assert_eq!(plan_of_16.bots(), 16);
            for (entrants, bots, base, steps, forgery) in [
                (16, &bots, 12, json!([leaves, joins]), "a bot leaves before it joins"),
                (16, &bots, 12, json!([joins, leaves, leaves]), "a bot leaves twice"),
                (15, &bots, 12, json!([joins, { "left": [16, 15], "joined": 0 }]), "out of order"),
                (16, &bots, 17, json!([]), "a present bot does not take part"),
                (16, &twice, 17, json!([]), "a bot has two places"),
                (17, &bots, 12, json!([joins, leaves]), "a bot that left takes part"),
                (
                    16,
                    &all_replaced,
                    12,
                    json!([{ "left": all, "joined": 0 }, { "left": [], "joined": 16 }]),
                    "all leave at once",
                ),
            ] {
                let outcome = plan(entrants, bots, base, steps);
                assert!(outcome.is_err(), "{forgery}: {outcome:?}");
            }
        }
    }
}

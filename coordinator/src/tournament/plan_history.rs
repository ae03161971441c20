//! Whom an edition is planned for: the bots that are entered, and, for tables of four, how the
//! field came to be, so that who stayed keeps the tables that were planned before.
//!
//! The lineage of an edition follows from that of the one before and from the bots that are entered
//! now. If the same bots were together before, the plan is what it was then. Else who left and who
//! joined is one step more, unless a new plan from the beginning is asked for, or is the better
//! one: where bots are so few that one more must meet others of them too often, or where growing
//! makes as many new matches as a new plan has, or has grown to twice its size.

use std::collections::{HashMap, HashSet};

use arbiter_games::Seed;
use arbiter_proto::ids::{BotId, EditionId, TournamentId};
use arbiter_schedule::foursomes::MAX_COUNTED_BOTS;
use arbiter_schedule::{
    Bot, FoursomesConfig, Member, Owner, Participants, Plan, RosterChange, RosterHistory, Schedule,
    ScheduleError,
};
use serde::{Deserialize, Serialize};
use sqlx::{Error, PgConnection, Result};

use super::TournamentFile;
use super::derivation::EditionSource;
use crate::db::{bots, editions};

/// How a plan of foursomes came to be, as it is stored with an edition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanHistory {
    /// Who has each place.
    bots: Vec<BotId>,
    /// Who began, and who came and left since.
    #[serde(flatten)]
    lineage: RosterHistory,
    /// Why it was planned from the beginning when it was.
    fresh: Fresh,
}

/// Why a plan was made from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fresh {
    /// There was none before.
    First,
    /// An organiser asked for it.
    Asked,
    /// One bot more would make others meet too often, they are so few.
    Few,
    /// It has no more matches that are new, or half as many in all.
    Cheaper,
    /// There are too many bots to count their meetings pair by pair.
    Many,
}

impl Fresh {
    /// Why, for people.
    fn reason(self) -> &'static str {
        match self {
            Self::First => "the first plan",
            Self::Asked => "as it was asked for",
            Self::Few => "the bots before were too few to add one",
            Self::Cheaper => "growing would have been dearer",
            Self::Many => "there are too many bots to grow a plan",
        }
    }
}

/// How an edition uses the plan of the edition before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlanMode {
    /// The plan before is extended.
    #[default]
    Incremental,
    /// The plan is made anew.
    Fresh,
}

/// Whom an edition is planned for, and how the plan came to be.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) field: Participants,
    /// How the plan came to be, where that matters.
    pub(super) descent: Option<PlanHistory>,
}

/// Whom the next edition is planned for, if these bots are entered, numbered in this order.
pub(super) async fn next(
    db: &mut PgConnection,
    tournament: (TournamentId, Seed),
    file: &TournamentFile,
    entered: &[BotId],
    mode: PlanMode,
) -> Result<Result<Entry, ScheduleError>> {
    let Schedule::Foursomes(extent) = file.schedule else {
        return Ok(Ok(Entry { field: entered.len().into(), descent: None }));
    };
    let before = match mode {
        PlanMode::Fresh => None,
        PlanMode::Incremental => editions::lineage(&mut *db, tournament.0).await?,
    };
    let before = before.and_then(|stored| serde_json::from_value(stored).ok());
    let owners = owners(db, tournament.0, file).await?;
    let planner = Follower { extent, seed: tournament.1, owners, entered };
    Ok(planner.follow(before, mode))
}

/// Whom an edition was planned for: the field that its matches are to be proved with.
pub(super) async fn of_edition(
    db: &mut PgConnection,
    tournament: (TournamentId, Seed),
    file: &TournamentFile,
    edition: EditionId,
) -> Result<Result<Entry, ScheduleError>> {
    let entrants = editions::entrants(&mut *db, edition).await?;
    let entered: Vec<_> = entrants.into_iter().map(|entrant| entrant.bot).collect();
    let stored = editions::lineage_of(&mut *db, edition).await?;
    let (Schedule::Foursomes(extent), Some(stored)) = (file.schedule, stored) else {
        return Ok(Ok(Entry { field: entered.len().into(), descent: None }));
    };
    let descent: PlanHistory =
        serde_json::from_value(stored).map_err(|error| Error::Decode(Box::new(error)))?;
    let owners = owners(db, tournament.0, file).await?;
    let planner = Follower { extent, seed: tournament.1, owners, entered: &entered };
    Ok(planner.field(&descent).map(|field| Entry { field, descent: Some(descent) }))
}

/// Whom an edition was planned for, by what its matches follow from.
pub(super) fn field_of(
    source: &EditionSource,
    file: &TournamentFile,
) -> Result<Participants, LineageError> {
    let (Schedule::Foursomes(extent), Some(stored)) = (file.schedule, &source.lineage) else {
        return Ok(source.entrants.into());
    };
    let descent = PlanHistory::deserialize(stored)?;
    if !descent.is_whole() {
        return Err(LineageError::Places);
    }
    let (entered, owners) = source.field();
    let planner = Follower { extent, seed: source.seed, owners, entered: &entered };
    Ok(planner.field(&descent)?)
}

/// Why a lineage gives no field.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineageError {
    #[error("the lineage cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the lineage has no bot for each of its places")]
    Places,
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// The owners of bots, where they are kept apart.
async fn owners(
    db: &mut PgConnection,
    tournament: TournamentId,
    file: &TournamentFile,
) -> Result<HashMap<BotId, Owner>> {
    if !file.submissions.separate_owners {
        return Ok(HashMap::new());
    }
    let bots = bots::list(&mut *db, tournament).await?.into_iter();
    Ok(bots.filter_map(|bot| Some((bot.id, Owner(bot.owner?)))).collect())
}

/// What a lineage follows from, besides the one before.
struct Follower<'a> {
    extent: FoursomesConfig,
    seed: Seed,
    /// Whose bots are; empty if that makes no difference.
    owners: HashMap<BotId, Owner>,
    entered: &'a [BotId],
}

impl Follower<'_> {
    fn follow(&self, before: Option<PlanHistory>, mode: PlanMode) -> Result<Entry, ScheduleError> {
        let grown = match before {
            None if mode == PlanMode::Fresh => Err(Fresh::Asked),
            None => Err(Fresh::First),
            Some(before) => self.grow(before),
        };
        let fresh = match grown {
            Ok(entry) => return Ok(entry),
            Err(fresh) => fresh,
        };
        let bots = self.entered.to_vec();
        let descent = PlanHistory { lineage: RosterHistory::new(bots.len()), bots, fresh };
        Ok(Entry { field: self.field(&descent)?, descent: Some(descent) })
    }

    /// The plan after one step more, or why another one is begun.
    fn grow(&self, before: PlanHistory) -> Result<Entry, Fresh> {
        let entered: HashSet<_> = self.entered.iter().copied().collect();
        let steps = before.lineage.steps.len();
        let together = (0..=steps).rev().map(|steps| before.lineage.before(steps));
        let together = together.into_iter().find(|lineage| before.there(lineage) == entered);
        if let Some(lineage) = together {
            let bots = before.bots[..lineage.places()].to_vec();
            let descent = PlanHistory { bots, lineage, ..before };
            let field = self.field(&descent).map_err(|_| Fresh::Few)?;
            return Ok(Entry { field, descent: Some(descent) });
        }
        let there = before.there(&before.lineage);
        let mut left = before.lineage.present();
        left.retain(|place| !entered.contains(&before.bot(*place)));
        let mut bots = before.bots;
        let places = bots.len();
        bots.extend(self.entered.iter().filter(|bot| !there.contains(bot)));
        let joined = bots.len() - places;
        if bots.len() > MAX_COUNTED_BOTS {
            return Err(Fresh::Many);
        }
        // Those who come without taking over from somebody need others to sit with.
        if joined > left.len() && !self.has_room(before.lineage.base, there.len()) {
            return Err(Fresh::Few);
        }
        let lineage = before.lineage.after(RosterChange { left, joined });
        let descent = PlanHistory { bots, lineage, fresh: before.fresh };
        let field = self.field(&descent).map_err(|_| Fresh::Few)?;
        if self.is_cheaper_anew(&field) {
            return Err(Fresh::Cheaper);
        }
        Ok(Entry { field, descent: Some(descent) })
    }

    /// Whether a newcomer can meet so many others as often as those who began meet, without making
    /// any of them meet more than once more.
    fn has_room(&self, began: usize, others: usize) -> bool {
        let Ok(base) = self.extent.plan(began, self.seed) else { return false };
        let meetings = (6 * base.matches()).div_ceil((began * (began - 1) / 2) as u64);
        others > 4 && 2 * meetings < others as u64
    }

    /// Whether a plan from the beginning has no more matches that must be played.
    fn is_cheaper_anew(&self, grown: &Participants) -> bool {
        let plan = Schedule::Foursomes(self.extent).plan_for(grown, self.seed);
        let (Ok(anew), Ok(Plan::Matches(matches))) =
            (self.extent.plan(self.entered.len(), self.seed), plan)
        else {
            return false;
        };
        grown.new_tables().is_some_and(|new| new >= anew.matches())
            || matches.total() > 2 * anew.matches()
    }

    /// The field that has this lineage.
    fn field(&self, descent: &PlanHistory) -> Result<Participants, ScheduleError> {
        let numbers = self.entered.iter().copied().zip(0..=Bot::MAX);
        let numbers: HashMap<_, _> = numbers.collect();
        let mut members: Vec<_> = descent.bots.iter().map(|bot| self.member(*bot)).collect();
        for place in descent.lineage.present() {
            let place = usize::from(place);
            members[place].bot = numbers.get(&descent.bots[place]).copied();
        }
        let bots = self.entered.len();
        if members.iter().filter(|member| member.bot.is_some()).count() < bots {
            return Err(ScheduleError::TooMany { bots });
        }
        Schedule::Foursomes(self.extent).participants(&descent.lineage, &members, self.seed)
    }

    /// Somebody who is not there.
    fn member(&self, bot: BotId) -> Member {
        Member { bot: None, owner: self.owners.get(&bot).copied() }
    }
}

/// How a stored plan came to be, in a line for people; empty if that cannot be read.
pub fn summary(stored: &serde_json::Value) -> String {
    PlanHistory::deserialize(stored).map(|descent| descent.summary()).unwrap_or_default()
}

impl PlanHistory {
    /// Who has each place.
    pub(super) fn bots(&self) -> &[BotId] {
        &self.bots
    }

    /// Whether each place has a bot.
    fn is_whole(&self) -> bool {
        let RosterHistory { base, steps } = &self.lineage;
        let counts = steps.iter().map(|step| step.joined).chain([*base]);
        let places = counts.fold(0, usize::saturating_add);
        let mut left = steps.iter().flat_map(|step| &step.left);
        places == self.bots.len() && left.all(|place| usize::from(*place) < places)
    }

    /// The same with other identities of its bots.
    pub(super) fn renamed(self, identity: impl Fn(BotId) -> BotId) -> Self {
        Self { bots: self.bots.into_iter().map(identity).collect(), ..self }
    }

    /// Who has a place.
    fn bot(&self, place: Bot) -> BotId {
        self.bots[usize::from(place)]
    }

    /// Who is there at the end of some of its steps.
    fn there(&self, lineage: &RosterHistory) -> HashSet<BotId> {
        lineage.present().into_iter().map(|place| self.bot(place)).collect()
    }

    /// How it came to be, in a line for people.
    pub fn summary(&self) -> String {
        let steps = &self.lineage.steps;
        let reason = self.fresh.reason();
        if steps.is_empty() {
            return format!("planned from the beginning: {reason}");
        }
        let joined: usize = steps.iter().map(|step| step.joined).sum();
        let left: usize = steps.iter().map(|step| step.left.len()).sum();
        format!("grown from a plan for {}: {joined} joined, {left} left", self.lineage.base)
    }
}

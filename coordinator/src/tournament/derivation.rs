//! Derives the matches of an edition from published data. The coordinator checks its stored plan
//! this way, and so can anybody with an export.
//!
//! A plan is a function of the tournament file, the edition's seed and its ordered bots; for
//! foursomes also of the plan's history, and for later rounds of episodes of the results.

use std::collections::{BTreeMap, HashMap};

use arbiter_games::Seed;
use arbiter_proto::convert;
use arbiter_proto::ids::BotId;
use arbiter_proto::v1;
use arbiter_schedule::{NameKey, Owner};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{Error, PgConnection, Result};

use super::TournamentFile;
use super::beacon::{canonical, keyed_seed};
use super::episodes::Rounds;
use super::plan_history::{self, PlanHistory};
use super::planner::Planner;
use crate::db::bots;
use crate::db::editions::{self, Edition};
use crate::db::entrants::Roster;
use crate::db::matches::Match;
use crate::db::results::SeatedResult;
use crate::db::tournaments::Tournament;
use crate::queue::Plan;

/// The data from which the matches of an edition follow, besides the tournament file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditionSource {
    /// The edition's number.
    pub edition: i32,
    /// Its seed.
    pub seed: Seed,
    /// How many of `bots` take part.
    pub entrants: usize,
    /// Its bots in the order of their numbers, then the bots that left the plan.
    pub bots: Vec<SourceBot>,
    /// The history of a plan of foursomes, with bots as indices of `bots`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Value>,
}

/// A bot that a plan was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceBot {
    /// Its name.
    pub name: String,
    /// If owners are kept apart, a number for each owner; otherwise 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub owner: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde takes")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The committed seed of a tournament, with its hash and beacon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment<'a> {
    /// BLAKE3 of the committed seed, published at creation.
    pub seed_hash: &'a [u8],
    /// The committed seed, published at the end.
    pub seed: Seed,
    /// The value of the beacon and the first edition that uses it, once it is known.
    pub beacon: Option<(&'a str, i32)>,
}

impl Commitment<'_> {
    /// What is wrong with the seed of this edition, the committed seed or the spelling of the
    /// beacon's value.
    pub fn differences(&self, edition: i32, found: Seed) -> Vec<String> {
        let mut differences = Vec::new();
        let hash = blake3::hash(&self.seed.0);
        if self.seed_hash != hash.as_bytes() {
            differences.push(format!(
                "the published seed {} has the hash {hash}, not the {} that was published at creation",
                self.seed,
                hex(self.seed_hash)
            ));
        }
        if let Some((value, _)) = self.beacon
            && canonical(value).as_deref() != Ok(value)
        {
            let right = canonical(value).map_or_else(|cause| cause, |right| format!("\"{right}\""));
            differences.push(format!(
                "the beacon has the value \"{value}\", whose right spelling is {right}"
            ));
        }
        let expected = match self.beacon {
            Some((value, first)) if edition >= first => keyed_seed(self.seed, value),
            _ => self.seed,
        };
        if found != expected {
            differences.push(format!(
                "edition {edition} has the seed {found}; the committed seed and the beacon give \
                 {expected}"
            ));
        }
        differences
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
    bytes.iter().flat_map(digits).flatten().collect()
}

impl EditionSource {
    /// Reads the source of an edition.
    pub async fn of_edition(
        db: &mut PgConnection,
        tournament: &Tournament,
        file: &TournamentFile,
        edition: &Edition,
    ) -> Result<Self> {
        let roster = Roster::of(&mut *db, edition.id).await?;
        let all = bots::list(&mut *db, tournament.id).await?;
        let all: HashMap<_, _> = all.iter().map(|bot| (bot.id, bot)).collect();
        let mut ids: Vec<_> = roster.iter().map(|(_, named)| named.bot).collect();
        let entrants = ids.len();
        let stored = editions::plan_history_of(&mut *db, edition.id).await?;
        let history: Option<PlanHistory> = stored
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| Error::Decode(Box::new(error)))?;
        let planned = history.as_ref().map_or(&[][..], PlanHistory::bots);
        for bot in planned {
            if !ids.contains(bot) {
                ids.push(*bot);
            }
        }
        let apart = file.submissions.separate_owners;
        let owner = |bot: &BotId| all.get(bot).and_then(|bot| bot.owner).filter(|_| apart);
        // In the order of their tokens, as in plans.
        let owners: BTreeMap<_, _> = ids.iter().filter_map(|bot| Some((owner(bot)?, 0))).collect();
        let owners: BTreeMap<_, _> = owners.into_keys().zip(1..).collect();
        let bots = ids.iter().map(|bot| SourceBot {
            name: all.get(bot).map(|bot| bot.name.clone()).unwrap_or_default(),
            owner: owner(bot).and_then(|owner| owners.get(&owner)).copied().unwrap_or(0),
        });
        let lineage = history.map(|history| {
            let places: HashMap<_, _> = ids.iter().copied().zip((0..).map(BotId)).collect();
            serde_json::to_value(history.renamed(|bot| places[&bot]))
        });
        Ok(Self {
            edition: edition.number,
            seed: tournament.edition_seed(edition.number),
            entrants,
            bots: bots.collect(),
            lineage: lineage.transpose().map_err(|error| Error::Decode(Box::new(error)))?,
        })
    }

    /// Passes the derived matches of the edition to `visit`, in order. `visit` returns the result
    /// of a match, from which later rounds of episodes follow. Without all results of a round, the
    /// derivation ends.
    ///
    /// # Errors
    /// The error of `visit`, or why no matches can be derived.
    pub fn derive(
        &self,
        file: &TournamentFile,
        mut visit: impl FnMut(Match) -> Result<Option<SeatedResult>, String>,
    ) -> Result<(), String> {
        let entered = self.bots.get(..self.entrants).ok_or("there are fewer bots than entrants")?;
        let names: Vec<_> = entered.iter().map(|bot| NameKey::of(self.seed, &bot.name)).collect();
        let field = plan_history::field_of(self, file).map_err(|error| error.to_string())?;
        let planner = Planner::new(file, &field, &names, self.seed);
        if let Some(planner) = planner.map_err(|error| error.to_string())? {
            return planner.plan().matches.into_iter().try_for_each(|next| visit(next).map(drop));
        }
        let mut rounds = Rounds::new(file, self.entrants, self.seed).map_err(|e| e.to_string())?;
        loop {
            let Plan { matches, open_ended, .. } = rounds.plan();
            let mut planned = 0;
            let mut played = Vec::new();
            for next in matches {
                planned += 1;
                played.extend(visit(next)?);
            }
            if !open_ended || played.len() < planned {
                return Ok(());
            }
            rounds.finish(&played)?;
        }
    }

    /// The bots that take part, and the owners of all bots if these are kept apart.
    pub(super) fn field(&self) -> (Vec<BotId>, HashMap<BotId, Owner>) {
        let entered = (0..).map(BotId).take(self.entrants).collect();
        let owned = (0..).map(BotId).zip(&self.bots).filter(|(_, bot)| bot.owner > 0);
        let owned_by = |owner: u32| Owner(i32::try_from(owner).unwrap_or(i32::MAX));
        (entered, owned.map(|(id, bot)| (id, owned_by(bot.owner))).collect())
    }
}

impl From<EditionSource> for v1::EditionSource {
    fn from(source: EditionSource) -> Self {
        let bot = |SourceBot { name, owner }| v1::SourceBot { name, owner };
        Self {
            edition: source.edition,
            seed: source.seed.0.to_vec(),
            bots: source.bots.into_iter().map(bot).collect(),
            entrants: u32::try_from(source.entrants).unwrap_or(u32::MAX),
            plan_history: source.lineage.map(|lineage| lineage.to_string()).unwrap_or_default(),
        }
    }
}

impl TryFrom<v1::EditionSource> for EditionSource {
    type Error = String;

    fn try_from(source: v1::EditionSource) -> Result<Self, String> {
        let bot = |v1::SourceBot { name, owner }| SourceBot { name, owner };
        let lineage = Some(source.plan_history).filter(|lineage| !lineage.is_empty());
        let lineage = lineage.map(|lineage| serde_json::from_str(&lineage)).transpose();
        Ok(Self {
            edition: source.edition,
            seed: convert::seed("seed", &source.seed).map_err(|error| error.to_string())?,
            entrants: usize::try_from(source.entrants).map_err(|error| error.to_string())?,
            bots: source.bots.into_iter().map(bot).collect(),
            lineage: lineage.map_err(|error| error.to_string())?,
        })
    }
}
